//! The ops. Their gradients follow from the formulas.

use pointwise::prelude::*;

/// `x + sin^2(a x) / a` (Ziyin et al. 2020).
#[op(floats, ulp = 8)]
pub fn snake<T: Real>(x: T, #[param(default = 1.0)] a: T) -> T {
    let s = (a * x).sin();
    x + s * s / a
}

/// The end of a transformer block: `residual + gelu(x + bias)` where `keep`, elsewhere the residual.
#[op(f32, f16, bf16, ulp = 4)]
pub fn gelu_add<T: Real>(x: T, bias: T, residual: T, keep: bool) -> T {
    let y = (x + bias).gelu();
    residual + if keep { y } else { T::ZERO }
}
