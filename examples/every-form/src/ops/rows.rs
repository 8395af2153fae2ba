//! Ops that reduce over rows.

use pointwise::prelude::*;

/// `x / sqrt(mean(x^2) + eps) * weight`.
#[op(f32, f16, bf16, ulp = 4, grad_ulp = 16)]
pub fn norm<T: Real>(x: T, #[weight] weight: T, row: Row<T>, #[param(default = 1e-6)] eps: T) -> T {
    x * (row.mean(x * x) + eps).rsqrt() * weight
}

/// [`norm()`] of `x + residual`, and that sum.
#[op(f32, f16, bf16, ulp = 4, grad_ulp = 16, results(y, sum), through(sum = x + residual))]
pub fn add_norm<T: Real>(
    x: T,
    residual: T,
    #[weight] weight: T,
    row: Row<T>,
    #[param(default = 1e-6)] eps: T,
) -> (T, T) {
    let sum = row.stored(x + residual);
    (sum * (row.mean(sum * sum) + eps).rsqrt() * weight, sum)
}

/// Rows as e4m3, and the scale of each.
#[op(f32, f16, bf16, ulp = 2, grad = none, results(q: f8e4m3, scale: f32))]
pub fn quantised<T: Real>(x: T, row: Row<T>) -> (T, PerRow<T>) {
    let scale = (row.max(x.abs()) / T::constant(448.0)).maximum(T::constant(1e-12));
    (x / scale, PerRow(scale))
}

/// `ln(sum(e^x))`. The gradient reads the row's largest element and the sum, which the op keeps for it.
#[op(f32, f16, bf16, ulp = 8, grad_ulp = 64, results(y, largest: f32, total: f32), saves(x, largest, total), grad = share)]
pub fn log_of_sum<T: Real>(x: T, row: Row<T>) -> (PerRow<T>, PerRow<T>, PerRow<T>) {
    let largest = row.max(x);
    let total = row.sum(row.exp_negative(x - largest));
    (PerRow(total.ln() + largest), PerRow(largest), PerRow(total))
}

fn share<T: Real>(grad: PerRow<T>, x: T, _: Place<T>, largest: PerRow<T>, total: PerRow<T>) -> T {
    grad.0 * (x - largest.0).exp() / total.0
}

/// `mean(sin(x))`: a formula with a branch, for large angles.
#[op(f32, f16, bf16, ulp = 8, grad_ulp = 64)]
pub fn mean_of_sines<T: Real>(x: T, row: Row<T>) -> PerRow<T> {
    PerRow(row.mean(x.sin()))
}
