//! f32 arithmetic.

use super::{FloatMode, NAN, Rounding};
use crate::program::FloatOperation;

#[inline(always)]
pub(crate) fn f(bits: u32) -> f32 {
    f32::from_bits(bits)
}

/// Returns the bits of a result; for NaN, the hardware's NaN.
#[inline(always)]
pub(crate) fn canonical(value: f32) -> u32 {
    if value.is_nan() { NAN } else { value.to_bits() }
}

/// Turns a subnormal into a zero of its sign.
#[inline(always)]
pub(crate) fn flush(bits: u32) -> u32 {
    if bits & 0x7f80_0000 == 0 { bits & 0x8000_0000 } else { bits }
}

#[inline(always)]
pub(crate) fn add(a: u32, b: u32) -> u32 {
    canonical(f(a) + f(b))
}

#[inline(always)]
pub(crate) fn sub(a: u32, b: u32) -> u32 {
    canonical(f(a) - f(b))
}

#[inline(always)]
pub(crate) fn mul(a: u32, b: u32) -> u32 {
    canonical(f(a) * f(b))
}

#[inline(always)]
pub(crate) fn div(a: u32, b: u32) -> u32 {
    canonical(f(a) / f(b))
}

#[inline(always)]
pub(crate) fn fma(a: u32, b: u32, c: u32) -> u32 {
    canonical(f(a).mul_add(f(b), f(c)))
}

#[inline(always)]
pub(crate) fn sqrt(a: u32) -> u32 {
    canonical(f(a).sqrt())
}

/// Returns the smaller number, -0 before +0; if one is NaN, the other one.
#[inline(always)]
pub(crate) fn min(a: u32, b: u32) -> u32 {
    let (x, y) = (f(a), f(b));
    // Equal numbers have equal bits, except zeros: then either sign makes the result negative.
    let smaller = if x < y {
        a
    } else if y < x {
        b
    } else {
        a | b
    };
    either(smaller, a, b)
}

/// Returns the larger number, +0 before -0; if one is NaN, the other one.
#[inline(always)]
pub(crate) fn max(a: u32, b: u32) -> u32 {
    let (x, y) = (f(a), f(b));
    let larger = if x > y {
        a
    } else if y > x {
        b
    } else {
        a & b
    };
    either(larger, a, b)
}

#[inline(always)]
fn either(result: u32, a: u32, b: u32) -> u32 {
    let (a_nan, b_nan) = (f(a).is_nan(), f(b).is_nan());
    let result = if b_nan { a } else { result };
    let result = if a_nan { b } else { result };
    if a_nan & b_nan { NAN } else { result }
}

#[inline(always)]
pub(crate) fn min_nan(a: u32, b: u32) -> u32 {
    if f(a).is_nan() | f(b).is_nan() { NAN } else { min(a, b) }
}

#[inline(always)]
pub(crate) fn max_nan(a: u32, b: u32) -> u32 {
    if f(a).is_nan() | f(b).is_nan() { NAN } else { max(a, b) }
}

/// Returns the second operand with the sign of the first: the PTX ISA's order.
#[inline(always)]
pub(crate) fn copysign(a: u32, b: u32) -> u32 {
    (a & 0x8000_0000) | (b & 0x7fff_ffff)
}

/// Computes an operation with the rounding, flushing and saturation of `mode`.
pub(crate) fn general(op: FloatOperation, mode: FloatMode, a: u32, b: u32, c: u32) -> u32 {
    let [a, b, c] = if mode.flush { [flush(a), flush(b), flush(c)] } else { [a, b, c] };
    let result = match op {
        FloatOperation::Min => min(a, b),
        FloatOperation::Max => max(a, b),
        FloatOperation::MinNan => min_nan(a, b),
        FloatOperation::MaxNan => max_nan(a, b),
        _ if mode.rounding == Rounding::Nearest => match op {
            FloatOperation::Add => add(a, b),
            FloatOperation::Sub => sub(a, b),
            FloatOperation::Mul => mul(a, b),
            FloatOperation::Fma => fma(a, b, c),
            FloatOperation::Div => div(a, b),
            FloatOperation::Sqrt => sqrt(a),
            _ => div(1.0_f32.to_bits(), a),
        },
        _ => directed(op, mode.rounding, f(a), f(b), f(c)),
    };
    let result = if mode.flush { flush(result) } else { result };
    if mode.saturate { saturate(result) } else { result }
}

/// Clamps a result to 0 to 1; NaN becomes +0.
pub(crate) fn saturate(result: u32) -> u32 {
    let value = f(result);
    if value >= 1.0 {
        1.0_f32.to_bits()
    } else if value > 0.0 {
        result
    } else {
        0
    }
}

/// Computes an operation rounded towards zero, down or up.
fn directed(op: FloatOperation, rounding: Rounding, a: f32, b: f32, c: f32) -> u32 {
    let [x, y, z] = [a, b, c].map(f64::from);
    match op {
        FloatOperation::Add => sum(x, y, rounding),
        FloatOperation::Sub => sum(x, -y, rounding),
        // A product of two f32 is exact in f64.
        FloatOperation::Mul => round(x * y, 0.0, rounding),
        FloatOperation::Fma => sum(x * y, z, rounding),
        FloatOperation::Div => quotient(x, y, rounding),
        FloatOperation::Rcp => quotient(1.0, x, rounding),
        _ => {
            let root = x.sqrt();
            round(root, (-root).mul_add(root, x), rounding)
        }
    }
}

fn quotient(x: f64, y: f64, rounding: Rounding) -> u32 {
    let q = x / y;
    let rest = (-q).mul_add(y, x);
    // If the rest is not finite, the quotient is exact: zero, infinite or NaN.
    round(q, if rest.is_finite() { rest * y.signum() } else { 0.0 }, rounding)
}

/// Returns the sum of two exact numbers, rounded once.
fn sum(x: f64, y: f64, rounding: Rounding) -> u32 {
    let (s, rest) = two_sum(x, y);
    if s == 0.0 && rest == 0.0 {
        // An exact zero from operands of different signs is -0 only if the mode rounds down.
        let negative = if x.is_sign_negative() == y.is_sign_negative() && x == 0.0 {
            x.is_sign_negative()
        } else {
            rounding == Rounding::Down
        };
        return if negative { 0x8000_0000 } else { 0 };
    }
    round(s, rest, rounding)
}

/// Returns a sum as the nearest f64 and its error.
pub(crate) fn two_sum(x: f64, y: f64) -> (f64, f64) {
    let s = x + y;
    let part = s - x;
    let rest = (x - (s - part)) + (y - part);
    (s, if s.is_finite() { rest } else { 0.0 })
}

/// Rounds `value` to f32, plus something too small to show in it, with the sign of `rest`.
pub(crate) fn round(value: f64, rest: f64, rounding: Rounding) -> u32 {
    if value.is_nan() {
        return NAN;
    }
    let nearest = value as f32;
    let back = f64::from(nearest);
    let too_high = !value.is_infinite() && (back > value || (back == value && rest < 0.0));
    let too_low = !value.is_infinite() && (back < value || (back == value && rest > 0.0));
    let negative = value.is_sign_negative();
    let result = match rounding {
        Rounding::Down if too_high => nearest.next_down(),
        Rounding::Zero if too_high && !negative => nearest.next_down(),
        Rounding::Up if too_low => nearest.next_up(),
        Rounding::Zero if too_low && negative => nearest.next_up(),
        _ => nearest,
    };
    // `next_up` of the smallest negative number is -0 already; a zero keeps the value's sign.
    if result == 0.0 { u32::from(negative) << 31 } else { result.to_bits() }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers of all magnitudes, and the special ones.
    pub(crate) fn numbers() -> Vec<u32> {
        let mut numbers = vec![
            0,
            0x8000_0000,
            1,
            0x8000_0001,
            0x007f_ffff,
            0x0080_0000,
            0x3f80_0000,
            0xbf80_0000,
            0x7f7f_ffff,
            0xff7f_ffff,
            0x7f80_0000,
            0xff80_0000,
            0x7fc0_0000,
            0xffff_ffff,
        ];
        let mut state = 1_u32;
        for _ in 0..200 {
            state = state.wrapping_mul(0x915f_77f5).wrapping_add(12345);
            numbers.push(state);
            numbers.push(0x3f00_0000 | (state >> 8));
        }
        numbers
    }

    /// True if `result` is the exact value `s + rest`, rounded as asked. Compares it with its neighbours.
    fn is_rounded(result: u32, (s, rest): (f64, f64), rounding: Rounding) -> bool {
        let value = f(result);
        let above = |x: f32| {
            let d = f64::from(x) - s;
            if d == 0.0 { rest < 0.0 } else { d > 0.0 }
        };
        let below = |x: f32| {
            let d = f64::from(x) - s;
            if d == 0.0 { rest > 0.0 } else { d < 0.0 }
        };
        match rounding {
            Rounding::Down => !above(value) && (value == f32::INFINITY || above(value.next_up())),
            Rounding::Up => !below(value) && (value == f32::NEG_INFINITY || below(value.next_down())),
            Rounding::Zero if s < 0.0 => is_rounded(result, (s, rest), Rounding::Up),
            Rounding::Zero => is_rounded(result, (s, rest), Rounding::Down),
            Rounding::Nearest => unreachable!(),
        }
    }

    #[test]
    fn directed_sums_and_products() {
        let numbers = numbers();
        for rounding in [Rounding::Zero, Rounding::Down, Rounding::Up] {
            let mode = FloatMode { rounding, ..FloatMode::default() };
            for &a in &numbers {
                for &b in &numbers {
                    let (x, y) = (f64::from(f(a)), f64::from(f(b)));
                    let exact = two_sum(x, y);
                    let got = general(FloatOperation::Add, mode, a, b, 0);
                    if exact.0.is_nan() {
                        assert_eq!(got, NAN);
                    } else if exact.0.is_finite() {
                        assert!(is_rounded(got, exact, rounding), "{a:x} + {b:x} = {got:x}");
                        let product = general(FloatOperation::Mul, mode, a, b, 0);
                        let fused = general(FloatOperation::Fma, mode, a, b, 0x3f80_0000);
                        assert!(is_rounded(product, (x * y, 0.0), rounding), "{a:x} * {b:x} = {product:x}");
                        assert!(is_rounded(fused, two_sum(x * y, 1.0), rounding), "{a:x} * {b:x} + 1 = {fused:x}");
                    }
                }
            }
        }
    }

    #[test]
    fn directed_quotients_and_roots() {
        let up = FloatMode { rounding: Rounding::Up, ..FloatMode::default() };
        let down = FloatMode { rounding: Rounding::Down, ..FloatMode::default() };
        for &a in &numbers() {
            for &b in &numbers() {
                let (low, high) =
                    (general(FloatOperation::Div, down, a, b, 0), general(FloatOperation::Div, up, a, b, 0));
                let nearest = div(a, b);
                assert!(low == nearest || high == nearest, "{a:x} / {b:x}: {low:x} {nearest:x} {high:x}");
                assert!(low == high || f(low).next_up() == f(high), "{a:x} / {b:x}: {low:x} {high:x}");
            }
            let (low, high) =
                (general(FloatOperation::Sqrt, down, a, 0, 0), general(FloatOperation::Sqrt, up, a, 0, 0));
            assert!(low == high || f(low).next_up() == f(high), "root of {a:x}");
            if !f(low).is_nan() {
                assert!(f64::from(f(low)).powi(2) <= f64::from(f(a)) && f64::from(f(high)).powi(2) >= f64::from(f(a)));
            }
        }
    }

    #[test]
    fn zeros_have_the_sign_of_the_rounding() {
        let down = FloatMode { rounding: Rounding::Down, ..FloatMode::default() };
        let (one, minus_one, minus_zero) = (0x3f80_0000, 0xbf80_0000, 0x8000_0000);
        assert_eq!(general(FloatOperation::Add, down, one, minus_one, 0), minus_zero);
        assert_eq!(general(FloatOperation::Sub, down, one, one, 0), minus_zero);
        assert_eq!(general(FloatOperation::Fma, down, one, one, minus_one), minus_zero);
        assert_eq!(general(FloatOperation::Add, down, 0, 0, 0), 0);
        assert_eq!(general(FloatOperation::Add, FloatMode::default(), one, minus_one, 0), 0);
        let zero = FloatMode { rounding: Rounding::Zero, ..FloatMode::default() };
        assert_eq!(general(FloatOperation::Mul, zero, 0x8000_0001, 0x0000_0001, 0), minus_zero);
        assert_eq!(general(FloatOperation::Mul, down, 0x8000_0001, 0x0000_0001, 0), 0x8000_0001);
        assert_eq!(general(FloatOperation::Add, zero, 0x7f7f_ffff, 0x7f7f_ffff, 0), 0x7f7f_ffff);
    }

    #[test]
    fn flushing_and_saturating() {
        let flush = FloatMode { flush: true, ..FloatMode::default() };
        let saturate = FloatMode { saturate: true, ..FloatMode::default() };
        assert_eq!(general(FloatOperation::Add, flush, 1, 0, 0), 0);
        assert_eq!(general(FloatOperation::Mul, flush, 0x8080_0000, 0x3f00_0000, 0), 0x8000_0000);
        assert_eq!(general(FloatOperation::Add, saturate, 0x4000_0000, 0, 0), 0x3f80_0000);
        assert_eq!(general(FloatOperation::Add, saturate, 0xc000_0000, 0, 0), 0);
        assert_eq!(general(FloatOperation::Add, saturate, NAN, 0, 0), 0);
    }

    #[test]
    fn minimum_and_maximum() {
        let (nan, one, two) = (0xffc0_0001, 0x3f80_0000, 0x4000_0000);
        assert_eq!([min(nan, one), min(one, nan), min(nan, nan)], [one, one, NAN]);
        assert_eq!([max(nan, one), max(one, nan), max(nan, nan)], [one, one, NAN]);
        assert_eq!([min_nan(nan, one), max_nan(one, nan)], [NAN, NAN]);
        assert_eq!([min(0, 0x8000_0000), min(0x8000_0000, 0)], [0x8000_0000; 2]);
        assert_eq!([max(0, 0x8000_0000), max(0x8000_0000, 0)], [0; 2]);
        assert_eq!([min(one, two), max(one, two), min(two, one), max(two, one)], [one, two, one, two]);
    }

    #[test]
    fn nan_is_the_hardwares() {
        let infinity = 0x7f80_0000;
        assert_eq!(sub(infinity, infinity), NAN);
        assert_eq!(mul(infinity, 0), NAN);
        assert_eq!(fma(0xffc0_0001, 0, 0), NAN);
        assert_eq!(div(0, 0), NAN);
        assert_eq!(sqrt(0xbf80_0000), NAN);
        assert_eq!(copysign(0x8000_0000, 0x3f80_0000), 0xbf80_0000);
    }
}
