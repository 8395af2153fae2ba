//! The gradients of the ops of several operands, all in one pass.
//!
//! Operands are broadcast together, and every gradient has the shape they broadcast to: that of `grad` and of the op's
//! result. The gradient of an operand that was broadcast is the sum over the dimensions along which it was; that sum is
//! the caller's, as in PyTorch's autograd, where it follows the pointwise kernel. Ops whose gradients do not depend on
//! the operands' values take `grad` alone. Element types and special values are those of [`super::backward`], and most
//! formulas are the op's own at dual numbers, as in that table.

use super::binary::*;
use super::derived::{of_three, of_two};
use super::ternary::ClampTensor;
use crate::dual::Dual;

pointwise_macros::table! { gradients_family Gradients;
    /// `grad` and `alpha grad`.
    add_backward: AddBackward { alpha = 1.0 } (grad: Real) -> (grad_a, grad_b), [f32 f16 bf16], Exact => {
        of_two(Add { alpha: Dual::constant(alpha) }, grad, T::ZERO, T::ZERO)
    };
    /// `grad` and `-alpha grad`.
    sub_backward: SubBackward { alpha = 1.0 } (grad: Real) -> (grad_a, grad_b), [f32 f16 bf16], Exact => {
        of_two(Sub { alpha: Dual::constant(alpha) }, grad, T::ZERO, T::ZERO)
    };
    /// `grad b` and `grad a`.
    mul_backward: MulBackward (grad, a, b: Real) -> (grad_a, grad_b), [f32 f16 bf16], Exact => of_two(Mul, grad, a, b);
    /// `grad / b` and `-grad a / b / b`.
    div_backward: DivBackward (grad, a, b: Real) -> (grad_a, grad_b), [f32 f16 bf16], Exact => of_two(Div, grad, a, b);
    /// 0 and 0.
    div_trunc_backward: DivTruncBackward (grad: Real) -> (grad_a, grad_b), [f32 f16 bf16 constant], Exact => {
        of_two(DivTrunc, grad, T::ONE, T::ONE)
    };
    /// 0 and 0.
    floor_divide_backward: FloorDivideBackward (grad: Real) -> (grad_a, grad_b), [f32 f16 bf16 constant], Exact => {
        of_two(FloorDivide, grad, T::ONE, T::ONE)
    };
    /// `grad` and `-grad floor(a / b)`.
    remainder_backward: RemainderBackward (grad, a, b: Real) -> (grad_a, grad_b), [f32 f16 bf16], Exact => {
        of_two(Remainder, grad, a, b)
    };
    /// `grad b a^(b - 1)`, 0 for `b = 0`; and `grad a^b ln(a)`, `grad * 0` for `a = 0` and `b >= 0`. In 16 bits
    /// exponents of magnitude 2^16 and more count as even.
    pow_backward: PowBackward (grad, a, b: Real) -> (grad_a, grad_b), [f32 f16 bf16 few_registers], Ulp(6.0) => {
        of_two(Pow, grad, a, b)
    };
    /// `grad` to the larger and 0 to the other, halves where they are equal; `grad` to both for NaN.
    maximum_backward: MaximumBackward (grad, a, b: Real) -> (grad_a, grad_b), [f32 f16 bf16], Exact => {
        of_two(Maximum, grad, a, b)
    };
    /// `grad` to the smaller and 0 to the other, halves where they are equal; `grad` to both for NaN.
    minimum_backward: MinimumBackward (grad, a, b: Real) -> (grad_a, grad_b), [f32 f16 bf16], Exact => {
        of_two(Minimum, grad, a, b)
    };
    /// `grad (1 - weight)`, `grad weight` and `grad (b - a)`.
    // By hand: each operand is in both branches of the formula, whose own gradients round more often.
    lerp_backward: LerpBackward (grad, a, b, weight: Real) -> (grad_a, grad_b, grad_weight), [f32 f16 bf16], Exact => {
        [grad * (T::ONE - weight), grad * weight, grad * (b - a)]
    };
    /// `grad` to x where `min <= x <= max`, to min where `x < min < max`, to max where `x > max` or `max < min`; else
    /// 0. For a bound that is left out there is `ops::clamp_backward`.
    clamp_tensor_backward: ClampTensorBackward (grad, x, min, max: Real) -> (grad_x, grad_min, grad_max), [f32 f16 bf16],
        Exact => of_three(ClampTensor, grad, x, min, max);
}
