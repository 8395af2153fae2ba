//! Chains of ops, each as one formula.

use pointwise::prelude::*;

/// The end of a transformer block: `scale (residual + dropout(gelu(x + bias) gate)) + shift`, and the sum before it is
/// scaled, which the next block adds to.
#[op(f32, f16, bf16, ulp = 256, grad_ulp = 256, results(y, sum))]
pub fn block_end<T: Real>(
    x: T,
    bias: T,
    gate: T,
    residual: T,
    scale: T,
    shift: T,
    bits: RandomWord,
    #[param(default = 0.1, probability)] p: T,
) -> (T, T) {
    let sum = residual + ((x + bias).gelu() * gate).dropout(p, bits);
    (sum.mul_add(scale, shift), sum)
}

/// `residual + dropout(silu(gate) value, p)`.
#[op(f32, f16, bf16, ulp = 4)]
pub fn silu_dropout_add<T: Real>(
    residual: T,
    gate: T,
    value: T,
    bits: RandomWord,
    #[param(default = 0.1, probability)] p: T,
) -> T {
    residual + (gate.silu() * value).dropout(p, bits)
}
