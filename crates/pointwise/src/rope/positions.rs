//! Cosines and sines of positions, on the CPU.

use std::f64::consts::TAU;
use std::str::FromStr;

use super::{Frequencies, FrequencySource, MropeAxis, RopeError};

/// The arithmetic of an angle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum RopePrecision {
    /// In 64-bit fixed-point turns: within 2e-7 of the exact cosine and sine at every position up to 2^31.
    Exact,
    /// The f32 product `position · inv_freq`, which models were trained with: HF's tables. Its error grows with the
    /// position: about 1e-4 at 2,047, 6e-2 at 1,048,575.
    #[default]
    Hf,
}

impl FromStr for RopePrecision {
    type Err = RopeError;

    fn from_str(name: &str) -> Result<Self, RopeError> {
        match name {
            "exact" => Ok(Self::Exact),
            "hf" => Ok(Self::Hf),
            other => Err(RopeError::invalid("precision", other, "give exact or hf")),
        }
    }
}

/// Cosine and sine tables, each `[positions.len(), rotary_dim / 2]` row-major, times the attention factor, in f32.
///
/// The length that `dynamic` and `longrope` go by is the largest position + 1, as in HF; to choose another, take
/// [`FrequencySource::frequencies`] and [`Frequencies::cos_sin`]. Positions may come in any order and be negative.
///
/// # Errors
///
/// The errors of [`FrequencySource::frequencies`].
pub fn cos_sin(
    source: &(impl FrequencySource + ?Sized),
    positions: &[i64],
    precision: RopePrecision,
) -> Result<(Vec<f32>, Vec<f32>), RopeError> {
    let longest = positions.iter().copied().max().unwrap_or(-1).saturating_add(1);
    let frequencies = source.frequencies(u64::try_from(longest).unwrap_or(0))?;
    Ok(frequencies.cos_sin(positions, precision))
}

impl Frequencies {
    /// Cosine and sine tables, each `[positions.len(), rotary_dim / 2]` row-major, times the attention factor, in f32.
    pub fn cos_sin(&self, positions: &[i64], precision: RopePrecision) -> (Vec<f32>, Vec<f32>) {
        let rows = positions
            .iter()
            .flat_map(|position| (0..self.inv_freq.len()).map(move |pair| self.cos_sin_at(*position, pair, precision)));
        rows.unzip()
    }

    /// Like [`cos_sin`](Self::cos_sin), but each pair goes by the position on its own axis (multimodal RoPE). `axes`
    /// has an entry for each pair ([`MropeSections::axes`](super::MropeSections::axes)); rows are `[time, height,
    /// width]` of one token.
    ///
    /// # Errors
    ///
    /// [`RopeError::ListLength`] if `axes` does not have one entry a pair.
    pub fn cos_sin_mrope(
        &self,
        positions: &[[i64; 3]],
        axes: &[MropeAxis],
        precision: RopePrecision,
    ) -> Result<(Vec<f32>, Vec<f32>), RopeError> {
        if axes.len() != self.inv_freq.len() {
            let (expected, found) = (self.inv_freq.len(), axes.len());
            return Err(RopeError::ListLength { key: "mrope_section", expected, found });
        }
        let rows = positions.iter().flat_map(|[time, height, width]| {
            axes.iter().enumerate().map(move |(pair, axis)| {
                let position = match axis {
                    MropeAxis::Time => *time,
                    MropeAxis::Height => *height,
                    MropeAxis::Width => *width,
                };
                self.cos_sin_at(position, pair, precision)
            })
        });
        Ok(rows.unzip())
    }

    fn cos_sin_at(&self, position: i64, pair: usize, precision: RopePrecision) -> (f32, f32) {
        match precision {
            RopePrecision::Exact => {
                // Two's complement makes the wrapping product right for negative positions too; as a signed number it
                // is the angle in (-half a turn, half a turn).
                // The fields are public: a list that was cut short turns by nothing.
                let turns = self.turns.get(pair).copied().unwrap_or_default();
                let turned = (position as u64).wrapping_mul(turns) as i64;
                let (sin, cos) = (turned as f64 * (TAU / 18_446_744_073_709_551_616.0)).sin_cos();
                ((cos * self.attention_factor) as f32, (sin * self.attention_factor) as f32)
            }
            RopePrecision::Hf => {
                let (sin, cos) = f64::from(position as f32 * self.inv_freq[pair]).sin_cos();
                // HF rounds the cosine to f32 before it multiplies.
                let factor = self.attention_factor as f32;
                (cos as f32 * factor, sin as f32 * factor)
            }
        }
    }
}
