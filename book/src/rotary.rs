//! Pictures of rotary embedding: the table of cosines, and the positions of tokens.

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use crate::canvas::{Area, CELL, COLOURS, Drawn, GREY, LEFT, text};

/// Rows of the table.
const TOKENS: i32 = 24;
/// Columns of the table.
const PAIRS: i32 = 16;

/// A table of cosines, with the row that one token reads.
pub(crate) fn table(area: &Area<'_>) -> Drawn {
    const SIZE: i32 = 13;
    const CHOSEN: i32 = 9;
    let (left, top) = (96, 56);
    text(area, "pair k: the angle of position p is p times frequency k", (left, 14), 15, HPos::Left)?;
    for k in [0, 4, 8, 12, 15] {
        text(area, &k.to_string(), (left + SIZE * k + SIZE / 2, 40), 13, HPos::Center)?;
    }
    for p in [0, 8, 16, 23] {
        text(area, &format!("position {p}"), (left - 8, top + SIZE * p + SIZE / 2), 13, HPos::Right)?;
    }
    for p in 0..TOKENS {
        for k in 0..PAIRS {
            let angle = f64::from(p) * 10_000_f64.powf(-f64::from(k) / f64::from(PAIRS));
            let (cos, corner) = (angle.cos(), (left + SIZE * k, top + SIZE * p));
            // The strength of the colour is the cosine's size; the colour is its sign.
            let colour = if cos < 0.0 { COLOURS[1] } else { COLOURS[0] }.mix((cos.abs() * 20.0).round() / 20.0);
            area.draw(&Rectangle::new([corner, (corner.0 + SIZE - 1, corner.1 + SIZE - 1)], colour.filled()))?;
        }
    }
    let (row, right) = (top + SIZE * CHOSEN, left + SIZE * PAIRS);
    area.draw(&Rectangle::new([(left - 1, row - 1), (right, row + SIZE - 1)], GREY.stroke_width(2)))?;
    let middle = row + SIZE / 2;
    area.draw(&PathElement::new([(right, middle), (right + 24, middle)], GREY.stroke_width(2)))?;
    text(area, "The token at position 9 reads", (right + 32, middle - 9), 14, HPos::Left)?;
    text(area, "this row: a cosine for each pair.", (right + 32, middle + 9), 14, HPos::Left)?;
    for (k, (colour, words)) in [(COLOURS[0], "cosine near 1"), (COLOURS[1], "cosine near -1")].into_iter().enumerate()
    {
        let y = top + 190 + 24 * k as i32;
        area.draw(&Rectangle::new([(right + 32, y), (right + 44, y + 12)], colour.filled()))?;
        text(area, words, (right + 52, y + 6), 14, HPos::Left)?;
    }
    text(area, "The last pairs hardly turn.", (right + 32, top + 250), 14, HPos::Left)
}

/// A row of tokens: what it shows, and the sequence and the position of each token.
type Row = (&'static str, &'static [(usize, i32)]);

const ROWS: [Row; 5] = [
    ("the index of the token", &[(0, 0), (0, 1), (0, 2), (0, 3), (0, 4), (0, 5), (0, 6), (0, 7)]),
    (
        "an offset: 100 tokens are in the cache",
        &[(0, 100), (0, 101), (0, 102), (0, 103), (0, 104), (0, 105), (0, 106), (0, 107)],
    ),
    (
        "an offset for each batch entry: two new tokens of each of four sequences",
        &[(0, 12), (0, 13), (1, 507), (1, 508), (2, 3), (2, 4), (3, 88), (3, 89)],
    ),
    (
        "cu_seqlens [0, 3, 6, 8]: three sequences one after another",
        &[(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2), (2, 0), (2, 1)],
    ),
    (
        "ids: what you say, here a tree of two branches",
        &[(0, 0), (0, 1), (1, 2), (1, 3), (1, 4), (2, 2), (2, 3), (2, 4)],
    ),
];

/// The position of each token, by each way to say it. Colours are sequences.
pub(crate) fn positions(area: &Area<'_>) -> Drawn {
    const WIDTH: i32 = 44;
    for (row, (words, tokens)) in ROWS.iter().enumerate() {
        let top = 18 + 66 * row as i32;
        text(area, words, (LEFT, top), 15, HPos::Left)?;
        for (k, (sequence, position)) in tokens.iter().enumerate() {
            let x = LEFT + WIDTH * k as i32;
            let corners = [(x + 1, top + 13), (x + WIDTH - 3, top + 12 + CELL)];
            area.draw(&Rectangle::new(corners, COLOURS[*sequence].filled()))?;
            let white = ("sans-serif", 13).into_font().color(&WHITE).pos(Pos::new(HPos::Center, VPos::Center));
            area.draw(&Text::new(position.to_string(), (x + WIDTH / 2 - 1, top + 12 + CELL / 2), white))?;
        }
    }
    text(
        area,
        "A square is a token; its number is its position. One colour is one sequence, or one branch.",
        (LEFT, 352),
        14,
        HPos::Left,
    )
}
