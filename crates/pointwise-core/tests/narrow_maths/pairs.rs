//! All pairs of 8-bit numbers.

use duplicate::duplicate_item;
use pointwise_core::maths::half::Native;
use pointwise_core::maths::rough::Estimate;
use pointwise_core::{Num, Real};

use crate::{EIGHT_BITS, Off};

type Binary = fn(f32, f32) -> f32;

/// Checks all 65,536 pairs of each type, except the ones that `exact` leaves out.
fn pairs(name: &str, functions: [Binary; 3], exact: fn(f32, f32) -> Option<f64>) {
    let mut failures = Vec::new();
    for t in &EIGHT_BITS {
        for (which, function) in functions.iter().enumerate() {
            for code in 0..=u16::MAX {
                let (a, b) = ((t.widen)(code & 0xff), (t.widen)(code >> 8));
                let Some(expected) = exact(a, b) else { continue };
                let (got, nearest) = ((t.round)(function(a, b)), (t.exact)(expected));
                if got != nearest {
                    failures.push(format!("{name} {} machine {which} of {a}, {b}: {got:#x}, not {expected}", t.dtype));
                }
            }
        }
    }
    assert!(failures.is_empty(), "{} wrong: {:#?}", failures.len(), &failures[..failures.len().min(20)]);
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
    let machines =
        [<Native as Estimate>::name, <Off<true, true> as Estimate>::name, <Off<false, true> as Estimate>::name];
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
        |a, b| <Off<true, true> as Estimate>::name(a) * b,
        |a, b| <Off<false, true> as Estimate>::name(a) * b,
    ];
    pairs(stringify!(gated), machines, |a, b| {
        let activation = Real::name(f64::from(a)) as f32;
        let blown_up = activation.is_subnormal() && b.is_infinite();
        (!blown_up).then_some(f64::from(activation) * f64::from(b))
    });
}
