//! An op that pointwise does not have.

use pointwise::prelude::*;

/// `x + sin^2(a x) / a` (Ziyin et al. 2020).
#[op(floats, ulp = 8)]
pub fn snake<T: Real>(x: T, #[param(default = 1.0)] a: T) -> T {
    let s = (a * x).sin();
    x + s * s / a
}
