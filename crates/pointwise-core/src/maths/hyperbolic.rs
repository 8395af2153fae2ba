//! `tanh`, the logistic function and the activations made of them.

use super::exp::{Scaled, add_exponent, exp_scaled, exp_times_power, exp2_poly, expm1_moderate};
use super::prim::{ON_GPU, ROUND_MAGIC, at_least, at_most, fast_div_wide, fma, recip_normal};

/// The hyperbolic tangent, at most 2 ulp.
#[inline(always)]
pub fn tanh(x: f32) -> f32 {
    // n / (n + 2) with n = e^(2|x|) - 1; from 9.02 on the result rounds to one.
    let n = expm1_moderate(at_most(2.0 * x.abs(), 20.0));
    let d = n + 2.0;
    let d_low = n - (d - 2.0);
    fast_div_wide(n, d, d_low).copysign(x)
}

/// A [`Gate`] keeps exponentially small numbers too large by this power of two.
const GATE_POWER: f32 = 60.0;
/// `2^-60`, the inverse.
const GATE_DOWN: f32 = f32::from_bits((127 - 60) << 23);

/// An activation of the form `x s(x)`, where `s` is next to 0 at the lower end of a range and next to 1 at the upper.
///
/// `s` is computed `2^60` times too large: the product then fits normal numbers. A subnormal result is rounded once
/// more, at the end.
struct Gate {
    /// `x`, but not outside the range.
    inside: f32,
    /// The part of `x` above the range, where the activation is `x`. -0 inside, so that -0 survives; NaN for `-Inf`.
    above: f32,
}

impl Gate {
    #[inline(always)]
    fn new(x: f32, low: f32, high: f32) -> Self {
        let capped = at_most(x, high);
        Self { inside: at_least(capped, low), above: -(capped - x) }
    }

    /// `x n / (c + m)` for a whole `c` and `2^60` times too large an `n`.
    ///
    /// The denominator is rounded for the estimate only: the remainder is taken with its two parts.
    #[inline(always)]
    fn apply(self, n: f32, c: f32, m: f32) -> f32 {
        let r = recip_normal(c + m);
        let q = n * r;
        let q = fma(fma(-m, q, fma(-c, q, n)), r, q);
        fma(self.inside * q, GATE_DOWN, self.above)
    }
}

/// The logistic function `1 / (1 + e^-x)`, at most 2 ulp, in the negative tail down to subnormal results too.
#[inline(always)]
pub fn sigmoid(x: f32) -> f32 {
    // z / (1 + z) for negative x and 1 / (1 + z) else, z = e^-|x|.
    let z = exp_scaled(at_least(-x.abs(), -120.0));
    let n = if x < 0.0 { z.0 } else { 1.0 };
    let w = z.plain();
    let d = 1.0 + w;
    let d_low = w - (d - 1.0);
    let q = if ON_GPU {
        fast_div_wide(n, d, d_low)
    } else {
        // A division costs less here than its correction would. Only d_low is put back: it matters only if d is next to
        // 1.
        let q = n / d;
        fma(-q, d_low, q)
    };
    let scale = if x < 0.0 { Scaled::DOWN } else { 1.0 };
    let y = q * scale;
    if x.is_nan() { x } else { y }
}

/// `x / (1 + e^-x)`, at most 3 ulp, with the relative accuracy kept in the negative tail; `-Inf` gives NaN.
#[inline(always)]
pub fn silu(x: f32) -> f32 {
    let gate = Gate::new(x, -120.0, 20.0);
    let w = exp_times_power(gate.inside, GATE_POWER);
    gate.apply(w, 1.0, w * GATE_DOWN)
}

/// `x tanh(ln(1 + e^x))`, at most 3 ulp, with the relative accuracy kept in the negative tail; `-Inf` gives NaN.
#[inline(always)]
pub fn mish(x: f32) -> f32 {
    // tanh(ln(1 + w)) = n / (n + 2), n = w (w + 2).
    let gate = Gate::new(x, -120.0, 12.0);
    let w = exp_times_power(gate.inside, GATE_POWER);
    let n = fma(w, w * GATE_DOWN, w + w);
    gate.apply(n, 2.0, n * GATE_DOWN)
}

/// `0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))`, at most 3 ulp, with the relative accuracy kept in the negative
/// tail; `-Inf` gives NaN.
#[inline(always)]
pub fn gelu_tanh(x: f32) -> f32 {
    // = x z / (1 + z), z = 2^v with v = x (K1 + K3 x^2), K1 = 2 sqrt(2/pi) log2 e and K3 = 0.044715 K1. An error of v
    // is a relative error of the tail, v times as large: so v in two floats.
    /// A multiple of `2^-20`: the sum below is then exact to its last bit.
    const K1: f32 = 2.302_208;
    const K1_LOW: f32 = 2.513_669_7e-7;
    const K3: f32 = 0.102_943_24;
    const K3_LOW: f32 = -2.016_198_5e-9;
    let gate = Gate::new(x, -11.2, 6.0);
    let a = gate.inside;
    let h = a * a;
    let h_low = fma(a, a, -h);
    let g = fma(h, K3, K1);
    let g_low = fma(h, K3, K1 - g) + fma(h_low, K3, fma(h, K3_LOW, K1_LOW));
    let t = fma(a, g, ROUND_MAGIC + GATE_POWER);
    let n = t - (ROUND_MAGIC + GATE_POWER);
    let f = fma(a, g_low, fma(a, g, -n));
    let z = add_exponent(exp2_poly(f), t);
    gate.apply(z, 1.0, z * GATE_DOWN)
}
