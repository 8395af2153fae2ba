//! Streams of the driver: creation, order, foreign ones.

use std::ptr::null_mut;

use super::Context;
use super::event::RawEvent;
use super::graph::{captured, is_capturing};
use super::sys::{self, Handle, call};
use crate::error::{ErrorKind, Result};

/// A stream that is destroyed on drop; the driver finishes its work first.
pub(crate) struct OwnedStream {
    context: &'static Context,
    raw: Handle,
}

// SAFETY: the driver's handles may be used from any thread.
unsafe impl Send for OwnedStream {}
// SAFETY: as above.
unsafe impl Sync for OwnedStream {}

impl OwnedStream {
    pub(crate) fn new(context: &'static Context) -> Result<OwnedStream> {
        context.make_current()?;
        let mut raw = null_mut();
        // SAFETY: the context is current, the pointer is to a live handle.
        unsafe { call!(context.api, cuStreamCreate(&mut raw, sys::STREAM_NON_BLOCKING)) }?;
        Ok(OwnedStream { context, raw })
    }

    pub(crate) fn raw(&self) -> Handle {
        self.raw
    }
}

impl Drop for OwnedStream {
    fn drop(&mut self) {
        // SAFETY: the stream is live.
        let Ok(was_capturing) = (unsafe { is_capturing(self.context, self.raw) }) else {
            return;
        };
        // SAFETY: the stream was created here and is destroyed once. An error is one of earlier work.
        unsafe { (self.context.api.cuStreamDestroy_v2)(self.raw) };
        if was_capturing {
            captured(self.context);
        }
    }
}

/// Refuses a stream of another context than the device's primary one, and says whether the stream waits for no work but
/// its own.
///
/// # Errors
/// [`ErrorKind::Unsupported`], or the driver's.
///
/// # Safety
/// `raw` is a live stream, or null for the legacy default stream.
pub(crate) unsafe fn check_foreign(context: &Context, raw: Handle) -> Result<bool> {
    context.make_current()?;
    let (mut of, mut flags) = (null_mut(), 0);
    // SAFETY: the caller's promise; the pointers are to a live handle and an integer.
    unsafe {
        call!(context.api, cuStreamGetCtx(raw, &mut of))?;
        call!(context.api, cuStreamGetFlags(raw, &mut flags))?;
    }
    if of == context.raw {
        return Ok(flags & sys::STREAM_NON_BLOCKING != 0);
    }
    Err(ErrorKind::Unsupported {
        what: format!("a stream that is not of the primary context of cuda:{}", context.ordinal),
        advice: "name the device the stream is of, and create it in the device's primary context (as CUDA's runtime, \
                 cudarc and cust's Context::new do)"
            .to_owned(),
    }
    .into())
}

/// Waits for a stream's work.
///
/// # Errors
/// Those of the work.
///
/// # Safety
/// `raw` is a live stream of the context.
pub(crate) unsafe fn stream_synchronize(context: &Context, raw: Handle) -> Result<()> {
    context.make_current()?;
    // SAFETY: the caller's promise.
    unsafe { call!(context.api, cuStreamSynchronize(raw)) }
}

/// Makes work queued on `later` from now on wait for what is queued on `earlier` now.
///
/// # Errors
/// The driver's.
///
/// # Safety
/// Both are live streams, each of its context.
pub(crate) unsafe fn stream_wait(
    (later_context, later): (&Context, Handle),
    (earlier_context, earlier): (&'static Context, Handle),
) -> Result<()> {
    let event = RawEvent::new(earlier_context, RawEvent::NO_TIMING)?;
    // SAFETY: the caller's promise. The event may be destroyed before it is reached: the driver keeps what it needs.
    unsafe {
        event.record(earlier)?;
        later_context.make_current()?;
        call!(later_context.api, cuStreamWaitEvent(later, event.raw(), 0))
    }
}
