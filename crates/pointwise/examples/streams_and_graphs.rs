//! Work on two streams, and a CUDA graph that launches a chain of ops at once.

use pointwise::prelude::*;

const N: usize = 1 << 20;

fn main() -> Result<()> {
    let device = Device::best()?;
    if device.is_cpu() {
        println!("streams and graphs need a GPU, and there is none here");
        return Ok(());
    }
    let x = Tensor::full(&device, 0.5_f32, [N])?;

    // Two streams: the program orders their work. Each waits by itself for the device's own stream, which fills `x`.
    let (first, second) = (Stream::new(&device)?, Stream::new(&device)?);
    let a = kernels::exp().on(&first).run(&x)?;
    second.wait_for(&first)?; // on the device: the host goes on
    let b = kernels::log().on(&second).run(&a)?;
    println!("log(exp(0.5)) = {}", b.narrow(0, 0, 1)?.item::<f32>()?);

    // A graph: what is launched in the closure is recorded, and runs with each launch. The graph keeps its memory.
    let mut input = x.copy()?;
    let mut y = Tensor::zeros(&device, DType::F32, [N])?;
    let mut graph = first.capture(|stream| {
        kernels::silu().on(stream).run_into(&input, &mut y)?;
        kernels::tanh().on(stream).run_inplace(&mut y)
    })?;
    for value in [0.0_f32, 1.0, 2.0] {
        input.copy_from_slice(&vec![value; N])?;
        graph.launch(&first)?;
        println!("tanh(silu({value})) = {}", y.narrow(0, 0, 1)?.item::<f32>()?);
    }
    Ok(())
}
