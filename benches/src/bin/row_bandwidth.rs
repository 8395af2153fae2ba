//! Ops on rows, beside a copy of the same bytes:
//! `row_bandwidth [--op NAME]... [--dtype TYPE]... [--len N]... [--backward] [--json FILE]`.
//!
//! Each op is timed on 2^27 elements in rows of 64 to 65,536, odd ones among them, and on 1, 16, 256 and 2,048 rows of 4,096. With
//! `--len` only rows of these lengths are timed, of 2^27 elements. Times are
//! medians of events around single launches, twice the level-2 cache written before each. Bytes are those of the
//! operands and results, each once.

use std::num::NonZeroUsize;

use benches::{median, random, times_after};
use pointwise::kernel::OpDef;
use pointwise::{DType, Device, Operand, Tensor, TensorViewMut, info};
use serde_json::json;

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// Elements of the large calls.
const LARGE: usize = 1 << 27;
/// The lengths of their rows.
const LENGTHS: [usize; 11] = [64, 256, 1000, 1024, 4096, 4097, 5120, 8192, 16_384, 32_768, 65_536];
/// The rows of small calls, of 4,096 elements each.
const FEW: [usize; 4] = [1, 16, 256, 2048];
/// The ops that are timed where none is named.
const OPS: [&str; 5] = ["rms_norm", "add_rms_norm", "layer_norm", "softmax", "sum"];

fn main() -> Outcome<()> {
    let (mut names, mut types, mut lengths, mut backward, mut file) = (Vec::new(), Vec::new(), Vec::new(), false, None);
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--op" => names.extend(arguments.next()),
            "--dtype" => types.extend(arguments.next()),
            "--len" => lengths.push(arguments.next().ok_or("--len needs a number")?.parse::<NonZeroUsize>()?.get()),
            "--backward" => backward = true,
            "--json" => file = arguments.next(),
            other => return Err(format!("unknown argument {other}").into()),
        }
    }
    if names.is_empty() {
        names = OPS.map(str::to_owned).to_vec();
    }
    let device = Device::cuda(0)?;
    let about = device.info().ok_or("no device information")?;
    println!("# {}, CUDA {}.{}, cold", about.name, about.driver.0, about.driver.1);
    let mut flush = Tensor::empty(&device, DType::U8, [2 * about.l2_bytes])?;
    let mut rows = Vec::new();
    for dtype in [DType::BF16, DType::F16, DType::F32] {
        if !types.is_empty() && !types.iter().any(|name| name == dtype.name()) {
            continue;
        }
        for name in &names {
            let forward = info::op(name).filter(|def| def.info.is_of_rows()).ok_or(format!("no op on rows: {name}"))?;
            let def = if backward { forward.backward.ok_or(format!("{name} has no gradient"))? } else { forward };
            let (large, few) = match &lengths[..] {
                [] => (&LENGTHS[..], &FEW[..]),
                asked => (asked, &[][..]),
            };
            let large = large.iter().map(|&len| [LARGE / len, len]);
            for shape in large.chain(few.iter().map(|&few| [few, 4096])) {
                rows.push(measure(&device, def, dtype, shape, &mut flush)?);
            }
        }
    }
    if let Some(file) = file {
        let all = json!({ "device": about.name, "rows": rows });
        pointwise_cli::draft::replace(file.as_ref(), serde_json::to_string_pretty(&all)?)?;
    }
    Ok(())
}

/// Times an op on a shape, and a copy of as many bytes.
fn measure(
    device: &Device,
    def: &'static OpDef,
    dtype: DType,
    [count, len]: [usize; 2],
    flush: &mut Tensor,
) -> Outcome<serde_json::Value> {
    let info = &def.info;
    let mut tensors = Vec::new();
    for k in 0..info.operands.len() {
        let shape = match () {
            () if info.is_row_operand(k) => vec![count],
            () if info.is_weight(k) => vec![len],
            () => vec![count, len],
        };
        tensors.push(random(device, info.operand_type(k, dtype), shape.iter().product())?.reshape(&*shape)?);
    }
    let operands: Vec<Operand<'_>> = tensors.iter().map(Operand::from).collect();
    let kernel = def.kernel(&[]);
    let mut results = kernel.run(&operands)?;
    let bytes: usize = tensors.iter().chain(&results).map(|tensor| tensor.numel() * tensor.dtype().size()).sum();
    let mut targets = results.iter_mut().map(Tensor::view_mut).collect::<pointwise::Result<Vec<_>>>()?;
    let views: Vec<_> = targets.iter().map(TensorViewMut::as_view).collect();
    let plan = kernel.plan(&operands, &views)?;
    let (source, mut target) = (random(device, DType::U8, bytes / 2)?, Tensor::empty(device, DType::U8, [bytes / 2])?);
    let repeats = if bytes > 1 << 26 { 21 } else { 41 };
    let op = median(times_after(device, repeats, || flush.set_zero(), || kernel.run_into(&operands, &mut targets))?);
    let copy = median(times_after(device, repeats, || flush.set_zero(), || target.copy_from(&source))?);
    let (op, copy) = (op * 1e3, copy * 1e3);
    let (class, rate) = (plan.row.map_or("", |row| row.name()), bytes as f64 / op / 1e3);
    println!(
        "{:22} {:4} {count:8} x {len:6} {class:8} {op:9.2} us  {rate:6.0} GB/s  {:.3} of the copy's {copy:.2} us",
        info.name,
        dtype,
        copy / op
    );
    Ok(json!({
        "op": info.name, "dtype": dtype.name(), "rows": count, "len": len, "class": class, "us": op, "copy_us": copy,
    }))
}
