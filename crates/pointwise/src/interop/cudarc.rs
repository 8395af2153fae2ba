//! cudarc's buffers as views, and its streams.
//!
//! cudarc orders the use of a buffer on several streams by events: code that uses a buffer on a stream first lets the
//! stream wait for the buffer's events, and afterwards records an event of its own. [`view`] and [`view_mut`] do the
//! former, and dropping what they return does the latter. That is why they take the stream the work will run on.
//!
//! ```no_run
//! use cudarc::driver::CudaContext;
//! use pointwise::interop;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let context = CudaContext::new(0)?;
//! let cu_stream = context.new_stream()?;
//! let x = cu_stream.clone_htod(&[1.0_f32, -2.0, 3.0, -4.0])?;
//! let mut y = cu_stream.alloc_zeros::<f32>(4)?;
//!
//! let stream = interop::cudarc::stream(&cu_stream)?;
//! {
//!     // SAFETY: all work with the two is queued on `stream` before this block ends and drops them.
//!     let (x, mut y) = unsafe {
//!         (interop::cudarc::view(&x, &cu_stream, [2, 2])?, interop::cudarc::view_mut(&mut y, &cu_stream, [2, 2])?)
//!     };
//!     let (x, y) = (x.view(), y.view_mut()?);
//!     // Queue ops on `stream` that read `x` and write `y`.
//! #   let _ = (x, y);
//! }
//! let result = cu_stream.clone_dtoh(&y)?;
//! # let _ = result;
//! # Ok(())
//! # }
//! ```
//!
//! While a stream is captured into a graph, cudarc must not track events (`CudaContext::disable_event_tracking`), since
//! a capture cannot wait for events recorded outside it.
//!
//! The program's `cudarc` must be of the same minor version as this crate's (0.19). The program chooses the CUDA
//! version and the way to find the driver by cudarc's features (`cuda-12080`, `dynamic-linking`); this crate sets only
//! cudarc's fallbacks.
//!
//! cudarc's FP8 types are not this crate's: make views of such buffers, and of bytes, with
//! [`TensorView::from_raw_parts`](crate::TensorView::from_raw_parts).
//!
//! cudarc's kernels take this crate's tensors by address: `builder.arg(&tensor.device_ptr())`.

use std::sync::Arc;

use ::cudarc::driver::sys::CUcontext;
use ::cudarc::driver::{CudaContext, CudaStream, DevicePtr, DevicePtrMut, SyncOnDrop};

use super::{Foreign, check_len};
use crate::error::{ErrorKind, Result};
use crate::{Device, Scalar, Shape, Stream, tensor::IntoShape};

/// The device of a cudarc context.
///
/// # Errors
/// A context that is not the device's primary one; the errors of [`Device::cuda`].
pub fn device(context: &CudaContext) -> Result<Device> {
    let device = Device::cuda(context.ordinal())?;
    check_context(&device, context.cu_ctx())?;
    Ok(device)
}

/// cudarc's stream as one of this crate's, which keeps it alive.
///
/// cudarc's per-thread default stream is a different stream on every thread: use the result on this thread only.
///
/// # Errors
/// A stream that is not of its device's primary context; errors of the driver.
pub fn stream(stream: &Arc<CudaStream>) -> Result<Stream> {
    let device = device(stream.context())?;
    // SAFETY: the `Arc` keeps the stream alive; one that cudarc only wraps is kept by its owner, as cudarc demands.
    unsafe { Stream::from_raw_keeping(&device, stream.cu_stream().cast(), Some(Arc::clone(stream) as _)) }
}

/// Borrows a cudarc buffer (`CudaSlice`, `CudaView`, `CudaViewMut`, `UnifiedSlice`) of `T` for reading on `stream`, as
/// a contiguous tensor of `shape`. Makes the stream wait for the work that writes the buffer, as far as cudarc tracks
/// it. Dropping the result tells cudarc that the work was queued.
///
/// # Errors
/// A buffer or stream that is not of its device's primary context, or of two devices; a shape of another number of
/// elements; errors of the driver, also earlier ones that cudarc has kept.
///
/// # Safety
/// The view may be used only by work queued on `stream` ([`stream()`]) before the returned object is dropped, and by
/// copies to the host, and the object must be dropped. Where cudarc does not track the buffer (event tracking is off,
/// or was when the buffer was made; the writer was no call of cudarc's), `stream` must be in order with the work that
/// wrote it and with what frees it.
pub unsafe fn view<'a, T: Scalar, S: DevicePtr<T>>(
    buffer: &'a S,
    stream: &'a CudaStream,
    shape: impl IntoShape,
) -> Result<Foreign<'a, SyncOnDrop<'a>>> {
    let shape = shape.into_shape()?;
    let device = check::<T, S>(buffer, stream, &shape)?;
    let (address, sync) = buffer.device_ptr(stream);
    check_waits(&device, stream.context())?;
    // SAFETY: the buffer has the elements of the shape and is borrowed for 'a; the rest is the caller's promise.
    unsafe { Foreign::from_raw_parts(&device, address, T::DTYPE, shape, &shape.contiguous_strides(), sync) }
}

/// Borrows a cudarc buffer (`CudaSlice`, `CudaViewMut`, `UnifiedSlice`) of `T` for writing on `stream`, as a contiguous
/// tensor of `shape`. Makes the stream wait for the work that uses the buffer, as far as cudarc tracks it.
/// Dropping the result tells cudarc that the work was queued.
///
/// # Errors
/// The errors of [`view`].
///
/// # Safety
/// The conditions of [`view`], where `stream` must be in order with earlier readers, too.
pub unsafe fn view_mut<'a, T: Scalar, S: DevicePtrMut<T>>(
    buffer: &'a mut S,
    stream: &'a CudaStream,
    shape: impl IntoShape,
) -> Result<Foreign<'a, SyncOnDrop<'a>>> {
    let shape = shape.into_shape()?;
    let device = check::<T, S>(buffer, stream, &shape)?;
    let (address, sync) = buffer.device_ptr_mut(stream);
    check_waits(&device, stream.context())?;
    // SAFETY: the buffer has the elements of the shape and is exclusively borrowed for 'a; the rest is the caller's
    // promise.
    unsafe { Foreign::from_raw_parts_mut(&device, address, T::DTYPE, shape, &shape.contiguous_strides(), sync) }
}

fn check<T: Scalar, S: ::cudarc::driver::DeviceSlice<T>>(
    buffer: &S,
    stream: &CudaStream,
    shape: &Shape,
) -> Result<Device> {
    check_len(shape, buffer.len())?;
    let at = device(buffer.stream().context())?;
    let runs_on = device(stream.context())?;
    if at != runs_on {
        return Err(ErrorKind::DeviceMismatch { what: "cudarc's buffer".to_owned(), expected: runs_on, got: at }.into());
    }
    Ok(at)
}

fn check_context(device: &Device, context: CUcontext) -> Result<()> {
    if device.context().is_some_and(|primary| primary.raw() == context.cast()) {
        return Ok(());
    }
    Err(ErrorKind::Unsupported {
        what: format!("a cudarc context that is not the primary one of {device}"),
        advice: "make it with CudaContext::new".to_owned(),
    }
    .into())
}

/// Reports the errors that cudarc keeps when it waits for events: the order does not hold after such an error.
fn check_waits(device: &Device, context: &CudaContext) -> Result<()> {
    match (context.check_err(), device.context()) {
        (Err(error), Some(primary)) => primary.check("an earlier call of cudarc", error.0 as i32),
        _ => Ok(()),
    }
}
