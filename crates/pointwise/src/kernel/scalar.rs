//! Numbers in a call of an op of several operands, as operands and as parameters: what the kernel is given for them.

use pointwise_core::op::{MAX_PARAMS, Words};
use pointwise_core::{DType, Kind, OpInfo, ParamInfo, ResultType};

use super::ready::is_condition;
use crate::Number;
use crate::error::{ErrorKind, Result};

/// Operand `k` of `info`, given as a number, in a call on `dtype`.
///
/// # Errors
/// A number that the type cannot hold, or none.
pub(super) fn operand(info: &OpInfo, k: usize, number: Number, dtype: DType) -> Result<u64> {
    let name = info.operands[k];
    let scalar = ParamInfo { name, default: 0.0 };
    if number == Number::Default {
        return Err(ErrorKind::Parameter {
            name,
            value: number.to_string(),
            why: "an operand has no default".to_owned(),
        }
        .into());
    }
    if is_condition(info, k) {
        return number.word(&scalar, DType::Bool);
    }
    if info.kind == Kind::Select {
        return number.bits(&scalar, dtype);
    }
    if !is_element(info, k) {
        return number.word(&scalar, dtype);
    }
    let is_half = matches!(dtype, DType::F16 | DType::BF16);
    if info.kind == Kind::Binary && info.name == "pow" && k == 1 && is_half && number.is_beyond(&scalar, dtype) {
        return Err(ErrorKind::Parameter {
            name,
            value: number.to_string(),
            why: format!("{dtype} cannot hold this exponent; convert the tensor to f32"),
        }
        .into());
    }
    number.rounded_word(&scalar, dtype)
}

/// Whether a number is rounded to the tensor's element type first, as PyTorch's CUDA kernels have it: their functions
/// of `scalar_t` take it so, those of `opmath_t` in the type they compute in.
fn is_element(info: &OpInfo, k: usize) -> bool {
    match info.name {
        _ if info.result == ResultType::Bool => true,
        _ if info.kind != Kind::Binary => false,
        "remainder" | "pow" => true,
        "div" | "div_trunc" | "floor_divide" => k == 0,
        _ => false,
    }
}

/// The parameters of a call on `dtype`.
///
/// # Errors
/// A number that the op does not take as a parameter for this type.
pub(super) fn params(info: &OpInfo, params: &[Number; MAX_PARAMS], dtype: DType) -> Result<Words> {
    let mut words = Words::default();
    for ((word, &number), param) in words.iter_mut().zip(params).zip(info.params) {
        let is_alpha = info.kind == Kind::Binary && param.name == "alpha" && matches!(info.name, "add" | "sub");
        let number = if is_alpha { alpha(number, dtype)? } else { number };
        *word = number.word(param, dtype)?;
    }
    Ok(words)
}

/// The parameters of a call on `dtype` for the formula in f64.
///
/// # Errors
/// As [`params`].
pub(super) fn oracle_params(info: &OpInfo, params: &[Number; MAX_PARAMS], dtype: DType) -> Result<Words> {
    let mut words = Words::default();
    for ((word, number), param) in words.iter_mut().zip(params).zip(info.params) {
        *word = number.oracle(param, dtype)?.to_bits();
    }
    Ok(words)
}

/// The factor of `add` and `sub`, which PyTorch wants in the category of the result.
fn alpha(number: Number, dtype: DType) -> Result<Number> {
    let refuse = |value: String, why: String| Err(ErrorKind::Parameter { name: "alpha", value, why }.into());
    match number {
        // With its decimal point, which is what is wrong with it.
        Number::Float(value) if !dtype.is_float() => refuse(
            format!("{value:?}"),
            format!("must not be a floating-point number for {dtype}: give an integer, or convert the tensors to f32"),
        ),
        Number::Bool(value) if dtype != DType::Bool => {
            refuse(value.to_string(), format!("a bool goes with a bool result alone: give 0 or 1 for {dtype}"))
        }
        Number::Int(value) if dtype == DType::Bool => Ok(Number::Bool(value != 0)),
        number => Ok(number),
    }
}
