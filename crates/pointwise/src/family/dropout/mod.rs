//! Dropout: its definitions and functions.

mod cpu;
mod launch;
mod object;

use pointwise_core::family::random::{DROPOUT, DROPOUT_BACKWARD, DROPOUT_WITH_MASK};
use pointwise_core::{Kind, OpInfo};

use crate::kernel::OpDef;
use launch::Kernels;
pub use object::DropoutKernel;

/// The loops and kernels, by element type.
mod paths {
    use super::cpu;

    pointwise_macros::host! { (crate) (*crate::embed::embedded()) Random; }
}

static WITHOUT: Kernels = Kernels { cpu: paths::loops, entries: paths::kernels, has_mask: false };
static WITH: Kernels = Kernels { cpu: paths::loops, entries: paths::kernels, has_mask: true };

/// An op of dropout's. Its kernels take one operand and one result, and a mask if they say so.
const fn definition(info: OpInfo, kernels: &'static Kernels, backward: Option<&'static OpDef>) -> OpDef {
    assert!(matches!(info.kind, Kind::Random) && info.operands.len() == 1);
    assert!(info.results.len() == 1 + kernels.has_mask as usize);
    OpDef::with_own_kernels(info, kernels, backward)
}

static PLAIN: OpDef = definition(DROPOUT, &WITHOUT, Some(&BACKWARD));
static WITH_MASK: OpDef = definition(DROPOUT_WITH_MASK, &WITH, None);
static BACKWARD: OpDef = definition(DROPOUT_BACKWARD, &WITHOUT, None);

/// Returns dropout, with a mask, and its gradient.
pub(super) fn all() -> impl Iterator<Item = &'static OpDef> {
    [&PLAIN, &WITH_MASK, &BACKWARD].into_iter()
}

/// The kernel object.
pub(super) mod objects {
    use super::{DropoutKernel, PLAIN, WITH_MASK};

    /// `torch.nn.functional.dropout` with probability `p`.
    #[must_use]
    pub fn dropout(p: f64) -> DropoutKernel {
        DropoutKernel::new([&PLAIN, &WITH_MASK], p)
    }
}

/// The ops as functions.
pub(super) mod ops {
    #[cfg(doc)]
    use crate::Philox;

    use super::objects;
    use crate::error::Result;
    use crate::kernel::Rng;
    use crate::{Tensor, TensorView, TensorViewMut};

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
        objects::dropout(p).run(x, rng)
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
        objects::dropout(p).run_into(x, y, rng)
    }

    /// [`dropout`] in place.
    ///
    /// # Errors
    /// The errors of [`DropoutKernel::run_inplace`](crate::kernel::DropoutKernel::run_inplace).
    pub fn dropout_inplace<'a>(x: impl Into<TensorViewMut<'a>>, p: f64, rng: impl Into<Rng<'a>>) -> Result<()> {
        objects::dropout(p).run_inplace(x, rng)
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
        objects::dropout(p).run_with_mask(x, rng)
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
        objects::dropout(p).run_with_mask_into(x, y, mask, rng)
    }

    /// The gradient of [`dropout`]: makes the mask of `rng` again and multiplies `grad` by the same factor.
    ///
    /// # Errors
    /// The errors of [`dropout`].
    pub fn dropout_backward<'a>(grad: impl Into<TensorView<'a>>, p: f64, rng: impl Into<Rng<'a>>) -> Result<Tensor> {
        objects::dropout(p).run(grad, rng)
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
        objects::dropout(p).run_into(grad, y, rng)
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
        objects::dropout(p).run_inplace(grad, rng)
    }
}

#[cfg(test)]
mod tests {
    use crate::DType;
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
            assert!(def.entries(DType::I32).is_err());
        }
    }
}
