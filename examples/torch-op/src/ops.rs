//! The ops. Their gradients follow from the formulas.

use pointwise::prelude::*;

/// `x + sin^2(a x) / a` (Ziyin et al. 2020).
#[op(floats, ulp = 8)]
pub fn snake<T: Real>(x: T, #[param(default = 1.0)] a: T) -> T {
    let s = (a * x).sin();
    x + s * s / a
}

/// The end of a transformer block: `residual + gelu(x + bias)` where `keep`, elsewhere the residual.
#[op(f32, f16, bf16, ulp = 256, grad_ulp = 256)]
pub fn gelu_add<T: Real>(x: T, bias: T, residual: T, keep: bool) -> T {
    let y = (x + bias).gelu();
    residual + if keep { y } else { T::ZERO }
}

/// A gated activation: `silu(gate) (value + 1)`, of the halves of one tensor, or of two tensors (`silu_gate_pair`).
#[op(f32, f16, bf16, ulp = 4, gated)]
pub fn silu_gate<T: Real>(gate: T, value: T) -> T {
    gate.silu() * (value + T::ONE)
}

/// A sigmoid whose gradient reads the result, `grad y (1 - y)`: PyTorch keeps that, and not the operand.
#[op(floats, ulp = 4, grad_ulp = 8, saves(y), grad = logistic_slope)]
pub fn logistic<T: Real>(x: T) -> T {
    x.sigmoid()
}

fn logistic_slope<T: Real>(grad: T, y: T) -> T {
    grad * y * (T::ONE - y)
}

/// A scale and a shift for each channel.
#[op(f32, f16, bf16, ulp = 2)]
pub fn affine<T: Real>(x: T, #[channel] scale: T, #[channel] shift: T) -> T {
    x.mul_add(scale, shift)
}

/// Attention's scores with ALiBi's bias, and -inf for positions to come. `slope` is of the shape (heads, 1, 1).
#[op(f32, f16, bf16, ulp = 2, grad_ulp = 2)]
pub fn causal_scores<T: Real>(score: T, slope: T, row: Index, column: Index) -> T {
    let back = row as i32 - column as i32;
    if back >= 0 { slope.mul_add(T::constant(f64::from(-back)), score) } else { T::constant(f64::NEG_INFINITY) }
}

/// 0 for the last `window` tokens, `fill` for those before and after.
#[op(f32, f16, bf16, exact)]
pub fn sliding_window<T: Real>(
    row: Index,
    column: Index,
    #[param(default = 4)] window: i64,
    #[param(default = -128.0)] fill: T,
) -> T {
    let back = i64::from(row) - i64::from(column);
    if back >= 0 && back < window { T::ZERO } else { fill }
}

/// A residual branch that a whole sample skips with probability `p` (stochastic depth).
#[op(f32, f16, bf16, ulp = 4)]
pub fn drop_path<T: Real>(
    residual: T,
    branch: T,
    #[each(sample)] bits: RandomWord,
    #[param(default = 0.1, probability)] p: T,
) -> T {
    residual + branch.dropout(p, bits)
}

/// Groups as e4m3, and the scale of each, as matrix products of fp8 take them.
#[op(f32, f16, bf16, ulp = 2, grad = none, row = 128, results(q: f8e4m3, scale: f32))]
pub fn group_quantised<T: Real>(x: T, row: Row<T>) -> (T, PerRow<T>) {
    let scale = (row.max(x.abs()) / T::constant(448.0)).maximum(T::constant(1e-12));
    (x / scale, PerRow(scale))
}

/// The inverse of [`group_quantised()`].
#[op(f32, bf16, exact, grad = none, row = 128)]
pub fn group_dequantised<T: Real>(#[stored(f8e4m3)] q: T, #[stored(f32)] scale: PerRow<T>, _row: Row<T>) -> T {
    q * scale.0
}

/// Each group by its root mean square, which the op returns, too.
#[op(f32, f16, bf16, ulp = 4, grad_ulp = 16, row = 32, results(y, rms))]
pub fn group_rms_norm<T: Real>(x: T, weight: T, row: Row<T>) -> (T, PerRow<T>) {
    let rms = (row.mean(x * x) + T::constant(1e-6)).sqrt();
    (x / rms * weight, PerRow(rms))
}
