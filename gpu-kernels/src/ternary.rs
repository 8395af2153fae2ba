//! Ops of three operands.

use pointwise::__family::*;

/// From a to b: `weight < 1/2 ? a + weight (b - a) : b - (b - a) (1 - weight)` by magnitude of the weight, with
/// fused multiply-adds in f32.
#[op(
    floats,
    exact,
    grad = lerp_gradient,
    __grad(exact),
    grad_doc = "`grad (1 - weight)`, `grad weight` and `grad (b - a)`.",
)]
pub fn lerp<T: Real>(a: T, b: T, weight: T) -> T {
    let distance = b - a;
    if weight.abs() < T::constant(0.5) { weight.mul_add(distance, a) } else { (-distance).mul_add(T::ONE - weight, b) }
}

/// Returns the gradient of [`lerp()`].
///
/// By hand: each operand is in both branches of the formula, whose own gradients round more often.
#[inline(always)]
fn lerp_gradient<T: Real>(grad: T, a: T, b: T, weight: T) -> (T, T, T) {
    (grad * (T::ONE - weight), grad * weight, grad * (b - a))
}

/// `clamp` with a bound for each element: `min(max(x, min), max)`, so `max` where `min > max`; NaN in any gives
/// NaN.
#[op(
    floats,
    ints,
    exact,
    __grad(exact),
    grad_doc = "`grad` to x where `min <= x <= max`, to min where `x < min < max`, to max where `x > max` or `max \
                < min`; else 0. For a bound that is left out there is `ops::clamp_backward`."
)]
pub fn clamp_tensor<T: Num>(x: T, min: T, max: T) -> T {
    x.clamp(min, max)
}
