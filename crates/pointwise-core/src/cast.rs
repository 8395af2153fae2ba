//! Conversion between element types.
//!
//! | from | to | rule |
//! |---|---|---|
//! | float | float | one rounding, by the rules of results: f8e4m3 saturates, the others overflow to infinity |
//! | integer | float | one rounding of the whole value, 64 bits too |
//! | float | i8, i16, i32, i64 | towards zero; the nearest end beyond the range; NaN is 0 |
//! | float | u8 | as to i64, then the low 8 bits: -1.0 is 255, as in PyTorch |
//! | integer | integer | the low bits |
//! | any | bool | false for 0, else true; NaN is true |
//! | bool | any | 0 or 1 |
//!
//! PyTorch leaves a float beyond a signed integer's range to the machine; here it is the same on every one.

use core::marker::PhantomData;
use core::num::Wrapping;

use duplicate::duplicate_item;

use crate::convert;
use crate::element::Element;
use crate::formula::{Formula, OpData, ParamWords};
use crate::info::{Kind, OpInfo};
use crate::num::{Coarse, Logic, Rough, Value};

/// A compute type that conversions start from. The provided methods are right for floats.
pub trait Source: Value {
    /// Returns the nearest f32.
    fn to_f32(self) -> f32;
    /// Returns an f32 that rounds to any type of at most 22 significant bits as the value itself does.
    #[inline(always)]
    fn to_f32_odd(self) -> f32 {
        self.to_f32()
    }
    #[duplicate_item(name int; [to_i8] [i8]; [to_i16] [i16]; [to_i32] [i32]; [to_i64] [i64])]
    #[doc = concat!("To ", stringify!(int), ", by the rules of the [module](self).")]
    #[inline(always)]
    fn name(self) -> int {
        self.to_f32() as int
    }
    /// To u8, by the rules of the [module](self).
    #[inline(always)]
    fn to_u8(self) -> u8 {
        self.to_i64() as u8
    }
}

/// A compute type that conversions end in.
pub trait Target: Value {
    /// Converts a value. The types narrower than f32 round the result once more.
    fn cast<S: Source>(source: S) -> Self;
}

#[duplicate_item(Type value; [f32] [self]; [Coarse] [self.0]; [Rough] [self.0])]
impl Source for Type {
    #[inline(always)]
    fn to_f32(self) -> f32 {
        value
    }
}

#[duplicate_item(
    Type             value           odd;
    [Wrapping<i8>]   [self.0]        [self.to_f32()];
    [Wrapping<i16>]  [self.0]        [self.to_f32()];
    [Wrapping<i32>]  [self.0]        [convert::i32_to_f32_odd(self.0)];
    [Wrapping<i64>]  [self.0]        [convert::i64_to_f32_odd(self.0)];
    [Wrapping<u8>]   [self.0]        [self.to_f32()];
    [Logic]          [self.0 as u8]  [self.to_f32()];
)]
impl Source for Type {
    #[inline(always)]
    fn to_f32_odd(self) -> f32 {
        odd
    }
    #[duplicate_item(
        name number; [to_f32] [f32]; [to_i8] [i8]; [to_i16] [i16]; [to_i32] [i32]; [to_i64] [i64]; [to_u8] [u8]
    )]
    #[inline(always)]
    #[allow(clippy::unnecessary_cast)] // of a type to itself
    fn name(self) -> number {
        value as number
    }
}

#[duplicate_item(
    Type             value;
    [f32]            [source.to_f32()];
    [Coarse]         [Coarse(source.to_f32_odd())];
    [Rough]          [Rough(source.to_f32_odd())];
    [Wrapping<i8>]   [Wrapping(source.to_i8())];
    [Wrapping<i16>]  [Wrapping(source.to_i16())];
    [Wrapping<i32>]  [Wrapping(source.to_i32())];
    [Wrapping<i64>]  [Wrapping(source.to_i64())];
    [Wrapping<u8>]   [Wrapping(source.to_u8())];
    [Logic]          [Logic(source.truth())];
)]
impl Target for Type {
    #[inline(always)]
    fn cast<S: Source>(source: S) -> Self {
        value
    }
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
    fn apply(self, [x]: [A::Compute; 1], _: [bool; 1], _: crate::At<'_>) -> ([B::Compute; 1], [bool; 1]) {
        ([B::Compute::cast(x)], [false])
    }
}
