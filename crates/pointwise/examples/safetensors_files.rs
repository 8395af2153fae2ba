//! Tensors from a safetensors file, an op, and the result to another file.

use std::error::Error;

use pointwise::prelude::{Device, Tensor, ops};
use safetensors::{Dtype, SafeTensors, tensor::TensorView};

fn main() -> std::result::Result<(), Box<dyn Error>> {
    let folder = std::env::temp_dir();
    let (input, output) = (folder.join("pointwise-in.safetensors"), folder.join("pointwise-out.safetensors"));

    // A file to read.
    let numbers: Vec<u8> = [-1.0_f32, 0.0, 1.0, 2.0].iter().flat_map(|x| x.to_le_bytes()).collect();
    let x = TensorView::new(Dtype::F32, vec![2, 2], &numbers)?;
    std::fs::write(&input, safetensors::serialize([("x", x)], None)?)?;

    // Bytes go to the device as they are.
    let file = std::fs::read(&input)?;
    let x = SafeTensors::deserialize(&file)?.tensor("x")?;
    let device = Device::best()?;
    let on_device = Tensor::from_bytes(&device, "f32".parse()?, x.data(), x.shape())?;
    let y = ops::gelu(&on_device)?;

    let bytes = y.to_bytes()?;
    let y = TensorView::new(Dtype::F32, y.shape().to_vec(), &bytes)?;
    std::fs::write(&output, safetensors::serialize([("y", y)], None)?)?;
    println!("wrote {}", output.display());
    Ok(())
}
