//! `pointwise tour`: every op on every element type, checked.

use std::io::Write;
use std::time::Instant;

use pointwise::{DType, Device, Number, Operand, Tensor, info::Accuracy, kernel::OpDef};
use pointwise_core::op::MAX_PARAMS;
use pointwise_testkit::{Report, calls, inputs, judge};

use crate::device::device;
use crate::error::{Error, Result};
use crate::output::{Paint, flush, line};
use crate::progress;
use crate::registry::{Op, Params};
use crate::{beside, rope};

/// Parameters that are not set.
pub(crate) const DEFAULTS: Params = [Number::Default; MAX_PARAMS];

/// Width of the column of names.
pub(crate) const NAME: usize = 26;
/// Width of a cell: rows fit a terminal of 80 columns.
pub(crate) const CELL: usize = 6;

/// The columns: a float type each, the integers together, bool.
pub(crate) fn columns() -> impl Iterator<Item = (&'static str, Vec<DType>)> {
    let floats = DType::FLOATS.into_iter().map(|dtype| (dtype.name(), vec![dtype]));
    let ints = DType::ALL.into_iter().filter(|dtype| dtype.is_int()).collect();
    floats.chain([("ints", ints), ("bool", vec![DType::Bool])])
}

/// Values of a type that has too many codes to try them all: a prime, which no vector width divides.
const COUNT: usize = 10_007;
/// Choices of operands that go together, of more than two.
const CHOICES: usize = 20_000;

/// The notes below the table.
const NOTES: &str = "\
A cell is the largest error found / the bound, in units in the last place (ULP).
`exact`: every result is the correctly rounded value; of lerp, prelu, remainder
and the divisions to whole numbers, after steps in f32 as PyTorch's. Tried: all
codes of the 8- and 16-bit types, about 10,000 values of the others; of operands
that go together, all pairs of 8-bit codes, about 20,000 pairs or triples of the
others. Rotary embedding: in ULP of the largest value of a pair of lanes.";

/// A type's samples, on the device and as bytes.
pub(crate) struct Samples {
    pub(crate) dtype: DType,
    /// For ops of one operand.
    pub(crate) one: Sample,
    /// For ops of two, and three.
    two: Vec<Sample>,
    pub(crate) three: Vec<Sample>,
    /// For gradients of ops of three.
    four: Vec<Sample>,
    /// Conditions for two of `three`.
    pub(crate) conditions: Sample,
    /// `two` as the halves of one tensor's last dimension.
    halves: Tensor,
    /// The second and the third of `three`, likewise.
    gates: Tensor,
}

/// A tensor, on the device and as bytes.
pub(crate) struct Sample {
    pub(crate) tensor: Tensor,
    pub(crate) bytes: Vec<u8>,
}

/// The outcome of the comparison of an op's results.
#[derive(Debug, Default)]
pub(crate) struct Verdict {
    /// The largest error, in ULP; `None` where every result is the correctly rounded value.
    error: Option<f64>,
    /// The rule that the results break, in a sentence.
    fault: Option<String>,
}

impl Verdict {
    /// The verdict on results that are wrong or cannot be compared.
    pub(crate) fn broken(fault: impl Into<String>) -> Verdict {
        Verdict { error: None, fault: Some(fault.into()) }
    }

    /// The verdict on results of type `result`. Most results of 16 bits must be correctly rounded.
    pub(crate) fn of(report: &Report, accuracy: Accuracy, result: DType) -> Verdict {
        let fault = (!report.keeps(accuracy, result, true))
            .then(|| format!("beyond {} ULP, or too often not correctly rounded: {report}", accuracy.bound(result)));
        Verdict { error: (report.not_rounded > 0).then_some(report.worst_ulp), fault }
    }

    /// The verdict of two.
    fn and(self, other: Verdict) -> Verdict {
        let error = self.error.into_iter().chain(other.error).reduce(f64::max);
        Verdict { error, fault: self.fault.or(other.fault) }
    }
}

/// The outcome of an op on a type.
pub(crate) struct Case {
    dtype: DType,
    verdict: Verdict,
}

/// Runs the command.
///
/// # Errors
/// No such device; a result that is wrong, after everything was shown.
pub(crate) fn tour(out: &mut impl Write, device_name: &str) -> Result<()> {
    let device = device(device_name)?;
    let paint = Paint::for_stdout();
    let begin = Instant::now();
    let samples: Vec<Samples> = DType::ALL.into_iter().map(|dtype| of_type(&device, dtype)).collect::<Result<_>>()?;

    let name = device.info().map_or_else(|| device.to_string(), |info| format!("{device}, {}", info.name));
    line(out, format!("Every op of pointwise on {name}, checked against its formula at f64."))?;
    if device_name == "auto" && device.is_cpu() {
        line(out, "(The CPU, since no GPU can be used: `pointwise doctor` says why.)")?;
    }
    line(out, "")?;
    let names = columns().map(|(name, _)| format!("{name:<CELL$}")).collect::<Vec<_>>().join(" ");
    line(out, paint.strong(format!("{:<NAME$} {names}", "op").trim_end()))?;

    let (mut ops, mut pairs, mut faults) = (0, 0, Vec::new());
    let bar = progress::of_steps("checking", Op::all().count() as u64);
    for op in Op::all() {
        let mut cases = Vec::new();
        for samples in samples.iter().filter(|samples| op.info().supports(samples.dtype)) {
            cases.push(match op.def().filter(|_| op.has_oracle()) {
                None => beside::case(op, samples)?,
                Some(def) if def.info.is_of_rows() => of_rows(def, samples)?,
                Some(def) => case(def, samples)?,
            });
        }
        ops += 1;
        pairs += cases.len();
        let info = op.info();
        line(out, row(info.name, |dtype| info.accuracy.bound(info.result_type(0, dtype)), &cases, paint))?;
        flush(out)?;
        faults.extend(faults_of(info.name, cases));
        bar.inc(1);
    }
    bar.finish_and_clear();
    let (rope_pairs, rope_faults) = rope::tour(out, &device, paint)?;
    ops += pointwise::rope::ROPE.len();
    pairs += rope_pairs;
    faults.extend(rope_faults);

    line(out, format!("\n{NOTES}\n"))?;
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

/// The faults found, in words.
fn faults_of(name: &str, cases: Vec<Case>) -> impl Iterator<Item = String> {
    cases
        .into_iter()
        .filter_map(move |Case { dtype, verdict }| verdict.fault.map(|fault| format!("{name} of {dtype}: {fault}")))
}

fn of_type(device: &Device, dtype: DType) -> Result<Samples> {
    let sample = |dtype: DType, bytes: Vec<u8>| -> Result<Sample> {
        let tensor = Tensor::from_bytes(device, dtype, &bytes, [bytes.len() / dtype.size()])?;
        Ok(Sample { tensor, bytes })
    };
    let tuples = |dtypes: &[DType]| -> Result<Vec<Sample>> {
        inputs::tuples(dtypes, CHOICES, 2).into_iter().map(|bytes| sample(dtype, bytes)).collect()
    };
    let [two, three, four] = [tuples(&[dtype; 2])?, tuples(&[dtype; 3])?, tuples(&[dtype; 4])?];
    let beside = |parts: &[Sample]| -> Result<Tensor> {
        let bytes: Vec<u8> = parts.iter().flat_map(|sample| sample.bytes.iter().copied()).collect();
        Ok(Tensor::from_bytes(device, dtype, &bytes, [1, bytes.len() / dtype.size()])?)
    };
    let (halves, gates) = (beside(&two)?, beside(&three[1..])?);
    // No other sample has this period.
    let conditions = (0..CHOICES).map(|i| u8::from(i % 5 < 2)).collect();
    let conditions = sample(DType::Bool, conditions)?;
    let one = sample(dtype, inputs::codes(dtype, COUNT, 2))?;
    Ok(Samples { dtype, one, two, three, four, conditions, halves, gates })
}

/// Runs an op on rows, of several lengths.
fn of_rows(def: &'static OpDef, samples: &Samples) -> Result<Case> {
    let dtype = samples.dtype;
    let verdict = match pointwise_testkit::largest_error(def, dtype, samples.one.tensor.device()) {
        // Half a unit is what rounding takes.
        Ok(error) => Verdict { error: (error > 0.501).then_some(error), fault: None },
        Err(pointwise_testkit::Error::Wrong(why)) => Verdict::broken(why),
        Err(error) => Verdict::broken(error.to_string()),
    };
    Ok(Case { dtype, verdict })
}

/// Runs an op of any kind on a type. A refusal of the op is a fault of it; one of this program's own is an error.
fn case(def: &'static OpDef, samples: &Samples) -> Result<Case> {
    let Samples { dtype, one, two, three, four, conditions, halves, gates } = samples;
    let info = &def.info;
    // As long as the conditions.
    let with_condition = || three.iter().take(info.operands.len()).collect();
    let mut operands: Vec<&Sample> = match info.operands.len() {
        _ if info.bool_operands() != 0 => with_condition(),
        1 => vec![one],
        2 => two.iter().collect(),
        3 => three.iter().collect(),
        _ => four.iter().collect(),
    };
    for (_, operand) in operands.iter_mut().enumerate().filter(|(k, _)| info.is_bool(*k)) {
        *operand = conditions;
    }
    let n = operands[0].tensor.numel();
    let mut tensors: Vec<Operand<'_>> = operands.iter().map(|sample| Operand::from(&sample.tensor)).collect();
    // One row, so that each element is a channel and has a weight, and a gate's halves lie one behind the other.
    let row = |k: usize| Ok::<_, Error>(Operand::View(operands[k].tensor.view().reshape([1, n])?));
    match info.arguments().len() {
        1 if info.operands.len() > 1 => tensors = vec![Operand::from(halves)],
        2 if info.operands.len() > 2 => tensors = vec![row(0)?, Operand::from(gates)],
        _ if info.channel_operands != 0 => {
            for k in (0..tensors.len()).filter(|&k| !info.is_channel(k)) {
                tensors[k] = row(k)?;
            }
        }
        _ => {}
    }
    let run = || Ok(def.kernel(&[]).run(&tensors)?);
    guarded(run, one.tensor.device(), *dtype, |got| {
        let bytes: Vec<Vec<u8>> = operands.iter().map(|sample| sample.bytes.clone()).collect();
        // The results of a call have one type.
        let result = info.result_type(0, *dtype);
        let got: Vec<Vec<u8>> = got.chunks(n * result.size()).map(<[u8]>::to_vec).collect();
        let reports = calls::reports(def, *dtype, &DEFAULTS, &bytes, &got)?;
        let verdicts = reports.iter().zip(info.results).map(|(report, name)| {
            let Verdict { error, fault } = Verdict::of(report, calls::accuracy(info), result);
            Verdict { error, fault: fault.map(|fault| format!("{name}: {fault}")) }
        });
        Ok(verdicts.fold(Verdict::default(), Verdict::and))
    })
}

/// Runs an op and judges its results' bytes, one tensor behind the other. If the op refuses, it is at fault.
///
/// # Errors
/// The errors of the judge and the device.
pub(crate) fn guarded(
    run: impl Fn() -> Result<Vec<Tensor>>,
    device: &Device,
    dtype: DType,
    judge: impl FnOnce(&[u8]) -> Result<Verdict>,
) -> Result<Case> {
    match twice(run, device) {
        Ok(results) => {
            let mut got = Vec::new();
            for result in &results {
                got.extend(result.to_bytes()?);
            }
            Ok(Case { dtype, verdict: judge(&got)? })
        }
        Err(error) => Ok(Case { dtype, verdict: Verdict::broken(error.to_string()) }),
    }
}

/// The results of two calls, which must be the same.
fn twice(run: impl Fn() -> Result<Vec<Tensor>>, device: &Device) -> Result<Vec<Tensor>> {
    let run = || -> Result<Vec<Tensor>> {
        let y = run()?;
        device.synchronize()?;
        Ok(y)
    };
    let first = run()?;
    let second = run()?;
    for (first, second) in first.iter().zip(&second) {
        if judge::same_bits(first.dtype(), &first.to_bytes()?, &second.to_bytes()?).is_some() {
            return Err(Error::Failed("two runs on the same operands gave different results".to_owned()));
        }
    }
    Ok(first)
}

fn row(name: &str, bound: impl Fn(DType) -> f32, cases: &[Case], paint: Paint) -> String {
    let mut text = format!("{name:<NAME$}");
    for (_, types) in columns() {
        let in_cell: Vec<&Case> = cases.iter().filter(|case| types.contains(&case.dtype)).collect();
        let cell = match in_cell.as_slice() {
            [] => format!("{:<CELL$}", "-"),
            cases if cases.iter().any(|case| case.verdict.fault.is_some()) => paint.bad(&format!("{:<CELL$}", "FAIL")),
            [first, ..] => {
                let bound = bound(first.dtype);
                let error = in_cell.iter().filter_map(|case| case.verdict.error).reduce(f64::max);
                format!("{:<CELL$}", error.map_or("exact".to_owned(), |error| fitted(error, bound)))
            }
        };
        text += &format!(" {cell}");
    }
    let good = cases.iter().all(|case| case.verdict.fault.is_none());
    let mark = if good { paint.good("ok") } else { paint.bad("FAIL") };
    format!("{text} {mark}")
}

/// An error and its bound, with as many decimals as a cell has room for.
fn fitted(error: f64, bound: f32) -> String {
    let texts = [2, 1, 0].map(|decimals| format!("{error:.decimals$}/{bound}"));
    texts.iter().find(|text| text.len() <= CELL).unwrap_or(&texts[2]).clone()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_have_room() {
        assert_eq!(fitted(0.786, 1.0), "0.79/1");
        assert_eq!(fitted(3.0, 16.0), "3.0/16");
        assert_eq!(fitted(12.3, 16.0), "12/16");
        assert!(NOTES.lines().all(|line| line.len() <= 80));
    }
}
