//! The accuracy table: every unary float op over all 2^32 f32 inputs, all 65,536 of f16 and bf16, all 256 of fp8, against
//! f64. `accuracy [--device D] [--op NAME]... [--sample]`; `--sample` takes every 257th f32.

use std::time::Instant;

use pointwise::{DType, Device, Tensor, UNARY, UnaryDef};
use rayon::prelude::*;
use tests::{inputs, judge};

/// f32 inputs of a call.
const CHUNK: u64 = 1 << 22;

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
    let mut failed = 0;
    for def in ops {
        let start = Instant::now();
        let f32s = all_f32(&device, def, if sample { 257 } else { 1 })?;
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
        eprintln!("{}: {:.1} s", def.info.name, start.elapsed().as_secs_f64());
    }
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

/// Every `step`-th f32 through the op, a chunk a thread: each goes to the device and back by itself.
fn all_f32(device: &Device, def: &'static UnaryDef, step: u64) -> pointwise::Result<judge::Report> {
    let total = (1_u64 << 32).div_ceil(step);
    (0..total.div_ceil(CHUNK))
        .into_par_iter()
        .map(|chunk| {
            let codes = (chunk * CHUNK..total.min((chunk + 1) * CHUNK)).map(|i| (i * step) as u32);
            let x: Vec<u8> = codes.flat_map(u32::to_le_bytes).collect();
            let y = def.kernel().run(&Tensor::from_bytes(device, DType::F32, &x, [x.len() / 4])?)?.to_bytes()?;
            Ok(judge::unary(def, DType::F32, &Default::default(), &x, &y))
        })
        .try_reduce(judge::Report::default, |a, b| Ok(a.merge(b)))
}
