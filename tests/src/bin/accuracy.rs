//! The accuracy table: every unary float op over all 2^32 f32 inputs, all 65,536 of f16 and bf16, all 256 of fp8, against
//! f64. `accuracy [--device D] [--op NAME]... [--sample]`; `--sample` takes every 257th f32.

use std::time::Instant;

use pointwise::{DType, Device, Tensor, UNARY, UnaryDef};
use rayon::prelude::*;
use tests::{inputs, judge};

/// f32 inputs of a call.
const CHUNK: u64 = 1 << 26;
/// f32 inputs of a task on the host.
const TASK: usize = 1 << 16;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut device = Device::best()?;
    let (mut names, mut sample) = (Vec::new(), false);
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--device" => device = Device::parse(&arguments.next().unwrap_or_default())?,
            "--op" => names.extend(arguments.next()),
            "--sample" => sample = true,
            other => return Err(format!("unknown argument {other}").into()),
        }
    }
    let ops: Vec<_> = UNARY
        .iter()
        .copied()
        .filter(|def| def.info.supports(DType::F32) && (names.is_empty() || names.iter().any(|n| n == def.info.name)))
        .collect();
    println!("# device {device}: {}", device.info().map_or("the CPU", |info| info.name.as_str()));
    println!(
        "| op | f32: ULP of the bound, at, correctly rounded | f16: ULP, correctly rounded | bf16 | f8e4m3 | f8e5m2 |"
    );
    println!("|---|---|---|---|---|---|");
    let start = Instant::now();
    let f32s = all_f32(&device, &ops, if sample { 257 } else { 1 })?;
    let mut failed = 0;
    for (def, f32s) in ops.iter().zip(f32s) {
        let bound = def.info.accuracy.bound(def.info.result.of(DType::F32));
        let mut kept = f32s.keeps(def.info.accuracy, def.info.result.of(DType::F32), false);
        let mut row = format!("| {} | {} |", def.info.name, cell(&f32s, Some(bound)));
        for dtype in [DType::F16, DType::BF16, DType::F8E4M3, DType::F8E5M2] {
            let report = all_codes(&device, def, dtype)?;
            kept &= report.keeps(def.info.accuracy, def.info.result.of(dtype), true);
            row += &format!(" {} |", cell(&report, None));
        }
        failed += usize::from(!kept);
        println!("{row}{}", if kept { "" } else { " ABOVE ITS BOUND" });
    }
    eprintln!("{:.0} s", start.elapsed().as_secs_f64());
    if failed > 0 {
        return Err(format!("{failed} op(s) above the bound").into());
    }
    Ok(())
}

/// `exact`, or the largest error and the share of correctly rounded results.
fn cell(report: &judge::Report, bound: Option<f32>) -> String {
    if report.not_rounded == 0 {
        return "exact".to_owned();
    }
    let share = 100.0 * (1.0 - report.not_rounded as f64 / report.compared as f64);
    match bound {
        Some(bound) => format!("{:.3} of {bound} at {:e}, {share:.2} %", report.worst_ulp, report.worst_at),
        None => format!("{:.3}, {share:.2} %", report.worst_ulp),
    }
}

fn all_codes(device: &Device, def: &'static UnaryDef, dtype: DType) -> pointwise::Result<judge::Report> {
    let x = inputs::every_code(dtype);
    let y = def.kernel().run(&Tensor::from_bytes(device, dtype, &x, [x.len() / dtype.size()])?)?.to_bytes()?;
    Ok(judge::unary(def, dtype, &Default::default(), &x, &y))
}

/// Every `step`-th f32 through each of the ops; a chunk of inputs serves all of them.
fn all_f32(device: &Device, ops: &[&'static UnaryDef], step: u64) -> pointwise::Result<Vec<judge::Report>> {
    let mut totals = vec![judge::Report::default(); ops.len()];
    let mut first = 0_u64;
    while first < 1 << 32 {
        let last = (first + CHUNK * step).min(1 << 32);
        let count = (last - first).div_ceil(step) as usize;
        let mut x = vec![0_u8; 4 * count];
        x.par_chunks_exact_mut(4).enumerate().for_each(|(i, slot)| {
            slot.copy_from_slice(&((first + i as u64 * step) as u32).to_le_bytes());
        });
        let tensor = Tensor::from_bytes(device, DType::F32, &x, [count])?;
        // Several ops at a time: what takes longest is the way back of the results.
        let parts: pointwise::Result<Vec<_>> = ops
            .par_iter()
            .map(|def| {
                let y = def.kernel().run(&tensor)?.to_bytes()?;
                let size = def.info.result.of(DType::F32).size();
                Ok(x.par_chunks(TASK * 4)
                    .zip(y.par_chunks(TASK * size))
                    .map(|(x, y)| judge::unary(def, DType::F32, &Default::default(), x, y))
                    .reduce(judge::Report::default, judge::Report::merge))
            })
            .collect();
        totals = totals.into_iter().zip(parts?).map(|(total, part)| total.merge(part)).collect();
        first += count as u64 * step;
    }
    Ok(totals)
}
