//! `pointwise tour`: every op on every element type, checked.

use std::io::Write;
use std::time::{Duration, Instant};

use pointwise::{DType, Device, Number, Strategy, Tensor, UnaryDef};
use pointwise_core::op::MAX_PARAMS;

use crate::check::{self, Elements, Verdict};
use crate::error::{Error, Result};
use crate::output::{Paint, flush, line};
use crate::progress;
use crate::registry::{Op, Params};
use crate::rope;
use crate::run::device;
use crate::samples;

const DEFAULTS: Params = [Number::Default; MAX_PARAMS];

/// Columns: a float type each, the integers together, bool.
const COLUMNS: [(&str, &[DType]); 7] = [
    ("f32", &[DType::F32]),
    ("f16", &[DType::F16]),
    ("bf16", &[DType::BF16]),
    ("f8e4m3", &[DType::F8E4M3]),
    ("f8e5m2", &[DType::F8E5M2]),
    ("integers", &[DType::I8, DType::I16, DType::I32, DType::I64, DType::U8]),
    ("bool", &[DType::Bool]),
];

/// A type's samples, on the device and as numbers.
struct Sample {
    dtype: DType,
    tensor: Tensor,
    elements: Elements,
}

/// What came of an op on a type.
struct Case {
    dtype: DType,
    verdict: Verdict,
    /// One call, with the wait for its end.
    time: Duration,
}

/// Runs the command.
///
/// # Errors
/// No such device; a result that is wrong, after everything was shown.
pub(crate) fn tour(out: &mut impl Write, device_name: &str) -> Result<()> {
    let device = device(device_name)?;
    let paint = Paint::for_stdout();
    let begin = Instant::now();
    let samples: Vec<Sample> = DType::ALL.into_iter().map(|dtype| sample(&device, dtype)).collect::<Result<_>>()?;

    let name = device.info().map_or_else(|| device.to_string(), |info| format!("{device}, {}", info.name));
    line(out, format!("Every op of pointwise on {name}, checked against its formula at f64."))?;
    if device_name == "auto" && device.is_cpu() {
        line(out, "(The CPU, since no GPU can be used: `pointwise doctor` says why.)")?;
    }
    line(out, "")?;
    let names = COLUMNS.map(|(name, _)| format!("{name:<9}")).join(" ");
    line(out, paint.strong(&format!("{:<13} {names} {:>9}", "op", "time")))?;

    let (mut ops, mut pairs, mut faults) = (0, 0, Vec::new());
    let bar = progress::of_steps("checking", Op::all().count() as u64);
    for op in Op::all() {
        let mut cases = Vec::new();
        for sample in samples.iter().filter(|sample| op.info().supports(sample.dtype)) {
            cases.push(case(op, sample)?);
        }
        ops += 1;
        pairs += cases.len();
        line(out, row(op, &cases, paint))?;
        flush(out)?;
        for case in cases {
            faults.extend(case.verdict.fault.map(|fault| format!("{} of {}: {fault}", op.info().name, case.dtype)));
        }
        bar.inc(1);
    }
    bar.finish_and_clear();
    let (rope_pairs, rope_faults) = rope::tour(out, &device, paint)?;
    ops += pointwise::rope::ROPE.len();
    pairs += rope_pairs;
    faults.extend(rope_faults);

    line(out, "\nA cell is the largest error found / the bound, in units in the last place (ULP);")?;
    line(out, "`exact`: every result is the correctly rounded value. All codes of the 8- and 16-bit types")?;
    line(out, "were tried, and about 10,000 values of the others.\n")?;
    for fault in &faults {
        line(out, format!("{} {fault}", paint.bad("FAIL")))?;
    }
    let failed = faults.len();
    let summary = format!(
        "{ops} ops, {pairs} op-type pairs, {failed} failed, on {device} in {:.1} s",
        begin.elapsed().as_secs_f64()
    );
    line(out, if failed == 0 { paint.good(&summary) } else { paint.bad(&summary) })?;
    flush(out)?;
    if failed == 0 { Ok(()) } else { Err(Error::Failed(format!("{failed} of {pairs} op-type pairs failed"))) }
}

fn sample(device: &Device, dtype: DType) -> Result<Sample> {
    let bytes = samples::bytes(dtype);
    let tensor = Tensor::from_bytes(device, dtype, &bytes, [bytes.len() / dtype.size()])?;
    Ok(Sample { dtype, tensor, elements: Elements::decode(dtype, &bytes) })
}

/// Runs an op of any kind on a type. A refusal of the op is a fault of it; one of this program's own is an error.
fn case(op: Op, sample: &Sample) -> Result<Case> {
    match op {
        Op::Unary(def) => unary(op, def, sample),
    }
}

fn unary(op: Op, def: &UnaryDef, sample: &Sample) -> Result<Case> {
    let dtype = sample.dtype;
    let refused = |error: Error| Case {
        dtype,
        verdict: Verdict::broken(error.to_string()),
        time: Duration::ZERO,
    };
    let (y, time) = match timed(op, &sample.tensor) {
        Ok(done) => done,
        Err(error) => return Ok(refused(error)),
    };
    let got = Elements::decode(y.dtype(), &y.to_bytes()?);
    let mut exact = Vec::with_capacity(sample.elements.len());
    for at in 0..sample.elements.len() {
        match def.oracle(dtype, &DEFAULTS, sample.elements.number(at))? {
            Some(value) => exact.push(value),
            None => break,
        }
    }
    let verdict = if exact.len() == sample.elements.len() {
        check::compare(y.dtype(), def.info.accuracy, &got, &exact, &sample.elements)
    } else {
        by_identity(def.info.name, dtype, &got, &sample.elements)
    };
    Ok(Case { dtype, verdict, time })
}

/// The result, and how long a call takes once the kernel is loaded.
fn timed(op: Op, x: &Tensor) -> Result<(Tensor, Duration)> {
    let run = || -> Result<Tensor> {
        let (results, _) = op.run(&[x], DEFAULTS, Strategy::Auto)?;
        x.device().synchronize()?;
        results.into_iter().next().map(|(_, y)| y).ok_or_else(|| Error::Failed("no result".to_owned()))
    };
    let first = run()?;
    let begin = Instant::now();
    let second = run()?;
    let time = begin.elapsed();
    let elements = |y: &Tensor| -> Result<Elements> { Ok(Elements::decode(y.dtype(), &y.to_bytes()?)) };
    if !elements(&first)?.same(&elements(&second)?) {
        return Err(Error::Failed("two runs on the same operand gave different results".to_owned()));
    }
    Ok((first, time))
}

/// Ops on bits have no formula at f64, but an identity in whole numbers that is as good.
fn by_identity(name: &str, dtype: DType, got: &Elements, x: &Elements) -> Verdict {
    let identity: fn(DType, i64) -> i64 = match name {
        // Two's complement: not x is -x - 1.
        "bitwise_not" => |dtype, x| match dtype {
            DType::Bool => 1 - x,
            _ => check::wrap(dtype, -i128::from(x) - 1),
        },
        _ => return Verdict::broken("nothing to check it against"),
    };
    match (got, x) {
        (Elements::Whole(got), Elements::Whole(operands)) => {
            let wanted: Vec<i64> = operands.iter().map(|&x| identity(dtype, x)).collect();
            check::compare_whole(got, &wanted, x)
        }
        _ => Verdict::broken("an op on bits took a float"),
    }
}

fn row(op: Op, cases: &[Case], paint: Paint) -> String {
    let info = op.info();
    let mut text = format!("{:<13}", info.name);
    for (_, types) in COLUMNS {
        let in_cell: Vec<&Case> = cases.iter().filter(|case| types.contains(&case.dtype)).collect();
        let cell = match in_cell.as_slice() {
            [] => format!("{:<9}", "-"),
            cases if cases.iter().any(|case| case.verdict.fault.is_some()) => paint.bad(&format!("{:<9}", "FAIL")),
            [first, ..] => {
                let bound = info.accuracy.bound(info.result.of(first.dtype));
                let error = in_cell.iter().filter_map(|case| case.verdict.error).reduce(f64::max);
                format!("{:<9}", error.map_or("exact".to_owned(), |error| format!("{error:.2}/{bound}")))
            }
        };
        text += &format!(" {cell}");
    }
    let time: Duration = cases.iter().map(|case| case.time).sum();
    let good = cases.iter().all(|case| case.verdict.fault.is_none());
    let mark = if good { paint.good("ok") } else { paint.bad("FAIL") };
    format!("{text} {:>6.2} ms {mark}", time.as_secs_f64() * 1e3)
}
