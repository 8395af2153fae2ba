//! A view does not outlive its tensor.

use pointwise::{DType, Device, Tensor};

fn main() {
    let view = {
        let x = Tensor::zeros(&Device::cpu(), DType::F32, [4]).unwrap();
        x.view()
    };
    println!("{:?}", view.shape());
}
