//! What the figures of a page show: the formula and its gradient at f64, and the error in f32 and bf16.

use anyhow::Result;
use pointwise::kernel::OpDef;
use pointwise::{DType, Device, Tensor, info};

/// A point of a curve.
pub(crate) type Point = (f64, f64);

/// The part of the axis that is drawn.
pub(crate) const FROM: f64 = -5.0;
/// See [`FROM`].
pub(crate) const TO: f64 = 5.0;
/// Points of a curve.
const POINTS: usize = 1000;
/// Inputs for each of which an error is worked out.
const INPUTS: usize = 40_000;
/// Parts of the axis, of each of which the largest error is drawn.
pub(crate) const PARTS: usize = 250;

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
    let Some(backward) = info::op(&format!("{}_backward", def.info.name)) else { return Ok(Vec::new()) };
    let Some(oracle) = backward.oracle(DType::F32, &[])? else { return Ok(Vec::new()) };
    Ok(axis(POINTS).map(|x| (x, oracle.of(&[1.0, x]))).collect())
}

/// The largest error in each part of the axis, in units in the last place of the element type, by a run on the CPU.
pub(crate) fn error(def: &'static OpDef, dtype: DType) -> Result<Vec<Point>> {
    let Some(oracle) = def.oracle(dtype, &[])?.filter(|_| def.info.supports(dtype)) else { return Ok(Vec::new()) };
    let inputs: Vec<f32> = axis(INPUTS).map(|x| x as f32).collect();
    let x = Tensor::from_slice(&Device::cpu(), &inputs, [INPUTS])?.to_dtype(dtype)?;
    let y = def.unary_with(&[]).run(&x)?;
    let (x, y) = (x.to_dtype(DType::F32)?.to_vec::<f32>()?, y.to_dtype(DType::F32)?.to_vec::<f32>()?);
    let mut largest = vec![0.0_f64; PARTS];
    for (k, (x, y)) in x.iter().zip(&y).enumerate() {
        let (exact, got) = (oracle.of(&[f64::from(*x)]), f64::from(*y));
        if exact.is_finite() && got.is_finite() {
            let part = &mut largest[k * PARTS / INPUTS];
            *part = part.max((got - exact).abs() / digit(dtype, exact));
        }
    }
    let width = (TO - FROM) / PARTS as f64;
    Ok(largest.into_iter().enumerate().map(|(k, ulp)| (FROM + width * (k as f64 + 0.5), ulp)).collect())
}

/// The distance of two neighbouring numbers of a type near `x`.
pub(crate) fn digit(dtype: DType, x: f64) -> f64 {
    let (digits, least) = if dtype == DType::BF16 { (7, -133) } else { (23, -149) };
    let exponent = if x == 0.0 { least } else { x.abs().log2().floor() as i32 - digits };
    2.0_f64.powi(exponent.max(least))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digit_is_the_distance_to_the_next_number() {
        for x in [1.0_f32, 1.5, 3.0e-20, 7.7e30, f32::from_bits(1)] {
            assert_eq!(digit(DType::F32, f64::from(x)), f64::from(x.next_up()) - f64::from(x), "{x}");
        }
        assert_eq!(digit(DType::BF16, 1.0), f64::from(2.0_f32.powi(-7)));
    }

    #[test]
    fn curves_are_those_of_the_op() {
        let silu = info::op("silu").unwrap();
        let at = |points: &[Point], x: f64| {
            points.iter().min_by(|a, b| (a.0 - x).abs().total_cmp(&(b.0 - x).abs())).unwrap().1
        };
        assert!((at(&value(silu).unwrap(), 2.0) - 1.7616).abs() < 0.01);
        assert!((at(&gradient(silu).unwrap(), 2.0) - 1.0908).abs() < 0.01);
        let bound = f64::from(silu.info.accuracy.bound(DType::F32));
        let errors = error(silu, DType::F32).unwrap();
        assert!(errors.iter().all(|(_, ulp)| *ulp <= bound) && errors.iter().any(|(_, ulp)| *ulp > 0.3));
    }
}
