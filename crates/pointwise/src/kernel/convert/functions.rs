//! The conversions as functions of the API: of modules, tensors and views.

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
pub(crate) mod ops {
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
