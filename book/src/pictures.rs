//! The pictures of `docs/figures`: the elements of a thread, the steps of rotary embedding, and all measurements.

use anyhow::Result;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use crate::canvas::{Area, CELL, COLOURS, Drawn, GREY, LEFT, picture, text};
use crate::errors::Errors;
use crate::{accuracy, block, roofline, rotary, speed};

/// The names of the pictures' files, and the pictures.
///
/// # Errors
/// A file of measurements that is none; the drawing library's.
pub(crate) fn all() -> Result<[(&'static str, String); 9]> {
    let errors = Errors::read(include_str!("../../docs/data/error-curves.csv"))?;
    Ok([
        ("threads.svg", picture((740, 360), threads)?),
        ("pairs.svg", picture((560, 250), pairs)?),
        ("block.svg", picture((760, 460), block::draw)?),
        ("cosines.svg", picture((560, 380), rotary::table)?),
        ("positions.svg", picture((560, 366), rotary::positions)?),
        ("errors.svg", errors.picture()?),
        ("accuracy.svg", accuracy::draw(include_str!("../../docs/accuracy.md"))?),
        ("speed.svg", speed::draw(include_str!("../../docs/data/speed.csv"))?),
        ("roofline.svg", roofline::draw(include_str!("../../docs/data/roofline.csv"))?),
    ])
}

/// A square for an element, with its thread's number.
fn cell(area: &Area<'_>, column: i32, top: i32, thread: Option<usize>) -> Drawn {
    let x = LEFT + CELL * column;
    let corners = [(x + 1, top + 1), (x + CELL - 1, top + CELL - 1)];
    match thread {
        Some(thread) => {
            area.draw(&Rectangle::new(corners, COLOURS[thread % COLOURS.len()].filled()))?;
            let white = ("sans-serif", 12).into_font().color(&WHITE).pos(Pos::new(HPos::Center, VPos::Center));
            area.draw(&Text::new(thread.to_string(), (x + CELL / 2, top + CELL / 2), white))?;
        }
        None => area.draw(&Rectangle::new(corners, GREY.mix(0.3).filled()))?,
    }
    Ok(())
}

/// Draws the elements that each thread has, for each class of kernels.
fn threads(area: &Area<'_>) -> Drawn {
    let mut top = 20;
    text(
        area,
        "flat: vectors of 16 bytes (here 4 elements of f32); what is left goes element by element",
        (LEFT, top),
        15,
        HPos::Left,
    )?;
    for column in 0..26 {
        // Two elements before the first aligned vector, four vectors, two behind, and one more.
        let thread = match column {
            0 | 1 => 5 + column,
            2..=21 => (column - 2) / 4,
            _ => 7 + column - 22,
        };
        cell(area, column, top + 14, (column < 25).then_some(thread as usize))?;
    }
    top += 80;
    text(
        area,
        "rows: vectors along the innermost dimension; a row of the operand may lie anywhere",
        (LEFT, top),
        15,
        HPos::Left,
    )?;
    for (row, shift) in [(0, 0), (1, 10)] {
        for column in 0..8 {
            let thread = 2 * row + column / 4;
            cell(area, shift + column, top + 14, Some(thread as usize))?;
        }
        for column in 8..10 {
            cell(area, shift + column, top + 14, None)?;
        }
    }
    text(area, "grey: memory between the rows", (LEFT + CELL * 20 + 4, top + 27), 13, HPos::Left)?;
    top += 80;
    text(
        area,
        "strided, explicit_parallel: four single elements a thread; neighbouring threads read neighbours",
        (LEFT, top),
        15,
        HPos::Left,
    )?;
    for column in 0..24 {
        cell(area, column, top + 14, Some((column % 6) as usize))?;
    }
    top += 80;
    text(area, "strided, direct: one element a thread", (LEFT, top), 15, HPos::Left)?;
    for column in 0..24 {
        cell(area, column, top + 14, Some(column as usize))?;
    }
    top += 80;
    text(area, "The number in a square is the thread that has the element.", (LEFT, top), 14, HPos::Left)?;
    Ok(())
}

/// Draws the lanes of a head that rotate together.
fn pairs(area: &Area<'_>) -> Drawn {
    let mut top = 20;
    for (title, partner) in [
        ("halves (GPT-NeoX, Llama): lane i with lane i + half", (|lane| (lane + 4) % 8) as fn(i32) -> i32),
        ("neighbours (GPT-J, interleaved): lane 2i with lane 2i + 1", |lane| lane ^ 1),
    ] {
        text(area, title, (LEFT, top), 15, HPos::Left)?;
        let row = top + 44;
        for lane in 0..8 {
            let first = lane.min(partner(lane));
            let pair = if partner(0) == 1 { first / 2 } else { first };
            let x = LEFT + 2 * CELL * lane;
            let corners = [(x + 1, row), (x + 2 * CELL - 6, row + CELL)];
            area.draw(&Rectangle::new(corners, COLOURS[pair as usize].filled()))?;
            let white = ("sans-serif", 12).into_font().color(&WHITE).pos(Pos::new(HPos::Center, VPos::Center));
            area.draw(&Text::new(format!("x{lane}"), (x + CELL - 3, row + CELL / 2), white))?;
            if lane < partner(lane) {
                // A bracket above the pair.
                let (from, to) = (x + CELL - 3, LEFT + 2 * CELL * partner(lane) + CELL - 3);
                let high = row - 6 - 5 * if partner(0) == 1 { 0 } else { lane };
                let line = vec![(from, row - 2), (from, high), (to, high), (to, row - 2)];
                area.draw(&PathElement::new(line, COLOURS[pair as usize].stroke_width(2)))?;
            }
        }
        top += 110;
    }
    text(area, "Lanes of one colour are rotated by one angle.", (LEFT, top), 14, HPos::Left)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    /// The files are written by `POINTWISE_BLESS=1`.
    #[test]
    fn the_pictures_in_docs_are_these() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/figures");
        for (name, svg) in all().unwrap() {
            if std::env::var_os("POINTWISE_BLESS").is_some() {
                fs::write(folder.join(name), &svg).unwrap();
            }
            let there = fs::read_to_string(folder.join(name)).unwrap_or_default();
            assert!(there == svg, "docs/figures/{name} is not what the program draws");
        }
    }
}
