//! An op that is trained through: its gradient is derived from the formula.

use pointwise::prelude::*;

/// A gated unit whose slope and bias are learned: `silu(slope (x + bias)) gate + skip`.
///
/// `learned_unit_backward` gives the gradients of all five operands in one kernel.
#[op(f32, f16, bf16, ulp = 256, grad_ulp = 256)]
pub fn learned_unit<T: Real>(x: T, bias: T, slope: T, gate: T, skip: T) -> T {
    (slope * (x + bias)).silu() * gate + skip
}
