//! `pow`: a logarithm and an exponential with about 10 bits to spare between them.

use super::exp::{LN_2_HI, LN_2_LO, add_exponent, exp2_poly};
use super::log::{ln, log_split, log_split_normal};
use super::prim::{ROUND_MAGIC, at_least, at_most, fma, rarely, recip_estimate, trunc};

/// The logarithm to base 2 of a positive finite number, `2^e (1 + f)` by [`log_split`], as the sum of two floats,
/// relative error about `2^-34`. The second is up to `2^-12` of the first.
#[inline(always)]
fn log2_wide(e: f32, f: f32) -> (f32, f32) {
    /// 2 log2 e rounded to f32, and the rest.
    const K: f32 = 2.885_39;
    const K_LOW: f32 = 3.851_926e-8;
    /// A third of that.
    const C: f32 = 0.961_796_7;
    const C_LOW: f32 = -7.028_462e-9;
    // log2(1 + f) = 2 log2 e * atanh(q), q = f / (2 + f); f - 2 q is exact.
    let r = recip_estimate(f + 2.0);
    let q = f * r;
    let q_low = fma(-q, f, fma(-2.0, q, f)) * r;
    // K atanh(q) = q (K + s (C + s U(s))) with s = q^2, U of degree 2, relative error 2^-35.3.
    let s = q * q;
    let s_low = fma(q, q, -s);
    let u = fma(s, 0.334_003_3, 0.412_031_48);
    let u = fma(s, u, 0.577_078_1);
    // The factor of q: K + s C, then the rest, which is small enough for one float.
    let g = fma(s, C, K);
    let g_low = fma(s, C, K - g) + K_LOW;
    let g_low = fma(s_low, C, fma(s, fma(s, u, C_LOW), g_low));
    let h = fma(q, g, e);
    let low = fma(q, g_low, fma(q, g, e - h));
    // And q_low by the derivative, K + 3 C s + ..., to 2^-12: the factor of s, 3 C = 2.885, is raised for the rest.
    (h, fma(q_low, fma(s, 2.955, K), low))
}

/// The product of `y` and a logarithm in two parts, in two parts.
#[inline(always)]
fn times(y: f32, (h, l): (f32, f32)) -> (f32, f32) {
    let p = y * h;
    (p, fma(y, l, fma(y, h, -p)))
}

/// `2^(p + p_low)`, a normal number.
#[inline(always)]
fn exp2_wide((p, p_low): (f32, f32)) -> f32 {
    // The low part is at most 2^-17, and need not be rounded along.
    let t = p + ROUND_MAGIC;
    let n = t - ROUND_MAGIC;
    add_exponent(exp2_poly((p - n) + p_low), t)
}

/// True unless a number, given by its bits, is positive and normal.
#[inline(always)]
fn unusual(bits: u32) -> bool {
    bits.wrapping_sub(0x0080_0000) >= 0x7f00_0000
}

/// `x` to the power `y`, at most 1 ulp, with the special cases of C99.
#[inline(always)]
pub fn pow(x: f32, y: f32) -> f32 {
    let a = x.abs();
    let (power, within) = of_magnitude(a, y);
    rarely(
        unusual(x.to_bits()) | !within,
        || rarely(unusual(a.to_bits()) | !within, || any_pow(x, y), with_sign(x, y, power)),
        power,
    )
}

/// Returns the power of the magnitude of `x`, and true if it is the power of `x`: `x` is positive and normal, and the
/// power is normal.
#[inline(always)]
pub(super) fn short(x: f32, y: f32) -> (f32, bool) {
    let (power, within) = of_magnitude(x.abs(), y);
    (power, within & !unusual(x.to_bits()))
}

/// Returns `a` to the power `y` for a positive normal `a`, and true if that is a normal number.
#[inline(always)]
fn of_magnitude(a: f32, y: f32) -> (f32, bool) {
    let (e, f) = log_split_normal(a);
    let (p, p_low) = times(y, log2_wide(e, f));
    // Within the bound the power is a normal number, whatever p_low is. An infinite or NaN exponent is beyond it.
    (exp2_wide((p, p_low)), p.abs() < 125.0)
}

/// Turns `power`, the power of the magnitude of `x`, into the power of `x`.
#[inline(always)]
fn with_sign(x: f32, y: f32, power: f32) -> f32 {
    let whole = trunc(y) == y;
    let half = 0.5 * y;
    let odd = whole & (trunc(half) != half);
    let flip = if odd { x.to_bits() & 0x8000_0000 } else { 0 };
    let signed = f32::from_bits(power.to_bits() ^ flip);
    let invalid = (x < 0.0) & (x > f32::NEG_INFINITY) & !whole;
    if invalid { f32::NAN } else { signed }
}

/// `b a^(b - 1)`, and `a^b ln(a)` or 0 for `a = 0` and `b >= 0`, by one logarithm.
#[inline(always)]
pub fn pow_gradients(a: f32, b: f32) -> (f32, f32) {
    let (abs, less) = (a.abs(), b - 1.0);
    let (e, f) = log_split_normal(abs);
    let log = log2_wide(e, f);
    let (t, t_less) = (times(b, log), times(less, log));
    // Powers that are normal numbers, and exponents small enough for their parity to be in a sum.
    let within = (t.0.abs() < 125.0) & (t_less.0.abs() < 125.0) & (less.abs() < 2_097_152.0);
    let sum = less + ROUND_MAGIC;
    // If `less` is no integer, the sign does not matter: the power of a negative number is NaN.
    let signed = f32::from_bits(exp2_wide(t_less).to_bits() | (a.to_bits() & sum.to_bits() << 31));
    let invalid = (a < 0.0) & (sum - ROUND_MAGIC != less);
    let power = if invalid { f32::NAN } else { signed };
    let ln_a = fma(log.0, LN_2_HI, fma(log.1, LN_2_HI, log.0 * LN_2_LO));
    let product = exp2_wide(t) * ln_a;
    rarely(
        unusual(abs.to_bits()) | !within,
        || (b * any_pow(a, less), if (a == 0.0) & (b >= 0.0) { 0.0 } else { any_pow(a, b) * ln(a) }),
        (b * power, if a < 0.0 { f32::NAN } else { product }),
    )
}

/// [`pow()`] of any two numbers.
#[inline(always)]
fn any_pow(x: f32, y: f32) -> f32 {
    let a = x.abs();
    let (e, f) = log_split(a);
    let (h, l) = log2_wide(e, f);
    let h = if a == 0.0 { f32::NEG_INFINITY } else { h };
    let h = if a == f32::INFINITY { f32::INFINITY } else { h };
    // y log2 a; the largest number stands for infinity, so that 1 to an infinite power is 1.
    let finite = at_least(at_most(y, f32::MAX), -f32::MAX);
    let (p, p_low) = times(finite, (h, l));
    let c = at_least(at_most(p, 160.0), -160.0);
    let c_low = if p == c { p_low } else { 0.0 };
    let negative = c < 0.0;
    let magic = if negative { ROUND_MAGIC + 60.0 } else { ROUND_MAGIC - 60.0 };
    let scale = f32::from_bits(if negative { 127 - 60 } else { 127 + 60 } << 23);
    let t = (c + c_low) + magic;
    let n = t - magic;
    let power = add_exponent(exp2_poly((c - n) + c_low), t) * scale;
    // The sign, and the cases that have a value of their own.
    let signed = with_sign(x, y, power);
    let signed = if x.is_nan() | y.is_nan() { f32::NAN } else { signed };
    if (x == 1.0) | (y == 0.0) { 1.0 } else { signed }
}
