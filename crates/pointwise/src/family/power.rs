//! `pow` with a number as exponent, as PyTorch has it: a product, a root or a reciprocal where there is one.
//!
//! The roots differ from `pow` in their special values: that of -0 is -0, of -inf NaN. Of PyTorch's list 0 is `pow`
//! itself, which gives 1 for all, and so is -2, which rounds once where PyTorch rounds twice. So does the product for 3.

use pointwise_core::DType;

use super::formulas::powers::Cube;
use super::formulas::{Mul, Reciprocal, Rsqrt, Sqrt};
use crate::Number;
use crate::error::{ErrorKind, Result};
use crate::kernel::{Operand, Rewrite};

/// Finds something simpler for the power of a tensor by a number.
///
/// # Errors
/// Fails for an integer to the power of a negative one.
pub fn power(operands: &[Operand<'_>]) -> Result<Option<Rewrite>> {
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
    let is_float_power = !is_whole || matches!(exponent, Number::Float(_));
    // Those that leave the type as it is; others are converted by the general way.
    let is_same_type = match x.dtype() {
        DType::Bool => matches!(exponent, Number::Bool(_)),
        dtype => dtype.is_float() || !matches!(exponent, Number::Float(_)),
    };
    Ok(match value {
        1.0 if is_same_type => Some(Rewrite::Copy),
        2.0 if is_same_type => Some(Rewrite::OfItself(Mul::def())),
        3.0 if x.dtype().is_float() => Some(Rewrite::Unary(Cube::def())),
        0.5 if is_float_power => Some(Rewrite::Unary(Sqrt::def())),
        -0.5 if is_float_power => Some(Rewrite::Unary(Rsqrt::def())),
        -1.0 if is_float_power => Some(Rewrite::Unary(Reciprocal::def())),
        _ => None,
    })
}
