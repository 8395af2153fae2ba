//! The gradients of [`super::select`], as those of [`super::gradients`].

crate::gradient_ops! { select_gradients_family; SelectGradients;
    /// `condition ? grad : 0` and `condition ? 0 : grad`.
    where_backward: WhereBackward (condition, grad: Real) -> (grad_a, grad_b), [f32 f16 bf16], Exact => {
        if condition.0 { [grad, T::ZERO] } else { [T::ZERO, grad] }
    };
}
