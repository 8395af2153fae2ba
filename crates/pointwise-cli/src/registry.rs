//! The ops the command knows: one variant a kind, so that a new op of a known kind needs nothing here.

use pointwise::{DType, Number, OpInfo, Plan, Strategy, Tensor, UNARY, UnaryDef};
use pointwise_core::op::MAX_PARAMS;

use crate::error::{Error, Result, did_you_mean, nearest};

/// An op's scalar parameters, in the order of [`OpInfo::params`].
pub(crate) type Params = [Number; MAX_PARAMS];

/// An op.
#[derive(Clone, Copy)]
pub(crate) enum Op {
    /// `x -> y`.
    Unary(&'static UnaryDef),
}

/// A result by the name it has in a file.
pub(crate) type Named = (&'static str, Tensor);

impl Op {
    /// Every op, in the order of the tables.
    pub(crate) fn all() -> impl Iterator<Item = Op> {
        UNARY.iter().copied().map(Op::Unary)
    }

    /// The op of a name.
    ///
    /// # Errors
    /// An unknown name; the error has names that are near.
    pub(crate) fn find(name: &str) -> Result<Op> {
        Op::all().find(|op| op.info().name == name).ok_or_else(|| {
            let near = did_you_mean(&nearest(name, Op::all().map(|op| op.info().name).chain(crate::rope::names())));
            Error::Usage(format!("no op {name:?}{near} (`pointwise list` has them all)"))
        })
    }

    /// What its table says of it.
    pub(crate) fn info(self) -> &'static OpInfo {
        match self {
            Op::Unary(def) => &def.info,
        }
    }

    /// Whether it has a kernel of a strategy for operands of a type.
    pub(crate) fn serves(self, strategy: Strategy, dtype: DType) -> bool {
        match self {
            Op::Unary(def) => strategy.serves_unary(dtype, def.info.result),
        }
    }

    /// Runs it on operands in the order of their names. Also says what was launched, on a CUDA device.
    ///
    /// # Errors
    /// Those of the library.
    pub(crate) fn run(
        self,
        operands: &[&Tensor],
        params: Params,
        strategy: Strategy,
    ) -> Result<(Vec<Named>, Option<Plan>)> {
        match (self, operands) {
            (Op::Unary(def), [x]) => {
                let kernel = def.kernel_with(params).strategy(strategy);
                let y = kernel.run(*x)?;
                let plan = if x.device().is_cuda() { Some(kernel.plan(*x, &y)?) } else { None };
                Ok((vec![("y", y)], plan))
            }
            (op, _) => Err(Error::Failed(format!(
                "{} takes the operands {}, got {} tensors",
                op.info().name,
                op.info().arguments().join(", "),
                operands.len()
            ))),
        }
    }
}
