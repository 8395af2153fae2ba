//! Streams of the driver: creation, order, captures, foreign ones.

use std::any::Any;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::ptr::null_mut;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, TryLockError};
use std::thread;

use super::Context;
use super::event::RawEvent;
use super::graph::{Capture, Relaxed};
use super::sys::{self, Api, Handle, call};
use crate::Device;
use crate::error::{Error, ErrorKind, Result};

/// A stream of the driver, and the capture that this crate has begun on it.
pub(crate) struct RawStream {
    api: &'static Api,
    raw: Handle,
    /// True if it waits for its own work only: kernels may then be launched early.
    non_blocking: bool,
    owner: Owner,
    /// Written while a capture begins or ends, read while work is queued: a call is in a capture, with the memory that it
    /// uses, or it is not.
    capture: RwLock<Option<Capture>>,
}

/// Who destroys a stream.
enum Owner {
    /// This object, when it is dropped.
    Own,
    /// Nobody: it lives as long as the process.
    Process,
    /// Other code; the object keeps it alive until then.
    Foreign { _keep: Option<Arc<dyn Any + Send + Sync>> },
}

// SAFETY: the driver's handles may be used from any thread.
unsafe impl Send for RawStream {}
// SAFETY: as above; what changes is atomic or behind a lock.
unsafe impl Sync for RawStream {}
// A foreign owner is kept and never looked at: a panic leaves nothing of it that this crate would see.
impl UnwindSafe for RawStream {}
impl RefUnwindSafe for RawStream {}

impl RawStream {
    fn with(api: &'static Api, raw: Handle, non_blocking: bool, owner: Owner) -> RawStream {
        RawStream { api, raw, non_blocking, owner, capture: RwLock::new(None) }
    }

    /// A new stream, destroyed on drop; the driver finishes its work first.
    ///
    /// # Errors
    /// The driver's.
    pub(crate) fn new(context: &Context) -> Result<RawStream> {
        let _current = context.make_current()?;
        let mut raw = null_mut();
        // SAFETY: the context is current, the pointer is to a live handle.
        unsafe { call!(context.api, cuStreamCreate(&mut raw, sys::STREAM_NON_BLOCKING)) }?;
        Ok(RawStream::with(context.api, raw, true, Owner::Own))
    }

    /// A stream that waits for no other and is never destroyed.
    pub(super) fn of_process(api: &'static Api, raw: Handle) -> RawStream {
        RawStream::with(api, raw, true, Owner::Process)
    }

    /// A stream of other code, which `keep` keeps alive. Without `keep` it is remembered by its handle, and the driver is
    /// asked about it once.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] if it is of another context than the device's primary one, or the driver's.
    ///
    /// # Safety
    /// `raw` is a live stream, or null for the legacy default stream. It stays alive until `keep` is dropped; without
    /// `keep`, while work is queued on the result, and a later stream of the same handle is of the same context and
    /// flags.
    pub(crate) unsafe fn foreign(
        context: &Context,
        raw: Handle,
        keep: Option<Arc<dyn Any + Send + Sync>>,
    ) -> Result<Arc<RawStream>> {
        let remembered = keep.is_none();
        let known = || context.foreign.read().unwrap_or_else(PoisonError::into_inner).get(&raw.addr()).cloned();
        if remembered && let Some(stream) = known() {
            return Ok(stream);
        }
        // SAFETY: the caller's promise.
        let non_blocking = unsafe { check_foreign(context, raw) }?;
        let stream = Arc::new(RawStream::with(context.api, raw, non_blocking, Owner::Foreign { _keep: keep }));
        if remembered {
            let mut foreign = context.foreign.write().unwrap_or_else(PoisonError::into_inner);
            return Ok(Arc::clone(foreign.entry(raw.addr()).or_insert(stream)));
        }
        Ok(stream)
    }

    #[inline]
    pub(crate) fn raw(&self) -> Handle {
        self.raw
    }

    #[inline]
    pub(crate) fn is_non_blocking(&self) -> bool {
        self.non_blocking
    }

    /// True if this crate is capturing it.
    #[inline]
    pub(crate) fn is_captured_here(&self) -> bool {
        self.read().is_some()
    }

    /// The capture that this crate has begun, if any. While it is held none begins or ends. A thread that holds it already
    /// must not ask again: it would wait for a thread that waits for it.
    pub(super) fn read(&self) -> Reading<'_> {
        Reading(self.capture.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// [`RawStream::read`], to begin or end a capture: waits until no work is being queued.
    ///
    /// # Errors
    /// [`ErrorKind::StreamCaptured`] while another thread captures the stream.
    pub(super) fn write(&self, context: &'static Context) -> Result<RwLockWriteGuard<'_, Option<Capture>>> {
        let mut capture = self.capture.write().unwrap_or_else(PoisonError::into_inner);
        capture.take_if(|capture| capture.has_ended_elsewhere());
        match &*capture {
            Some(capture) if !capture.is_of_this_thread() => Err(captured_by_another_thread(context)),
            _ => Ok(capture),
        }
    }

    /// True if all work queued here is done, and none is being queued. False during a capture, when the driver cannot be
    /// asked, and if the driver fails.
    pub(super) fn is_idle(&self, context: &'static Context) -> bool {
        let capture = match self.capture.try_write() {
            Ok(capture) => capture,
            Err(TryLockError::Poisoned(held)) => held.into_inner(),
            Err(TryLockError::WouldBlock) => return false,
        };
        let recording = capture.as_ref().is_some_and(|capture| !capture.has_ended_elsewhere());
        if recording || self.is_capturing(context).unwrap_or(true) {
            return false;
        }
        let (Ok(_relaxed), Ok(_current)) = (Relaxed::new(context), context.make_current()) else { return false };
        // SAFETY: the stream is live and of the context, which is current.
        unsafe { call!(context.api, cuStreamQuery(self.raw)) }.is_ok()
    }

    /// True if the stream is being captured, also if the capture is spoiled already.
    ///
    /// # Errors
    /// The driver's.
    pub(crate) fn is_capturing(&self, context: &Context) -> Result<bool> {
        let _current = context.make_current()?;
        let mut status = 0;
        // SAFETY: the stream is live and of the context; the pointer is to a live integer.
        unsafe { call!(context.api, cuStreamIsCapturing(self.raw, &mut status)) }?;
        Ok(status != 0)
    }

    /// Returns an event behind all work that is queued here. If the stream is captured, the event is behind the work from
    /// before the capture, as the rest does not run.
    ///
    /// # Errors
    /// The driver's; [`ErrorKind::Unsupported`] while other code captures the stream.
    pub(super) fn mark(&self, context: &'static Context) -> Result<Arc<RawEvent>> {
        let capture = self.read();
        match capture.get() {
            Some(capture) => Ok(Arc::clone(&capture.before)),
            None => self.mark_uncaptured(context),
        }
    }

    /// [`RawStream::mark`] of a stream that this crate does not capture, which the caller sees to.
    fn mark_uncaptured(&self, context: &'static Context) -> Result<Arc<RawEvent>> {
        if self.is_capturing(context)? {
            return Err(captured_elsewhere());
        }
        // Another stream may be under capture on this thread.
        let _relaxed = Relaxed::new(context)?;
        let event = RawEvent::new(context, RawEvent::NO_TIMING)?;
        // SAFETY: the stream is live and of the context.
        unsafe { event.record(self.raw) }?;
        Ok(Arc::new(event))
    }

    /// Makes work queued here from now on wait for `event`. The host does not wait.
    ///
    /// # Errors
    /// The driver's.
    pub(super) fn wait_for(&self, context: &Context, event: &RawEvent) -> Result<()> {
        let _current = context.make_current()?;
        // SAFETY: both are live. The event may be destroyed before it is reached: the driver keeps what it needs.
        unsafe { call!(context.api, cuStreamWaitEvent(self.raw, event.raw(), 0)) }
    }

    /// Waits, on the host, for the work queued here. A capture under way is no part of it.
    ///
    /// # Errors
    /// Errors of the work; the errors of [`RawStream::mark`].
    pub(crate) fn synchronize(&self, context: &'static Context) -> Result<()> {
        self.mark(context)?.synchronize()
    }
}

impl Drop for RawStream {
    fn drop(&mut self) {
        let capture = self.capture.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(capture) = capture.filter(|capture| !capture.joined) {
            // It ends with the stream.
            drop(capture.uses.end());
        }
        if matches!(self.owner, Owner::Own) {
            // SAFETY: the stream was created here and is destroyed once. An error is one of earlier work. A capture
            // under way ends with it.
            unsafe { (self.api.cuStreamDestroy_v2)(self.raw) };
        }
    }
}

/// The capture of a stream, for as long as none begins or ends.
pub(super) struct Reading<'a>(RwLockReadGuard<'a, Option<Capture>>);

impl Reading<'_> {
    /// The capture under way.
    #[inline]
    pub(super) fn get(&self) -> Option<&Capture> {
        self.0.as_ref().filter(|capture| !capture.has_ended_elsewhere())
    }

    #[inline]
    pub(super) fn is_some(&self) -> bool {
        self.get().is_some()
    }
}

/// The stream of a call, which queues its work and the notes of its memory there. Until this is dropped no capture begins
/// or ends on the stream. While a thread has one, it takes none of the same stream.
pub(crate) struct Held<'a> {
    pub(super) context: &'static Context,
    pub(super) stream: &'a RawStream,
    /// The stream, with its owner, unless it is the device's own.
    pub(super) shared: Option<&'a Arc<RawStream>>,
    capture: Reading<'a>,
}

impl<'a> Held<'a> {
    /// # Errors
    /// [`ErrorKind::StreamCaptured`] while another thread captures the stream.
    #[inline]
    fn new(context: &'static Context, stream: &'a RawStream, shared: Option<&'a Arc<RawStream>>) -> Result<Held<'a>> {
        let capture = stream.read();
        match capture.get() {
            Some(capture) if !capture.is_of_this_thread() => Err(captured_by_another_thread(context)),
            _ => Ok(Held { context, stream, shared, capture }),
        }
    }

    /// The capture that this thread has begun.
    #[inline]
    pub(super) fn capture(&self) -> Option<&Capture> {
        self.capture.get()
    }

    /// The driver's handle.
    #[inline]
    pub(super) fn raw(&self) -> Handle {
        self.stream.raw
    }
}

impl Context {
    /// Takes a stream to queue work on: the device's own without one.
    ///
    /// # Errors
    /// [`ErrorKind::StreamCaptured`] while another thread captures the stream.
    #[inline]
    pub(crate) fn hold<'a>(&'static self, shared: Option<&'a Arc<RawStream>>) -> Result<Held<'a>> {
        Held::new(self, shared.map_or(&self.own, Arc::as_ref), shared)
    }
}

/// Makes work queued on `later` from now on wait for what is queued on `earlier` now.
///
/// # Errors
/// [`ErrorKind::StreamCaptured`] while another thread captures one of them; the driver's.
pub(crate) fn stream_wait(
    (later_context, later): (&'static Context, &RawStream),
    (earlier_context, earlier): (&'static Context, &RawStream),
) -> Result<()> {
    // Not `mark`: streams that are captured together wait for each other within the capture.
    let event = RawEvent::new(earlier_context, RawEvent::NO_TIMING)?;
    let uses = {
        let held = Held::new(earlier_context, earlier, None)?;
        // SAFETY: the stream is live and of the event's context.
        unsafe { event.record(earlier.raw) }?;
        held.capture().map(|capture| Arc::clone(&capture.uses))
    };
    // A capture of this thread goes on: nobody else ends it.
    let Some(uses) = uses else {
        let _held = Held::new(later_context, later, None)?;
        return later.wait_for(later_context, &event);
    };
    // The later stream becomes part of the capture: from then on its work is recorded.
    let mut capture = later.write(later_context)?;
    let joins = capture.is_none();
    if joins {
        let before = later.mark_uncaptured(later_context)?;
        *capture = Some(Capture { before, uses, joined: true, thread: thread::current().id() });
    }
    let waits = later.wait_for(later_context, &event);
    if waits.is_err() && joins {
        *capture = None;
    }
    waits
}

/// Refuses a stream of another context than the device's primary one, and says whether the stream waits for no work but
/// its own.
///
/// # Errors
/// [`ErrorKind::Unsupported`], or the driver's.
///
/// # Safety
/// `raw` is a live stream, or null for the legacy default stream.
unsafe fn check_foreign(context: &Context, raw: Handle) -> Result<bool> {
    let _current = context.make_current()?;
    let (mut of, mut flags, mut status) = (null_mut(), 0, 0);
    // SAFETY: the caller's promise; the pointers are to a live handle and to integers.
    unsafe {
        call!(context.api, cuStreamGetCtx(raw, &mut of))?;
        // To ask for the flags would spoil a capture: of a stream that is captured it is not known that it waits for no
        // other. The legacy default stream cannot be.
        if !raw.is_null() {
            call!(context.api, cuStreamIsCapturing(raw, &mut status))?;
        }
        if status == 0 {
            call!(context.api, cuStreamGetFlags(raw, &mut flags))?;
        }
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

#[cold]
pub(super) fn captured_by_another_thread(context: &'static Context) -> Error {
    ErrorKind::StreamCaptured { device: Device::of(context) }.into()
}

#[cold]
fn captured_elsewhere() -> Error {
    ErrorKind::Unsupported {
        what: "waiting for a stream that other code is capturing".to_owned(),
        advice: "read and drop tensors that were used on it before the capture begins, or after it has ended"
            .to_owned(),
    }
    .into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cuda::{begin_capture, end_capture, stub};

    #[test]
    fn no_capture_begins_between_a_note_and_a_launch() {
        let context: &'static Context = Box::leak(Box::new(Context::create(stub::driver(""), 0).unwrap()));
        let stream = context.new_stream().unwrap();
        for shared in [None, Some(&stream)] {
            let held = context.hold(shared).unwrap();
            let raw = held.stream;
            assert!(raw.capture.try_write().is_err());
            drop(held);
            assert!(raw.capture.try_write().is_ok());
        }
    }

    #[test]
    fn work_of_other_threads_is_in_no_capture() {
        let context: &'static Context = Box::leak(Box::new(Context::create(stub::driver(""), 0).unwrap()));
        let [stream, joined, apart] = [(); 3].map(|()| context.new_stream().unwrap());
        begin_capture(context, &stream).unwrap();
        stream_wait((context, &joined), (context, &stream)).unwrap();
        let refused = |result: Result<()>| matches!(result.unwrap_err().kind(), ErrorKind::StreamCaptured { .. });
        thread::scope(|scope| {
            scope.spawn(|| {
                for captured in [&stream, &joined] {
                    assert!(refused(context.hold(Some(captured)).map(drop)));
                    assert!(refused(begin_capture(context, captured)));
                    assert!(refused(stream_wait((context, captured), (context, &apart))));
                    assert!(refused(stream_wait((context, &apart), (context, captured))));
                }
                assert!(context.hold(Some(&apart)).is_ok() && context.hold(None).is_ok());
            });
        });
        assert!(context.hold(Some(&joined)).unwrap().capture().is_some());
        drop(end_capture(context, &stream).unwrap());
        thread::scope(|scope| {
            scope.spawn(|| {
                for free in [&stream, &joined] {
                    assert!(context.hold(Some(free)).unwrap().capture().is_none());
                }
            });
        });
    }

    #[test]
    fn the_driver_is_asked_about_a_foreign_stream_once() {
        let context: &'static Context = Box::leak(Box::new(Context::create(stub::driver(""), 0).unwrap()));
        let foreign = |address, keep: Option<Arc<dyn Any + Send + Sync>>| {
            stub::fail("");
            // SAFETY: the driver is a stub, which looks at no stream.
            let stream = unsafe { RawStream::foreign(context, std::ptr::without_provenance_mut(address), keep) };
            (stream.unwrap(), stub::calls())
        };
        let asks = ["cuCtxGetCurrent", "cuStreamGetCtx", "cuStreamIsCapturing", "cuStreamGetFlags"];
        let (first, calls) = foreign(0x40, None);
        assert_eq!(calls, asks);
        let (again, calls) = foreign(0x40, None);
        assert!(Arc::ptr_eq(&first, &again) && calls.is_empty(), "{calls:?}");
        let (other, calls) = foreign(0x48, None);
        assert!(other.raw() != first.raw() && calls == asks, "{calls:?}");
        // The owner may destroy this stream as soon as we are done with it: the driver is asked about it each time.
        let owner = Arc::new(());
        for _ in 0..2 {
            let (kept, calls) = foreign(0x40, Some(Arc::clone(&owner) as _));
            assert!(!Arc::ptr_eq(&kept, &first) && calls == asks, "{calls:?}");
        }
        assert_eq!(Arc::strong_count(&owner), 1);
        // A refusal is not remembered.
        stub::fail("cuStreamGetFlags");
        // SAFETY: as above.
        let refused = unsafe { RawStream::foreign(context, std::ptr::without_provenance_mut(0x50), None) };
        assert!(refused.is_err());
        assert_eq!(foreign(0x50, None).1, asks);
    }
}
