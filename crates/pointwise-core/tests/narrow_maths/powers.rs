//! Powers of 16-bit numbers, their gradients and their signs.

use pointwise_core::maths::half::{Approx, Native};
use pointwise_core::{BinaryFunction, Element, Real, bf16, f16};

use crate::{HALF, Off, Tally};

/// C99 `pow` on a grid of pairs: bases of every exponent, exponents of every size with short and long significands. At
/// most one result in 10,000 differs from the exact one rounded, and only because it is rounded to f32 first.
fn powers<A: Approx>(operations: &str) {
    let mut failures = Vec::new();
    for t in &HALF {
        let mut tally = Tally::default();
        let special = [0.0, -0.0, 1.0, -1.0, 2.0, 3.0, 0.5, -0.5, 1.5, f32::INFINITY, f32::NEG_INFINITY, f32::NAN];
        let bases = (0..=u16::MAX).step_by(97).map(t.widen).chain(special);
        for a in bases {
            // Exponents from the whole type, and small ones, whose results are neither 0 nor infinite.
            let small = (-120..=120).map(|i| (t.widen)((t.round)(i as f32 * 0.37)));
            let whole = (-40..=40).map(|i| i as f32);
            let far = (0..=u16::MAX).step_by(641).map(t.widen);
            for b in far.chain(small).chain(whole).chain(special) {
                tally.add(t, A::pow(a, b), f64::from(a).powf(f64::from(b)), || format!("at {a:e}, {b:e}"));
            }
        }
        tally.check(t, &format!("pow {} {operations}", t.dtype), &mut failures);
        assert!(
            tally.inputs - tally.correct <= tally.inputs / 10_000 && tally.worst < 0.5002,
            "{operations}, {}",
            t.dtype
        );
    }
    assert!(failures.is_empty(), "{failures:#?}");
}

#[test]
fn pow_native() {
    powers::<Native>("native");
}

#[test]
fn pow_with_approximations_off() {
    powers::<Off<true>>("up");
    powers::<Off<false>>("down");
}

/// Checks the short path of a power, corrected by `Value::signed`: if it holds, the power equals the result to the bit,
/// or lies between the bounds if it has bounds. And it holds for numbers of plain sizes.
fn signs<T: Real>(widen: impl Fn(u32) -> T, bounded: bool) {
    let plain: Vec<T> = [0.25, 0.5, 1.0, 1.5, 3.0, 7.0, -0.25, -1.0, -1.5, -3.0, 0.0, -0.0].map(T::constant).to_vec();
    let special = [f64::INFINITY, f64::NEG_INFINITY, f64::NAN, 1e-40, -1e-40, 4_194_303.0, 1e30, -16_777_217.0];
    let all: Vec<T> =
        (0..4096_u32).map(|i| widen(i.wrapping_mul(0x0010_1041))).chain(special.map(T::constant)).collect();
    let pairs = all.iter().flat_map(|&a| plain.iter().map(move |&b| (a, b)));
    let swapped = all.iter().flat_map(|&b| plain.iter().map(move |&a| (a, b)));
    for (a, b) in pairs.chain(swapped).chain(plain.iter().flat_map(|&a| plain.iter().map(move |&b| (a, b)))) {
        let signed = a.signed(b, BinaryFunction::Power);
        let is_plain = plain.contains(&a) && plain.contains(&b) && !(a == T::ZERO && b == T::ZERO);
        assert!(signed.holds || !is_plain, "{:e}, {:e}", a.to_f64(), b.to_f64());
        if !signed.holds {
            continue;
        }
        let short = a.short(b, BinaryFunction::Power);
        // In f32 the path does not hold for a negative base either.
        assert!(short.holds || signed.is_zero || !bounded && a < T::ZERO, "{:e}, {:e}", a.to_f64(), b.to_f64());
        let bounds = if signed.is_zero { [signed.of_zero; 2] } else { short.bounds };
        let [low, high] = bounds.map(|y| (y.to_f64() as f32).to_bits() | signed.sign);
        let exact = a.pow(b).to_f64() as f32;
        let [low, high] = [low, high].map(f32::from_bits);
        let within = if bounded { low.min(high) <= exact && exact <= low.max(high) } else { low == exact };
        let same_sign = low.is_sign_negative() == exact.is_sign_negative();
        assert!(
            (low.is_nan() && exact.is_nan()) || (within && same_sign),
            "{:e}, {:e}: {low:e}, {high:e}, {exact:e}",
            a.to_f64(),
            b.to_f64()
        );
    }
}

#[test]
fn signs_of_powers() {
    signs(|bits| <f32 as Element>::widen(f32::from_bits(bits)), false);
    signs(|bits| f16::from_bits(bits as u16).widen(), true);
    signs(|bits| bf16::from_bits(bits as u16).widen(), true);
}

/// Checks both gradients of a power on the grid of [`powers`], where the power is a normal f32, zero, infinite or NaN.
fn power_gradients<A: Approx>(operations: &str) {
    let mut failures = Vec::new();
    for t in &HALF {
        let mut tallies = [Tally::default(), Tally::default()];
        let special = [0.0, -0.0, 1.0, -1.0, 2.0, 3.0, 0.5, -0.5, 1.5, f32::INFINITY, f32::NEG_INFINITY, f32::NAN];
        let near_one = (-40..=40).map(|i| (t.widen)(((t.round)(1.0) as i32 + i) as u16));
        for a in (0..=u16::MAX).step_by(97).map(t.widen).chain(near_one).chain(special) {
            let small = (-120..=120).map(|i| (t.widen)((t.round)(i as f32 * 0.37)));
            let whole = (-40..=40).map(|i| i as f32);
            let far = (0..=u16::MAX).step_by(641).map(t.widen);
            for b in far.chain(small).chain(whole).chain(special) {
                // From there on exponents count as even, but an exponent less 1 need not be even.
                if a.is_sign_negative() && b.abs() >= 65536.0 {
                    continue;
                }
                let power = |by: f32| f64::from(f64::from(a).powf(f64::from(by)) as f32);
                let is_zero = a == 0.0 && b >= 0.0;
                let by_exponent = if is_zero { 0.0 } else { power(b) * f64::from(a).ln() };
                let exact = [(power(b - 1.0), f64::from(b) * power(b - 1.0)), (power(b), by_exponent)];
                let got = A::pow_gradients(a, b);
                for ((tally, got), (power, exact)) in tallies.iter_mut().zip([got.0, got.1]).zip(exact) {
                    if !(power as f32).is_subnormal() {
                        tally.add(t, got, exact, || format!("at {a:e}, {b:e}"));
                    }
                }
            }
        }
        for (name, tally) in ["base", "exponent"].iter().zip(&tallies) {
            tally.check(t, &format!("power by {name} {} {operations}", t.dtype), &mut failures);
        }
    }
    assert!(failures.is_empty(), "{failures:#?}");
}

#[test]
fn power_gradients_native() {
    power_gradients::<Native>("native");
}

#[test]
fn power_gradients_with_approximations_off() {
    power_gradients::<Off<true>>("up");
    power_gradients::<Off<false>>("down");
}
