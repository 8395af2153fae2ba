//! The gradients of the ops of several operands, all in one pass.
//!
//! Operands are broadcast together, and every gradient has the shape they broadcast to: that of `grad` and of the op's
//! result. The gradient of an operand that was broadcast is the sum over the dimensions along which it was; that sum is
//! the caller's, as in PyTorch's autograd, where it follows the pointwise kernel. Ops whose gradients do not depend on
//! the operands' values take `grad` alone. Element types and special values are those of [`super::backward`].

crate::gradient_ops! { gradients_family; Gradients;
    /// `grad` and `alpha grad`.
    add_backward: AddBackward { alpha = 1.0 } (grad: Real) -> (grad_a, grad_b), [f32 f16 bf16], Exact => {
        [grad, grad * alpha]
    };
    /// `grad` and `-alpha grad`.
    sub_backward: SubBackward { alpha = 1.0 } (grad: Real) -> (grad_a, grad_b), [f32 f16 bf16], Exact => {
        [grad, -grad * alpha]
    };
    /// `grad b` and `grad a`.
    mul_backward: MulBackward (grad, a, b: Real) -> (grad_a, grad_b), [f32 f16 bf16], Exact => [grad * b, grad * a];
    /// `grad / b` and `-grad a / b / b`.
    div_backward: DivBackward (grad, a, b: Real) -> (grad_a, grad_b), [f32 f16 bf16], Exact => {
        [grad / b, -grad * (a / b / b)]
    };
    /// 0 and 0.
    div_trunc_backward: DivTruncBackward (grad: Real) -> (grad_a, grad_b), [f32 f16 bf16 constant], Exact => [T::ZERO, T::ZERO];
    /// 0 and 0.
    floor_divide_backward: FloorDivideBackward (grad: Real) -> (grad_a, grad_b), [f32 f16 bf16 constant], Exact => {
        [T::ZERO, T::ZERO]
    };
    /// `grad` and `-grad floor(a / b)`.
    remainder_backward: RemainderBackward (grad, a, b: Real) -> (grad_a, grad_b), [f32 f16 bf16 long], Exact => {
        [grad, -grad * a.floor_divide(b)]
    };
    /// `grad b a^(b - 1)`, 0 for `b = 0`; and `grad a^b ln(a)`, `grad * 0` for `a = 0` and `b >= 0`. In 16 bits
    /// exponents of magnitude 2^16 and more count as even.
    pow_backward: PowBackward (grad, a, b: Real) -> (grad_a, grad_b), [f32 f16 bf16 long few_registers], Ulp(6.0) => {
        let (base, exponent) = a.pow_gradients(b);
        [
            if b == T::ZERO { T::ZERO } else { grad * base },
            grad * exponent,
        ]
    };
    /// `grad` to the larger and 0 to the other, halves where they are equal; `grad` to both for NaN.
    maximum_backward: MaximumBackward (grad, a, b: Real) -> (grad_a, grad_b), [f32 f16 bf16], Exact => {
        let share = if a == b { grad * T::constant(0.5) } else { grad };
        [if a < b { T::ZERO } else { share }, if a > b { T::ZERO } else { share }]
    };
    /// `grad` to the smaller and 0 to the other, halves where they are equal; `grad` to both for NaN.
    minimum_backward: MinimumBackward (grad, a, b: Real) -> (grad_a, grad_b), [f32 f16 bf16], Exact => {
        let share = if a == b { grad * T::constant(0.5) } else { grad };
        [if a > b { T::ZERO } else { share }, if a < b { T::ZERO } else { share }]
    };
    /// `grad (1 - weight)`, `grad weight` and `grad (b - a)`.
    lerp_backward: LerpBackward (grad, a, b, weight: Real) -> (grad_a, grad_b, grad_weight), [f32 f16 bf16], Exact => {
        [grad * (T::ONE - weight), grad * weight, grad * (b - a)]
    };
    /// `grad` to x where `min <= x <= max`, to min where `x < min < max`, to max where `x > max` or `max < min`; else
    /// 0. For a bound that is left out there is `ops::clamp_backward`.
    clamp_tensor_backward: ClampTensorBackward (grad, x, min, max: Real) -> (grad_x, grad_min, grad_max), [f32 f16 bf16],
        Exact => {
            let below = (x < min) & (min < max);
            let above = (x > max) | (max < min);
            [
                if (x >= min) & (x <= max) { grad } else { T::ZERO },
                if below { grad } else { T::ZERO },
                if above { grad } else { T::ZERO },
            ]
        };
}
