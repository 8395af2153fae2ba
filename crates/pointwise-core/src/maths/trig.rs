//! `sin`, `cos`, both at once, and both of a multiple of pi.

use super::prim::{ROUND_MAGIC, fma, mostly, rarely};

const TWO_OVER_PI: f32 = core::f32::consts::FRAC_2_PI;
/// pi/2 in three parts of 24 bits, all positive, so that a reduction of -0 by `0 * pi/2` leaves -0.
const PIO2_HI: f32 = f32::from_bits(0x3fc9_0fda);
const PIO2_MID: f32 = 7.549_789_4e-8;
const PIO2_LO: f32 = 5.390_303e-15;
/// Up to this the three parts of pi/2 suffice: the multiple stays below `2^15`, its products with the first part are
/// exact to the last bit that counts, and the part of pi/2 beyond the three is below `2^-28` of any remainder.
pub(super) const LARGE: f32 = 50_000.0;

/// `sin r` for `|r| <= pi/4 + 0.002`: `r + r^3 S(r^2)`, S of degree 2, relative error below `2^-26`.
///
/// If `r` is in a higher binade than its sine (from 1/4, 1/2 and the like up to a little more), the rounding of `r`
/// counts twice. There the error of S is least; from 0.6 on it is larger than necessary.
#[inline(always)]
pub(super) fn sin_poly(r: f32, r2: f32) -> f32 {
    let s = fma(r2, -0.000_195_979_97, 0.008_332_831);
    let s = fma(r2, s, -0.166_666_66);
    // + 0.0, as -0.0 must not meet a +0.0 in the last sum: sin(-0) is -0.
    fma(s, fma(r2, r, 0.0), r)
}

/// `cos r` for `|r| <= pi/4 + 0.002`: `1 + r^2 C(r^2)`, C of degree 3, minimax relative error `2^-29.8`.
#[inline(always)]
pub(super) fn cos_poly(r2: f32) -> f32 {
    let c = fma(r2, 2.436_440_6e-5, -0.001_388_692_3);
    let c = fma(r2, c, 0.041_666_646);
    let c = fma(r2, c, -0.5);
    fma(r2, c, 1.0)
}

/// Returns `x - n pi/2` and a number with the low two bits of `n`, for a magnitude below [`LARGE`].
#[inline(always)]
fn reduce_small(x: f32) -> (f32, u32) {
    let t = fma(x, TWO_OVER_PI, ROUND_MAGIC);
    let n = t - ROUND_MAGIC;
    let r = fma(n, -PIO2_HI, x);
    let r = fma(n, -PIO2_MID, r);
    (fma(n, -PIO2_LO, r), t.to_bits())
}

/// [`reduce_small`] with the rounding error of the remainder.
#[inline(always)]
fn reduce_small_wide(x: f32) -> (f32, f32, u32) {
    let t = fma(x, TWO_OVER_PI, ROUND_MAGIC);
    let n = t - ROUND_MAGIC;
    let first = fma(n, -PIO2_HI, x);
    let product = n * PIO2_MID;
    let product_low = fma(n, PIO2_MID, -product);
    // The difference and its rounding error, whichever operand is larger (Knuth's two-sum).
    let r = first - product;
    let back = r - first;
    let lost = (first - (r - back)) - (product + back);
    (r, lost - fma(n, PIO2_LO, product_low), t.to_bits())
}

/// Returns the remainder, its rounding error and the quadrant, like [`reduce_small_wide`], for a magnitude of at least
/// 64: the method of Payne and Hanek (1983).
///
/// The 24-bit significand is multiplied with 96 bits of 2/pi: the ones that give no multiples of 4, down to `2^-94`.
/// The product modulo 4, with 62 bits of fraction, gives quadrant and remainder. The bits are picked by selects among
/// immediates, as a table would be memory.
#[inline(always)]
fn reduce_large(x: f32) -> (f32, f32, u32) {
    /// 2/pi, the bits below the binary point, behind one word of zeros.
    const W: [u32; 8] = [0, 0xa2f9_836e, 0x4e44_1529, 0xfc27_57d1, 0xf534_ddc0, 0xdb62_9599, 0x3c43_9041, 0xfe51_63ab];
    let bits = x.to_bits();
    let significand = u64::from(bits & 0x007f_ffff | 0x0080_0000);
    // x = significand * 2^(exponent - 150); bits of 2/pi above position exponent - 152 give multiples of 4.
    let position = (bits >> 23 & 0xff).wrapping_sub(120);
    let pick = |with: u32, far: u32, near: u32| if position & with != 0 { far } else { near };
    let w8 = |i: usize| if i < 8 { W[i] } else { 0 };
    let by4 = |i: usize| pick(128, w8(i + 4), W[i]);
    let by2 = |i: usize| pick(64, by4(i + 2), by4(i));
    let by1 = |i: usize| pick(32, by2(i + 1), by2(i));
    let (a, b, c, d) = (by1(0), by1(1), by1(2), by1(3));
    let shift = position & 31;
    let window = |high: u32, low: u32| ((u64::from(high) << 32 | u64::from(low)) << shift) >> 32;
    let high = significand.wrapping_mul(window(a, b)) << 32;
    let product = high
        .wrapping_add(significand.wrapping_mul(window(b, c)))
        .wrapping_add(significand.wrapping_mul(window(c, d)) >> 32);
    // Units of 2^-62: two bits of quadrant, rounded to nearest, and a signed fraction in three exact pieces.
    let quadrant = (product.wrapping_add(1 << 61) >> 62) as u32;
    let fraction = product.wrapping_sub(u64::from(quadrant) << 62);
    let top = (fraction.wrapping_add(1 << 39) >> 32) as u32 as i32 >> 8;
    let rest = fraction.wrapping_add(1 << 39) & 0xff_ffff_ffff;
    let middle = (rest >> 16) as u32 as i32 - 0x80_0000;
    let low = (rest & 0xffff) as u32 as i32;
    let f0 = top as f32 * f32::from_bits((127 - 22) << 23);
    let f1 = middle as f32 * f32::from_bits((127 - 46) << 23);
    let f1 = fma(low as f32, f32::from_bits((127 - 62) << 23), f1);
    let f = f0 + f1;
    let f_low = f1 - (f - f0);
    let small = fma(f, PIO2_MID, f_low * PIO2_HI);
    let r = fma(f, PIO2_HI, small);
    let low = fma(f, PIO2_HI, -r) + small;
    let sign = bits & 0x8000_0000;
    let quadrant = if sign != 0 { quadrant.wrapping_neg() } else { quadrant };
    (f32::from_bits(r.to_bits() ^ sign), f32::from_bits(low.to_bits() ^ sign), quadrant)
}

/// True if the magnitude of `x` is at most [`LARGE`]. False for NaN.
#[inline(always)]
pub(super) fn is_small(x: f32) -> bool {
    x.abs() < LARGE.next_up()
}

/// Returns the remainder of `x` by pi/2 and the quadrant, for any `x`.
#[inline(always)]
fn reduce(x: f32) -> (f32, u32) {
    let large = || {
        let (r, _, n) = reduce_large(x);
        (r, n)
    };
    let (r, n) = mostly(is_small(x), reduce_small(x), large);
    // The integer path has no infinities.
    let r = if x.abs() < f32::INFINITY { r } else { f32::NAN };
    (r, n)
}

/// Returns the sine of an angle in quadrant `n`, from sine and cosine of its remainder. The last two bits of `n` count.
#[inline(always)]
fn in_quadrant(n: u32, sin: f32, cos: f32) -> f32 {
    let y = if n & 1 != 0 { cos } else { sin };
    f32::from_bits(y.to_bits() ^ (n & 2) << 30)
}

/// The sine of an angle in radians, at most 1.5 ulp, for every angle.
#[inline(always)]
pub fn sin(x: f32) -> f32 {
    sincos(x).0
}

/// The cosine of an angle in radians, at most 1.5 ulp, for every angle.
#[inline(always)]
pub fn cos(x: f32) -> f32 {
    sincos(x).1
}

/// Sine and cosine of an angle in radians, each at most 1.5 ulp, from one reduction.
#[inline(always)]
pub fn sincos(x: f32) -> (f32, f32) {
    let (r, n) = reduce(x);
    let r2 = r * r;
    let (s, c) = (sin_poly(r, r2), cos_poly(r2));
    (in_quadrant(n, s, c), in_quadrant(n.wrapping_add(1), s, c))
}

/// [`sincos`], each at most 0.8 ulp, for angles that many lanes share: the remainder's rounding error is put back, and
/// the sums are ordered so that only the last one rounds. The sign of a zero sine is not defined.
#[inline(always)]
pub fn sincos_tight(x: f32) -> (f32, f32) {
    let (r, low, n) = rarely(is_far(x), || reduce_large(x), reduce_small_wide(x));
    // The integer path has no infinities.
    tight(if x.abs() < f32::INFINITY { r } else { f32::NAN }, low, n)
}

/// True if an angle is for [`sincos_tight_far`]. False for NaN: [`sincos_tight_near`] keeps it.
#[inline(always)]
pub fn is_far(x: f32) -> bool {
    x.abs() > LARGE
}

/// [`sincos_tight`] of an angle that is not [`is_far`]: no branch, so that several at once overlap.
#[inline(always)]
pub fn sincos_tight_near(x: f32) -> (f32, f32) {
    let (r, low, n) = reduce_small_wide(x);
    tight(r, low, n)
}

/// [`sincos_tight`] of an angle that [`is_far`].
#[inline(always)]
pub fn sincos_tight_far(x: f32) -> (f32, f32) {
    let (r, low, n) = reduce_large(x);
    tight(if x.abs() < f32::INFINITY { r } else { f32::NAN }, low, n)
}

/// Returns sine and cosine from the remainder by pi/2, its rounding error, and the quadrant.
#[inline(always)]
fn tight(r: f32, low: f32, n: u32) -> (f32, f32) {
    let r2 = r * r;
    let r2_low = fma(r, r, -r2);
    // sin: r + (low (1 - r^2 / 2) + r^3 S), S of degree 2 as in `sin_poly`, but of minimax relative error 2^-26.9.
    let s = fma(r2, -0.000_195_702_92, 0.008_332_672_5);
    let s = fma(r2, s, -0.166_666_66);
    let s = r + fma(s, r2 * r, fma(low * r2, -0.5, low));
    // cos: w + (the rest of 1 - r^2 / 2 + r^4 C), C as in `cos_poly`, w = 1 - r^2 / 2 rounded.
    let half = 0.5 * r2;
    let w = 1.0 - half;
    let rest = fma(r2_low, -0.5, fma(-r, low, (1.0 - w) - half));
    let c = fma(r2, 2.436_440_6e-5, -0.001_388_692_3);
    let c = fma(r2, c, 0.041_666_646);
    let c = w + fma(r2 * r2, c, rest);
    (in_quadrant(n, s, c), in_quadrant(n.wrapping_add(1), s, c))
}

/// `sin(pi x)` and `cos(pi x)` for `|x| <= 2^21`, each at most 2 ulp. Whole multiples of a half are exact, but for the
/// sign of a zero sine.
#[inline(always)]
pub fn sincospi(x: f32) -> (f32, f32) {
    /// pi rounded to f32, and the rest.
    const HI: f32 = core::f32::consts::PI;
    const LO: f32 = -8.742_278e-8;
    let t = fma(x, 2.0, ROUND_MAGIC);
    let r = fma(t - ROUND_MAGIC, -0.5, x);
    let r2 = r * r;
    // sin(pi r) = r (pi + r^2 S), |r| <= 1/4, S of degree 2, relative error 2^-27.9.
    let s = fma(r2, -0.589_277_7, 2.549_794_7);
    let s = fma(r2, s, -5.167_709);
    let s = fma(r, HI, r * fma(r2, s, LO));
    // cos(pi r) = 1 + r^2 C, C of degree 3, relative error 2^-31.1.
    let c = fma(r2, 0.228_988_51, -1.334_758_2);
    let c = fma(r2, c, 4.058_696_7);
    let c = fma(r2, c, -4.934_802);
    let c = fma(r2, c, 1.0);
    let n = t.to_bits();
    // + 0.0: a zero cosine is +0, as in IEEE 754's cosPi.
    (in_quadrant(n, s, c), in_quadrant(n.wrapping_add(1), s, c) + 0.0)
}
