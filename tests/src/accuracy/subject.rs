//! An op of any table, as the sweep sees it.

use pointwise::{
    Accuracy, DType, Device, GradientDef, MASKED_FILL, MapDef, Number, OpInfo, Result, Strategy, Tensor, UnaryDef, ops,
};
use pointwise_cli::formulas;
use pointwise_core::op::MAX_PARAMS;
use pointwise_core::{Element, Kind};

use crate::judge::{self, Report};
use crate::{gradients, map, with_element};

/// Parameters have their defaults.
const DEFAULTS: [Number; MAX_PARAMS] = [Number::Default; MAX_PARAMS];

/// Ops whose formula PyTorch rounds to f32 at every step, so that the exact value is another number: those steps are
/// what their results are compared with.
const BY_STEPS: [&str; 3] = ["div_trunc", "floor_divide", "lerp"];

/// What `masked_fill` fills with: a value that no type but f64 holds, so that its rounding is seen.
const FILL: f64 = 0.3;

/// An op, whatever its number of operands and results.
#[derive(Clone, Copy, Debug)]
pub enum Subject {
    /// Of one operand.
    Unary(&'static UnaryDef),
    /// Of two or three; gradients of ops of one operand are of two.
    Several(&'static MapDef),
    /// The gradients of an op of several operands.
    Gradients(&'static GradientDef),
    /// `masked_fill` with a number.
    Fill,
}

/// Every op that has float types, of every table.
pub fn subjects() -> impl Iterator<Item = Subject> {
    let unary = crate::unary().map(Subject::Unary);
    let several = map::all().map(Subject::Several).chain([Subject::Fill]);
    let all = unary.chain(several).chain(gradients::all().map(Subject::Gradients));
    all.filter(|subject| subject.info().supports(DType::F32))
}

impl Subject {
    /// The row.
    #[must_use]
    pub fn info(self) -> &'static OpInfo {
        match self {
            Subject::Unary(def) => &def.info,
            Subject::Several(def) => &def.info,
            Subject::Gradients(def) => &def.info,
            Subject::Fill => &MASKED_FILL,
        }
    }

    /// A name for each result: the op's, behind which `/grad_a` and the like stand for gradients of several operands.
    #[must_use]
    pub fn results(self) -> Vec<String> {
        let info = self.info();
        match self {
            Subject::Gradients(_) => info.results.iter().map(|result| format!("{}/{result}", info.name)).collect(),
            _ => vec![info.name.to_owned()],
        }
    }

    /// The operands that are tensors.
    #[must_use]
    pub fn operands(self) -> &'static [&'static str] {
        match self {
            Subject::Fill => &["x", "mask"],
            _ => self.info().operands,
        }
    }

    /// The element type of operand `k` of a call on `dtype`.
    #[must_use]
    pub fn operand_type(self, dtype: DType, k: usize) -> DType {
        match self {
            Subject::Fill if k == 1 => DType::Bool,
            Subject::Fill => dtype,
            _ => map::operand_type(self.info(), dtype, k),
        }
    }

    /// Whether the op is the gradient of one of one operand: of `grad` and `x`.
    #[must_use]
    pub fn is_backward(self) -> bool {
        self.info().kind == Kind::Backward
    }

    /// Runs the op on elements given as bytes; each result as bytes.
    ///
    /// # Errors
    /// Those of the library.
    pub fn run(self, device: &Device, dtype: DType, operands: &[Vec<u8>]) -> Result<Vec<Vec<u8>>> {
        let tensors = operands.iter().enumerate().map(|(k, bytes)| {
            let dtype = self.operand_type(dtype, k);
            Tensor::from_bytes(device, dtype, bytes, [bytes.len() / dtype.size()])
        });
        let tensors = tensors.collect::<Result<Vec<_>>>()?;
        let one = |y: Tensor| Ok(vec![y.to_bytes()?]);
        match self {
            Subject::Unary(def) => one(def.kernel().run(&tensors[0])?),
            Subject::Several(def) => one(map::run(def, &DEFAULTS, Strategy::Auto, &tensors)?),
            Subject::Fill => one(ops::masked_fill(&tensors[0], &tensors[1], FILL)?),
            Subject::Gradients(def) => {
                gradients::run(def, &DEFAULTS, Strategy::Auto, &tensors)?.iter().map(Tensor::to_bytes).collect()
            }
        }
    }

    /// Compares each result with the exact ones; gradients with their formula, every step rounded to f32, as their
    /// bounds are about.
    #[must_use]
    pub fn judge(self, dtype: DType, operands: &[Vec<u8>], results: &[Vec<u8>]) -> Vec<Report> {
        match self {
            Subject::Unary(def) => vec![judge::unary(def, dtype, &DEFAULTS, &operands[0], &results[0])],
            Subject::Several(def) if self.is_backward() => {
                vec![gradients::backward_report(def, dtype, &DEFAULTS, operands, &results[0])]
            }
            Subject::Several(def) => vec![several(def, dtype, operands, &results[0])],
            Subject::Fill => vec![filled(dtype, operands, &results[0])],
            Subject::Gradients(def) => gradients::reports(def, dtype, &DEFAULTS, operands, results),
        }
    }
}

fn filled(dtype: DType, operands: &[Vec<u8>], y: &[u8]) -> Report {
    with_element!(dtype, E => {
        let mut report = Report::default();
        let value = <E as Element>::from_f64(FILL).to_f64();
        for (i, (x, y)) in operands[0].chunks_exact(size_of::<E>()).zip(y.chunks_exact(size_of::<E>())).enumerate() {
            let (x, mask) = (judge::from_bytes::<E>(x).to_f64(), operands[1][i] != 0);
            let exact = if mask { value } else { x };
            report.add_at([x, f64::from(u8::from(mask)), 0.0], exact, judge::from_bytes::<E>(y), dtype);
        }
        report
    })
}

fn several(def: &MapDef, dtype: DType, operands: &[Vec<u8>], y: &[u8]) -> Report {
    let info = &def.info;
    let result = info.result.of(dtype);
    let oracle = def.oracle_for(dtype, &DEFAULTS).expect("the defaults are valid").expect("floats have an oracle");
    let by_steps = BY_STEPS.contains(&info.name);
    let is_narrow = dtype != DType::F32 && info.accuracy == Accuracy::Exact;
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
                _ if by_steps => formulas::stepped(info.name, x.map(|x| x as f32), 1.0).map_or(f64::NAN, f64::from),
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
