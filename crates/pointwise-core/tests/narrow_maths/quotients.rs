//! Quotients for 16-bit results.

use pointwise_core::convert;
use pointwise_core::maths::half::{Approx, Native};

use crate::{HALF, Off};

/// Checks that quotients of random operands and of all perfect squares round to the same as by correctly rounded steps.
fn quotients_by_roots<A: Approx>(operations: &str) {
    for ty in HALF {
        let mut state = 1_u64;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as u32
        };
        let squares = (0..=u16::MAX).filter(|&code| {
            let x = (ty.widen)(code);
            x >= 0.0 && x.sqrt() * x.sqrt() == x
        });
        let squares: Vec<u16> = squares.collect();
        assert!(squares.len() > 64, "{}", ty.dtype);
        for i in 0..1 << 22 {
            let (a, x) = (next() as u16, next());
            let x = if i % 4 == 0 { squares[x as usize % squares.len()] } else { x as u16 };
            let (a, x) = ((ty.widen)(a), (ty.widen)(x));
            let (got, expected) = (A::over_twice_sqrt(a, x), a / (x.sqrt() * 2.0));
            let same = (ty.round)(got) == (ty.round)(expected) || got.is_nan() && expected.is_nan();
            assert!(same, "{operations}, {}: {a:e} over the root of {x:e} is {got:e}, not {expected:e}", ty.dtype);
        }
    }
}

#[test]
fn quotients_by_roots_are_those_of_the_steps() {
    quotients_by_roots::<Native>("native");
    quotients_by_roots::<Off<true>>("too large");
    quotients_by_roots::<Off<false>>("too small");
}

/// Compares a quotient of two f16 with the one that is rounded correctly in f32.
fn compare_quotient<A: Approx>(a: u16, b: u16) {
    let (x, y) = (convert::f16_to_f32(a), convert::f16_to_f32(b));
    let (got, expected) = (A::quotient_of_f16(x, y), x / y);
    let same = got.to_bits() == expected.to_bits() || got.is_nan() && expected.is_nan();
    assert!(same, "{x:e} / {y:e} is {expected:e}, not {got:e}");
}

/// Checks quotients of all significands, near 1 and with exponents all over the range, and of the numbers at its ends.
fn quotients_of_f16<A: Approx>() {
    for a in 0..1_u32 << 10 {
        for b in 0..1_u32 << 10 {
            compare_quotient::<A>((0x3C00 | a) as u16, (0x3C00 | b) as u16);
            // The six bits above, from subnormal numbers to infinities and NaN.
            let above = (a.wrapping_mul(0x9E37_79B9) ^ b.wrapping_mul(0x85EB_CA6B)).wrapping_mul(0xC2B2_AE35);
            compare_quotient::<A>((above >> 26 << 10 | a) as u16, (above >> 20 << 10 | b) as u16);
        }
    }
    let ends = [0, 1, 2, 0x3FF, 0x400, 0x401, 0x3BFF, 0x3C00, 0x3C01, 0x7BFF, 0x7C00, 0x7C01, 0x7E00, 0x7FFF];
    for (a, b) in ends.into_iter().flat_map(|a| ends.map(|b| (a, b))) {
        for signs in 0..4 {
            compare_quotient::<A>(a | signs << 15, b | (signs >> 1) << 15);
        }
    }
}

#[test]
fn quotients_of_f16_are_rounded_correctly_in_f32() {
    quotients_of_f16::<Native>();
    quotients_of_f16::<Off<true>>();
    quotients_of_f16::<Off<false>>();
}

/// Checks quotients of every f16 and numbers that came with a call, either way.
fn quotients_by_numbers<A: Approx>() {
    let mut state = 1_u64;
    for k in 0..64 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        // Any significand, exponents from -60 to 59; at last the ends of this range, zero and infinity.
        let number = f32::from_bits((127 - 60 + (state >> 40) as u32 % 120) << 23 | (state >> 41) as u32 & 0x7F_FFFF);
        let number = [2_f32.powi(60), 2_f32.powi(-60), 0.0, f32::INFINITY].get(63 - k).copied().unwrap_or(number);
        for bits in 0..=u16::MAX {
            let x = convert::f16_to_f32(bits);
            for (a, b) in [(x, number), (number, x), (x, -number)] {
                let (got, expected) = (A::quotient_of_f16(a, b), a / b);
                let round = |x: f32| [convert::f32_to_f16(x), convert::f32_to_f16(x.trunc())];
                let same = round(got) == round(expected) || got.is_nan() && expected.is_nan();
                assert!(same, "{a:e} / {b:e} is {expected:e}, not {got:e}");
            }
        }
    }
}

#[test]
fn quotients_of_f16_by_numbers_round_to_the_same() {
    quotients_by_numbers::<Native>();
    quotients_by_numbers::<Off<true>>();
    quotients_by_numbers::<Off<false>>();
}
