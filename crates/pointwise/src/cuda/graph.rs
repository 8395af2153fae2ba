//! CUDA graphs: work recorded once, launched many times.

use std::cell::Cell;
use std::ffi::c_int;
use std::fmt;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, ThreadId};

use super::Context;
use super::event::RawEvent;
use super::memory::Block;
use super::stream::RawStream;
use super::sys::{self, Handle, call};
use super::usage::{Usage, is_time_to_forget};
use crate::error::Result;
use crate::{Device, Stream};

/// Work captured from a stream ([`Stream::capture`]), ready to launch as one. It owns the memory of the tensors that the
/// work uses: they may be dropped, and written and read as before.
///
/// A launch writes what the captured calls wrote: the tensors that were given, and their clones. It is ordered as calls
/// on its stream are: reading a tensor waits for the launches that use it, and work on another stream must be ordered by
/// [`Stream::wait_for`].
pub struct Graph {
    context: &'static Context,
    exec: Handle,
    uses: Arc<GraphUse>,
    memory: Vec<Arc<Block>>,
}

// SAFETY: the driver's handles may be used from any thread; a launch needs `&mut`.
unsafe impl Send for Graph {}
// SAFETY: as above.
unsafe impl Sync for Graph {}

/// A capture that this crate has begun.
pub(super) struct Capture {
    /// Behind the stream's work from before.
    pub(super) before: Arc<RawEvent>,
    pub(super) uses: Arc<GraphUse>,
    /// True if it was begun on another stream, which this one has waited for.
    pub(super) joined: bool,
    /// Only its calls are recorded.
    pub(super) thread: ThreadId,
}

thread_local! {
    /// The number of captures that this thread has under way.
    static UNDER_WAY: Cell<usize> = const { Cell::new(0) };
}

/// True if this thread is capturing a stream on any device.
#[inline]
pub(super) fn this_thread_captures() -> bool {
    UNDER_WAY.get() > 0
}

impl Capture {
    /// True if the calling thread has begun it.
    #[inline]
    pub(super) fn is_of_this_thread(&self) -> bool {
        self.thread == thread::current().id()
    }

    /// True if the stream that it was begun on has ended it.
    pub(super) fn has_ended_elsewhere(&self) -> bool {
        self.joined && self.uses.ended.load(Ordering::Acquire)
    }
}

/// The memory that a graph uses, and the streams that it was launched on: its tensors must wait for them.
#[derive(Default)]
pub(super) struct GraphUse {
    streams: Mutex<Vec<Arc<RawStream>>>,
    /// The memory of a capture under way. When the capture ends, the graph takes it.
    memory: Mutex<Vec<Arc<Block>>>,
    ended: AtomicBool,
    gone: AtomicBool,
}

impl GraphUse {
    pub(super) fn streams(&self) -> Vec<Arc<RawStream>> {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Keeps a block for the graph.
    pub(super) fn keep(&self, block: &Arc<Block>) {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::clone(block));
    }

    /// Takes note of the capture's end, and gives what it has kept. Drop that where no stream is locked.
    pub(super) fn end(&self) -> Vec<Arc<Block>> {
        self.ended.store(true, Ordering::Release);
        std::mem::take(&mut *self.memory.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// True if the graph will not be launched again.
    pub(super) fn is_gone(&self) -> bool {
        self.gone.load(Ordering::Acquire)
    }

    fn launched_on(&self, context: &'static Context, stream: &Arc<RawStream>) {
        let mut streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
        if !streams.iter().any(|known| known.raw() == stream.raw()) {
            if is_time_to_forget(streams.len()) {
                streams.retain(|stream| !stream.is_idle(context));
            }
            streams.push(Arc::clone(stream));
        }
    }
}

pub(crate) fn begin_capture(context: &'static Context, stream: &RawStream) -> Result<()> {
    // It waits for calls that are being queued, and those to come wait for it.
    let mut held = stream.write(context)?;
    // Begun once already, or by other code: the driver says so.
    let before = if held.is_none() && !stream.is_capturing(context)? {
        let event = RawEvent::new(context, RawEvent::NO_TIMING)?;
        // SAFETY: the stream is live and of the context.
        unsafe { event.record(stream.raw()) }?;
        Some(Arc::new(event))
    } else {
        None
    };
    let _current = context.make_current()?;
    // Relaxed: what this crate does beside the capture, on any thread, is no part of it and does not end it.
    // SAFETY: the stream is live and of the context.
    unsafe { call!(context.api, cuStreamBeginCapture_v2(stream.raw(), sys::CAPTURE_RELAXED)) }?;
    if let Some(before) = before {
        *held = Some(Capture { before, uses: Arc::default(), joined: false, thread: thread::current().id() });
    }
    UNDER_WAY.set(UNDER_WAY.get() + 1);
    Ok(())
}

pub(crate) fn end_capture(context: &'static Context, stream: &RawStream) -> Result<Graph> {
    UNDER_WAY.set(UNDER_WAY.get().saturating_sub(1));
    let mut held = stream.write(context)?;
    let _current = context.make_current()?;
    let mut graph = null_mut();
    let mut exec = null_mut();
    // SAFETY: the stream is live and of the context; the pointer is to a live handle.
    let ended = unsafe { call!(context.api, cuStreamEndCapture(stream.raw(), &mut graph)) };
    // An error ends a capture or does not: ask. If that fails too, the device is lost, and no capture matters any more.
    let uses =
        if stream.is_capturing(context).unwrap_or(false) { None } else { held.take().map(|capture| capture.uses) };
    drop(held);
    let uses = uses.unwrap_or_default();
    let memory = uses.end();
    let made = ended.and_then(|()| {
        // SAFETY: the pointer is to a live handle, the graph was captured.
        unsafe { call!(context.api, cuGraphInstantiateWithFlags(&mut exec, graph, 0)) }
    });
    if !graph.is_null() {
        // SAFETY: the instantiation has copied it, or failed; it is destroyed once.
        unsafe { (context.api.cuGraphDestroy)(graph) };
    }
    match made {
        Ok(()) => Ok(Graph { context, exec, uses, memory }),
        Err(error) => {
            uses.gone.store(true, Ordering::Release);
            Err(error)
        }
    }
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
    /// A stream of another device, or one that another thread is capturing; the driver's.
    pub fn launch(&mut self, stream: &Stream) -> Result<()> {
        stream.check_device(&Device::of(self.context))?;
        let held = self.context.hold(stream.shared())?;
        let _current = self.context.make_current()?;
        if held.capture().is_some() {
            // The graph becomes a part of another one.
            self.memory.iter().try_for_each(|block| Usage::note(block, &held))?;
        }
        if let Some(shared) = held.shared {
            // Before the launch: who reads a tensor of the graph from now on waits for it.
            self.uses.launched_on(self.context, shared);
        }
        // SAFETY: graph and stream are live and of one context. The graph owns the tensors' memory, which is freed behind
        // its launches; for memory of other code, who made the view has vouched.
        unsafe { call!(self.context.api, cuGraphLaunch(self.exec, held.raw())) }
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        self.uses.gone.store(true, Ordering::Release);
        if let Ok(_current) = self.context.make_current() {
            // SAFETY: made here, destroyed once; launches under way go on.
            unsafe { (self.context.api.cuGraphExecDestroy)(self.exec) };
        }
    }
}

impl fmt::Debug for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Graph({})", Device::of(self.context))
    }
}
