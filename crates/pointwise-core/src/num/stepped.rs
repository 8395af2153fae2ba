//! `f32` steps with the oracle's functions.

use core::ops::{Add, Div, Mul, Neg, Sub};

use super::{Num, Real, Value};
use crate::maths;

/// `f32` arithmetic with functions that are exact but for one rounding: the reference of formulas whose steps are
/// rounded to f32 as PyTorch's are, which the oracle's are not.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct Stepped(pub f32);

operators!(Stepped: Add add +, Sub sub -, Mul mul *, Div div /);

impl Neg for Stepped {
    type Output = Self;
    fn neg(self) -> Self {
        Stepped(-self.0)
    }
}

f32_like!(Stepped, Stepped, |x| x.0, self::functions);

/// The oracle's functions, rounded to f32.
mod functions {
    use super::{Num, Real};
    pub(super) use crate::maths::rough::short;
    pub(super) use crate::maths::single::{floor_divide, over_twice_sqrt, remainder, trunc_divide};

    macro_rules! rounded {
        ($($name:ident $of:ident),*) => { $(
            pub(super) fn $name(x: f32) -> f32 {
                Real::$of(f64::from(x)) as f32
            }
        )* };
    }
    rounded!(sqrt sqrt, rsqrt rsqrt, recip recip, exp exp, expm1 exp_m1, expm1_negative exp_m1_negative, ln ln,
        log1p ln_1p, sin sin, cos cos, tanh tanh, erf erf, normal_cdf normal_cdf,
        normal_density normal_density, sigmoid sigmoid,
        softplus softplus, silu silu, mish mish, gelu gelu, gelu_tanh gelu_tanh);

    pub(super) fn times_exp(a: f32, x: f32) -> f32 {
        a * exp(x)
    }

    pub(super) fn times_sigmoid(a: f32, x: f32) -> f32 {
        a * sigmoid(x)
    }

    pub(super) fn pow(a: f32, b: f32) -> f32 {
        Num::pow(f64::from(a), f64::from(b)) as f32
    }

    pub(super) fn pow_gradients(a: f32, b: f32) -> (f32, f32) {
        (b * pow(a, b - 1.0), if a == 0.0 && b >= 0.0 { 0.0 } else { pow(a, b) * ln(a) })
    }

    pub(super) fn mish_derivative(x: f32) -> f32 {
        crate::num::mish_derivative(super::Stepped(x)).0
    }
}
