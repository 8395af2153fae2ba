//! The operands and parameters of a call: tensors and numbers.

use pointwise::element::{number as number_of, with_element};
use pointwise::{DType, Number};

use crate::abi::Element;
use crate::tensor::{Raw, Tensor};

/// An operand.
#[derive(Debug)]
pub(crate) enum Argument {
    /// A tensor.
    Tensor(Tensor),
    /// A number.
    Number(Number),
}

/// An operand as it is known: a tensor's memory, or a number.
#[derive(Clone, Copy)]
pub(crate) enum Known<'a> {
    Tensor(Raw<'a>),
    Number(Number),
}

/// A number as an op on elements of a type takes it: whole for integers, 0 or 1 for bool.
pub(crate) fn number(value: Number, element: Element) -> Number {
    match (element, value) {
        (Element::Of(DType::Bool), Number::Float(value)) if value == 0.0 || value == 1.0 => Number::Bool(value != 0.0),
        (Element::Of(DType::Bool), _) => value,
        (_, Number::Bool(value)) => Number::Int(value.into()),
        (Element::Of(dtype), Number::Float(value))
            if !dtype.is_float() && value == value.trunc() && value.abs() < 9e18 =>
        {
            Number::Int(value as i64)
        }
        _ => value,
    }
}

/// A number as a float: `default` for one that is not given.
pub(crate) fn real(value: Number, default: Option<f64>) -> Option<f64> {
    match value {
        Number::Float(value) => Some(value),
        Number::Int(value) => Some(value as f64),
        Number::Bool(value) => Some(f64::from(u8::from(value))),
        _ => default,
    }
}

/// A parameter as torch converts it to integers: a factor wraps in u8, bounds of `hardtanh` are cut.
pub(crate) fn of_type(param: Number, name: &str, element: Element) -> Number {
    let Number::Float(value) = param else { return param };
    let is_whole = matches!(element, Element::Of(dtype) if !dtype.is_float());
    match name {
        "alpha" if element == Element::Of(DType::U8) && value == value.trunc() => {
            number(Number::Float(value.rem_euclid(256.0)), element)
        }
        "min_val" | "max_val" if element == Element::Of(DType::U8) => {
            number(Number::Float(value.trunc().clamp(0.0, 255.0)), element)
        }
        "min_val" | "max_val" if is_whole => number(Number::Float(value.trunc()), element),
        _ => number(param, element),
    }
}

/// The value of a tensor without dimensions on the CPU: beside tensors of a CUDA device it is a number.
pub(crate) fn scalar(raw: &Raw<'_>) -> Number {
    let data = raw.data;
    // SAFETY: one element of this type.
    unsafe {
        match raw.element {
            Element::F64 => data.cast::<f64>().read().into(),
            Element::Of(dtype) => with_element!(dtype, E => number_of(data.cast::<E>().read())),
        }
    }
}
