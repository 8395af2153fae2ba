//! Figures of ops of several operands: over one of them, while the others have a few fixed values.

use std::path::Path;

use anyhow::{Context as _, Result};
use pointwise::info::{Accuracy, OpInfo, op};
use pointwise::kernel::OpDef;
use pointwise::{DType, Device, Operand, Tensor};

use crate::curves::{FROM, PARTS, Point, TO, axis, digit};
use crate::plot::{Axes, Curve, draw_over};

/// Values beyond these are not drawn.
const MOST: f64 = 6.0;
/// Points of a curve, and inputs for each of which an error is worked out.
const INPUTS: usize = 40_000;
/// The fixed operand of an op of two.
const FIXED: &[&[f64]] = &[&[-2.0], &[0.5], &[2.0]];

/// Ops with a choice of their own: the operand of the axis, and values of the others.
const CHOSEN: &[(&str, usize, &[&[f64]])] = &[
    ("pow", 0, &[&[-1.0], &[0.5], &[3.0]]),
    ("lerp", 2, &[&[-1.0, 1.0], &[0.0, 2.0], &[2.0, -3.0]]),
    ("clamp_tensor", 0, &[&[-1.0, 2.0], &[2.0, -1.0]]),
];

/// Draws what there is to draw of an op; returns the lines of its page that show it.
///
/// # Errors
/// Those of the op and of the files.
pub(crate) fn figures(folder: &Path, info: &OpInfo) -> Result<Vec<String>> {
    let name = info.name;
    // Two values, or choices between operands, are no curve.
    let is_curve = info.bool_results == 0 && info.result.of(DType::F32) == DType::F32 && info.bool_operands == 0;
    let def = op(name).filter(|def| is_curve && def.info.supports(DType::F32));
    let Some(def) = def else { return Ok(Vec::new()) };
    let (over, fixed) = choice(name);
    let curves = fixed.iter().map(|values| curve(def, over, values)).collect::<Result<Vec<_>>>()?;
    let drawn: Vec<Curve<'_>> = curves.iter().map(|(name, points)| Curve { name, points }).collect();
    let x = info.operands[over];
    let axes = Axes { x, y: "y", from: FROM, to: TO };
    draw_over(&folder.join(format!("{name}.svg")), &drawn, &axes, Some(MOST))?;
    let mut lines = vec![format!("![{name} over {x}]({name}.svg)\n")];
    if info.accuracy == Accuracy::Exact {
        return Ok(lines);
    }
    let (single, half) = (error(def, over, DType::F32)?, error(def, over, DType::BF16)?);
    let drawn = [Curve { name: "f32", points: &single }, Curve { name: "bf16", points: &half }];
    let axes = Axes { y: "error in ULP", ..axes };
    draw_over(&folder.join(format!("{name}-error.svg")), &drawn, &axes, None)?;
    let others: Vec<&str> = others(info, over).collect();
    lines.push(format!(
        "The largest error near each {x}, in units in the last place of the result, while {} takes values from {FROM} to \
         {TO}; worked out on the CPU when this page was made:\n\n![error of {name} over {x}]({name}-error.svg)\n",
        others.join(" and "),
    ));
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
    let points = axis(INPUTS / 40).map(|x| {
        operands[over] = x;
        (x, oracle.of(&operands))
    });
    let points = points.collect();
    Ok((names.join(", "), points))
}

/// The largest error in each part of the axis, by a run on the CPU.
fn error(def: &'static OpDef, over: usize, dtype: DType) -> Result<Vec<Point>> {
    let cpu = Device::cpu();
    let oracle = def.oracle(dtype, &[])?.with_context(|| format!("{} has no formula", def.info.name))?;
    let inputs = |k: usize| -> Vec<f32> {
        // Steps of the golden ratio visit the other operands' range evenly, near each x.
        let other = |i: usize| FROM + (TO - FROM) * (0.618_033_988_749_895 * (i as f64 + 0.5) * (k + 1) as f64).fract();
        if k == over {
            axis(INPUTS).map(|x| x as f32).collect()
        } else {
            (0..INPUTS).map(|i| other(i) as f32).collect()
        }
    };
    let rows = (0..def.info.operands.len()).map(|k| {
        let row = Tensor::from_slice(&cpu, &inputs(k), [1, INPUTS])?.to_dtype(dtype)?;
        let exact = row.to_dtype(DType::F32)?.to_vec::<f32>()?;
        Ok((row, exact))
    });
    let rows = rows.collect::<Result<Vec<_>>>()?;
    let operands: Vec<Operand<'_>> = rows.iter().map(|(row, _)| Operand::from(row)).collect();
    let results = def.kernel(&[]).run(&operands)?;
    let [y] = results.as_slice() else { anyhow::bail!("{} has several results", def.info.name) };
    let y = y.to_dtype(DType::F32)?.to_vec::<f32>()?;
    // A part without a number has no error.
    let mut largest = vec![f64::NAN; PARTS];
    for (i, y) in y.iter().enumerate() {
        let values: Vec<f64> = rows.iter().map(|(_, row)| f64::from(row[i])).collect();
        let (exact, got) = (oracle.of(&values), f64::from(*y));
        if exact.is_finite() && got.is_finite() {
            let part = &mut largest[i * PARTS / INPUTS];
            *part = part.max((got - exact).abs() / digit(dtype, exact));
        }
    }
    let width = (TO - FROM) / PARTS as f64;
    Ok(largest.into_iter().enumerate().map(|(k, ulp)| (FROM + width * (k as f64 + 0.5), ulp)).collect())
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
        let gated = op("silu_and_mul").unwrap();
        let bound = f64::from(gated.info.accuracy.bound(DType::F32));
        let errors = error(gated, 0, DType::F32).unwrap();
        assert!(errors.iter().all(|(_, ulp)| *ulp <= bound) && errors.iter().any(|(_, ulp)| *ulp > 0.3));
    }
}
