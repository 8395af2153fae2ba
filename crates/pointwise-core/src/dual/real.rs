//! Functions of floats: one rule each.

use duplicate::duplicate_item;

use super::{Dual, Tangent, activations, each};
use crate::num::{Num, Real, Value};
use crate::philox::RandomWord;

impl<T: Real, const K: usize> Dual<T, K> {
    /// Returns a function of the form `x s(x)`: `alone` without tangents, else `together`, which shares its work with
    /// the derivative `slope`.
    #[inline(always)]
    fn activation(self, alone: T, (together, slope): (T, T)) -> Self {
        let value = if self.is_variable() { together } else { alone };
        self.then(|_| value, |t| t * slope)
    }
}

impl<T: Real, const K: usize> Real for Dual<T, K> {
    #[inline(always)]
    fn constant(value: f64) -> Self {
        Dual::constant(T::constant(value))
    }
    #[inline(always)]
    fn in_range(self) -> Self {
        self.then(T::in_range, |t| t)
    }
    #[inline(always)]
    fn detach(self) -> Self {
        Dual::constant(self.value)
    }
    #[inline(always)]
    fn rounded_to(self, dtype: crate::DType) -> Self {
        self.then(|x| x.rounded_to(dtype), |t| t)
    }
    #[inline(always)]
    fn mul_add(self, a: Self, b: Self) -> Self {
        let (x, y) = (self.value, a.value);
        let tangents = each(|k| b.tangents[k].plus_product(self.tangents[k], y).plus_product(a.tangents[k], x));
        Dual { value: x.mul_add(y, b.value), tangents }
    }
    #[inline(always)]
    fn sqrt(self) -> Self {
        let x = self.value;
        self.then(T::sqrt, |t| t.over_twice_sqrt(x))
    }
    #[inline(always)]
    fn rsqrt(self) -> Self {
        let y = self.value.rsqrt();
        // Factor by factor: a power of y alone could overflow.
        self.then(|_| y, |t| t * T::constant(-0.5) * y * y * y)
    }
    #[inline(always)]
    fn recip(self) -> Self {
        let inverse = T::ONE / self.value;
        self.then(T::recip, |t| -t * inverse * inverse)
    }
    #[inline(always)]
    fn pow_gradients(self, exponent: Self) -> (Self, Self) {
        let (by_base, by_exponent) = self.value.pow_gradients(exponent.value);
        let is_zero = (self.value == T::ZERO) & (exponent.value >= T::ZERO);
        let base = exponent * self.pow(exponent - Self::ONE);
        let power = if is_zero { Self::ZERO } else { self.pow(exponent) * self.ln() };
        (Dual { value: by_base, ..base }, Dual { value: by_exponent, ..power })
    }
    #[inline(always)]
    fn over_twice_sqrt(self, x: Self) -> Self {
        let y = self.value.over_twice_sqrt(x.value);
        self.with(
            x,
            |_, _| y,
            |t, u| t.map(|t| t.over_twice_sqrt(x.value)).plus_product(u, T::constant(-0.5) * y / x.value),
        )
    }
    #[inline(always)]
    fn times_exp(self, x: Self) -> Self {
        let y = self.value.times_exp(x.value);
        self.with(x, |_, _| y, |t, u| t.map(|t| t.times_exp(x.value)).plus_product(u, y))
    }
    #[inline(always)]
    fn times_sigmoid(self, x: Self) -> Self {
        let slope = activations::sigmoid_slope(x.value);
        self.with(x, T::times_sigmoid, |t, u| {
            t.map(|t| t.times_sigmoid(x.value)).plus_product(u.map(|u| u * slope), self.value)
        })
    }
    #[duplicate_item(name; [exp]; [exp_negative]; [exp_negative_16])]
    #[inline(always)]
    fn name(self) -> Self {
        let y = self.value.name();
        self.then(|_| y, |t| t * y)
    }
    #[inline(always)]
    fn exp_m1(self) -> Self {
        let x = self.value;
        self.then(T::exp_m1, |t| t * x.exp())
    }
    #[inline(always)]
    fn exp_m1_negative(self) -> Self {
        let x = self.value;
        self.then(T::exp_m1_negative, |t| t.times_exp(x))
    }
    #[inline(always)]
    fn if_above(self, limit: Self, yes: Self, no: Self) -> Self {
        let (x, limit) = (self.value, limit.value);
        let tangents = each(|k| {
            let (t, u) = (yes.tangents[k], no.tangents[k]);
            Tangent { is_there: t.is_there | u.is_there, value: x.if_above(limit, t.or_zero(), u.or_zero()) }
        });
        Dual { value: x.if_above(limit, yes.value, no.value), tangents }
    }
    #[inline(always)]
    fn ln(self) -> Self {
        let x = self.value;
        self.then(T::ln, |t| t / x)
    }
    #[inline(always)]
    fn ln_1p(self) -> Self {
        let x = self.value;
        self.then(T::ln_1p, |t| t / (x + T::ONE))
    }
    #[inline(always)]
    fn sin(self) -> Self {
        let slope = self.value.cos();
        self.then(T::sin, |t| t * slope)
    }
    #[inline(always)]
    fn cos(self) -> Self {
        let slope = -self.value.sin();
        self.then(T::cos, |t| t * slope)
    }
    #[inline(always)]
    fn tanh(self) -> Self {
        let slope = activations::tanh_slope(self.value);
        self.then(T::tanh, |t| t * slope)
    }
    #[inline(always)]
    fn erf(self) -> Self {
        let slope = activations::erf_slope(self.value);
        self.then(T::erf, |t| t * slope)
    }
    #[inline(always)]
    fn normal_cdf(self) -> Self {
        let slope = self.value.normal_density();
        self.then(T::normal_cdf, |t| t * slope)
    }
    #[inline(always)]
    fn normal_density(self) -> Self {
        let y = self.value.normal_density();
        // The density first: it is 0 where the value is infinite.
        let slope = if y == T::ZERO { T::ZERO } else { -self.value * y };
        self.then(|_| y, |t| t * slope)
    }
    #[inline(always)]
    fn sigmoid(self) -> Self {
        let slope = activations::sigmoid_slope(self.value);
        self.then(T::sigmoid, |t| t * slope)
    }
    #[inline(always)]
    fn softplus(self) -> Self {
        let x = self.value;
        self.then(T::softplus, |t| t.times_sigmoid(x))
    }
    #[inline(always)]
    fn silu(self) -> Self {
        self.activation(self.value.silu(), activations::silu(self.value))
    }
    #[inline(always)]
    fn mish(self) -> Self {
        let slope = self.value.mish_derivative();
        self.then(T::mish, |t| t * slope)
    }
    #[inline(always)]
    fn mish_derivative(self) -> Self {
        Dual { value: self.value.mish_derivative(), ..crate::num::mish_derivative(self) }
    }
    #[inline(always)]
    fn gelu(self) -> Self {
        self.activation(self.value.gelu(), activations::gelu(self.value))
    }
    #[inline(always)]
    fn gelu_tanh(self) -> Self {
        self.activation(self.value.gelu_tanh(), activations::gelu_tanh(self.value))
    }
    #[inline(always)]
    fn to_f64(self) -> f64 {
        self.value.to_f64()
    }
    #[inline(always)]
    fn dropout(self, p: Self, bits: RandomWord<'_>) -> Self {
        let value = self.value.dropout(p.value, bits);
        // Below 0 the probability counts as 0.
        let is_rate = p.value >= T::ZERO;
        let scale = (T::ONE - p.value).recip();
        self.with(
            p,
            |_, _| value,
            |t, u| {
                let kept = t.map(|t| t.dropout(p.value, bits));
                kept.plus_product(u.where_(is_rate), value * scale)
            },
        )
    }
    #[inline(always)]
    fn uniform(bits: RandomWord<'_>) -> Self {
        Dual::constant(T::uniform(bits))
    }
}
