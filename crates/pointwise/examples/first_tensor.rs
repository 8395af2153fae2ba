//! A tensor, an op on it, and the result back on the host.

use pointwise::prelude::*;

fn main() -> Result<()> {
    let device = Device::best()?; // the first GPU if it can be used, otherwise the CPU
    println!("device: {device}");

    let x = Tensor::from_slice(&device, &[-2.0_f32, -1.0, 0.0, 1.0, 2.0, 3.0], [2, 3])?;
    let y = ops::silu(&x)?; // allocates its result
    println!("silu(x) = {y}");

    let mut z = Tensor::empty(&device, DType::F32, [2, 3])?;
    ops::gelu_into(&x, &mut z)?; // writes to a tensor that is there
    ops::relu_inplace(&mut z)?; // writes to its operand
    println!("relu(gelu(x)) = {z}");

    // Views have other shapes and strides, and no copy.
    println!("the second column, doubled = {}", ops::mul(x.select(1, 1)?, 2.0)?);
    println!("as numbers of the host: {:?}", y.to_vec::<f32>()?);

    // Bad input is an error that says what is wrong.
    let short = Tensor::zeros(&device, DType::F32, [4])?;
    println!("x + short: {}", ops::add(&x, &short).unwrap_err());
    Ok(())
}
