//! The ops of the family as the command runs them: by their data, so that a new op needs no change here.

use pointwise::{
    DType, Number, Operand, Strategy, Tensor,
    info::{self, OpInfo},
    kernel::OpDef,
};
use pointwise_core::op::MAX_PARAMS;

use crate::error::{Error, Result, did_you_mean, nearest};

/// An op's scalar parameters, in the order of [`OpInfo::params`].
pub(crate) type Params = [Number; MAX_PARAMS];

/// An op.
#[derive(Clone, Copy)]
pub(crate) struct Op(pub(crate) &'static OpDef);

/// A result with its name in a file.
pub(crate) type Named = (&'static str, Tensor);

/// The strategy that ran instead of the given one, and the reason.
pub(crate) type Replaced = (Strategy, &'static str);

impl Op {
    /// Every op, in the order of `info::all`, then those on rows.
    pub(crate) fn all() -> impl Iterator<Item = Op> {
        info::all().chain(info::rows()).map(Op)
    }

    /// Finds an op by its name.
    ///
    /// # Errors
    /// An unknown name; the error has names that are near.
    pub(crate) fn find(name: &str) -> Result<Op> {
        Op::all().find(|op| op.info().name == name).ok_or_else(|| {
            let others = crate::special::names().chain(crate::rope::names());
            let near = did_you_mean(&nearest(name, Op::all().map(|op| op.info().name).chain(others)));
            Error::Usage(format!("no op {name:?}{near} (`pointwise list` has them all)"))
        })
    }

    /// Its entry in the table.
    pub(crate) fn info(self) -> &'static OpInfo {
        &self.0.info
    }

    /// The names of its tensors in files and settings.
    pub(crate) fn arguments(self) -> &'static [&'static str] {
        self.info().arguments()
    }

    /// The operands that may be numbers.
    pub(crate) fn scalars(self) -> &'static [&'static str] {
        let (arguments, operands) = (self.arguments(), self.info().operands);
        match arguments {
            [_] => &[],
            // The last holds two operands.
            [others @ .., _] if arguments.len() < operands.len() => others,
            _ => arguments,
        }
    }

    /// True if `none` leaves argument `k` out: `clamp_tensor` needs only one of its bounds.
    pub(crate) fn is_optional(self, k: usize) -> bool {
        self.info().name == CLAMP && k > 0
    }

    /// The element types of argument `k`.
    pub(crate) fn types(self, k: usize) -> &'static [DType] {
        match self.info().operand_types.get(k) {
            Some(Some(fixed)) => std::slice::from_ref(fixed),
            _ => self.info().types,
        }
    }

    /// True if it has a kernel of a strategy for operands of a type.
    pub(crate) fn serves(self, strategy: Strategy, dtype: DType) -> bool {
        strategy.serves(self.info(), dtype)
    }

    /// Runs it on operands in the order of their names; [`Number::Default`] stands for an operand that is left out.
    /// Also says which strategy ran on a CUDA device, if the given one could not serve.
    ///
    /// # Errors
    /// The errors of the library.
    pub(crate) fn run(
        self,
        operands: &[Operand<'_>],
        params: Params,
        strategy: Strategy,
    ) -> Result<(Vec<Named>, Option<Replaced>)> {
        let wrong = || {
            let (name, takes, got) = (self.info().name, self.arguments().join(", "), operands.len());
            Error::Failed(format!("{name} takes the operands {takes}, got {got}"))
        };
        let has_plan = operands.iter().any(|operand| matches!(operand, Operand::View(x) if !x.device().is_cpu()));
        let replaced = |(strategy, replaced): (Strategy, Option<&'static str>)| replaced.map(|why| (strategy, why));
        let def = self.0;
        let (results, plan) = match operands {
            [x, open, bound] if self.info().name == CLAMP && is_open(open) => {
                return bounded("minimum")?.run(&[*x, *bound], params, strategy);
            }
            [x, bound, open] if self.info().name == CLAMP && is_open(open) => {
                return bounded("maximum")?.run(&[*x, *bound], params, strategy);
            }
            operands if operands.len() == self.arguments().len() => {
                let kernel = def.kernel(&params).strategy(strategy);
                let results = kernel.run(operands)?;
                let views: Vec<_> = results.iter().map(Tensor::view).collect();
                let plan = has_plan.then(|| kernel.plan(operands, &views)).transpose()?;
                (results, plan.map(|plan| (plan.strategy, plan.replaced)))
            }
            _ => return Err(wrong()),
        };
        let named = self.info().outputs().iter().copied().zip(results).collect();
        Ok((named, plan.and_then(replaced)))
    }
}

/// The op whose bounds may be left out.
const CLAMP: &str = "clamp_tensor";

fn is_open(operand: &Operand<'_>) -> bool {
    matches!(operand, Operand::Number(Number::Default))
}

/// The op that `clamp_tensor` runs with one bound.
fn bounded(name: &str) -> Result<Op> {
    info::op(name).map(Op).ok_or_else(|| Error::Failed(format!("{CLAMP} with one bound needs {name}")))
}
