//! Noise: ops with a random word for each element.

use pointwise::prelude::*;

/// `x` and noise that is uniform over `-scale / 2 .. scale / 2`.
#[op(floats, ulp = 2, grad_ulp = 4)]
pub fn uniform_noise<T: Real>(x: T, bits: RandomWord, #[param(default = 1.0)] scale: T) -> T {
    (T::uniform(bits) - T::constant(0.5)).mul_add(scale, x)
}

/// `x` and a sample of the normal distribution, times `sigma`, which may have a gradient: its noise is then trained.
///
/// By the method of Box and Muller (1958). The radius is made of one half of the word, the angle of the other.
#[op(floats, ulp = 8, grad_ulp = 16)]
pub fn normal_noise<T: Real>(x: T, sigma: T, bits: RandomWord) -> T {
    let word = bits.bits();
    let radius = T::ONE - T::uniform(RandomWord::from(word & 0xFFFF_0000));
    let angle = T::constant(core::f64::consts::TAU) * T::uniform(RandomWord::from(word << 16));
    let normal = (T::constant(-2.0) * radius.ln()).sqrt() * angle.cos();
    normal.mul_add(sigma, x)
}

/// `(x + g) / temperature`, where `g` is a sample of the Gumbel distribution (Jang et al. 2017): the largest of a row is
/// a sample of the row's softmax.
#[op(floats, ulp = 8, grad_ulp = 8)]
pub fn gumbel_noise<T: Real>(x: T, bits: RandomWord, #[param(default = 1.0)] temperature: T) -> T {
    // Half a step in place of 0, whose logarithm is infinite.
    let u = T::uniform(bits).maximum(T::constant(1.0 / 33_554_432.0));
    (x - (-u.ln()).ln()) / temperature
}

/// 1 with the probability `p` of the element, else 0. A step has no slope: the gradient is 0.
#[op(floats, exact)]
pub fn bernoulli<T: Real>(p: T, bits: RandomWord) -> T {
    if T::uniform(bits) < p { T::ONE } else { T::ZERO }
}

/// `x` with the probability `p` of the element, else 0.
#[op(floats, exact)]
pub fn bernoulli_keep<T: Real>(x: T, p: T, bits: RandomWord) -> T {
    if T::uniform(bits) < p { x } else { T::ZERO }
}

/// `x` rounded to the digits of bf16, up or down at random, so that the mean of many is `x`. A step has no slope: the
/// gradient is 0.
#[op(floats, exact)]
pub fn stochastic_bf16<T: Real>(x: T, bits: RandomWord) -> T {
    let step = x.binade() * T::constant(1.0 / 128.0);
    let rest = x.remainder(step);
    let low = x - rest;
    let rounded = if T::uniform(bits) * step < rest { low + step } else { low };
    // An infinity has no step, and 0 none in 8 bits.
    if x.is_infinite() || x == T::ZERO { x } else { rounded }
}
