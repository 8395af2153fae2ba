//! A formula of the reals in a row with an integer type.

static KERNELS: pointwise::embed::Kernels = pointwise::embed::Kernels::empty("none are needed");

pointwise_core::unary_ops! { my_ops;
    /// `2^x`.
    exp2: Exp2 (x: Real) -> T, [i32], Ulp(1.0) => (x * T::constant(core::f64::consts::LN_2)).exp();
}
my_ops!(pointwise::host_unary);

fn main() {}
