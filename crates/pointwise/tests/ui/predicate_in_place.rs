//! The result of a predicate has another type than its operand.

static KERNELS: pointwise::embed::Kernels = pointwise::embed::Kernels::empty("none are needed");

pointwise_core::unary_ops! { my_ops;
    /// Whether `x` is 1.
    is_one: IsOne (x: Num) -> bool, [f32 i32], Exact => x == T::ONE;
}
my_ops!(pointwise::host_unary);

fn main() {
    let device = pointwise::Device::cpu();
    let mut x = pointwise::Tensor::zeros(&device, pointwise::DType::F32, [4]).unwrap();
    ops::is_one(&x).unwrap();
    ops::is_one_inplace(&mut x).unwrap();
}
