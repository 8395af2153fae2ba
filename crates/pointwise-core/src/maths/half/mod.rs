//! f32 functions for results that are rounded to f16 or bf16 next: fewer instructions than the accurate ones.
//!
//! An argument is an f16 or bf16 widened to f32 (any f32 is allowed, with the accuracy of f32 arithmetic at best). Over
//! all 65,536 inputs of either type a result rounded to that type is within 1 ULP of the exact one, and is the exact
//! one rounded for at least 99.5 % of the inputs; `tests/narrow_maths` measures both. The relative error must be about
//! `2^-21` (f16) and `2^-18` (bf16) for that, also near the zeros of a function and in its tails, down to the subnormal
//! numbers of the 16-bit type.
//!
//! A function is built on the four operations of [`Approx`] that a GPU has as approximate instructions, beside the
//! exact arithmetic of f32. The instructions are a type parameter, so that the tests can put in ones with the largest
//! error that the PTX ISA allows. Polynomials are minimax fits made for this crate (weighted least squares iterated
//! after Lawson, coefficients rounded to f32 one after the other); the error stated at each is its relative one. Where
//! a free choice of last digits was left (coefficients, a constant next to 1 or 0), it was made by counting, on an
//! H200, the inputs of f16 and bf16 whose result is not correctly rounded.
//!
//! `div` and `sqrt` are correctly rounded in f32: results of f16 and bf16 are then correctly rounded too
//! (24 >= 2 * 11 + 2; Figueroa, "When is double rounding innocuous?", SIGNUM Newsletter 30, 1995). `recip` is so for
//! arguments of 16 bits: `1 - m x` with `m` half way between two results is a multiple of `2^-22` or more.

mod native;
mod power;

pub use self::exp as exp_negative;
pub use self::exp as exp_negative_16;
pub use self::native::*;
pub use super::single::{floor_divide, remainder, trunc_divide};

use super::prim::{self, ROUND_MAGIC, at_least, at_most, fma, mostly, rarely};
use core::f32::consts::{LN_2, LOG2_E};

/// pi = PI + PI_LOW, to 48 bits, both positive, so that a reduction of -0 by `0 * pi` leaves -0.
const PI: f32 = 3.141_592_5;
const PI_LOW: f32 = 1.509_957_9e-7;
const INV_PI: f32 = core::f32::consts::FRAC_1_PI;

/// log2(e) in two parts. The product of the first with a 16-bit number is exact, and the power of 2 by that product is
/// a normal number unless `e^x` is zero. The second is small, and so is the rounding error of its product.
const LOG2_E_PARTS: [f32; 2] = [4906.0 / 4096.0, 0.244_941_13];

/// The sign of an f32.
const SIGN: u32 = 1 << 31;

/// Beyond this magnitude the two terms of pi no longer reduce an angle well enough. Above every finite f16.
pub(super) const LARGE_ANGLE: f32 = 1e5;

/// True if the magnitude of `x` is at most [`LARGE_ANGLE`]. False for NaN.
#[inline(always)]
pub(super) fn is_small(x: f32) -> bool {
    x.abs() < LARGE_ANGLE.next_up()
}

/// The operations that a GPU approximates, with the largest errors of the PTX ISA, and the functions made of them.
///
/// An implementation must treat infinities, zeros, NaN and negative numbers as the exact function does.
pub trait Approx: Sized {
    /// `2^x`, relative error `2^-22`; subnormal results are kept.
    fn ex2(x: f32) -> f32;
    /// Like [`Approx::ex2`], but a subnormal result becomes zero.
    fn ex2_flush(x: f32) -> f32;
    /// `log2 x`, absolute error `2^-22` between 1/2 and 2, relative error `2^-22` elsewhere; subnormal arguments count.
    fn lg2(x: f32) -> f32;
    /// Like [`Approx::lg2`], but a subnormal argument counts as zero.
    fn lg2_flush(x: f32) -> f32;
    /// [`Approx::lg2_flush`] of the magnitude of `x`.
    #[inline(always)]
    fn lg2_magnitude(x: f32) -> f32 {
        Self::lg2_flush(x.abs())
    }
    /// `1 / x`, relative error `2^-22`; subnormal arguments and results may become zero.
    fn rcp(x: f32) -> f32;
    /// `1 / x`, relative error `2^-23`; subnormal arguments and results count.
    fn recip(x: f32) -> f32;
    /// `1 / sqrt(x)`, relative error `2^-22`; subnormal arguments count.
    fn rsq(x: f32) -> f32;

    /// `e^x`.
    #[inline(always)]
    fn exp(x: f32) -> f32 {
        let [large, small] = Self::exp_factors(x);
        large * small
    }

    /// Two factors of `e^x`. A power of 2 by one product of `x` would lose up to `2^-20` to its rounding, and take
    /// instructions for subnormal results.
    #[doc(hidden)]
    #[inline(always)]
    fn exp_factors(x: f32) -> [f32; 2] {
        LOG2_E_PARTS.map(|part| Self::ex2_flush(x * part))
    }

    /// `2^x`.
    #[inline(always)]
    fn exp2(x: f32) -> f32 {
        Self::ex2(x)
    }

    /// `e^x - 1`.
    #[inline(always)]
    fn expm1(x: f32) -> f32 {
        let [large, small] = Self::exp_factors(x);
        let far = fma(large, small, -1.0);
        if x.abs() < 0.5 { expm1_near(x) } else { far }
    }

    /// `e^x - 1` for `x <= 0`.
    #[inline(always)]
    fn expm1_negative(x: f32) -> f32 {
        // The power of 2 is at most 1, and the rounding error of its argument is small beside the result.
        let far = Self::ex2_flush(x * LOG2_E) - 1.0;
        if x > -0.5 { expm1_near(x) } else { far }
    }

    /// `ln x`.
    #[inline(always)]
    fn ln(x: f32) -> f32 {
        // Near 1 the logarithm of the hardware is good in absolute terms only.
        let f = x - 1.0;
        let log2 = Self::lg2(x);
        let bias = f32::from_bits((-7.1e-8_f32).to_bits() ^ log2.to_bits() & SIGN);
        let far = fma(log2, LN_2.next_up(), bias);
        if f.abs() < 0.25 { f * ln_1p_over_x(f) } else { far }
    }

    /// `log2 x`, near 1 too; a subnormal argument may count as zero.
    #[inline(always)]
    fn log2(x: f32) -> f32 {
        let f = x - 1.0;
        // log2(1 + f) / f for |f| <= 1/8: 2^-21.5. Beyond, the error of the hardware's logarithm is at most 2^-19.4.
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
        let far = fma(Self::lg2(x + 1.0), LN_2.next_up(), -7.12e-8);
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
        e * Self::rcp(e + 1.0_f32.next_down())
    }

    /// `x / (1 + e^-x)`.
    #[inline(always)]
    fn silu(x: f32) -> f32 {
        x * Self::logistic2(fma(x, LOG2_E, -1.2e-7))
    }

    /// The error function.
    #[inline(always)]
    fn erf(x: f32) -> f32 {
        // At 2.65 the result already rounds to 1 in both types.
        let x = at_least(at_most(x, 2.65), -2.65);
        // erf(x) / x in v = x^2 - 2.65^2 / 2, about which the powers cancel least: 2^-22.6.
        let v = fma(x, x, -3.511_25);
        let p = fma(v, 7.375_429_7e-10, -9.081_289e-9);
        let p = fma(v, p, 7.512_416e-8);
        let p = fma(v, p, -7.069_459e-7);
        let p = fma(v, p, 6.360_202_4e-6);
        let p = fma(v, p, -5.001_079_6e-5);
        let p = fma(v, p, 0.000_350_643_74);
        let p = fma(v, p, -0.002_208_953_7);
        let p = fma(v, p, 0.012_677_724_5);
        let p = fma(v, p, -0.070_584_245);
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

    /// The density of the normal distribution, `e^(-x^2 / 2) / sqrt(2 pi)`: it shares the exponential with
    /// `normal_cdf`.
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
        // 2^8 times too large, which needs no subnormals and keeps the argument small.
        let scaled = Self::ex2_flush(fma(x.abs(), -LOG2_E, 8.0));
        let z = scaled * f32::from_bits((127 - 8) << 23);
        // ln(1 + z) / z for 0 <= z <= 1: 2^-25.0.
        let p = fma(z, 0.005_232_765, -0.029_504_957);
        let p = fma(z, p, 0.078_225_49);
        let p = fma(z, p, -0.136_632_86);
        let p = fma(z, p, 0.191_059_89);
        let p = fma(z, p, -0.248_429_27);
        let p = fma(z, p, 0.333_191_07);
        let p = fma(z, p, -0.499_994_87);
        let p = fma(z, p, 0.999_999_9);
        // `max` drops a NaN, which comes back through z.
        fma(scaled * p, f32::from_bits((127 - 8) << 23), x.max(0.0))
    }

    /// `x tanh(ln(1 + e^x))`.
    #[inline(always)]
    fn mish(x: f32) -> f32 {
        // With w = e^x, tanh(ln(1 + w)) = n / (n + 2), n = w (w + 2). From e^20 on that is 1.
        let w = Self::ex2(at_most(fma(x, LOG2_E, 3.79e-8), 29.0));
        let n = w * (w + 2.000_001_7);
        x * (n * Self::rcp(n + 2.000_001_4))
    }

    /// The derivative of [`Approx::mish`]; NaN at both infinities.
    #[inline(always)]
    fn mish_derivative(x: f32) -> f32 {
        // With w and n of `mish` it is n / (n + 2) + 4 x (n - w) / (n + 2)^2. From 20 on that is 1.
        let c = at_most(x, 20.0);
        // The root of w, so that subnormal w come out without instructions for them.
        let root = Self::ex2_flush(c * (0.5 * LOG2_E));
        let w = root * root;
        let n = w * (w + 2.0);
        let inverse = Self::rcp(n + 2.0);
        // Before the sum, nothing becomes smaller than w, or the smallest w would vanish; and no finite x becomes
        // larger, or it would be infinite.
        let sum = fma(c * inverse, 4.0 * (n - w), n);
        // Infinity gives NaN, as in PyTorch.
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
        // A zero, as many gradients are, is exact.
        rarely(is_near_tie(estimate) & (estimate.abs() > 0.0), || super::single::over_twice_sqrt(a, x), estimate)
    }

    /// `a e^x`.
    #[inline(always)]
    fn times_exp(a: f32, x: f32) -> f32 {
        let estimate = a * Self::exp(x);
        // Exponentials that are subnormal numbers of f32 are off by more. If it is 1, or `a` is 0, the product is
        // exact.
        let is_open = is_near_tie(estimate) | (x < -87.33);
        rarely(is_open & (estimate != a), || super::single::times_exp(a, x), estimate)
    }

    /// `a / (1 + e^-x)`.
    #[inline(always)]
    fn times_sigmoid(a: f32, x: f32) -> f32 {
        // If the result is too small for a normal number, the estimate is 0, which counts as near.
        let estimate = a * Self::rcp(Self::ex2_flush(x * -LOG2_E) + 1.0);
        // The exceptions are as in `times_exp`.
        rarely(is_near_tie(estimate) & (estimate != a), || super::single::times_sigmoid(a, x), estimate)
    }

    /// `a / b` of two f16 numbers, correctly rounded in f32. If one operand is an f32 of a magnitude from `2^-60` to
    /// `2^60`, the result rounds to f16 as the quotient does.
    #[inline(always)]
    fn quotient_of_f16(a: f32, b: f32) -> f32 {
        let r = Self::rcp(b);
        let q = a * r;
        // Exact. The sum is 2^-44 from the quotient at most, which is no nearer than 2^-36 to a number half way between
        // two of f32.
        let rest = fma(-q, b, a);
        // An exact quotient, also a zero, keeps its sign. The rest is NaN if the quotient or the divisor is infinite.
        if rest.abs() > 0.0 { fma(rest, r, q) } else { q }
    }

    /// C99 `pow`.
    #[inline(always)]
    fn pow(a: f32, b: f32) -> f32 {
        power::pow::<Self>(a, b)
    }

    /// `b a^(b - 1)`, and `a^b ln(a)` or 0 for `a = 0` and `b >= 0`, by one logarithm. Exponents of magnitude 2^16 and
    /// more count as even integers, as all of them are in 16 bits.
    #[inline(always)]
    fn pow_gradients(a: f32, b: f32) -> (f32, f32) {
        power::pow_gradients::<Self>(a, b)
    }
}

/// The bits that are zero in every f16 and bf16 number, and in every number half way between two of them.
const BELOW_TIE: u32 = 0xFFF;

/// True if eight units in the last place may decide how `estimate` rounds to f16 or bf16.
#[inline(always)]
fn is_near_tie(estimate: f32) -> bool {
    const NEAR: u32 = 8;
    estimate.to_bits().wrapping_add(NEAR) & BELOW_TIE <= 2 * NEAR
}

/// `e^x - 1` for `|x| <= 1/2`: `2^-23.0`.
#[inline(always)]
fn expm1_near(x: f32) -> f32 {
    let p = fma(x, 0.001_387_245_6, 0.008_402_264);
    let p = fma(x, p, 0.041_669_104);
    let p = fma(x, p, 0.166_661_38);
    let p = fma(x, p, 0.499_999_82);
    x * fma(x, p, 1.0)
}

/// `ln(1 + x) / x` for `|x| <= 1/4`: `2^-22.0`.
#[inline(always)]
fn ln_1p_over_x(x: f32) -> f32 {
    let p = fma(x, 0.157_331_23, -0.181_284_07);
    let p = fma(x, p, 0.199_472_78);
    let p = fma(x, p, -0.249_535_43);
    let p = fma(x, p, 0.333_338_26);
    let p = fma(x, p, -0.500_003_2);
    fma(x, p, 1.0)
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

/// `sin r` for `|r| <= pi/2` and a little more: `2^-23.8`. The sign of zero is kept.
#[inline(always)]
fn sin_half_turn(r: f32) -> f32 {
    let w = r * r;
    let p = fma(w, 2.595_265_6e-6, -0.000_198_103_85);
    let p = fma(w, p, 0.008_333_217);
    let p = fma(w, p, -0.166_666_78);
    r * fma(w, p, 1.0)
}
