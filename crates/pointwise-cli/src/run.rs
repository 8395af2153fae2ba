//! `pointwise run`: one op, from a file to a file.

use std::io::{self, IsTerminal, Write};

use pointwise::rope::rope_op;
use pointwise::{Device, ErrorKind, Strategy};

use crate::args::Run;
use crate::error::{Error, Result};
use crate::file::{self, Target};
use crate::output::line;
use crate::registry::Op;
use crate::rope;
use crate::values;

/// Runs the command. What the call has wrong is found before a file is opened.
///
/// # Errors
/// Those of the call, the files, the op and the device.
pub(crate) fn run(out: &mut impl Write, args: &Run) -> Result<()> {
    if let Some(def) = rope_op(&args.op) {
        return rope::run(out, args, def);
    }
    let (op, params) = values::settle(Op::find(&args.op)?, &args.set)?;
    let info = op.info();
    let target = Target::new(&args.output)?;
    let device = device(&args.device)?;

    let names = info.arguments();
    let operands = file::read(&args.input, names, &device)?;
    for (name, operand) in names.iter().zip(&operands) {
        if !info.supports(operand.dtype()) {
            let types: Vec<_> = info.types.iter().map(|dtype| dtype.name()).collect();
            return Err(Error::Failed(format!(
                "{} does not take {}, the element type of {name}: it takes {}",
                info.name,
                operand.dtype(),
                types.join(", ")
            )));
        }
    }
    let (results, plan) = op.run(&operands.iter().collect::<Vec<_>>(), params, args.strategy)?;
    // Their memory is of use for the copy that is written.
    drop(operands);
    target.write(&results)?;

    if let Some(plan) = plan
        && args.strategy != Strategy::Auto
        && let Some(why) = plan.replaced
    {
        // A note on stderr: it changes nothing about the result.
        let _ = writeln!(io::stderr(), "note: strategy {} instead of {}: {why}", plan.strategy, args.strategy);
    }
    if io::stdout().is_terminal() {
        for (name, result) in &results {
            let (dtype, shape, to) = (result.dtype(), result.shape(), args.output.display());
            line(out, format!("{}: {name} {dtype} {shape} on {device} -> {to}", info.name))?;
        }
    }
    Ok(())
}

/// The device of a name. `auto` is the CPU in a build without GPU kernels, since no GPU could do anything there.
///
/// # Errors
/// No driver or no such device.
pub(crate) fn device(name: &str) -> Result<Device> {
    let embedded = pointwise::embedded();
    if !embedded.is_empty() {
        return parse(name);
    }
    if name == "auto" || name == "cpu" {
        return Ok(Device::cpu());
    }
    let device = parse(name)?;
    Err(Error::Failed(format!("this build has no kernels for {device} ({}): use --device cpu", embedded.note())))
}

/// As [`Device::parse`], with advice for this command.
fn parse(name: &str) -> Result<Device> {
    Device::parse(name).map_err(|error| match error.kind() {
        ErrorKind::NoDriver { tried } => {
            Error::Failed(format!("no usable NVIDIA driver ({tried}): install the driver, or use --device cpu"))
        }
        _ => error.into(),
    })
}
