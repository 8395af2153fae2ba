//! Calls that follow one another on the device, each on what the one before wrote: `chain [--dtype TYPE]`. Microseconds
//! from call to call of `neg`, between two tensors: in a stream, queued while the device is busy, and in a graph. The
//! kernels may be launched while those before them end; with `POINTWISE_DEPENDENT_LAUNCH=0` they are not.
//! `peers/chain.py` has PyTorch's.

use benches::{median, random, times_after};
use pointwise::{DType, Device, Stream, Tensor, kernels};

/// Calls of one stretch.
const CALLS: usize = 100;
/// Fills of twice the level-2 cache that keep the device busy until all calls are queued.
const FILLS: usize = 16;
const ROUNDS: usize = 15;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let named = std::env::args().skip_while(|argument| argument != "--dtype").nth(1);
    let dtype: DType = named.as_deref().unwrap_or("bf16").parse()?;
    let device = Device::cuda(0)?;
    let info = device.info().ok_or("no device information")?;
    println!("# {}, CUDA {}.{}: neg of {dtype}, microseconds a call", info.name, info.driver.0, info.driver.1);
    println!("{:>12} {:>9} {:>9}", "bytes of x", "stream", "graph");
    let mut flush = Tensor::empty(&device, DType::U8, [2 * info.l2_bytes])?;
    for bytes in [1 << 10, 1 << 14, 1 << 17, 1 << 20, 1 << 22, 1 << 23, 1 << 24, 1 << 25, 1 << 26] {
        let n = bytes / dtype.size();
        let mut x = random(&device, dtype, n)?;
        let mut y = Tensor::empty(&device, dtype, [n])?;
        let chain = |stream: &Stream, x: &mut Tensor, y: &mut Tensor| -> pointwise::Result<()> {
            let kernel = kernels::neg().on(stream);
            for _ in 0..CALLS / 2 {
                kernel.run_into(&*x, &mut *y)?;
                kernel.run_into(&*y, &mut *x)?;
            }
            Ok(())
        };
        let own = device.stream();
        chain(&own, &mut x, &mut y)?;
        let fill = || (0..FILLS).try_for_each(|_| flush.set_zero());
        let in_a_stream = median(times_after(&device, ROUNDS, fill, || chain(&own, &mut x, &mut y))?);

        let stream = Stream::new(&device)?;
        let mut graph = stream.capture(|stream| chain(stream, &mut x, &mut y))?;
        let replay = || graph.launch(&own);
        let in_a_graph = median(times_after(&device, ROUNDS, || Ok(()), replay)?);
        device.synchronize()?;
        let per_call = |milliseconds: f64| milliseconds * 1e3 / CALLS as f64;
        println!("{bytes:12} {:9.2} {:9.2}", per_call(in_a_stream), per_call(in_a_graph));
    }
    Ok(())
}
