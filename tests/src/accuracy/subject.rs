//! An op of the family, as the accuracy sweep needs it.

use pointwise::{
    DType, Device, Number, Result, Strategy, Tensor,
    info::{MASKED_FILL, OpInfo},
    ops,
};
use pointwise_core::Element;
use pointwise_core::op::MAX_PARAMS;
use pointwise_testkit::{Op, Report, judge, with_element};

/// Parameters have their defaults.
const DEFAULTS: [Number; MAX_PARAMS] = [Number::Default; MAX_PARAMS];

/// The value of `masked_fill`: no type but f64 holds it, so that its rounding is seen.
const FILL: f64 = 0.3;

/// An op of the registry, or `masked_fill`.
#[derive(Clone, Copy, Debug)]
pub enum Subject {
    /// An op of the registry.
    Op(Op),
    /// `masked_fill` with a number.
    Fill,
}

/// Every op that has float types.
pub fn subjects() -> impl Iterator<Item = Subject> {
    let all = crate::all().map(|def| Subject::Op(def.into())).chain([Subject::Fill]);
    all.filter(|subject| subject.info().supports(DType::F32))
}

impl Subject {
    /// The row.
    #[must_use]
    pub fn info(self) -> &'static OpInfo {
        match self {
            Subject::Op(op) => op.info(),
            Subject::Fill => &MASKED_FILL,
        }
    }

    /// A name for each result: the op's name, followed by `/grad_a` and the like for gradients of several operands.
    #[must_use]
    pub fn results(self) -> Vec<String> {
        let info = self.info();
        match self {
            Subject::Op(_) if info.results.len() > 1 => {
                info.results.iter().map(|result| format!("{}/{result}", info.name)).collect()
            }
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
            _ => self.info().operand_type(k, dtype),
        }
    }

    /// True if the op is the gradient of an op of one operand: it takes `grad` and `x`.
    #[must_use]
    pub fn is_backward(self) -> bool {
        self.info().is_gradient() && self.info().results.len() == 1
    }

    /// Runs the op on elements given as bytes; each result as bytes.
    ///
    /// # Errors
    /// The errors of the library.
    pub fn run(self, device: &Device, dtype: DType, operands: &[Vec<u8>]) -> Result<Vec<Vec<u8>>> {
        match self {
            Subject::Op(op) => op.run(device, dtype, &DEFAULTS, Strategy::Auto, operands),
            Subject::Fill => {
                let tensor = |k: usize| {
                    let (dtype, bytes) = (self.operand_type(dtype, k), &operands[k]);
                    Tensor::from_bytes(device, dtype, bytes, [bytes.len() / dtype.size()])
                };
                Ok(vec![ops::masked_fill(&tensor(0)?, &tensor(1)?, FILL)?.to_bytes()?])
            }
        }
    }

    /// Compares each result with the exact one. Gradients are compared with their formula, every step rounded to f32,
    /// because their bounds say it so.
    ///
    /// # Errors
    /// The errors of the library.
    pub fn judge(self, dtype: DType, operands: &[Vec<u8>], results: &[Vec<u8>]) -> Result<Vec<Report>> {
        match self {
            Subject::Op(op) => op.judge(dtype, &DEFAULTS, operands, results),
            Subject::Fill => Ok(vec![filled(dtype, operands, &results[0])]),
        }
    }
}

fn filled(dtype: DType, operands: &[Vec<u8>], y: &[u8]) -> Report {
    with_element!(dtype, E => {
        let value = <E as Element>::from_f64(FILL).to_f64();
        let x = operands[0].chunks_exact(size_of::<E>()).map(|x| judge::from_bytes::<E>(x).to_f64());
        judge::compare(dtype, y, x.zip(&operands[1]).map(|(x, &mask)| if mask != 0 { value } else { x }))
    })
}
