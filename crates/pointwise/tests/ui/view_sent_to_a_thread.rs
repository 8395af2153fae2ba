//! A view goes to a thread of a scope, not to one that may outlive its tensor.

use pointwise::{DType, Device, Tensor, ops};

fn main() {
    let x = Tensor::zeros(&Device::cpu(), DType::F32, [4]).unwrap();
    let view = x.view();
    std::thread::scope(|scope| scope.spawn(|| ops::relu(&view)).join()).unwrap().unwrap();
    detach(move || drop(ops::relu(view)));
}

fn detach(work: impl FnOnce() + Send + 'static) {
    std::thread::spawn(work);
}
