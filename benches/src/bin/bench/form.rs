//! Turns a row's name and parameters into the op that it calls, and counts the bytes that the call moves.

use pointwise::rope::{RopeDef, RopeOp, rope_op};
use pointwise::{
    DType, Number, Philox, Strategy,
    info::{CHOICES, op},
    kernel::OpDef,
};
use pointwise_core::OpInfo;
use pointwise_core::op::MAX_PARAMS;

use crate::workload::Row;
use pointwise_cli::error::{Error, Result};

/// An op's parameters, in the order of [`OpInfo::params`].
type Params = [Number; MAX_PARAMS];

/// The op of a row, with its parameters.
#[derive(Debug)]
pub(crate) enum Form {
    /// A device-to-device copy.
    Copy,
    Op(OpCall),
    /// `clamp` with tensors as bounds; one may be missing.
    ClampBounds {
        min: bool,
        max: bool,
    },
    MaskedFill {
        value: f64,
        /// The value is a tensor of no dimensions: `where` serves it.
        tensor: bool,
    },
    Rope(Rope),
}

/// An op by its data.
#[derive(Debug)]
pub(crate) struct OpCall {
    pub(crate) def: &'static OpDef,
    pub(crate) params: Params,
    pub(crate) strategy: Strategy,
    /// The last operand, if it is a number.
    pub(crate) last: Option<Number>,
    /// The place that a random op draws from.
    pub(crate) place: Philox,
}

/// A rotary embedding.
#[derive(Debug)]
pub(crate) struct Rope {
    pub(crate) def: &'static RopeDef,
    pub(crate) op: RopeOp,
    pub(crate) angles: Angles,
}

/// The source of a row's angles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Angles {
    /// Computed in the kernel.
    Frequencies,
    /// Tables of cosines and sines in the element type, a row a position.
    Tables,
    /// Such tables of this many rows, and an i32 position id a token.
    Ids(usize),
}

/// A parameter that the op of a row cannot take.
fn refuse(row: &Row, name: &str, value: &str) -> Error {
    Error::Failed(format!("no call of {} with {name}={value}", row.op))
}

impl Form {
    /// The op of a row.
    ///
    /// # Errors
    /// No such op, or not with these parameters: in words that go into the row's report.
    pub(crate) fn of(row: &Row) -> Result<Form> {
        let strategy = match row.param("strategy") {
            None => Strategy::Auto,
            Some(name) => Strategy::from_name(name).ok_or_else(|| refuse(row, "strategy", name))?,
        };
        let number = |name: &str| -> Result<Option<f64>> {
            // "-100.0 (0-dim tensor)": the number is the first word.
            let word = |text: &str| text.split(' ').next().and_then(|word| word.parse().ok());
            row.param(name).map(|text| word(text).ok_or_else(|| refuse(row, name, text))).transpose()
        };
        let tensor = |name: &str| row.param(name) == Some("tensor");
        // These calls have no settings of a launch.
        let is_asked_in_vain = match row.op.as_str() {
            "copy" | "masked_fill" => strategy != Strategy::Auto,
            "clamp" => strategy != Strategy::Auto && (tensor("min") || tensor("max")),
            _ => false,
        };
        if is_asked_in_vain {
            return Err(refuse(row, "strategy", strategy.name()));
        }
        match row.op.as_str() {
            "copy" => return Ok(Form::Copy),
            "clamp" if tensor("min") || tensor("max") => {
                return Ok(Form::ClampBounds { min: tensor("min"), max: tensor("max") });
            }
            "masked_fill" => {
                let value = number("value")?.ok_or_else(|| refuse(row, "value", "(none)"))?;
                let tensor = row.param("value").is_some_and(|text| text.contains("tensor"));
                return Ok(Form::MaskedFill { value, tensor });
            }
            _ => {}
        }
        // Rows of `workloads.csv` name ops and parameters as TileOPs does.
        let unknown = || Error::Failed(format!("no op {}", row.op));
        let choice = CHOICES.iter().find(|choice| choice.op == row.op);
        let name = match (row.op.as_str(), choice.and_then(|choice| choice.chosen(row.param(choice.param)?))) {
            (_, Some(chosen)) => chosen,
            ("rope_neox_position_ids", _) => "rope_neox",
            (name, _) => name,
        };
        if let Some(def) = rope_op(name) {
            return rope(row, def);
        }
        let def = op(name).ok_or_else(unknown)?;
        let info = &def.info;
        // A weight is the last operand of such ops.
        let is_weighted = info.operands.len() == 3 && !info.is_gradient();
        let last = if is_weighted && !tensor("weight") { number("weight")?.map(Number::Float) } else { None };
        let params = if is_weighted { [Number::Default; MAX_PARAMS] } else { params(row, info)? };
        let place = Philox::new(number("seed")?.unwrap_or(0.0) as u64);
        Ok(Form::Op(OpCall { def, params, strategy, last, place }))
    }

    /// The op's element type of the result.
    pub(crate) fn result(&self, dtype: DType) -> DType {
        match self {
            Form::Op(op) => op.def.info.result_type(0, dtype),
            _ => dtype,
        }
    }

    /// The element type of operand `k`.
    pub(crate) fn operand(&self, k: usize, dtype: DType) -> DType {
        match self {
            Form::MaskedFill { .. } if k == 1 => DType::Bool,
            Form::Op(op) => op.def.info.operand_type(k, dtype),
            _ => dtype,
        }
    }

    /// The number of results, of one shape.
    pub(crate) fn results(&self) -> usize {
        match self {
            Form::Op(op) => op.def.info.outputs().len(),
            _ => 1,
        }
    }

    /// True if the op reads nothing: its ceiling is a memset.
    pub(crate) fn writes_only(&self) -> bool {
        matches!(self, Form::Op(op) if op.def.info.is_of_indices())
    }

    /// The result's shape.
    pub(crate) fn shape(&self, row: &Row) -> Vec<usize> {
        match self {
            Form::Op(op) if op.def.takes_halves() => {
                // Halves of one tensor: of the operand, or of the gradients' result.
                let mut shape = row.shapes[row.shapes.len() - 1].clone();
                if let (Some(last), false) = (shape.last_mut(), op.def.info.is_gradient()) {
                    *last /= 2;
                }
                shape
            }
            // A weight a channel, and ids, are no broadcast.
            Form::Op(op) if op.def.info.channel_operands != 0 => row.shapes[0].clone(),
            Form::Rope(_) => row.shapes[0].clone(),
            _ => broadcast(&row.shapes),
        }
    }

    /// The bytes that a perfect kernel moves: each operand read once, unexpanded, and the result written once. RoPE's
    /// tables are counted in the element type, with ids at full length, whatever the kernel reads of them.
    pub(crate) fn bytes(&self, row: &Row) -> u64 {
        let numel = |shape: &[usize]| shape.iter().map(|&size| size as u64).product::<u64>();
        let size = row.dtype.size() as u64;
        let written = self.results() as u64 * numel(&self.shape(row)) * self.result(row.dtype).size() as u64;
        let operand = |(k, shape): (usize, &Vec<usize>)| numel(shape) * self.operand(k, row.dtype).size() as u64;
        let read: u64 = match self {
            form if form.writes_only() => 0,
            Form::Rope(rope) => {
                let x = &row.shapes[0];
                let lanes = x.last().map_or(0, |&lanes| lanes as u64);
                let table = match rope.angles {
                    Angles::Frequencies => 0,
                    Angles::Tables => self.sequence(row) as u64 * lanes * size,
                    Angles::Ids(rows) => rows as u64 * lanes * size + 4 * x[0] as u64,
                };
                numel(x) * size + table
            }
            _ => row.shapes.iter().enumerate().map(operand).sum(),
        };
        read + written
    }

    /// Tokens of a sequence of a rotary row.
    pub(crate) fn sequence(&self, row: &Row) -> usize {
        match row.shapes[0][..] {
            [_, sequence, _, _] => sequence,
            [sequence, ..] => sequence,
            [] => 1,
        }
    }
}

fn rope(row: &Row, def: &'static RopeDef) -> Result<Form> {
    let mut op = def.op();
    let (mut ids, mut angles) = (None, Angles::Tables);
    for (name, value) in &row.params {
        let setting = match name.as_str() {
            "base" => "rope_theta",
            "scale_factor" | "scale" => "factor",
            "attn_factor" => "attention_factor",
            "original_max_position" => "original_max_position_embeddings",
            "max_position" => {
                ids = Some(value.parse().map_err(|_| refuse(row, name, value))?);
                continue;
            }
            "angles" if value == "frequencies" => {
                angles = Angles::Frequencies;
                continue;
            }
            // The shape gives the layout; ids are i32 in the row, too.
            "layout" | "positions" => continue,
            "rescale_factors" | "rotary_dim" if value == "None" => continue,
            other => other,
        };
        op = op.set(setting, value).map_err(|_| refuse(row, name, value))?;
    }
    Ok(Form::Rope(Rope { def, op, angles: ids.map_or(angles, Angles::Ids) }))
}

/// The parameters of an op; `None` is the default.
fn params(row: &Row, info: &OpInfo) -> Result<Params> {
    let mut params = [Number::Default; MAX_PARAMS];
    for (name, value) in &row.params {
        // The choice of the op says it already.
        let is_choice = CHOICES.iter().any(|choice| {
            choice.op == row.op && choice.param == name && (value == "None" || choice.chosen(value).is_some())
        });
        if is_choice || (name.as_str(), value.as_str()) == ("decimals", "0") {
            continue;
        }
        // The shape of the row, and the place to draw from, are no parameters of the formula.
        let is_beside = name == "strategy" || info.shape.contains(&name.as_str()) || info.is_random() && name == "seed";
        if is_beside {
            continue;
        }
        let own_name = match (info.name, name.as_str()) {
            ("hardtanh", "min") => "min_val",
            ("hardtanh", "max") => "max_val",
            (_, name) => name,
        };
        let at = info.params.iter().position(|param| param.name == own_name).ok_or_else(|| refuse(row, name, value))?;
        params[at] = match (value.as_str(), value.parse::<i64>(), value.parse::<f64>()) {
            ("None", ..) => Number::Default,
            (_, Ok(whole), _) => Number::Int(whole),
            (_, _, Ok(float)) => Number::Float(float),
            _ => return Err(refuse(row, name, value)),
        };
    }
    Ok(params)
}

/// The shape that shapes broadcast to.
fn broadcast(shapes: &[Vec<usize>]) -> Vec<usize> {
    let rank = shapes.iter().map(Vec::len).max().unwrap_or(0);
    let size = |shape: &Vec<usize>, from_end: usize| {
        shape.len().checked_sub(from_end).and_then(|at| shape.get(at)).copied().unwrap_or(1)
    };
    (1..=rank).rev().map(|k| shapes.iter().map(|shape| size(shape, k)).max().unwrap_or(1)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::{read_params, reference};

    fn first(op: &str) -> Row {
        reference().unwrap().into_iter().find(|row| row.op == op).unwrap()
    }

    #[test]
    fn parameters_reach_the_op() {
        let Form::Op(op) = Form::of(&first("hardtanh")).unwrap() else { panic!("no op") };
        assert_eq!(
            (op.def.info.name, op.params[..2].to_vec()),
            ("hardtanh", vec![Number::Float(-1.0), Number::Float(1.0)])
        );
        let mut gelu = first("gelu");
        gelu.params = read_params("approximate=tanh").unwrap();
        assert!(matches!(Form::of(&gelu).unwrap(), Form::Op(op) if op.def.info.name == "gelu_tanh"));
        let mut add = first("add");
        add.params = read_params("strategy=direct").unwrap();
        assert!(matches!(Form::of(&add).unwrap(), Form::Op(op) if op.strategy == Strategy::Direct));
        assert!(matches!(Form::of(&first("masked_fill")).unwrap(), Form::MaskedFill { value: -100.0, tensor: true }));
        let Form::Rope(rope) = Form::of(&first("rope_neox_position_ids")).unwrap() else { panic!("not rope") };
        assert_eq!((rope.def.name, rope.angles), ("rope_neox", Angles::Ids(4096)));
    }

    #[test]
    fn what_cannot_be_called_is_said() {
        let mut row = first("relu");
        row.params = read_params("slope=2").unwrap();
        assert!(Form::of(&row).unwrap_err().to_string().contains("slope=2"));
        for (op, params) in [("copy", ""), ("clamp", "min=tensor;"), ("masked_fill", "value=1;")] {
            row.op = op.to_owned();
            row.params = read_params(&format!("{params}strategy=direct")).unwrap();
            assert!(Form::of(&row).unwrap_err().to_string().contains("strategy=direct"), "{op}");
        }
        row.op = "frobnicate".to_owned();
        assert!(Form::of(&row).unwrap_err().to_string().contains("no op frobnicate"));
    }

    #[test]
    fn shapes_broadcast() {
        assert_eq!(broadcast(&[vec![16, 256, 7, 5], vec![256, 1, 1]]), [16, 256, 7, 5]);
        assert_eq!(broadcast(&[vec![1, 4], vec![3, 1]]), [3, 4]);
    }
}
