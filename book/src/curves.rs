//! The curves of an op of one operand: its formula and its gradient, at f64.

use anyhow::Result;
use pointwise::DType;
use pointwise::kernel::OpDef;

/// A point of a curve.
pub(crate) type Point = (f64, f64);

/// The part of the axis that is drawn.
pub(crate) const FROM: f64 = -5.0;
/// See [`FROM`].
pub(crate) const TO: f64 = 5.0;
/// Points of a curve.
pub(crate) const POINTS: usize = 1000;

/// Points of the axis, in order.
pub(crate) fn axis(points: usize) -> impl Iterator<Item = f64> {
    // Never quite a round number, where functions have their kinks.
    (0..points).map(move |k| FROM + (TO - FROM) * (k as f64 + 0.5) / points as f64)
}

/// The op's value, by its formula at f64.
pub(crate) fn value(def: &OpDef) -> Result<Vec<Point>> {
    let Some(oracle) = def.oracle(DType::F32, &[])? else { return Ok(Vec::new()) };
    Ok(axis(POINTS).map(|x| (x, oracle.of(&[x]))).collect())
}

/// Its gradient, where it has one.
pub(crate) fn gradient(def: &OpDef) -> Result<Vec<Point>> {
    let Some(backward) = def.backward else { return Ok(Vec::new()) };
    let Some(oracle) = backward.oracle(DType::F32, &[])? else { return Ok(Vec::new()) };
    Ok(axis(POINTS).map(|x| (x, oracle.of(&[1.0, x]))).collect())
}

#[cfg(test)]
mod tests {
    use pointwise::info;

    use super::*;

    #[test]
    fn curves_are_those_of_the_op() {
        let silu = info::op("silu").unwrap();
        let at = |points: &[Point], x: f64| {
            points.iter().min_by(|a, b| (a.0 - x).abs().total_cmp(&(b.0 - x).abs())).unwrap().1
        };
        assert!((at(&value(silu).unwrap(), 2.0) - 1.7616).abs() < 0.01);
        assert!((at(&gradient(silu).unwrap(), 2.0) - 1.0908).abs() < 0.01);
    }
}
