//! Kernel objects of ops of one to three operands and a random word for each element.

use super::map::Call;
use super::{MapDef, MapPlan, Operand, Strategy, check, settings, tuned};
use crate::error::Result;
use crate::tensor::{Tensor, TensorView, TensorViewMut};
use crate::{Number, Philox, Stream};

/// An op of [`random_ops!`](pointwise_core::random_ops) with its parameters and launch settings.
///
/// The random word of an element is a function of the call's [`Philox`] and of its row-major index in the result alone,
/// whatever the element type, the strategy, the operands' strides and the device: a later call with an equal one draws
/// the same.
#[derive(Clone, Debug)]
pub struct RandomKernel(Call);

impl MapDef {
    /// The random op with parameters, in the order of [`OpInfo::params`](crate::info::OpInfo::params).
    pub fn random_with(&'static self, params: &[Number]) -> RandomKernel {
        RandomKernel(Call::new(self, params))
    }
}

impl RandomKernel {
    settings!(MapDef);
    tuned!();

    /// The op on its operands, broadcast, in a new contiguous tensor.
    ///
    /// # Errors
    /// Another number of operands than the op has, and those of [`BinaryKernel::run`](crate::kernel::BinaryKernel::run).
    pub fn run(&self, operands: &[Operand<'_>], rng: Philox) -> Result<Tensor> {
        self.at(operands.len(), rng)?.run(operands)
    }

    /// The op on its operands, broadcast, written to `y`. Allocates nothing and waits for nothing, so that a CUDA graph
    /// can capture it (with seed and offset as they are now). `y` may be an operand's very memory.
    ///
    /// # Errors
    /// As [`RandomKernel::run`] and [`BinaryKernel::run_into`](crate::kernel::BinaryKernel::run_into); a `y` that is not
    /// contiguous.
    pub fn run_into<'b>(&self, operands: &[Operand<'_>], y: impl Into<TensorViewMut<'b>>, rng: Philox) -> Result<()> {
        self.at(operands.len(), rng)?.run_into(operands, y.into())
    }

    /// The op, written back to its first operand, whose shape the others must broadcast to.
    ///
    /// # Errors
    /// As [`RandomKernel::run_into`].
    pub fn run_inplace<'a>(&self, a: impl Into<TensorViewMut<'a>>, others: &[Operand<'_>], rng: Philox) -> Result<()> {
        let (call, a) = (self.at(others.len() + 1, rng)?, a.into());
        match *others {
            // What stands first is replaced by `a`.
            [] => call.run_inplace(a, 0, [Operand::Number(Number::Default)]),
            [b] => call.run_inplace(a, 0, [b, b]),
            [b, c, ..] => call.run_inplace(a, 0, [b, b, c]),
        }
    }

    /// What [`RandomKernel::run_into`] would launch on a CUDA device for these tensors.
    ///
    /// # Errors
    /// As there.
    pub fn plan<'a>(&self, operands: &[Operand<'_>], y: impl Into<TensorView<'a>>) -> Result<MapPlan> {
        self.at(operands.len(), Philox::default())?.plan(operands, &y.into())
    }

    /// The call that draws from `rng`, for a number of operands.
    pub(crate) fn at(&self, given: usize, rng: Philox) -> Result<Call> {
        let info = &self.0.def.info;
        if given != info.operands.len() {
            return Err(check::wrong_count(info, "operands", info.operands, given));
        }
        Ok(Call { place: rng, ..self.0.clone() })
    }
}
