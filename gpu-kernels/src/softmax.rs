//! Softmax and its like, over each row: the last dimension.

use pointwise::__family::*;

/// `e^(scale x - m) / sum(e^(scale x - m))`, `m` the largest `scale x`. A row of minus infinities alone gives NaN. Source:
/// `torch.softmax` with `dim=-1`.
#[op(f32, f16, bf16, ulp = 64, grad_ulp = 64)]
pub fn softmax<T: Real>(x: T, row: Row<T>, #[param(default = 1.0)] scale: T) -> T {
    let x = x * scale;
    let e = (x - row.max(x).detach()).exp_negative();
    e * (T::ONE / row.sum(e))
}

/// [`softmax()`] of the elements where `mask` is false; 0 elsewhere. A row without such elements gives NaN. Source:
/// `torch._masked_softmax`.
#[op(f32, f16, bf16, ulp = 64, grad_ulp = 64)]
pub fn masked_softmax<T: Real>(x: T, mask: bool, row: Row<T>, #[param(default = 1.0)] scale: T) -> T {
    let x = if mask { T::constant(f64::NEG_INFINITY) } else { x * scale };
    let e = (x - row.max(x).detach()).exp_negative();
    e * (T::ONE / row.sum(e))
}

/// `scale x - m - ln(sum(e^(scale x - m)))`, `m` the largest `scale x`. Source: `torch.log_softmax` with `dim=-1`.
#[op(f32, f16, bf16, ulp = 8, grad_ulp = 16)]
pub fn log_softmax<T: Real>(x: T, row: Row<T>, #[param(default = 1.0)] scale: T) -> T {
    let x = x * scale;
    let d = x - row.max(x).detach();
    d - row.sum(d.exp_negative()).ln()
}

/// `ln(sum(e^x))`, one for each row: `m + ln(sum(e^(x - m)))`, `m` the largest, or 0 if that is infinite. Source:
/// `torch.logsumexp` with `dim=-1`.
#[op(f32, f16, bf16, ulp = 8, grad_ulp = 16)]
pub fn logsumexp<T: Real>(x: T, row: Row<T>) -> PerRow<T> {
    let largest = row.max(x).detach();
    let m = if largest.is_infinite() { T::ZERO } else { largest };
    PerRow(row.sum((x - m).exp_negative()).ln() + m)
}
