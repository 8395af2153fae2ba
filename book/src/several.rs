//! Figures of ops of several operands: over one of them, while the others have a few fixed values.

use std::path::Path;

use anyhow::{Context as _, Result};
use pointwise::DType;
use pointwise::info::{OpInfo, op};
use pointwise::kernel::OpDef;

use crate::curves::{FROM, POINTS, Point, TO, axis};
use crate::errors::Errors;
use crate::plot::{Axes, Curve, draw_over};

/// Values beyond these are not drawn.
const MOST: f64 = 6.0;
/// The fixed operand of an op of two.
const FIXED: &[&[f64]] = &[&[-2.0], &[0.5], &[2.0]];

/// Ops with a choice of their own: the operand of the axis, and values of the others.
const CHOSEN: &[(&str, usize, &[&[f64]])] = &[
    ("pow", 0, &[&[-1.0], &[0.5], &[3.0]]),
    ("lerp", 2, &[&[-1.0, 1.0], &[0.0, 2.0], &[2.0, -3.0]]),
    ("clamp_tensor", 0, &[&[-1.0, 2.0], &[2.0, -1.0]]),
];

/// Draws the figures of an op. Returns the lines of its page that show them.
///
/// # Errors
/// The errors of the op and of the files.
pub(crate) fn figures(folder: &Path, info: &OpInfo, errors: &Errors<'_>) -> Result<Vec<String>> {
    let name = info.name;
    // Two values, or choices between operands, are no curve.
    let is_curve =
        info.bool_results() == 0 && info.result_type(0, DType::F32) == DType::F32 && info.bool_operands() == 0;
    let def = op(name).filter(|def| is_curve && def.info.supports(DType::F32));
    let Some(def) = def else { return Ok(Vec::new()) };
    let (over, fixed) = choice(name);
    let curves = fixed.iter().map(|values| curve(def, over, values)).collect::<Result<Vec<_>>>()?;
    let drawn: Vec<Curve<'_>> = curves.iter().map(|(name, points)| Curve { name, points }).collect();
    let x = info.operands[over];
    let axes = Axes { x, y: "y", from: FROM, to: TO };
    draw_over(&folder.join(format!("{name}.svg")), &drawn, &axes, Some(MOST))?;
    let mut lines = vec![format!("![{name} over {x}]({name}.svg)\n")];
    lines.extend(errors.figures(folder, info, x)?);
    Ok(lines)
}

fn choice(name: &str) -> (usize, &'static [&'static [f64]]) {
    CHOSEN.iter().find(|(op, ..)| *op == name).map_or((0, FIXED), |(_, over, fixed)| (*over, fixed))
}

fn others(info: &OpInfo, over: usize) -> impl Iterator<Item = &'static str> {
    info.operands.iter().enumerate().filter(move |(k, _)| *k != over).map(|(_, name)| *name)
}

/// The op by its formula at f64, and what its other operands are.
fn curve(def: &OpDef, over: usize, fixed: &[f64]) -> Result<(String, Vec<Point>)> {
    let names: Vec<String> =
        others(&def.info, over).zip(fixed).map(|(name, value)| format!("{name} = {value}")).collect();
    let oracle = def.oracle(DType::F32, &[])?.with_context(|| format!("{} has no formula", def.info.name))?;
    let mut operands = fixed.to_vec();
    operands.insert(over, 0.0);
    let points = axis(POINTS).map(|x| {
        operands[over] = x;
        (x, oracle.of(&operands))
    });
    let points = points.collect();
    Ok((names.join(", "), points))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chosen_values_are_those_of_ops() {
        for (name, over, fixed) in CHOSEN {
            let operands = op(name).unwrap().info.operands.len();
            assert!(*over < operands && fixed.iter().all(|values| values.len() == operands - 1), "{name}");
        }
    }

    #[test]
    fn curves_and_errors_are_those_of_the_op() {
        let (name, points) = curve(op("pow").unwrap(), 0, &[3.0]).unwrap();
        assert_eq!(name, "b = 3");
        assert!(points.iter().all(|(x, y)| (x * x * x - y).abs() < 1e-9));
    }
}
