//! `pointwise explain`: an op's formula, bound, types, and the kernel that would serve a call.

use std::io::Write;

use pointwise::embed::embedded;
use pointwise::kernel::OpDef;
use pointwise::{DType, Device, Operand, Strategy, Tensor, TensorView};

use crate::args::Explain;
use crate::error::{Error, Result};
use crate::list::{accuracy, doc, signature, type_groups};
use crate::output::line;
use crate::registry::Op;
use crate::{expression, rope};

/// The target whose PTX is counted: the newest that the project embeds for all kernels.
const SM: u32 = 90;

/// Registers and machine code of the kernels: `gpu-kernels/registers.txt`, if the command was built beside it.
const REGISTERS: &str = include_str!(concat!(env!("OUT_DIR"), "/registers.txt"));

/// A kernel for a call.
struct Served {
    kernel: String,
    launch: String,
    replaced: Option<&'static str>,
}

/// Runs the command.
///
/// # Errors
/// An unknown op; a type, shape or strategy that it does not take; errors of the standard output.
pub(crate) fn explain(out: &mut impl Write, args: &Explain) -> Result<()> {
    if let Some(text) = &args.expr {
        return expression::explain(out, text, args);
    }
    if let Some(text) = beside(args.op()) {
        return line(out, text);
    }
    let op = Op::find(args.op())?;
    let info = op.info();
    line(out, format!("{}\n  {}", signature(op), doc(info.doc)))?;
    let formula = info.formula.split_whitespace().collect::<Vec<_>>().join(" ");
    line(out, format!("formula    {} -> {formula}", info.operands.join(", ")))?;
    if let Some(gradient) = op.def().and_then(|def| def.backward) {
        line(out, format!("gradient   {}({})", gradient.info.name, gradient.info.arguments().join(", ")))?;
    }
    let star = if info.properties.int_to_float { "; integers and bool become f32" } else { "" };
    line(out, format!("types      {}{star}", type_groups(info.types)))?;
    line(out, format!("accuracy   {} in f32", accuracy(info.accuracy)))?;
    // The shape of a position encoding is not free, and what a random op launches depends on its probability.
    let Some(def) = op.def().filter(|_| op.has_oracle()) else {
        return line(out, "more       docs/ops.md#outside-the-tables");
    };
    let dtype = args.dtype.unwrap_or(info.types[0]);
    let served = served(def, dtype, &args.shape, args.strategy)?;
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
    if let Some((registers, bytes)) = machine_code(&served.kernel, REGISTERS) {
        line(out, format!("           {registers} registers, {bytes} bytes of machine code for sm_{SM}"))?;
    }
    line(out, "more       docs/ops.md, docs/accuracy.md, docs/performance.md")?;
    line(out, "           which kernel serves a call: docs/strategies.md")
}

/// The text about a rotary op, which has no plan.
fn beside(name: &str) -> Option<String> {
    let is_of = |signature: &str| signature.split('(').next() == Some(name);
    let (signature, types, doc) = rope::rows().find(|(signature, ..)| is_of(signature))?;
    Some(format!(
        "{signature}\n  {doc}\ntypes      {types}\nmore       docs/rope.md; settings: `pointwise list --json`"
    ))
}

/// Plans a call on contiguous tensors of one shape.
fn served(def: &'static OpDef, dtype: DType, shape: &[usize], strategy: Strategy) -> Result<Served> {
    // Plans are the same for tensors on every device, but for choices by the size of a device's cache and shared memory.
    let info = &def.info;
    let (outer, row) = shape.split_at(shape.len().saturating_sub(1));
    let operand = |k: usize| {
        // An operand that a row has once has no last dimension, and a weight has no other.
        let shape = match () {
            () if info.is_row_operand(k) => outer,
            () if info.is_weight(k) => row,
            () => shape,
        };
        Tensor::empty(&Device::cpu(), info.operand_type(k, dtype), shape).map_err(Error::from)
    };
    let operands = (0..info.operands.len()).map(operand).collect::<Result<Vec<_>>>()?;
    let mut views: Vec<TensorView<'_>> = operands.iter().map(Tensor::view).collect();
    // A weight a channel needs two dimensions.
    if info.channel_operands != 0 && shape.len() < 2 {
        for view in &mut views {
            *view = view.unsqueeze(0)?;
        }
    }
    let operands: Vec<Operand<'_>> = views.into_iter().map(Operand::View).collect();
    let kernel = def.kernel(&[]).strategy(strategy);
    let made = kernel.results(&operands)?.into_iter().map(|(dtype, shape)| Tensor::empty(&Device::cpu(), dtype, shape));
    let results = made.collect::<pointwise::Result<Vec<_>>>()?;
    let plan = kernel.plan(&operands, &results.iter().map(Tensor::view).collect::<Vec<_>>())?;
    Ok(Served {
        kernel: def.kernel_for(dtype, &plan)?.symbol().to_owned(),
        launch: match plan.lanes {
            lanes if let Some(row) = plan.row => {
                let accesses =
                    if lanes == 1 { "single elements".to_owned() } else { format!("{lanes} elements a vector") };
                format!("rows, {} ({}), {accesses}, {} threads a block", row.name(), plan.strategy, plan.threads)
            }
            1 => format!("{} ({}), single elements, {} a thread", plan.strategy, plan.class, plan.group),
            lanes => format!("{} ({}), {lanes} elements a vector", plan.strategy, plan.class),
        },
        replaced: plan.replaced,
    })
}

/// The instructions of an entry's text.
fn instructions(ptx: &str) -> usize {
    let body = ptx.split_once("\n{").map_or("", |(_, body)| body);
    let is_one = |line: &&str| line.ends_with(';') && !line.starts_with(['.', '{', '/']);
    body.lines().map(str::trim).filter(is_one).count()
}

/// The registers of a kernel and the bytes of its code, by the lines `NAME REGISTERS/BYTES` of a text.
fn machine_code(kernel: &str, text: &str) -> Option<(u32, u32)> {
    let figures = text.lines().find_map(|line| line.strip_prefix(kernel)?.strip_prefix(' '))?;
    let (registers, bytes) = figures.split_once('/')?;
    Some((registers.parse().ok()?, bytes.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_op_can_be_explained_in_every_type() {
        for op in Op::all().filter(|op| op.has_oracle()) {
            for &dtype in op.info().types {
                let args = Explain {
                    op: Some(op.info().name.to_owned()),
                    expr: None,
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
    fn a_plan_names_the_kernel_of_rows() {
        for (row, kernel) in [(1024, "held"), (1001, "staged"), (50_001, "streamed"), (7, "streamed")] {
            let softmax = Op::find("softmax").unwrap().def().unwrap();
            let served = served(softmax, DType::BF16, &[4, row], Strategy::Auto).unwrap();
            assert_eq!(served.kernel, format!("formula_softmax_bf16_{kernel}"));
            assert!(served.launch.starts_with(&format!("rows, {kernel} ")), "{}", served.launch);
        }
    }

    #[test]
    fn machine_code_is_that_of_the_kernel() {
        let text = "# sm_90. Entries as NAME REGISTERS/BYTES.\nlookup_flat 38/5376\nunary_ge_f32_flat 8/9\n\
                    unary_gelu_f32_flat 30/3840\nunary_gelu_f32_strided 31/5248\n";
        assert_eq!(machine_code("unary_gelu_f32_strided", text), Some((31, 5248)));
        assert_eq!(machine_code("lookup_flat", text), Some((38, 5376)));
        assert_eq!(machine_code("unary_gelu_f32_rows", text), None);
        let ours = Op::find("gelu").unwrap();
        let served = served(ours.def().unwrap(), DType::F32, &[1024, 4096], Strategy::Auto).unwrap();
        assert!(machine_code(&served.kernel, REGISTERS).is_some(), "{}", served.kernel);
    }

    #[test]
    fn instructions_are_counted_without_directives() {
        assert_eq!(instructions(".entry a(\n)\n{\n\t.reg .b32 %r<2>;\n\tmov.b32 \t%r1, 0;\n$L:\n\tret;\n}\n"), 2);
    }
}
