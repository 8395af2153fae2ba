//! Runs the ops on the CPU, and on the GPU if there is one and kernels for it are built.

use custom_op::{KERNELS, ops};
use pointwise::{Device, Number, Tensor, bf16};

fn main() -> pointwise::Result<()> {
    let mut devices = vec![Device::cpu()];
    match Device::best_for(&KERNELS)? {
        device if device.is_cuda() => devices.push(device),
        _ => println!("no GPU, or no kernels for it ({})", KERNELS.note()),
    }
    for device in devices {
        let x = Tensor::from_slice(&device, &[-7.5_f32, -1.0, 0.0, 0.5, 3.0], [5])?;
        println!("{device}");
        println!("  squared_relu  {:?}", ops::squared_relu(&x)?.to_vec::<f32>()?);
        println!("  snake(0.5)    {:?}", ops::snake(&x, 0.5)?.to_vec::<f32>()?);
        println!("  is_outlier    {:?}", ops::is_outlier(&x, Number::Default)?.to_vec::<bool>()?);

        let mut h = Tensor::from_slice(&device, &[bf16::from_f32(1.5), bf16::from_f32(-2.0)], [2])?;
        ops::snake_inplace(&mut h, Number::Default)?;
        println!("  snake, bf16   {:?}", h.to_vec::<bf16>()?);
    }
    Ok(())
}
