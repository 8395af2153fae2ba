//! The 8-bit floating-point storage types: [`F8E4M3`] and [`F8E5M2`].
//!
//! They carry no arithmetic: an op decodes to f32, computes, and rounds once. The formats are in Micikevicius et al.,
//! "FP8 Formats for Deep Learning", 2022 (arXiv 2209.05433). They equal PyTorch's `float8_e4m3fn` and `float8_e5m2`,
//! except that e4m3fn saturates where PyTorch's cast gives NaN.

use core::cmp::Ordering;
use core::fmt;

use duplicate::duplicate_item;

use crate::convert;

/// e4m3fn: 1 sign, 4 exponent (bias 7), 3 mantissa bits; no infinity, NaN is `0x7F` and `0xFF`.
///
/// Conversions **saturate**: a number that rounds above 448 becomes 448, infinity too. NaN stays NaN.
#[repr(transparent)]
#[derive(Clone, Copy, Default)]
pub struct F8E4M3(u8);

/// e5m2: 1 sign, 5 exponent (bias 15), 2 mantissa bits; infinity is `0x7C` and `0xFC`, NaN the
/// codes above.
///
/// Conversions **do not saturate**: abs(x) >= 61440 becomes infinity.
#[repr(transparent)]
#[derive(Clone, Copy, Default)]
pub struct F8E5M2(u8);

#[duplicate_item(
    Type      widen          narrow         narrow_f64     max     min_positive  nan_above;
    [F8E4M3]  [e4m3_to_f32]  [f32_to_e4m3]  [f64_to_e4m3]  [0x7E]  [0x08]        [0x7E];
    [F8E5M2]  [e5m2_to_f32]  [f32_to_e5m2]  [f64_to_e5m2]  [0x7B]  [0x04]        [0x7C];
)]
impl Type {
    /// Positive zero.
    pub const ZERO: Self = Self(0);
    /// The largest finite value.
    pub const MAX: Self = Self(max);
    /// The lowest finite value.
    pub const MIN: Self = Self(max | 0x80);
    /// The smallest positive normal value.
    pub const MIN_POSITIVE: Self = Self(min_positive);
    /// The smallest positive subnormal value.
    pub const MIN_POSITIVE_SUBNORMAL: Self = Self(1);
    /// The NaN that conversions return.
    pub const NAN: Self = Self(0x7F);

    /// Returns the value with these stored bits. Every byte is valid.
    #[inline(always)]
    pub const fn from_bits(bits: u8) -> Self {
        Self(bits)
    }

    /// Returns the stored bits.
    #[inline(always)]
    pub const fn to_bits(self) -> u8 {
        self.0
    }

    /// Rounds to nearest, ties to even; the sign of zero is kept.
    #[inline(always)]
    pub fn from_f32(x: f32) -> Self {
        Self(convert::narrow(x))
    }

    /// Rounds an f64 once, by the rules of [`Self::from_f32`].
    #[inline(always)]
    pub fn from_f64(x: f64) -> Self {
        Self(convert::narrow_f64(x))
    }

    /// Returns the same value as f32. Exact.
    #[inline(always)]
    pub fn to_f32(self) -> f32 {
        convert::widen(self.0)
    }

    /// Returns the same value as f64. Exact.
    #[inline(always)]
    pub fn to_f64(self) -> f64 {
        self.to_f32() as f64
    }

    /// True for the NaN codes.
    #[inline(always)]
    pub const fn is_nan(self) -> bool {
        self.0 & 0x7F > nan_above
    }

    /// True if the value is neither infinite nor NaN.
    #[inline(always)]
    pub const fn is_finite(self) -> bool {
        self.0 & 0x7F <= max
    }

    /// True if the sign bit is set (also for -0 and NaN).
    #[inline(always)]
    pub const fn is_sign_negative(self) -> bool {
        self.0 & 0x80 != 0
    }
}

#[duplicate_item(Type suffix; [F8E4M3] ["_f8e4m3"]; [F8E5M2] ["_f8e5m2"])]
const _: () = {
    /// Compares values: NaN equals nothing, +0 equals -0.
    impl PartialEq for Type {
        #[inline(always)]
        fn eq(&self, other: &Self) -> bool {
            self.to_f32() == other.to_f32()
        }
    }

    /// Compares values: NaN is unordered.
    impl PartialOrd for Type {
        #[inline(always)]
        fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
            self.to_f32().partial_cmp(&other.to_f32())
        }
    }

    impl fmt::Display for Type {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            fmt::Display::fmt(&self.to_f32(), f)
        }
    }

    impl fmt::Debug for Type {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            fmt::Debug::fmt(&self.to_f32(), f)?;
            f.write_str(suffix)
        }
    }

    impl From<Type> for f32 {
        #[inline(always)]
        fn from(x: Type) -> f32 {
            x.to_f32()
        }
    }

    impl From<Type> for f64 {
        #[inline(always)]
        fn from(x: Type) -> f64 {
            x.to_f64()
        }
    }
};

impl F8E5M2 {
    /// Positive infinity.
    pub const INFINITY: Self = Self(0x7C);
    /// Negative infinity.
    pub const NEG_INFINITY: Self = Self(0xFC);

    /// True for +Inf and -Inf.
    #[inline(always)]
    pub const fn is_infinite(self) -> bool {
        self.0 & 0x7F == 0x7C
    }
}

impl F8E4M3 {
    /// Always false: the format has no infinity.
    #[inline(always)]
    pub const fn is_infinite(self) -> bool {
        false
    }
}
