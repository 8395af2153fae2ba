//! f32 functions for results that are rounded to f8e4m3 or f8e5m2 next. They take fewer instructions still than in
//! [`super::half`]; functions whose speed does not show come from there.
//!
//! Results of 8 bits leave much room: the quotient of two such numbers is either a number of few bits or further than
//! `2^-9` of itself from every number half way between two results. A quotient of few bits must be exact, as it may lie
//! half way itself. So quotients and powers are made `2^-17` too large and cut to 17 bits, which removes any error
//! below `2^-17`. `tests/narrow_maths` compares all pairs of operands with f64, with instructions that err by as much
//! as the PTX ISA allows.
//!
//! Subnormal f32 count as zeros: 8-bit numbers lie far above them.

pub use super::half::{
    Native, cos, erf, exp, exp_negative, exp_negative_16, expm1, expm1_negative, ln, log1p, mish, mish_derivative,
    normal_cdf, normal_density, over_twice_sqrt, pow_gradients, sigmoid, sin, softplus, sqrt, tanh, times_exp,
    times_sigmoid,
};
pub use super::single::{recip, rsqrt};

use duplicate::duplicate_item;

use super::half::Approx;
#[cfg(target_arch = "nvptx64")]
use super::prim::ptx;
use super::prim::{ROUND_MAGIC, at_least, at_most, floor as round_down, fma, step_down, trunc};
use crate::info::BinaryFunction;
use crate::num::Short;
use core::f32::consts::LOG2_E;

/// The bits that are cut.
const CUT: u32 = 0x7F;
/// `2^-17`: a result is too large by this part before it is cut.
const EXCESS: f32 = f32::from_bits((127 - 17) << 23);

/// Computes a function by its short path. Only quotients have one: f16's, as all numbers of 8 bits are f16 numbers. It
/// is right for divisors of f32, too.
#[inline(always)]
pub fn short(a: f32, b: f32, function: BinaryFunction) -> Short<f32> {
    match function {
        BinaryFunction::Quotient => Short::known(Native::quotient_of_f16(a, b), true),
        BinaryFunction::TruncatedQuotient => Short::known(trunc(Native::quotient_of_f16(a, b)), true),
        BinaryFunction::FlooredQuotient | BinaryFunction::Modulo | BinaryFunction::Power => Short::known(a, false),
    }
}

/// The functions that [`Approx`] lacks, or computes in more instructions than results of 8 bits need.
pub trait Estimate: Approx {
    /// `a / b`, relative error `2^-22`; subnormal operands and results may become zero.
    fn quotient(a: f32, b: f32) -> f32;

    /// `a / b`.
    #[inline(always)]
    fn div(a: f32, b: f32) -> f32 {
        let q = Self::quotient(a, b);
        cut(fma(q, EXCESS, q))
    }

    /// The quotient, cut towards zero.
    #[inline(always)]
    fn trunc_divide(a: f32, b: f32) -> f32 {
        trunc(Self::div(a, b))
    }

    /// The quotient rounded down, as in PyTorch: NaN for an infinite `a`, 0 or -1 for an infinite `b`. Divisors beyond
    /// 2^100 count as 2^100.
    #[inline(always)]
    fn floor_divide(a: f32, b: f32) -> f32 {
        let q = a * Self::rcp(bounded(b));
        let floor = round_down(cut(fma(q, EXCESS, q)));
        if (a.abs() == f32::INFINITY) & (b != 0.0) { f32::NAN } else { floor }
    }

    /// The remainder of the quotient rounded down. It has the sign of `b`; a zero has the sign of `a`. For quotients
    /// below 2^36; two 8-bit numbers give less than 2^33. Divisors beyond 2^100 count as 2^100.
    #[inline(always)]
    fn remainder(a: f32, b: f32) -> f32 {
        const DOWN: f32 = f32::from_bits((127 - 16) << 23);
        let divisor = bounded(b);
        let r = Self::rcp(divisor);
        // Without multiples of 2^16 b, as a quotient of 2^24 and more is no f32. The difference is exact.
        let many = fma(a, r * DOWN, ROUND_MAGIC) - ROUND_MAGIC;
        let rest = fma(-many, divisor * (1.0 / DOWN), a);
        // An estimate of the quotient, and its floor by the sign of the remainder, which a rounding cannot change.
        let t = fma(rest, r, ROUND_MAGIC);
        let floor = step_down(fma(ROUND_MAGIC - t, divisor, rest), r, t) - ROUND_MAGIC;
        let rest = fma(-floor, divisor, rest);
        if rest == 0.0 { 0.0_f32.copysign(a) } else { rest }
    }

    /// `x / (1 + e^-x)`; NaN at -Inf.
    #[inline(always)]
    fn silu(x: f32) -> f32 {
        x * Self::rcp(Self::ex2_flush(x * -LOG2_E) + 1.0)
    }

    /// `x (1 + tanh u) / 2`, `u = sqrt(2/pi) (x + 0.044715 x^3)`; NaN at -Inf.
    #[inline(always)]
    fn gelu_tanh(x: f32) -> f32 {
        // (1 + tanh u) / 2 = 1 / (1 + e^-2u); the factors are 2 sqrt(2/pi) log2(e) and 0.044715 times that.
        let t = x * fma(x * x, -0.102_943_24, -2.302_208_2);
        x * Self::rcp(Self::ex2_flush(t) + 1.0)
    }

    /// `x (1 + erf(x / sqrt 2)) / 2`; NaN at -Inf.
    #[inline(always)]
    fn gelu(x: f32) -> f32 {
        // max(x, 0) - |x| cdf(-|x|). The bound keeps +Inf from being multiplied with the zero of its tail.
        let b = at_most(x, 64.0).abs();
        // The tail is e^(-b^2 / 2) times a polynomial without constant term in y = 1 / (1 + 0.475 b): 2^-13.2 for b <=
        // 6.7. Beyond it every 8-bit result is zero.
        let y = Self::rcp(fma(b, 0.475, 1.0));
        let p = fma(y, -0.122_640_096, 0.276_088_45);
        let p = fma(y, p, 0.153_478_41);
        let p = fma(y, p, 0.193_052_26);
        let tail = Self::ex2_flush(b * (b * (-0.5 * LOG2_E))) * (y * p);
        fma(-b, tail, at_least(x, -0.0))
    }

    /// C99 `pow`. Exponents of magnitude 2^16 and more count as even integers.
    #[inline(always)]
    fn pow(a: f32, b: f32) -> f32 {
        let c = at_least(at_most(b, 65536.0), -65536.0);
        // The low bit of the sum is the integer's.
        let t = c + ROUND_MAGIC;
        let whole = t - ROUND_MAGIC == c;
        let odd = if whole { t.to_bits() << 31 } else { 0 };
        // The logarithm of a negative number is NaN, and so is its power. The power of -Inf is a number.
        let base = if_either([(t - ROUND_MAGIC, c), (a, f32::NEG_INFINITY)], a.abs(), a);
        let power = cut(Self::ex2_flush(fma(c, Self::lg2_flush(base), EXCESS * LOG2_E)));
        let signed = f32::from_bits(power.to_bits() | (odd & a.to_bits()));
        if_either([(a, 1.0), (b, 0.0)], 1.0, signed)
    }
}

/// Replaces a larger divisor by one that is large enough for every quotient to be below 1, and small enough for none to
/// vanish.
#[inline(always)]
fn bounded(b: f32) -> f32 {
    const LARGE: f32 = f32::from_bits((127 + 100) << 23);
    at_least(at_most(b, LARGE), -LARGE)
}

/// Returns `yes` if the numbers of either pair are equal, else `no`: two comparisons and one selection. Compilers would
/// make two selections.
#[inline(always)]
fn if_either([(a, b), (c, d)]: [(f32, f32); 2], yes: f32, no: f32) -> f32 {
    #[cfg(target_arch = "nvptx64")]
    {
        let y;
        // SAFETY: instructions from registers to a register.
        unsafe {
            core::arch::asm!(
                "{{ .reg .pred p; setp.eq.f32 p, {a}, {b}; setp.eq.or.f32 p, {c}, {d}, p; selp.f32 {y}, {yes}, {no}, p; }}",
                y = out(reg32) y, a = in(reg32) a, b = in(reg32) b, c = in(reg32) c, d = in(reg32) d,
                yes = in(reg32) yes, no = in(reg32) no, options(pure, nomem, nostack),
            );
        }
        y
    }
    #[cfg(not(target_arch = "nvptx64"))]
    {
        if (a == b) | (c == d) { yes } else { no }
    }
}

/// Cuts towards zero, to 17 bits.
#[inline(always)]
fn cut(x: f32) -> f32 {
    f32::from_bits(x.to_bits() & !CUT)
}

#[cfg(target_arch = "nvptx64")]
impl Estimate for Native {
    #[inline(always)]
    fn quotient(a: f32, b: f32) -> f32 {
        ptx!("div.full.ftz.f32 {}, {}, {};", a, b)
    }
}

#[cfg(not(target_arch = "nvptx64"))]
impl Estimate for Native {
    #[inline(always)]
    fn quotient(a: f32, b: f32) -> f32 {
        a / b
    }
    /// The same result as by the kernels' short path, also for divisors of f32.
    #[inline(always)]
    fn div(a: f32, b: f32) -> f32 {
        a / b
    }
}

#[duplicate_item(
    name         text;
    [silu]       ["`x / (1 + e^-x)`; NaN at -Inf."];
    [gelu_tanh]  ["`x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) / 2`; NaN at -Inf."];
    [gelu]       ["`x (1 + erf(x / sqrt 2)) / 2`; NaN at -Inf."];
)]
#[doc = text]
#[inline(always)]
pub fn name(x: f32) -> f32 {
    <Native as Estimate>::name(x)
}

#[duplicate_item(
    name            text;
    [div]           ["`a / b`, relative error `2^-16`."];
    [trunc_divide]  ["The quotient, cut towards zero."];
    [floor_divide]  ["The quotient, rounded down."];
    [remainder]     ["The remainder of the quotient, rounded down."];
    [pow]           ["C99 `pow`. Exponents of magnitude 2^16 and more count as even integers."];
)]
#[doc = text]
#[inline(always)]
pub fn name(a: f32, b: f32) -> f32 {
    <Native as Estimate>::name(a, b)
}
