//! Ops whose rows are groups of neighbours along the last dimension.

use pointwise::prelude::*;

/// Groups as e4m3, and the scale of each, as matrix products of fp8 take them.
#[op(f32, f16, bf16, ulp = 2, grad = none, row = 128, results(q: f8e4m3, scale: f32))]
pub fn group_quantised<T: Real>(x: T, row: Row<T>) -> (T, PerRow<T>) {
    let scale = (row.max(x.abs()) / T::constant(448.0)).maximum(T::constant(1e-12));
    (x / scale, PerRow(scale))
}

/// The inverse of [`group_quantised()`].
#[op(f32, f16, bf16, exact, grad = none, row = 128)]
pub fn group_dequantised<T: Real>(#[stored(f8e4m3)] q: T, #[stored(f32)] scale: PerRow<T>, _row: Row<T>) -> T {
    q * scale.0
}

/// Each group by its own mean and standard deviation, which the op returns too: `(x - mean) * rstd * weight + bias`.
#[op(f32, f16, bf16, ulp = 16, grad_ulp = 64, row = 32, results(y, mean, rstd: f32))]
pub fn group_normed<T: Real>(
    x: T,
    weight: T,
    bias: T,
    row: Row<T>,
    #[param(default = 1e-5)] eps: T,
) -> (T, PerRow<T>, PerRow<T>) {
    let (var, mean) = row.var_mean(x);
    let rstd = (var + eps).rsqrt();
    (((x - mean) * rstd).mul_add(weight, bias), PerRow(mean), PerRow(rstd))
}

/// Groups by whole numbers, each by its own.
#[op(f32, f16, bf16, exact, row = 16)]
pub fn group_scaled<T: Real>(x: T, #[stored(i8)] scale: PerRow<T>, _row: Row<T>) -> T {
    x * scale.0
}

/// Groups by powers of two, each by its own, as MX formats have their scales.
#[op(f32, f16, bf16, ulp = 4, row = 32)]
pub fn group_shifted<T: Real>(x: T, #[stored(i8)] exponent: PerRow<T>, _row: Row<T>) -> T {
    x * T::constant(2.0).pow(exponent.0)
}
