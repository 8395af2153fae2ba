//! Ops that reduce over rows.

use pointwise::prelude::*;

/// `x / sqrt(mean(x^2) + eps) * weight`.
#[op(f32, f16, bf16, ulp = 4, grad_ulp = 16)]
pub fn norm<T: Real>(x: T, weight: T, row: Row<T>, #[param(default = 1e-6)] eps: T) -> T {
    x * (row.mean(x * x) + eps).rsqrt() * weight
}

/// Rows as e4m3, and the scale of each.
#[op(f32, f16, bf16, ulp = 2, grad = none, results(q: f8e4m3, scale: f32))]
pub fn quantised<T: Real>(x: T, row: Row<T>) -> (T, PerRow<T>) {
    let scale = (row.max(x.abs()) / T::constant(448.0)).maximum(T::constant(1e-12));
    (x / scale, PerRow(scale))
}
