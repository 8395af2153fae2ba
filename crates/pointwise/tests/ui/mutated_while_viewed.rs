//! A view borrows its tensor.

use pointwise::{DType, Device, Tensor, ops};

fn main() {
    let mut x = Tensor::zeros(&Device::cpu(), DType::F32, [4]).unwrap();
    let view = x.view();
    ops::relu_inplace(&mut x).unwrap();
    println!("{:?}", view.shape());
}
