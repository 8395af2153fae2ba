//! A request of an op, and its run by the library.

use pointwise::{
    Device, Number, Operand, Strategy, Tensor,
    kernel::{Kernel, OpDef},
    ops,
};

use crate::error::{Error, Result};
use crate::file::Named;
use crate::registry::{Op, Params};
use crate::settings::Settings;
use crate::values::is_optional;

/// The strategy that ran instead of the given one, and the reason.
pub(crate) type Replaced = (Strategy, &'static str);

/// A call of an op, but for its operands.
#[derive(Debug)]
pub(crate) struct Request<'a> {
    pub(crate) params: Params,
    pub(crate) strategy: Strategy,
    pub(crate) settings: &'a Settings,
    pub(crate) device: Device,
    /// The value of `masked_fill`.
    pub(crate) value: Option<Number>,
}

impl Request<'_> {
    /// Runs an op on operands in the order of their names; [`Number::Default`] stands for an operand that is left out.
    /// Also says which strategy ran on a CUDA device, if the given one could not serve.
    ///
    /// # Errors
    /// The errors of the library.
    pub(crate) fn run(&self, op: Op, operands: &[Operand<'_>]) -> Result<(Vec<Named>, Option<Replaced>)> {
        let info = op.info();
        match operands {
            [x, open, bound] if is_optional(op, 1) && is_open(open) => {
                return self.run(Op::chosen("minimum")?, &[*x, *bound]);
            }
            [x, bound, open] if is_optional(op, 1) && is_open(open) => {
                return self.run(Op::chosen("maximum")?, &[*x, *bound]);
            }
            _ if operands.len() == op.arguments().len() => {}
            _ => return Err(wrong(op, operands)),
        }
        let Some(def) = op.def() else {
            let ([Operand::View(x), Operand::View(mask)], Some(value)) = (operands, self.value) else {
                return Err(wrong(op, operands));
            };
            return Ok((vec![("y", ops::masked_fill(*x, *mask, value)?)], None));
        };
        let kernel = self.kernel(def, operands)?;
        let results = if info.is_of_indices() {
            let settings = self.settings;
            vec![kernel.generate(&self.device, settings.dtype()?, settings.shape()?.as_slice())?]
        } else {
            kernel.run(operands)?
        };
        let views: Vec<_> = results.iter().map(Tensor::view).collect();
        let plan = (!self.device.is_cpu()).then(|| kernel.plan(operands, &views)).transpose()?;
        let named = info.outputs().iter().copied().zip(results).collect();
        Ok((named, plan.and_then(|plan| Some((plan.strategy, plan.replaced?)))))
    }

    /// The kernel object of a call.
    fn kernel(&self, def: &'static OpDef, operands: &[Operand<'_>]) -> Result<Kernel<'static>> {
        let kernel = def.kernel(&self.params).strategy(self.strategy);
        if !def.info.is_random() {
            return Ok(kernel);
        }
        if !self.settings.is_training()? {
            // Its probability is checked all the same.
            kernel.results(operands)?;
            return Ok(def.kernel(&[Number::Int(0)]));
        }
        Ok(kernel.rng(self.settings.place()?))
    }
}

/// Refuses operands of another number or kind than the op's.
fn wrong(op: Op, operands: &[Operand<'_>]) -> Error {
    let (name, takes, got) = (op.info().name, op.arguments().join(", "), operands.len());
    Error::Failed(format!("{name} takes the operands {takes}, got {got}"))
}

fn is_open(operand: &Operand<'_>) -> bool {
    matches!(operand, Operand::Number(Number::Default))
}
