//! The gradients of [`super::gated`]: `(grad, x) -> y`, for `grad` of shape `(.., N)` and `x` and `y` of shape
//! `(.., 2N)`, both halves in one pass.
//!
//! By hand: of a tiny `grad`, the formulas' own gradients lose digits in the product with the slope, which comes first.

use crate::dual::activations;

pointwise_macros::table! { gated_gradients_family GatedGradients;
    /// `grad value silu'(gate)` and `grad silu(gate)`.
    silu_and_mul_backward: SiluAndMulBackward (grad, gate, value: Real) -> (grad_gate, grad_value), [f32 f16 bf16],
        Cancels(6.0) => {
            let (activation, slope) = activations::silu(gate);
            [grad * value * slope, grad * activation]
        };
    /// `grad value gelu'(gate)` and `grad gelu(gate)`, by the error function.
    gelu_and_mul_backward: GeluAndMulBackward (grad, gate, value: Real) -> (grad_gate, grad_value), [f32 f16 bf16],
        Cancels(6.0) => {
            let (activation, slope) = activations::gelu(gate);
            [grad * value * slope, grad * activation]
        };
    /// `grad value gelu'(gate)` and `grad gelu(gate)` with `approximate='tanh'`.
    gelu_tanh_and_mul_backward: GeluTanhAndMulBackward (grad, gate, value: Real) -> (grad_gate, grad_value),
        [f32 f16 bf16], Cancels(6.0) => {
            let (activation, slope) = activations::gelu_tanh(gate);
            [grad * value * slope, grad * activation]
        };
}
