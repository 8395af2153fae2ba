//! Ops of several element types: an operand with `#[stored(TYPE)]`, or a result with a type in `results(..)`, has that type,
//! whatever the op's is. The formula has its value in the type that it computes in.

use pointwise::prelude::*;

/// Whole numbers times a scale: `q` as a symmetric quantisation has it, `scale` of any shape that broadcasts. No operand
/// decides the result's type: a call that makes it has f32, unless it says another.
#[op(f32, f16, bf16, exact)]
pub fn dequantise<T: Real>(#[stored(i8)] q: T, #[stored(f32)] scale: T) -> T {
    q * scale
}

/// `x / scale` as the nearest whole number from -127 to 127.
#[op(f32, f16, bf16, ulp = 2, results(q: i8))]
pub fn quantise<T: Real>(x: T, #[stored(f32)] scale: T) -> T {
    (x / scale).round_ties_even().maximum(T::constant(-127.0)).minimum(T::constant(127.0))
}

/// Bytes of an image, `[N, C, H, W]`, as numbers: `scale` is one over the deviation of a channel.
#[op(f32, f16, bf16, ulp = 4)]
pub fn normalise_image<T: Real>(#[stored(u8)] x: T, #[channel] mean: T, #[channel] scale: T) -> T {
    (x / T::constant(255.0) - mean) * scale
}

/// A step of SGD with momentum: parameters and gradients of the op's type, the momentum in f32.
#[op(f32, f16, bf16, ulp = 4, grad = none, results(param, velocity: f32))]
pub fn sgd<T: Real>(
    param: T,
    grad: T,
    #[stored(f32)] velocity: T,
    #[param(default = 1e-2)] lr: T,
    #[param(default = 0.9)] momentum: T,
) -> (T, T) {
    let velocity = momentum.mul_add(velocity, grad);
    ((-lr).mul_add(velocity, param), velocity)
}

/// A norm whose weight is f32, beside activations of 16 bits.
#[op(f32, f16, bf16, ulp = 4, grad_ulp = 16)]
pub fn norm_by_f32<T: Real>(x: T, #[stored(f32)] weight: T, row: Row<T>) -> T {
    x * (row.mean(x * x) + T::constant(1e-6)).rsqrt() * weight
}

/// The element of each row that a label names; 0 where none has its number.
#[op(f32, f16, bf16, exact)]
pub fn picked<T: Real>(x: T, #[stored(i64)] label: PerRow<T>, row: Row<T>) -> PerRow<T> {
    PerRow(row.sum(if row.index() == label.0 { x } else { T::ZERO }))
}
