//! The approximate functions, and f32 arithmetic with rounding, flushing or saturation.

use super::lanes::{Words, lanes, map1, map2, map3};
use crate::{
    numerics::{
        FloatMode,
        approx::{Function, evaluate},
        single::{self, canonical, f},
    },
    program::FloatOperation,
    settings::Approx,
};

/// Computes an approximate function in the lanes of `mask`.
#[inline(always)]
pub(super) fn approximate(function: Function, flush: bool, approx: Approx, a: &Words, b: &Words, mask: u32) -> Words {
    // The CPU rounds these functions correctly: their loops become vector code. The others are computed lane by lane.
    match (function, approx) {
        (Function::Rcp, Approx::Exact) => flushed1(flush, a, |a| canonical(1.0 / f(a))),
        (Function::Sqrt, Approx::Exact) => flushed1(flush, a, |a| canonical(f(a).sqrt())),
        (Function::Rsqrt, Approx::Exact) => flushed1(flush, a, |a| canonical((1.0 / f64::from(f(a)).sqrt()) as f32)),
        (Function::DivFull, Approx::Exact) if flush => {
            map2(a, b, |a, b| single::flush(single::div(single::flush(a), single::flush(b))))
        }
        (Function::DivFull, Approx::Exact) => map2(a, b, single::div),
        _ => {
            let mut out = [0; 32];
            for lane in lanes(mask) {
                out[lane] = evaluate(function, flush, approx, a[lane], b[lane]);
            }
            out
        }
    }
}

#[inline(always)]
fn flushed1(flush: bool, a: &Words, op: impl Fn(u32) -> u32) -> Words {
    if flush { map1(a, |a| single::flush(op(single::flush(a)))) } else { map1(a, op) }
}

#[inline(always)]
pub(super) fn float(op: FloatOperation, mode: FloatMode, a: &Words, b: &Words, c: &Words) -> Words {
    map3(a, b, c, |a, b, c| single::general(op, mode, a, b, c))
}
