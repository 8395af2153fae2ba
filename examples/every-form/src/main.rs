//! One call of each form.

use every_form::ops::{self, ComplexProducts};
use pointwise::prelude::*;

fn main() -> pointwise::Result<()> {
    let device = Device::best()?;
    println!("on {device}");
    let x = Tensor::from_slice(&device, &[1.0_f32, -1.0, 3.0, 4.0], [1, 4])?;
    println!("gated:      {:?}", ops::swish_gate(&x, None)?.to_vec::<f32>()?);
    let scale = Tensor::from_slice(&device, &[1.0_f32, 10.0, 100.0, 1000.0], [4])?;
    println!("channels:   {:?}", ops::affine(&x, &scale, 0.5)?.to_vec::<f32>()?);
    let mask = ops::sliding_window(&device, DType::F32, [3, 3], 2, -1.0)?;
    for row in mask.to_vec::<f32>()?.chunks(3) {
        println!("indices:    {row:?}");
    }
    println!("functions:  {:?}", ops::leaky_gate(&x, 1.5, None)?.to_vec::<f32>()?);
    println!("by hand:    {:?}", ops::squared_relu(&x, 0.5)?.to_vec::<f32>()?);
    let keep = Tensor::from_slice(&device, &[true, false, true, false], [1, 4])?;
    println!("condition:  {:?}", ops::keep_where(&x, 0.0, &keep)?.0.to_vec::<f32>()?);
    // (1 + 2i) (3 + 4i) and (x + i) (1 - i)
    let one = Tensor::from_slice(&device, &[1.0_f32], [1])?;
    let operands: [Operand<'_>; 8] =
        [(&one).into(), 2.0.into(), 3.0.into(), 4.0.into(), (&x).into(), 1.0.into(), 1.0.into(), (-1.0).into()];
    for result in ComplexProducts.kernel().run(&operands)? {
        println!("4 results:  {:?}", result.to_vec::<f32>()?);
    }
    Ok(())
}
