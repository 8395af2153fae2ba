//! The choices of a rotation: layout, pairing, positions, angles.

use std::str::FromStr;

use pointwise_core::DType;

use super::{Frequencies, MropeSections, RopeError, RopePrecision};
use crate::Device;
use crate::error::Result;
use crate::tensor::{Tensor, TensorView};

/// The order of a tensor's dimensions: batch, sequence, head, lane. Views may have any strides, but the last is 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "snake_case"))]
pub enum RopeLayout {
    /// `[batch, sequence, heads, head_dim]`.
    #[default]
    Bshd,
    /// `[batch, heads, sequence, head_dim]`.
    Bhsd,
    /// `[sequence, batch, heads, head_dim]`.
    Sbhd,
    /// `[tokens, heads, head_dim]`, sequences one after another.
    Thd,
    /// `[sequence, head_dim]`: one head.
    Sd,
}

impl RopeLayout {
    /// The dimensions of batch, sequence and heads. `None` stands for a missing dimension, which counts as one entry.
    pub(super) fn dims(self) -> [Option<usize>; 3] {
        match self {
            Self::Bshd => [Some(0), Some(1), Some(2)],
            Self::Bhsd => [Some(0), Some(2), Some(1)],
            Self::Sbhd => [Some(1), Some(0), Some(2)],
            Self::Thd => [None, Some(0), Some(1)],
            Self::Sd => [None, Some(0), None],
        }
    }

    /// The number of a tensor's dimensions.
    pub(super) fn rank(self) -> usize {
        1 + self.dims().iter().flatten().count()
    }

    /// The names of the dimensions in order.
    pub fn describe(self) -> &'static str {
        match self {
            Self::Bshd => "[batch, sequence, heads, head_dim]",
            Self::Bhsd => "[batch, heads, sequence, head_dim]",
            Self::Sbhd => "[sequence, batch, heads, head_dim]",
            Self::Thd => "[tokens, heads, head_dim]",
            Self::Sd => "[sequence, head_dim]",
        }
    }
}

impl FromStr for RopeLayout {
    type Err = RopeError;

    fn from_str(name: &str) -> std::result::Result<Self, RopeError> {
        match name {
            "bshd" => Ok(Self::Bshd),
            "bhsd" => Ok(Self::Bhsd),
            "sbhd" => Ok(Self::Sbhd),
            "thd" => Ok(Self::Thd),
            "sd" => Ok(Self::Sd),
            other => Err(RopeError::invalid("layout", other, "give bshd, bhsd, sbhd, thd or sd")),
        }
    }
}

/// The lanes that make a pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "snake_case"))]
pub enum RopePairs {
    /// `(i, i + rotary_dim / 2)`: NeoX, Llama.
    Half,
    /// `(2 i, 2 i + 1)`: GPT-J.
    Interleaved,
    /// Interleaved in, half out (DeepSeek-V3). Not in place. Its backward pass takes half and gives interleaved.
    InterleavedToHalf,
}

impl FromStr for RopePairs {
    type Err = RopeError;

    fn from_str(name: &str) -> std::result::Result<Self, RopeError> {
        match name {
            "half" => Ok(Self::Half),
            "interleaved" => Ok(Self::Interleaved),
            "interleaved_to_half" => Ok(Self::InterleavedToHalf),
            other => Err(RopeError::invalid("pairs", other, "give half, interleaved or interleaved_to_half")),
        }
    }
}

/// The place of the rotated lanes in a head, if not all rotate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum RotatedLanes {
    /// First.
    #[default]
    Lead,
    /// Last (DeepSeek, cuDNN).
    Trail,
}

impl FromStr for RotatedLanes {
    type Err = RopeError;

    fn from_str(name: &str) -> std::result::Result<Self, RopeError> {
        match name {
            "lead" => Ok(Self::Lead),
            "trail" => Ok(Self::Trail),
            other => Err(RopeError::invalid("rotated_lanes", other, "give lead or trail")),
        }
    }
}

/// The direction of a pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "snake_case"))]
pub enum RopeDirection {
    /// The rotation.
    #[default]
    Forward,
    /// Its gradient: the sine negated, scales as in the forward pass.
    Backward,
}

impl FromStr for RopeDirection {
    type Err = RopeError;

    fn from_str(name: &str) -> std::result::Result<Self, RopeError> {
        match name {
            "forward" => Ok(Self::Forward),
            "backward" => Ok(Self::Backward),
            other => Err(RopeError::invalid("direction", other, "give forward or backward")),
        }
    }
}

/// The handling of a position that a table does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum OutOfRange {
    /// Fails if the host knows the positions: an offset, and tensors of positions on the CPU. The host does not read
    /// tensors on a GPU; for them this is [`OutOfRange::Identity`].
    #[default]
    Error,
    /// Scales the token, but does not rotate it. It is a rotation by 0: the partner of an infinity or a NaN becomes
    /// NaN.
    Identity,
}

/// The position of each token.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum RopePositions<'a> {
    /// The index in the sequence plus this number.
    Offset(i64),
    /// The index in the sequence plus a number for each batch entry: i32 or i64, `[batch]`.
    BatchOffsets(TensorView<'a>),
    /// A number for each token: i32 or i64, `[sequence]`, `[batch, sequence]` or `[1, sequence]`, in any order.
    Ids(TensorView<'a>),
    /// Three numbers for each token, its place in time, height and width: i32 or i64, `[3, batch, sequence]`, or
    /// `[3, sequence]` for all batch entries. Each pair goes by one of them (multimodal RoPE).
    Axes {
        /// The numbers.
        ids: TensorView<'a>,
        /// The axis that each pair goes by.
        sections: MropeSections,
    },
    /// Sequences one after another: a token's index in its own sequence. Tokens before the first and after the last
    /// sequence are not rotated.
    Sequences {
        /// The start of each sequence and the end of the last: i32 or i64, `[sequences + 1]`, rising.
        cu_seqlens: TensorView<'a>,
        /// Added to the positions of a sequence: of the same type, `[sequences]`.
        offsets: Option<TensorView<'a>>,
    },
}

impl Default for RopePositions<'_> {
    fn default() -> Self {
        Self::Offset(0)
    }
}

/// The source of angles.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum RopeAngles<'a> {
    /// Computed in the kernel.
    Frequencies(&'a RopeFrequencies, RopePrecision),
    /// Radians, f32: `[rows, width]`, `[rows, 1, 1, width]` (cuDNN's `freqs`), or `[batch, sequence, width]` with a row
    /// for each token. The width is half the rotated lanes, or all of them; then only the first half is read.
    Raw(TensorView<'a>),
    /// Cosines and sines, f32 or of the tensor's type, shaped like [`RopeAngles::Raw`].
    Tables {
        /// Cosines.
        cos: TensorView<'a>,
        /// Sines.
        sin: TensorView<'a>,
    },
}

/// Frequencies on a device, for kernels that compute the angles themselves.
#[derive(Debug)]
pub struct RopeFrequencies {
    pub(super) inv_freq: Tensor,
    pub(super) turns: Tensor,
    pub(super) attention_factor: f64,
}

impl RopeFrequencies {
    /// Copies frequencies to a device.
    ///
    /// # Errors
    /// Out of memory; errors of the driver.
    pub fn new(device: &Device, frequencies: &Frequencies) -> Result<RopeFrequencies> {
        let pairs = frequencies.inv_freq.len();
        let turns: Vec<i64> = frequencies.turns.iter().map(|turns| *turns as i64).collect();
        Ok(RopeFrequencies {
            inv_freq: Tensor::from_slice(device, &frequencies.inv_freq, [pairs])?,
            turns: Tensor::from_slice(device, &turns, [pairs])?,
            attention_factor: frequencies.attention_factor,
        })
    }

    /// Takes a model's own `inv_freq` tensor of f32. [`RopePrecision::Exact`] works from these rounded values.
    ///
    /// # Errors
    /// Another element type; the errors of [`Frequencies::from_inv_freq`] and of copying.
    pub fn from_inv_freq(inv_freq: &Tensor, attention_factor: f64) -> Result<RopeFrequencies> {
        let frequencies = Frequencies::from_inv_freq(&inv_freq.to_vec::<f32>()?, attention_factor)?;
        RopeFrequencies::new(inv_freq.device(), &frequencies)
    }

    /// Lanes that rotate.
    pub fn rotary_dim(&self) -> usize {
        2 * self.inv_freq.numel()
    }
}

/// The source of a kernel's angles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    Hf,
    Exact,
    Angles,
    Tables,
    OwnTables,
}

/// The addresses of a call.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pointers {
    pub(crate) qx: *const u8,
    pub(crate) qy: *mut u8,
    pub(crate) kx: *const u8,
    pub(crate) ky: *mut u8,
    /// Positions, or offsets.
    pub(crate) ids: *const u8,
    /// Cumulative lengths.
    pub(crate) starts: *const u8,
    /// Frequencies, angles or cosines.
    pub(crate) first: *const u8,
    /// Sines.
    pub(crate) second: *const u8,
}

// SAFETY: the contracts of the functions that take the pointers let threads share the memory: each thread writes tokens
// of its own.
unsafe impl Sync for Pointers {}

/// The element types that RoPE takes.
pub(crate) const TYPES: [DType; 3] = [DType::F32, DType::F16, DType::BF16];
