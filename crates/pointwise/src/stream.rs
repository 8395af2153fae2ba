//! Streams: queues of a device's work.

use std::any::Any;
use std::ffi::c_void;
use std::fmt;
use std::ptr::null_mut;
use std::sync::Arc;

use crate::Device;
use crate::cuda::{self, Context, Graph, RawStream};
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
    /// `None` for the device's own, and on the CPU.
    shared: Option<Arc<RawStream>>,
}

impl Stream {
    /// A new stream, which waits for no other.
    ///
    /// # Errors
    /// The driver's.
    pub fn new(device: &Device) -> Result<Stream> {
        let shared = device.context().map(Context::new_stream).transpose()?;
        Ok(Stream { device: *device, shared })
    }

    /// The device's own stream.
    #[inline]
    pub(crate) fn own(device: Device) -> Stream {
        Stream { device, shared: None }
    }

    /// The stream, with its owner, unless it is the device's own.
    #[inline]
    pub(crate) fn shared(&self) -> Option<&Arc<RawStream>> {
        self.shared.as_ref()
    }

    /// The driver's stream; none on the CPU.
    #[inline]
    fn driver(&self) -> Option<(&'static Context, &RawStream)> {
        let context = self.device.context()?;
        Some((context, self.shared.as_deref().unwrap_or(context.own())))
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
    /// The driver is asked about a handle once, and the answer is remembered: making the object again for each call
    /// costs no driver call.
    ///
    /// # Errors
    /// A stream that is not of the device's primary context.
    ///
    /// # Safety
    /// `raw` must be a live stream, and stay alive while this object and its clones are used, and until tensors used on
    /// it have been dropped or waited for. If it is destroyed then, and the driver gives its handle to a new stream that
    /// comes here, too, that one must be of the same context and have the same flags (`CU_STREAM_NON_BLOCKING` or not).
    pub unsafe fn from_raw(device: &Device, raw: *mut c_void) -> Result<Stream> {
        // SAFETY: the caller's promise.
        unsafe { Stream::from_raw_keeping(device, raw, None) }
    }

    /// [`Stream::from_raw`], with the object that keeps the stream alive.
    ///
    /// # Safety
    /// The conditions of [`Stream::from_raw`] hold, but `keep` keeps the stream alive.
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
        if raw == context.own().raw() {
            return Ok(Stream::own(*device));
        }
        // SAFETY: the caller's promise.
        let shared = unsafe { RawStream::foreign(context, raw, keep) }?;
        Ok(Stream { device: *device, shared: Some(shared) })
    }

    /// The device.
    #[inline]
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// The driver's handle (`CUstream`); null on the CPU.
    #[inline]
    pub fn raw(&self) -> *mut c_void {
        self.driver().map_or(null_mut(), |(_, stream)| stream.raw())
    }

    /// True if this is its device's own stream.
    #[inline]
    pub fn is_own(&self) -> bool {
        self.shared.is_none()
    }

    /// Waits for the stream's work; of a stream that is being captured, for what was queued before.
    ///
    /// # Errors
    /// Errors of the work.
    pub fn synchronize(&self) -> Result<()> {
        self.driver().map_or(Ok(()), |(context, stream)| stream.synchronize(context))
    }

    /// Makes work queued here from now on wait for what is queued on `other` now. The host does not wait.
    ///
    /// # Errors
    /// [`ErrorKind::StreamCaptured`] while another thread captures one of them; the driver's.
    pub fn wait_for(&self, other: &Stream) -> Result<()> {
        match (self.driver(), other.driver()) {
            (Some(later), Some(earlier)) => cuda::stream_wait(later, earlier),
            // Work on the CPU is done already; work for the CPU is started by the host, which must wait itself.
            (_, None) => Ok(()),
            (None, Some(_)) => other.synchronize(),
        }
    }

    /// Records the work that `work` queues on the stream, and on streams that wait for it meanwhile, instead of running
    /// it. The graph owns the tensors' memory. Only calls that allocate nothing and wait for nothing can be recorded.
    ///
    /// It records the calls of the thread that called it. To allocate on that thread meanwhile, on any device and for any
    /// stream, is an error. So is work that other threads queue meanwhile on a stream that is captured:
    /// [`ErrorKind::StreamCaptured`]; on others they may allocate, copy and wait. Tensors dropped meanwhile, on any thread,
    /// are freed behind the work that uses them.
    ///
    /// ```no_run
    /// use pointwise::{Device, Stream, Tensor, kernels};
    ///
    /// # fn main() -> pointwise::Result<()> {
    /// let device = Device::cuda(0)?;
    /// let stream = Stream::new(&device)?;
    /// let mut x = Tensor::full(&device, -1.0_f32, [1024])?;
    /// let mut y = Tensor::empty(&device, x.dtype(), x.shape())?;
    /// let mut graph = stream.capture(|stream| kernels::relu().on(stream).run_into(&x, &mut y))?;
    /// x.copy_from_slice(&[2.0_f32; 1024])?; // done when it returns
    /// graph.launch(&stream)?;
    /// assert_eq!(y.to_vec::<f32>()?, [2.0; 1024]); // waits for the launch
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Errors of `work` and of the driver; the device is the CPU; something is being recorded already; a call that cannot be
    /// recorded has spoiled the recording.
    pub fn capture(&self, work: impl FnOnce(&Stream) -> Result<()>) -> Result<Graph> {
        let (context, stream) = self.driver().ok_or_else(|| ErrorKind::Unsupported {
            what: "a graph on the CPU".to_owned(),
            advice: "graphs are of CUDA devices; on the CPU call the ops again".to_owned(),
        })?;
        /// Ends the capture after a panic, too: left open it would spoil what follows.
        struct Open<'a>(&'static Context, &'a RawStream);
        impl Drop for Open<'_> {
            fn drop(&mut self) {
                drop(cuda::end_capture(self.0, self.1));
            }
        }
        cuda::begin_capture(context, stream)?;
        let open = Open(context, stream);
        work(self)?;
        std::mem::forget(open);
        cuda::end_capture(context, stream)
    }

    /// True if the stream is recording.
    ///
    /// # Errors
    /// The driver's.
    pub fn is_capturing(&self) -> Result<bool> {
        self.driver().map_or(Ok(false), |(context, stream)| stream.is_capturing(context))
    }
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stream").field("device", &self.device).field("raw", &self.raw()).finish()
    }
}
