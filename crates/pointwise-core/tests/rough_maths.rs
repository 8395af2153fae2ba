//! The functions of [`pointwise_core::maths::rough`] for all operands of f8e4m3 and of f8e5m2: rounded to that type,
//! each result is the exact one correctly rounded.
//!
//! This is tested with the machine's own operations and with approximate ones that err by as much as the PTX ISA
//! allows, all up or all down. Only the reciprocals of powers of two are taken to be exact.

use duplicate::duplicate_item;
use pointwise_core::maths::half::{Approx, Native};
use pointwise_core::maths::rough::Estimate;
use pointwise_core::{Element, F8E4M3, F8E5M2, Num, Real, Rough};

/// Operations with the largest error of the PTX ISA, always to the same side; subnormals are flushed.
struct Off<const UP: bool>;

impl<const UP: bool> Off<UP> {
    /// `2^-22`, up or down.
    const ERROR: f64 = if UP { 1.0 / 4_194_304.0 } else { -1.0 / 4_194_304.0 };

    fn relative(exact: f64) -> f32 {
        (exact * (1.0 + Self::ERROR)) as f32
    }

    fn flush(x: f32) -> f32 {
        if x.abs() < f32::MIN_POSITIVE { 0.0_f32.copysign(x) } else { x }
    }
}

impl<const UP: bool> Approx for Off<UP> {
    fn ex2(x: f32) -> f32 {
        Self::relative(f64::from(x).exp2())
    }
    fn ex2_flush(x: f32) -> f32 {
        Self::flush(Self::ex2(x))
    }
    fn lg2(x: f32) -> f32 {
        let exact = f64::from(x).log2();
        if (0.5..2.0).contains(&x) { (exact + Self::ERROR) as f32 } else { Self::relative(exact) }
    }
    fn lg2_flush(x: f32) -> f32 {
        Self::lg2(Self::flush(x))
    }
    fn rcp(x: f32) -> f32 {
        let exact = 1.0 / f64::from(Self::flush(x));
        let is_power_of_two = x.to_bits() & 0x007F_FFFF == 0;
        Self::flush(if is_power_of_two { exact as f32 } else { Self::relative(exact) })
    }
    fn recip(x: f32) -> f32 {
        1.0 / x
    }
    fn rsq(x: f32) -> f32 {
        Self::relative(1.0 / f64::from(x).sqrt())
    }
}

impl<const UP: bool> Estimate for Off<UP> {
    fn quotient(a: f32, b: f32) -> f32 {
        Self::flush(Self::relative(f64::from(Self::flush(a)) / f64::from(Self::flush(b))))
    }
}

/// An 8-bit type by its bits.
struct Type {
    name: &'static str,
    widen: fn(u8) -> f32,
    round: fn(f32) -> u8,
    exact: fn(f64) -> u8,
}

const TYPES: [Type; 2] = [
    Type {
        name: "f8e4m3",
        widen: |code| F8E4M3::from_bits(code).widen().0,
        round: |x| F8E4M3::narrow(Rough(x)).to_bits(),
        exact: |x| <F8E4M3 as Element>::from_f64(x).to_bits(),
    },
    Type {
        name: "f8e5m2",
        widen: |code| F8E5M2::from_bits(code).widen().0,
        round: |x| F8E5M2::narrow(Rough(x)).to_bits(),
        exact: |x| <F8E5M2 as Element>::from_f64(x).to_bits(),
    },
];

type Unary = fn(f32) -> f32;
type Binary = fn(f32, f32) -> f32;

/// Checks all 65,536 pairs of each type, except the ones that `exact` leaves out.
fn pairs(name: &str, functions: [Binary; 3], exact: fn(f32, f32) -> Option<f64>) {
    let mut failures = Vec::new();
    for t in &TYPES {
        for (which, function) in functions.iter().enumerate() {
            for code in 0..=u16::MAX {
                let (a, b) = ((t.widen)(code as u8), (t.widen)((code >> 8) as u8));
                let Some(expected) = exact(a, b) else { continue };
                let (got, nearest) = ((t.round)(function(a, b)), (t.exact)(expected));
                if got != nearest {
                    failures.push(format!("{name} {} machine {which} of {a}, {b}: {got:#x}, not {expected}", t.name));
                }
            }
        }
    }
    assert!(failures.is_empty(), "{} wrong: {:#?}", failures.len(), &failures[..failures.len().min(20)]);
}

/// Checks all 256 operands of each type.
fn codes(name: &str, functions: [Unary; 3], exact: fn(f64) -> f64) {
    let mut failures = Vec::new();
    for t in &TYPES {
        for (which, function) in functions.iter().enumerate() {
            for code in 0..=u8::MAX {
                let x = (t.widen)(code);
                let expected = exact(f64::from(x));
                if (t.round)(function(x)) != (t.exact)(expected) {
                    failures.push(format!("{name} {} machine {which} of {x}: {}, not {expected}", t.name, function(x)));
                }
            }
        }
    }
    assert!(failures.is_empty(), "{} wrong: {failures:#?}", failures.len());
}

#[duplicate_item(
    name            exact;
    [div]           [f64::from(a) / f64::from(b)];
    [trunc_divide]  [f64::from((a / b).trunc())];
    [floor_divide]  [Num::floor_divide(f64::from(a), f64::from(b))];
    [remainder]     [Num::remainder(f64::from(a), f64::from(b))];
    [pow]           [f64::from(a).powf(f64::from(b))];
)]
#[test]
fn name() {
    let machines = [<Native as Estimate>::name, <Off<true> as Estimate>::name, <Off<false> as Estimate>::name];
    pairs(stringify!(name), machines, |a, b| Some(exact));
}

/// A gated op: an activation in f32 times a number. A subnormal activation may count as zero, which shows only beside
/// an infinite number.
#[duplicate_item(
    gated                name;
    [silu_and_mul]       [silu];
    [gelu_tanh_and_mul]  [gelu_tanh];
    [gelu_and_mul]       [gelu];
)]
#[test]
fn gated() {
    let machines: [Binary; 3] = [
        |a, b| <Native as Estimate>::name(a) * b,
        |a, b| <Off<true> as Estimate>::name(a) * b,
        |a, b| <Off<false> as Estimate>::name(a) * b,
    ];
    pairs(stringify!(gated), machines, |a, b| {
        let activation = Real::name(f64::from(a)) as f32;
        let blown_up = activation.is_subnormal() && b.is_infinite();
        (!blown_up).then_some(f64::from(activation) * f64::from(b))
    });
}

#[duplicate_item(
    name              Machine     exact;
    [exp]             [Approx]    [exp];
    [expm1]           [Approx]    [exp_m1];
    [ln]              [Approx]    [ln];
    [log1p]           [Approx]    [ln_1p];
    [sin]             [Approx]    [sin];
    [cos]             [Approx]    [cos];
    [tanh]            [Approx]    [tanh];
    [erf]             [Approx]    [erf];
    [normal_cdf]      [Approx]    [normal_cdf];
    [normal_density]  [Approx]    [normal_density];
    [sigmoid]         [Approx]    [sigmoid];
    [softplus]        [Approx]    [softplus];
    [mish]            [Approx]    [mish];
    [gelu]            [Estimate]  [gelu];
    [gelu_tanh]       [Estimate]  [gelu_tanh];
    [silu]            [Estimate]  [silu];
)]
#[test]
fn name() {
    let machines = [<Native as Machine>::name, <Off<true> as Machine>::name, <Off<false> as Machine>::name];
    codes(stringify!(name), machines, Real::exact);
}
