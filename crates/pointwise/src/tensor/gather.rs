//! Copies views to the host and into new tensors: the elements in row-major order, for any strides.

use pointwise_core::{DType, Scalar};

use super::{Tensor, TensorView, TensorViewMut, byte_len};
use crate::cuda;
use crate::error::{ErrorKind, Result};
use crate::shape::{MAX_RANK, Shape};

impl TensorView<'_> {
    /// Copies the elements, in row-major order. Waits for the work that writes them.
    ///
    /// # Errors
    /// Another element type than `T` ([`TensorView::to_dtype`] converts), and the errors of [`TensorView::to_bytes`].
    pub fn to_vec<T: Scalar>(&self) -> Result<Vec<T>> {
        if self.dtype() != T::DTYPE {
            return Err(ErrorKind::DType {
                op: format!("to_vec::<{}>", T::DTYPE),
                got: self.dtype(),
                allowed: vec![T::DTYPE],
            }
            .into());
        }
        let bytes = self.to_bytes()?;
        let len = self.numel();
        let mut data = Vec::<T>::new();
        reserve(&mut data, len)?;
        // SAFETY: there are `len` elements of `T`'s representation in `bytes`, bools as 0 and 1, and as much room in
        // `data`.
        unsafe {
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), data.as_mut_ptr().cast(), bytes.len());
            data.set_len(len);
        }
        Ok(data)
    }

    /// Returns the only element. Waits for the work that writes it.
    ///
    /// ```
    /// use pointwise::{Device, Tensor};
    ///
    /// let x = Tensor::from_slice(&Device::cpu(), &[1.5_f32, 2.5], [2])?;
    /// assert_eq!(x.select(0, 1)?.item::<f32>()?, 2.5);
    /// # Ok::<(), pointwise::Error>(())
    /// ```
    ///
    /// # Errors
    /// Another number of elements than one, and the errors of [`TensorView::to_vec`].
    pub fn item<T: Scalar>(&self) -> Result<T> {
        let several = || {
            let what = "item (takes a tensor of one element; select() makes a view of one)".to_owned();
            ErrorKind::ShapeMismatch { what, expected: Shape::SCALAR, got: *self.shape() }.into()
        };
        if self.numel() == 1 { self.to_vec::<T>()?.pop().ok_or_else(several) } else { Err(several()) }
    }

    /// Copies the elements' bytes, in row-major order. Waits for the work that writes them. A bool becomes 0 or 1: 1
    /// for any byte but 0.
    ///
    /// # Errors
    /// Out of memory; the errors of the work.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let mut bytes = match self.device().context() {
            // SAFETY: the elements lie where the layout says, initialised, and are not written meanwhile. Bytes between
            // them may belong to others.
            None => unsafe { self.gather(self.as_ptr()) }?,
            Some(context) => {
                let bytes = self.span_bytes(context)?;
                if self.is_contiguous() {
                    bytes
                } else {
                    let first = self.address() - self.span().0;
                    // SAFETY: the bytes go from the lowest element to the highest.
                    unsafe { self.gather(bytes.as_ptr().wrapping_add(first)) }?
                }
            }
        };
        if self.dtype() == DType::Bool {
            bytes.iter_mut().for_each(|byte| *byte = u8::from(*byte != 0));
        }
        Ok(bytes)
    }

    /// Makes a new tensor with the elements of this view, on the same device. On a GPU it copies a contiguous view as
    /// memory, and any other by one launch of the kernel of [`TensorView::copy_into`].
    ///
    /// # Errors
    /// Out of memory; a missing kernel; errors of the driver.
    pub fn to_tensor(&self) -> Result<Tensor> {
        let (device, dtype) = (self.device(), self.dtype());
        match device.context() {
            Some(context) if self.is_contiguous() => {
                let tensor = Tensor::empty(device, dtype, self.shape())?;
                let (held, bytes) = (self.hold_own(context)?, byte_len(dtype, self.shape())?);
                // SAFETY: the view has and the new tensor takes that many bytes; the own stream waits for the others.
                unsafe { cuda::copy_within(&held, tensor.device_ptr(), self.device_ptr(), bytes) }?;
                Ok(tensor)
            }
            context => {
                let mut tensor = Tensor::empty(device, dtype, self.shape())?;
                if let Some(context) = context {
                    drop(self.hold_own(context)?);
                }
                self.copy_into(&mut tensor)?;
                Ok(tensor)
            }
        }
    }

    /// Copies the elements to `y`, which may have any strides, like [`ConvertKernel`](crate::kernel::ConvertKernel): in
    /// one launch, on the device's own stream. Allocates nothing and waits for nothing. On another stream, where a CUDA
    /// graph can capture it, `kernels::to_dtype().on(&stream).run_into(x, y)` does the same.
    ///
    /// ```
    /// use pointwise::{DType, Device, Tensor};
    ///
    /// let x = Tensor::from_slice(&Device::cpu(), &[1, 2, 3, 4, 5, 6], [2, 3])?;
    /// let mut y = Tensor::zeros(&Device::cpu(), DType::I32, [3, 4])?;
    /// x.view().transpose(0, 1)?.copy_into(y.view_mut()?.narrow(1, 1, 2)?)?;
    /// assert_eq!(y.to_vec::<i32>()?, [0, 1, 4, 0, 0, 2, 5, 0, 0, 3, 6, 0]);
    /// # Ok::<(), pointwise::Error>(())
    /// ```
    ///
    /// # Errors
    /// Another element type, shape or device of `y`; memory shared with it by another view; a missing kernel; errors of
    /// the driver.
    pub fn copy_into<'a>(&self, y: impl Into<TensorViewMut<'a>>) -> Result<()> {
        let y = y.into();
        if y.dtype() != self.dtype() {
            // Without this check it would be a conversion.
            let op = format!("copy_into from {}", self.dtype());
            return Err(ErrorKind::DType { op, got: y.dtype(), allowed: vec![self.dtype()] }.into());
        }
        crate::kernel::ConvertKernel::new().run_into(*self, y)
    }

    /// Copies the bytes from the lowest to the highest element out of a device's memory.
    fn span_bytes(&self, context: &'static cuda::Context) -> Result<Vec<u8>> {
        let (start, end) = self.span();
        let len = end.wrapping_sub(start);
        let mut bytes = Vec::new();
        reserve(&mut bytes, len)?;
        if len == 0 {
            return Ok(bytes);
        }
        // SAFETY: shape and strides reach only memory of the view; the copy waits for other streams' work on it; `bytes`
        // has the room. The driver reads, not this program: bytes between the elements may belong to others.
        unsafe { cuda::copy_out(context, bytes.as_mut_ptr(), start as u64, len, self.usage()) }?;
        // SAFETY: `len` bytes were written.
        unsafe { bytes.set_len(len) };
        Ok(bytes)
    }

    /// Returns the elements' bytes in row-major order.
    ///
    /// # Safety
    /// The view's first element lies at `first`, and the others where its strides say, readable and initialised.
    unsafe fn gather(&self, first: *const u8) -> Result<Vec<u8>> {
        let (dims, strides, dtype) = (self.shape().dims(), self.strides(), self.dtype());
        let mut out = Vec::new();
        reserve(&mut out, byte_len(dtype, self.shape())?)?;
        if self.numel() == 0 {
            return Ok(out);
        }
        // The innermost dimension, or all of a contiguous view, as one run.
        let (outer, run, step) = match dims.len().checked_sub(1) {
            _ if self.is_contiguous() => (0, self.numel(), 1),
            None => (0, 1, 1),
            Some(inner) => (inner, dims[inner], strides[inner]),
        };
        let mut append = |offset: i64, elements: usize| {
            let at = first.wrapping_offset(dtype.offset(offset) as isize);
            // Fits, as all elements do.
            let bytes = dtype.bytes_of(elements).unwrap_or_default();
            // SAFETY: the caller's promise.
            out.extend_from_slice(unsafe { std::slice::from_raw_parts(at, bytes) });
        };
        let mut index = [0_usize; MAX_RANK];
        let mut offset = 0_i64;
        loop {
            if step == 1 {
                append(offset, run);
            } else {
                (0..run as i64).for_each(|i| append(offset + i * step, 1));
            }
            // Advance like an odometer, the last of the outer dimensions first.
            let mut dim = outer;
            loop {
                let Some(next) = dim.checked_sub(1) else {
                    return Ok(out);
                };
                dim = next;
                index[dim] += 1;
                offset += strides[dim];
                if index[dim] < dims[dim] {
                    break;
                }
                offset -= strides[dim] * dims[dim] as i64;
                index[dim] = 0;
            }
        }
    }
}

/// Reserves room for `len` elements: a view that repeats its elements may need more than there is.
fn reserve<T>(data: &mut Vec<T>, len: usize) -> Result<()> {
    Ok(data.try_reserve_exact(len).map_err(|_| ErrorKind::OutOfMemory {
        asked: len.saturating_mul(size_of::<T>()),
        free: 0,
        total: 0,
        device: crate::Device::cpu(),
    })?)
}
