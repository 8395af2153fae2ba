//! The gradients of [`super::gated`]: `(grad, x) -> y`, for `grad` of shape `(.., N)` and `x` and `y` of shape
//! `(.., 2N)`, both halves in one pass.

use super::derivatives;

crate::gradient_ops! { gated_gradients_family; GatedGradients;
    /// `grad value silu'(gate)` and `grad silu(gate)`.
    silu_and_mul_backward: SiluAndMulBackward (grad, gate, value: Real) -> (grad_gate, grad_value), [f32 f16 bf16],
        Cancels(6.0) => {
            let (activation, slope) = derivatives::silu(gate);
            [grad * value * slope, grad * activation]
        };
    /// `grad value gelu'(gate)` and `grad gelu(gate)`, by the error function.
    gelu_and_mul_backward: GeluAndMulBackward (grad, gate, value: Real) -> (grad_gate, grad_value), [f32 f16 bf16],
        Cancels(6.0) => {
            let (activation, slope) = derivatives::gelu(gate);
            [grad * value * slope, grad * activation]
        };
    /// `grad value gelu'(gate)` and `grad gelu(gate)` with `approximate='tanh'`.
    gelu_tanh_and_mul_backward: GeluTanhAndMulBackward (grad, gate, value: Real) -> (grad_gate, grad_value),
        [f32 f16 bf16], Cancels(6.0) => {
            let (activation, slope) = derivatives::gelu_tanh(gate);
            [grad * value * slope, grad * activation]
        };
}
