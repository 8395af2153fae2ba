//! Element types: how a value is stored, and the type its maths runs in.

use core::num::Wrapping;

use crate::float16::{bf16, f16};

use crate::convert;
use crate::dtype::DType;
use crate::fp8::{F8E4M3, F8E5M2};
use crate::num::{Coarse, Logic, Rough, Value};

/// A storage type: one of this crate, for loops and kernels read and write memory as of these. Conversion to the compute
/// type is exact; conversion back rounds once, to nearest even.
pub trait Element: Copy + Send + Sync + 'static + sealed::Sealed {
    /// The type as a value.
    const DTYPE: DType;
    /// The type formulas are evaluated in.
    type Compute: Value;
    /// Exact.
    fn widen(self) -> Self::Compute;
    /// One rounding; f8e4m3 saturates, f8e5m2 overflows to infinity.
    fn narrow(value: Self::Compute) -> Self;
    /// Exact, but for i64 beyond 2^53.
    #[cfg(not(target_arch = "nvptx64"))]
    fn to_f64(self) -> f64;
    /// One rounding, by the rules of [`Element::narrow`]; integers truncate and saturate.
    #[cfg(not(target_arch = "nvptx64"))]
    fn from_f64(value: f64) -> Self;
}

mod sealed {
    pub trait Sealed {}
}

/// How the result of a formula on `E`s is stored: a compute value as `E`, a `bool` as [`Bool`].
pub trait Store<E> {
    /// The element type of the result.
    type Storage: Element;
    /// The result in its element type's compute type, not yet rounded.
    fn lane(self) -> <Self::Storage as Element>::Compute;
}

impl<E> Store<E> for bool {
    type Storage = Bool;
    #[inline(always)]
    fn lane(self) -> Logic {
        Logic(self)
    }
}

/// A byte that is 0 or 1: bool as it lies in a buffer. Any other byte reads as true, so that no bit pattern is
/// undefined behaviour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(transparent)]
pub struct Bool(pub u8);

macro_rules! element {
    ($($t:ty, $dtype:ident => $compute:ty: $widen:expr, $narrow:expr; $to_f64:expr, $from_f64:expr;)*) => { $(
        impl sealed::Sealed for $t {}

        impl Element for $t {
            const DTYPE: DType = DType::$dtype;
            type Compute = $compute;
            #[inline(always)]
            fn widen(self) -> $compute {
                let f: fn($t) -> $compute = $widen;
                f(self)
            }
            #[inline(always)]
            fn narrow(value: $compute) -> Self {
                let f: fn($compute) -> $t = $narrow;
                f(value)
            }
            #[cfg(not(target_arch = "nvptx64"))]
            fn to_f64(self) -> f64 {
                let f: fn($t) -> f64 = $to_f64;
                f(self)
            }
            #[cfg(not(target_arch = "nvptx64"))]
            fn from_f64(value: f64) -> Self {
                let f: fn(f64) -> $t = $from_f64;
                f(value)
            }
        }
    )* };
}

element! {
    f32, F32 => f32: |x| x, |c| c;
        |x| x as f64, |v| v as f32;
    f16, F16 => Coarse: |x| Coarse(convert::f16_to_f32(x.to_bits())), |c| f16::from_bits(convert::f32_to_f16(c.0));
        |x| convert::f16_to_f32(x.to_bits()) as f64, |v| f16::from_bits(convert::f64_to_f16(v));
    bf16, BF16 => Coarse: |x| Coarse(convert::bf16_to_f32(x.to_bits())), |c| bf16::from_bits(convert::f32_to_bf16(c.0));
        |x| convert::bf16_to_f32(x.to_bits()) as f64, |v| bf16::from_bits(convert::f64_to_bf16(v));
    F8E4M3, F8E4M3 => Rough: |x| Rough(convert::e4m3_to_f32(x.to_bits())), |c| F8E4M3::from_bits(convert::f32_to_e4m3(c.0));
        |x| x.to_f32() as f64, |v| F8E4M3::from_f64(v);
    F8E5M2, F8E5M2 => Rough: |x| Rough(convert::e5m2_to_f32(x.to_bits())), |c| F8E5M2::from_bits(convert::f32_to_e5m2(c.0));
        |x| x.to_f32() as f64, |v| F8E5M2::from_f64(v);
    i8, I8 => Wrapping<i8>: |x| Wrapping(x), |c| c.0; |x| x as f64, |v| v as i8;
    i16, I16 => Wrapping<i16>: |x| Wrapping(x), |c| c.0; |x| x as f64, |v| v as i16;
    i32, I32 => Wrapping<i32>: |x| Wrapping(x), |c| c.0; |x| x as f64, |v| v as i32;
    i64, I64 => Wrapping<i64>: |x| Wrapping(x), |c| c.0; |x| x as f64, |v| v as i64;
    u8, U8 => Wrapping<u8>: |x| Wrapping(x), |c| c.0; |x| x as f64, |v| v as u8;
    Bool, Bool => Logic: |x| Logic(x.0 != 0), |c| Bool(c.0 as u8); |x| (x.0 != 0) as u8 as f64, |v| Bool((v != 0.0) as u8);
}

macro_rules! store_as_itself {
    ($($t:ty)*) => { $(
        impl Store<$t> for <$t as Element>::Compute {
            type Storage = $t;
            #[inline(always)]
            fn lane(self) -> Self {
                self
            }
        }
    )* };
}
store_as_itself!(f32 f16 bf16 F8E4M3 F8E5M2 i8 i16 i32 i64 u8 Bool);

/// The storage types under the names that the op tables use.
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

    /// Kernels of others may have written any byte.
    #[test]
    fn every_byte_but_zero_is_true() {
        for byte in 0..=u8::MAX {
            let (value, is_true) = (Bool(byte), byte != 0);
            assert_eq!((value.widen(), value.to_f64()), (Logic(is_true), f64::from(u8::from(is_true))), "{byte}");
            assert_eq!(Bool::narrow(value.widen()), Bool(u8::from(is_true)), "{byte}");
        }
    }
}
