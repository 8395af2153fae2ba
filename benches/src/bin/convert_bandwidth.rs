//! Every conversion between element types on large tensors, beside a device-to-device copy:
//! `convert_bandwidth [--n ELEMENTS] [--from TYPE]`.
//!
//! Times are medians of events around single launches; the tensors are too large for the cache. A conversion's share is
//! its bytes per second, read and written, over the bytes per second of a copy of the operand, timed before it.

use benches::{median, random, times};
use pointwise::{DType, Device, Tensor, kernels};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (mut n, mut from): (usize, Option<DType>) = (1 << 28, None);
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--n" => n = arguments.next().ok_or("--n needs a number")?.parse()?,
            "--from" => from = Some(arguments.next().ok_or("--from needs an element type")?.parse()?),
            other => return Err(format!("unknown argument {other}").into()),
        }
    }
    let device = Device::cuda(0)?;
    let info = device.info().ok_or("no device information")?;
    println!("# {}, CUDA {}.{}, {n} elements, cold", info.name, info.driver.0, info.driver.1);
    let kernel = kernels::to_dtype();
    for source in DType::ALL.into_iter().filter(|dtype| from.is_none_or(|from| from == *dtype)) {
        let x = kernel.run(&random(&device, DType::F32, n)?, source)?;
        let mut target = Tensor::empty(&device, source, [n])?;
        let copy = median(times(&device, 1, 9, || target.copy_from(&x))?);
        let copied = (2 * n * source.size()) as f64 / copy / 1e6;
        drop(target);
        for result in DType::ALL {
            let mut y = Tensor::empty(&device, result, [n])?;
            let ms = median(times(&device, 2, 9, || kernel.run_into(&x, &mut y))?);
            let moved = (n * (source.size() + result.size())) as f64 / ms / 1e6;
            println!(
                "{source:7} {result:7} {ms:8.4} ms  {moved:7.1} GB/s  {:.3} of the copy's {copied:.1} GB/s",
                moved / copied
            );
        }
    }
    Ok(())
}
