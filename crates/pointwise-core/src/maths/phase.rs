//! Angles as fractions of a turn in 64-bit fixed point.
//!
//! A multiple of an angle is then one wrapping integer product: the reduction to one turn, which costs an `f32` all its
//! digits at large multiples, is exact and free.

use super::prim::fma64;
use super::trig::{cos_poly, sin_poly};

/// `1.5 * 2^52`: as [`super::prim::ROUND_MAGIC`], for f64.
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
    // The two highest bits are the quadrant; what is left, shifted up, is signed by its own highest bit: a fraction of
    // a quarter turn in -0.5 .. 0.5 of the nearest one.
    let r = (phase << 2) as i64 as f32 * SCALE;
    let quadrant = ((phase >> 32) as u32).wrapping_add(0x2000_0000);
    let r2 = r * r;
    let (s, c) = (sin_poly(r, r2), cos_poly(r2));
    let swap = quadrant & 0x4000_0000 != 0;
    let (sin, cos) = if swap { (c, s) } else { (s, c) };
    let sign = |y: f32, bits: u32| f32::from_bits(y.to_bits() ^ (bits & 0x8000_0000));
    (sign(sin, quadrant), sign(cos, quadrant.wrapping_add(0x4000_0000)))
}
