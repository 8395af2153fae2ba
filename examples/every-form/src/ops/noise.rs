//! Noise: ops with random words, for each element, or for each sample, channel or row.

use pointwise::prelude::*;

/// `x` and noise that is uniform over `-scale / 2 .. scale / 2`.
#[op(floats, ulp = 2, grad_ulp = 4)]
pub fn uniform_noise<T: Real>(x: T, bits: RandomWord, #[param(default = 1.0)] scale: T) -> T {
    (T::uniform(bits) - T::constant(0.5)).mul_add(scale, x)
}

/// `x` and a sample of the normal distribution, times `sigma`, which may have a gradient: its noise is then trained.
///
/// By the method of Box and Muller (1958), from two words: one for the radius, one for the angle.
#[op(floats, ulp = 8, grad_ulp = 16)]
pub fn normal_noise<T: Real>(x: T, sigma: T, bits: RandomWord, more: RandomWord) -> T {
    let radius = T::ONE - T::uniform(bits);
    let angle = T::constant(core::f64::consts::TAU) * T::uniform(more);
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

/// A residual branch that a whole sample skips with probability `p`: stochastic depth (Huang et al. 2016), with the kept
/// branches times `1 / (1 - p)`, as timm's `DropPath` has it.
#[op(floats, ulp = 4)]
pub fn drop_path<T: Real>(
    residual: T,
    branch: T,
    #[each(sample)] bits: RandomWord,
    #[param(default = 0.1, probability)] p: T,
) -> T {
    residual + branch.dropout(p, bits)
}

/// Dropout of whole channels, as `torch.nn.functional.dropout2d` has it.
#[op(floats, ulp = 2)]
pub fn channel_dropout<T: Real>(
    x: T,
    #[each(channel)] bits: RandomWord,
    #[param(default = 0.5, probability)] p: T,
) -> T {
    x.dropout(p, bits)
}

/// `x` times a factor between `1 - range` and `1 + range` that each row has once, and noise of each element.
#[op(floats, ulp = 4)]
pub fn row_gain<T: Real>(
    x: T,
    #[each(row)] gain: RandomWord,
    bits: RandomWord,
    #[param(default = 0.5)] range: T,
    #[param(default = 0.25)] scale: T,
) -> T {
    let half = T::constant(0.5);
    let factor = ((T::uniform(gain) - half) * T::constant(2.0)).mul_add(range, T::ONE);
    x.mul_add(factor, (T::uniform(bits) - half) * scale)
}
