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

/// The 16 numbers of NF4. Source: Dettmers et al., "QLoRA", 2023 (arXiv 2305.14314), appendix E.
pub const NF4: [f64; 16] = [
    -1.0,
    -0.696_192_800_998_687_7,
    -0.525_073_051_452_636_7,
    -0.394_917_488_098_144_53,
    -0.284_441_381_692_886_35,
    -0.184_773_430_228_233_34,
    -0.091_050_036_251_544_95,
    0.0,
    0.079_580_299_556_255_34,
    0.160_930_201_411_247_25,
    0.246_112_301_945_686_34,
    0.337_915_241_718_292_24,
    0.440_709_829_330_444_34,
    0.562_617_003_917_694_1,
    0.722_956_836_223_602_3,
    1.0,
];

/// Two codes of NF4 a byte, the first in the upper half, and the scale of a block.
#[op(f32, f16, bf16, exact, results(first, second))]
pub fn dequantise_nf4<T: Real>(#[stored(u8)] codes: T, #[stored(f32)] scale: T) -> (T, T) {
    let upper = (codes * T::constant(1.0 / 16.0)).floor();
    let lower = codes - upper * T::constant(16.0);
    (upper.entry_of(NF4) * scale, lower.entry_of(NF4) * scale)
}

/// The 16 numbers of FP4 (E2M1), by code. Source: OCP Microscaling Formats (MX) Specification 1.0, 2023.
pub const FP4: [f64; 16] = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, -0.0, -0.5, -1.0, -1.5, -2.0, -3.0, -4.0, -6.0];

/// Two codes of FP4 a byte, the first in the lower half, and the scale of a block.
#[op(f32, f16, bf16, exact, results(first, second))]
pub fn dequantise_fp4<T: Real>(#[stored(u8)] codes: T, #[stored(f32)] scale: T) -> (T, T) {
    let upper = (codes * T::constant(1.0 / 16.0)).floor();
    let lower = codes - upper * T::constant(16.0);
    (lower.entry_of(FP4) * scale, upper.entry_of(FP4) * scale)
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
