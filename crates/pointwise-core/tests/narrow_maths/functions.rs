//! Functions of one operand.

use pointwise_core::maths::half::{self, Approx, Native};
use pointwise_core::maths::rough::{self, Estimate};
use pointwise_core::{Real, maths};

use crate::{EIGHT_BITS, HALF, Off, Tally, Type};

/// A name, the function for 16-bit results and the one for 8-bit results, and the exact function.
type Function = (&'static str, fn(f32) -> f32, fn(f32) -> f32, fn(f64) -> f64);

fn functions<A: Estimate>() -> Vec<Function> {
    let same = |name, f: fn(f32) -> f32, exact: fn(f64) -> f64| -> Function { (name, f, f, exact) };
    vec![
        same("exp", A::exp, f64::exp),
        // Exact powers of two: 2^-10 lies half way between two numbers of f8e4m3.
        ("exp2", A::exp2, maths::exp2, f64::exp2),
        same("expm1", A::expm1, f64::exp_m1),
        same("exp_negative_16", |x| maths::single::exp_negative_16(-x.abs()), |x| (-x.abs()).exp()),
        same("expm1_negative", |x| A::expm1_negative(-x.abs()), |x| (-x.abs()).exp_m1()),
        same("ln", A::ln, f64::ln),
        same("log1p", A::log1p, f64::ln_1p),
        same("sin", A::sin, f64::sin),
        same("cos", A::cos, f64::cos),
        same("tanh", A::tanh, f64::tanh),
        same("sigmoid", A::sigmoid, Real::sigmoid),
        same("erf", A::erf, Real::erf),
        same("normal_cdf", A::normal_cdf, Real::normal_cdf),
        same("normal_density", A::normal_density, Real::normal_density),
        same("softplus", A::softplus, Real::softplus),
        same("mish", A::mish, Real::mish),
        ("silu", <A as Approx>::silu, <A as Estimate>::silu, Real::silu),
        ("gelu", <A as Approx>::gelu, <A as Estimate>::gelu, Real::gelu),
        ("gelu_tanh", <A as Approx>::gelu_tanh, <A as Estimate>::gelu_tanh, Real::gelu_tanh),
        same(
            "mish_derivative",
            |x| if is_cancelled(x.into()) { 0.0 } else { A::mish_derivative(x) },
            |x| {
                let w = x.min(100.0).exp();
                let n = w * (w + 2.0);
                let y = n / (n + 2.0) + x * (4.0 * w * (w + 1.0) / (n + 2.0).powi(2));
                if x.is_infinite() {
                    f64::NAN
                } else if is_cancelled(x) {
                    0.0
                } else {
                    y
                }
            },
        ),
        // The exponential by itself overflows f32, as in PyTorch.
        same(
            "times_exp",
            |x| A::times_exp(0.7, x),
            |x| f64::from(0.7_f32) * if x > 88.73 { f64::INFINITY } else { x.exp() },
        ),
        same("times_sigmoid", |x| A::times_sigmoid(0.7, x), |x| f64::from(0.7_f32) * x.sigmoid()),
        same("sqrt", half::sqrt, f64::sqrt),
        ("rsqrt", A::rsqrt, rough::rsqrt, Real::rsqrt),
        ("recip", A::recip, rough::recip, f64::recip),
    ]
}

/// True where the two terms of the derivative of mish cancel: for the two numbers next to its zero, and below -98,
/// where its zeros have either sign.
fn is_cancelled(x: f64) -> bool {
    (x + 1.1924).abs() < 0.001 || (x < -98.0 && x.is_finite())
}

/// NaNs of both signs with payloads that a careless bit trick turns into numbers. No narrow number widens to them.
const NANS: [u32; 8] =
    [0x7fc0_0000, 0x7fff_ffff, 0xffc0_0000, 0xffff_ffff, 0x7f80_0001, 0x7f80_0801, 0xffff_f801, 0x7fa5_5aa5];

fn sweep<A: Estimate>(types: &[Type], operations: &str) {
    let mut failures = Vec::new();
    for (name, half, rough, exact) in functions::<A>() {
        for t in types {
            let f = if t.dtype.size() == 2 { half } else { rough };
            let mut tally = Tally::default();
            for code in t.codes() {
                let x = (t.widen)(code);
                tally.add(t, f(x), exact(f64::from(x)), || format!("at {x:e}"));
            }
            tally.check(t, &format!("{name} {} {operations}", t.dtype), &mut failures);
            assert!(name != "recip" || tally.correct == tally.inputs, "{operations}: {} of {}", tally.correct, t.dtype);
            for nan in NANS {
                assert!(f(f32::from_bits(nan)).is_nan(), "{operations}: {name} of the NaN {nan:#x}");
            }
        }
    }
    assert!(failures.is_empty(), "{failures:#?}");
}

#[test]
fn native() {
    sweep::<Native>(&HALF, "native");
    sweep::<Native>(&EIGHT_BITS, "native");
}

#[test]
fn approximations_too_large() {
    sweep::<Off<true>>(&HALF, "up");
    sweep::<Off<true, true>>(&EIGHT_BITS, "up");
}

#[test]
fn approximations_too_small() {
    sweep::<Off<false>>(&HALF, "down");
    sweep::<Off<false, true>>(&EIGHT_BITS, "down");
}
