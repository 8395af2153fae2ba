//! ndarray's arrays as views on the CPU, and tensors as arrays.
//!
//! A view of an array copies nothing, whatever its strides are:
//!
//! ```
//! use ndarray::{Array2, s};
//! use pointwise::{TensorView, TensorViewMut, kernels};
//!
//! # fn main() -> pointwise::Result<()> {
//! let x = Array2::from_shape_fn((4, 6), |(i, j)| i as f32 - j as f32);
//! let mut y = Array2::<f32>::zeros((6, 2));
//! let every_second = x.slice(s![..;2, ..]);
//! kernels::relu().run_into(TensorView::try_from(every_second.t())?, TensorViewMut::try_from(y.view_mut())?)?;
//! assert_eq!(y[[0, 1]], 2.0);
//! # Ok(())
//! # }
//! ```
//!
//! [`Tensor::from_ndarray`] and [`Tensor::to_ndarray`] copy to any device and back.

use ::ndarray::{ArrayD, ArrayView, ArrayViewMut, CowArray, Dimension, IxDyn};

use crate::error::Result;
use crate::{Device, Scalar, Tensor, TensorView, TensorViewMut};

/// The strides, in elements.
fn strides(of: &[isize]) -> Vec<i64> {
    of.iter().map(|&stride| stride as i64).collect()
}

impl<'a, T: Scalar, D: Dimension> TryFrom<ArrayView<'a, T, D>> for TensorView<'a> {
    type Error = crate::Error;

    /// Views an array's memory, on the CPU.
    ///
    /// # Errors
    /// More than 8 dimensions.
    fn try_from(array: ArrayView<'a, T, D>) -> Result<Self> {
        let strides = strides(array.strides());
        // SAFETY: the array has valid elements of `T` at its strides, which nothing writes for 'a. The CPU's work is done
        // when a call returns.
        unsafe { TensorView::from_raw_parts(&Device::cpu(), array.as_ptr(), T::DTYPE, array.shape(), &strides) }
    }
}

impl<'a, T: Scalar, D: Dimension> TryFrom<ArrayViewMut<'a, T, D>> for TensorViewMut<'a> {
    type Error = crate::Error;

    /// Views an array's memory to write it, on the CPU.
    ///
    /// # Errors
    /// More than 8 dimensions; strides that let two indices name the same element.
    fn try_from(mut array: ArrayViewMut<'a, T, D>) -> Result<Self> {
        let (pointer, strides) = (array.as_mut_ptr(), strides(array.strides()));
        // SAFETY: the array has valid elements of `T` at its strides, and is the only way to them for 'a. Ops write
        // valid elements. The CPU's work is done when a call returns.
        unsafe { TensorViewMut::from_raw_parts(&Device::cpu(), pointer, T::DTYPE, array.shape(), &strides) }
    }
}

impl Tensor {
    /// Copies an array to a device, in row-major order.
    ///
    /// # Errors
    /// More than 8 dimensions; out of memory; the driver's.
    pub fn from_ndarray<T: Scalar, D: Dimension>(device: &Device, array: ArrayView<'_, T, D>) -> Result<Tensor> {
        // Borrowed where the elements lie one after another already.
        let array: CowArray<'_, T, D> = array.as_standard_layout();
        let shape = array.shape();
        match array.as_slice() {
            Some(elements) => Tensor::from_slice(device, elements, shape),
            None => Tensor::from_slice(device, &array.iter().copied().collect::<Vec<T>>(), shape),
        }
    }

    /// Copies the elements to an array on the host. Waits for the work that writes them.
    ///
    /// # Errors
    /// Another element type than `T`; out of memory; the driver's.
    pub fn to_ndarray<T: Scalar>(&self) -> Result<ArrayD<T>> {
        self.view().to_ndarray()
    }
}

impl TensorView<'_> {
    /// Copies the elements to an array on the host: see [`Tensor::to_ndarray`].
    ///
    /// # Errors
    /// The errors of [`Tensor::to_ndarray`].
    pub fn to_ndarray<T: Scalar>(&self) -> Result<ArrayD<T>> {
        let (elements, shape) = (self.to_vec::<T>()?, IxDyn(self.shape()));
        ArrayD::from_shape_vec(shape, elements).map_err(|error| {
            // Both count the same elements; an array of more than `isize::MAX` bytes has no memory.
            crate::ErrorKind::Unsupported {
                what: format!("an array of shape {}: {error}", self.shape()),
                advice: "take its elements by to_vec()".to_owned(),
            }
            .into()
        })
    }
}
