//! `exp`, `exp2`, `expm1` and the parts of an exponential that other functions use.

use super::prim::{ROUND_MAGIC, at_least, at_most, fma};

/// log2 e rounded to f32.
pub(super) const LOG2_E: f32 = core::f32::consts::LOG2_E;
/// ln 2 rounded to f32, and the rest.
pub(super) const LN_2_HI: f32 = core::f32::consts::LN_2;
pub(super) const LN_2_LO: f32 = -1.904_654_2e-9;

/// `2^100` and its inverse, see [`Scaled`].
const UP: f32 = f32::from_bits((127 + 100) << 23);
const DOWN: f32 = f32::from_bits((127 - 100) << 23);

/// An exponential of a number that is not positive, kept `2^100` times too large.
///
/// The whole range of `e^x` for `x <= 0`, subnormal results included, then fits normal numbers: a caller multiplies
/// first and scales down once, at the end, with the only rounding in the subnormal range.
#[derive(Clone, Copy)]
pub(super) struct Scaled(pub(super) f32);

impl Scaled {
    /// The factor that turns a scaled number into the plain one.
    pub(super) const DOWN: f32 = DOWN;

    /// Returns the plain number.
    #[inline(always)]
    pub(super) fn plain(self) -> f32 {
        self.0 * DOWN
    }
}

/// `e^r` for `|r| <= 0.3468`: `1 + r + r^2 Q(r)`, Q of degree 4, minimax relative error `2^-28.2`.
#[inline(always)]
pub(super) fn exp_poly(r: f32) -> f32 {
    exp_poly_times(1.0, r)
}

/// `s e^r`, with the bits of [`exp_poly`] for a power of two `s`. A constant `s` costs nothing.
#[inline(always)]
fn exp_poly_times(s: f32, r: f32) -> f32 {
    let q = fma(r, s * 0.001_383_674_9, s * 0.008_369_14);
    let q = fma(r, q, s * 0.041_668_106);
    let q = fma(r, q, s * 0.166_665_17);
    let q = fma(r, q, s * 0.499_999_94);
    let q = fma(r, q, s);
    fma(r, q, s)
}

/// `s 2^f` for `|f| <= 0.5` and a power of two `s`: `1 + f (ln 2 + f Q(f))`, Q of degree 3, minimax relative error `2^-23.1`.
#[inline(always)]
fn exp2_poly_16(s: f32, f: f32) -> f32 {
    let q = fma(f, s * 0.001_330_036_4, s * 0.009_669_661);
    let q = fma(f, q, s * 0.055_505_59);
    let q = fma(f, q, s * 0.240_222_83);
    let q = fma(f, q, s * LN_2_HI);
    fma(f, q, s)
}

/// `2^f` for `|f| <= 0.5`: `1 + f (ln 2 + f Q(f))`, Q of degree 4, minimax relative error `2^-28.3`.
#[inline(always)]
pub(super) fn exp2_poly(f: f32) -> f32 {
    fma(f, exp2_quotient(f), 1.0)
}

/// `2^f - 1` for `|f| <= 0.5`, by the polynomial of [`exp2_poly`].
#[inline(always)]
pub(super) fn exp2_m1_poly(f: f32) -> f32 {
    f * exp2_quotient(f)
}

/// `(2^f - 1) / f`.
#[inline(always)]
fn exp2_quotient(f: f32) -> f32 {
    let q = fma(f, 0.000_153_377_07, 0.001_339_136_5);
    let q = fma(f, q, 0.009_618_483);
    let q = fma(f, q, 0.055_503_59);
    let q = fma(f, q, 0.240_226_48);
    fma(f, q, LN_2_HI)
}

/// Adds `n` to the exponent of `x`. `n` is the low bits of `rounded`, a sum with [`ROUND_MAGIC`].
///
/// A NaN may become a number: callers must meet the NaN again on another way.
#[inline(always)]
pub(super) fn add_exponent(x: f32, rounded: f32) -> f32 {
    f32::from_bits(x.to_bits().wrapping_add(rounded.to_bits() << 23))
}

/// `2^n`, where `n + 127` is the low bits of `rounded`. A product with it keeps a NaN, which [`add_exponent`] does not.
#[inline(always)]
fn power_of_two(rounded: f32) -> f32 {
    f32::from_bits(rounded.to_bits() << 23)
}

/// `e^x` for `-120 <= x <= 0`, scaled by `2^100`. NaN as in [`add_exponent`].
#[inline(always)]
pub(super) fn exp_scaled(x: f32) -> Scaled {
    Scaled(exp_times_power(x, 100.0))
}

/// `e^x 2^k` for a whole `k` that makes it a normal number. NaN as in [`add_exponent`].
#[inline(always)]
pub(super) fn exp_times_power(x: f32, k: f32) -> f32 {
    let t = fma(x, LOG2_E, ROUND_MAGIC + k);
    let n = t - (ROUND_MAGIC + k);
    let r = fma(n, -LN_2_HI, x);
    let r = fma(n, -LN_2_LO, r);
    add_exponent(exp_poly(r), t)
}

/// `e^x`, at most 1 ulp.
#[inline(always)]
pub fn exp(x: f32) -> f32 {
    let c = at_least(at_most(x, 89.0), -104.0);
    // The results span more binades than an exponent field has: each half of them is first made 2^100 off, towards 1.
    let negative = c < 0.0;
    let magic = ROUND_MAGIC + if negative { 227.0 } else { 27.0 };
    let scale = if negative { DOWN } else { UP };
    let t = fma(c, LOG2_E, magic);
    let n = t - magic;
    let r = fma(n, -LN_2_HI, c);
    let r = fma(n, -LN_2_LO, r);
    exp_poly(r) * power_of_two(t) * scale
}

/// `e^x` for `x <= 0`, at most 1 ulp: [`exp`] without what the other numbers need.
#[inline(always)]
pub fn exp_negative(x: f32) -> f32 {
    let c = at_least(x, -104.0);
    let t = fma(c, LOG2_E, ROUND_MAGIC + 227.0);
    let n = t - (ROUND_MAGIC + 227.0);
    let r = fma(n, -LN_2_HI, c);
    let r = fma(n, -LN_2_LO, r);
    exp_poly_times(DOWN, r) * power_of_two(t)
}

/// `e^x` for `x <= 0`, for results of 16 bits: relative error `2^-21.5` for a result above `2^-24`, `2^-19` for all normal ones.
/// Unlike the functions of [`super::half`] it has the same bits everywhere.
#[inline(always)]
pub fn exp_negative_16(x: f32) -> f32 {
    let c = at_least(x, -104.0);
    let t = fma(c, LOG2_E, ROUND_MAGIC + 227.0);
    let n = t - (ROUND_MAGIC + 227.0);
    exp2_poly_16(DOWN, fma(c, LOG2_E, -n)) * power_of_two(t)
}

/// `2^x`, at most 1 ulp.
#[inline(always)]
pub fn exp2(x: f32) -> f32 {
    let c = at_least(at_most(x, 129.0), -151.0);
    let negative = c < 0.0;
    let magic = ROUND_MAGIC + if negative { 227.0 } else { 27.0 };
    let scale = if negative { DOWN } else { UP };
    let t = c + magic;
    let n = t - magic;
    exp2_poly(c - n) * power_of_two(t) * scale
}

/// `e^r - 1` for `|r| <= 0.47`: `r + r^2 Q(r)`, Q of degree 5, minimax relative error `2^-28.2`.
#[inline(always)]
fn expm1_poly(r: f32) -> f32 {
    let q = fma(r, 0.000_198_013_4, 0.001_397_045_4);
    let q = fma(r, q, 0.008_333_652);
    let q = fma(r, q, 0.041_666_046);
    let q = fma(r, q, 0.166_666_64);
    let q = fma(r, q, 0.5);
    fma(r * r, q, r)
}

/// `e^x - 1` for `x <= 0`, at most 1 ulp.
#[inline(always)]
pub fn expm1_negative(x: f32) -> f32 {
    let c = at_least(x, -26.0);
    let t = fma(c, LOG2_E, ROUND_MAGIC);
    let n = t - ROUND_MAGIC;
    // The error of LN_2_HI is small beside 2^n - 1.
    let r = fma(n, -LN_2_HI, c);
    // e^r - 1 = r + r^2 Q(r), Q of degree 4, minimax relative error of the result 2^-27.1.
    let q = fma(r, 0.001_369_951_5, 0.008_369_254);
    let q = fma(r, q, 0.041_670_717);
    let q = fma(r, q, 0.166_665_15);
    let q = fma(r, q, 0.499_999_82);
    let p = fma(r * r, q, r);
    let s = add_exponent(1.0, t);
    // The sums lose the sign of -0.
    fma(s, p, s - 1.0).copysign(x)
}

/// `e^x - 1` for `0 <= x <= 80`, exact for subnormal `x`.
#[inline(always)]
pub(super) fn expm1_moderate(x: f32) -> f32 {
    let t = fma(x, LOG2_E, ROUND_MAGIC);
    let n = t - ROUND_MAGIC;
    let r = fma(n, -LN_2_HI, x);
    let r = fma(n, -LN_2_LO, r);
    let s = add_exponent(1.0, t);
    fma(s, expm1_poly(r), s - 1.0)
}

/// `e^x - 1`, at most 1 ulp.
#[inline(always)]
pub fn expm1(x: f32) -> f32 {
    let c = at_least(at_most(x, 89.0), -26.0);
    let t = fma(c, LOG2_E, ROUND_MAGIC);
    // Not n = +-1 while the sum below would cancel.
    let t = if c.abs() < 0.47 { ROUND_MAGIC } else { t };
    let n = t - ROUND_MAGIC;
    // From n = 25 on 2^n - 1 does not fit, and for a while the lost 1 would show: e^x - 1 is about e^(x - e^-x), and
    // e^-x about 1.2 * 2^-n where the result's last place is small enough to matter.
    let shift = f32::from_bits(1.2_f32.to_bits().wrapping_sub(t.to_bits() << 23));
    let lost = if (n - 27.0).abs() < 3.0 { shift } else { 0.0 };
    let r = fma(n, -LN_2_HI, c) - fma(n, LN_2_LO, lost);
    let q = expm1_poly(r);
    // Half of the result, as 2^n overflows before the result does.
    let s = add_exponent(0.5, t);
    let h = fma(s, q, s - 0.5);
    // Half of a subnormal may not be representable.
    let y = if n == 0.0 { q } else { h + h };
    y.copysign(x)
}
