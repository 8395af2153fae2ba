//! `pointwise tour`: every op on every element type, checked.

use std::io::Write;
use std::time::Instant;

use pointwise::{DType, Number, Operand, kernel::OpDef};
use pointwise_core::op::MAX_PARAMS;
use pointwise_testkit::calls;

use crate::device::device;
use crate::error::{Error, Result};
use crate::output::{Paint, flush, line};
use crate::progress;
use crate::registry::{Op, Params};
use crate::samples::{Sample, Samples};
use crate::table::{CELL, NAME, columns, row};
use crate::verdict::{Case, Verdict, faults_of, guarded};
use crate::{beside, rope};

/// Parameters that are not set.
const DEFAULTS: Params = [Number::Default; MAX_PARAMS];

/// The notes below the table.
const NOTES: &str = "\
A cell is the largest error found / the bound, in units in the last place (ULP).
`exact`: every result is the correctly rounded value; of lerp, prelu, remainder
and the divisions to whole numbers, after steps in f32 as PyTorch's. Tried: all
codes of the 8- and 16-bit types, about 10,000 values of the others; of operands
that go together, all pairs of 8-bit codes, about 20,000 pairs or triples of the
others. Rotary embedding: in ULP of the largest value of a pair of lanes.";

/// Runs the command.
///
/// # Errors
/// No such device; a result that is wrong, after everything was shown.
pub(crate) fn tour(out: &mut impl Write, device_name: &str) -> Result<()> {
    let device = device(device_name)?;
    let paint = Paint::for_stdout();
    let begin = Instant::now();
    let samples: Vec<Samples> =
        DType::ALL.into_iter().map(|dtype| Samples::new(&device, dtype)).collect::<Result<_>>()?;

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_have_room() {
        assert!(NOTES.lines().all(|line| line.len() <= 80));
    }
}
