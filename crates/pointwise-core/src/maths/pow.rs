//! `pow`: a logarithm and an exponential with about 12 bits to spare between them.

use super::exp::{add_exponent, exp2_poly};
use super::log::log_split;
use super::prim::{ROUND_MAGIC, at_least, at_most, fma, recip_estimate, trunc};

/// `a + b` and its rounding error, for `|a| >= |b|` or `a = 0` (Dekker 1971).
#[inline(always)]
fn fast_two_sum(a: f32, b: f32) -> (f32, f32) {
    let sum = a + b;
    (sum, (a - sum) + b)
}

/// The logarithm to base 2 of a positive finite number as the sum of two floats, relative error about `2^-36`.
#[inline(always)]
fn log2_wide(x: f32) -> (f32, f32) {
    /// 2 log2 e rounded to f32, and what the rounding left.
    const K: f32 = 2.885_39;
    const K_LOW: f32 = 3.851_926e-8;
    const THIRD: f32 = 1.0 / 3.0;
    const THIRD_LOW: f32 = -9.934_108e-9;
    let (e, f) = log_split(x);
    // log2(1 + f) = 2 log2 e * atanh(q), q = f / (2 + f)
    let d = f + 2.0;
    let d_low = f - (d - 2.0);
    let r = recip_estimate(d);
    let q = f * r;
    let q_low = fma(-d_low, q, fma(-d, q, f)) * r;
    // s = q^2
    let s = q * q;
    let s_low = fma(q + q, q_low, fma(q, q, -s));
    // atanh(q) = q (1 + t), t = s (1/3 + s U(s)), U of degree 2, relative error of the sum below 2^-45.
    let u = fma(s, 0.115_756_72, 0.142_799_23);
    let u = fma(s, u, 0.200_000_03);
    let (c, c_low) = fast_two_sum(THIRD, fma(s, u, THIRD_LOW));
    let t = s * c;
    let t_low = fma(s_low, c, fma(s, c_low, fma(s, c, -t)));
    let v = q * K;
    let v_low = fma(q_low, K, fma(q, K_LOW, fma(q, K, -v)));
    // v (1 + t)
    let w = v * t;
    let w_low = fma(v_low, t, fma(v, t_low, fma(v, t, -w)));
    let (h, l) = fast_two_sum(v, w);
    let (h, h_low) = fast_two_sum(e, h);
    fast_two_sum(h, h_low + (l + (v_low + w_low)))
}

/// `x` to the power `y`, at most 1 ulp, with the special cases of C99.
#[inline(always)]
pub fn pow(x: f32, y: f32) -> f32 {
    let a = x.abs();
    let (h, l) = log2_wide(a);
    let h = if a == 0.0 { f32::NEG_INFINITY } else { h };
    let h = if a == f32::INFINITY { f32::INFINITY } else { h };
    // y log2 a; the largest number stands for infinity, so that 1 to an infinite power is 1.
    let finite = at_least(at_most(y, f32::MAX), -f32::MAX);
    let p = finite * h;
    let p_low = fma(finite, l, fma(finite, h, -p));
    let c = at_least(at_most(p, 160.0), -160.0);
    let c_low = if p == c { p_low } else { 0.0 };
    let negative = c < 0.0;
    let magic = if negative { ROUND_MAGIC + 60.0 } else { ROUND_MAGIC - 60.0 };
    let scale = f32::from_bits(if negative { 127 - 60 } else { 127 + 60 } << 23);
    let t = c + magic;
    let n = t - magic;
    let power = add_exponent(exp2_poly((c - n) + c_low), t) * scale;
    // The sign, and the cases that have a value of their own.
    let whole = trunc(y) == y;
    let half = 0.5 * y;
    let odd = whole & (trunc(half) != half);
    let flip = if odd { x.to_bits() & 0x8000_0000 } else { 0 };
    let signed = f32::from_bits(power.to_bits() ^ flip);
    let invalid = (x < 0.0) & (a < f32::INFINITY) & !whole;
    let invalid = invalid | x.is_nan() | y.is_nan();
    let signed = if invalid { f32::NAN } else { signed };
    if (x == 1.0) | (y == 0.0) { 1.0 } else { signed }
}
