//! Element types: how a value is stored, and the type its maths runs in.

use core::num::Wrapping;

use duplicate::duplicate_item;

use crate::convert;
use crate::dtype::DType;
use crate::float16::{bf16, f16};
use crate::fp8::{F8E4M3, F8E5M2};
use crate::num::{Coarse, Logic, Rough, Value};

/// A storage type. Sealed, because loops and kernels read and write memory as these types. Conversion to the compute
/// type is exact; conversion back rounds once, to nearest even.
pub trait Element: Copy + Send + Sync + 'static + sealed::Sealed {
    /// The type as a value.
    const DTYPE: DType;
    /// The type of the formulas' arithmetic.
    type Compute: Value;
    /// Exact.
    fn widen(self) -> Self::Compute;
    /// Rounds once; f8e4m3 saturates, f8e5m2 overflows to infinity.
    fn narrow(value: Self::Compute) -> Self;
    /// Converts to f64. Exact, except for i64 beyond 2^53.
    #[cfg(not(target_arch = "nvptx64"))]
    fn to_f64(self) -> f64;
    /// Rounds once, by the rules of [`Element::narrow`]; integers truncate and saturate.
    #[cfg(not(target_arch = "nvptx64"))]
    fn from_f64(value: f64) -> Self;
}

mod sealed {
    pub trait Sealed {}
}

/// A bool in a buffer: a byte that is 0 or 1. Any other byte reads as true, so that no bit pattern is undefined
/// behaviour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(transparent)]
pub struct Bool(pub u8);

#[duplicate_item(
    Type dtype Arithmetic widened narrowed as_f64 of_f64;
    [f32] [F32] [f32] [self] [value] [self as f64] [value as f32];
    [f16] [F16] [Coarse]
        [Coarse(convert::f16_to_f32(self.to_bits()))] [f16::from_bits(convert::f32_to_f16(value.0))]
        [convert::f16_to_f32(self.to_bits()) as f64] [f16::from_bits(convert::f64_to_f16(value))];
    [bf16] [BF16] [Coarse]
        [Coarse(convert::bf16_to_f32(self.to_bits()))] [bf16::from_bits(convert::f32_to_bf16(value.0))]
        [convert::bf16_to_f32(self.to_bits()) as f64] [bf16::from_bits(convert::f64_to_bf16(value))];
    [F8E4M3] [F8E4M3] [Rough]
        [Rough(self.to_f32())] [Self::from_f32(value.0)] [self.to_f32() as f64] [Self::from_f64(value)];
    [F8E5M2] [F8E5M2] [Rough]
        [Rough(self.to_f32())] [Self::from_f32(value.0)] [self.to_f32() as f64] [Self::from_f64(value)];
    [i8] [I8] [Wrapping<i8>] [Wrapping(self)] [value.0] [self as f64] [value as i8];
    [i16] [I16] [Wrapping<i16>] [Wrapping(self)] [value.0] [self as f64] [value as i16];
    [i32] [I32] [Wrapping<i32>] [Wrapping(self)] [value.0] [self as f64] [value as i32];
    [i64] [I64] [Wrapping<i64>] [Wrapping(self)] [value.0] [self as f64] [value as i64];
    [u8] [U8] [Wrapping<u8>] [Wrapping(self)] [value.0] [self as f64] [value as u8];
    [Bool] [Bool] [Logic]
        [Logic(self.0 != 0)] [Bool(value.0 as u8)] [(self.0 != 0) as u8 as f64] [Bool((value != 0.0) as u8)];
)]
const _: () = {
    impl sealed::Sealed for Type {}

    impl Element for Type {
        const DTYPE: DType = DType::dtype;
        type Compute = Arithmetic;
        #[inline(always)]
        fn widen(self) -> Arithmetic {
            widened
        }
        #[inline(always)]
        fn narrow(value: Arithmetic) -> Self {
            narrowed
        }
        #[cfg(not(target_arch = "nvptx64"))]
        fn to_f64(self) -> f64 {
            as_f64
        }
        #[cfg(not(target_arch = "nvptx64"))]
        fn from_f64(value: f64) -> Self {
            of_f64
        }
    }
};

/// The storage types under the names that `#[op]` uses.
#[allow(non_camel_case_types)]
pub mod ty {
    pub use super::Bool as bool;
    pub use crate::float16::{bf16, f16};
    pub use crate::fp8::{F8E4M3 as f8e4m3, F8E5M2 as f8e5m2};
    pub use core::primitive::{f32, i8, i16, i32, i64, u8};
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Other people's kernels may have written any byte.
    #[test]
    fn every_byte_but_zero_is_true() {
        for byte in 0..=u8::MAX {
            let (value, is_true) = (Bool(byte), byte != 0);
            assert_eq!((value.widen(), value.to_f64()), (Logic(is_true), f64::from(u8::from(is_true))), "{byte}");
            assert_eq!(Bool::narrow(value.widen()), Bool(u8::from(is_true)), "{byte}");
        }
    }
}
