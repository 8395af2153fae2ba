//! The picture of a Llama block, op by op and fused: a column for each way, a box for each kernel.

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use crate::canvas::{Area, COLOURS, Drawn, GREY, text};

/// A stage of the block: its kernels op by op, and fused. `None` is a matrix product or attention, which is left alone.
type Stage = Option<(&'static [&'static str], &'static [&'static str])>;

const STAGES: [(&str, Stage); 9] = [
    ("norm", Some((&["to", "pow", "mean", "add", "rsqrt", "mul", "to", "mul"], &["rms_norm"]))),
    ("q, k, v", None),
    ("rotation", Some((&["mul", "neg", "cat", "mul", "add", "mul", "neg", "cat", "mul", "add"], &["rope"]))),
    ("attention", None),
    ("output", None),
    ("residual, norm", Some((&["add", "to", "pow", "mean", "add", "rsqrt", "mul", "to", "mul"], &["add, rms_norm"]))),
    ("gate, up", None),
    ("gate", Some((&["silu", "mul"], &["silu, mul"]))),
    ("down, residual", Some((&["add"], &["add"]))),
];

/// Pixels of a stage, and of a box beside the next.
const HEIGHT: i32 = 44;
const BOX: i32 = 46;
/// The columns: names, op by op, fused.
const COLUMNS: [i32; 3] = [12, 130, 610];

/// Draws the block.
pub(crate) fn draw(area: &Area<'_>) -> Drawn {
    for (words, x) in
        [("a block of Llama", 0), ("op by op: 30 kernels", 1), ("fused: 5", 2)].map(|(words, k)| (words, COLUMNS[k]))
    {
        text(area, words, (x, 16), 15, HPos::Left)?;
    }
    for (k, (name, stage)) in STAGES.iter().enumerate() {
        let top = 34 + HEIGHT * k as i32;
        text(area, name, (COLUMNS[0], top + HEIGHT / 2 - 4), 13, HPos::Left)?;
        match stage {
            None => {
                for x in [COLUMNS[1], COLUMNS[2]] {
                    kernel(area, (x, top), 3 * BOX, "as before", &GREY)?;
                }
            }
            Some((ops, fused)) => {
                for (i, op) in ops.iter().enumerate() {
                    kernel(area, (COLUMNS[1] + BOX * i as i32, top), BOX, op, &COLOURS[1])?;
                }
                fused.iter().try_for_each(|op| kernel(area, (COLUMNS[2], top), 3 * BOX, op, &COLOURS[0]))?;
            }
        }
    }
    text(
        area,
        "Each box reads its operands from memory and writes its result to memory.",
        (COLUMNS[0], 442),
        13,
        HPos::Left,
    )
}

fn kernel(area: &Area<'_>, (x, top): (i32, i32), width: i32, name: &str, colour: &RGBColor) -> Drawn {
    let corners = [(x + 1, top), (x + width - 2, top + HEIGHT - 14)];
    area.draw(&Rectangle::new(corners, colour.filled()))?;
    let white = ("sans-serif", 12).into_font().color(&WHITE).pos(Pos::new(HPos::Center, VPos::Center));
    area.draw(&Text::new(name.to_owned(), (x + width / 2, top + (HEIGHT - 14) / 2), white))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_counts_are_those_of_the_boxes() {
        let counts = STAGES
            .iter()
            .filter_map(|(_, stage)| *stage)
            .fold((0, 0), |(a, b), (ops, fused)| (a + ops.len(), b + fused.len()));
        assert_eq!(counts, (30, 5));
    }
}
