//! An op of any table, as the sweep sees it.

use pointwise::{Accuracy, DType, Device, MapDef, Number, OpInfo, Result, Strategy, Tensor, UnaryDef};
use pointwise_cli::formulas;
use pointwise_core::op::MAX_PARAMS;
use pointwise_core::{Element, Kind};

use crate::judge::{self, Report};
use crate::{map, with_element};

/// Parameters have their defaults.
const DEFAULTS: [Number; MAX_PARAMS] = [Number::Default; MAX_PARAMS];

/// Ops whose formula PyTorch rounds to f32 at every step, so that the exact value is another number: those steps are
/// what their results are compared with.
const BY_STEPS: [&str; 3] = ["div_trunc", "floor_divide", "lerp"];

/// An op, whatever its number of operands.
#[derive(Clone, Copy, Debug)]
pub enum Subject {
    /// Of one operand.
    Unary(&'static UnaryDef),
    /// Of two or three.
    Several(&'static MapDef),
}

/// Every op that has float types, of every table.
pub fn subjects() -> impl Iterator<Item = Subject> {
    let unary = pointwise::UNARY.iter().copied().map(Subject::Unary);
    unary.chain(map::all().map(Subject::Several)).filter(|subject| subject.info().supports(DType::F32))
}

impl Subject {
    /// The row.
    #[must_use]
    pub fn info(self) -> &'static OpInfo {
        match self {
            Subject::Unary(def) => &def.info,
            Subject::Several(def) => &def.info,
        }
    }

    /// The element type of operand `k` of a call on `dtype`.
    #[must_use]
    pub fn operand_type(self, dtype: DType, k: usize) -> DType {
        map::operand_type(self.info(), dtype, k)
    }

    /// Runs the op on elements given as bytes.
    ///
    /// # Errors
    /// Those of the library.
    pub fn run(self, device: &Device, dtype: DType, operands: &[Vec<u8>]) -> Result<Vec<u8>> {
        let tensors = operands.iter().enumerate().map(|(k, bytes)| {
            let dtype = self.operand_type(dtype, k);
            Tensor::from_bytes(device, dtype, bytes, [bytes.len() / dtype.size()])
        });
        let tensors = tensors.collect::<Result<Vec<_>>>()?;
        match self {
            Subject::Unary(def) => def.kernel().run(&tensors[0])?.to_bytes(),
            Subject::Several(def) => map::run(def, &DEFAULTS, Strategy::Auto, &tensors)?.to_bytes(),
        }
    }

    /// Whether the op's bound is one from the exact value. A gradient's is from PyTorch's formula with every step in f32.
    #[must_use]
    pub fn is_bounded(self) -> bool {
        self.info().kind != Kind::Backward
    }

    /// Compares the results `y` with the exact ones.
    #[must_use]
    pub fn judge(self, dtype: DType, operands: &[Vec<u8>], y: &[u8]) -> Report {
        match self {
            Subject::Unary(def) => judge::unary(def, dtype, &DEFAULTS, &operands[0], y),
            Subject::Several(def) => several(def, dtype, operands, y),
        }
    }
}

fn several(def: &MapDef, dtype: DType, operands: &[Vec<u8>], y: &[u8]) -> Report {
    let info = &def.info;
    let result = info.result.of(dtype);
    let oracle = def.oracle_for(dtype, &DEFAULTS).expect("the defaults are valid").expect("floats have an oracle");
    let by_steps = BY_STEPS.contains(&info.name);
    let is_narrow = dtype != DType::F32 && info.accuracy == Accuracy::Exact && info.kind != Kind::Backward;
    with_element!(dtype, E => with_element!(result, R => {
        let mut report = Report::default();
        for (i, y) in y.chunks_exact(size_of::<R>()).enumerate() {
            let operand = |k: usize| match operands.get(k) {
                None => 0.0,
                Some(bytes) if info.kind == Kind::Select && k == 0 => f64::from(u8::from(bytes[i] != 0)),
                Some(bytes) => judge::from_bytes::<E>(&bytes[i * size_of::<E>()..(i + 1) * size_of::<E>()]).to_f64(),
            };
            let x = [operand(0), operand(1), operand(2)];
            let exact = match info.kind {
                Kind::Gated => match gated(&oracle, x) {
                    Some(exact) => exact,
                    None => continue,
                },
                _ if by_steps => formulas::steps(info.name, x.map(|x| x as f32), 1.0).map_or(f64::NAN, f64::from),
                // Exact ops of the small types work in f32 and round twice, as PyTorch's.
                _ if is_narrow => f64::from(oracle(x) as f32),
                _ => oracle(x),
            };
            report.add_at(x, exact, judge::from_bytes::<R>(y), result);
        }
        report
    }))
}

/// A gated op's activation is an f32, whose rounding is part of the formula. `None` where it is subnormal: of the few
/// digits left a large value makes any error.
fn gated(oracle: &impl Fn([f64; 3]) -> f64, x: [f64; 3]) -> Option<f64> {
    let activation = oracle([x[0], 1.0, 0.0]) as f32;
    let is_tiny = activation.is_subnormal() || activation == 0.0 && x[0] != 0.0;
    (!is_tiny).then(|| f64::from(activation) * x[1])
}
