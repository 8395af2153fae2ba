//! Activations of one half of the last dimension times the other: `(.., 2N) -> (.., N)`, the gate first.

use pointwise::__family::*;

/// `silu(gate) * value`: SwiGLU (Shazeer 2020).
#[op(
    floats,
    ulp = 4,
    gated,
    __pairs(f8e5m2 = 26),
    grad_ulp = 6,
    grad = silu_and_mul_gradient,
    grad_doc = "`grad value silu'(gate)` and `grad silu(gate)`.",
)]
pub fn silu_and_mul<T: Real>(gate: T, value: T) -> T {
    gate.silu() * value
}

/// Returns the gradient of [`silu_and_mul()`].
#[inline(always)]
fn silu_and_mul_gradient<T: Real>(grad: T, gate: T, value: T) -> (T, T) {
    let (activation, slope) = activations::silu(gate);
    (grad * value * slope, grad * activation)
}

/// `gelu(gate) * value`, by the error function: GEGLU (Shazeer 2020).
#[op(
    floats,
    ulp = 4,
    gated,
    __pairs(f8e4m3 = 24, f8e5m2 = 22),
    grad_ulp = 6,
    grad = gelu_and_mul_gradient,
    grad_doc = "`grad value gelu'(gate)` and `grad gelu(gate)`, by the error function.",
)]
pub fn gelu_and_mul<T: Real>(gate: T, value: T) -> T {
    gate.gelu() * value
}

/// Returns the gradient of [`gelu_and_mul()`].
#[inline(always)]
fn gelu_and_mul_gradient<T: Real>(grad: T, gate: T, value: T) -> (T, T) {
    let (activation, slope) = activations::gelu(gate);
    (grad * value * slope, grad * activation)
}

/// `gelu(gate, approximate='tanh') * value`.
#[op(
    floats,
    ulp = 4,
    gated,
    __pairs(f8e5m2 = 25),
    grad_ulp = 6,
    grad = gelu_tanh_and_mul_gradient,
    grad_doc = "`grad value gelu'(gate)` and `grad gelu(gate)` with `approximate='tanh'`.",
)]
pub fn gelu_tanh_and_mul<T: Real>(gate: T, value: T) -> T {
    gate.gelu_tanh() * value
}

/// Returns the gradient of [`gelu_tanh_and_mul()`].
#[inline(always)]
fn gelu_tanh_and_mul_gradient<T: Real>(grad: T, gate: T, value: T) -> (T, T) {
    let (activation, slope) = activations::gelu_tanh(gate);
    (grad * value * slope, grad * activation)
}
