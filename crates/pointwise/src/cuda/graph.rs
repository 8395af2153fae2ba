//! CUDA graphs: work recorded once, launched many times.

use std::ffi::c_int;
use std::fmt;
use std::ptr::null_mut;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use super::Context;
use super::sys::{self, Handle, call};
use crate::error::Result;
use crate::{Device, Stream};

/// Work captured from a stream ([`Stream::begin_capture`], [`Stream::end_capture`]), ready to launch as one.
pub struct Graph {
    context: &'static Context,
    exec: Handle,
}

// SAFETY: the driver's handles may be sent to any thread. Not `Sync`: one thread at a time may launch a graph.
unsafe impl Send for Graph {}

pub(crate) fn begin_capture(context: &Context, stream: &Stream) -> Result<()> {
    context.make_current()?;
    // Counted before it begins: from here on tensors are dropped without waiting for the device; who waits for it just
    // now has this lock.
    let dropped = context.dropped.lock().unwrap_or_else(PoisonError::into_inner);
    context.captures.fetch_add(1, Ordering::AcqRel);
    drop(dropped);
    // SAFETY: the stream is live and of the context.
    let begun = unsafe { call!(context.api, cuStreamBeginCapture_v2(stream.raw(), sys::CAPTURE_THREAD_LOCAL)) };
    if begun.is_err() {
        context.captures.fetch_sub(1, Ordering::AcqRel);
    }
    begun
}

/// Takes note that a capture is over.
pub(super) fn captured(context: &Context) {
    // Not below 0: it may have been begun by other code.
    let less = |captures: usize| captures.checked_sub(1);
    let _ = context.captures.fetch_update(Ordering::AcqRel, Ordering::Acquire, less);
    context.free_dropped();
}

/// Whether a stream is being captured, be it that the capture is spoiled already.
///
/// # Errors
/// The driver's.
///
/// # Safety
/// `raw` is a live stream of the context.
pub(crate) unsafe fn is_capturing(context: &Context, raw: Handle) -> Result<bool> {
    context.make_current()?;
    let mut status = 0;
    // SAFETY: the caller's promise; the pointer is to a live integer.
    unsafe { call!(context.api, cuStreamIsCapturing(raw, &mut status)) }?;
    Ok(status != 0)
}

pub(crate) fn end_capture(context: &'static Context, stream: &Stream) -> Result<Graph> {
    context.make_current()?;
    let mut graph = null_mut();
    let mut exec = null_mut();
    // SAFETY: the stream is live and of the context.
    let was_capturing = unsafe { is_capturing(context, stream.raw()) }?;
    // SAFETY: as above; the pointer is to a live handle.
    let ended = unsafe { call!(context.api, cuStreamEndCapture(stream.raw(), &mut graph)) };
    // An error ends a capture or does not: ask. If that fails too, the device is lost, and no capture matters any more.
    // SAFETY: the stream is live and of the context.
    if was_capturing && !unsafe { is_capturing(context, stream.raw()) }.unwrap_or(false) {
        captured(context);
    }
    ended?;
    // SAFETY: the pointer is to a live handle; the captured graph is copied by the instantiation and destroyed once.
    unsafe {
        let made = call!(context.api, cuGraphInstantiateWithFlags(&mut exec, graph, 0));
        if !graph.is_null() {
            (context.api.cuGraphDestroy)(graph);
        }
        made?;
    }
    Ok(Graph { context, exec })
}

/// While it lives, what this thread does is no part of the captures under way, so that it may load kernels and wait for
/// streams that are not captured.
pub(super) struct Relaxed<'a> {
    context: &'a Context,
    before: c_int,
}

impl<'a> Relaxed<'a> {
    pub(super) fn new(context: &'a Context) -> Result<Self> {
        let mut mode = sys::CAPTURE_RELAXED;
        // SAFETY: the pointer is to a live integer, which gets the mode of before.
        unsafe { call!(context.api, cuThreadExchangeStreamCaptureMode(&mut mode)) }?;
        Ok(Relaxed { context, before: mode })
    }
}

impl Drop for Relaxed<'_> {
    fn drop(&mut self) {
        // SAFETY: as above. It fails for modes that do not exist only.
        unsafe { (self.context.api.cuThreadExchangeStreamCaptureMode)(&mut self.before) };
    }
}

impl Graph {
    /// Queues the captured work on `stream`.
    ///
    /// # Errors
    /// A stream of another device, or the driver's.
    ///
    /// # Safety
    /// The graph holds addresses, not borrows: every tensor the captured calls used must still be there, and stay until
    /// the work is done; and what it writes must not be in use by work on another stream.
    pub unsafe fn launch(&self, stream: &Stream) -> Result<()> {
        stream.check_device(&Device::of(self.context))?;
        self.context.make_current()?;
        // SAFETY: graph and stream are live and of one context; the caller vouches for the memory.
        unsafe { call!(self.context.api, cuGraphLaunch(self.exec, stream.raw())) }
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        if self.context.make_current().is_ok() {
            // SAFETY: made here, destroyed once; launches under way go on.
            unsafe { (self.context.api.cuGraphExecDestroy)(self.exec) };
        }
    }
}

impl fmt::Debug for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Graph(cuda:{})", self.context.ordinal)
    }
}
