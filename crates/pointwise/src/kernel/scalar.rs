//! Numbers in a call, as operands and as parameters, by PyTorch's rules.

use pointwise_core::op::Word;
use pointwise_core::{BinaryFunction, DType, OpInfo, ParamInfo};

use crate::Number;
use crate::error::{ErrorKind, Result};

/// Operand `k` of `info`, given as a number, in a call on `dtype`.
///
/// # Errors
/// A number that the type cannot hold, or none.
pub(super) fn operand(info: &OpInfo, k: usize, number: Number, dtype: DType) -> Result<u64> {
    let name = info.operands[k];
    let scalar = ParamInfo::number(name, 0.0);
    if number == Number::Default {
        return Err(ErrorKind::Parameter {
            name,
            value: number.to_string(),
            why: "an operand has no default".to_owned(),
        }
        .into());
    }
    if info.is_bool(k) {
        return number.word(&scalar, DType::Bool);
    }
    if let Some(fixed) = info.stored_operand(k) {
        // In the compute type, of floats; it must be a number of the fixed type.
        number.word(&scalar, fixed)?;
        return Ok((number.to_f64(&scalar) as f32).to_word());
    }
    if info.properties.moves {
        return number.bits(&scalar, dtype);
    }
    if !is_element(info, k) {
        let word = number.word(&scalar, dtype)?;
        return Ok(if is_approximate_quotient(info, dtype) { within_quotients(word) } else { word });
    }
    let is_half = matches!(dtype, DType::F16 | DType::BF16);
    let is_exponent = info.properties.function == Some(BinaryFunction::Power) && k == 1;
    if is_exponent && is_half && number.is_beyond(&scalar, dtype) {
        return Err(ErrorKind::Parameter {
            name,
            value: number.to_string(),
            why: format!("{dtype} cannot hold this exponent; convert the tensor to f32"),
        }
        .into());
    }
    number.rounded_word(&scalar, dtype)
}

/// True if the op is a quotient that kernels work out by an approximate reciprocal: right for all values of the element
/// type, but not for every f32.
fn is_approximate_quotient(info: &OpInfo, dtype: DType) -> bool {
    match info.properties.function {
        Some(quotient @ (BinaryFunction::Quotient | BinaryFunction::TruncatedQuotient)) => {
            quotient.has_short_path(dtype)
        }
        _ => false,
    }
}

/// A number that gives the same quotients, rounded to f16 or fp8, with every value of the type, and is none that an f32
/// quotient of it and such a value could overflow by, nor one that approximate instructions take for 0. From 2^60 on
/// they are zeros, or infinite (e4m3: the largest number) where the number is divided; down from 2^-60 likewise the
/// other way round.
fn within_quotients(word: u64) -> u64 {
    const LARGEST: f32 = (1_u64 << 60) as f32;
    let x = f32::from_word(word);
    if x == 0.0 || !x.is_finite() { word } else { x.abs().clamp(1.0 / LARGEST, LARGEST).copysign(x).to_word() }
}

/// True if a number as operand `k` is first rounded to the tensor's element type, as in PyTorch's CUDA kernels: functions of
/// `scalar_t` take it so, functions of `opmath_t` take it in the type that they compute in.
pub(crate) fn is_element(info: &OpInfo, k: usize) -> bool {
    match info.properties.function {
        _ if info.bool_results() == 1 => true,
        Some(BinaryFunction::Modulo | BinaryFunction::Power) => true,
        Some(BinaryFunction::Quotient | BinaryFunction::TruncatedQuotient | BinaryFunction::FlooredQuotient) => k == 0,
        None => false,
    }
}

/// Refuses fractions, infinities and NaN where the op takes whole numbers alone.
pub(super) fn check_whole(info: &OpInfo, params: &[Number]) -> Result<()> {
    if !info.properties.whole_parameter {
        return Ok(());
    }
    match params.iter().zip(info.params).find(|(number, param)| number.to_f64(param).fract() != 0.0) {
        None => Ok(()),
        Some((number, param)) => Err(ErrorKind::Parameter {
            name: param.name,
            value: number.to_string(),
            why: "must be a whole number".to_owned(),
        }
        .into()),
    }
}

/// The factor of `add` and `sub`, which PyTorch wants in the category of the result.
pub(super) fn alpha(number: Number, dtype: DType) -> Result<Number> {
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

#[cfg(test)]
mod tests {
    use pointwise_core::{Element, F8E4M3, F8E5M2, f16};

    use super::*;

    fn gives_the_same_quotients<E: Element>(values: impl Iterator<Item = f32> + Clone, round: fn(f32) -> E) {
        let same = |a: f32, b: f32| {
            let [a, b] = [a, b].map(|x| round(x).to_f64());
            a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan()
        };
        let numbers =
            [0.0, 1e-45, 1e-38, 1.2e-38, 1e-30, 8.6e-19, 8.7e-19, 1e-9, 0.3, 1.0, 7e4, 1.1e18, 1.2e18, 1e30, f32::MAX];
        for number in numbers.into_iter().chain([f32::INFINITY, f32::NAN]).flat_map(|x| [x, -x]) {
            let within = f32::from_word(within_quotients(number.to_word()));
            assert!(within.is_nan() || within.is_sign_negative() == number.is_sign_negative(), "{number:e}");
            for x in values.clone() {
                assert!(same(x / number, x / within), "{x:e} / {number:e}");
                assert!(same(number / x, within / x), "{number:e} / {x:e}");
                assert!(same((x / number).trunc(), (x / within).trunc()), "{x:e} / {number:e}, cut");
            }
        }
    }

    /// Approximate reciprocals serve no others.
    #[test]
    fn a_number_in_a_quotient_is_kept_within_what_its_kernels_serve() {
        let info = &crate::ops::Div::def().info;
        let divisor = |dtype| f32::from_word(operand(info, 1, Number::Float(1e-38), dtype).unwrap());
        for dtype in [DType::F16, DType::F8E4M3, DType::F8E5M2] {
            assert_eq!(divisor(dtype), 1.0 / (1_u64 << 60) as f32, "{dtype}");
        }
        assert_eq!([DType::F32, DType::BF16].map(divisor), [1e-38; 2]);
    }

    #[test]
    fn numbers_within_quotients_give_the_same_ones() {
        gives_the_same_quotients((0..=u16::MAX).map(|bits| f16::from_bits(bits).to_f32()), f16::from_f32);
        gives_the_same_quotients((0..=u8::MAX).map(|bits| F8E4M3::from_bits(bits).to_f32()), F8E4M3::from_f32);
        gives_the_same_quotients((0..=u8::MAX).map(|bits| F8E5M2::from_bits(bits).to_f32()), F8E5M2::from_f32);
    }
}
