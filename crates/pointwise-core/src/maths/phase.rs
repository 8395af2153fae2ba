//! Angles as fractions of a turn in 64-bit fixed point.
//!
//! A multiple of an angle is then one wrapping integer product. The reduction to one turn is exact and free; an `f32`
//! loses all its digits to it at large multiples.

use super::prim::{fma, fma64, wide_product};
use super::trig::{cos_poly, sin_poly};

/// `1.5 * 2^52`: [`super::prim::ROUND_MAGIC`] for f64.
const ROUND_MAGIC: f64 = 6_755_399_441_055_744.0;
/// log2(2 pi).
const LOG2_TAU: f64 = 2.651_496_129_472_319;

/// `2^f` for `|f| <= 0.5`: the series of `e^g` at `g = f ln 2` up to `g^12`, relative error below `2^-51`.
#[inline(always)]
fn exp2_fraction(f: f64) -> f64 {
    let g = f * core::f64::consts::LN_2;
    let q = fma64(g, 1.0 / 479_001_600.0, 1.0 / 39_916_800.0);
    let q = fma64(g, q, 1.0 / 3_628_800.0);
    let q = fma64(g, q, 1.0 / 362_880.0);
    let q = fma64(g, q, 1.0 / 40_320.0);
    let q = fma64(g, q, 1.0 / 5_040.0);
    let q = fma64(g, q, 1.0 / 720.0);
    let q = fma64(g, q, 1.0 / 120.0);
    let q = fma64(g, q, 1.0 / 24.0);
    let q = fma64(g, q, 1.0 / 6.0);
    let q = fma64(g, q, 0.5);
    let q = fma64(g, q, 1.0);
    fma64(g, q, 1.0)
}

/// `x` split into the nearest integer and the rest.
#[inline(always)]
fn split(x: f64) -> (i32, f64) {
    let t = x + ROUND_MAGIC;
    (t.to_bits() as i32, x - (t - ROUND_MAGIC))
}

/// `2^x` for `-1000 <= x <= 1000`, relative error below `2^-50`.
#[inline(always)]
pub fn exp2_f64(x: f64) -> f64 {
    let (n, f) = split(x);
    f64::from_bits(exp2_fraction(f).to_bits().wrapping_add((n as i64 as u64) << 52))
}

/// The phase, in 2^-64 turns, of an angle of `2^exponent` radians, for `-60 <= exponent <= 0`. Relative error below
/// `2^-47` and one unit.
#[inline(always)]
pub fn phase_of_exp2(exponent: f64) -> u64 {
    let (n, f) = split(exponent - LOG2_TAU);
    let significand = (exp2_fraction(f) * (1_u64 << 62) as f64) as u64;
    // n is at most -3: an angle of one radian is 0.16 turns.
    significand >> ((-2 - n) as u32 & 63)
}

/// Sine and cosine of an angle of `phase` 2^-64 turns, each at most 3 ulp.
#[inline(always)]
pub fn sincos_phase(phase: u64) -> (f32, f32) {
    /// Radians of `2^-64` quarter turns.
    const SCALE: f32 = core::f32::consts::FRAC_PI_2 * f32::from_bits((127 - 64) << 23);
    // The two highest bits are the quadrant. The other bits, shifted up, are signed by their own highest bit: a
    // fraction of a quarter turn in -0.5 .. 0.5 from the nearest one.
    let r = (phase << 2) as i64 as f32 * SCALE;
    let r2 = r * r;
    turned(sin_poly(r, r2), cos_poly(r2), phase)
}

/// The same for results of 16 bits: each within `2^-22` of itself and `2^-31`.
///
/// The remainder has 32 bits, as a conversion of 64 costs the GPU four times as much. The cosine has a term less.
#[inline(always)]
pub fn sincos_phase_coarse(phase: u64) -> (f32, f32) {
    let r = (phase >> 30) as i32 as f32 * (TURN / 4.0);
    let r2 = r * r;
    // Minimax relative error 2^-24.6.
    let c = fma(r2, fma(r2, -0.001_359_185_3, 0.041_655_777), -0.499_998_85);
    turned(sin_poly(r, r2), fma(r2, c, 1.0), phase)
}

/// Radians of 2^-32 turns.
const TURN: f32 = core::f32::consts::TAU * f32::from_bits((127 - 32) << 23);

/// `a * b` modulo a turn, for phases.
#[inline(always)]
pub fn multiple(a: u32, b: u64) -> u64 {
    // The GPU's product of 64 bits has an addition more.
    let [low, high] = wide_product(a, b as u32);
    let high = a.wrapping_mul((b >> 32) as u32).wrapping_add(high);
    low as u64 | (high as u64) << 32
}

/// Returns sine and cosine of the phase. `s` and `c` are sine and cosine of its part beside whole quarter turns.
#[inline(always)]
fn turned(s: f32, c: f32, phase: u64) -> (f32, f32) {
    let quadrant = ((phase >> 32) as u32).wrapping_add(0x2000_0000);
    let (sin, cos) = if quadrant & 0x4000_0000 != 0 { (c, -s) } else { (s, c) };
    let sign = |y: f32| f32::from_bits(y.to_bits() ^ (quadrant & 0x8000_0000));
    (sign(sin), sign(cos))
}
