//! Allocations, copies and fills.

#[cfg(feature = "cust")]
use std::ffi::c_int;
use std::ffi::c_void;

use super::stream::{Command, records, submit};
use super::{Emulated, INVALID_VALUE, current, memory_code};
use crate::cuda::sys::{DevicePointer, Handle, code};

pub(super) unsafe extern "C" fn allocate(to: *mut DevicePointer, bytes: usize) -> i32 {
    // SAFETY: as the driver's.
    let Some(device) = (unsafe { current() }) else { return INVALID_VALUE };
    match device.gpu.allocate(bytes) {
        Ok(address) => {
            // SAFETY: as the driver's.
            unsafe { *to = address };
            0
        }
        Err(error) => memory_code(Err(error)),
    }
}

pub(super) unsafe extern "C" fn allocate_async(to: *mut DevicePointer, bytes: usize, _: Handle) -> i32 {
    // SAFETY: as the driver's.
    unsafe { allocate(to, bytes) }
}

pub(super) unsafe extern "C" fn allocate_from_pool(to: *mut DevicePointer, bytes: usize, _: Handle, _: Handle) -> i32 {
    // SAFETY: as the driver's.
    unsafe { allocate(to, bytes) }
}

pub(super) unsafe extern "C" fn free(address: DevicePointer) -> i32 {
    // SAFETY: as the driver's.
    match unsafe { current() } {
        Some(device) => memory_code(device.gpu.free(address)),
        None => INVALID_VALUE,
    }
}

pub(super) unsafe extern "C" fn free_async(address: DevicePointer, _: Handle) -> i32 {
    // SAFETY: as the driver's.
    unsafe { free(address) }
}

pub(super) unsafe extern "C" fn memory_info(free: *mut usize, total: *mut usize) -> i32 {
    // SAFETY: as the driver's.
    let Some(device) = (unsafe { current() }) else { return INVALID_VALUE };
    let all = device.gpu.settings().memory_bytes;
    // SAFETY: as the driver's.
    unsafe {
        *free = all.saturating_sub(device.gpu.used());
        *total = all;
    }
    0
}

pub(super) unsafe extern "C" fn copy_in(to: DevicePointer, from: *const c_void, bytes: usize, stream: Handle) -> i32 {
    // SAFETY: as the driver's.
    let (device, from) = unsafe {
        if records(stream) {
            return code::STREAM_CAPTURE_UNSUPPORTED;
        }
        (current(), std::slice::from_raw_parts(from.cast::<u8>(), bytes))
    };
    device.map_or(INVALID_VALUE, |device| memory_code(device.gpu.write(to, from)))
}

pub(super) unsafe extern "C" fn copy_out(to: *mut c_void, from: DevicePointer, bytes: usize, stream: Handle) -> i32 {
    // SAFETY: as the driver's.
    if unsafe { records(stream) } {
        return code::STREAM_CAPTURE_UNSUPPORTED;
    }
    let mut read = vec![0; bytes];
    // SAFETY: as the driver's.
    let Some(device) = (unsafe { current() }) else { return INVALID_VALUE };
    let result = memory_code(device.gpu.read(from, &mut read));
    if result == 0 {
        // SAFETY: as the driver's: there is room for that many bytes, which need not be initialised.
        unsafe { std::ptr::copy_nonoverlapping(read.as_ptr(), to.cast(), bytes) };
    }
    result
}

pub(super) unsafe extern "C" fn copy_within(
    to: DevicePointer,
    from: DevicePointer,
    bytes: usize,
    stream: Handle,
) -> i32 {
    // SAFETY: as the driver's.
    unsafe { submit(stream, Command::Copy { to, from, bytes }) }
}

pub(super) unsafe extern "C" fn copy_across(
    to: DevicePointer,
    to_context: Handle,
    from: DevicePointer,
    from_context: Handle,
    bytes: usize,
    stream: Handle,
) -> i32 {
    // SAFETY: as the driver's.
    let (target, source) = unsafe {
        if records(stream) {
            return code::STREAM_CAPTURE_UNSUPPORTED;
        }
        (&*to_context.cast::<Emulated>(), &*from_context.cast::<Emulated>())
    };
    let mut read = vec![0; bytes];
    match memory_code(source.gpu.read(from, &mut read)) {
        0 => memory_code(target.gpu.write(to, &read)),
        failed => failed,
    }
}

#[cfg(feature = "cust")]
pub(super) unsafe extern "C" fn pointer_attribute(_: *mut c_void, _: c_int, _: DevicePointer) -> i32 {
    INVALID_VALUE
}

pub(super) unsafe extern "C" fn fill(to: DevicePointer, value: u8, bytes: usize, stream: Handle) -> i32 {
    // SAFETY: as the driver's.
    unsafe { submit(stream, Command::Fill { to, value, bytes }) }
}
