//! A clone of a tensor that a view writes would read what is being written.

use pointwise::{Device, Result, Tensor, ops};

fn main() -> Result<()> {
    let mut x = Tensor::from_slice(&Device::cpu(), &[-1.0_f32, 2.0], [2])?;
    let view = x.view_mut()?;
    let clone = x.clone();
    ops::relu_inplace(view)?;
    println!("{clone}");
    Ok(())
}
