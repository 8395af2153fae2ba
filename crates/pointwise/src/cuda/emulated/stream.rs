//! Streams: what they are given to do is done at once, or recorded.

use std::ffi::{c_int, c_uint};
use std::ops::Range;
use std::sync::Mutex;

use pointwise_emulator::{Kernel, Launch};

use super::capture::Capture;
use super::{Emulated, INVALID_VALUE, current, fault, handle, held, memory_code};
use crate::cuda::sys::{DevicePointer, Handle, code};

/// A stream: only what it records matters, as all else is done at once.
pub(super) struct EmulatedStream {
    pub(super) device: &'static Emulated,
    flags: c_uint,
    pub(super) capture: Mutex<Option<Capture>>,
}

/// A piece of work for a stream.
#[derive(Clone)]
pub(super) enum Command {
    Launch {
        kernel: Kernel,
        grid: [u32; 3],
        block: [u32; 3],
        shared: u32,
        arguments: Vec<u8>,
        early: bool,
        results: Option<Vec<Range<u64>>>,
    },
    Copy {
        to: DevicePointer,
        from: DevicePointer,
        bytes: usize,
    },
    Fill {
        to: DevicePointer,
        value: u8,
        bytes: usize,
    },
}

impl Emulated {
    fn run(&self, command: &Command) -> i32 {
        match command {
            Command::Launch { kernel, grid, block, shared, arguments, early, results } => {
                let launch = Launch {
                    grid: *grid,
                    block: *block,
                    shared: *shared,
                    arguments,
                    early: *early,
                    results: results.as_deref(),
                };
                match self.gpu.launch(kernel, &launch) {
                    Ok(_) => 0,
                    Err(found) => fault(found),
                }
            }
            Command::Copy { to, from, bytes } => memory_code(self.gpu.copy(*to, *from, *bytes)),
            Command::Fill { to, value, bytes } => memory_code(self.gpu.fill(*to, *value, *bytes)),
        }
    }
}

impl EmulatedStream {
    /// The capture that the stream is part of.
    pub(super) fn capture(&self) -> Option<Capture> {
        let mut capture = held(&self.capture);
        if capture.as_ref().is_some_and(|capture| held(&capture.recording).has_ended) {
            *capture = None;
        }
        capture.clone()
    }

    pub(super) fn id(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }
}

/// Does a command, or records it.
///
/// # Safety
/// `stream` is a live stream of this driver.
pub(super) unsafe fn submit(stream: Handle, command: Command) -> i32 {
    // SAFETY: the caller's promise.
    let Some(stream) = (unsafe { stream.cast::<EmulatedStream>().as_ref() }) else { return INVALID_VALUE };
    let Some(capture) = stream.capture() else { return stream.device.run(&command) };
    let mut recording = held(&capture.recording);
    recording.commands.push(command);
    if !capture.is_origin {
        let count = recording.commands.len();
        recording.open.insert(stream.id(), count);
    }
    0
}

/// True if a stream records.
///
/// # Safety
/// `stream` is a live stream of this driver.
pub(super) unsafe fn records(stream: Handle) -> bool {
    // SAFETY: the caller's promise.
    unsafe { stream.cast::<EmulatedStream>().as_ref() }.is_some_and(|stream| stream.capture().is_some())
}

pub(super) unsafe extern "C" fn stream_create(to: *mut Handle, flags: c_uint) -> i32 {
    // SAFETY: as the driver's.
    let Some(device) = (unsafe { current() }) else { return INVALID_VALUE };
    // SAFETY: as the driver's.
    unsafe { *to = handle(EmulatedStream { device, flags, capture: Mutex::new(None) }) };
    0
}

pub(super) unsafe extern "C" fn stream_destroy(stream: Handle) -> i32 {
    // SAFETY: as the driver's: created here, destroyed once.
    drop(unsafe { Box::from_raw(stream.cast::<EmulatedStream>()) });
    0
}

pub(super) unsafe extern "C" fn stream_synchronize(stream: Handle) -> i32 {
    // SAFETY: as the driver's.
    if unsafe { records(stream) } { code::STREAM_CAPTURE_UNSUPPORTED } else { 0 }
}

pub(super) unsafe extern "C" fn stream_context(stream: Handle, context: *mut Handle) -> i32 {
    // SAFETY: as the driver's.
    unsafe {
        let Some(stream) = stream.cast::<EmulatedStream>().as_ref() else { return INVALID_VALUE };
        *context = std::ptr::from_ref(stream.device).cast_mut().cast();
    }
    0
}

pub(super) unsafe extern "C" fn stream_flags(stream: Handle, flags: *mut c_uint) -> i32 {
    // SAFETY: as the driver's.
    unsafe {
        let Some(stream) = stream.cast::<EmulatedStream>().as_ref() else { return INVALID_VALUE };
        *flags = stream.flags;
    }
    0
}

pub(super) unsafe extern "C" fn stream_is_capturing(stream: Handle, status: *mut c_int) -> i32 {
    // SAFETY: as the driver's.
    unsafe { *status = c_int::from(records(stream)) };
    0
}
