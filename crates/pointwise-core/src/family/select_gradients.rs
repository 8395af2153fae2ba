//! The gradients of [`super::select`], as those of [`super::gradients`].

use super::derived::of_choice;
use super::select::Where;

pointwise_macros::table! { select_gradients_family SelectGradients;
    /// `condition ? grad : 0` and `condition ? 0 : grad`.
    where_backward: WhereBackward (condition, grad: Real) -> (grad_a, grad_b), [f32 f16 bf16], Exact => {
        of_choice(Where, condition, grad)
    };
}
