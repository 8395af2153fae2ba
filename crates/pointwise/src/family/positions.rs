//! The position encodings: ALiBi and sinusoidal. Their formulas, which share the work of a column, are in
//! `pointwise_core::family::generator`.

use pointwise_core::family::generator::{Alibi, Sinusoidal};
use pointwise_core::op::Words;

use crate::error::{ErrorKind, Result};
use crate::kernel::OpDef;
use crate::kernel::generator::wrong_shape;
use crate::shape::Shape;

/// The columns of sines and of cosines in a sinusoidal encoding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "snake_case"))]
pub enum SinusoidalLayout {
    /// Column `2 i` the sine, column `2 i + 1` the cosine of frequency `i` (Vaswani et al.).
    #[default]
    Interleaved,
    /// Column `i` the sine, column `d_model / 2 + i` the cosine of frequency `i`.
    Halves,
}

/// The definitions.
mod definitions {
    use super::{alibi_sizes, sinusoidal_sizes};

    pointwise_macros::host! { (crate) (*crate::embed::embedded()) Generators; }
}

/// Returns every position encoding.
pub(super) fn all() -> impl Iterator<Item = &'static OpDef> {
    definitions::ALL.into_iter()
}

/// Checks a shape of ALiBi's, and returns the parameters of so many heads.
fn alibi_sizes(shape: &Shape) -> Result<([usize; 3], Words)> {
    match shape[..] {
        // Sizes beyond 32 bits are an error of the caller.
        [heads, rows, columns] if rows == columns => Ok(([heads, rows, columns], Alibi::new(heads as u32).words())),
        _ => Err(wrong_shape(shape, "alibi is made in the shape (num_heads, seq_len, seq_len)")),
    }
}

/// Checks a shape of a sinusoidal encoding, and returns the parameters of so many columns.
fn sinusoidal_sizes(shape: &Shape) -> Result<([usize; 3], Words)> {
    match shape[..] {
        [rows, columns] if columns.is_multiple_of(2) => {
            let d_model = columns as u32;
            Ok(([1, rows, columns], Sinusoidal::new(d_model.max(2)).words(d_model)))
        }
        [_, columns] => Err(ErrorKind::Parameter {
            name: "d_model",
            value: columns.to_string(),
            why: "must be even: a sine and a cosine for each frequency".to_owned(),
        }
        .into()),
        _ => Err(wrong_shape(shape, "sinusoidal is made in the shape (seq_len, d_model)")),
    }
}

/// The kernel objects.
pub(super) mod objects {
    use super::{SinusoidalLayout, definitions};
    use crate::kernel::GeneratorKernel;

    /// ALiBi's bias (Press, Smith and Lewis 2022), `-slope(h) |i - j|` in the shape (num_heads, seq_len, seq_len).
    #[must_use]
    pub fn alibi() -> GeneratorKernel {
        definitions::alibi.generator_with(&[])
    }

    /// [`alibi`] with -inf (f8e4m3: -448) for `j > i`.
    #[must_use]
    pub fn alibi_causal() -> GeneratorKernel {
        definitions::alibi_causal.generator_with(&[])
    }

    /// The sinusoidal encoding (Vaswani et al. 2017) in the shape (seq_len, d_model).
    #[must_use]
    pub fn sinusoidal(layout: SinusoidalLayout) -> GeneratorKernel {
        match layout {
            SinusoidalLayout::Interleaved => definitions::sinusoidal.generator_with(&[]),
            SinusoidalLayout::Halves => definitions::sinusoidal_halves.generator_with(&[]),
        }
    }
}

/// The ops as functions.
pub(super) mod ops {
    use pointwise_core::DType;
    use pointwise_core::family::generator::alibi_slope;

    use super::{SinusoidalLayout, objects};
    use crate::Device;
    use crate::error::{ErrorKind, Result};
    use crate::tensor::{Tensor, TensorViewMut};

    /// ALiBi's bias for attention scores (Press, Smith and Lewis 2022): a tensor (num_heads, seq_len, seq_len) of
    /// `-slope(h) |i - j|`, rounded once (to 8 bits from an f32). [`alibi_slopes`] gives the slopes.
    ///
    /// # Errors
    /// The errors of [`GeneratorKernel::run`](crate::kernel::GeneratorKernel::run).
    pub fn alibi(device: &Device, dtype: DType, num_heads: usize, seq_len: usize) -> Result<Tensor> {
        objects::alibi().run(device, dtype, [num_heads, seq_len, seq_len])
    }

    /// [`alibi`] into an existing tensor (num_heads, seq_len, seq_len).
    ///
    /// # Errors
    /// The errors of [`GeneratorKernel::run_into`](crate::kernel::GeneratorKernel::run_into).
    pub fn alibi_into<'a>(y: impl Into<TensorViewMut<'a>>) -> Result<()> {
        objects::alibi().run_into(y)
    }

    /// [`alibi`] with -inf for `j > i` (f8e4m3 has no infinity: -448).
    ///
    /// # Errors
    /// The errors of [`alibi`].
    pub fn alibi_causal(device: &Device, dtype: DType, num_heads: usize, seq_len: usize) -> Result<Tensor> {
        objects::alibi_causal().run(device, dtype, [num_heads, seq_len, seq_len])
    }

    /// [`alibi_causal`] into an existing tensor (num_heads, seq_len, seq_len).
    ///
    /// # Errors
    /// The errors of [`alibi_into`].
    pub fn alibi_causal_into<'a>(y: impl Into<TensorViewMut<'a>>) -> Result<()> {
        objects::alibi_causal().run_into(y)
    }

    /// ALiBi's slopes: `2^(-8 (h + 1) / P)` for the first `P` heads, `P` the largest power of two that is at most
    /// `num_heads`; then every other slope of `2 P` heads.
    ///
    /// ```
    /// # use pointwise::ops;
    /// assert_eq!(ops::alibi_slopes(3)?, [0.0625, 0.00390625, 0.25]);
    /// # Ok::<(), pointwise::Error>(())
    /// ```
    ///
    /// # Errors
    /// More than 2^24 heads, which makes a list of 64 MiB.
    pub fn alibi_slopes(num_heads: usize) -> Result<Vec<f32>> {
        let heads =
            u32::try_from(num_heads).ok().filter(|&heads| heads <= 1 << 24).ok_or_else(|| ErrorKind::Parameter {
                name: "num_heads",
                value: num_heads.to_string(),
                why: "must be at most 2^24 for a list of slopes".to_owned(),
            })?;
        Ok((0..heads).filter_map(|head| alibi_slope(heads, head)).map(|slope| slope as f32).collect())
    }

    /// The sinusoidal position encoding (Vaswani et al. 2017): a tensor (seq_len, d_model) of the sines and cosines of
    /// `p w_i`, `w_i = 10000^(-2 i / d_model)`, rounded once.
    ///
    /// The error of an f32 is at most 3 ULP and `2^-46 p w_i` radians of the angle, at every position: angles are
    /// reduced exactly, in fixed point. Elements of 16 bits are rounded from a number within `2^-22` of the exact one,
    /// elements of 8 bits from one within `2^-18`, each plus `2^-46 p w_i`.
    ///
    /// # Errors
    /// The errors of [`GeneratorKernel::run`](crate::kernel::GeneratorKernel::run).
    pub fn sinusoidal(
        device: &Device,
        dtype: DType,
        seq_len: usize,
        d_model: usize,
        layout: SinusoidalLayout,
    ) -> Result<Tensor> {
        objects::sinusoidal(layout).run(device, dtype, [seq_len, d_model])
    }

    /// [`sinusoidal`] into an existing tensor (seq_len, d_model).
    ///
    /// # Errors
    /// The errors of [`GeneratorKernel::run_into`](crate::kernel::GeneratorKernel::run_into).
    pub fn sinusoidal_into<'a>(y: impl Into<TensorViewMut<'a>>, layout: SinusoidalLayout) -> Result<()> {
        objects::sinusoidal(layout).run_into(y)
    }
}

#[cfg(test)]
mod tests {
    use crate::embed::embedded;

    #[test]
    fn every_entry_is_embedded() {
        if embedded().is_empty() {
            return;
        }
        for def in super::all() {
            for &dtype in def.info.types {
                for entry in def.entries(dtype).unwrap() {
                    assert!(entry.is_embedded(), "{entry:?}");
                }
            }
        }
    }
}
