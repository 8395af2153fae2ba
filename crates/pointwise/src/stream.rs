//! Streams: the order in which a device does its work.

use std::any::Any;
use std::ffi::c_void;
use std::fmt;
use std::ptr::null_mut;
use std::sync::Arc;

use crate::Device;
use crate::cuda::{self, Context, Graph, OwnedStream};
use crate::error::{ErrorKind, Result};

/// A queue of work on a device. On the CPU, where a call's work is done when it returns, a stream does nothing.
///
/// Work on one stream is done in order. Work on two streams is not, unless [`Stream::wait_for`] orders it: if you use a
/// tensor on a second stream, you must order the two. Only the first use of a tensor away from its device's own stream,
/// its drop, and copies to the host are ordered by the crate.
///
/// ```
/// use pointwise::{Device, Stream, Tensor, kernels};
///
/// let device = Device::best()?;
/// let stream = Stream::new(&device)?;
/// let x = Tensor::full(&device, -1.0_f32, [1024])?;
/// let mut y = Tensor::empty(&device, x.dtype(), x.shape())?;
/// stream.wait_for(&device.stream())?; // which fills `x`
/// kernels::relu().on(&stream).run_into(&x, &mut y)?;
/// stream.synchronize()?;
/// # Ok::<(), pointwise::Error>(())
/// ```
///
/// On devices from sm_90 on, with a driver for CUDA 12.3 or newer, a kernel is launched while the previous one on the
/// stream is finishing (CUDA's programmatic dependent launch), and waits for it itself before it touches memory: a
/// chain of short calls takes half the time, in the same order. Graphs then have programmatic edges, which matters to
/// code that reads their edges, and in a profiler a kernel's time may begin before the previous one ends. Streams that
/// synchronise with CUDA's legacy default stream (that stream itself, and any created without `CU_STREAM_NON_BLOCKING`)
/// use ordinary launches. So does every stream if `POINTWISE_DEPENDENT_LAUNCH=0` is set when the driver is first used.
#[derive(Clone)]
pub struct Stream {
    device: Device,
    raw: *mut c_void,
    /// Whether it waits for no work but its own: kernels may then be launched early.
    non_blocking: bool,
    /// What keeps the handle alive: one of ours, or the object it came from.
    keep: Option<Arc<dyn Any + Send + Sync>>,
}

// SAFETY: the driver's handles may be used from any thread.
unsafe impl Send for Stream {}
// SAFETY: as above; nothing behind a shared reference changes.
unsafe impl Sync for Stream {}

impl Stream {
    /// A new stream, which waits for no other.
    ///
    /// # Errors
    /// The driver's.
    pub fn new(device: &Device) -> Result<Stream> {
        let Some(context) = device.context() else {
            return Ok(Stream::own(*device));
        };
        let owned = OwnedStream::new(context)?;
        Ok(Stream { device: *device, raw: owned.raw(), non_blocking: true, keep: Some(Arc::new(owned)) })
    }

    /// The device's own stream.
    #[inline]
    pub(crate) fn own(device: Device) -> Stream {
        let raw = device.context().map_or(null_mut(), Context::stream);
        Stream { device, raw, non_blocking: true, keep: None }
    }

    /// Refuses to be used with what is on another device.
    pub(crate) fn check_device(&self, device: &Device) -> Result<()> {
        if self.device == *device {
            return Ok(());
        }
        Err(ErrorKind::StreamDevice { expected: *device, got: self.device }.into())
    }

    /// A stream (`CUstream` or `cudaStream_t`) that other code created; null is CUDA's legacy default stream.
    ///
    /// # Errors
    /// A stream that is not of the device's primary context.
    ///
    /// # Safety
    /// `raw` must be a live stream, and stay alive until this object and its clones are gone, and until tensors used on
    /// it have been dropped or waited for.
    pub unsafe fn from_raw(device: &Device, raw: *mut c_void) -> Result<Stream> {
        // SAFETY: the caller's promise.
        unsafe { Stream::from_raw_keeping(device, raw, None) }
    }

    /// [`Stream::from_raw`], with the object that keeps the stream alive.
    ///
    /// # Safety
    /// As there, but for what `keep` ensures.
    pub(crate) unsafe fn from_raw_keeping(
        device: &Device,
        raw: *mut c_void,
        keep: Option<Arc<dyn Any + Send + Sync>>,
    ) -> Result<Stream> {
        let Some(context) = device.context() else {
            return Err(ErrorKind::Unsupported {
                what: "a raw stream on the CPU".to_owned(),
                advice: "name the CUDA device the stream is of".to_owned(),
            }
            .into());
        };
        // SAFETY: the caller's promise.
        let non_blocking = unsafe { cuda::check_foreign(context, raw) }?;
        Ok(Stream { device: *device, raw, non_blocking, keep })
    }

    /// The device.
    #[inline]
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// The driver's handle (`CUstream`); null on the CPU.
    #[inline]
    pub fn raw(&self) -> *mut c_void {
        self.raw
    }

    /// Whether this is its device's own stream.
    #[inline]
    pub fn is_own(&self) -> bool {
        self.device.context().is_none_or(|context| context.stream() == self.raw)
    }

    /// Whether it waits for no work but its own.
    #[inline]
    pub(crate) fn is_non_blocking(&self) -> bool {
        self.non_blocking
    }

    /// Waits for the stream's work.
    ///
    /// # Errors
    /// Those of the work.
    pub fn synchronize(&self) -> Result<()> {
        match self.device.context() {
            None => Ok(()),
            // SAFETY: the stream is live and of the context.
            Some(context) => unsafe { cuda::stream_synchronize(context, self.raw) },
        }
    }

    /// Makes work queued here from now on wait for what is queued on `other` now. The host does not wait.
    ///
    /// # Errors
    /// The driver's.
    pub fn wait_for(&self, other: &Stream) -> Result<()> {
        match (self.device.context(), other.device.context()) {
            // SAFETY: both streams are live, each of its device's context.
            (Some(later), Some(earlier)) => unsafe { cuda::stream_wait((later, self.raw), (earlier, other.raw)) },
            // Work on the CPU is done already; work for the CPU is started by the host, which must wait itself.
            (_, None) => Ok(()),
            (None, Some(_)) => other.synchronize(),
        }
    }

    /// Starts recording: what is queued on the stream goes into a graph instead of running. Only calls that allocate
    /// nothing and wait for nothing can be recorded. The recording must be ended on the same thread. Tensors dropped
    /// meanwhile, on any thread, are freed when it has ended.
    ///
    /// While it lasts no thread may wait for the whole device: the driver then spoils the recording, and ending it is
    /// the error. In this crate, tensors that were used on another stream than the device's own are waited for so, and
    /// memory of others: before they are copied, to the host ([`Tensor::to_vec`](crate::Tensor::to_vec)) or to another
    /// tensor, and before [`Tensor`](crate::Tensor)'s methods overwrite them.
    ///
    /// # Errors
    /// The device is the CPU, or the driver's.
    pub fn begin_capture(&self) -> Result<()> {
        cuda::begin_capture(self.capturable()?, self)
    }

    /// Ends recording.
    ///
    /// # Errors
    /// Nothing was being recorded, or a call that cannot be recorded has spoiled the recording.
    pub fn end_capture(&self) -> Result<Graph> {
        cuda::end_capture(self.capturable()?, self)
    }

    /// Whether the stream is recording.
    ///
    /// # Errors
    /// The driver's.
    pub fn is_capturing(&self) -> Result<bool> {
        self.device
            .context()
            // SAFETY: the stream is live and of the context.
            .map_or(Ok(false), |context| unsafe { cuda::is_capturing(context, self.raw) })
    }

    fn capturable(&self) -> Result<&'static Context> {
        Ok(self.device.context().ok_or_else(|| ErrorKind::Unsupported {
            what: "a graph on the CPU".to_owned(),
            advice: "graphs are of CUDA devices; on the CPU call the ops again".to_owned(),
        })?)
    }
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stream")
            .field("device", &self.device)
            .field("raw", &self.raw)
            .field("kept", &self.keep.is_some())
            .finish()
    }
}
