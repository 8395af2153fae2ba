//! cust's buffers as views, and its streams.
//!
//! ```no_run
//! use std::sync::Arc;
//! use cust::context::CurrentContext;
//! use cust::prelude::{DeviceBuffer, Stream, StreamFlags};
//! use pointwise::{Device, interop};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let _context = cust::quick_init()?;
//! let device = Device::cuda(0)?;
//! let cu_stream = Arc::new(Stream::new(StreamFlags::NON_BLOCKING, None)?);
//! let x = DeviceBuffer::from_slice(&[1.0_f32, -2.0, 3.0, -4.0])?;
//! let mut y = DeviceBuffer::<f32>::zeroed(4)?;
//! // cust's copies run on the default stream, which a non-blocking stream does not wait for.
//! CurrentContext::synchronize()?;
//!
//! let stream = interop::cust::stream(&device, &cu_stream)?;
//! // SAFETY: the buffers are written, and all work with the views is queued on `stream` and waited for below.
//! let (x, y_view) = unsafe {
//!     (interop::cust::view(&device, &x, [2, 2])?, interop::cust::view_mut(&device, &mut y, [2, 2])?)
//! };
//! // Queue ops on `stream` that read `x` and write `y_view`.
//! # let _ = (x, y_view);
//! stream.synchronize()?;
//! let result = y.as_host_vec()?;
//! # let _ = result;
//! # Ok(())
//! # }
//! ```
//!
//! # Building
//!
//! Unlike the rest of this crate, cust links `libcuda` when a program is built, and its build script looks for a CUDA
//! toolkit: in `CUDA_LIBRARY_PATH` (a directory with a `lib64` in it), `/opt/cuda`, `/usr/local/cuda`,
//! `/usr/local/cuda-*`; on Windows in `CUDA_PATH`. Without one it fails with "Could not find a cuda installation". The
//! toolkit's `lib64/stubs` are enough for linking, so no GPU is needed to build, but the program does not start without
//! a driver, not even to use the CPU. `DOCS_RS=1 cargo check --features cust` checks this module without a toolkit.
//!
//! cust's f16 and bf16 are types of `half` 1, this crate's are types of `half` 2. Make views of such buffers with
//! [`TensorView::from_raw_parts`], which takes `buffer.as_device_ptr().as_raw()`.

use std::sync::Arc;

use ::cust::memory::{DeviceCopy, DeviceSlice};

use super::check_len;
use crate::error::{ErrorKind, Result};
use crate::{Device, Scalar, Shape, Stream, TensorView, TensorViewMut, tensor::IntoShape};

/// cust's stream as one of this crate's, which keeps it alive.
///
/// # Errors
/// A stream that is not of the device's primary context; errors of the driver.
pub fn stream(device: &Device, stream: &Arc<::cust::stream::Stream>) -> Result<Stream> {
    // SAFETY: the `Arc` keeps the stream alive.
    unsafe { Stream::from_raw_keeping(device, stream.as_inner().cast(), Some(Arc::clone(stream) as _)) }
}

/// A cust buffer (`DeviceSlice`, or a `DeviceBuffer`, which is one by reference) to read, as a contiguous tensor of
/// `shape`.
///
/// # Errors
/// A buffer that is not of the device's primary context; a shape of another number of elements; errors of the driver.
///
/// # Safety
/// For `'a`, the elements are initialised, and work that writes the buffer is done or in stream
/// order with the work that reads the view. cust's copies and fills count as work on the default stream, which streams
/// made with `NON_BLOCKING` and this crate's own do not wait for: synchronise first. Work with the view is done, or
/// will be waited for, before the buffer is freed.
pub unsafe fn view<'a, T: Scalar + DeviceCopy>(
    device: &Device,
    buffer: &'a DeviceSlice<T>,
    shape: impl IntoShape,
) -> Result<TensorView<'a>> {
    let shape = shape.into_shape()?;
    let address = check(device, buffer, &shape)?;
    // SAFETY: the buffer has the elements of the shape and is borrowed for 'a; the rest is the caller's promise.
    unsafe { TensorView::from_raw_parts(device, address, T::DTYPE, shape, &shape.contiguous_strides()) }
}

/// A cust buffer to write, as a contiguous tensor of `shape`.
///
/// # Errors
/// The errors of [`view`].
///
/// # Safety
/// The conditions of [`view`], and work that reads the buffer is done, or in stream order with the work that writes the
/// view.
pub unsafe fn view_mut<'a, T: Scalar + DeviceCopy>(
    device: &Device,
    buffer: &'a mut DeviceSlice<T>,
    shape: impl IntoShape,
) -> Result<TensorViewMut<'a>> {
    let shape = shape.into_shape()?;
    let address = check(device, buffer, &shape)?;
    // SAFETY: the buffer has the elements of the shape and is exclusively borrowed for 'a; the rest is the caller's
    // promise.
    unsafe { TensorViewMut::from_raw_parts(device, address, T::DTYPE, shape, &shape.contiguous_strides()) }
}

/// Returns the address of a buffer that has as many elements as the shape and is of the device's primary context.
fn check<T: DeviceCopy>(device: &Device, buffer: &DeviceSlice<T>, shape: &Shape) -> Result<u64> {
    check_len(shape, buffer.len())?;
    let context = device.context().ok_or_else(|| ErrorKind::Unsupported {
        what: "a cust buffer on the CPU".to_owned(),
        advice: "name the CUDA device the buffer is on".to_owned(),
    })?;
    let address = buffer.as_device_ptr().as_raw();
    // Without elements there need not be an allocation to ask about.
    if !buffer.is_empty() {
        context.check_address(address)?;
    }
    Ok(address)
}
