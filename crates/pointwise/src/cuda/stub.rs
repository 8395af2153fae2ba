//! A driver for tests of what happens when one of its calls fails. Each thread has its own.

use std::cell::{Cell, RefCell};
use std::ffi::{c_char, c_int, c_uint};
use std::ptr::{null_mut, without_provenance_mut};

use super::sys::{Api, DevicePointer, Driver, Handle, code};

/// The thread's context before the test.
pub(super) const BEFORE: Handle = null_mut();

/// The device's primary context.
const PRIMARY: Handle = without_provenance_mut(0x10);

thread_local! {
    static FAILING: Cell<&'static str> = const { Cell::new("") };
    /// With the context that was current.
    static CALLS: RefCell<Vec<(&'static str, Handle)>> = const { RefCell::new(Vec::new()) };
    static CURRENT: Cell<Handle> = const { Cell::new(BEFORE) };
    static ALLOCATED: Cell<u64> = const { Cell::new(0) };
    static STREAMS: Cell<usize> = const { Cell::new(0) };
    static CAPTURING: Cell<bool> = const { Cell::new(false) };
}

/// The result of a failing call. A failing allocation is out of memory instead.
const UNKNOWN: i32 = 999;

/// Returns a driver with one call that fails.
pub(super) fn driver(failing: &'static str) -> &'static Driver {
    fail(failing);
    CURRENT.set(BEFORE);
    let api = Api {
        cuCtxGetCurrent: current_context,
        cuCtxSetCurrent: set_current_context,
        cuDeviceGetAttribute: attribute,
        cuDevicePrimaryCtxRetain: retain,
        cuStreamCreate: stream,
        cuStreamGetCtx: stream_context,
        cuStreamIsCapturing: is_capturing,
        cuGetErrorName: no_words,
        cuGetErrorString: no_words,
        cuMemAllocAsync: allocate,
        cuMemAllocFromPoolAsync: allocate_small,
        cuDeviceGetDefaultMemPool: pool,
        ..Api::stub()
    };
    Box::leak(Box::new(Driver { api, version: (12, 0), devices: 1, launch_early: None }))
}

/// Lets another call fail from now on, and forgets those made so far.
pub(super) fn fail(failing: &'static str) {
    FAILING.set(failing);
    CALLS.take();
}

/// Says that streams are captured, or are not.
pub(super) fn capture(is_capturing: bool) {
    CAPTURING.set(is_capturing);
}

/// The calls that succeeded.
pub(super) fn calls() -> Vec<&'static str> {
    CALLS.with_borrow(|calls| calls.iter().map(|(call, _)| *call).collect())
}

/// The calls that succeeded, each with the context that was current.
pub(super) fn calls_and_contexts() -> Vec<(&'static str, Handle)> {
    CALLS.with_borrow(Clone::clone)
}

/// Gives the thread a context that is not the driver's of the test.
pub(super) fn set_current(context: Handle) {
    CURRENT.set(context);
}

/// The thread's context.
pub(super) fn current() -> Handle {
    CURRENT.get()
}

/// Returns the result of a call.
pub(super) fn answer(call: &'static str) -> i32 {
    if call == FAILING.get() {
        return UNKNOWN;
    }
    CALLS.with_borrow_mut(|calls| calls.push((call, CURRENT.get())));
    0
}

unsafe extern "C" fn current_context(context: *mut Handle) -> i32 {
    // SAFETY: the caller's variable.
    unsafe { *context = CURRENT.get() };
    answer("cuCtxGetCurrent")
}

unsafe extern "C" fn set_current_context(context: Handle) -> i32 {
    let code = answer("cuCtxSetCurrent");
    if code == 0 {
        CURRENT.set(context);
    }
    code
}

unsafe extern "C" fn attribute(value: *mut c_int, _: c_int, _: c_int) -> i32 {
    // SAFETY: the caller's variable.
    unsafe { *value = 1 };
    answer("cuDeviceGetAttribute")
}

unsafe extern "C" fn retain(context: *mut Handle, _: c_int) -> i32 {
    // SAFETY: the caller's variable.
    unsafe { *context = PRIMARY };
    answer("cuDevicePrimaryCtxRetain")
}

unsafe extern "C" fn stream_context(_: Handle, context: *mut Handle) -> i32 {
    // SAFETY: the caller's variable.
    unsafe { *context = PRIMARY };
    answer("cuStreamGetCtx")
}

unsafe extern "C" fn is_capturing(_: Handle, status: *mut c_int) -> i32 {
    // SAFETY: the caller's variable.
    unsafe { *status = CAPTURING.get().into() };
    answer("cuStreamIsCapturing")
}

unsafe extern "C" fn stream(stream: *mut Handle, _: c_uint) -> i32 {
    let code = answer("cuStreamCreate");
    if code == 0 {
        STREAMS.set(STREAMS.get() + 1);
        // SAFETY: the caller's variable.
        unsafe { *stream = without_provenance_mut(0x20 + STREAMS.get()) };
    }
    code
}

unsafe extern "C" fn allocate(address: *mut DevicePointer, _: usize, _: Handle) -> i32 {
    // SAFETY: the caller's variable.
    next_address("cuMemAllocAsync", unsafe { &mut *address })
}

unsafe extern "C" fn allocate_small(address: *mut DevicePointer, _: usize, _: Handle, _: Handle) -> i32 {
    // SAFETY: the caller's variable.
    next_address("cuMemAllocFromPoolAsync", unsafe { &mut *address })
}

/// Addresses are 256 bytes apart, whatever lies there.
fn next_address(call: &'static str, address: &mut DevicePointer) -> i32 {
    if answer(call) != 0 {
        return code::OUT_OF_MEMORY;
    }
    ALLOCATED.set(ALLOCATED.get() + 256);
    *address = ALLOCATED.get();
    0
}

unsafe extern "C" fn pool(pool: *mut Handle, _: c_int) -> i32 {
    // SAFETY: the caller's variable.
    unsafe { *pool = without_provenance_mut(0x30) };
    answer("cuDeviceGetDefaultMemPool")
}

unsafe extern "C" fn no_words(_: i32, _: *mut *const c_char) -> i32 {
    1
}
