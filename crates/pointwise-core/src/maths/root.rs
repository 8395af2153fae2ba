//! `rsqrt` and `lerp`.

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

/// `a + w (b - a)`, in the two forms of `torch.lerp`: each is exact at its own end.
#[inline(always)]
pub fn lerp(a: f32, b: f32, w: f32) -> f32 {
    let d = b - a;
    let from_a = fma(w, d, a);
    let from_b = fma(-d, 1.0 - w, b);
    if w.abs() < 0.5 { from_a } else { from_b }
}
