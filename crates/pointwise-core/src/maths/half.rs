//! f32 functions for results that are rounded to f16 or bf16 next: fewer instructions than the accurate ones.
//!
//! An argument is an f16 or bf16 widened to f32 (any f32 is served, with the accuracy of f32 arithmetic at best). Over
//! all 65,536 inputs of either type a result rounded to that type is within 1 ULP of the exact one, and is the exact
//! one rounded for at least 99.5 % of the inputs; `tests/half_maths.rs` measures both. That takes a relative error of
//! about `2^-21` (f16) and `2^-18` (bf16), near the zeros of a function and in its tails too, down to the subnormal
//! numbers of the 16-bit type.
//!
//! A function is built on the four operations of [`Approx`] that a GPU has as approximate instructions, beside the
//! exact arithmetic of f32. Which instructions is a type parameter, so that the tests can put in ones with the largest
//! error that the PTX ISA allows. Polynomials are minimax fits made for this crate (weighted least squares iterated
//! after Lawson, coefficients rounded to f32 one after the other); the error stated at each is its relative one.
//!
//! `div` and `sqrt` are correctly rounded in f32: results of f16 and bf16 are then correctly rounded too
//! (24 >= 2 * 11 + 2; Figueroa, "When is double rounding innocuous?", SIGNUM Newsletter 30, 1995). `recip` is so for
//! arguments of 16 bits: `1 - m x` with `m` half way between two results is a multiple of `2^-22` or more.

pub use super::single::{floor_divide, remainder, trunc_divide};

use super::prim::{self, ROUND_MAGIC, at_least, at_most, fma, mostly, rarely};
use core::f32::consts::{LN_2, LOG2_E};

/// pi = PI + PI_LOW, to 48 bits, both positive: of -0 a reduction by `0 * pi` then leaves -0.
const PI: f32 = 3.141_592_5;
const PI_LOW: f32 = 1.509_957_9e-7;
const INV_PI: f32 = core::f32::consts::FRAC_1_PI;
/// log2(e) = LOG2_E + LOG2_E_LOW, to 48 bits.
const LOG2_E_LOW: f32 = 1.925_963e-8;

/// Beyond this magnitude the two terms of pi no longer reduce an angle well enough. Above every finite f16.
pub(super) const LARGE_ANGLE: f32 = 1e5;

/// Whether the magnitude of `x` is at most [`LARGE_ANGLE`]; of NaN it is not.
#[inline(always)]
pub(super) fn is_small(x: f32) -> bool {
    x.abs() < LARGE_ANGLE.next_up()
}

/// The operations that a GPU approximates, with the largest errors of the PTX ISA, and the functions made of them.
///
/// An implementation must treat infinities, zeros, NaN and negative numbers as the exact function does.
pub trait Approx {
    /// `2^x`, relative error `2^-22`; subnormal results are kept.
    fn ex2(x: f32) -> f32;
    /// As [`Approx::ex2`], but a subnormal result becomes zero.
    fn ex2_flush(x: f32) -> f32;
    /// `log2 x`, absolute error `2^-22` between 1/2 and 2, relative error `2^-22` elsewhere; subnormal arguments count.
    fn lg2(x: f32) -> f32;
    /// As [`Approx::lg2`], but a subnormal argument may count as zero.
    fn lg2_flush(x: f32) -> f32;
    /// `1 / x`, relative error `2^-22`; subnormal arguments and results may become zero.
    fn rcp(x: f32) -> f32;
    /// `1 / x`, relative error `2^-23`; subnormal arguments and results count.
    fn recip(x: f32) -> f32;
    /// `1 / sqrt(x)`, relative error `2^-22`; subnormal arguments count.
    fn rsq(x: f32) -> f32;

    /// `e^x`.
    #[inline(always)]
    fn exp(x: f32) -> f32 {
        Self::ex2(x * LOG2_E)
    }

    /// `2^x`.
    #[inline(always)]
    fn exp2(x: f32) -> f32 {
        Self::ex2(x)
    }

    /// `e^x - 1`.
    #[inline(always)]
    fn expm1(x: f32) -> f32 {
        let far = Self::ex2_flush(x * LOG2_E) - 1.0;
        // (e^x - 1) / x for |x| <= 1/2: 2^-23.0.
        let p = fma(x, 0.001_387_245_6, 0.008_402_264);
        let p = fma(x, p, 0.041_669_104);
        let p = fma(x, p, 0.166_661_38);
        let p = fma(x, p, 0.499_999_82);
        let near = x * fma(x, p, 1.0);
        if x.abs() < 0.5 { near } else { far }
    }

    /// `e^x - 1` for `x <= 0`.
    #[inline(always)]
    fn expm1_negative(x: f32) -> f32 {
        Self::expm1(x)
    }

    /// `ln x`.
    #[inline(always)]
    fn ln(x: f32) -> f32 {
        // Near 1 the logarithm of the hardware is good in absolute terms only.
        let f = x - 1.0;
        let far = Self::lg2(x) * LN_2;
        if f.abs() < 0.25 { f * ln_1p_over_x(f) } else { far }
    }

    /// `log2 x`, near 1 too; a subnormal argument may count as zero.
    #[inline(always)]
    fn log2(x: f32) -> f32 {
        let f = x - 1.0;
        // log2(1 + f) / f for |f| <= 1/8: 2^-21.5. Beyond, the error of the hardware's is 2^-19.4 at most.
        let p = fma(f, 0.293_024_24, -0.365_389_05);
        let p = fma(f, p, 0.480_878_5);
        let p = fma(f, p, -0.721_329_4);
        let near = f * fma(f, p, LOG2_E);
        let far = Self::lg2_flush(x);
        if f.abs() < 0.125 { near } else { far }
    }

    /// `ln(1 + x)`.
    #[inline(always)]
    fn log1p(x: f32) -> f32 {
        let far = Self::lg2(x + 1.0) * LN_2;
        if x.abs() < 0.25 { x * ln_1p_over_x(x) } else { far }
    }

    /// `sin x` of an angle in radians.
    #[inline(always)]
    fn sin(x: f32) -> f32 {
        let t = fma(x, INV_PI, ROUND_MAGIC);
        let k = t - ROUND_MAGIC;
        // The first step is exact: k PI is a multiple of 2^-22, as is x from there on, and the difference is below 2.
        let r = fma(-k, PI, x);
        let r = fma(-k, PI_LOW, r);
        // An odd k turns the sign.
        let fast = f32::from_bits(sin_half_turn(r).to_bits() ^ (t.to_bits() << 31));
        mostly(is_small(x), fast, || super::sin(x))
    }

    /// `cos x` of an angle in radians.
    #[inline(always)]
    fn cos(x: f32) -> f32 {
        // The odd multiple of pi/2 next to x, k pi with k = n + 1/2: cos x = -(-1)^n sin(x - k pi).
        let t = prim::floor_magic(x, INV_PI);
        let k = (t - ROUND_MAGIC) + 0.5;
        let r = fma(k, PI, -x);
        let r = fma(k, PI_LOW, r);
        let fast = f32::from_bits(sin_half_turn(r).to_bits() ^ (t.to_bits() << 31));
        mostly(is_small(x), fast, || super::cos(x))
    }

    /// `tanh x`.
    #[inline(always)]
    fn tanh(x: f32) -> f32 {
        let e = Self::ex2_flush(x * (2.0 * LOG2_E));
        let far = fma(Self::rcp(e + 1.0), -2.0, 1.0);
        // tanh(x) / x in w = x^2 for |x| <= 0.55: 2^-24.7.
        let w = x * x;
        let p = fma(w, 0.016_437_879, -0.052_672_01);
        let p = fma(w, p, 0.133_207_29);
        let p = fma(w, p, -0.333_329_47);
        let near = x * fma(w, p, 1.0);
        if x.abs() < 0.55 { near } else { far }
    }

    /// `1 / (1 + e^-x)`, accurate in the far negative tail.
    #[inline(always)]
    fn sigmoid(x: f32) -> f32 {
        Self::logistic2(x * LOG2_E)
    }

    /// `1 / (1 + 2^-t)` as `2^t / (1 + 2^t)`, which keeps its relative accuracy for negative `t`.
    #[doc(hidden)]
    #[inline(always)]
    fn logistic2(t: f32) -> f32 {
        // From 2^64 on the quotient is 1; the bound keeps it from becoming Inf / Inf.
        let e = Self::ex2(at_most(t, 64.0));
        e * Self::rcp(e + 1.0)
    }

    /// `x / (1 + e^-x)`.
    #[inline(always)]
    fn silu(x: f32) -> f32 {
        x * Self::sigmoid(x)
    }

    /// The error function.
    #[inline(always)]
    fn erf(x: f32) -> f32 {
        // At 2.65 the result already rounds to 1 in both types.
        let x = at_least(at_most(x, 2.65), -2.65);
        // erf(x) / x in v = x^2 - 2.65^2 / 2, about which the powers cancel least: 2^-23.2.
        let v = fma(x, x, -3.511_25);
        let p = fma(v, 7.372_858_4e-10, -9.080_753e-9);
        let p = fma(v, p, 7.512_276e-8);
        let p = fma(v, p, -7.069_435e-7);
        let p = fma(v, p, 6.360_21e-6);
        let p = fma(v, p, -5.001_070_5e-5);
        let p = fma(v, p, 0.000_350_643_85);
        let p = fma(v, p, -0.002_208_953_7);
        let p = fma(v, p, 0.012_677_727);
        let p = fma(v, p, -0.070_584_26);
        x * fma(v, p, 0.529_369_95)
    }

    /// The normal distribution function, `erfc(-x / sqrt 2) / 2`, accurate in the far negative tail.
    #[inline(always)]
    fn normal_cdf(x: f32) -> f32 {
        // The tail beyond |x| is e^(-x^2 / 2) times a function that falls like 1 / |x|, here a polynomial without
        // constant term in y = 1 / (1 + 0.3 |x|): 2^-19.0 for |x| <= 5.75, 2^-15.0 up to 13.7, where bf16 ends.
        let y = Self::rcp(fma(x.abs(), 0.3, 1.0));
        let p = normal_tail_poly(y);
        // The square of a 16-bit number is exact. 2^32 times too large, so that subnormal results are rounded once.
        let tail = Self::ex2_flush(fma(x * x, -0.5 * LOG2_E, 32.0)) * (y * p) * f32::from_bits((127 - 32) << 23);
        if x > 0.0 { 1.0 - tail } else { tail }
    }

    /// The density of the normal distribution, `e^(-x^2 / 2) / sqrt(2 pi)`: the exponential is that of `normal_cdf`.
    #[inline(always)]
    fn normal_density(x: f32) -> f32 {
        Self::ex2_flush(fma(x * x, -0.5 * LOG2_E, 32.0)) * (0.398_942_3 * f32::from_bits((127 - 32) << 23))
    }

    /// `x (1 + erf(x / sqrt 2)) / 2`.
    #[inline(always)]
    fn gelu(x: f32) -> f32 {
        // max(x, 0) - |x| cdf(-|x|), the tail as in `normal_cdf` but 2^16 times too large, which needs no subnormals.
        // The bound keeps +Inf from being multiplied with the zero of its tail.
        let b = at_most(x, 64.0);
        let y = Self::rcp(fma(b.abs(), 0.3, 1.0));
        let tail = Self::ex2_flush(fma(b * b, -0.5 * LOG2_E, 16.0)) * (y * normal_tail_poly(y));
        fma((b * tail).abs(), -f32::from_bits((127 - 16) << 23), at_least(x, -0.0))
    }

    /// `x (1 + tanh u) / 2`, `u = sqrt(2/pi) (x + 0.044715 x^3)`.
    #[inline(always)]
    fn gelu_tanh(x: f32) -> f32 {
        // (1 + tanh u) / 2 = 1 / (1 + e^-2u); the factors are 2 sqrt(2/pi) log2(e) and 0.044715 times that.
        let t = x * fma(x * x, 0.102_943_24, 2.302_208_2);
        x * Self::logistic2(t)
    }

    /// `ln(1 + e^x)`.
    #[inline(always)]
    fn softplus(x: f32) -> f32 {
        // 2^16 times too large, which needs no subnormals.
        let scaled = Self::ex2_flush(fma(x.abs(), -LOG2_E, 16.0));
        let z = scaled * f32::from_bits((127 - 16) << 23);
        // ln(1 + z) / z for 0 <= z <= 1: 2^-19.6.
        let p = fma(z, 0.014_146_253, -0.066_418_78);
        let p = fma(z, p, 0.149_245_08);
        let p = fma(z, p, -0.235_051_32);
        let p = fma(z, p, 0.331_098_2);
        let p = fma(z, p, -0.499_870_12);
        let p = fma(z, p, 0.999_998_75);
        // `max` drops a NaN, which comes back through z.
        fma(scaled * p, f32::from_bits((127 - 16) << 23), x.max(0.0))
    }

    /// `x tanh(ln(1 + e^x))`.
    #[inline(always)]
    fn mish(x: f32) -> f32 {
        // With w = e^x, tanh(ln(1 + w)) = n / (n + 2), n = w (w + 2). From e^20 on that is 1.
        let w = Self::ex2(at_most(x * LOG2_E, 29.0));
        let n = w * (w + 2.0);
        x * (n * Self::rcp(n + 2.0))
    }

    /// The derivative of [`Approx::mish`]; NaN at both infinities.
    #[inline(always)]
    fn mish_derivative(x: f32) -> f32 {
        // With w and n as there it is n / (n + 2) + 4 x (n - w) / (n + 2)^2. From 20 on that is 1.
        let c = at_most(x, 20.0);
        // The root of w, so that subnormal w come out without instructions for them.
        let root = Self::ex2_flush(c * (0.5 * LOG2_E));
        let w = root * root;
        let n = w * (w + 2.0);
        let inverse = Self::rcp(n + 2.0);
        // Nothing is made smaller than w before the sum, or of the smallest w nothing would be left; and no finite x larger, or
        // it would be infinite.
        let sum = fma(c * inverse, 4.0 * (n - w), n);
        // And of infinity NaN, as PyTorch has it.
        fma(sum, inverse, x * 0.0)
    }

    /// `1 / sqrt(x)`.
    #[inline(always)]
    fn rsqrt(x: f32) -> f32 {
        Self::rsq(x)
    }

    /// `a / (2 sqrt(x))`: rounded to 16 bits, the same as by steps that are rounded correctly.
    #[inline(always)]
    fn over_twice_sqrt(a: f32, x: f32) -> f32 {
        // Six units in the last place at most from the result of the steps.
        let estimate = a * 0.5 * Self::rsq(x);
        // What is half way between two results ends in twelve zeros: next to such a number, it is for the steps to say.
        const NEAR: u32 = 8;
        let near = estimate.to_bits().wrapping_add(NEAR) & 0xFFF <= 2 * NEAR;
        rarely(near & !estimate.is_nan(), || super::single::over_twice_sqrt(a, x), estimate)
    }

    /// C99 `pow`. Exponents of magnitude 2^16 and more count as even integers, as all of them are in 16 bits.
    #[inline(always)]
    fn pow(a: f32, b: f32) -> f32 {
        let abs = a.abs();
        let bits = abs.to_bits();
        let t = b * Self::log2(abs);
        let power = Self::ex2_flush(t);
        // Within the bound the power is a normal number. An infinite or NaN exponent is beyond it, and every product with
        // a logarithm that is no number.
        let within = t.abs() < 126.0;
        rarely(
            !((a > 0.0) & within),
            || {
                let general = || Self::pow_magnitude(abs, b, a == 1.0);
                let power = rarely(not_positive_normal(abs) | !within, general, power);
                // The low bit of the sum is that of the integer.
                let c = at_least(at_most(b, 65536.0), -65536.0);
                let t = c + ROUND_MAGIC;
                let whole = t - ROUND_MAGIC == c;
                let odd = if whole { t.to_bits() << 31 } else { 0 };
                let invalid = (a < 0.0) & !whole & (bits != 0x7F80_0000) & !b.is_nan();
                let signed = f32::from_bits(power.to_bits() | (odd & a.to_bits()));
                if invalid { f32::NAN } else { signed }
            },
            power,
        )
    }

    /// `b a^(b - 1)`, and `a^b ln(a)` or 0 for `a = 0` and `b >= 0`, by one logarithm. Exponents as in [`Approx::pow`].
    #[inline(always)]
    fn pow_gradients(a: f32, b: f32) -> (f32, f32) {
        let less = b - 1.0;
        let log = Self::log2(a.abs());
        let (t, t_less) = (b * log, less * log);
        // Powers that are normal numbers. Where the logarithm is none, no product with it is in the bounds.
        let in_bounds = (t.abs() < 126.0) & (t_less.abs() < 126.0) & (less.abs() < 65536.0);
        let powers = (Self::ex2_flush(t), Self::ex2_flush(t_less));
        let (odd, whole) = parity(less);
        let fast = pow_gradients_of(a, b, odd, (a < 0.0) & !whole, log, powers);
        rarely(!in_bounds, || Self::pow_gradients_special(a, b), fast)
    }

    /// [`Approx::pow_gradients`] of anything.
    #[doc(hidden)]
    #[inline(always)]
    fn pow_gradients_special(a: f32, b: f32) -> (f32, f32) {
        let abs = a.abs();
        let is_small = abs < f32::MIN_POSITIVE;
        let (scaled, scale) = if is_small { (abs * 16_777_216.0, 24.0) } else { (abs, 0.0) };
        let log = log2_normal(scaled) - scale;
        // Infinity and NaN are their own logarithms.
        let log = if abs < f32::INFINITY { log } else { abs };
        let log = if abs == 0.0 { f32::NEG_INFINITY } else { log };
        // The largest numbers stand for infinities, so that powers of 1 are 1.
        let bounded = |c: f32, most: f32| at_least(at_most(c, most), -most);
        let power = |c: f32| if c == 0.0 { 1.0 } else { Self::ex2(bounded(c, f32::MAX) * log) };
        let odd_and_whole = |c: f32| {
            let (odd, whole) = parity(bounded(c, 65536.0));
            (if whole { odd } else { 0 }, whole)
        };
        // The one power of a number with a sign that has a logarithm is that of -0.
        let signed = f32::from_bits(power(b).to_bits() | (odd_and_whole(b).0 & a.to_bits()));
        let (odd, whole) = odd_and_whole(b - 1.0);
        let invalid = (a < 0.0) & !whole & (a != f32::NEG_INFINITY);
        let (base, exponent) = pow_gradients_of(a, b, odd, invalid, log, (signed, power(b - 1.0)));
        // Every power of 1 is 1, also by NaN.
        (base, if (a == 1.0) | ((a == 0.0) & (b >= 0.0)) { 0.0 } else { exponent })
    }

    /// [`Approx::pow`] of any `a` without a sign; `is_one` is whether `a` had none and is 1.
    #[doc(hidden)]
    #[inline(always)]
    fn pow_magnitude(a: f32, b: f32, is_one: bool) -> f32 {
        // Beyond 2^16 every 16-bit base but 1 has long overflowed or vanished; the bound removes infinities.
        let c = at_least(at_most(b, 65536.0), -65536.0);
        let special = not_positive_normal(a) | b.is_nan();
        rarely(special, || Self::pow_special(a, c, is_one), Self::pow_normal(a, c, 0.0))
    }

    /// `(a 2^scale)^c` for positive normal `a`, finite `c` of magnitude up to `2^16`.
    #[doc(hidden)]
    #[inline(always)]
    fn pow_normal(a: f32, c: f32, scale: f32) -> f32 {
        // a = 2^e (1 + f) with 1 + f between sqrt(1/2) and sqrt(2).
        let bits = a.to_bits();
        let exponent = bits.wrapping_sub(0x3F35_04F3) & 0xFF80_0000;
        let f = f32::from_bits(bits.wrapping_sub(exponent)) - 1.0;
        let e = (exponent as i32 >> 23) as f32 + scale;
        let p = log2_1p_poly(f);
        // The logarithm, in two parts: a result near 2^128 takes 7 bits more than an f32 has.
        let hi = fma(f, LOG2_E, e);
        let lo = fma(f, fma(f, p, LOG2_E_LOW), fma(f, LOG2_E, e - hi));
        let t_hi = c * hi;
        let t_lo = fma(c, lo, fma(c, hi, -t_hi));
        let t = t_hi + t_lo;
        let rest = (t_hi - t) + t_lo;
        Self::ex2(t) * fma(rest, LN_2, 1.0)
    }

    /// [`Approx::pow`] of the magnitude where the base is not normal or the exponent is NaN.
    #[doc(hidden)]
    #[inline(always)]
    fn pow_special(a: f32, c: f32, is_one: bool) -> f32 {
        let subnormal = Self::pow_normal(a * 16_777_216.0, c, -24.0);
        // Zero, infinity and NaN: what a power of them is follows from the sign of the exponent.
        let log = if a == 0.0 { f32::NEG_INFINITY } else { a };
        let limit = Self::ex2(c * log);
        let power = if (a > 0.0) & (a < f32::MIN_POSITIVE) { subnormal } else { limit };
        if is_one | (c == 0.0) { 1.0 } else { power }
    }
}

/// `ln(1 + x) / x` for `|x| <= 1/4`: `2^-22.8`.
#[inline(always)]
fn ln_1p_over_x(x: f32) -> f32 {
    let p = fma(x, 0.157_339_29, -0.181_177_84);
    let p = fma(x, p, 0.199_453_26);
    let p = fma(x, p, -0.249_541_94);
    let p = fma(x, p, 0.333_339_24);
    let p = fma(x, p, -0.500_003_5);
    fma(x, p, 1.0)
}

/// Whether a number is negative, zero, subnormal, infinite or NaN.
#[inline(always)]
fn not_positive_normal(x: f32) -> bool {
    x.to_bits().wrapping_sub(0x0080_0000) >= 0x7F00_0000
}

/// `log2 a` of a positive normal number.
#[inline(always)]
fn log2_normal(a: f32) -> f32 {
    // a = 2^e (1 + f) with 1 + f between sqrt(1/2) and sqrt(2).
    let bits = a.to_bits();
    let exponent = bits.wrapping_sub(0x3F35_04F3) & 0xFF80_0000;
    let f = f32::from_bits(bits.wrapping_sub(exponent)) - 1.0;
    let log = f * fma(f, log2_1p_poly(f), LOG2_E);
    fma(exponent as i32 as f32, f32::from_bits((127 - 23) << 23), log)
}

/// Of an integer the sign bit of its power of a negative number, of others some bit there; and whether it is one. `c` has
/// a magnitude of 2^16 at most.
#[inline(always)]
fn parity(c: f32) -> (u32, bool) {
    // The low bit of the sum is that of the integer.
    let t = c + ROUND_MAGIC;
    (t.to_bits() << 31, t - ROUND_MAGIC == c)
}

/// `b a^(b - 1)` and `a^b ln(a)` with signs and NaN, where `log` is the binary logarithm of the magnitude of `a` and
/// `powers` are those of the magnitude by `b` and `b - 1`: the latter's sign is that of `odd` and `a`, and it is NaN where
/// `invalid`.
#[inline(always)]
fn pow_gradients_of(a: f32, b: f32, odd: u32, invalid: bool, log: f32, powers: (f32, f32)) -> (f32, f32) {
    let signed = f32::from_bits(powers.1.to_bits() | (odd & a.to_bits()));
    let power = if invalid { f32::NAN } else { signed };
    (b * power, if a < 0.0 { f32::NAN } else { powers.0 * (log * LN_2) })
}

/// `(log2(1 + f) - f log2(e)) / f^2` for `1 + f` between `sqrt(1/2)` and `sqrt(2)`; adds a relative error of `2^-24.5`
/// to the logarithm.
#[inline(always)]
fn log2_1p_poly(f: f32) -> f32 {
    let p = fma(f, 0.126_070_92, -0.206_426_84);
    let p = fma(f, p, 0.215_203_6);
    let p = fma(f, p, -0.239_057_91);
    let p = fma(f, p, 0.287_993_43);
    let p = fma(f, p, -0.360_699_42);
    let p = fma(f, p, 0.480_907_2);
    fma(f, p, -0.721_347_4)
}

/// The polynomial of [`Approx::normal_cdf`], but for its factor `y`.
#[inline(always)]
fn normal_tail_poly(y: f32) -> f32 {
    let p = fma(y, -0.081_458_166, 0.229_134_01);
    let p = fma(y, p, -0.031_878_408);
    let p = fma(y, p, 0.152_195_57);
    let p = fma(y, p, 0.111_752_436);
    fma(y, p, 0.120_254_78)
}

/// `sin r` for `|r| <= pi/2` and a little more: `2^-19.8`. The sign of zero is kept.
#[inline(always)]
fn sin_half_turn(r: f32) -> f32 {
    let w = r * r;
    let p = fma(w, -0.000_185_407_29, 0.008_314_231);
    let p = fma(w, p, -0.166_658_5);
    r * fma(w, p, 1.0)
}

/// The operations of the machine: approximate instructions on the GPU, the accurate functions on the CPU.
#[derive(Clone, Copy, Debug)]
pub struct Native;

#[cfg(target_arch = "nvptx64")]
macro_rules! ptx {
    ($text:literal, $x:expr) => {{
        let y: f32;
        // SAFETY: one instruction from a register to a register.
        unsafe {
            core::arch::asm!($text, out(reg32) y, in(reg32) $x, options(pure, nomem, nostack));
        }
        y
    }};
}

#[cfg(target_arch = "nvptx64")]
impl Approx for Native {
    #[inline(always)]
    fn ex2(x: f32) -> f32 {
        ptx!("ex2.approx.f32 {}, {};", x)
    }
    #[inline(always)]
    fn ex2_flush(x: f32) -> f32 {
        ptx!("ex2.approx.ftz.f32 {}, {};", x)
    }
    #[inline(always)]
    fn lg2(x: f32) -> f32 {
        ptx!("lg2.approx.f32 {}, {};", x)
    }
    #[inline(always)]
    fn lg2_flush(x: f32) -> f32 {
        ptx!("lg2.approx.ftz.f32 {}, {};", x)
    }
    #[inline(always)]
    fn rcp(x: f32) -> f32 {
        ptx!("rcp.approx.ftz.f32 {}, {};", x)
    }
    #[inline(always)]
    fn recip(x: f32) -> f32 {
        ptx!("rcp.approx.f32 {}, {};", x)
    }
    #[inline(always)]
    fn rsq(x: f32) -> f32 {
        ptx!("rsqrt.approx.f32 {}, {};", x)
    }
}

/// What costs a CPU, for which nothing is approximate, less in its accurate form.
#[cfg(not(target_arch = "nvptx64"))]
macro_rules! accurate {
    ($($name:ident)*) => { $(
        #[inline(always)]
        fn $name(x: f32) -> f32 {
            super::single::$name(x)
        }
    )* };
}

#[cfg(not(target_arch = "nvptx64"))]
impl Approx for Native {
    #[inline(always)]
    fn ex2(x: f32) -> f32 {
        super::exp2(x)
    }
    #[inline(always)]
    fn ex2_flush(x: f32) -> f32 {
        // Zero where the GPU's is: a tail that an infinity is multiplied with.
        let y = super::exp2(x);
        if y < f32::MIN_POSITIVE { 0.0 } else { y }
    }
    #[inline(always)]
    fn lg2(x: f32) -> f32 {
        super::log2(x)
    }
    #[inline(always)]
    fn lg2_flush(x: f32) -> f32 {
        super::log2(x)
    }
    #[inline(always)]
    fn log2(x: f32) -> f32 {
        super::log2(x)
    }
    #[inline(always)]
    fn rcp(x: f32) -> f32 {
        1.0 / x
    }
    #[inline(always)]
    fn recip(x: f32) -> f32 {
        1.0 / x
    }
    #[inline(always)]
    fn rsq(x: f32) -> f32 {
        1.0 / prim::sqrt(x)
    }
    #[inline(always)]
    fn over_twice_sqrt(a: f32, x: f32) -> f32 {
        super::single::over_twice_sqrt(a, x)
    }
    accurate!(exp expm1 expm1_negative ln log1p tanh silu softplus mish);
}

macro_rules! native {
    ($($(#[$doc:meta])* $name:ident($($x:ident),+);)*) => { $(
        $(#[$doc])*
        #[inline(always)]
        pub fn $name($($x: f32),+) -> f32 {
            Native::$name($($x),+)
        }
    )* };
}

native! {
    /// `1 / x`.
    recip(x);
    /// `e^x`.
    exp(x);
    /// `2^x`.
    exp2(x);
    /// `e^x - 1`, accurate near 0.
    expm1(x);
    /// `e^x - 1` for `x <= 0`, accurate near 0.
    expm1_negative(x);
    /// Natural logarithm, accurate near 1.
    ln(x);
    /// `ln(1 + x)`, accurate near 0.
    log1p(x);
    /// Sine of an angle in radians, for every angle.
    sin(x);
    /// Cosine of an angle in radians, for every angle.
    cos(x);
    /// Hyperbolic tangent.
    tanh(x);
    /// `1 / (1 + e^-x)`, accurate in the far negative tail.
    sigmoid(x);
    /// `x / (1 + e^-x)`; NaN at -Inf.
    silu(x);
    /// Error function.
    erf(x);
    /// `erfc(-x / sqrt 2) / 2`, accurate in the far negative tail.
    normal_cdf(x);
    /// `e^(-x^2 / 2) / sqrt(2 pi)`.
    normal_density(x);
    /// `x normal_cdf(x)`; NaN at -Inf.
    gelu(x);
    /// `x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) / 2`; NaN at -Inf.
    gelu_tanh(x);
    /// `ln(1 + e^x)` without overflow.
    softplus(x);
    /// `x tanh(ln(1 + e^x))`; NaN at -Inf.
    mish(x);
    /// The derivative of `mish`; NaN at both infinities.
    mish_derivative(x);
    /// `1 / sqrt(x)`; `-0` gives -Inf.
    rsqrt(x);
    /// `a / (2 sqrt(x))`.
    over_twice_sqrt(a, x);
    /// C99 `pow`. Exponents of magnitude 2^16 and more count as even integers.
    pow(a, b);
}

/// Square root, correctly rounded in f32.
#[inline(always)]
pub fn sqrt(x: f32) -> f32 {
    prim::sqrt(x)
}

/// `b a^(b - 1)`, and `a^b ln(a)` or 0 for `a = 0` and `b >= 0`. Exponents of magnitude 2^16 and more count as even
/// integers.
#[inline(always)]
pub fn pow_gradients(a: f32, b: f32) -> (f32, f32) {
    Native::pow_gradients(a, b)
}

/// `a / b`, correctly rounded in f32.
#[inline(always)]
pub fn div(a: f32, b: f32) -> f32 {
    a / b
}
