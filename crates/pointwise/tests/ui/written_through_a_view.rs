//! A view is for reading.

use pointwise::{DType, Device, Tensor};

fn main() {
    let x = Tensor::zeros(&Device::cpu(), DType::F32, [4]).unwrap();
    x.view().as_mut_slice::<f32>().unwrap()[0] = 1.0;
}
