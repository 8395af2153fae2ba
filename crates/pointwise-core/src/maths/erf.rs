//! `erf`, `erfc`, the normal distribution function and `gelu`.

use super::exp::{
    LN_2_HI, LN_2_LO, LOG2_E, Scaled, add_exponent, exp_poly, exp2_poly,
};
use super::hyperbolic::gate;
use super::prim::{ROUND_MAGIC, fast_recip, fma};

/// The error function, at most 2 ulp.
#[inline(always)]
pub fn erf(x: f32) -> f32 {
    let a = x.abs();
    // |x| < 1: x + x P(x^2), P of degree 6, minimax relative error 2^-29.4.
    let z = x * x;
    let p = fma(z, 7.806_904e-5, -0.000_799_785_3);
    let p = fma(z, p, 0.005_187_162);
    let p = fma(z, p, -0.026_853_347);
    let p = fma(z, p, 0.112_835_79);
    let p = fma(z, p, -0.376_126_26);
    let p = fma(z, p, 0.128_379_17);
    let near = fma(x, p, x);
    // 1 <= |x| < 3.95: 1 - 2^Q(|x|), Q of degree 7 for log2 erfc, minimax relative error of the result 2^-35.3.
    let b = a.min(3.95);
    let q = fma(b, -3.130_296_3e-5, 0.000_636_901_9);
    let q = fma(b, q, -0.006_066_882);
    let q = fma(b, q, 0.036_370_654);
    let q = fma(b, q, -0.156_419_77);
    let q = fma(b, q, -0.913_538_34);
    let q = fma(b, q, -1.629_639_9);
    let q = fma(b, q, 0.000_271_902_25);
    let t = q + ROUND_MAGIC;
    let e = add_exponent(exp2_poly(q - (t - ROUND_MAGIC)), t);
    let far = (1.0 - e).copysign(x);
    // A NaN fails the comparison both ways: the near form keeps it.
    if a >= 1.0 { far } else { near }
}

/// `e^(-a^2 / d)` scaled by `2^100`, for `d` 1 or 2 given as `scale = -1 / d`, and `a^2 / d <= 120`.
///
/// The rounding of `a^2` would be a relative error `a^2` times as large: it is measured and put back.
#[inline(always)]
fn exp_neg_square(a: f32, scale: f32) -> Scaled {
    let h = a * a;
    let low = fma(a, a, -h);
    let y = h * scale;
    let t = fma(y, LOG2_E, ROUND_MAGIC + 100.0);
    let n = t - (ROUND_MAGIC + 100.0);
    let r = fma(n, -LN_2_HI, y);
    let r = fma(n, -LN_2_LO, r);
    let r = fma(low, scale, r);
    Scaled(add_exponent(exp_poly(r), t))
}

/// The complementary error function `1 - erf(x)`, at most 3 ulp.
#[inline(always)]
pub fn erfc(x: f32) -> f32 {
    // erfc a = e^(-a^2) t P(t), t = 1 / (1 + 27/64 a), 0 <= a <= 10.2; P of degree 9, minimax relative error 2^-28.
    let a = x.abs().min(10.2);
    let t = fast_recip(fma(a, 0.421_875, 1.0));
    let p = fma(t, -0.041_190_837, 0.228_148_46);
    let p = fma(t, p, -0.473_224_9);
    let p = fma(t, p, 0.413_087_82);
    let p = fma(t, p, -0.179_760_86);
    let p = fma(t, p, 0.203_891_62);
    let p = fma(t, p, 0.153_180_94);
    let p = fma(t, p, 0.220_108_78);
    let p = fma(t, p, 0.237_730_59);
    let p = fma(t, p, 0.238_028_39);
    let e = exp_neg_square(a, -1.0);
    let tail = ((p * t) * e.0) * Scaled::DOWN;
    let y = if x < 0.0 { 2.0 - tail } else { tail };
    if x.is_nan() { x } else { y }
}

/// The normal distribution function of `-a`, for `0 <= a <= 14.8`, scaled by `2^100`.
#[inline(always)]
fn normal_tail(a: f32) -> Scaled {
    // e^(-a^2 / 2) t P(t), t = 1 / (1 + 19/64 a); P of degree 9, minimax relative error 2^-28.1.
    let t = fast_recip(fma(a, 0.296_875, 1.0));
    let p = fma(t, -0.020_372_689, 0.114_447_22);
    let p = fma(t, p, -0.241_599_49);
    let p = fma(t, p, 0.216_671_63);
    let p = fma(t, p, -0.097_092_27);
    let p = fma(t, p, 0.106_097_594);
    let p = fma(t, p, 0.075_277_27);
    let p = fma(t, p, 0.109_859_42);
    let p = fma(t, p, 0.118_268_795);
    let p = fma(t, p, 0.118_442_51);
    Scaled((p * t) * exp_neg_square(a, -0.5).0)
}

/// The normal distribution function `erfc(-x / sqrt 2) / 2`, at most 3 ulp.
#[inline(always)]
pub fn normal_cdf(x: f32) -> f32 {
    let tail = normal_tail(x.abs().min(14.8)).plain();
    let y = if x < 0.0 { tail } else { 1.0 - tail };
    if x.is_nan() { x } else { y }
}

/// `x` times the normal distribution function, at most 3 ulp, with the relative accuracy kept in the negative tail;
/// `-Inf` gives NaN.
#[inline(always)]
pub fn gelu(x: f32) -> f32 {
    let tail = normal_tail(x.abs().min(14.8));
    gate(x, -14.8, fma(tail.0, -Scaled::DOWN, 1.0), tail)
}
