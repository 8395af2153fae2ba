//! A scalar argument of an op, and its conversion to the type the op computes in.

use std::fmt;

use duplicate::duplicate_item;
use pointwise_core::num::Logic;
use pointwise_core::op::Word;
use pointwise_core::{DType, Element, ParamInfo, bf16, f16};

use crate::element::{self, Format, is_narrow, with_element};
use crate::error::{ErrorKind, Result};

/// A scalar of any type, like PyTorch's `Scalar`: the type of parameters and scalar operands.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub enum Number {
    /// The parameter's default.
    #[default]
    Default,
    /// A float.
    Float(f64),
    /// An integer.
    Int(i64),
    /// A bool.
    Bool(bool),
}

#[duplicate_item(
    T Variant;
    [f64] [Float]; [f32] [Float]; [f16] [Float]; [bf16] [Float];
    [i64] [Int]; [i32] [Int]; [i16] [Int]; [i8] [Int]; [u32] [Int]; [u16] [Int]; [u8] [Int];
    [bool] [Bool];
)]
#[allow(clippy::useless_conversion)] // of a type to itself
impl From<T> for Number {
    fn from(value: T) -> Self {
        Number::Variant(value.into())
    }
}

/// `None` is the parameter's default. There is but one such conversion, so that the type of a bare `None` is known.
impl From<Option<Number>> for Number {
    fn from(value: Option<Number>) -> Self {
        value.unwrap_or_default()
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Number::Default => f.write_str("(default)"),
            Number::Float(value) => value.fmt(f),
            Number::Int(value) => value.fmt(f),
            Number::Bool(value) => value.fmt(f),
        }
    }
}

impl Number {
    /// The value as f64; the default of `info` for [`Number::Default`].
    pub fn to_f64(self, info: &ParamInfo) -> f64 {
        match self {
            Number::Default => info.default,
            Number::Float(value) => value,
            Number::Int(value) => value as f64,
            Number::Bool(value) => value as u8 as f64,
        }
    }

    /// The kernel parameter for a call on `dtype`: the value in the type that maths on `dtype` runs in.
    ///
    /// # Errors
    /// An integer type takes only whole numbers that it can hold; bool only 0 and 1. A bound beyond the type is no
    /// error on the side that is open by default (`clamp`'s), since it has no effect.
    pub(crate) fn word(self, info: &ParamInfo, dtype: DType) -> Result<u64> {
        let refuse = |why: String| ErrorKind::Parameter { name: info.name, value: self.to_string(), why };
        match dtype {
            // The compute types of all float types hold an f32.
            _ if dtype.is_float() => Ok(self.float(info, dtype).to_word()),
            DType::Bool => match self.whole(info) {
                Some(0) => Ok(Logic(false).to_word()),
                Some(1) => Ok(Logic(true).to_word()),
                _ if matches!(self, Number::Default) => Ok(Logic(info.default != 0.0).to_word()),
                _ => Err(refuse("a bool tensor takes 0, 1, false or true".into()).into()),
            },
            _ => {
                let (low, high) = integer_range(dtype);
                let value = self.whole(info).ok_or_else(|| {
                    refuse(format!("{dtype} tensors take whole numbers; convert the tensor to f32 for this one"))
                })?;
                let open_below = info.default == f64::NEG_INFINITY;
                let open_above = info.default == f64::INFINITY;
                let clamped = value.clamp(low as i128, high as i128);
                let fits = clamped == value
                    || matches!(self, Number::Default)
                    || (open_below && value < clamped)
                    || (open_above && value > clamped);
                if fits {
                    // Two's complement: the kernel reads the low bits.
                    Ok(clamped as i64 as u64)
                } else {
                    Err(refuse(format!("{dtype} tensors take {low} to {high}")).into())
                }
            }
        }
    }

    /// Like [`Number::word`], but a float is first rounded to the element type, as comparisons need it.
    ///
    /// # Errors
    /// The errors of [`Number::word`].
    pub(crate) fn rounded_word(self, info: &ParamInfo, dtype: DType) -> Result<u64> {
        if !is_narrow(dtype) {
            return self.word(info, dtype);
        }
        let value = self.to_f64(info);
        Ok(with_element!(dtype, E => <E as Element>::from_f64(value).widen().to_word()))
    }

    /// The bits of an element of type `dtype`, for ops that move bits.
    ///
    /// # Errors
    /// The errors of [`Number::word`].
    pub(crate) fn bits(self, info: &ParamInfo, dtype: DType) -> Result<u64> {
        if !is_narrow(dtype) {
            // The word of an f32 or of an integer is its bits.
            return self.word(info, dtype);
        }
        let value = self.to_f64(info);
        Ok(with_element!(dtype, E => element::bits(<E as Element>::from_f64(value))))
    }

    /// True if it is finite, but beyond the range of a float type.
    pub(crate) fn is_beyond(self, info: &ParamInfo, dtype: DType) -> bool {
        let value = self.to_f64(info);
        dtype.is_float() && value.is_finite() && value.abs() > Format::of(dtype).largest
    }

    /// The kernel parameter in the oracle's form: converted to the compute type, in f64.
    ///
    /// # Errors
    /// The errors of [`Number::word`].
    pub(crate) fn oracle(self, info: &ParamInfo, dtype: DType) -> Result<f64> {
        let word = self.word(info, dtype)?;
        Ok(match dtype {
            _ if dtype.is_float() => f64::from(f32::from_word(word)),
            DType::U8 | DType::Bool => word as f64,
            _ => word as i64 as f64,
        })
    }

    /// The value as the f32 that maths on a float type starts from. A default of `f64::MAX` or `MIN` is the type's own.
    fn float(self, info: &ParamInfo, dtype: DType) -> f32 {
        match self {
            Number::Default if info.default == f64::MAX => Format::of(dtype).largest as f32,
            Number::Default if info.default == f64::MIN => -Format::of(dtype).largest as f32,
            // Not through f64: that would round a large integer twice.
            Number::Int(value) => value as f32,
            _ => self.to_f64(info) as f32,
        }
    }

    /// The value as a whole number, infinities as the far ends; `None` for a fraction or NaN.
    fn whole(self, info: &ParamInfo) -> Option<i128> {
        match self {
            Number::Int(value) => Some(value as i128),
            Number::Bool(value) => Some(value as i128),
            Number::Default | Number::Float(_) => {
                let value = self.to_f64(info);
                // `as` saturates: an infinity becomes an end of i128, beyond every integer type.
                (value == value.trunc() || value.is_infinite()).then_some(value as i128)
            }
        }
    }
}

/// The ends of an integer type.
pub(crate) fn integer_range(dtype: DType) -> (i64, i64) {
    match dtype {
        DType::I8 => (i8::MIN as i64, i8::MAX as i64),
        DType::I16 => (i16::MIN as i64, i16::MAX as i64),
        DType::I32 => (i32::MIN as i64, i32::MAX as i64),
        DType::U8 => (0, u8::MAX as i64),
        _ => (i64::MIN, i64::MAX),
    }
}
