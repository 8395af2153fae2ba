//! The RoPE variants and the small types that go with them.

use std::fmt;
use std::str::FromStr;

use super::{RopeError, validate};

/// The scaling of the frequencies, by HF's names (`rope_type`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum RopeType {
    /// `default`: `θ^(-2i/d)`.
    #[default]
    Default,
    /// `linear`: the default divided by `factor`.
    Linear,
    /// `dynamic`: the base grows once the sequence passes `max_position_embeddings` (dynamic NTK).
    Dynamic,
    /// `static_ntk`: base `θ·f^(d/(d-2))`, whatever the length. Not HF's; `ntk` in vLLM is another formula.
    StaticNtk,
    /// `llama3`: low frequencies divided by `factor`, a blend between, high ones kept (Llama 3.1; also TileOPs'
    /// `llama31`).
    Llama3,
    /// `yarn`: the ramp of the YaRN paper (arXiv 2309.00071), as HF implements it.
    Yarn,
    /// `yarn_tileops`: what TileOPs calls YaRN. It scales the base, not the frequency, and takes half the dimension for
    /// the ramp's bounds, so it agrees neither with the paper nor with any model; only to reproduce its results.
    #[cfg_attr(feature = "serde", serde(rename = "yarn_tileops"))]
    YarnTileOps,
    /// `longrope`: a divisor for each pair, one list up to the original length and another beyond it (also `su`).
    Longrope,
    /// `proportional`: the first `partial_rotary_factor` of the pairs turn, over the whole head; the rest stand (Gemma
    /// 4).
    Proportional,
}

impl RopeType {
    /// All types, in the order of the documentation.
    pub const ALL: [Self; 9] = [
        Self::Default,
        Self::Linear,
        Self::Dynamic,
        Self::StaticNtk,
        Self::Llama3,
        Self::Yarn,
        Self::YarnTileOps,
        Self::Longrope,
        Self::Proportional,
    ];

    /// The name, as it stands in a `config.json`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::Linear => "linear",
            Self::Dynamic => "dynamic",
            Self::StaticNtk => "static_ntk",
            Self::Llama3 => "llama3",
            Self::Yarn => "yarn",
            Self::YarnTileOps => "yarn_tileops",
            Self::Longrope => "longrope",
            Self::Proportional => "proportional",
        }
    }
}

impl fmt::Display for RopeType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for RopeType {
    type Err = RopeError;

    /// HF's names; also `su` (old Phi-3) for longrope, and `mrope` (Qwen2-VL) for default, as HF reads them.
    fn from_str(name: &str) -> Result<Self, RopeError> {
        let plain = match name {
            "su" => "longrope",
            "mrope" => "default",
            other => other,
        };
        Self::ALL.into_iter().find(|known| known.name() == plain).ok_or_else(|| RopeError::UnknownRopeType {
            value: name.to_owned(),
            known: Self::ALL.map(Self::name).join(", "),
        })
    }
}

/// The position axis that a frequency belongs to under multimodal RoPE.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MropeAxis {
    /// The frame (or the text position).
    Time,
    /// The row.
    Height,
    /// The column.
    Width,
}

/// The way multimodal RoPE deals the frequencies out to the axes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum MropeLayout {
    /// First all of time, then all of height, then all of width (Qwen2-VL, Qwen2.5-VL).
    #[default]
    Chunked,
    /// Time, height, width in turn as far as each section reaches, then time (Qwen3-VL, Qwen3.5, Qwen3-Omni).
    Interleaved,
}

/// `mrope_section`: the number of frequencies of each position axis; they sum to `rotary_dim / 2`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(deny_unknown_fields))]
pub struct MropeSections {
    /// Frequencies of time, height and width.
    pub sections: [usize; 3],
    /// The layout of the sections.
    pub layout: MropeLayout,
}

impl MropeSections {
    /// The axis of frequency `index`.
    pub fn axis(&self, index: usize) -> MropeAxis {
        let [time, height, width] = self.sections;
        match self.layout {
            MropeLayout::Chunked if index < time => MropeAxis::Time,
            MropeLayout::Chunked if index - time < height => MropeAxis::Height,
            MropeLayout::Chunked => MropeAxis::Width,
            MropeLayout::Interleaved if index % 3 == 1 && index / 3 < height => MropeAxis::Height,
            MropeLayout::Interleaved if index % 3 == 2 && index / 3 < width => MropeAxis::Width,
            MropeLayout::Interleaved => MropeAxis::Time,
        }
    }

    /// The axis of each frequency in order; as many as the sections sum to.
    ///
    /// # Errors
    /// [`RopeError::InvalidValue`] if the sections sum to more pairs than a head may have.
    pub fn axes(&self) -> Result<Vec<MropeAxis>, RopeError> {
        let most = validate::MOST_LANES / 2;
        match self.sections.iter().try_fold(0_usize, |sum, section| sum.checked_add(*section)) {
            Some(pairs) if pairs <= most => Ok((0..pairs).map(|index| self.axis(index)).collect()),
            _ => {
                let expected = format!("sections sum to rotary_dim / 2, which is at most {most}");
                Err(RopeError::invalid("mrope_section", format!("{:?}", self.sections), &expected))
            }
        }
    }
}
