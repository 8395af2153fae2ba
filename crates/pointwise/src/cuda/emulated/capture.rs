//! Captures of streams, the graphs that they make, and events.

use std::cell::Cell;
use std::collections::HashMap;
use std::ffi::{c_int, c_uint};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use super::stream::{Command, EmulatedStream, submit};
use super::{CAPTURE_ISOLATION, CAPTURE_UNJOINED, CAPTURE_UNMATCHED, Emulated, handle, held};
use crate::cuda::sys::{Handle, code};

thread_local! {
    static CAPTURE_MODE: Cell<c_int> = const { Cell::new(0) };
}

/// A capture that a stream is part of.
#[derive(Clone)]
pub(super) struct Capture {
    pub(super) recording: Arc<Mutex<Recording>>,
    /// True if it was begun on this stream.
    pub(super) is_origin: bool,
}

/// The work that the streams of a capture were given.
#[derive(Default)]
pub(super) struct Recording {
    /// In the order of the calls, which respects every wait.
    pub(super) commands: Vec<Command>,
    pub(super) has_ended: bool,
    /// Streams that joined and have work that the capture's first stream does not wait for yet, with how many commands
    /// there were when they got it.
    pub(super) open: HashMap<usize, usize>,
}

/// A graph, or what it is instantiated as.
struct EmulatedGraph {
    device: &'static Emulated,
    commands: Vec<Command>,
}

/// An event, with the time and the capture of its record.
struct EmulatedEvent {
    at: Mutex<Option<Mark>>,
}

struct Mark {
    time: Instant,
    /// The capture, the stream in it, and how many commands there were.
    capture: Option<(Capture, usize, usize)>,
}

pub(super) unsafe extern "C" fn stream_wait(stream: Handle, event: Handle, _: c_uint) -> i32 {
    // SAFETY: as the driver's.
    let (stream, event) = unsafe { (&*stream.cast::<EmulatedStream>(), &*event.cast::<EmulatedEvent>()) };
    let recorded = held(&event.at).as_ref().and_then(|mark| mark.capture.clone());
    let (capture, of, count) = match (recorded, stream.capture()) {
        (None, None) => return 0,
        (None, Some(_)) => return CAPTURE_ISOLATION,
        (Some((joined, of, count)), None) => {
            let joined = Capture { is_origin: false, ..joined };
            *held(&stream.capture) = Some(joined.clone());
            (joined, of, count)
        }
        (Some((joined, of, count)), Some(own)) if Arc::ptr_eq(&joined.recording, &own.recording) => (own, of, count),
        (Some(_), Some(_)) => return CAPTURE_ISOLATION,
    };
    let mut recording = held(&capture.recording);
    if of != stream.id() && recording.open.get(&of).is_some_and(|&last| last <= count) {
        recording.open.remove(&of);
        if !capture.is_origin {
            let count = recording.commands.len();
            recording.open.insert(stream.id(), count);
        }
    }
    0
}

pub(super) unsafe extern "C" fn begin_capture(stream: Handle, _: c_int) -> i32 {
    // SAFETY: as the driver's.
    let stream = unsafe { &*stream.cast::<EmulatedStream>() };
    if stream.capture().is_some() {
        return code::STREAM_CAPTURE_UNSUPPORTED;
    }
    *held(&stream.capture) = Some(Capture { recording: Arc::default(), is_origin: true });
    0
}

pub(super) unsafe extern "C" fn exchange_capture_mode(mode: *mut c_int) -> i32 {
    // SAFETY: as the driver's.
    unsafe { *mode = CAPTURE_MODE.replace(*mode) };
    0
}

pub(super) unsafe extern "C" fn end_capture(stream: Handle, to: *mut Handle) -> i32 {
    // SAFETY: as the driver's.
    let stream = unsafe { &*stream.cast::<EmulatedStream>() };
    let Some(capture) = stream.capture().filter(|capture| capture.is_origin) else { return CAPTURE_UNMATCHED };
    let mut recording = held(&capture.recording);
    recording.has_ended = true;
    if !recording.open.is_empty() {
        return CAPTURE_UNJOINED;
    }
    let commands = std::mem::take(&mut recording.commands);
    // SAFETY: as the driver's.
    unsafe { *to = handle(EmulatedGraph { device: stream.device, commands }) };
    0
}

pub(super) unsafe extern "C" fn graph_instantiate(to: *mut Handle, graph: Handle, _: u64) -> i32 {
    // SAFETY: as the driver's.
    unsafe {
        let graph = &*graph.cast::<EmulatedGraph>();
        *to = handle(EmulatedGraph { device: graph.device, commands: graph.commands.clone() });
    }
    0
}

pub(super) unsafe extern "C" fn graph_launch(graph: Handle, stream: Handle) -> i32 {
    // SAFETY: as the driver's.
    let graph = unsafe { &*graph.cast::<EmulatedGraph>() };
    for command in &graph.commands {
        // SAFETY: as the driver's.
        let result = unsafe { submit(stream, command.clone()) };
        if result != 0 {
            return result;
        }
    }
    0
}

pub(super) unsafe extern "C" fn graph_destroy(graph: Handle) -> i32 {
    // SAFETY: as the driver's: made here, destroyed once.
    drop(unsafe { Box::from_raw(graph.cast::<EmulatedGraph>()) });
    0
}

pub(super) unsafe extern "C" fn event_create(to: *mut Handle, _: c_uint) -> i32 {
    // SAFETY: as the driver's.
    unsafe { *to = handle(EmulatedEvent { at: Mutex::new(None) }) };
    0
}

pub(super) unsafe extern "C" fn event_destroy(event: Handle) -> i32 {
    // SAFETY: as the driver's: created here, destroyed once.
    drop(unsafe { Box::from_raw(event.cast::<EmulatedEvent>()) });
    0
}

pub(super) unsafe extern "C" fn event_record(event: Handle, stream: Handle) -> i32 {
    // SAFETY: as the driver's.
    let (event, stream) = unsafe { (&*event.cast::<EmulatedEvent>(), &*stream.cast::<EmulatedStream>()) };
    let capture = stream.capture().map(|capture| {
        let count = held(&capture.recording).commands.len();
        (capture, stream.id(), count)
    });
    *held(&event.at) = Some(Mark { time: Instant::now(), capture });
    0
}

pub(super) unsafe extern "C" fn event_synchronize(event: Handle) -> i32 {
    // SAFETY: as the driver's.
    let event = unsafe { &*event.cast::<EmulatedEvent>() };
    let is_captured = held(&event.at).as_ref().is_some_and(|mark| mark.capture.is_some());
    if is_captured { code::STREAM_CAPTURE_UNSUPPORTED } else { 0 }
}

pub(super) unsafe extern "C" fn event_elapsed(milliseconds: *mut f32, start: Handle, end: Handle) -> i32 {
    // SAFETY: as the driver's.
    let [start, end] = unsafe { [start, end].map(|event| &*event.cast::<EmulatedEvent>()) };
    let [Some(start), Some(end)] = [start, end].map(|event| held(&event.at).as_ref().map(|mark| mark.time)) else {
        return code::NOT_READY;
    };
    // SAFETY: as the driver's.
    unsafe { *milliseconds = end.saturating_duration_since(start).as_secs_f32() * 1e3 };
    0
}
