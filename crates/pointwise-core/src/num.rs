//! What a formula may use: the compute types and their operations.
//!
//! | compute type | storage types | maths |
//! |---|---|---|
//! | `f32` | f32 | [`crate::maths`], bounds of `docs/accuracy.md` |
//! | [`Coarse`] | f16, bf16 | [`crate::maths::half`]: `f32` arithmetic, functions good enough for a result rounded to 16 bits |
//! | [`Rough`] | f8e4m3, f8e5m2 | [`crate::maths::rough`]: `f32` arithmetic, functions and quotients good enough for 8 bits |
//! | `f64` | (the oracle) | std and `libm` |
//! | `Wrapping<int>` | i8, i16, i32, i64, u8 | two's complement, wrapping |
//! | [`Logic`] | bool | `+` is or, `*` is and, as in PyTorch |

use core::num::Wrapping;
use core::ops::{Add, BitAnd, BitOr, BitXor, Div, Mul, Neg, Not, Sub};

use crate::maths;
use crate::op::Word;

/// Any compute type: can be compared and tested.
pub trait Value: Word + PartialEq + PartialOrd + Send + Sync + 'static {
    /// Zero, or false.
    const ZERO: Self;
    /// One, or true.
    const ONE: Self;
    /// Not equal to zero: the value as a condition. NaN is true.
    fn truth(self) -> bool;
    /// False for every integer and bool.
    fn is_nan(self) -> bool;
    /// False for every integer and bool.
    fn is_infinite(self) -> bool;
}

/// Floats and integers. Integer arithmetic wraps.
pub trait Num: Value + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self> + Neg<Output = Self> {
    /// Magnitude; the smallest signed integer wraps to itself.
    fn abs(self) -> Self;
    /// The larger operand, NaN if either is NaN; `maximum(-0, +0)` is `+0`.
    fn maximum(self, other: Self) -> Self;
    /// The smaller operand, NaN if either is NaN; `minimum(-0, +0)` is `-0`.
    fn minimum(self, other: Self) -> Self;
    /// Towards minus infinity; integers unchanged.
    fn floor(self) -> Self;
    /// Towards plus infinity; integers unchanged.
    fn ceil(self) -> Self;
    /// Towards zero; integers unchanged.
    fn trunc(self) -> Self;
    /// To nearest, ties to even; integers unchanged.
    fn round_ties_even(self) -> Self;
    /// To `decimals` digits behind the point, ties to even, or before it where negative; integers unchanged.
    fn round_decimals(self, decimals: Self) -> Self;
    /// PyTorch's `remainder`: the sign of the divisor. Integers: 0 for a zero divisor.
    fn remainder(self, divisor: Self) -> Self;
    /// PyTorch's `floor_divide`, exact for floats. Integers: 0 for a zero divisor, wraps for `MIN / -1`.
    fn floor_divide(self, divisor: Self) -> Self;
    /// `div(rounding_mode='trunc')`. Integers: 0 for a zero divisor, wraps for `MIN / -1`.
    fn trunc_divide(self, divisor: Self) -> Self;
    /// C99 `pow`; integers by repeated squaring, a negative exponent as PyTorch has it.
    fn pow(self, exponent: Self) -> Self;
    /// `self * scale + addend`: floats with one rounding, integers wrap, bool by and and or.
    fn scaled_add(self, scale: Self, addend: Self) -> Self;
}

/// Integers and bool: whole-word logic.
pub trait Bits:
    Value + Not<Output = Self> + BitAnd<Output = Self> + BitOr<Output = Self> + BitXor<Output = Self>
{
}

/// Floats: what an activation's formula is written in.
///
/// Every method is branch-free, covers the whole range of the type and keeps NaN, infinities, subnormals and the sign of
/// zero as C99 has them. `/` and [`Real::sqrt`] are correctly rounded for `f32`.
pub trait Real: Num + Div<Output = Self> {
    /// A constant of the formula, rounded once to the compute type.
    fn constant(value: f64) -> Self;
    /// Infinity where f32 has overflowed; every other value is unchanged. For formulas whose intermediate overflow is
    /// part of PyTorch's semantics: compute types of f32's range do it by themselves, the oracle does not.
    fn in_range(self) -> Self;
    /// `self * a + b` with one rounding.
    fn mul_add(self, a: Self, b: Self) -> Self;
    /// Square root.
    fn sqrt(self) -> Self;
    /// `1 / sqrt(x)`.
    fn rsqrt(self) -> Self;
    /// `1 / x`.
    fn recip(self) -> Self;
    /// `e^x`.
    fn exp(self) -> Self;
    /// `e^x - 1`, accurate near 0.
    fn exp_m1(self) -> Self;
    /// `e^x - 1` for `x <= 0`; anything above.
    fn exp_m1_negative(self) -> Self;
    /// `yes` where `self > limit`, else `no`, NaN included: both are computed, where an `if` may become a branch.
    fn if_above(self, limit: Self, yes: Self, no: Self) -> Self;
    /// Natural logarithm.
    fn ln(self) -> Self;
    /// `ln(1 + x)`, accurate near 0.
    fn ln_1p(self) -> Self;
    /// Sine of an angle in radians.
    fn sin(self) -> Self;
    /// Cosine of an angle in radians.
    fn cos(self) -> Self;
    /// Hyperbolic tangent.
    fn tanh(self) -> Self;
    /// Error function.
    fn erf(self) -> Self;
    /// The normal distribution function, `erfc(-x / sqrt 2) / 2`: accurate in the far negative tail, where
    /// `1 + erf(x / sqrt 2)` cancels.
    fn normal_cdf(self) -> Self;
    /// The normal distribution's density, `e^(-x^2 / 2) / sqrt(2 pi)`.
    fn normal_density(self) -> Self;
    /// `1 / (1 + e^-x)`, accurate in the far negative tail.
    fn sigmoid(self) -> Self;
    /// `ln(1 + e^x)` without overflow.
    fn softplus(self) -> Self;
    /// `x / (1 + e^-x)`.
    fn silu(self) -> Self;
    /// `x tanh(ln(1 + e^x))`.
    fn mish(self) -> Self;
    /// `x (1 + erf(x / sqrt 2)) / 2`.
    fn gelu(self) -> Self;
    /// `x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) / 2`.
    fn gelu_tanh(self) -> Self;
    /// The value as an f64, exactly.
    fn to_f64(self) -> f64;
    /// PyTorch's dropout with probability `p` of an element that has the random word `bits`: `self / (1 - p)`, or +0
    /// (also for NaN and infinities) with probability `p`. It keeps what `ops::dropout` keeps at the same place.
    #[inline(always)]
    fn dropout(self, p: Self, bits: u32) -> Self {
        // Threshold and factor are the same for all elements of a thread: one division, exact for every type.
        let scale = (Self::ONE - p).recip();
        if (bits as u64) < crate::philox::words_kept(p.to_f64()) { self * scale } else { Self::ZERO }
    }
    /// A random word as a number, uniform over the multiples of 2^-24 in `0 .. 1`.
    #[inline(always)]
    fn uniform(bits: u32) -> Self {
        Self::constant(crate::philox::uniform(bits) as f64)
    }
}

/// `f32` arithmetic whose functions need only survive one rounding to f16 or bf16: the compute type of those two.
///
/// The bound (all 65,536 inputs, `docs/accuracy.md`): at most 1 ULP of the 16-bit type, correctly rounded for at least
/// 99.5 % of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
#[repr(transparent)]
pub struct Coarse(pub f32);

/// `f32` arithmetic whose quotients and functions need only survive one rounding to f8e4m3 or f8e5m2: the compute type of
/// those two.
///
/// Quotients and those functions whose speed shows have a relative error of about `2^-16`, the tail of gelu one of `2^-13`,
/// and count subnormal f32 as zeros. Of operands of 8 bits every result is correctly rounded (`tests/rough_maths.rs`).
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
#[repr(transparent)]
pub struct Rough(pub f32);

/// `f32` arithmetic with functions that are exact but for one rounding: the reference of formulas whose steps are rounded
/// to f32 as PyTorch's are, which the oracle's are not.
#[cfg(not(target_arch = "nvptx64"))]
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct Stepped(pub f32);

macro_rules! operators {
    ($t:ident: $($trait:ident $method:ident $op:tt),*) => { $(
        impl $trait for $t {
            type Output = Self;
            #[inline(always)]
            fn $method(self, other: Self) -> Self {
                $t(self.0 $op other.0)
            }
        }
    )* };
}
operators!(Coarse: Add add +, Sub sub -, Mul mul *);
operators!(Rough: Add add +, Sub sub -, Mul mul *);

macro_rules! divide_and_negate {
    ($($t:ident: $div:path;)*) => { $(
        impl Div for $t {
            type Output = Self;
            #[inline(always)]
            fn div(self, divisor: Self) -> Self {
                $t($div(self.0, divisor.0))
            }
        }

        impl Neg for $t {
            type Output = Self;
            #[inline(always)]
            fn neg(self) -> Self {
                $t(-self.0)
            }
        }
    )* };
}
divide_and_negate! {
    Coarse: maths::half::div;
    Rough: maths::rough::div;
}

/// `Value` and the exact part of `Num` for a type that wraps or is an `f32`.
macro_rules! f32_like {
    ($t:ty, $wrap:expr, |$x:ident| $get:expr, $functions:path) => {
        impl Value for $t {
            const ZERO: Self = $wrap(0.0);
            const ONE: Self = $wrap(1.0);
            #[inline(always)]
            fn truth(self) -> bool {
                let $x = self;
                $get != 0.0
            }
            #[inline(always)]
            fn is_nan(self) -> bool {
                let $x = self;
                $get != $get
            }
            #[inline(always)]
            fn is_infinite(self) -> bool {
                let $x = self;
                ($get).abs() == f32::INFINITY
            }
        }

        impl Num for $t {
            f32_like!(@num $wrap, |$x| $get;
                abs: f32::abs, floor: maths::prim::floor, ceil: maths::prim::ceil,
                trunc: maths::prim::trunc, round_ties_even: maths::prim::round_ties_even;
                maximum: maths::prim::maximum, minimum: maths::prim::minimum);
            f32_like!(@two $functions, $wrap, |$x| $get; remainder, floor_divide, trunc_divide, pow);
            #[inline(always)]
            fn round_decimals(self, decimals: Self) -> Self {
                let (x, d) = (
                    { let $x = self; $get },
                    { let $x = decimals; $get },
                );
                $wrap(maths::prim::round_decimals(x, d))
            }
            #[inline(always)]
            fn scaled_add(self, scale: Self, addend: Self) -> Self {
                Real::mul_add(self, scale, addend)
            }
        }

        impl Real for $t {
            #[inline(always)]
            fn constant(value: f64) -> Self {
                $wrap(value as f32)
            }
            #[inline(always)]
            fn in_range(self) -> Self {
                self
            }
            #[inline(always)]
            fn to_f64(self) -> f64 {
                let $x = self;
                $get as f64
            }
            #[inline(always)]
            fn mul_add(self, a: Self, b: Self) -> Self {
                let (x, y, z) = (
                    { let $x = self; $get },
                    { let $x = a; $get },
                    { let $x = b; $get },
                );
                $wrap(maths::prim::fma(x, y, z))
            }
            #[inline(always)]
            fn if_above(self, limit: Self, yes: Self, no: Self) -> Self {
                let get = |v: Self| {
                    let $x = v;
                    $get
                };
                $wrap(maths::prim::if_above(get(self), get(limit), get(yes), get(no)))
            }
            f32_like!(@real $functions, $wrap, |$x| $get;
                sqrt sqrt, rsqrt rsqrt, recip recip, exp exp, exp_m1 expm1,
                exp_m1_negative expm1_negative, ln ln, ln_1p log1p, sin sin, cos cos,
                tanh tanh, erf erf, normal_cdf normal_cdf, normal_density normal_density, sigmoid sigmoid, softplus softplus, silu silu, mish mish,
                gelu gelu, gelu_tanh gelu_tanh);
        }
    };
    (@num $wrap:expr, |$x:ident| $get:expr; $($one:ident: $f1:path),*; $($two:ident: $f2:path),*) => {
        $(#[inline(always)]
        fn $one(self) -> Self {
            let $x = self;
            $wrap($f1($get))
        })*
        $(#[inline(always)]
        fn $two(self, other: Self) -> Self {
            let (a, b) = (
                { let $x = self; $get },
                { let $x = other; $get },
            );
            $wrap($f2(a, b))
        })*
    };
    (@two $functions:path, $wrap:expr, |$x:ident| $get:expr; $($name:ident),*) => {
        $(#[inline(always)]
        fn $name(self, other: Self) -> Self {
            use $functions as functions;
            let (a, b) = (
                { let $x = self; $get },
                { let $x = other; $get },
            );
            $wrap(functions::$name(a, b))
        })*
    };
    (@real $functions:path, $wrap:expr, |$x:ident| $get:expr; $($method:ident $function:ident),*) => {
        $(#[inline(always)]
        fn $method(self) -> Self {
            use $functions as functions;
            let $x = self;
            $wrap(functions::$function($get))
        })*
    };
}

#[inline(always)]
const fn identity(x: f32) -> f32 {
    x
}

f32_like!(f32, identity, |x| x, crate::maths::single);
f32_like!(Coarse, Coarse, |x| x.0, crate::maths::half);
f32_like!(Rough, Rough, |x| x.0, crate::maths::rough);

#[cfg(not(target_arch = "nvptx64"))]
mod stepped {
    use super::*;

    operators!(Stepped: Add add +, Sub sub -, Mul mul *, Div div /);

    impl Neg for Stepped {
        type Output = Self;
        fn neg(self) -> Self {
            Stepped(-self.0)
        }
    }

    f32_like!(Stepped, Stepped, |x| x.0, self::functions);

    /// The oracle's functions, rounded to f32.
    mod functions {
        use super::{Num, Real};
        pub(super) use crate::maths::single::{floor_divide, remainder, trunc_divide};

        macro_rules! rounded {
            ($($name:ident $of:ident),*) => { $(
                pub(super) fn $name(x: f32) -> f32 {
                    Real::$of(f64::from(x)) as f32
                }
            )* };
        }
        rounded!(sqrt sqrt, rsqrt rsqrt, recip recip, exp exp, expm1 exp_m1, expm1_negative exp_m1_negative, ln ln,
            log1p ln_1p, sin sin, cos cos, tanh tanh, erf erf, normal_cdf normal_cdf, normal_density normal_density, sigmoid sigmoid,
            softplus softplus, silu silu, mish mish, gelu gelu, gelu_tanh gelu_tanh);

        pub(super) fn pow(a: f32, b: f32) -> f32 {
            Num::pow(f64::from(a), f64::from(b)) as f32
        }
    }
}

macro_rules! integers {
    ($($t:ident: $abs:ident),*) => { $(
        impl Value for Wrapping<$t> {
            const ZERO: Self = Wrapping(0);
            const ONE: Self = Wrapping(1);
            #[inline(always)]
            fn truth(self) -> bool {
                self.0 != 0
            }
            #[inline(always)]
            fn is_nan(self) -> bool {
                false
            }
            #[inline(always)]
            fn is_infinite(self) -> bool {
                false
            }
        }

        impl Bits for Wrapping<$t> {}

        #[allow(unused_comparisons)] // one body for signed and unsigned
        impl Num for Wrapping<$t> {
            #[inline(always)]
            fn abs(self) -> Self {
                if self.0 < 0 { -self } else { self }
            }
            #[inline(always)]
            fn maximum(self, other: Self) -> Self {
                if self.0 > other.0 { self } else { other }
            }
            #[inline(always)]
            fn minimum(self, other: Self) -> Self {
                if self.0 < other.0 { self } else { other }
            }
            #[inline(always)]
            fn floor(self) -> Self {
                self
            }
            #[inline(always)]
            fn ceil(self) -> Self {
                self
            }
            #[inline(always)]
            fn trunc(self) -> Self {
                self
            }
            #[inline(always)]
            fn round_ties_even(self) -> Self {
                self
            }
            #[inline(always)]
            fn round_decimals(self, _: Self) -> Self {
                self
            }
            #[inline(always)]
            fn remainder(self, divisor: Self) -> Self {
                let r = self.0.checked_rem(divisor.0).unwrap_or(0);
                let adjust = r != 0 && (r < 0) != (divisor.0 < 0);
                Wrapping(if adjust { r.wrapping_add(divisor.0) } else { r })
            }
            #[inline(always)]
            fn floor_divide(self, divisor: Self) -> Self {
                let q = self.trunc_divide(divisor).0;
                let r = self.0.wrapping_sub(q.wrapping_mul(divisor.0));
                let adjust = divisor.0 != 0 && r != 0 && (r < 0) != (divisor.0 < 0);
                Wrapping(if adjust { q.wrapping_sub(1) } else { q })
            }
            #[inline(always)]
            fn trunc_divide(self, divisor: Self) -> Self {
                // `checked_div` is None for a zero divisor and for MIN / -1, which wraps to MIN.
                let fallback = if divisor.0 == 0 { 0 } else { self.0 };
                Wrapping(self.0.checked_div(divisor.0).unwrap_or(fallback))
            }
            #[inline(always)]
            fn pow(self, exponent: Self) -> Self {
                let (mut result, mut base, mut e) = (Wrapping(1 as $t), self, exponent.0);
                let negative = e < 0;
                if negative {
                    // |base| > 1 gives 0, 1 gives 1, -1 gives +-1 by parity: only parity matters, so one round serves.
                    result = if base.0 == 1 || base == -Wrapping(1 as $t) {
                        if e & 1 == 1 { base } else { result }
                    } else {
                        Wrapping(0)
                    };
                    e = 0;
                }
                while e != 0 {
                    result = if e & 1 == 1 { result * base } else { result };
                    base = base * base;
                    e >>= 1;
                }
                result
            }
            #[inline(always)]
            fn scaled_add(self, scale: Self, addend: Self) -> Self {
                self * scale + addend
            }
        }
    )* };
}
integers!(i8: wrapping_abs, i16: wrapping_abs, i32: wrapping_abs, i64: wrapping_abs, u8: abs);

/// The compute type of bool: addition and maximum are or, multiplication and minimum are and. PyTorch refuses `sub`
/// and `neg` on bool, so no table lists them; here they are exclusive or and the identity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[repr(transparent)]
pub struct Logic(pub bool);

macro_rules! logic {
    ($($trait:ident $method:ident $op:tt),*) => { $(
        impl $trait for Logic {
            type Output = Self;
            #[inline(always)]
            #[allow(clippy::suspicious_arithmetic_impl)] // PyTorch's arithmetic on bool
            fn $method(self, other: Self) -> Self {
                Logic(self.0 $op other.0)
            }
        }
    )* };
}
logic!(Add add |, Sub sub ^, Mul mul &, BitAnd bitand &, BitOr bitor |, BitXor bitxor ^);

impl Not for Logic {
    type Output = Self;
    #[inline(always)]
    fn not(self) -> Self {
        Logic(!self.0)
    }
}

impl Neg for Logic {
    type Output = Self;
    #[inline(always)]
    fn neg(self) -> Self {
        self
    }
}

impl Value for Logic {
    const ZERO: Self = Logic(false);
    const ONE: Self = Logic(true);
    #[inline(always)]
    fn truth(self) -> bool {
        self.0
    }
    #[inline(always)]
    fn is_nan(self) -> bool {
        false
    }
    #[inline(always)]
    fn is_infinite(self) -> bool {
        false
    }
}

impl Bits for Logic {}

macro_rules! logic_num {
    (same: $($same:ident),*; $($method:ident: |$a:ident, $b:ident| $value:expr),*) => {
        impl Num for Logic {
            $(#[inline(always)]
            fn $same(self) -> Self {
                self
            })*
            $(#[inline(always)]
            fn $method(self, other: Self) -> Self {
                let ($a, $b) = (self.0, other.0);
                Logic($value)
            })*
            #[inline(always)]
            fn scaled_add(self, scale: Self, addend: Self) -> Self {
                self * scale + addend
            }
        }
    };
}
logic_num!(same: abs, floor, ceil, trunc, round_ties_even;
    round_decimals: |a, _b| a, maximum: |a, b| a | b, minimum: |a, b| a & b, remainder: |_a, _b| false,
    floor_divide: |a, b| a & b, trunc_divide: |a, b| a & b, pow: |a, b| a | !b);

#[cfg(not(target_arch = "nvptx64"))]
mod oracle {
    //! `f64`: what every kernel is checked against.

    use super::{Num, Real, Value};
    use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_PI, FRAC_2_SQRT_PI};

    impl Value for f64 {
        const ZERO: Self = 0.0;
        const ONE: Self = 1.0;
        fn truth(self) -> bool {
            self != 0.0
        }
        fn is_nan(self) -> bool {
            f64::is_nan(self)
        }
        fn is_infinite(self) -> bool {
            f64::is_infinite(self)
        }
    }

    impl Num for f64 {
        fn abs(self) -> Self {
            f64::abs(self)
        }
        fn maximum(self, other: Self) -> Self {
            if self.is_nan() || other.is_nan() {
                f64::NAN
            } else if self == other {
                if self.is_sign_negative() { other } else { self }
            } else if self > other {
                self
            } else {
                other
            }
        }
        fn minimum(self, other: Self) -> Self {
            -Num::maximum(-self, -other)
        }
        fn floor(self) -> Self {
            f64::floor(self)
        }
        fn ceil(self) -> Self {
            f64::ceil(self)
        }
        fn trunc(self) -> Self {
            f64::trunc(self)
        }
        fn round_ties_even(self) -> Self {
            f64::round_ties_even(self)
        }
        fn round_decimals(self, decimals: Self) -> Self {
            let scale = 10.0_f64.powi(decimals.abs() as i32);
            if decimals < 0.0 {
                (self / scale).round_ties_even() * scale
            } else {
                (self * scale).round_ties_even() / scale
            }
        }
        fn remainder(self, divisor: Self) -> Self {
            let m = self % divisor;
            if m != 0.0 && (divisor < 0.0) != (m < 0.0) { m + divisor } else { m }
        }
        fn floor_divide(self, divisor: Self) -> Self {
            if divisor == 0.0 {
                return self / divisor;
            }
            let m = self % divisor;
            let adjust = m != 0.0 && (divisor < 0.0) != (m < 0.0);
            let q = (self - m) / divisor - if adjust { 1.0 } else { 0.0 };
            if q == 0.0 {
                return 0.0_f64.copysign(self / divisor);
            }
            let f = q.floor();
            if q - f > 0.5 { f + 1.0 } else { f }
        }
        fn trunc_divide(self, divisor: Self) -> Self {
            (self / divisor).trunc()
        }
        fn pow(self, exponent: Self) -> Self {
            f64::powf(self, exponent)
        }
        fn scaled_add(self, scale: Self, addend: Self) -> Self {
            f64::mul_add(self, scale, addend)
        }
    }

    impl Real for f64 {
        fn constant(value: f64) -> Self {
            value
        }
        fn to_f64(self) -> f64 {
            self
        }
        fn in_range(self) -> Self {
            // NaN and what f32 holds stay.
            if (self as f32).is_infinite() { (self as f32) as f64 } else { self }
        }
        fn mul_add(self, a: Self, b: Self) -> Self {
            f64::mul_add(self, a, b)
        }
        fn sqrt(self) -> Self {
            f64::sqrt(self)
        }
        fn rsqrt(self) -> Self {
            1.0 / f64::sqrt(self)
        }
        fn recip(self) -> Self {
            1.0 / self
        }
        fn exp(self) -> Self {
            f64::exp(self)
        }
        fn exp_m1(self) -> Self {
            f64::exp_m1(self)
        }
        fn exp_m1_negative(self) -> Self {
            f64::exp_m1(self)
        }
        fn if_above(self, limit: Self, yes: Self, no: Self) -> Self {
            if self > limit { yes } else { no }
        }
        fn ln(self) -> Self {
            f64::ln(self)
        }
        fn ln_1p(self) -> Self {
            f64::ln_1p(self)
        }
        fn sin(self) -> Self {
            f64::sin(self)
        }
        fn cos(self) -> Self {
            f64::cos(self)
        }
        fn tanh(self) -> Self {
            f64::tanh(self)
        }
        fn erf(self) -> Self {
            libm::erf(self)
        }
        fn normal_cdf(self) -> Self {
            0.5 * libm::erfc(-self * FRAC_1_SQRT_2)
        }
        fn normal_density(self) -> Self {
            (-0.5 * self * self).exp() * (FRAC_2_SQRT_PI * FRAC_1_SQRT_2 / 2.0)
        }
        fn sigmoid(self) -> Self {
            1.0 / (1.0 + (-self).exp())
        }
        fn softplus(self) -> Self {
            Num::maximum(self, 0.0) + (-f64::abs(self)).exp().ln_1p()
        }
        fn silu(self) -> Self {
            self / (1.0 + (-self).exp())
        }
        fn mish(self) -> Self {
            self * self.softplus().tanh()
        }
        fn gelu(self) -> Self {
            self * self.normal_cdf()
        }
        fn gelu_tanh(self) -> Self {
            // x * sigmoid(2u) is x (1 + tanh u) / 2 without its cancellation.
            let u = FRAC_2_PI.sqrt() * (self + 0.044715 * self * self * self);
            self * (2.0 * u).sigmoid()
        }
    }
}
