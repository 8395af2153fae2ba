//! Dropout and the position encodings: their definitions, and the functions.

use super::KERNELS;

/// The definition of dropout.
mod random {
    use super::KERNELS;

    pointwise_macros::host! { (crate) (KERNELS) Random; }
}

/// The definitions of the position encodings.
mod generators {
    use super::KERNELS;

    pointwise_macros::host! { (crate) (KERNELS) Generators; }
}

/// The kernel objects.
pub(super) mod kernels {
    use super::generators;
    use super::random;
    use crate::kernel::{DropoutKernel, GeneratorKernel, SinusoidalLayout};

    /// `torch.nn.functional.dropout` with probability `p`.
    #[must_use]
    pub fn dropout(p: f64) -> DropoutKernel {
        random::dropout.dropout(p)
    }

    /// ALiBi's bias (Press, Smith and Lewis 2022), `-slope(h) |i - j|` in the shape (num_heads, seq_len, seq_len).
    #[must_use]
    pub fn alibi() -> GeneratorKernel {
        generators::alibi.alibi()
    }

    /// [`alibi`] with -inf (f8e4m3: -448) for `j > i`.
    #[must_use]
    pub fn alibi_causal() -> GeneratorKernel {
        generators::alibi_causal.alibi()
    }

    /// The sinusoidal encoding (Vaswani et al. 2017) in the shape (seq_len, d_model).
    #[must_use]
    pub fn sinusoidal(layout: SinusoidalLayout) -> GeneratorKernel {
        match layout {
            SinusoidalLayout::Interleaved => generators::sinusoidal.sinusoidal(),
            SinusoidalLayout::Halves => generators::sinusoidal_halves.sinusoidal(),
        }
    }
}

/// The ops as functions.
pub(super) mod ops {
    #[cfg(doc)]
    use crate::Philox;
    use pointwise_core::DType;
    use pointwise_core::family::generator::alibi_slope;

    use super::kernels;
    use crate::error::{ErrorKind, Result};
    use crate::kernel::{Rng, SinusoidalLayout};
    use crate::{Device, Tensor, TensorView, TensorViewMut};

    /// `torch.nn.functional.dropout`: each element of `x` is kept with probability `1 - p` and multiplied by
    /// `1 / (1 - p)`, or becomes +0 (also where it is NaN or infinite). With `p = 0` it is a copy, and without training
    /// ([`DropoutKernel::training`](crate::kernel::DropoutKernel::training)). `p` counts as the f32 next to it.
    ///
    /// Only `rng` and the row-major index of an element decide if it is kept. So the result is the same for every
    /// element type, every shape of the same number of elements, every strategy and device. It differs from PyTorch's
    /// choice. The next call goes on at [`rng.after(n)`](Philox::after), `n` elements later.
    ///
    /// ```
    /// use pointwise::{Device, Philox, Tensor, ops};
    ///
    /// let x = Tensor::full(&Device::cpu(), 1.0_f32, [8])?;
    /// let rng = Philox::new(42);
    /// let y = ops::dropout(&x, 0.5, rng)?;
    /// let grad = ops::dropout_backward(&x, 0.5, rng)?; // the same mask
    /// assert_eq!(y.to_vec::<f32>()?, grad.to_vec::<f32>()?);
    /// # Ok::<(), pointwise::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`DropoutKernel::run`](crate::kernel::DropoutKernel::run).
    pub fn dropout<'a>(x: impl Into<TensorView<'a>>, p: f64, rng: impl Into<Rng<'a>>) -> Result<Tensor> {
        kernels::dropout(p).run(x, rng)
    }

    /// [`dropout`] into an existing tensor.
    ///
    /// # Errors
    /// The errors of [`DropoutKernel::run_into`](crate::kernel::DropoutKernel::run_into).
    pub fn dropout_into<'a, 'b>(
        x: impl Into<TensorView<'a>>,
        y: impl Into<TensorViewMut<'b>>,
        p: f64,
        rng: impl Into<Rng<'a>>,
    ) -> Result<()> {
        kernels::dropout(p).run_into(x, y, rng)
    }

    /// [`dropout`] in place.
    ///
    /// # Errors
    /// The errors of [`DropoutKernel::run_inplace`](crate::kernel::DropoutKernel::run_inplace).
    pub fn dropout_inplace<'a>(x: impl Into<TensorViewMut<'a>>, p: f64, rng: impl Into<Rng<'a>>) -> Result<()> {
        kernels::dropout(p).run_inplace(x, rng)
    }

    /// [`dropout`], and the mask: a bool tensor, true where the element was kept (`torch.native_dropout`).
    ///
    /// # Errors
    /// The errors of [`dropout`].
    pub fn dropout_with_mask<'a>(
        x: impl Into<TensorView<'a>>,
        p: f64,
        rng: impl Into<Rng<'a>>,
    ) -> Result<(Tensor, Tensor)> {
        kernels::dropout(p).run_with_mask(x, rng)
    }

    /// [`dropout_with_mask`] into existing tensors.
    ///
    /// # Errors
    /// The errors of [`DropoutKernel::run_with_mask_into`](crate::kernel::DropoutKernel::run_with_mask_into).
    pub fn dropout_with_mask_into<'a, 'b, 'c>(
        x: impl Into<TensorView<'a>>,
        y: impl Into<TensorViewMut<'b>>,
        mask: impl Into<TensorViewMut<'c>>,
        p: f64,
        rng: impl Into<Rng<'a>>,
    ) -> Result<()> {
        kernels::dropout(p).run_with_mask_into(x, y, mask, rng)
    }

    /// The gradient of [`dropout`]: makes the mask of `rng` again and multiplies `grad` by the same factor.
    ///
    /// # Errors
    /// The errors of [`dropout`].
    pub fn dropout_backward<'a>(grad: impl Into<TensorView<'a>>, p: f64, rng: impl Into<Rng<'a>>) -> Result<Tensor> {
        kernels::dropout(p).run(grad, rng)
    }

    /// [`dropout_backward`] into an existing tensor.
    ///
    /// # Errors
    /// The errors of [`dropout_into`].
    pub fn dropout_backward_into<'a, 'b>(
        grad: impl Into<TensorView<'a>>,
        y: impl Into<TensorViewMut<'b>>,
        p: f64,
        rng: impl Into<Rng<'a>>,
    ) -> Result<()> {
        kernels::dropout(p).run_into(grad, y, rng)
    }

    /// [`dropout_backward`] in place.
    ///
    /// # Errors
    /// The errors of [`dropout_inplace`].
    pub fn dropout_backward_inplace<'a>(
        grad: impl Into<TensorViewMut<'a>>,
        p: f64,
        rng: impl Into<Rng<'a>>,
    ) -> Result<()> {
        kernels::dropout(p).run_inplace(grad, rng)
    }

    /// ALiBi's bias for attention scores (Press, Smith and Lewis 2022): a tensor (num_heads, seq_len, seq_len) of
    /// `-slope(h) |i - j|`, rounded once (to 8 bits from an f32). [`alibi_slopes`] gives the slopes.
    ///
    /// # Errors
    /// The errors of [`GeneratorKernel::run`](crate::kernel::GeneratorKernel::run).
    pub fn alibi(device: &Device, dtype: DType, num_heads: usize, seq_len: usize) -> Result<Tensor> {
        kernels::alibi().run(device, dtype, [num_heads, seq_len, seq_len])
    }

    /// [`alibi`] into an existing tensor (num_heads, seq_len, seq_len).
    ///
    /// # Errors
    /// The errors of [`GeneratorKernel::run_into`](crate::kernel::GeneratorKernel::run_into).
    pub fn alibi_into<'a>(y: impl Into<TensorViewMut<'a>>) -> Result<()> {
        kernels::alibi().run_into(y)
    }

    /// [`alibi`] with -inf for `j > i` (f8e4m3 has no infinity: -448).
    ///
    /// # Errors
    /// The errors of [`alibi`].
    pub fn alibi_causal(device: &Device, dtype: DType, num_heads: usize, seq_len: usize) -> Result<Tensor> {
        kernels::alibi_causal().run(device, dtype, [num_heads, seq_len, seq_len])
    }

    /// [`alibi_causal`] into an existing tensor (num_heads, seq_len, seq_len).
    ///
    /// # Errors
    /// The errors of [`alibi_into`].
    pub fn alibi_causal_into<'a>(y: impl Into<TensorViewMut<'a>>) -> Result<()> {
        kernels::alibi_causal().run_into(y)
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
        kernels::sinusoidal(layout).run(device, dtype, [seq_len, d_model])
    }

    /// [`sinusoidal`] into an existing tensor (seq_len, d_model).
    ///
    /// # Errors
    /// The errors of [`GeneratorKernel::run_into`](crate::kernel::GeneratorKernel::run_into).
    pub fn sinusoidal_into<'a>(y: impl Into<TensorViewMut<'a>>, layout: SinusoidalLayout) -> Result<()> {
        kernels::sinusoidal(layout).run_into(y)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DType;
    use crate::kernel::Variant;

    #[test]
    fn every_entry_is_embedded() {
        if super::super::embedded().is_empty() {
            return;
        }
        let variants = [Variant::ExplicitParallel, Variant::RegisterCopy];
        for &dtype in random::dropout.info.types {
            for variant in variants {
                for mask in [false, true] {
                    let entry = (random::dropout.entry)(dtype, variant, mask).unwrap();
                    assert!(entry.is_embedded(), "{entry:?}");
                }
            }
            use generators::{alibi, alibi_causal, sinusoidal, sinusoidal_halves};
            for def in [&alibi, &alibi_causal, &sinusoidal, &sinusoidal_halves] {
                for variant in [Variant::Direct, Variant::RegisterCopy] {
                    let entry = def.entry(dtype, variant).unwrap();
                    assert!(entry.is_embedded(), "{entry:?}");
                }
            }
        }
        assert!((random::dropout.entry)(DType::I32, Variant::RegisterCopy, false).is_none());
    }
}
