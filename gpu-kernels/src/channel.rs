//! Activations with a weight for each channel.

use pointwise::__family::*;

/// `x > 0 ? x : weight x` (He et al. 2015); one weight for all, or one for each of dimension 1 of x.
#[op(
    floats,
    exact,
    grad = prelu_gradient,
    __grad(exact),
    grad_doc = "`x > 0 ? grad : weight grad` and `x > 0 ? 0 : x grad`.",
)]
pub fn prelu<T: Real>(x: T, #[channel] weight: T) -> T {
    if x > T::ZERO { x } else { weight * x }
}

/// Returns the gradient of [`prelu()`].
///
/// By hand: kernels for f32 would have a branch a lane.
#[inline(always)]
fn prelu_gradient<T: Real>(grad: T, x: T, weight: T) -> (T, T) {
    if x > T::ZERO { (grad, T::ZERO) } else { (weight * grad, x * grad) }
}
