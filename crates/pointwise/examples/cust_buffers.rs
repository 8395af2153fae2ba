//! Ops on the buffers and the stream of the crate cust: `cargo run --example cust_buffers --features cust`. cust links
//! `libcuda`: a CUDA toolkit must be there to build this, and a driver to start it.

use std::error::Error;
use std::sync::Arc;

use cust::context::CurrentContext;
use cust::prelude::{CopyDestination as _, DeviceBuffer, Stream, StreamFlags};
use pointwise::{Device, interop, kernels};

fn main() -> Result<(), Box<dyn Error>> {
    let _context = cust::quick_init()?;
    let device = Device::cuda(0)?;
    let cu_stream = Arc::new(Stream::new(StreamFlags::NON_BLOCKING, None)?);
    let x = DeviceBuffer::from_slice(&[1.0_f32, -2.0, 3.0, -4.0])?;
    let mut y = DeviceBuffer::<f32>::zeroed(4)?;
    // cust's copies run on the default stream, which this stream does not wait for.
    CurrentContext::synchronize()?;

    let stream = interop::cust::stream(&device, &cu_stream)?;
    {
        // SAFETY: the buffers are written; all work with the views is queued on `stream`, and waited for below.
        let (x, y) =
            unsafe { (interop::cust::view(&device, &x, [2, 2])?, interop::cust::view_mut(&device, &mut y, [2, 2])?) };
        kernels::relu().on(&stream).run_into(x, y)?;
        stream.synchronize()?;
    }
    let mut result = [0.0_f32; 4];
    y.copy_to(&mut result)?;
    println!("relu = {result:?}");
    Ok(())
}
