//! The element types as Rust types, and the formats of floats: a new type is added here. No part of the API.

use pointwise_core::op::Word;
use pointwise_core::{DType, Element};

use crate::Number;

/// Runs `$body` with `$E` as the Rust type of the element type `$dtype`; after `float`, of floats alone, and `$other` for
/// all others.
#[doc(hidden)]
#[macro_export]
macro_rules! __with_element {
    ($dtype:expr, $E:ident => $body:expr) => {
        $crate::__with_element!(@ $dtype, $E => $body;
            F32 f32, F16 f16, BF16 bf16, F8E4M3 f8e4m3, F8E5M2 f8e5m2, I8 i8, I16 i16, I32 i32, I64 i64, U8 u8, Bool bool;)
    };
    (float $dtype:expr, $E:ident => $body:expr, $other:expr) => {
        $crate::__with_element!(@ $dtype, $E => $body;
            F32 f32, F16 f16, BF16 bf16, F8E4M3 f8e4m3, F8E5M2 f8e5m2; _ => $other)
    };
    (@ $dtype:expr, $E:ident => $body:expr; $($D:ident $t:ident),*; $($other:tt)*) => {
        match $dtype {
            $($crate::DType::$D => {
                type $E = $crate::__private::core::element::ty::$t;
                $body
            })*
            $($other)*
        }
    };
}

pub use crate::__with_element as with_element;

/// The format of a float type.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Format {
    /// The largest finite value.
    pub largest: f64,
    /// The bits of the significand that are stored.
    pub digits: i32,
    /// The exponent of the smallest normal number.
    pub least: i32,
    /// False if numbers that are too large become the largest.
    pub has_infinity: bool,
}

impl Format {
    /// Returns the format of a type; f32's for integers and bool.
    #[must_use]
    pub const fn of(dtype: DType) -> Format {
        let (largest, digits, least) = match dtype {
            DType::F16 => (65_504.0, 10, -14),
            DType::BF16 => (f32::from_bits(0x7F7F_0000) as f64, 7, -126),
            DType::F8E4M3 => (448.0, 3, -6),
            DType::F8E5M2 => (57_344.0, 2, -14),
            _ => (f32::MAX as f64, 23, -126),
        };
        Format { largest, digits, least, has_infinity: !matches!(dtype, DType::F8E4M3) }
    }
}

/// True for the floats of 8 bits.
#[must_use]
pub const fn is_fp8(dtype: DType) -> bool {
    dtype.is_float() && dtype.size() == 1
}

/// True for a float that is narrower than the f32 that it is computed in.
pub(crate) fn is_narrow(dtype: DType) -> bool {
    dtype.is_float() && dtype != DType::F32
}

/// Returns an element as a number.
#[must_use]
pub fn number<E: Element>(x: E) -> Number {
    match E::DTYPE {
        DType::Bool => Number::Bool(x.to_f64() != 0.0),
        dtype if dtype.is_float() => Number::Float(x.to_f64()),
        // The word of an integer is its value.
        _ => Number::Int(x.widen().to_word() as i64),
    }
}

/// Returns the bits of an element, the others 0.
pub(crate) fn bits<E: Element>(x: E) -> u64 {
    const { assert!(size_of::<E>() <= 8) };
    let mut bits = [0_u8; 8];
    // SAFETY: an element is a plain number of at most 8 bytes.
    unsafe { bits.as_mut_ptr().cast::<E>().write_unaligned(x) };
    u64::from_le_bytes(bits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_those_of_the_conversions() {
        for dtype in DType::FLOATS {
            let Format { largest, digits, least, has_infinity } = Format::of(dtype);
            with_element!(dtype, E => {
                let rounded = |x: f64| E::from_f64(x).to_f64();
                assert_eq!(rounded(largest), largest, "{dtype}");
                assert_eq!(rounded(f64::INFINITY), if has_infinity { f64::INFINITY } else { largest }, "{dtype}");
                let ulp = 2.0_f64.powi(-digits);
                assert_eq!([rounded(1.0 + ulp), rounded(1.0 + 0.5 * ulp)], [1.0 + ulp, 1.0], "{dtype}");
                let smallest = 2.0_f64.powi(least - digits);
                assert_eq!([rounded(smallest), rounded(0.5 * smallest)], [smallest, 0.0], "{dtype}");
                let beyond = largest + 2.0_f64.powi(largest.log2().floor() as i32 - digits);
                assert!(rounded(beyond) == largest || rounded(beyond).is_infinite(), "{dtype}");
            });
        }
    }

    #[test]
    fn elements_are_numbers() {
        for dtype in DType::ALL {
            let (got, one) = with_element!(dtype, E => (number(E::from_f64(1.0)), bits(E::from_f64(1.0))));
            let expected = match dtype {
                DType::Bool => Number::Bool(true),
                _ if dtype.is_float() => Number::Float(1.0),
                _ => Number::Int(1),
            };
            assert_eq!(got, expected, "{dtype}");
            assert!(one == 1 || dtype.is_float() && one >> dtype.bits() == 0, "{dtype}");
        }
        assert_eq!(number(i64::MAX), Number::Int(i64::MAX));
        assert_eq!([number(-3_i8), number(200_u8)], [Number::Int(-3), Number::Int(200)]);
    }
}
