//! `pointwise run`: one op, from a file to a file.

use std::io::{self, IsTerminal, Write};

use pointwise::rope::rope_op;
use pointwise::{DType, Operand, Strategy};

use crate::args::Run;
use crate::device::device;
use crate::error::{Error, Result};
use crate::file::{Source, Target};
use crate::output::line;
use crate::registry::Op;
use crate::request::{Replaced, Request};
use crate::values::{self, Call};
use crate::{expression, rope};

/// Runs the command. It finds errors of the call before it opens a file.
///
/// # Errors
/// The errors of the call, the files, the op and the device.
pub(crate) fn run(out: &mut impl Write, args: &Run) -> Result<()> {
    if let Some(text) = &args.expr {
        return expression::run(text, args);
    }
    if let Some(def) = rope_op(args.op()) {
        return rope::run(out, args, def);
    }
    let asked = Op::find(args.op())?;
    let call = values::parse_settings(asked, &args.set)?;
    if asked.is_masked_fill() && args.strategy != Strategy::Auto {
        let name = asked.info().name;
        return Err(Error::Usage(format!("{name} chooses its strategy itself: leave --strategy out")));
    }
    let file = match (asked.arguments().is_empty(), &args.input) {
        (true, None) => None,
        (true, Some(given)) => {
            let (name, given) = (asked.info().name, given.display());
            return Err(Error::Usage(format!("{name} makes its tensor from --set alone: leave {given} out")));
        }
        (false, _) => Some(args.input()?),
    };
    if file.is_none() {
        call.settings.check_complete(false)?;
    }
    let target = Target::new(&args.output)?;
    let device = device(&args.device)?;
    let mut file = file.map(Source::open).transpose()?;
    let Call { op, params, numbers, settings, .. } = match &file {
        Some(file) => call.beside(file, &args.set)?,
        None => call,
    };
    let value = file.as_mut().map_or(Ok(None), |file| settings.value(file, &device))?;
    let info = op.info();

    let missing = |k: &usize| numbers[*k].is_none();
    let from_file: Vec<usize> = (0..numbers.len()).filter(missing).collect();
    let names: Vec<_> = from_file.iter().map(|&k| op.arguments()[k]).collect();
    let tensors = file.as_mut().map_or(Ok(Vec::new()), |file| file.read(&names, &device))?;
    for ((k, name), tensor) in from_file.iter().zip(&names).zip(&tensors) {
        // The library says the same of the others, with more words where they are converted.
        if info.fixed_operand(*k).is_some() || info.is_random() {
            check_type(info.name, name, tensor.dtype(), op.types(*k))?;
        }
    }
    let mut operands: Vec<_> = numbers.iter().map(|number| Operand::Number(number.unwrap_or_default())).collect();
    for (k, tensor) in from_file.iter().zip(&tensors) {
        operands[*k] = Operand::from(tensor);
    }
    let request = Request { params, strategy: args.strategy, settings: &settings, device, value };
    let (results, replaced) = request.run(op, &operands)?;
    // Their memory is of use for the copy that is written.
    drop(tensors);
    let described: Vec<_> = results.iter().map(|(name, y)| format!("{name} {} {}", y.dtype(), y.shape())).collect();
    target.write(&results)?;
    note(args.strategy, replaced);
    if io::stdout().is_terminal() {
        let described = described.join(", ");
        line(out, format!("{}: {described} on {device} -> {}", info.name, args.output.display()))?;
    }
    Ok(())
}

/// Checks that an op takes elements of type `got` for an argument.
///
/// # Errors
/// The op does not take them.
pub(crate) fn check_type(op: &str, argument: &str, got: DType, types: &[DType]) -> Result<()> {
    if types.contains(&got) {
        return Ok(());
    }
    let types: Vec<_> = types.iter().map(|dtype| dtype.name()).collect();
    let types = types.join(", ");
    Err(Error::Failed(format!("{op} does not take {got}, the element type of {argument}: it takes {types}")))
}

/// Says on stderr which strategy ran instead of the one asked for: it changes nothing about the result.
pub(crate) fn note(asked: Strategy, replaced: Option<Replaced>) {
    if asked != Strategy::Auto
        && let Some((strategy, why)) = replaced
    {
        let _ = writeln!(io::stderr(), "note: strategy {strategy} instead of {asked}: {why}");
    }
}
