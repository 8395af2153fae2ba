//! Ops on the buffers and the stream of the crate cudarc: `cargo run --example cudarc_buffers --features cudarc`.

use std::error::Error;

use cudarc::driver::CudaContext;
use pointwise::{interop, kernels};

fn main() -> Result<(), Box<dyn Error>> {
    if pointwise::Device::cuda_count() == 0 {
        println!("cudarc needs a GPU, and there is none here");
        return Ok(());
    }
    let context = CudaContext::new(0)?;
    let cu_stream = context.new_stream()?;
    let x = cu_stream.clone_htod(&[1.0_f32, -2.0, 3.0, -4.0])?;
    let mut y = cu_stream.alloc_zeros::<f32>(4)?;

    let stream = interop::cudarc::stream(&cu_stream)?;
    {
        // SAFETY: all work with the two is queued on `stream` before this block ends and drops them.
        let (x, mut y) = unsafe {
            (interop::cudarc::view(&x, &cu_stream, [2, 2])?, interop::cudarc::view_mut(&mut y, &cu_stream, [2, 2])?)
        };
        kernels::relu().on(&stream).run_into(x.view(), y.view_mut()?)?;
    }
    println!("relu = {:?}", cu_stream.clone_dtoh(&y)?);
    Ok(())
}
