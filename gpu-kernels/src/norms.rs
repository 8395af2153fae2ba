//! Norms: each row, the last dimension, divided by a measure of its size.
//!
//! Statistics are in f32 whatever the element type is. A variance is that of the distances from the mean, so that a large mean
//! does not cancel it. The gradients of `weight` and `bias` are sums over the rows where these are one row.

use pointwise::__family::*;

/// `x / sqrt(mean(x^2) + eps) * (weight + offset)`. Gemma's norms have an offset of 1. With `rounded` the quotient is rounded to the
/// element type before the weight, as in Llama's. Source: `torch.nn.functional.rms_norm`.
#[op(f32, f16, bf16, ulp = 4, grad_ulp = 16, __hints(few_registers))]
pub fn rms_norm<T: Real>(
    x: T,
    #[weight] weight: T,
    row: Row<T>,
    #[param(default = 1e-6)] eps: T,
    #[param(default = 0.0)] offset: T,
    #[param(default = false)] rounded: bool,
) -> T {
    let y = x * (row.mean(x * x) + eps).rsqrt();
    let stored = row.stored(y);
    let y = if rounded { stored } else { y };
    y * (weight + offset)
}

/// [`rms_norm()`] of `x + residual`, which is rounded to the element type first, and that sum. Source: the layers of
/// `transformers`.
#[op(f32, f16, bf16, ulp = 4, grad_ulp = 16, results(y, sum), through(sum = x + residual))]
pub fn add_rms_norm<T: Real>(
    x: T,
    residual: T,
    #[weight] weight: T,
    row: Row<T>,
    #[param(default = 1e-6)] eps: T,
    #[param(default = 0.0)] offset: T,
    #[param(default = false)] rounded: bool,
) -> (T, T) {
    let sum = row.stored(x + residual);
    let y = sum * (row.mean(sum * sum) + eps).rsqrt();
    let stored = row.stored(y);
    let y = if rounded { stored } else { y };
    (y * (weight + offset), sum)
}

/// `(x - mean(x)) / sqrt(var(x) + eps) * weight + bias`, by the biased variance. Source: `torch.nn.functional.layer_norm`.
#[op(f32, f16, bf16, ulp = 8, grad_ulp = 16, __hints(few_registers), saves(x, weight, bias, eps))]
pub fn layer_norm<T: Real>(
    x: T,
    #[weight] weight: T,
    #[weight] bias: T,
    row: Row<T>,
    #[param(default = 1e-5)] eps: T,
) -> T {
    let (var, mean) = row.var_mean(x);
    ((x - mean) * (var + eps).rsqrt()).mul_add(weight, bias)
}

/// [`layer_norm()`] of `x + residual`, which is rounded to the element type first, and that sum.
#[op(
    f32,
    f16,
    bf16,
    ulp = 8,
    grad_ulp = 16,
    __hints(few_registers),
    saves(weight, bias, eps),
    results(y, sum),
    through(sum = x + residual)
)]
pub fn add_layer_norm<T: Real>(
    x: T,
    residual: T,
    #[weight] weight: T,
    #[weight] bias: T,
    row: Row<T>,
    #[param(default = 1e-5)] eps: T,
) -> (T, T) {
    let sum = row.stored(x + residual);
    let (var, mean) = row.var_mean(sum);
    (((sum - mean) * (var + eps).rsqrt()).mul_add(weight, bias), sum)
}

/// `x / max(sqrt(sum(x^2)), eps)`. Source: `torch.nn.functional.normalize` with `p=2` and `dim=-1`.
#[op(f32, f16, bf16, ulp = 4, grad_ulp = 16)]
pub fn l2_normalize<T: Real>(x: T, row: Row<T>, #[param(default = 1e-12)] eps: T) -> T {
    x * (T::ONE / row.sum(x * x).sqrt().maximum(eps))
}
