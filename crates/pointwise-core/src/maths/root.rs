//! `rsqrt`.

use super::prim::{fma, rsqrt_estimate};

/// `1 / sqrt(x)`, at most 1 ulp; subnormals are kept, `-0` gives `-Inf`.
#[inline(always)]
pub fn rsqrt(x: f32) -> f32 {
    let y = rsqrt_estimate(x);
    // One Newton step on the exact residual 1 - x y^2; the product x y in two floats, as its rounding alone would
    // cost half an ulp.
    let h = x * y;
    let h_low = fma(x, y, -h);
    let residual = fma(-h_low, y, fma(-h, y, 1.0));
    let better = fma(0.5 * y, residual, y);
    // Zero and infinity have no residual.
    if residual.is_nan() { y } else { better }
}
