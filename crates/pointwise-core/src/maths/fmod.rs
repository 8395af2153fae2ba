//! `fmod`, exact for every pair, and Python's `remainder` and `floor_divide` on top of it.

use super::prim::{ON_GPU, ROUND_MAGIC, fast_recip, floor, fma, rarely, recip_estimate, step_down};

/// The significand, in `1 .. 2`, and the exponent of a positive finite number.
#[inline(always)]
fn split(x: f32) -> (f32, i32) {
    let small = x < f32::MIN_POSITIVE;
    let bits = if small { x * 8_388_608.0 } else { x }.to_bits();
    let bias = if small { 127 + 23 } else { 127 };
    let significand = f32::from_bits(bits & 0x007f_ffff | 0x3f80_0000);
    (significand, (bits >> 23) as i32 - bias)
}

/// `2^n` for `-126 <= n <= 127`.
#[inline(always)]
const fn power_of_two(n: i32) -> f32 {
    f32::from_bits(((n + 127) as u32) << 23)
}

/// Returns `a - n b` in `0 .. b`, for `a < 2^20 b` and an `r` of about `1 / b`.
///
/// The quotient is estimated to a quarter, hence right or one too large; both remainders are multiples of the last
/// place of `b` and at most `b`, and so exact.
#[inline(always)]
fn reduce(a: f32, b: f32, r: f32) -> f32 {
    let n = fma(a, r, ROUND_MAGIC) - ROUND_MAGIC;
    let rest = fma(-n, b, a);
    if rest < 0.0 { rest + b } else { rest }
}

/// The remainder of `a >= b` by long division in digits of 20 bits, on the significands.
#[inline(always)]
fn long_division(a: f32, b: f32) -> f32 {
    let (a, a_exponent) = split(a);
    let (b, b_exponent) = split(b);
    let r = fast_recip(b);
    let mut rest = if a >= b { a - b } else { a };
    let mut gap = a_exponent - b_exponent;
    // The largest gap is 276: from 2^127 down to 2^-149.
    for _ in 0..14 {
        if ON_GPU && gap <= 0 {
            break;
        }
        let digit = gap.clamp(0, 20);
        gap -= digit;
        rest = reduce(rest * power_of_two(digit), b, r);
    }
    // Two factors, as 2^exponent may be below the smallest number; the result is a multiple of that.
    let half = b_exponent >> 1;
    rest * power_of_two(half) * power_of_two(b_exponent - half)
}

/// The remainder of the division truncated towards zero, as C's `fmod`: exact, with the sign of `a`.
///
/// NaN for an infinite `a` and for a zero `b`; `a` itself for an infinite `b`.
#[inline(always)]
pub fn fmod(a: f32, b: f32) -> f32 {
    let (x, y) = (a.abs(), b.abs());
    let rest = if x < y { x } else { long_division(x, y) };
    let valid = (x < f32::INFINITY) & (y > 0.0);
    if valid { rest.copysign(a) } else { f32::NAN }
}

/// True if a remainder must move by one divisor to take the divisor's sign.
#[inline(always)]
fn opposed(m: f32, b: f32) -> bool {
    (m != 0.0) & ((b < 0.0) != (m < 0.0))
}

/// Returns the quotient rounded down, with a positive zero, and true if that is right: if the divisor and its
/// reciprocal are normal, and the quotient is below `2^20`.
///
/// The estimate `n` is within 3/4 of the quotient. The sign of `a - n b`, which a rounding cannot change, tells whether
/// `n` is above it.
#[inline(always)]
fn near_floor(a: f32, b: f32) -> (f32, bool) {
    let r = recip_estimate(b);
    let t = fma(a, r, ROUND_MAGIC);
    let n = t - ROUND_MAGIC;
    let floor = step_down(fma(-n, b, a), r, t) - ROUND_MAGIC;
    // A small divisor has an infinite reciprocal, and `n` is not finite. The reciprocal of a large divisor is zero.
    (floor, (n.abs() < 1_048_576.0) & (r != 0.0))
}

/// `torch.remainder`: the remainder of the floored division. It has the sign of `b`; a zero has the sign of `a`.
#[inline(always)]
pub fn remainder(a: f32, b: f32) -> f32 {
    let (rest, found) = short_remainder(a, b);
    rarely(!found, || any_remainder(a, b), rest)
}

/// Returns [`remainder()`], and true if this short way is right.
#[inline(always)]
pub(super) fn short_remainder(a: f32, b: f32) -> (f32, bool) {
    let (floor, found) = near_floor(a, b);
    // The exact remainder, plus b where that was added, with one rounding.
    let rest = fma(-floor, b, a);
    (if rest == 0.0 { 0.0_f32.copysign(a) } else { rest }, found)
}

/// [`remainder()`] of any two numbers.
#[inline(always)]
fn any_remainder(a: f32, b: f32) -> f32 {
    let m = fmod(a, b);
    if opposed(m, b) { m + b } else { m }
}

/// `torch.floor_divide`: the quotient rounded down, found through the exact remainder.
#[inline(always)]
pub fn floor_divide(a: f32, b: f32) -> f32 {
    let (floor, found) = short_floor_divide(a, b);
    rarely(!found, || any_floor_divide(a, b), floor)
}

/// Returns [`floor_divide`], and true if this short way is right.
#[inline(always)]
pub(super) fn short_floor_divide(a: f32, b: f32) -> (f32, bool) {
    let (floor, found) = near_floor(a, b);
    // A zero has the sign of a / b, which every other number has already.
    let sign = (a.to_bits() ^ b.to_bits()) & 0x8000_0000;
    (f32::from_bits(floor.to_bits() | sign), found)
}

/// [`floor_divide`] of any two numbers, step by step as in PyTorch: a large quotient may be off by its rounding.
#[inline(always)]
fn any_floor_divide(a: f32, b: f32) -> f32 {
    let m = fmod(a, b);
    let by_zero = b == 0.0;
    let q = if by_zero { a } else { a - m } / b;
    let q = if opposed(m, b) { q - 1.0 } else { q };
    let f = floor(q);
    let f = if q - f > 0.5 { f + 1.0 } else { f };
    // The sign of a / b, which the difference a - m has lost.
    let sign = (a.to_bits() ^ b.to_bits()) & 0x8000_0000;
    let zero = f32::from_bits(sign);
    let f = if q == 0.0 { zero } else { f };
    if by_zero { q } else { f }
}
