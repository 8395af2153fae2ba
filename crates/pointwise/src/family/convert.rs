//! The conversions between element types: the kernels and loops of every pair.

use pointwise_core::DType;

use crate::error::Result;
use crate::kernel::ConvertKernel;
use crate::{Tensor, TensorView};

/// `tensor.to(dtype)` as a kernel object.
#[must_use]
pub fn to_dtype() -> ConvertKernel {
    ConvertKernel::new()
}

/// The conversions as functions.
pub(super) mod ops {
    use pointwise_core::DType;

    use crate::error::Result;
    use crate::{Tensor, TensorView, TensorViewMut};

    /// `x.to(dtype)`: the elements as another type, in a new contiguous tensor, by the rules of
    /// [`ConvertKernel`](crate::kernel::ConvertKernel).
    ///
    /// # Errors
    /// The errors of [`ConvertKernel::run`](crate::kernel::ConvertKernel::run).
    pub fn to_dtype<'a>(x: impl Into<TensorView<'a>>, dtype: DType) -> Result<Tensor> {
        super::to_dtype().run(x, dtype)
    }

    /// [`to_dtype`] into an existing tensor, whose type is the target.
    ///
    /// # Errors
    /// The errors of [`ConvertKernel::run_into`](crate::kernel::ConvertKernel::run_into).
    pub fn to_dtype_into<'a, 'b>(x: impl Into<TensorView<'a>>, y: impl Into<TensorViewMut<'b>>) -> Result<()> {
        super::to_dtype().run_into(x, y)
    }
}

impl Tensor {
    /// Converts the elements to another type (`tensor.to(dtype)`), in a new tensor, by the rules of [`ConvertKernel`].
    ///
    /// # Errors
    /// The errors of [`ConvertKernel::run`].
    pub fn to_dtype(&self, dtype: DType) -> Result<Tensor> {
        to_dtype().run(self, dtype)
    }
}

impl TensorView<'_> {
    /// See [`Tensor::to_dtype`].
    ///
    /// # Errors
    /// The errors of [`Tensor::to_dtype`].
    pub fn to_dtype(&self, dtype: DType) -> Result<Tensor> {
        to_dtype().run(self, dtype)
    }
}

/// The loops and kernels of every pair.
pub(crate) mod pairs {
    use super::super::KERNELS;

    pointwise_macros::host! { (crate) (KERNELS) Conversions; }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::bits_of;

    #[test]
    fn every_pair_has_kernels() {
        for from in DType::ALL {
            for to in DType::ALL {
                let (from, to) = if from == to { (bits_of(from), bits_of(to)) } else { (from, to) };
                assert!(pairs::cpu(from, to).is_some(), "{from} {to}");
                let entries = pairs::entries(from, to).unwrap();
                for (found, class) in entries.iter().zip(["strided", "flat"]) {
                    assert_eq!(found.symbol(), format!("convert_{from}_{to}_{class}"));
                    assert!(super::super::embedded().is_empty() || found.is_embedded(), "{found:?}");
                }
            }
        }
    }
}
