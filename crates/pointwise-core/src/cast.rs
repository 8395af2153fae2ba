//! Conversion between element types.
//!
//! | from | to | rule |
//! |---|---|---|
//! | float | float | one rounding, by the rules of results: f8e4m3 saturates, the others overflow to infinity |
//! | integer | float | one rounding of the whole value, 64 bits too |
//! | float | i8, i16, i32, i64 | towards zero; beyond the range its nearest end; NaN is 0 |
//! | float | u8 | as to i64, of which the low 8 bits: -1.0 is 255, as in PyTorch |
//! | integer | integer | the low bits |
//! | any | bool | whether it is not 0; NaN is true |
//! | bool | any | 0 or 1 |
//!
//! PyTorch leaves a float beyond a signed integer's range to the machine; here it is the same on every one.

use core::marker::PhantomData;
use core::num::Wrapping;

use crate::convert;
use crate::element::Element;
use crate::formula::{Formula, OpData, ParamWords};
use crate::info::{Kind, OpInfo};
use crate::num::{Coarse, Logic, Rough, Value};
use crate::philox::RandomWord;

/// A compute type as what a conversion starts from.
pub trait Source: Value {
    /// The nearest f32.
    fn to_f32(self) -> f32;
    /// An f32 that rounds to any type of at most 22 significant bits as the value itself does.
    fn to_f32_odd(self) -> f32;
    /// By the rules of the module, as is every method below.
    fn to_i8(self) -> i8;
    /// To i16.
    fn to_i16(self) -> i16;
    /// To i32.
    fn to_i32(self) -> i32;
    /// To i64.
    fn to_i64(self) -> i64;
    /// To u8.
    fn to_u8(self) -> u8;
}

/// A compute type as what a conversion ends in.
pub trait Target: Value {
    /// The value, which for the types narrower than f32 is rounded once more.
    fn cast<S: Source>(source: S) -> Self;
}

macro_rules! from_float {
    ($($t:ty: |$x:ident| $value:expr;)*) => { $(
        impl Source for $t {
            #[inline(always)]
            fn to_f32(self) -> f32 {
                let $x = self;
                $value
            }
            #[inline(always)]
            fn to_f32_odd(self) -> f32 {
                self.to_f32()
            }
            from_float!(@saturate to_i8: i8, to_i16: i16, to_i32: i32, to_i64: i64);
            #[inline(always)]
            fn to_u8(self) -> u8 {
                self.to_i64() as u8
            }
        }
    )* };
    (@saturate $($method:ident: $int:ty),*) => { $(
        #[inline(always)]
        fn $method(self) -> $int {
            self.to_f32() as $int
        }
    )* };
}
from_float! {
    f32: |x| x;
    Coarse: |x| x.0;
    Rough: |x| x.0;
}

macro_rules! from_whole {
    ($($t:ty: |$x:ident| $value:expr, $odd:expr;)*) => { $(
        impl Source for $t {
            #[inline(always)]
            fn to_f32(self) -> f32 {
                let $x = self;
                $value as f32
            }
            #[inline(always)]
            fn to_f32_odd(self) -> f32 {
                let $x = self;
                $odd
            }
            from_whole!(@wrap |$x| $value; to_i8: i8, to_i16: i16, to_i32: i32, to_i64: i64, to_u8: u8);
        }
    )* };
    (@wrap |$x:ident| $value:expr; $($method:ident: $int:ty),*) => { $(
        #[inline(always)]
        fn $method(self) -> $int {
            let $x = self;
            $value as $int
        }
    )* };
}
from_whole! {
    Wrapping<i8>: |x| x.0, x.0 as f32;
    Wrapping<i16>: |x| x.0, x.0 as f32;
    Wrapping<i32>: |x| x.0, convert::i32_to_f32_odd(x.0);
    Wrapping<i64>: |x| x.0, convert::i64_to_f32_odd(x.0);
    Wrapping<u8>: |x| x.0, x.0 as f32;
    Logic: |x| x.0 as u8, x.0 as u8 as f32;
}

impl Target for f32 {
    #[inline(always)]
    fn cast<S: Source>(source: S) -> Self {
        source.to_f32()
    }
}

macro_rules! target {
    ($($t:ty: |$source:ident| $value:expr;)*) => { $(
        impl Target for $t {
            #[inline(always)]
            fn cast<S: Source>($source: S) -> Self {
                $value
            }
        }
    )* };
}
target! {
    Coarse: |source| Coarse(source.to_f32_odd());
    Rough: |source| Rough(source.to_f32_odd());
    Wrapping<i8>: |source| Wrapping(source.to_i8());
    Wrapping<i16>: |source| Wrapping(source.to_i16());
    Wrapping<i32>: |source| Wrapping(source.to_i32());
    Wrapping<i64>: |source| Wrapping(source.to_i64());
    Wrapping<u8>: |source| Wrapping(source.to_u8());
    Logic: |source| Logic(source.truth());
}

/// The conversion of elements `A` to elements `B`.
#[derive(Clone, Copy, Debug)]
pub struct Convert<A, B>(PhantomData<(A, B)>);

impl<A: Element, B: Element> OpData for Convert<A, B> {
    const INFO: OpInfo = OpInfo { name: "to_dtype", kind: Kind::Convert, operands: &["x"], ..OpInfo::FORMULA };
    #[inline(always)]
    fn from_words(_: &ParamWords) -> Self {
        Convert(PhantomData)
    }
}

impl<A, B> Formula<A::Compute, 1, 1, B::Compute> for Convert<A, B>
where
    A: Element<Compute: Source>,
    B: Element<Compute: Target>,
{
    #[inline(always)]
    fn apply(self, [x]: [A::Compute; 1], _: [bool; 1], _: RandomWord<'_>) -> ([B::Compute; 1], [bool; 1]) {
        ([B::Compute::cast(x)], [false])
    }
}
