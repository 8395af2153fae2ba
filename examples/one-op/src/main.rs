//! Runs the op on the GPU, or on the CPU where there is none.

use one_op::ops;
use pointwise::prelude::*;

fn main() -> pointwise::Result<()> {
    let device = Device::best()?;
    let mut x = Tensor::from_slice(&device, &[-7.5_f32, -1.0, 0.0, 0.5, 3.0], [5])?;
    println!("snake on {device}: {:?}", ops::snake(&x, 0.5)?.to_vec::<f32>()?);
    let slope = ops::snake_backward(1.0, &x, 0.5)?;
    println!("its slope: {:?}", slope.to_vec::<f32>()?);
    ops::snake_inplace(&mut x, 0.5)?;
    Ok(())
}
