//! `pow` with a number as exponent, as PyTorch has it: a product, a root or a reciprocal where there is one.
//!
//! The roots differ from `pow` in their special values: that of -0 is -0, of -inf NaN. Of PyTorch's list 0 is `pow`
//! itself, which gives 1 for all, and so is -2, which rounds once where PyTorch rounds twice. So does the product for 3.

use pointwise_core::DType;

use super::{ConvertKernel, Kernel, OpDef, Operand, UnaryKernel};
use crate::Number;
use crate::error::{ErrorKind, Result};
use crate::family::{definitions, powers};

/// What a power of a tensor is.
pub(super) enum Power<'r> {
    /// `x`.
    Copy(ConvertKernel),
    /// `x x`.
    Square(Kernel<'r>),
    /// `x x x`, `sqrt(x)`, `1 / sqrt(x)` or `1 / x`.
    Function(UnaryKernel),
}

/// What `call` on these operands is, if it is a power and there is something simpler.
///
/// # Errors
/// An integer to the power of a negative one; where there is something simpler, bad launch settings, which it may not
/// have.
#[inline]
pub(super) fn simpler<'r>(call: &Kernel<'r>, operands: &[Operand<'_>]) -> Result<Option<Power<'r>>> {
    if std::ptr::eq(call.def, &definitions::pow) { of_number(call, operands) } else { Ok(None) }
}

fn of_number<'r>(call: &Kernel<'r>, operands: &[Operand<'_>]) -> Result<Option<Power<'r>>> {
    let [Operand::View(x), Operand::Number(exponent)] = operands else {
        return Ok(None);
    };
    let value = match *exponent {
        Number::Default => return Ok(None),
        Number::Float(value) => value,
        Number::Int(value) => value as f64,
        Number::Bool(value) => f64::from(u8::from(value)),
    };
    let is_whole = x.dtype().is_int() || x.dtype() == DType::Bool;
    if is_whole && matches!(exponent, Number::Int(..=-1)) {
        return Err(ErrorKind::Parameter {
            name: "b",
            value: exponent.to_string(),
            why: "integers to negative integer powers are not allowed; use a float, or a tensor".to_owned(),
        }
        .into());
    }
    let function = |def: &'static OpDef| {
        call.settings.check(x.device())?;
        let kernel = def
            .unary_with(&[])
            .strategy(call.settings.strategy)
            .threads(call.settings.threads)
            .on_maybe(call.settings.stream.as_ref());
        Ok(Some(Power::Function(kernel)))
    };
    let is_float_power = !is_whole || matches!(exponent, Number::Float(_));
    // Those that leave the type as it is; others are converted by the general way.
    let is_same_type = match x.dtype() {
        DType::Bool => matches!(exponent, Number::Bool(_)),
        dtype => dtype.is_float() || !matches!(exponent, Number::Float(_)),
    };
    match value {
        1.0 if is_same_type => {
            call.settings.check(x.device())?;
            let kernel = crate::kernels::to_dtype()
                .strategy(call.settings.strategy)
                .threads(call.settings.threads)
                .on_maybe(call.settings.stream.as_ref());
            Ok(Some(Power::Copy(kernel)))
        }
        2.0 if is_same_type => Ok(Some(Power::Square(call.of(&definitions::mul)))),
        3.0 if x.dtype().is_float() => function(&powers::definitions::cube),
        0.5 if is_float_power => function(&definitions::sqrt),
        -0.5 if is_float_power => function(&definitions::rsqrt),
        -1.0 if is_float_power => function(&definitions::reciprocal),
        _ => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Device, Tensor, kernels, tuner::Tuner};

    #[test]
    fn a_tuners_choices_are_for_powers() {
        let x = Tensor::zeros(&Device::cpu(), DType::F32, [2]).unwrap();
        let kernel = kernels::pow().tuned(&Tuner::in_memory());
        let square = simpler(&kernel.0, &[Operand::from(&x), Operand::from(2)]).unwrap();
        assert!(matches!(square, Some(Power::Square(product)) if product.has_no_choices()));
    }
}
