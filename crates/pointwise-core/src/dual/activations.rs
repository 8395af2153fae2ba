//! Functions of the form `x s(x)` with their derivatives.

use core::f64::consts::FRAC_2_SQRT_PI;

use crate::num::Real;

/// `1 / (1 + e^-x)`, and 1 less that, both accurate in their far tails.
#[inline(always)]
fn sigmoids<T: Real>(x: T) -> (T, T) {
    let small = (-x.abs()).sigmoid();
    let large = T::ONE - small;
    if x > T::ZERO { (large, small) } else { (small, large) }
}

/// The derivative of the logistic function.
#[inline(always)]
pub fn sigmoid_slope<T: Real>(x: T) -> T {
    let s = (-x.abs()).sigmoid();
    s * (T::ONE - s)
}

/// The derivative of the hyperbolic tangent, `1 - tanh(x)^2`, without its cancellation.
#[inline(always)]
pub fn tanh_slope<T: Real>(x: T) -> T {
    let s = (x.abs() * T::constant(-2.0)).sigmoid();
    T::constant(4.0) * s * (T::ONE - s)
}

/// The derivative of the error function, `2 / sqrt(pi) e^(-x^2)`. The rounding of `x^2` would be a relative error `x^2`
/// times as large: it is put back.
#[inline(always)]
pub fn erf_slope<T: Real>(x: T) -> T {
    // Beyond it the result is 0; an infinite `x` would give NaN.
    let a = x.abs().minimum(T::constant(32.0));
    let square = a * a;
    let lost = a.mul_add(a, -square);
    let e = (-square).exp();
    e.mul_add(-lost, e) * T::constant(FRAC_2_SQRT_PI)
}

/// `silu` and its derivative.
#[inline(always)]
pub fn silu<T: Real>(x: T) -> (T, T) {
    let (s, rest) = sigmoids(x);
    (x * s, s * x.mul_add(rest, T::ONE))
}

/// `gelu` by the error function, and its derivative.
#[inline(always)]
pub fn gelu<T: Real>(x: T) -> (T, T) {
    let cdf = x.normal_cdf();
    (x * cdf, x.mul_add(x.normal_density(), cdf))
}

/// `gelu` by the hyperbolic tangent, and its derivative.
#[inline(always)]
pub fn gelu_tanh<T: Real>(x: T) -> (T, T) {
    // (1 + tanh u) / 2 is the logistic function of t = 2 u.
    let (root, cubic) = (1.595_769_121_605_731, 0.044_715);
    let square = x * x;
    let t = x * square.mul_add(T::constant(root * cubic), T::constant(root));
    let slope = square.mul_add(T::constant(3.0 * root * cubic), T::constant(root));
    let (s, rest) = sigmoids(t);
    // Either `s` or `rest` is 0 long before `x * slope` overflows. Their product comes first: 0 times infinity would be
    // NaN.
    (x * s, (x * (s * rest)).mul_add(slope, s))
}
