//! The approximate instructions: exact results, and results as wrong as the PTX ISA allows.

use super::single::{canonical, f, flush};
use crate::settings::Approx;

/// An approximate function of f32.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Function {
    Ex2,
    Lg2,
    Rcp,
    Rsqrt,
    Sqrt,
    Sin,
    Cos,
    Tanh,
    DivApprox,
    DivFull,
}

/// The largest distance between a result and the exact one.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Bound {
    /// Units in the last place of the exact result.
    Ulp(f64),
    /// A part of the exact result.
    Relative(f64),
    Absolute(f64),
    /// The ISA states no bound.
    None,
}

/// 2^-20.5, 2^-14.7, 2^-22.9.
const TWO_TO_MINUS_20_5: f64 = 6.743_495_761e-7;
const TWO_TO_MINUS_14_7: f64 = 3.757_154_5e-5;
const TWO_TO_MINUS_22_9: f64 = 1.277_653_5e-7;

/// Returns the bound that the PTX ISA (section 9.7.3, "Floating Point Instructions") states for a function of `x`.
///
/// | Instruction | Section | Stated there |
/// |---|---|---|
/// | `div.approx.f32` | 9.7.3.8 | 2 ulp for divisors of 2^-126 to 2^126; above, zero, and NaN for an infinite dividend |
/// | `div.full.f32` | 9.7.3.8 | 2 ulp across the full range |
/// | `rcp.approx.f32` | 9.7.3.13 | 1 ulp across the full range |
/// | `sqrt.approx.f32` | 9.7.3.15 | relative 2^-23 over the positive finite range |
/// | `rsqrt.approx.f32` | 9.7.3.16 | relative 2^-22.9 over the positive finite range |
/// | `sin.approx.f32` | 9.7.3.18 | absolute 2^-20.5 in [-2 pi, 2 pi], 2^-14.7 in [-100 pi, 100 pi], none beyond |
/// | `cos.approx.f32` | 9.7.3.19 | as `sin` |
/// | `lg2.approx.f32` | 9.7.3.20 | absolute 2^-22 for arguments in (0.5, 2), relative 2^-22 for other positive finite ones |
/// | `ex2.approx.f32` | 9.7.3.21 | 2 ulp from the correctly rounded result across the full range |
/// | `tanh.approx.f32` | 9.7.3.22 | relative 2^-11 over the entire range |
///
/// The ISA does not define an ulp of a result that underflows. Here it is the distance between two subnormals. A result
/// with a bound in ulp or a relative bound has the sign of the exact one.
fn bound(function: Function, x: f64) -> Bound {
    match function {
        Function::Ex2 | Function::DivApprox | Function::DivFull => Bound::Ulp(2.0),
        Function::Lg2 if x > 0.5 && x < 2.0 => Bound::Absolute(2.0_f64.powi(-22)),
        Function::Lg2 => Bound::Relative(2.0_f64.powi(-22)),
        Function::Rcp => Bound::Ulp(1.0),
        Function::Rsqrt => Bound::Relative(TWO_TO_MINUS_22_9),
        Function::Sqrt => Bound::Relative(2.0_f64.powi(-23)),
        Function::Sin | Function::Cos => match x.abs() {
            x if x <= std::f64::consts::TAU => Bound::Absolute(TWO_TO_MINUS_20_5),
            x if x <= 100.0 * std::f64::consts::PI => Bound::Absolute(TWO_TO_MINUS_14_7),
            _ => Bound::None,
        },
        Function::Tanh => Bound::Relative(2.0_f64.powi(-11)),
    }
}

/// Computes the function in f64.
fn exact(function: Function, x: f64, y: f64) -> f64 {
    match function {
        Function::Ex2 => libm::exp2(x),
        Function::Lg2 => libm::log2(x),
        Function::Rcp => 1.0 / x,
        Function::Rsqrt => 1.0 / x.sqrt(),
        Function::Sqrt => x.sqrt(),
        Function::Sin => libm::sin(x),
        Function::Cos => libm::cos(x),
        Function::Tanh => libm::tanh(x),
        Function::DivApprox if y.abs() > 2.0_f64.powi(126) && y.is_finite() => {
            if x.is_infinite() {
                f64::NAN
            } else {
                0.0_f64.copysign(x) * y.signum()
            }
        }
        Function::DivApprox | Function::DivFull => x / y,
    }
}

/// Returns the result of an approximate instruction.
pub(crate) fn evaluate(function: Function, ftz: bool, approx: Approx, a: u32, b: u32) -> u32 {
    let (a, b) = if ftz { (flush(a), flush(b)) } else { (a, b) };
    let (x, y) = (f64::from(f(a)), f64::from(f(b)));
    let value = exact(function, x, y);
    let nearest = value as f32;
    let result = match approx {
        Approx::Worst if !is_exact(function, x, value) => worst(function, x, value, nearest, hash(function, a, b)),
        _ => nearest,
    };
    let bits = canonical(result);
    if ftz { flush(bits) } else { bits }
}

/// True if the result is exact on all hardware: special values, powers of two, and `lg2` of these.
fn is_exact(function: Function, x: f64, value: f64) -> bool {
    let power = |number: f64| number.to_bits() & ((1 << 52) - 1) == 0;
    !value.is_finite() || value == 0.0 || power(value) || (function == Function::Lg2 && power(x))
}

/// Returns a pseudo-random number that depends only on the function and its operands.
fn hash(function: Function, a: u32, b: u32) -> u64 {
    let mut z = (u64::from(a) << 32 | u64::from(b)) ^ ((function as u64) << 56);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Returns a result that differs from `value` by up to the bound; every second one by nearly all of it.
fn worst(function: Function, x: f64, value: f64, nearest: f32, hash: u64) -> f32 {
    let ulp = f64::from(nearest.abs().next_up()) - f64::from(nearest.abs());
    let most = match bound(function, x) {
        Bound::Ulp(ulps) => ulps * ulp,
        Bound::Relative(part) => part * value.abs(),
        Bound::Absolute(most) => most,
        Bound::None => return nearest,
    };
    if !most.is_finite() {
        return nearest;
    }
    let part = match hash & 3 {
        0 => 1.0,
        1 => -1.0,
        _ => (hash >> 11) as f64 / (1_u64 << 52) as f64 - 1.0,
    };
    let from = if function == Function::Ex2 { f64::from(nearest) } else { value };
    let mut moved = (from + part * most) as f32;
    // Rounding may have carried it over the bound.
    if (f64::from(moved) - from).abs() > most {
        moved = if f64::from(moved) > from { moved.next_down() } else { moved.next_up() };
    }
    if moved.is_sign_negative() != (value < 0.0) && !matches!(bound(function, x), Bound::Absolute(_)) {
        return 0.0_f32.copysign(nearest);
    }
    if (f64::from(moved) - from).abs() > most || !moved.is_finite() { nearest } else { moved }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Function; 10] = [
        Function::Ex2,
        Function::Lg2,
        Function::Rcp,
        Function::Rsqrt,
        Function::Sqrt,
        Function::Sin,
        Function::Cos,
        Function::Tanh,
        Function::DivApprox,
        Function::DivFull,
    ];

    fn both(function: Function, x: f32, y: f32) -> (f32, f32) {
        let run = |approx| f(evaluate(function, false, approx, x.to_bits(), y.to_bits()));
        (run(Approx::Exact), run(Approx::Worst))
    }

    #[test]
    fn bounds_are_their_powers() {
        for (bound, power) in [(TWO_TO_MINUS_20_5, -20.5), (TWO_TO_MINUS_14_7, -14.7), (TWO_TO_MINUS_22_9, -22.9)] {
            let exact = 2.0_f64.powf(power);
            assert!(bound <= exact && bound > exact * 0.999_999, "{bound} {exact}");
        }
    }

    #[test]
    fn worst_is_wrong_and_within_the_bound() {
        for function in ALL {
            let mut moved = 0;
            for step in 1..2000_u16 {
                let x = f32::from(step) * 0.003_1 + 0.17;
                let y = 3.3;
                let (nearest, worst) = both(function, x, y);
                let value = exact(function, f64::from(x), f64::from(y));
                let from = if function == Function::Ex2 { f64::from(nearest) } else { value };
                let error = (f64::from(worst) - from).abs();
                let ulp = f64::from(nearest.abs().next_up()) - f64::from(nearest.abs());
                let most = match bound(function, f64::from(x)) {
                    Bound::Ulp(ulps) => ulps * ulp,
                    Bound::Relative(part) => part * value.abs(),
                    Bound::Absolute(most) => most,
                    Bound::None => unreachable!(),
                };
                assert!(error <= most, "{function:?} {x}: {error:e}");
                moved += u32::from(worst != nearest);
            }
            assert!(moved > 700, "{function:?} moved {moved}");
        }
    }

    #[test]
    fn no_sign_changes_where_results_underflow() {
        for step in 0..4000_u16 {
            let x = -120.0 - f32::from(step) / 16.0;
            for ftz in [false, true] {
                let worst = f(evaluate(Function::Ex2, ftz, Approx::Worst, x.to_bits(), 0));
                assert!(worst.is_sign_positive() && worst < 2.0_f32.powi(-119), "{x}: {worst:e}");
            }
        }
    }

    #[test]
    fn exact_cases_stay_exact() {
        for power in -120..120 {
            let x = 2.0_f32.powi(power);
            assert_eq!(both(Function::Rcp, x, 0.0), (1.0 / x, 1.0 / x));
            let exponent = power as f32;
            assert_eq!(both(Function::Lg2, x, 0.0), (exponent, exponent));
            assert_eq!(both(Function::Ex2, exponent, 0.0), (x, x));
        }
        assert_eq!(both(Function::Sin, 0.0, 0.0), (0.0, 0.0));
        assert_eq!(both(Function::Cos, 0.0, 0.0), (1.0, 1.0));
    }

    #[test]
    fn special_values() {
        let run = |function, ftz, x: f32| f(evaluate(function, ftz, Approx::Worst, x.to_bits(), 0));
        let subnormal = f32::from_bits(1);
        assert_eq!(run(Function::Rcp, true, subnormal), f32::INFINITY);
        assert_eq!(run(Function::Rcp, true, -subnormal), f32::NEG_INFINITY);
        assert_eq!(run(Function::Rcp, true, 3e38), 0.0);
        assert_eq!(run(Function::Lg2, true, subnormal), f32::NEG_INFINITY);
        assert_eq!(run(Function::Lg2, false, subnormal), -149.0);
        assert!(run(Function::Lg2, false, -1.0).is_nan());
        assert_eq!(run(Function::Ex2, true, -127.0), 0.0);
        assert_eq!(run(Function::Ex2, false, -127.0), 2.0_f32.powi(-127));
        assert_eq!(run(Function::Ex2, false, f32::NEG_INFINITY), 0.0);
        assert_eq!(run(Function::Ex2, false, 128.0), f32::INFINITY);
        assert_eq!(run(Function::Rsqrt, false, -0.0), f32::NEG_INFINITY);
        assert!(run(Function::Rsqrt, false, -1.0).is_nan());
        assert!(run(Function::Sin, false, f32::INFINITY).is_nan());
        let divide = |x: f32, y: f32| f(evaluate(Function::DivApprox, false, Approx::Exact, x.to_bits(), y.to_bits()));
        assert_eq!(divide(1.0, 2.0_f32.powi(127)), 0.0);
        assert!(divide(f32::INFINITY, 2.0_f32.powi(127)).is_nan());
    }
}
