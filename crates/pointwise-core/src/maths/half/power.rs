//! Powers, and the gradients of powers.

use core::f32::consts::{LN_2, LOG2_E};

use super::{Approx, BELOW_TIE};
use crate::maths::prim::{ROUND_MAGIC, at_least, at_most, fma, rarely};
use crate::maths::single;
use crate::num::{Short, Signed};

/// C99 `pow`.
#[inline(always)]
pub(super) fn pow<A: Approx>(a: f32, b: f32) -> f32 {
    let Short { bounds: [near, far], holds } = short::<A>(a, b);
    // Then no number half way between two results lies from behind `near` up to `far`, `far` included.
    let is_decided = (near.to_bits() ^ far.to_bits()) & !BELOW_TIE == 0;
    // If `b` is an integer, the low bit of the sum is its low bit. An integer too large for that has wide bounds.
    let sum = b + ROUND_MAGIC;
    let signed = f32::from_bits(far.to_bits() | (a.to_bits() & (sum.to_bits() << 31)));
    let is_invalid = (a < 0.0) & (sum - ROUND_MAGIC != b);
    rarely(!(holds & is_decided), || single::pow(a, b), if is_invalid { f32::NAN } else { signed })
}

/// Returns bounds of the power of the magnitude of `a`. They hold only if it is a normal number.
#[inline(always)]
pub(super) fn short<A: Approx>(a: f32, b: f32) -> Short<f32> {
    // Near 1, where the approximate logarithm is good in absolute terms only, the bounds are wide for large `b` alone.
    let t = b * A::lg2_magnitude(a);
    let power = A::ex2_flush(t);
    // A logarithm is off by 2^-22 of itself or of 1, the product by 2^-24; the power then by ln 2 times as much, by its
    // own 2^-22, and by what the bounds lose to rounding.
    let error = power * fma(b.abs().max(t.abs()), 2.07e-7, 3.0e-7);
    // Within the bound the power is a normal number. An infinite or NaN exponent is beyond it, and so is every product
    // with a logarithm that is not finite.
    Short { bounds: [power - error, power + error], holds: t.abs() < 126.0 }
}

/// Returns the corrections for the sign of `a` and for powers of zeros, also for results of 32 bits.
#[inline(always)]
pub(super) fn signed<A: Approx>(a: f32, b: f32) -> Signed<f32> {
    let (odd, whole) = parity(b);
    let invalid = if a < 0.0 { !(1 << 31) } else { 0 };
    let sign = if whole { odd & a.to_bits() } else { invalid };
    let is_zero = a == 0.0;
    let t = b * A::lg2_magnitude(a);
    // The logarithm is off by 2^-22 of itself or of 1, and with exponents below 2^22 by 1 after the product.
    let holds = (b.abs() < 4_194_304.0) & ((t.abs() < 123.5) | (is_zero & (b != 0.0)));
    Signed { sign, is_zero, of_zero: if b > 0.0 { 0.0 } else { f32::INFINITY }, holds }
}

/// `b a^(b - 1)`, and `a^b ln(a)` or 0 for `a = 0` and `b >= 0`, by one logarithm. Exponents of magnitude 2^16 and more
/// count as even integers, as all of them are in 16 bits.
#[inline(always)]
pub(super) fn pow_gradients<A: Approx>(a: f32, b: f32) -> (f32, f32) {
    let less = b - 1.0;
    let log = A::log2(a.abs());
    let (t, t_less) = (b * log, less * log);
    // Powers that are normal numbers. If the logarithm is not finite, no product with it is in the bounds.
    let in_bounds = (t.abs() < 126.0) & (t_less.abs() < 126.0) & (less.abs() < 65536.0);
    let powers = (A::ex2_flush(t), A::ex2_flush(t_less));
    let (odd, whole) = parity(less);
    let fast = gradients_of(a, b, odd, (a < 0.0) & !whole, log, powers);
    rarely(!in_bounds, || gradients_special::<A>(a, b), fast)
}

/// [`pow_gradients`] of any two numbers.
#[inline(always)]
fn gradients_special<A: Approx>(a: f32, b: f32) -> (f32, f32) {
    let abs = a.abs();
    let is_small = abs < f32::MIN_POSITIVE;
    let (scaled, scale) = if is_small { (abs * 16_777_216.0, 24.0) } else { (abs, 0.0) };
    let log = log2_normal(scaled) - scale;
    // Infinity and NaN are their own logarithms.
    let log = if abs < f32::INFINITY { log } else { abs };
    let log = if abs == 0.0 { f32::NEG_INFINITY } else { log };
    // The largest numbers stand for infinities, so that powers of 1 are 1.
    let bounded = |c: f32, most: f32| at_least(at_most(c, most), -most);
    let power = |c: f32| if c == 0.0 { 1.0 } else { A::ex2(bounded(c, f32::MAX) * log) };
    let odd_and_whole = |c: f32| {
        let (odd, whole) = parity(bounded(c, 65536.0));
        (if whole { odd } else { 0 }, whole)
    };
    // Only -0 has a sign and a logarithm, so that the sign of its power counts.
    let signed = f32::from_bits(power(b).to_bits() | (odd_and_whole(b).0 & a.to_bits()));
    let (odd, whole) = odd_and_whole(b - 1.0);
    let invalid = (a < 0.0) & !whole & (a != f32::NEG_INFINITY);
    let (base, exponent) = gradients_of(a, b, odd, invalid, log, (signed, power(b - 1.0)));
    // Every power of 1 is 1, also by NaN.
    (base, if (a == 1.0) | ((a == 0.0) & (b >= 0.0)) { 0.0 } else { exponent })
}

/// `log2 a` of a positive normal number.
#[inline(always)]
fn log2_normal(a: f32) -> f32 {
    // a = 2^e (1 + f) with 1 + f between sqrt(1/2) and sqrt(2).
    let bits = a.to_bits();
    let exponent = bits.wrapping_sub(0x3F35_04F3) & 0xFF80_0000;
    let f = f32::from_bits(bits.wrapping_sub(exponent)) - 1.0;
    let log = f * fma(f, log2_1p_poly(f), LOG2_E);
    fma(exponent as i32 as f32, f32::from_bits((127 - 23) << 23), log)
}

/// Returns the sign bit of a negative number's power by `c`, and true if `c` is an integer; if it is not, the bit has
/// no meaning. `c` has a magnitude below 2^22.
#[inline(always)]
fn parity(c: f32) -> (u32, bool) {
    // The low bit of the sum is the integer's.
    let t = c + ROUND_MAGIC;
    (t.to_bits() << 31, t - ROUND_MAGIC == c)
}

/// `b a^(b - 1)` and `a^b ln(a)` with signs and NaN. `log` is the binary logarithm of the magnitude of `a`, `powers`
/// are its powers by `b` and `b - 1`. The second power takes its sign from `odd` and `a`, and is NaN if `invalid`.
#[inline(always)]
fn gradients_of(a: f32, b: f32, odd: u32, invalid: bool, log: f32, powers: (f32, f32)) -> (f32, f32) {
    let signed = f32::from_bits(powers.1.to_bits() | (odd & a.to_bits()));
    let power = if invalid { f32::NAN } else { signed };
    (b * power, if a < 0.0 { f32::NAN } else { powers.0 * (log * LN_2) })
}

/// `(log2(1 + f) - f log2(e)) / f^2` for `1 + f` between `sqrt(1/2)` and `sqrt(2)`; adds a relative error of `2^-24.5`
/// to the logarithm.
#[inline(always)]
fn log2_1p_poly(f: f32) -> f32 {
    let p = fma(f, 0.126_070_92, -0.206_426_84);
    let p = fma(f, p, 0.215_203_6);
    let p = fma(f, p, -0.239_057_91);
    let p = fma(f, p, 0.287_993_43);
    let p = fma(f, p, -0.360_699_42);
    let p = fma(f, p, 0.480_907_2);
    fma(f, p, -0.721_347_4)
}
