//! Makes the tensors of a row, and its call.

use pointwise::rope::{RopeAngles, RopeFrequencies, RopeKernel, RopeLayout, RopePositions, RopePrecision};
use pointwise::{DType, Operand, Strategy, Tensor, TensorView, TensorViewMut, ops};

use crate::form::{Angles, Form, Rope};
use crate::inputs::{Fill, Inputs, tensor_of};
use crate::workload::Row;
use pointwise_cli::error::{Error, Result};

/// A call, to be repeated.
pub(crate) type Call<'a> = dyn FnMut() -> pointwise::Result<()> + 'a;

/// The kernel that a call launches, if it is known.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Ran {
    pub(crate) strategy: Option<Strategy>,
    /// A remark that a reader of the row must know.
    pub(crate) note: Option<String>,
}

impl Ran {
    fn noting(note: &str) -> Ran {
        Ran { strategy: None, note: Some(note.to_owned()) }
    }

    /// The strategy of a plan, with the reason where it is not the one asked for.
    fn of(asked: Strategy, strategy: Strategy, replaced: Option<&'static str>) -> Ran {
        let why = replaced.filter(|_| asked != Strategy::Auto);
        Ran { strategy: Some(strategy), note: why.map(|why| format!("{strategy} instead of {asked}: {why}")) }
    }
}

/// Makes the operands and the result of a row, and hands its call to `measure`. The call runs the op's `_into`
/// function: it allocates nothing.
///
/// # Errors
/// The errors of the op and of `measure`.
pub(crate) fn with<R>(
    inputs: &mut Inputs,
    row: &Row,
    form: &Form,
    measure: impl FnOnce(&mut Call<'_>, Ran) -> Result<R>,
) -> Result<R> {
    if let Form::Rope(rope) = form {
        return with_rope(inputs, row, rope, form.sequence(row), measure);
    }
    let device = *inputs.device();
    let mut x = Vec::new();
    if !form.writes_only() {
        for (k, shape) in row.shapes.iter().enumerate() {
            x.push(inputs.tensor(Fill::of(row, form, k), form.operand(k, row.dtype), shape, k)?);
        }
    }
    let mut y = Tensor::empty(&device, form.result(row.dtype), &form.shape(row)[..])?;
    let is_cuda = device.is_cuda();
    match (form, &x[..]) {
        (Form::Copy, [x]) => measure(&mut || y.copy_from(x), Ran::default()),
        (Form::Op(op), x) => {
            let mut results = vec![y];
            for _ in 1..form.results() {
                results.push(Tensor::empty(&device, form.result(row.dtype), &form.shape(row)[..])?);
            }
            let operands: Vec<Operand<'_>> = x.iter().map(Operand::from).chain(op.last.map(Operand::Number)).collect();
            let kernel = || op.def.kernel(&op.params).strategy(op.strategy).rng(op.place);
            let views: Vec<TensorView<'_>> = results.iter().map(Tensor::view).collect();
            let plan = is_cuda.then(|| kernel().plan(&operands, &views)).transpose()?;
            let ran = plan.map(|plan| Ran::of(op.strategy, plan.strategy, plan.replaced)).unwrap_or_default();
            let call = &mut || {
                let mut results: Vec<TensorViewMut<'_>> = results.iter_mut().map(TensorViewMut::from).collect();
                kernel().run_into(&operands, &mut results)
            };
            measure(call, ran)
        }
        (Form::ClampBounds { min, max }, [x, bounds @ ..]) => {
            let (min, max) = match (min, max, bounds) {
                (true, true, [min, max]) => (Some(min), Some(max)),
                (true, false, [min]) => (Some(min), None),
                (false, true, [max]) => (None, Some(max)),
                _ => return Err(wrong(row)),
            };
            let (min, max) = (min.map(Operand::from), max.map(Operand::from));
            measure(&mut || ops::clamp_into(x, min, max, &mut y), Ran::default())
        }
        (Form::MaskedFill { value, tensor: false }, [x, mask]) => {
            measure(&mut || ops::masked_fill_into(x, mask, *value, &mut y), Ran::default())
        }
        (Form::MaskedFill { value, tensor: true }, [x, mask]) => {
            let value = tensor_of(&device, row.dtype, &[*value as f32], &[])?;
            let ran = Ran::noting("where(mask, value, x), the value a tensor of no dimensions");
            measure(&mut || ops::where_cond_into(mask, &value, x, &mut y), ran)
        }
        _ => Err(wrong(row)),
    }
}

fn wrong(row: &Row) -> Error {
    Error::Failed(format!("{} does not take {} tensors", row.op, row.shapes.len()))
}

fn with_rope<R>(
    inputs: &mut Inputs,
    row: &Row,
    rope: &Rope,
    sequence: usize,
    measure: impl FnOnce(&mut Call<'_>, Ran) -> Result<R>,
) -> Result<R> {
    let device = *inputs.device();
    let shape = &row.shapes[0];
    let x = inputs.tensor(Fill::Normal(0.0), row.dtype, shape, 0)?;
    let mut y = Tensor::empty(&device, row.dtype, &shape[..])?;
    let layout = match shape.len() {
        2 => RopeLayout::Sd,
        3 => RopeLayout::Thd,
        _ => RopeLayout::Bshd,
    };
    let rows = match rope.angles {
        Angles::Ids(rows) => rows,
        _ => sequence,
    };
    let lanes = shape.last().copied().unwrap_or(0);
    let config = rope.op.config(lanes).map_err(pointwise::Error::from)?;
    let frequencies = config.frequencies(rows as u64).map_err(pointwise::Error::from)?;
    let on_device = RopeFrequencies::new(&device, &frequencies)?;
    let pairs = frequencies.inv_freq.len();
    let positions: Vec<i64> = if rope.angles == Angles::Frequencies { Vec::new() } else { (0..rows as i64).collect() };
    let (cos, sin) = frequencies.cos_sin(&positions, RopePrecision::Hf);
    let table = |values: &[f32]| tensor_of(&device, row.dtype, values, &[positions.len(), pairs]);
    let (cos, sin) = (table(&cos)?, table(&sin)?);
    let (angles, note) = match rope.angles {
        Angles::Frequencies => {
            (RopeAngles::Frequencies(&on_device, RopePrecision::Hf), "angles computed in the kernel")
        }
        _ => (RopeAngles::Tables { cos: cos.view(), sin: sin.view() }, "tables in the element type"),
    };
    let ids = match rope.angles {
        Angles::Ids(rows) => Some(inputs.tensor(Fill::Whole(0, rows as i64), DType::I32, &[shape[0]], 1)?),
        _ => None,
    };
    let mut kernel = RopeKernel::new(angles, rope.def.pairs).layout(layout).rotary_dim(frequencies.rotary_dim());
    if let Some(ids) = &ids {
        kernel = kernel.positions(RopePositions::Ids(ids.view()));
    }
    measure(&mut || kernel.run_into(&x, None::<TensorView<'_>>, &mut y, None), Ran::noting(note))
}

#[cfg(test)]
mod tests {
    use pointwise::Device;

    use super::*;
    use crate::{sets, workload};

    /// Every row calls its op, with dimensions cut to 32.
    #[test]
    fn every_row_runs() {
        let mut inputs = Inputs::new(&Device::cpu());
        let rows = [workload::reference().unwrap(), sets::large(), sets::sizes()].concat();
        assert!(rows.len() > 431 + 300, "{}", rows.len());
        for row in rows {
            let form = Form::of(&row).unwrap_or_else(|error| panic!("{row:?}: {error}"));
            let small = row.shrunk(32);
            let run = |call: &mut Call<'_>, _| Ok(call()?);
            with(&mut inputs, &small, &form, run).unwrap_or_else(|error| panic!("{small:?}: {error}"));
        }
    }
}
