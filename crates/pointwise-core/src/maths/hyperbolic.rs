//! `tanh`, the logistic function and the activations made of them.

use super::exp::{Scaled, add_exponent, exp_scaled, exp2_poly, expm1_moderate};
use super::prim::{ROUND_MAGIC, at_least, at_most, fast_div_wide, fma};

/// The hyperbolic tangent, at most 2 ulp.
#[inline(always)]
pub fn tanh(x: f32) -> f32 {
    // n / (n + 2) with n = e^(2|x|) - 1; from 9.02 on the result rounds to one.
    let n = expm1_moderate(at_most(2.0 * x.abs(), 20.0));
    let d = n + 2.0;
    let d_low = n - (d - 2.0);
    fast_div_wide(n, d, d_low).copysign(x)
}

/// What the activations of the form `x s(x)` share: `s` as a factor, which is `2^100` too large for negative `x`, and
/// the scale to put the product right with.
///
/// Below `limit` the factor is zero, so that `-Inf` gives NaN as the formula does.
#[inline(always)]
fn gate(x: f32, limit: f32, positive: f32, negative: Scaled) -> f32 {
    let tail = if x < limit { 0.0 } else { negative.0 };
    let factor = if x < 0.0 { tail } else { positive };
    let scale = if x < 0.0 { Scaled::DOWN } else { 1.0 };
    (x * factor) * scale
}

/// `z / (1 + z)` for negative `x` and `1 / (1 + z)` else, `z <= 1`: what a logistic function of `x` comes down to. The
/// first is `2^100` too large, as `z` is.
#[inline(always)]
fn logistic(x: f32, z: Scaled) -> f32 {
    let n = if x < 0.0 { z.0 } else { 1.0 };
    let w = z.plain();
    let d = 1.0 + w;
    fast_div_wide(n, d, w - (d - 1.0))
}

/// The logistic function `1 / (1 + e^-x)`, at most 2 ulp, in the negative tail down to subnormal results too.
#[inline(always)]
pub fn sigmoid(x: f32) -> f32 {
    let z = exp_scaled(at_least(-x.abs(), -120.0));
    let scale = if x < 0.0 { Scaled::DOWN } else { 1.0 };
    let y = logistic(x, z) * scale;
    if x.is_nan() { x } else { y }
}

/// `x / (1 + e^-x)`, at most 3 ulp, with the relative accuracy kept in the negative tail; `-Inf` gives NaN.
#[inline(always)]
pub fn silu(x: f32) -> f32 {
    let q = logistic(x, exp_scaled(at_least(-x.abs(), -120.0)));
    gate(x, -120.0, q, Scaled(q))
}

/// `x tanh(ln(1 + e^x))`, at most 3 ulp, with the relative accuracy kept in the negative tail; `-Inf` gives NaN.
#[inline(always)]
pub fn mish(x: f32) -> f32 {
    // tanh(ln(1 + e)) = n / (n + 2), n = e (e + 2), divided by e^2 where e > 1. With w = e^-|x|:
    // x < 0: n / (n + 2), n = w^2 + 2w; else n / (n + 2w^2), n = 1 + 2w.
    let w_scaled = exp_scaled(at_least(-x.abs(), -120.0));
    let w = w_scaled.plain();
    let negative = x < 0.0;
    let twice = w_scaled.0 + w_scaled.0;
    let tail = fma(w_scaled.0, w, twice);
    let n = if negative { tail } else { fma(2.0, w, 1.0) };
    // The larger summand of the denominator, and the other.
    let large = if negative { 2.0 } else { n };
    let small = if negative { tail * Scaled::DOWN } else { (w + w) * w };
    let d = large + small;
    let q = fast_div_wide(n, d, small - (d - large));
    gate(x, -120.0, q, Scaled(q))
}

/// `0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))`, at most 3 ulp, with the relative accuracy kept in the negative
/// tail; `-Inf` gives NaN.
#[inline(always)]
pub fn gelu_tanh(x: f32) -> f32 {
    // = x / (1 + 2^-v) with v = x (K1 + K3 x^2), K1 = 2 sqrt(2/pi) log2 e and K3 = 0.044715 K1. An error of v is a
    // relative error of the tail, v times as large: so v in two floats.
    /// A multiple of `2^-20`: the sum below is then exact to its last bit.
    const K1: f32 = 2.302_208;
    const K1_LOW: f32 = 2.513_669_7e-7;
    const K3: f32 = 0.102_943_24;
    const K3_LOW: f32 = -2.016_198_5e-9;
    let a = x.abs().min(11.2);
    let h = a * a;
    let h_low = fma(a, a, -h);
    let g = fma(h, K3, K1);
    let g_low = fma(h, K3, K1 - g) + fma(h_low, K3, fma(h, K3_LOW, K1_LOW));
    let v = a * g;
    let v_low = fma(a, g_low, fma(a, g, -v));
    let t = (ROUND_MAGIC + 100.0) - v;
    let n = t - (ROUND_MAGIC + 100.0);
    let z = Scaled(add_exponent(exp2_poly((-n - v) - v_low), t));
    let q = logistic(x, z);
    gate(x, -11.2, q, Scaled(q))
}
