//! `pointwise explain`: an op's formula, bound, types, and the kernel that would serve a call.

use std::io::Write;

use pointwise::embed::embedded;
use pointwise::info;
use pointwise::{DType, Device, Operand, Strategy, Tensor, TensorView};
use pointwise_core::Kind;

use crate::args::Explain;
use crate::error::{Error, Result};
use crate::list::{accuracy, doc, signature, type_groups};
use crate::output::line;
use crate::registry::Op;
use crate::{rope, special};

/// The target whose PTX is counted: the newest that the project embeds for all kernels.
const SM: u32 = 90;

/// A kernel for a call.
struct Served {
    kernel: String,
    launch: String,
    replaced: Option<&'static str>,
}

/// Runs the command.
///
/// # Errors
/// An unknown op; a type, shape or strategy that it does not take; those of the standard output.
pub(crate) fn explain(out: &mut impl Write, args: &Explain) -> Result<()> {
    if let Some(text) = beside(&args.op) {
        return line(out, text);
    }
    let op = Op::find(&args.op)?;
    let info = op.info();
    line(out, format!("{}\n  {}", signature(op), doc(info.doc)))?;
    let formula = info.formula.split_whitespace().collect::<Vec<_>>().join(" ");
    line(out, format!("formula    {} -> {formula}", info.operands.join(", ")))?;
    let backward = format!("{}_backward", info.name);
    if let Some(gradient) = info::op(&backward) {
        line(out, format!("gradient   {backward}({})", gradient.info.arguments().join(", ")))?;
    }
    let star = if info.int_to_float { "; integers and bool become f32" } else { "" };
    line(out, format!("types      {}{star}", type_groups(info.types)))?;
    line(out, format!("accuracy   {} in f32", accuracy(info.accuracy)))?;
    let dtype = args.dtype.unwrap_or(info.types[0]);
    let served = served(op, dtype, &args.shape, args.strategy)?;
    let shape = args.shape.iter().map(usize::to_string).collect::<Vec<_>>().join(" x ");
    line(out, format!("call       {shape} of {dtype}, contiguous: {}", served.launch))?;
    if let Some(why) = served.replaced {
        line(out, format!("           not {}: {why}", args.strategy))?;
    }
    let elements = args.shape.iter().product::<usize>();
    let types = (0..info.operands.len()).map(|k| info.operand_type(k, dtype));
    let types = types.chain((0..info.results.len()).map(|k| info.result_type(k, dtype)));
    let bytes = types.map(|dtype| dtype.size() * elements).sum::<usize>();
    line(out, format!("memory     {:.3} MB read and written", bytes as f64 / 1e6))?;
    let code = match embedded().ptx(&served.kernel, SM) {
        Some(ptx) => format!(", {} instructions of PTX for sm_{SM}", instructions(&ptx)),
        None => format!(" ({})", embedded().note()),
    };
    line(out, format!("kernel     {}{code}", served.kernel))?;
    line(out, "more       docs/ops.md, docs/accuracy.md, docs/performance.md")?;
    line(out, "           which kernel serves a call: docs/strategies.md")
}

/// What there is to say of an op beside the tables, which has no plan.
fn beside(name: &str) -> Option<String> {
    let is_of = |signature: &str| signature.split('(').next() == Some(name);
    if let Some(row) = special::rows().find(|row| is_of(&row.signature)) {
        let (types, accuracy) = (type_groups(row.types), accuracy(row.accuracy));
        let text = format!("{}\n  {}\ntypes      {types}\naccuracy   {accuracy} in f32", row.signature, doc(row.doc));
        return Some(format!("{text}\nmore       docs/ops.md#outside-the-tables"));
    }
    let (signature, types, doc) = rope::rows().find(|(signature, ..)| is_of(signature))?;
    Some(format!(
        "{signature}\n  {doc}\ntypes      {types}\nmore       docs/rope.md; settings: `pointwise list --json`"
    ))
}

/// What a call on contiguous tensors of one shape would launch.
fn served(op: Op, dtype: DType, shape: &[usize], strategy: Strategy) -> Result<Served> {
    // Plans are the same wherever the tensors lie, but for what depends on the size of a device's cache.
    let zeros = |dtype: DType| Tensor::empty(&Device::cpu(), dtype, shape).map_err(Error::from);
    let info = op.info();
    let operands = (0..info.operands.len()).map(|k| zeros(info.operand_type(k, dtype))).collect::<Result<Vec<_>>>()?;
    let results = (0..info.results.len()).map(|k| zeros(info.result_type(k, dtype))).collect::<Result<Vec<_>>>()?;
    let mut views: Vec<TensorView<'_>> = operands.iter().map(Tensor::view).collect();
    let mut targets: Vec<TensorView<'_>> = results.iter().map(Tensor::view).collect();
    // A weight a channel needs two dimensions.
    if matches!(info.kind, Kind::Channel | Kind::ChannelGradients) && shape.len() < 2 {
        let lifted = |views: &mut Vec<TensorView<'_>>| -> Result<()> {
            for view in views {
                *view = view.unsqueeze(0)?;
            }
            Ok(())
        };
        lifted(&mut views)?;
        lifted(&mut targets)?;
    }
    let operands: Vec<Operand<'_>> = views.into_iter().map(Operand::View).collect();
    let plan = op.0.kernel(&[]).strategy(strategy).plan(&operands, &targets)?;
    Ok(Served {
        kernel: op.0.kernel_for(dtype, &plan)?.symbol().to_owned(),
        launch: format!("{} ({}), {} elements a vector", plan.strategy, plan.class, plan.lanes),
        replaced: plan.replaced,
    })
}

/// The instructions of an entry's text.
fn instructions(ptx: &str) -> usize {
    let body = ptx.split_once("\n{").map_or("", |(_, body)| body);
    let is_one = |line: &&str| line.ends_with(';') && !line.starts_with(['.', '{', '/']);
    body.lines().map(str::trim).filter(is_one).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_op_can_be_explained_in_every_type() {
        for op in Op::all() {
            for &dtype in op.info().types {
                let args = Explain {
                    op: op.info().name.to_owned(),
                    dtype: Some(dtype),
                    shape: vec![4, 96],
                    strategy: Strategy::Auto,
                };
                let mut out = Vec::new();
                explain(&mut out, &args).unwrap();
                let text = String::from_utf8(out).unwrap();
                let kernel = text.lines().find(|line| line.starts_with("kernel ")).unwrap();
                let name = op.info().name.trim_end_matches("_cond");
                assert!(kernel.contains(name) || kernel.contains("lookup"), "{text}");
            }
        }
    }

    #[test]
    fn instructions_are_counted_without_directives() {
        assert_eq!(instructions(".entry a(\n)\n{\n\t.reg .b32 %r<2>;\n\tmov.b32 \t%r1, 0;\n$L:\n\tret;\n}\n"), 2);
    }
}
