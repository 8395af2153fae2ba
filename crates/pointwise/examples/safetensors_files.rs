//! Tensors from a safetensors file, an op, and the result to another file.

use std::error::Error;
use std::fs;

use pointwise::prelude::{Device, Tensor, ops};
use safetensors::{SafeTensors, serialize};

fn main() -> std::result::Result<(), Box<dyn Error>> {
    let folder = std::env::temp_dir();
    let (input, output) = (folder.join("pointwise-in.safetensors"), folder.join("pointwise-out.safetensors"));

    // A file to read.
    let x = Tensor::from_slice(&Device::cpu(), &[-1.0_f32, 0.0, 1.0, 2.0], [2, 2])?;
    fs::write(&input, serialize([("x", x.to_safetensors()?)], None)?)?;

    let device = Device::best()?;
    let file = fs::read(&input)?;
    let x = Tensor::from_safetensors(&device, &SafeTensors::deserialize(&file)?.tensor("x")?)?;
    let y = ops::gelu(&x)?;

    fs::write(&output, serialize([("y", y.to_safetensors()?)], None)?)?;
    println!("wrote {}", output.display());
    Ok(())
}
