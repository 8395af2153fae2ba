//! The first call of an op in a new process, once the context exists: `first_call [OP] [DTYPE] [ELEMENTS]`. Few
//! elements are done one by one, which is a shorter kernel. Run it with `CUDA_CACHE_DISABLE=1` for an empty PTX cache.

use std::time::Instant;

use benches::random;
use pointwise::{DType, Device, Tensor};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let name = arguments.next().unwrap_or_else(|| "gelu".to_owned());
    let dtype: DType = arguments.next().as_deref().unwrap_or("bf16").parse()?;
    let n: usize = arguments.next().map_or(Ok(1 << 20), |n| n.parse())?;
    let def = pointwise::info::op(&name).ok_or("unknown op")?;
    let device = Device::cuda(0)?;
    let x = random(&device, dtype, n)?;
    let mut y = Tensor::empty(&device, def.info.result_type(0, dtype), [n])?;
    device.synchronize()?;
    let mut times = Vec::new();
    for _ in 0..3 {
        let start = Instant::now();
        def.unary_with(&[]).run_into(&x, &mut y)?;
        device.synchronize()?;
        times.push(start.elapsed().as_secs_f64() * 1e3);
    }
    println!(
        "{name} {dtype}, {n} elements: first call {:.3} ms, then {:.3} and {:.3} ms",
        times[0], times[1], times[2]
    );
    Ok(())
}
