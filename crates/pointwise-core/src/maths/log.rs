//! `ln`, `log2`, `log1p` and `ln(1 + e^x)`.

use super::exp::{LN_2_HI, Scaled, exp_scaled_plain};
use super::prim::{at_least, fma};

/// The bits of `sqrt(1/2)`: mantissas are taken from there up to `sqrt 2`.
const SQRT_HALF: u32 = 0x3f35_04f3;
const EXPONENT: u32 = 0xff80_0000;
/// `2^-23`, which turns exponent bits, taken as an integer, into the exponent.
const EXPONENT_UNIT: f32 = f32::from_bits((127 - 23) << 23);

/// `(ln(1 + f) - f) / f^2` for `sqrt(1/2) - 1 <= f <= sqrt 2 - 1`, degree 8; the relative error it adds to the
/// logarithm is below `2^-26.9`.
#[inline(always)]
pub(super) fn log_poly(f: f32) -> f32 {
    let q = fma(f, -0.074_834_75, 0.128_521_25);
    let q = fma(f, q, -0.132_731_36);
    let q = fma(f, q, 0.141_924_32);
    let q = fma(f, q, -0.166_070_65);
    let q = fma(f, q, 0.200_014_02);
    let q = fma(f, q, -0.250_016_33);
    let q = fma(f, q, 0.333_333_34);
    fma(f, q, -0.499_999_88)
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

/// `y`, the logarithm of `u`, put right where `u` is zero, negative, infinite or NaN.
#[inline(always)]
fn log_special(u: f32, y: f32) -> f32 {
    // Infinity and NaN stay, a negative number becomes Inf - Inf.
    let special = fma(u, f32::INFINITY, f32::INFINITY);
    let y = if u.to_bits() >= f32::INFINITY.to_bits() { special } else { y };
    if u == 0.0 { f32::NEG_INFINITY } else { y }
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
    /// log2 e rounded to f32, and what the rounding left.
    const HI: f32 = core::f32::consts::LOG2_E;
    const LO: f32 = 1.925_963e-8;
    let (e, f) = log_split(x);
    // ln(1 + f) = f + c, and the product with log2 e in two parts, of which the larger is added last.
    let c = f * f * log_poly(f);
    let low = fma(c, HI, f * LO);
    let sum = fma(f, HI, e);
    let rest = fma(f, HI, e - sum);
    log_special(x, sum + (rest + low))
}

/// `ln(1 + x)`, at most 1 ulp, also near zero.
#[inline(always)]
pub fn log1p(x: f32) -> f32 {
    let u = 1.0 + x;
    let e = u.to_bits().wrapping_sub(SQRT_HALF) & EXPONENT;
    // f = 2^-e x + (2^-e - 1), of which only the last sum rounds: the rounding made in 1 + x never enters.
    // 4 * 2^-e, as 2^-e alone is subnormal for the largest x.
    let s = f32::from_bits(0x4080_0000_u32.wrapping_sub(e));
    let f = f32::from_bits(x.to_bits().wrapping_sub(e)) + fma(0.25, s, -1.0);
    let n = e as i32 as f32 * EXPONENT_UNIT;
    let y = fma(n, LN_2_HI, fma(f * f, log_poly(f), f));
    log_special(u, y).copysign(x)
}

/// `ln(1 + w)` for `0 <= w <= 1` as `w P(w)`, P of degree 10, minimax relative error `2^-30.1`: `P(w)`.
#[inline(always)]
fn log1p_unit_poly(w: f32) -> f32 {
    let q = fma(w, 0.002_084_600_3, -0.013_691_887);
    let q = fma(w, q, 0.042_115_156);
    let q = fma(w, q, -0.083_239_205);
    let q = fma(w, q, 0.124_795_39);
    let q = fma(w, q, -0.161_351_73);
    let q = fma(w, q, 0.198_996_23);
    let q = fma(w, q, -0.249_888_64);
    let q = fma(w, q, 0.333_327_14);
    let q = fma(w, q, -0.499_999_88);
    fma(w, q, 1.0)
}

/// `ln(1 + e^x)`, the softplus with beta 1, at most 2 ulp: no overflow, and no cancellation in the negative tail.
#[inline(always)]
pub fn softplus1(x: f32) -> f32 {
    // max(x, 0) + ln(1 + e^-|x|)
    let w = exp_scaled_plain(at_least(-x.abs(), -120.0));
    let tail = (w.0 * log1p_unit_poly(w.plain())) * Scaled::DOWN;
    if x > 0.0 { x + tail } else { tail }
}
