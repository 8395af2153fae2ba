//! Special values of the functions of [`pointwise_core::maths`], and the exactness of the divisions with remainder.

use pointwise_core::maths::{self, half};
use std::f32::consts::LN_2;

const INF: f32 = f32::INFINITY;
const MAX: f32 = f32::MAX;
const NAN: f32 = f32::NAN;
/// The smallest number.
const TINY: f32 = f32::from_bits(1);
/// A subnormal number with some digits to spare: `2^-140`.
const SUB: f32 = f32::from_bits(512);

const fn units(n: u32) -> f32 {
    f32::from_bits(n)
}

fn assert_same(got: f32, expected: f32, what: &str) {
    let same = got.to_bits() == expected.to_bits() || (got.is_nan() && expected.is_nan());
    assert!(same, "{what}: {got:e} ({:#010x}), expected {expected:e}", got.to_bits());
}

type Function = fn(f32) -> f32;

/// NaNs of both signs with payloads that a careless bit trick turns into numbers.
const NANS: [u32; 8] =
    [0x7fc0_0000, 0x7fff_ffff, 0xffc0_0000, 0xffff_ffff, 0x7f80_0001, 0x7f80_0801, 0xffff_f801, 0x7fa5_5aa5];

#[test]
fn functions_at_the_ends_of_their_range() {
    /// Results at -Inf, -MAX, -SUB, -0, 0, SUB, MAX, Inf.
    const TABLE: &[(&str, Function, [f32; 8])] = &[
        ("exp", maths::exp, [0.0, 0.0, 1.0, 1.0, 1.0, 1.0, INF, INF]),
        ("exp2", maths::exp2, [0.0, 0.0, 1.0, 1.0, 1.0, 1.0, INF, INF]),
        ("expm1", maths::expm1, [-1.0, -1.0, -SUB, -0.0, 0.0, SUB, INF, INF]),
        ("ln", maths::ln, [NAN, NAN, NAN, -INF, -INF, -97.040_6, 88.722_84, INF]),
        ("log2", maths::log2, [NAN, NAN, NAN, -INF, -INF, -140.0, 128.0, INF]),
        ("log1p", maths::log1p, [NAN, NAN, -SUB, -0.0, 0.0, SUB, 88.722_84, INF]),
        ("sin", maths::sin, [NAN, 0.521_876_5, -SUB, -0.0, 0.0, SUB, -0.521_876_5, NAN]),
        ("cos", maths::cos, [NAN, 0.853_021_1, 1.0, 1.0, 1.0, 1.0, 0.853_021_1, NAN]),
        ("tanh", maths::tanh, [-1.0, -1.0, -SUB, -0.0, 0.0, SUB, 1.0, 1.0]),
        ("sigmoid", maths::sigmoid, [0.0, 0.0, 0.5, 0.5, 0.5, 0.5, 1.0, 1.0]),
        ("erf", maths::erf, [-1.0, -1.0, -units(578), -0.0, 0.0, units(578), 1.0, 1.0]),
        ("erfc", maths::erfc, [2.0, 2.0, 1.0, 1.0, 1.0, 1.0, 0.0, 0.0]),
        ("normal_cdf", maths::normal_cdf, [0.0, 0.0, 0.5, 0.5, 0.5, 0.5, 1.0, 1.0]),
        (
            "normal_density",
            maths::normal_density,
            [0.0, 0.0, 0.398_942_3, 0.398_942_3, 0.398_942_3, 0.398_942_3, 0.0, 0.0],
        ),
        ("gelu", maths::gelu, [NAN, -0.0, -units(256), -0.0, 0.0, units(256), MAX, INF]),
        ("gelu_tanh", maths::gelu_tanh, [NAN, -0.0, -units(256), -0.0, 0.0, units(256), MAX, INF]),
        ("silu", maths::silu, [NAN, -0.0, -units(256), -0.0, 0.0, units(256), MAX, INF]),
        ("mish", maths::mish, [NAN, -0.0, -units(307), -0.0, 0.0, units(307), MAX, INF]),
        ("softplus", maths::softplus, [0.0, 0.0, LN_2, LN_2, LN_2, LN_2, MAX, INF]),
        ("rsqrt", maths::rsqrt, [NAN, NAN, NAN, -INF, INF, 1_180_591_620_717_411_303_424.0, 5.421_011e-20, 0.0]),
    ];
    for (name, f, expected) in TABLE {
        let inputs = [-INF, -MAX, -SUB, -0.0, 0.0, SUB, MAX, INF];
        for (x, e) in inputs.into_iter().zip(expected) {
            assert_same(f(x), *e, &format!("{name}({x:e})"));
        }
        for nan in NANS {
            assert_same(f(f32::from_bits(nan)), NAN, &format!("{name} of the NaN {nan:#x}"));
        }
    }
}

#[test]
fn single_points() {
    assert_same(maths::log1p(-1.0), -INF, "log1p(-1)");
    assert_same(maths::log1p(-1.000_000_1), NAN, "log1p below -1");
    assert_same(maths::log1p(1e-7), 9.999_999_4e-8, "log1p(1e-7)");
    assert_same(maths::expm1(1e-7), 1.000_000_1e-7, "expm1(1e-7)");
    assert_same(maths::exp(-87.4), 1.103_218_7e-38, "a subnormal exp");
    assert_same(maths::exp2(-149.0), TINY, "exp2(-149)");
    assert_same(maths::exp2(127.0), 1.701_411_8e38, "exp2(127)");
    assert_same(maths::ln(1.0), 0.0, "ln 1");
    for n in -149..=127 {
        assert_same(maths::log2(2_f64.powi(n) as f32), n as f32, "log2 of a power of two");
    }
    for n in -8..=8 {
        let (s, c) = maths::sincospi(n as f32 * 0.5);
        assert_eq!(s, [0.0, 1.0, 0.0, -1.0][(n & 3) as usize], "sin({n} pi / 2)");
        assert_same(c, [1.0, 0.0, -1.0, 0.0][(n & 3) as usize], "cos of a multiple of pi / 2");
    }
    assert_eq!(maths::sincos(0.75), (maths::sin(0.75), maths::cos(0.75)));
}

#[test]
fn maximum_and_minimum() {
    for (a, b, larger, smaller) in [
        (0.0, -0.0, 0.0, -0.0),
        (-0.0, 0.0, 0.0, -0.0),
        (-0.0, -0.0, -0.0, -0.0),
        (1.0, 2.0, 2.0, 1.0),
        (-INF, MAX, MAX, -INF),
        (TINY, -TINY, TINY, -TINY),
        (NAN, 1.0, NAN, NAN),
        (1.0, NAN, NAN, NAN),
        (INF, NAN, NAN, NAN),
    ] {
        assert_same(maths::maximum(a, b), larger, "maximum");
        assert_same(maths::minimum(a, b), smaller, "minimum");
    }
}

#[test]
fn clamp_is_a_maximum_and_a_minimum() {
    let numbers = [0.0, -0.0, 1.0, -1.0, TINY, -TINY, MAX, -MAX, INF, -INF, NAN, -NAN, f32::from_bits(0x7f80_0001)];
    for x in numbers {
        for low in numbers {
            for high in numbers {
                let expected = maths::minimum(maths::maximum(x, low), high);
                assert_eq!(maths::clamp(x, low, high).to_bits(), expected.to_bits(), "{x} {low} {high}");
            }
        }
    }
}

/// C99, annex F.10.4.4, and the signs of odd powers.
const POWERS: &[(f32, f32, f32)] = &[
    (0.0, -3.0, INF),
    (-0.0, -3.0, -INF),
    (-0.0, -1.0, -INF),
    (0.0, -2.0, INF),
    (-0.0, -2.0, INF),
    (-0.0, -0.5, INF),
    (0.0, -INF, INF),
    (-0.0, -INF, INF),
    (0.0, 3.0, 0.0),
    (-0.0, 3.0, -0.0),
    (0.0, 2.0, 0.0),
    (-0.0, 2.0, 0.0),
    (-0.0, 0.5, 0.0),
    (-0.0, 0.75, 0.0),
    (-0.0, INF, 0.0),
    (-1.0, INF, 1.0),
    (-1.0, -INF, 1.0),
    (1.0, NAN, 1.0),
    (1.0, INF, 1.0),
    (1.0, -7.5, 1.0),
    (NAN, 0.0, 1.0),
    (NAN, -0.0, 1.0),
    (INF, 0.0, 1.0),
    (0.0, 0.0, 1.0),
    (-0.0, -0.0, 1.0),
    (-3.0, 0.0, 1.0),
    (-2.0, 0.5, NAN),
    (-2.0, -1.5, NAN),
    (-MAX, 0.25, NAN),
    (NAN, 1.0, NAN),
    (2.0, NAN, NAN),
    (NAN, INF, NAN),
    (0.5, -INF, INF),
    (-0.5, -INF, INF),
    (2.0, -INF, 0.0),
    (-2.0, -INF, 0.0),
    (0.5, INF, 0.0),
    (-0.5, INF, 0.0),
    (2.0, INF, INF),
    (-2.0, INF, INF),
    (0.0, INF, 0.0),
    (-INF, -3.0, -0.0),
    (-INF, -2.0, 0.0),
    (-INF, -0.5, 0.0),
    (-INF, 3.0, -INF),
    (-INF, 2.0, INF),
    (-INF, 0.5, INF),
    (INF, -0.5, 0.0),
    (INF, 0.5, INF),
    (-INF, INF, INF),
    (-INF, -INF, 0.0),
    (INF, INF, INF),
    (INF, -INF, 0.0),
    (-2.0, 3.0, -8.0),
    (-2.0, 2.0, 4.0),
    (-2.0, -1.0, -0.5),
    (2.0, 10.0, 1024.0),
    (4.0, 0.5, 2.0),
    (1.0, 0.0, 1.0),
];

#[test]
fn pow_is_that_of_c99() {
    for &(x, y, expected) in POWERS {
        assert_same(maths::pow(x, y), expected, &format!("pow({x}, {y})"));
        assert_same(half::pow(x, y), expected, &format!("half::pow({x}, {y})"));
    }
    // Parity up to the last odd number, and every number beyond it is even.
    assert_same(maths::pow(-1.0, 16_777_215.0), -1.0, "the largest odd exponent");
    assert_same(maths::pow(-1.0, 16_777_216.0), 1.0, "2^24");
    assert_same(maths::pow(-1.0, MAX), 1.0, "the largest exponent");
    assert_same(maths::pow(2.0, -149.0), TINY, "the smallest power");
    assert_same(maths::pow(2.0, 127.0), 1.701_411_8e38, "the largest power of two");
    assert_same(maths::pow(2.0, 128.0), INF, "overflow");
    assert_same(maths::pow(-MAX, 3.0), -INF, "negative overflow");
    assert_same(maths::pow(-TINY, 3.0), -0.0, "negative underflow");
    assert_same(maths::pow(TINY, 1.0), TINY, "the smallest number");
    assert_same(maths::pow(MAX, 1.0), MAX, "the largest number");
    assert_same(maths::pow(TINY, -1.0), INF, "its reciprocal");
}

/// Significand and exponent of a positive finite number: `m 2^e`.
fn integer(x: f32) -> (u64, i32) {
    let bits = x.to_bits() & 0x7fff_ffff;
    let (exponent, fraction) = ((bits >> 23) as i32, u64::from(bits & 0x007f_ffff));
    if exponent == 0 { (fraction, -149) } else { (fraction | 0x0080_0000, exponent - 150) }
}

/// `|a| mod |b|` by integers, and the truncated quotient where it is below `2^62`.
fn long_division(a: f32, b: f32) -> (f64, Option<u64>) {
    let ((ma, ea), (mb, eb)) = (integer(a), integer(b));
    let (mut rest, mut quotient, mut fits) = (0_u64, 0_u64, true);
    if ea >= eb {
        // Bit by bit: the bits of ma, then ea - eb zeros.
        for i in (0..24 + ea - eb).rev() {
            let shift = i - (ea - eb);
            rest = rest << 1 | if shift >= 0 { ma >> shift & 1 } else { 0 };
            fits &= quotient < 1 << 61;
            quotient = (quotient << 1) & (u64::MAX >> 1) | u64::from(rest >= mb);
            if rest >= mb {
                rest -= mb;
            }
        }
        return (rest as f64 * 2_f64.powi(eb), fits.then_some(quotient));
    }
    let up = (eb - ea).min(40);
    let divisor = mb << up;
    let (quotient, rest) = (ma / divisor, ma % divisor);
    (rest as f64 * 2_f64.powi(ea), Some(quotient))
}

fn check_division(a: f32, b: f32) {
    let what = format!("({a:e}, {b:e})");
    let (rest, quotient) = long_division(a, b);
    let m = (rest as f32).copysign(a);
    assert_same(maths::fmod::fmod(a, b), m, &format!("fmod{what}"));
    let adjust = m != 0.0 && (b < 0.0) != (m < 0.0);
    assert_same(maths::remainder(a, b), if adjust { m + b } else { m }, &format!("remainder{what}"));

    let floor = maths::floor_divide(a, b);
    // PyTorch's definition, over the exact remainder.
    let q = (a - m) / b - if adjust { 1.0 } else { 0.0 };
    let rounded = if q - q.floor() > 0.5 { q.floor() + 1.0 } else { q.floor() };
    assert_same(floor, if q == 0.0 { 0.0_f32.copysign(a / b) } else { rounded }, &format!("floor_divide{what}"));
    // This is the floor of the exact quotient as long as f32 has all integers.
    if let Some(q) = quotient.filter(|q| *q < 1 << 22) {
        let exact = if (a < 0.0) == (b < 0.0) { q as f64 } else { -(q as f64) - f64::from(u8::from(rest != 0.0)) };
        assert_eq!(f64::from(floor), exact, "floor of {what}");
    }
}

#[test]
fn divisions_are_exact() {
    // Quotients from 0 to 2^276 over divisors of every size, subnormal ones included.
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut random = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u32
    };
    for _ in 0..1_000_000 {
        let (a, b) = (f32::from_bits(random()), f32::from_bits(random()));
        if a.is_finite() && b.is_finite() && b != 0.0 {
            check_division(a, b);
            // The same significands at a small quotient, and at one about where the estimate of the quotient ends.
            let near = f32::from_bits(b.to_bits() & 0x7f80_0000 | a.to_bits() & 0x807f_ffff);
            check_division(near, b);
            let far = near * [1_048_576.0, 524_288.0, 2_097_152.0, 16_777_216.0][(random() & 3) as usize];
            if far.is_finite() {
                check_division(far, b);
            }
        }
    }
    // Multiples and their neighbours.
    for b in [0.1, 3.0, 7.0e-39, 1.0e-45, 1.7e38, MAX, f32::MIN_POSITIVE, 1.175_494_2e-38, 0.333_333_34, 8_388_609.0] {
        for n in [1.0, 2.0, 3.0, 10.0, 8_388_607.0, 1_048_575.0, 1_048_576.0, 16_777_216.0, 1.0e12] {
            for step in [-1_i32, 0, 1] {
                let a = b * n;
                if a.is_finite() {
                    let a = f32::from_bits(a.to_bits().wrapping_add_signed(step));
                    for (a, b) in [(a, b), (-a, b), (a, -b), (-a, -b)] {
                        if a.is_finite() {
                            check_division(a, b);
                        }
                    }
                }
            }
        }
    }
}

/// PyTorch's definitions, step by step, over the remainder of the language: `(remainder, floor_divide)`.
fn divisions_by_definition(a: f32, b: f32) -> (f32, f32) {
    let m = a % b;
    let adjust = m != 0.0 && (b < 0.0) != (m < 0.0);
    let remainder = if adjust { m + b } else { m };
    if b == 0.0 {
        return (remainder, a / b);
    }
    let q = (a - m) / b - if adjust { 1.0 } else { 0.0 };
    let rounded = if q - q.floor() > 0.5 { q.floor() + 1.0 } else { q.floor() };
    (remainder, if q == 0.0 { 0.0_f32.copysign(a / b) } else { rounded })
}

/// Both ways through `remainder` and `floor_divide`, and the edges between them.
#[test]
fn divisions_are_those_of_pytorch() {
    let same = |a: f32, b: f32| a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan();
    let check = |a: f32, b: f32| {
        let (remainder, floor) = divisions_by_definition(a, b);
        let (r, f) = (maths::remainder(a, b), maths::floor_divide(a, b));
        assert!(same(r, remainder), "remainder({a:e}, {b:e}) is {r:e}, not {remainder:e}");
        assert!(same(f, floor), "floor_divide({a:e}, {b:e}) is {f:e}, not {floor:e}");
    };
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    const SIGNS: u32 = 0x8000_0000;
    for i in 0..1_u32 << 22 {
        let bits = random();
        // Every third pair has significands of 8 bits, as bf16.
        let mask = if i % 3 == 0 { 0xffff_0000 } else { u32::MAX };
        let (x, y) = (bits as u32 & mask, (bits >> 32) as u32 & mask);
        let (a, b) = (f32::from_bits(x), f32::from_bits(y));
        // Exponents up to 24 above and 7 below the divisor's.
        let gap = (random() & 31) as i32 - 7;
        let exponent = ((y >> 23 & 255) as i32 + gap).clamp(0, 254) as u32;
        check(f32::from_bits(x & !0x7f80_0000 | exponent << 23), b);
        // Numbers of any size.
        if i % 8 == 0 {
            check(a, b);
        }
        // In 0.1 .. 1.1.
        let unit = |bits: u32| 0.1 + (bits >> 8) as f32 * (1.0 / 16_777_216.0);
        check(unit(x).copysign(a), unit(y).copysign(b));
        // At a multiple, and near it.
        let n = (random() % (1 << (random() % 22))) as f32;
        let multiple = b * n;
        check(multiple, b);
        check(f32::from_bits((multiple.to_bits() & !SIGNS).wrapping_add((bits >> 7) as u32 & 3) | x & SIGNS), b);
    }
    let special = [
        0.0,
        TINY,
        5.877_472e-39,
        5.877_473e-39,
        1.175_494_2e-38,
        f32::MIN_POSITIVE,
        0.1,
        1.0,
        1.5,
        1_048_575.5,
        1_048_576.0,
        8.507_058e37,
        8.507_06e37,
        8.507_059e37,
        1.701_411_8e38,
        MAX,
        INF,
        f32::NAN,
    ];
    for a in special {
        for b in special {
            for (a, b) in [(a, b), (-a, b), (a, -b), (-a, -b)] {
                check(a, b);
            }
        }
    }
}

#[test]
fn divisions_at_special_values() {
    for (a, b, fmod, remainder, floor_divide) in [
        (1.0, 0.1, 0.099_999_99, 0.099_999_99, 9.0),
        (1.0e20, 3.0, 2.0, 2.0, 3.333_333_4e19),
        (-2.0, 1.0, -0.0, -0.0, -2.0),
        (2.0, -1.0, 0.0, 0.0, -2.0),
        (0.0, -1.0, 0.0, 0.0, -0.0),
        (-0.0, -1.0, -0.0, -0.0, 0.0),
        (-0.0, 1.0, -0.0, -0.0, -0.0),
        (1.0, 0.0, NAN, NAN, INF),
        (1.0, -0.0, NAN, NAN, -INF),
        (0.0, 0.0, NAN, NAN, NAN),
        (INF, 0.0, NAN, NAN, INF),
        (INF, 2.0, NAN, NAN, NAN),
        (-INF, INF, NAN, NAN, NAN),
        (1.0, INF, 1.0, 1.0, 0.0),
        (-1.0, INF, -1.0, INF, -1.0),
        (1.0, -INF, 1.0, -INF, -1.0),
        (-TINY, 1.0, -TINY, 1.0, -1.0),
        (NAN, 1.0, NAN, NAN, NAN),
        (1.0, NAN, NAN, NAN, NAN),
        (NAN, 0.0, NAN, NAN, NAN),
        (MAX, TINY, 0.0, 0.0, INF),
    ] {
        let what = format!("({a:e}, {b:e})");
        assert_same(maths::fmod::fmod(a, b), fmod, &format!("fmod{what}"));
        assert_same(maths::remainder(a, b), remainder, &format!("remainder{what}"));
        assert_same(maths::floor_divide(a, b), floor_divide, &format!("floor_divide{what}"));
    }
    // The quotient overflows though the remainder is small.
    assert_same(maths::floor_divide(MAX, 0.1), INF, "floor_divide(MAX, 0.1)");
}

/// The formula of PyTorch with its division, to the bit: `rint(x 10^d) / 10^d`, `rint(x / 10^-d) 10^-d`.
#[test]
fn round_decimals_has_the_bits_of_a_division() {
    let powers: Vec<f32> = (0..=38).map(|d| format!("1e{d}").parse().unwrap()).collect();
    for d in -38..=38_i32 {
        let scale = powers[d.unsigned_abs() as usize];
        for i in 0..15_000_u32 {
            for x in [f32::from_bits(i.wrapping_mul(21_473)), i as f32 * 0.37 / scale - 3.0, i as f32 * 12.5 - 1e6] {
                let plain =
                    if d < 0 { (x / scale).round_ties_even() * scale } else { (x * scale).round_ties_even() / scale };
                let got = maths::prim::round_decimals(x, d as f32);
                let same = got.to_bits() == plain.to_bits() || got.is_nan() && plain.is_nan();
                assert!(same, "round({x:e}, {d}): {got:e}, not {plain:e}");
            }
        }
    }
}
