//! The functions of [`crate::Real`] for results kept in f32. Same names as in [`super::half`], so that a compute type
//! names one of the two modules and nothing else.

use crate::info::BinaryFunction;
use crate::num::Short;

pub use super::erf::{erf, gelu, normal_cdf, normal_density};
pub use super::exp::{exp, exp_negative, exp_negative_16, expm1, expm1_negative};
pub use super::fmod::{floor_divide, remainder};
pub use super::hyperbolic::{gelu_tanh, mish, sigmoid, silu, tanh};
pub use super::log::{ln, log1p, softplus};
pub use super::pow::{pow, pow_gradients};
pub use super::prim::sqrt;
pub use super::root::rsqrt;
pub use super::trig::{cos, sin};

/// Computes a function by its short path. The quotient has none of its own.
#[inline(always)]
pub fn short(a: f32, b: f32, function: BinaryFunction) -> Short<f32> {
    let (result, holds) = match function {
        BinaryFunction::Quotient => (a / b, true),
        BinaryFunction::TruncatedQuotient => (trunc_divide(a, b), true),
        BinaryFunction::FlooredQuotient => super::fmod::short_floor_divide(a, b),
        BinaryFunction::Modulo => super::fmod::short_remainder(a, b),
        BinaryFunction::Power => super::pow::short(a, b),
    };
    Short::known(result, holds)
}

/// `1 / x`, correctly rounded.
#[inline(always)]
pub fn recip(x: f32) -> f32 {
    1.0 / x
}

/// The derivative of [`mish`], every step rounded; NaN at both infinities.
#[inline(always)]
pub fn mish_derivative(x: f32) -> f32 {
    crate::num::mish_derivative(x)
}

/// `a / (2 sqrt(x))`, every step correctly rounded.
#[inline(always)]
pub fn over_twice_sqrt(a: f32, x: f32) -> f32 {
    a / (sqrt(x) * 2.0)
}

/// `a e^x`, both steps rounded.
#[inline(always)]
pub fn times_exp(a: f32, x: f32) -> f32 {
    a * exp(x)
}

/// `a / (1 + e^-x)`, the function and the product rounded.
#[inline(always)]
pub fn times_sigmoid(a: f32, x: f32) -> f32 {
    a * sigmoid(x)
}

/// The quotient, rounded to f32, cut towards zero.
#[inline(always)]
pub fn trunc_divide(a: f32, b: f32) -> f32 {
    super::prim::trunc(a / b)
}
