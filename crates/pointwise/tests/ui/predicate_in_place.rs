//! The result of a predicate has another type than its operand.

mod ops {
    use pointwise::prelude::*;

    /// True if `x` is 1.
    #[op(f32, i32, exact)]
    pub fn is_one<T: Num>(x: T) -> bool {
        x == T::ONE
    }
}

fn main() {
    let device = pointwise::Device::cpu();
    let mut x = pointwise::Tensor::zeros(&device, pointwise::DType::F32, [4]).unwrap();
    ops::is_one(&x).unwrap();
    ops::is_one_inplace(&mut x).unwrap();
}
