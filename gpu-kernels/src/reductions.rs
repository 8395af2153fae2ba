//! One number for each row: the last dimension is reduced. Sums are in f32 whatever the element type is.

use pointwise::__family::*;

/// The sum of each row. Source: `torch.sum` with `dim=-1`.
#[op(f32, f16, bf16, ulp = 4, grad_ulp = 4)]
pub fn sum<T: Real>(x: T, row: Row<T>) -> PerRow<T> {
    PerRow(row.sum(x))
}

/// The mean of each row. Source: `torch.mean` with `dim=-1`.
#[op(f32, f16, bf16, ulp = 4, grad_ulp = 4)]
pub fn mean<T: Real>(x: T, row: Row<T>) -> PerRow<T> {
    PerRow(row.mean(x))
}

/// The largest element of each row; NaN if there is one. Source: `torch.amax` with `dim=-1`.
#[op(f32, f16, bf16, exact)]
pub fn amax<T: Real>(x: T, row: Row<T>) -> PerRow<T> {
    PerRow(row.max(x))
}

/// The smallest element of each row; NaN if there is one. Source: `torch.amin` with `dim=-1`.
#[op(f32, f16, bf16, exact)]
pub fn amin<T: Real>(x: T, row: Row<T>) -> PerRow<T> {
    PerRow(row.min(x))
}

/// The variance of each row, `sum((x - mean(x))^2) / (n - correction)`. Source: `torch.var` with `dim=-1`.
#[op(f32, f16, bf16, ulp = 4, grad_ulp = 16)]
pub fn var<T: Real>(x: T, row: Row<T>, #[param(default = 1.0)] correction: T) -> PerRow<T> {
    // The gradient does not go through the mean, where it is zero.
    let d = x - row.mean(x).detach();
    PerRow(row.sum(d * d) / (row.len() - correction))
}
