//! The parameters of a RoPE variant, under HF's names.

use duplicate::duplicate_item;

use super::validate;
use super::{MropeLayout, MropeSections, RopeError, RopeType};

/// A RoPE configuration: a type and the parameters that it uses, each by the name it has in a HF `config.json`.
///
/// Built in code, then checked wherever it is used:
///
/// ```
/// use pointwise::rope::RopeConfig;
///
/// let rope = RopeConfig::llama3(128, 500_000.0).factor(32.0);
/// let frequencies = rope.frequencies(4096)?;
/// assert_eq!(frequencies.inv_freq[0], 1.0);
/// # Ok::<(), pointwise::rope::RopeError>(())
/// ```
///
/// or read from a model with [`from_hf_json`](Self::from_hf_json) or [`from_path`](Self::from_path). Lengths count
/// tokens; dimensions count lanes.
///
/// With the feature `serde` it is written and read under these names, with what is set alone.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(deny_unknown_fields))]
pub struct RopeConfig {
    pub(super) rope_type: RopeType,
    pub(super) head_dim: usize,
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub(super) rotary_dim: Option<usize>,
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub(super) partial_rotary_factor: Option<f64>,
    pub(super) rope_theta: f64,
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub(super) factor: Option<f64>,
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub(super) low_freq_factor: Option<f64>,
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub(super) high_freq_factor: Option<f64>,
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub(super) original_max_position_embeddings: Option<u64>,
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub(super) max_position_embeddings: Option<u64>,
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub(super) beta_fast: Option<f64>,
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub(super) beta_slow: Option<f64>,
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub(super) truncate: Option<bool>,
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub(super) mscale: Option<f64>,
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub(super) mscale_all_dim: Option<f64>,
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub(super) attention_factor: Option<f64>,
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub(super) short_factor: Option<Vec<f64>>,
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub(super) long_factor: Option<Vec<f64>>,
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub(super) mrope: Option<MropeSections>,
    /// DeepSeek's `qk_nope_head_dim`: the lanes in front of those that rotate, where both are one tensor.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub(super) plain_lanes: Option<usize>,
}

impl RopeConfig {
    /// Makes a configuration of any type with only these three parameters set.
    pub fn new(rope_type: RopeType, head_dim: usize, rope_theta: f64) -> Self {
        Self {
            rope_type,
            head_dim,
            rotary_dim: None,
            partial_rotary_factor: None,
            rope_theta,
            factor: None,
            low_freq_factor: None,
            high_freq_factor: None,
            original_max_position_embeddings: None,
            max_position_embeddings: None,
            beta_fast: None,
            beta_slow: None,
            truncate: None,
            mscale: None,
            mscale_all_dim: None,
            attention_factor: None,
            short_factor: None,
            long_factor: None,
            mrope: None,
            plain_lanes: None,
        }
    }

    /// The original RoPE (arXiv 2104.09864). A theta of 10,000 is the paper's.
    pub fn default_rope(head_dim: usize, rope_theta: f64) -> Self {
        Self::new(RopeType::Default, head_dim, rope_theta)
    }

    /// Positions divided by `factor`.
    pub fn linear(head_dim: usize, rope_theta: f64, factor: f64) -> Self {
        Self::new(RopeType::Linear, head_dim, rope_theta).factor(factor)
    }

    /// Dynamic NTK: needs `max_position_embeddings`, not the original length.
    pub fn dynamic(head_dim: usize, rope_theta: f64, factor: f64, max_position_embeddings: u64) -> Self {
        Self::new(RopeType::Dynamic, head_dim, rope_theta)
            .factor(factor)
            .max_position_embeddings(max_position_embeddings)
    }

    /// Static NTK: the base scaled so that the last frequency is divided by exactly `factor`.
    pub fn static_ntk(head_dim: usize, rope_theta: f64, factor: f64) -> Self {
        Self::new(RopeType::StaticNtk, head_dim, rope_theta).factor(factor)
    }

    /// Llama 3.1's parameters: factor 8, low 1, high 4, original length 8192 (also TileOPs' `rope_llama31` defaults).
    pub fn llama3(head_dim: usize, rope_theta: f64) -> Self {
        Self::new(RopeType::Llama3, head_dim, rope_theta)
            .factor(8.0)
            .low_freq_factor(1.0)
            .high_freq_factor(4.0)
            .original_max_position_embeddings(8192)
    }

    /// YaRN, with the paper's `beta_fast` 32 and `beta_slow` 1.
    pub fn yarn(head_dim: usize, rope_theta: f64, factor: f64, original_max_position_embeddings: u64) -> Self {
        Self::new(RopeType::Yarn, head_dim, rope_theta)
            .factor(factor)
            .original_max_position_embeddings(original_max_position_embeddings)
    }

    /// TileOPs' YaRN, which is not YaRN; see [`RopeType::YarnTileOps`]. Its attention factor is 1 unless given.
    pub fn yarn_tileops(head_dim: usize, rope_theta: f64, factor: f64, original_max_position_embeddings: u64) -> Self {
        Self::new(RopeType::YarnTileOps, head_dim, rope_theta)
            .factor(factor)
            .original_max_position_embeddings(original_max_position_embeddings)
    }

    /// LongRoPE. Needs `factor` or `max_position_embeddings` too, unless `attention_factor` is given.
    pub fn longrope(
        head_dim: usize,
        rope_theta: f64,
        short_factor: Vec<f64>,
        long_factor: Vec<f64>,
        original_max_position_embeddings: u64,
    ) -> Self {
        Self::new(RopeType::Longrope, head_dim, rope_theta)
            .short_factor(short_factor)
            .long_factor(long_factor)
            .original_max_position_embeddings(original_max_position_embeddings)
    }

    /// Gemma 4's: the first `partial_rotary_factor` of the pairs turn, with the whole head as the denominator.
    pub fn proportional(head_dim: usize, rope_theta: f64, partial_rotary_factor: f64) -> Self {
        Self::new(RopeType::Proportional, head_dim, rope_theta).partial_rotary_factor(partial_rotary_factor)
    }

    #[duplicate_item(
        name T about;
        [rotary_dim] [usize] [
            "Lanes that rotate: even, at most `head_dim`. Default: `int(head_dim · partial_rotary_factor)`."
        ];
        [partial_rotary_factor] [f64] ["Share of the lanes that rotate, above 0 and at most 1; default 1."];
        [factor] [f64] ["By how much the context is stretched."];
        [low_freq_factor] [f64] ["llama3: below `original / low_freq_factor` turns a frequency is not divided in full."];
        [high_freq_factor] [f64] ["llama3: from `original / high_freq_factor` on a frequency is kept."];
        [original_max_position_embeddings] [u64] [
            "The length the model was trained at, in tokens. Default: `max_position_embeddings`."
        ];
        [max_position_embeddings] [u64] ["The length the model reaches, in tokens."];
        [beta_fast] [f64] ["yarn: rotations above which a frequency is kept; 0 or unset means 32."];
        [beta_slow] [f64] ["yarn: rotations below which a frequency is divided; 0 or unset means 1."];
        [truncate] [bool] ["yarn: whether the ramp's bounds go to whole pairs; default true."];
        [mscale] [f64] ["yarn: scales the attention factor, if `mscale_all_dim` is given too and neither is 0."];
        [mscale_all_dim] [f64] ["yarn: divides the attention factor, if `mscale` is given too and neither is 0."];
        [attention_factor] [f64] [
            "yarn, longrope: multiplies the cosine and the sine; computed from the other parameters if unset."
        ];
        [short_factor] [Vec<f64>] ["longrope: a divisor for each pair, up to the original length."];
        [long_factor] [Vec<f64>] ["longrope: a divisor for each pair, beyond the original length."];
    )]
    #[doc = about]
    #[must_use]
    pub fn name(mut self, value: T) -> Self {
        self.name = Some(value);
        self
    }

    /// Multimodal positions: how many frequencies time, height and width have.
    #[must_use]
    pub fn mrope_section(mut self, sections: [usize; 3], layout: MropeLayout) -> Self {
        self.mrope = Some(MropeSections { sections, layout });
        self
    }

    /// The variant.
    pub fn rope_type(&self) -> RopeType {
        self.rope_type
    }

    /// Lanes of a head. For DeepSeek's latent attention, lanes of the rotated part alone (`qk_rope_head_dim`).
    pub fn head_dim(&self) -> usize {
        self.head_dim
    }

    /// The base.
    pub fn rope_theta(&self) -> f64 {
        self.rope_theta
    }

    /// The multimodal sections, if the model has them.
    pub fn mrope(&self) -> Option<MropeSections> {
        self.mrope
    }

    /// Lanes that take part in the rotation. For `proportional`, the whole head: some of its pairs turn by 0.
    pub fn rotary_lanes(&self) -> usize {
        match (self.rotary_dim, self.partial_rotary_factor) {
            _ if self.rope_type == RopeType::Proportional => self.head_dim,
            (Some(lanes), _) => lanes,
            // Python's int(): toward zero.
            (None, Some(share)) => (self.head_dim as f64 * share) as usize,
            (None, None) => self.head_dim,
        }
    }

    /// Checks every parameter that the type uses.
    ///
    /// # Errors
    ///
    /// Names the first key that is missing, out of range, of the wrong length, or at odds with another.
    pub fn validate(&self) -> Result<(), RopeError> {
        validate::check(self)
    }

    /// `factor`, or the ratio of the two lengths where HF falls back to it (yarn and longrope).
    pub(super) fn stretch(&self) -> Option<f64> {
        self.factor.or_else(|| match (self.max_position_embeddings, self.original_max_position_embeddings) {
            (Some(reach), Some(original)) => Some(reach as f64 / original as f64),
            _ => None,
        })
    }

    /// The length the model was trained at; HF falls back to `max_position_embeddings`.
    pub(super) fn original_length(&self) -> Option<u64> {
        self.original_max_position_embeddings.or(self.max_position_embeddings)
    }
}
