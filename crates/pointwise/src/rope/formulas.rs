//! The frequency formulas, each written once over [`Number`]: at f32 in the order that HF computes, and at 106 bits.
//!
//! Source: HF transformers 5.17, `modeling_rope_utils.py` (the order of operations matters to f32's last bits), the
//! YaRN paper (arXiv 2309.00071), LongRoPE (arXiv 2402.13753), and TileOPs' `ops/rope.py` for its own YaRN.

use std::f64::consts::TAU;

use super::number::Number;
use super::{RopeConfig, RopeType};

/// Every inverse frequency of a valid configuration, for sequences of `seq_len` tokens.
pub(super) fn inverse_frequencies<N: Number>(config: &RopeConfig, seq_len: u64) -> Vec<N> {
    let dim = config.rotary_lanes();
    let len = dim / 2;
    let theta = config.rope_theta;
    let factor = config.stretch().unwrap_or(1.0);
    let power = |i: usize| N::power(theta, i, dim, len);
    let one = N::of(1.0);
    match config.rope_type {
        RopeType::Default => (0..len).map(|i| one / power(i)).collect(),
        RopeType::Linear => (0..len).map(|i| one / power(i) / N::of(factor)).collect(),
        RopeType::Dynamic | RopeType::StaticNtk => {
            let base = ntk_base(config, seq_len);
            (0..len).map(|i| one / N::power(base, i, dim, len)).collect()
        }
        RopeType::Llama3 => (0..len).map(|i| llama3(config, one / power(i))).collect(),
        RopeType::Yarn => {
            let ramp = Ramp::of(config);
            (0..len).map(|i| ramp.blend(i, one / (N::of(factor) * power(i)), one / power(i))).collect()
        }
        RopeType::YarnTileOps => {
            let ramp = Ramp::of(config);
            let scaled = |i: usize| N::power(factor * theta, i, dim, len);
            (0..len).map(|i| ramp.blend(i, one / scaled(i), one / power(i))).collect()
        }
        RopeType::Longrope => {
            let divisors = if is_long(config, seq_len) { &config.long_factor } else { &config.short_factor };
            let divisors = divisors.iter().flatten();
            divisors.zip(0..len).map(|(divisor, i)| one / (N::of(*divisor) * power(i))).collect()
        }
        RopeType::Proportional => {
            let live = proportional_pairs(config);
            let turning = |i| one / N::power(theta, i, dim, live) / N::of(factor);
            (0..len).map(|i| if i < live { turning(i) } else { N::of(0.0) }).collect()
        }
    }
}

/// The factor that multiplies cosine and sine.
pub(super) fn attention_factor(config: &RopeConfig) -> f64 {
    let factor = config.stretch().unwrap_or(1.0);
    match (config.rope_type, config.attention_factor) {
        (RopeType::Yarn | RopeType::YarnTileOps | RopeType::Longrope, Some(given)) => given,
        (RopeType::Yarn, None) => {
            let growth = |mscale: f64| if factor <= 1.0 { 1.0 } else { 0.1 * mscale * factor.ln() + 1.0 };
            let given = |mscale: Option<f64>| mscale.filter(|value| *value != 0.0);
            match (given(config.mscale), given(config.mscale_all_dim)) {
                (Some(up), Some(down)) => growth(up) / growth(down),
                _ => growth(1.0),
            }
        }
        (RopeType::Longrope, None) if factor > 1.0 => {
            let length = config.original_length().unwrap_or(1) as f64;
            (1.0 + factor.ln() / length.ln()).sqrt()
        }
        _ => 1.0,
    }
}

/// `beta_fast` and `beta_slow`; unset, null or 0 means 32 and 1.
pub(super) fn betas(config: &RopeConfig) -> (f64, f64) {
    let or = |beta: Option<f64>, default: f64| beta.filter(|value| *value != 0.0).unwrap_or(default);
    (or(config.beta_fast, 32.0), or(config.beta_slow, 1.0))
}

/// The base of dynamic and static NTK.
fn ntk_base(config: &RopeConfig, seq_len: u64) -> f64 {
    let dim = config.rotary_lanes() as f64;
    let factor = config.factor.unwrap_or(1.0);
    let growth = match (config.rope_type, config.max_position_embeddings) {
        (RopeType::Dynamic, Some(reach)) => {
            let length = seq_len.max(reach) as f64;
            (factor * length / reach as f64) - (factor - 1.0)
        }
        _ => factor,
    };
    config.rope_theta * growth.powf(dim / (dim - 2.0))
}

fn llama3<N: Number>(config: &RopeConfig, inverse: N) -> N {
    let factor = N::of(config.factor.unwrap_or(1.0));
    let low = config.low_freq_factor.unwrap_or(1.0);
    let high = config.high_freq_factor.unwrap_or(4.0);
    let length = config.original_length().unwrap_or(0) as f64;
    let one = N::of(1.0);
    // PyTorch divides a scalar by a tensor as reciprocal times scalar.
    let wavelength = (one / inverse) * N::two_pi();
    if wavelength.value() > N::of(length / low).value() {
        inverse / factor
    } else if wavelength.value() < N::of(length / high).value() {
        inverse
    } else {
        let smooth = ((one / wavelength) * N::of(length) - N::of(low)) / N::of(high - low);
        (one - smooth) * inverse / factor + smooth * inverse
    }
}

/// YaRN's ramp: 0 (keep the frequency) up to pair `low`, 1 (interpolate) from pair `high` on.
struct Ramp {
    low: f64,
    high: f64,
}

impl Ramp {
    fn of(config: &RopeConfig) -> Self {
        let (low, high) = ramp_bounds(config);
        Self { low, high }
    }

    fn blend<N: Number>(&self, index: usize, interpolated: N, kept: N) -> N {
        let ramp = (N::of(index as f64) - N::of(self.low)) / N::of(self.high - self.low);
        let ramp = if ramp.value() < 0.0 {
            N::of(0.0)
        } else if ramp.value() > 1.0 {
            N::of(1.0)
        } else {
            ramp
        };
        let keep = N::of(1.0) - ramp;
        interpolated * (N::of(1.0) - keep) + kept * keep
    }
}

/// The pairs between which YaRN's ramp rises. Equal bounds are moved apart.
pub(super) fn ramp_bounds(config: &RopeConfig) -> (f64, f64) {
    let wrong = config.rope_type == RopeType::YarnTileOps;
    // TileOPs passes half the dimension where the formula has the whole.
    let dim = if wrong { config.rotary_lanes() / 2 } else { config.rotary_lanes() } as f64;
    let length = config.original_length().unwrap_or(0) as f64;
    let pair_of = |rotations: f64| dim * (length / (rotations * TAU)).ln() / (2.0 * config.rope_theta.ln());
    let (fast, slow) = betas(config);
    let (mut low, mut high) = (pair_of(fast), pair_of(slow));
    if wrong || config.truncate.unwrap_or(true) {
        (low, high) = (low.floor(), high.ceil());
    }
    (low, high) = (low.max(0.0), high.min(dim - 1.0));
    if low == high {
        high += if wrong { 1.0 } else { 0.001 };
    }
    (low, high)
}

fn is_long(config: &RopeConfig, seq_len: u64) -> bool {
    config.original_length().is_some_and(|length| seq_len > length)
}

/// The number of pairs that turn in Gemma 4.
fn proportional_pairs(config: &RopeConfig) -> usize {
    // Python's `int(p * D // 2)`: the product is floored after the division.
    (config.partial_rotary_factor.unwrap_or(1.0) * config.head_dim as f64 / 2.0).floor() as usize
}
