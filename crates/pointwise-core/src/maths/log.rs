//! `ln`, `log2`, `log1p` and `ln(1 + e^x)`.

use super::exp::{LN_2_HI, Scaled, exp_scaled};
use super::prim::{at_least, fma, if_above, log2_special};

/// The bits of `sqrt(1/2)`: mantissas are taken from there up to `sqrt 2`.
const SQRT_HALF: u32 = 0x3f35_04f3;
const EXPONENT: u32 = 0xff80_0000;
/// `2^-23`: turns exponent bits, as an integer, into the exponent.
const EXPONENT_UNIT: f32 = f32::from_bits((127 - 23) << 23);

/// `(ln(1 + f) - f) / f^2` for `sqrt(1/2) - 1 <= f <= sqrt 2 - 1`, degree 8; the relative error it adds to the
/// logarithm is below `2^-26.8`.
///
/// Fitted for the logarithm of `2^e (1 + f)`: its error is least where the sum with `e ln 2` magnifies the errors of
/// the other steps, and there it makes up for the error of [`LN_2_HI`].
#[inline(always)]
fn log_poly(f: f32) -> f32 {
    let q = fma(f, -0.080_401_72, 0.131_894_02);
    let q = fma(f, q, -0.132_053_8);
    let q = fma(f, q, 0.141_279_82);
    let q = fma(f, q, -0.166_062_38);
    let q = fma(f, q, 0.200_049_37);
    let q = fma(f, q, -0.250_018_63);
    let q = fma(f, q, 0.333_332_87);
    fma(f, q, -0.499_999_85)
}

/// Like [`log_poly`], for `-1/4 <= f <= 1/2`; the relative error it adds is below `2^-26.3`.
#[inline(always)]
fn log1p_poly(f: f32) -> f32 {
    let q = fma(f, -0.042_754_64, 0.101_795_24);
    let q = fma(f, q, -0.130_814_05);
    let q = fma(f, q, 0.145_008_58);
    let q = fma(f, q, -0.166_580_59);
    let q = fma(f, q, 0.199_902_2);
    let q = fma(f, q, -0.249_996_59);
    let q = fma(f, q, 0.333_334_68);
    fma(f, q, -0.500_000_06)
}

/// `x = 2^e (1 + f)` with `1 + f` in `sqrt(1/2) .. sqrt 2`, for positive finite `x`: `(e, f)`.
#[inline(always)]
pub(super) fn log_split(x: f32) -> (f32, f32) {
    let small = x < f32::MIN_POSITIVE;
    let bits = if small { x * 8_388_608.0 } else { x }.to_bits();
    let base = if small { -23.0 } else { 0.0 };
    let e = bits.wrapping_sub(SQRT_HALF) & EXPONENT;
    let f = f32::from_bits(bits.wrapping_sub(e)) - 1.0;
    (fma(e as i32 as f32, EXPONENT_UNIT, base), f)
}

/// Like [`log_split`], for positive normal `x`.
#[inline(always)]
pub(super) fn log_split_normal(x: f32) -> (f32, f32) {
    let bits = x.to_bits();
    let e = bits.wrapping_sub(SQRT_HALF) & EXPONENT;
    let f = f32::from_bits(bits.wrapping_sub(e)) - 1.0;
    (e as i32 as f32 * EXPONENT_UNIT, f)
}

/// Corrects `y`, the logarithm of `u`, if `u` is zero, negative, infinite or NaN.
#[inline(always)]
fn log_special(u: f32, y: f32) -> f32 {
    let special = log2_special(u);
    if_above(f32::INFINITY, u, if_above(u, 0.0, y, special), special)
}

/// The natural logarithm, at most 1 ulp.
#[inline(always)]
pub fn ln(x: f32) -> f32 {
    let (e, f) = log_split(x);
    let y = fma(e, LN_2_HI, fma(f * f, log_poly(f), f));
    log_special(x, y)
}

/// The logarithm to base 2, at most 1 ulp; exact for powers of two.
#[inline(always)]
pub fn log2(x: f32) -> f32 {
    /// log2 e rounded to f32, and the rest.
    const HI: f32 = core::f32::consts::LOG2_E;
    const LO: f32 = 1.925_963e-8;
    let (e, f) = log_split(x);
    // log2(1 + f) = f log2 e + f^2 Q(f), Q of degree 8, minimax relative error 2^-27.7.
    let q = fma(f, -0.111_070_98, 0.187_318_73);
    let q = fma(f, q, -0.191_209_54);
    let q = fma(f, q, 0.204_440_61);
    let q = fma(f, q, -0.239_578_72);
    let q = fma(f, q, 0.288_573_86);
    let q = fma(f, q, -0.360_698_5);
    let q = fma(f, q, 0.480_898_17);
    let q = fma(f, q, -0.721_347_33);
    // The first term in two parts; the larger one is added to e without loss.
    let p = f * HI;
    let low = fma(f * f, q, fma(f, LO, fma(f, HI, -p)));
    let sum = e + p;
    let rest = p - (sum - e);
    log_special(x, sum + (rest + low))
}

/// `ln(1 + x)`, at most 1 ulp, also near zero.
#[inline(always)]
pub fn log1p(x: f32) -> f32 {
    let u = 1.0 + x;
    // 1 + f in 0.75 .. 1.5: from x = -1/4 to 1/2 it is x itself, beyond x is coarse enough for f to be exact. The
    // sign of x decides where u was rounded to one of the ends.
    let least = 0.75_f32.to_bits() + 1 - (x.to_bits() >> 31);
    let e = u.to_bits().wrapping_sub(least) & EXPONENT;
    // f = 2^-e x + (2^-e - 1): the rounding made in 1 + x never enters.
    // 4 * 2^-e, as 2^-e alone is subnormal for the largest x.
    let s = f32::from_bits(0x4080_0000_u32.wrapping_sub(e));
    let f = f32::from_bits(x.to_bits().wrapping_sub(e)) + fma(0.25, s, -1.0);
    let n = e as i32 as f32 * EXPONENT_UNIT;
    let y = fma(n, LN_2_HI, fma(f * f, log1p_poly(f), f));
    log_special(u, y).copysign(x)
}

/// `ln(1 + w)` for `0 <= w <= 1` as `w P(w)`, P of degree 9, minimax relative error `2^-27.5`: `P(w)`.
#[inline(always)]
fn log1p_unit_poly(w: f32) -> f32 {
    let q = fma(w, -0.003_310_628, 0.020_168_265);
    let q = fma(w, q, -0.057_594_087);
    let q = fma(w, q, 0.106_731_69);
    let q = fma(w, q, -0.153_508_5);
    let q = fma(w, q, 0.196_937_46);
    let q = fma(w, q, -0.249_582_47);
    let q = fma(w, q, 0.333_304_76);
    let q = fma(w, q, -0.499_999_3);
    fma(w, q, 1.0)
}

/// `ln(1 + e^x)`, the softplus with beta 1, at most 3 ulp: no overflow, and no cancellation in the negative tail.
#[inline(always)]
pub fn softplus(x: f32) -> f32 {
    // max(x, 0) + ln(1 + e^-|x|)
    let w = exp_scaled(at_least(-x.abs(), -120.0));
    // The sign of a zero does not matter here: the tail decides.
    fma(w.0 * log1p_unit_poly(w.plain()), Scaled::DOWN, at_least(x, 0.0))
}
