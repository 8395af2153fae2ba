//! Events: points in a stream's work that can be waited for and timed.

use std::fmt;
use std::ptr::null_mut;

use super::Context;
use super::sys::{Handle, call, code};
use crate::error::{ErrorKind, Result};
use crate::{Device, Stream};

/// An event, destroyed on drop.
pub(super) struct RawEvent {
    context: &'static Context,
    raw: Handle,
}

// SAFETY: the driver's handles may be used from any thread.
unsafe impl Send for RawEvent {}
// SAFETY: as above.
unsafe impl Sync for RawEvent {}

impl RawEvent {
    /// `CU_EVENT_DISABLE_TIMING`: cheaper, for order alone.
    pub(super) const NO_TIMING: u32 = 2;

    pub(super) fn new(context: &'static Context, flags: u32) -> Result<RawEvent> {
        let _current = context.make_current()?;
        let mut raw = null_mut();
        // SAFETY: the context is current, the pointer is to a live handle.
        unsafe { call!(context.api, cuEventCreate(&mut raw, flags)) }?;
        Ok(RawEvent { context, raw })
    }

    /// # Safety
    /// `stream` is a live stream of the event's context.
    pub(super) unsafe fn record(&self, stream: Handle) -> Result<()> {
        let _current = self.context.make_current()?;
        // SAFETY: the caller's promise.
        unsafe { call!(self.context.api, cuEventRecord(self.raw, stream)) }
    }

    pub(super) fn raw(&self) -> Handle {
        self.raw
    }

    /// True if the work before it is done. `None` if the driver does not say: a capture may have recorded the event.
    pub(super) fn is_done(&self) -> Option<bool> {
        let _current = self.context.make_current().ok()?;
        // SAFETY: the event is live.
        match unsafe { (self.context.api.cuEventQuery)(self.raw) } {
            0 => Some(true),
            code::NOT_READY => Some(false),
            _ => None,
        }
    }

    /// Waits, on the host, for the work before it.
    pub(super) fn synchronize(&self) -> Result<()> {
        let _current = self.context.make_current()?;
        // SAFETY: the event is live.
        unsafe { call!(self.context.api, cuEventSynchronize(self.raw)) }
    }
}

impl Drop for RawEvent {
    fn drop(&mut self) {
        if let Ok(_current) = self.context.make_current() {
            // SAFETY: the event was created here and is destroyed once.
            unsafe { (self.context.api.cuEventDestroy_v2)(self.raw) };
        }
    }
}

/// A point in a stream's work, to be timed.
pub struct Event(RawEvent);

impl Event {
    /// An event of a CUDA device.
    ///
    /// # Errors
    /// The device is the CPU, or the driver's.
    pub fn new(device: &Device) -> Result<Event> {
        let context = device.context().ok_or_else(|| ErrorKind::Unsupported {
            what: "an event on the CPU".to_owned(),
            advice: "CPU work is done when the call returns: time it with std::time::Instant".to_owned(),
        })?;
        Ok(Event(RawEvent::new(context, 0)?))
    }

    /// Marks the work queued on `stream` so far.
    ///
    /// # Errors
    /// A stream of another device, or one that another thread is capturing; the driver's.
    pub fn record(&self, stream: &Stream) -> Result<()> {
        stream.check_device(&Device::of(self.0.context))?;
        let held = self.0.context.hold(stream.shared())?;
        // SAFETY: the stream is live and, as its device says, of the event's context.
        unsafe { self.0.record(held.raw()) }
    }

    /// Waits until the work marked is done.
    ///
    /// # Errors
    /// Errors of the work.
    pub fn synchronize(&self) -> Result<()> {
        self.0.synchronize()
    }

    /// Milliseconds from `start` to this event, on the device's clock (steps of about half a microsecond). Both must be
    /// recorded and done.
    ///
    /// # Errors
    /// The driver's, if they are not.
    pub fn milliseconds_since(&self, start: &Event) -> Result<f32> {
        let _current = self.0.context.make_current()?;
        let mut milliseconds = 0.0;
        // SAFETY: both events are live, the pointer is to a live float.
        unsafe { call!(self.0.context.api, cuEventElapsedTime(&mut milliseconds, start.0.raw, self.0.raw)) }?;
        Ok(milliseconds)
    }
}

impl fmt::Debug for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Event({})", Device::of(self.0.context))
    }
}
