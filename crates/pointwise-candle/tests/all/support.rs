//! Inputs and comparisons.

use candle_core::{DType, Device, Result, Tensor};

/// Returns numbers from `low` to `high`, the same for a seed.
pub(crate) fn numbers(count: usize, seed: u64, low: f32, high: f32) -> Vec<f32> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f32 / (1_u64 << 24) as f32
    };
    (0..count).map(|_| low + (high - low) * next()).collect()
}

/// Returns a tensor of such numbers.
pub(crate) fn random(shape: &[usize], seed: u64, low: f32, high: f32, dtype: DType) -> Result<Tensor> {
    Tensor::from_vec(numbers(shape.iter().product(), seed, low, high), shape, &Device::Cpu)?.to_dtype(dtype)
}

/// Returns the elements as f64, in row-major order.
pub(crate) fn values(x: &Tensor) -> Result<Vec<f64>> {
    x.to_dtype(DType::F64)?.flatten_all()?.to_vec1()
}

/// Compares tensors within `share` of the larger of 1 and the expected magnitude.
#[track_caller]
pub(crate) fn assert_close(what: &str, got: &Tensor, expected: &Tensor, share: f64) {
    assert_eq!(got.dims(), expected.dims(), "{what}");
    let (got, expected) = (values(got).unwrap(), values(expected).unwrap());
    for (at, (got, expected)) in got.iter().zip(&expected).enumerate() {
        let bound = share * expected.abs().max(1.0);
        assert!((got - expected).abs() <= bound || got == expected, "{what}, element {at}: {got}, expected {expected}");
    }
}
