//! CUDA graphs: work recorded once, launched many times.

use std::fmt;
use std::ptr::null_mut;

use super::Context;
use super::sys::{self, Handle, call};
use crate::error::{ErrorKind, Result};
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
    // SAFETY: the stream is live and of the context.
    unsafe {
        call!(
            context.api,
            cuStreamBeginCapture_v2(stream.raw(), sys::CAPTURE_THREAD_LOCAL)
        )
    }
}

pub(crate) fn is_capturing(context: &Context, stream: &Stream) -> Result<bool> {
    context.make_current()?;
    let mut status = 0;
    // SAFETY: the stream is live and of the context, the pointer is to a live integer.
    unsafe { call!(context.api, cuStreamIsCapturing(stream.raw(), &mut status)) }?;
    Ok(status != 0)
}

pub(crate) fn end_capture(context: &'static Context, stream: &Stream) -> Result<Graph> {
    context.make_current()?;
    let mut graph = null_mut();
    let mut exec = null_mut();
    // SAFETY: the stream is live and of the context, the pointers are to live handles; the captured graph is copied by
    // the instantiation and destroyed once.
    unsafe {
        call!(context.api, cuStreamEndCapture(stream.raw(), &mut graph))?;
        let made = call!(
            context.api,
            cuGraphInstantiateWithFlags(&mut exec, graph, 0)
        );
        if !graph.is_null() {
            (context.api.cuGraphDestroy)(graph);
        }
        made?;
    }
    Ok(Graph { context, exec })
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
        let device = Device::of(self.context);
        if *stream.device() != device {
            return Err(ErrorKind::DeviceMismatch {
                what: "the stream".to_owned(),
                expected: device,
                got: *stream.device(),
            }
            .into());
        }
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
