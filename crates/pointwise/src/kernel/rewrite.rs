//! Calls that something simpler serves: an op's definition may have a function that finds it.

use super::{ConvertKernel, Kernel, OpDef, Operand, UnaryKernel};
use crate::error::Result;

/// Finds what serves a call with these operands, if there is something simpler than the op.
pub type RewriteFn = fn(&[Operand<'_>]) -> Result<Option<Rewrite>>;

/// Something simpler that serves a call whose first operand is `x`, a tensor.
#[derive(Clone, Copy, Debug)]
pub enum Rewrite {
    /// `x`.
    Copy,
    /// An op of two operands, both of them `x`.
    OfItself(&'static OpDef),
    /// An op of `x` alone.
    Unary(&'static OpDef),
}

/// The kernel of a [`Rewrite`], with the settings of the call.
pub(super) enum Rewritten<'r> {
    Copy(ConvertKernel),
    OfItself(Kernel<'r>),
    Unary(UnaryKernel),
}

impl<'r> Rewritten<'r> {
    /// Returns the kernel that serves a call, if it is not the op's own.
    ///
    /// # Errors
    /// Fails with the errors of the definition's function, and for bad launch settings, which the simpler kernel may not
    /// have.
    #[inline]
    pub(super) fn of(call: &Kernel<'r>, operands: &[Operand<'_>]) -> Result<Option<Rewritten<'r>>> {
        match call.def().rewrite() {
            Some(rewrite) => Rewritten::found(call, operands, rewrite),
            None => Ok(None),
        }
    }

    fn found(call: &Kernel<'r>, operands: &[Operand<'_>], rewrite: RewriteFn) -> Result<Option<Rewritten<'r>>> {
        let (Some(rewrite), [Operand::View(x), ..]) = (rewrite(operands)?, operands) else { return Ok(None) };
        let settings = call.settings();
        Ok(Some(match rewrite {
            Rewrite::OfItself(def) => Rewritten::OfItself(call.of(def)),
            Rewrite::Copy => {
                settings.check(x.device())?;
                let copy = crate::kernel::ConvertKernel::new().strategy(settings.strategy).threads(settings.threads);
                Rewritten::Copy(copy.on_stream(settings.stream.as_ref()))
            }
            Rewrite::Unary(def) => {
                settings.check(x.device())?;
                let kernel = def.unary_with(&[]).strategy(settings.strategy).threads(settings.threads);
                Rewritten::Unary(kernel.on_stream(settings.stream.as_ref()))
            }
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DType, Device, Tensor, kernels, tuner::Tuner};

    #[test]
    fn a_tuners_choices_are_for_powers() {
        let x = Tensor::zeros(&Device::cpu(), DType::F32, [2]).unwrap();
        let kernel = kernels::pow().tuned(&Tuner::in_memory());
        let square = Rewritten::of(&kernel.0, &[Operand::from(&x), Operand::from(2)]).unwrap();
        assert!(matches!(square, Some(Rewritten::OfItself(product)) if product.has_no_choices()));
    }
}
