//! `f64`: the oracle that checks every kernel.

use super::{Num, Real, Value};
use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_PI, FRAC_2_SQRT_PI};

impl Value for f64 {
    const ZERO: Self = 0.0;
    const ONE: Self = 1.0;
    fn whole(number: i64) -> Self {
        number as f64
    }
    fn is_nan(self) -> bool {
        f64::is_nan(self)
    }
    fn is_infinite(self) -> bool {
        f64::is_infinite(self)
    }
}

impl Num for f64 {
    fn abs(self) -> Self {
        f64::abs(self)
    }
    fn maximum(self, other: Self) -> Self {
        if self.is_nan() || other.is_nan() {
            f64::NAN
        } else if self == other {
            if self.is_sign_negative() { other } else { self }
        } else if self > other {
            self
        } else {
            other
        }
    }
    fn minimum(self, other: Self) -> Self {
        -Num::maximum(-self, -other)
    }
    fn floor(self) -> Self {
        f64::floor(self)
    }
    fn ceil(self) -> Self {
        f64::ceil(self)
    }
    fn trunc(self) -> Self {
        f64::trunc(self)
    }
    fn round_ties_even(self) -> Self {
        f64::round_ties_even(self)
    }
    fn round_decimals(self, decimals: Self) -> Self {
        let scale = 10.0_f64.powi(decimals.abs() as i32);
        if decimals < 0.0 { (self / scale).round_ties_even() * scale } else { (self * scale).round_ties_even() / scale }
    }
    fn remainder(self, divisor: Self) -> Self {
        let m = self % divisor;
        if m != 0.0 && (divisor < 0.0) != (m < 0.0) { m + divisor } else { m }
    }
    fn floor_divide(self, divisor: Self) -> Self {
        if divisor == 0.0 {
            return self / divisor;
        }
        let m = self % divisor;
        let adjust = m != 0.0 && (divisor < 0.0) != (m < 0.0);
        let q = (self - m) / divisor - if adjust { 1.0 } else { 0.0 };
        if q == 0.0 {
            return 0.0_f64.copysign(self / divisor);
        }
        let f = q.floor();
        if q - f > 0.5 { f + 1.0 } else { f }
    }
    fn trunc_divide(self, divisor: Self) -> Self {
        (self / divisor).trunc()
    }
    fn pow(self, exponent: Self) -> Self {
        f64::powf(self, exponent)
    }
    fn scaled_add(self, scale: Self, addend: Self) -> Self {
        f64::mul_add(self, scale, addend)
    }
}

impl Real for f64 {
    fn constant(value: f64) -> Self {
        value
    }
    fn to_f64(self) -> f64 {
        self
    }
    fn in_range(self) -> Self {
        // NaN and numbers in f32's range stay.
        if (self as f32).is_infinite() { (self as f32) as f64 } else { self }
    }
    fn mul_add(self, a: Self, b: Self) -> Self {
        f64::mul_add(self, a, b)
    }
    fn sqrt(self) -> Self {
        f64::sqrt(self)
    }
    fn rsqrt(self) -> Self {
        1.0 / f64::sqrt(self)
    }
    fn recip(self) -> Self {
        1.0 / self
    }
    fn exp(self) -> Self {
        f64::exp(self)
    }
    fn exp_negative(self) -> Self {
        f64::exp(self)
    }
    fn exp_negative_16(self) -> Self {
        f64::exp(self)
    }
    fn exp_m1(self) -> Self {
        f64::exp_m1(self)
    }
    fn exp_m1_negative(self) -> Self {
        f64::exp_m1(self)
    }
    fn if_above(self, limit: Self, yes: Self, no: Self) -> Self {
        if self > limit { yes } else { no }
    }
    fn ln(self) -> Self {
        f64::ln(self)
    }
    fn ln_1p(self) -> Self {
        f64::ln_1p(self)
    }
    fn sin(self) -> Self {
        f64::sin(self)
    }
    fn cos(self) -> Self {
        f64::cos(self)
    }
    fn tanh(self) -> Self {
        f64::tanh(self)
    }
    fn erf(self) -> Self {
        libm::erf(self)
    }
    fn normal_cdf(self) -> Self {
        0.5 * libm::erfc(-self * FRAC_1_SQRT_2)
    }
    fn normal_density(self) -> Self {
        (-0.5 * self * self).exp() * (FRAC_2_SQRT_PI * FRAC_1_SQRT_2 / 2.0)
    }
    fn sigmoid(self) -> Self {
        1.0 / (1.0 + (-self).exp())
    }
    fn softplus(self) -> Self {
        Num::maximum(self, 0.0) + (-f64::abs(self)).exp().ln_1p()
    }
    fn silu(self) -> Self {
        self / (1.0 + (-self).exp())
    }
    fn mish(self) -> Self {
        self * self.softplus().tanh()
    }
    fn gelu(self) -> Self {
        self * self.normal_cdf()
    }
    fn gelu_tanh(self) -> Self {
        // x * sigmoid(2u) is x (1 + tanh u) / 2 without its cancellation.
        let u = FRAC_2_PI.sqrt() * (self + 0.044715 * self * self * self);
        self * (2.0 * u).sigmoid()
    }
}
