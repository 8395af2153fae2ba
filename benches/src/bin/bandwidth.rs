//! Every unary op on large tensors, beside a device-to-device copy of the same bytes:
//! `bandwidth [--n ELEMENTS] [--strategies] [--op NAME]... [--dtype TYPE]... [--json FILE]`, with `--strategies` by every
//! strategy there is.
//!
//! Times are medians of events around single launches, twice the level-2 cache written before each. The copy is timed
//! before and after each op; an op's share is its bytes per second over the copy's.

use benches::{median, random, times_after};
use pointwise::{DType, Device, Strategy, Tensor, info};
use serde_json::json;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (mut n, mut strategies, mut file) = (1_usize << 28, false, None);
    let (mut names, mut types): (Vec<String>, Vec<String>) = Default::default();
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--n" => n = arguments.next().ok_or("--n needs a number")?.parse()?,
            "--strategies" => strategies = true,
            "--op" => names.extend(arguments.next()),
            "--dtype" => types.extend(arguments.next()),
            "--json" => file = arguments.next(),
            other => return Err(format!("unknown argument {other}").into()),
        }
    }
    let device = Device::cuda(0)?;
    let info = device.info().ok_or("no device information")?;
    println!("# {}, CUDA {}.{}, {n} elements, cold", info.name, info.driver.0, info.driver.1);
    let mut flush = Tensor::empty(&device, DType::U8, [2 * info.l2_bytes])?;
    let mut rows = Vec::new();
    for dtype in [DType::F32, DType::F16, DType::BF16, DType::F8E4M3, DType::F8E5M2] {
        if !types.is_empty() && !types.iter().any(|name| name == dtype.name()) {
            continue;
        }
        let x = random(&device, dtype, n)?;
        let mut y = Tensor::empty(&device, dtype, [n])?;
        let mut bools = Tensor::empty(&device, DType::Bool, [n])?;
        for def in info::all().filter(|def| def.info.is_unary() && def.info.supports(dtype)) {
            if !names.is_empty() && !names.iter().any(|name| name == def.info.name) {
                continue;
            }
            let wanted: Vec<Strategy> = if strategies {
                Strategy::ALL.into_iter().filter(|s| s.serves(&def.info, dtype)).collect()
            } else {
                vec![Strategy::Auto]
            };
            for strategy in wanted {
                let result = def.info.result_type(0, dtype);
                let out = if result == dtype { &mut y } else { &mut bools };
                let kernel = def.unary_with(&[]).strategy(strategy);
                kernel.run_into(&x, &mut *out)?;
                let before = copy(&device, &x, &mut flush)?;
                let op = median(times_after(&device, 21, || flush.set_zero(), || kernel.run_into(&x, &mut *out))?);
                let after = copy(&device, &x, &mut flush)?;
                let copied = (2 * n * dtype.size()) as f64 / ((before + after) / 2.0) / 1e6;
                let moved = (n * (dtype.size() + result.size())) as f64 / op / 1e6;
                let ran = kernel.plan(&x, &*out)?.strategy;
                println!(
                    "{:14} {:7} {:18} {op:8.4} ms  {moved:7.1} GB/s  {:.3} of the copy's {copied:.1} GB/s",
                    def.info.name,
                    dtype,
                    ran.name(),
                    moved / copied
                );
                rows.push(json!({
                    "op": def.info.name, "dtype": dtype.name(), "strategy": ran.name(), "ms": op,
                    "gb_per_s": moved, "copy_gb_per_s": copied, "share": moved / copied,
                }));
            }
        }
    }
    if let Some(file) = file {
        let all = json!({ "device": info.name, "n": n, "rows": rows });
        pointwise_cli::draft::replace(file.as_ref(), serde_json::to_string_pretty(&all)?)?;
    }
    Ok(())
}

/// Milliseconds of a copy of `x`.
fn copy(device: &Device, x: &Tensor, flush: &mut Tensor) -> pointwise::Result<f64> {
    let mut target = Tensor::empty(device, x.dtype(), x.shape())?;
    target.copy_from(x)?;
    Ok(median(times_after(device, 11, || flush.set_zero(), || target.copy_from(x))?))
}
