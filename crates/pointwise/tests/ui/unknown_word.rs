//! A word of a row that means nothing: no property that the op would then lack without a message.

pointwise_core::unary_ops! { my_ops;
    /// `x^3`.
    cube: Cube (x: Num) -> T, [floats two_at_onec], Exact => x * x * x;
}

fn main() {}
