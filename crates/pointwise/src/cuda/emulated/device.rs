//! Devices, and their contexts.

use std::ffi::{c_char, c_int, c_uint, c_void};

use super::{ARCHITECTURES, CURRENT, INVALID_DEVICE, INVALID_VALUE, device};
use crate::cuda::sys::{Handle, MemPoolProperties, attribute};

/// Multiprocessors of a device: few, so that small tensors take the launches of large ones.
const MULTIPROCESSORS: c_int = 4;
const L2_BYTES: c_int = 4 << 20;

pub(super) unsafe extern "C" fn init(_: c_uint) -> i32 {
    0
}

pub(super) unsafe extern "C" fn device_get(to: *mut c_int, ordinal: c_int) -> i32 {
    if device(ordinal).is_none() {
        return INVALID_DEVICE;
    }
    // SAFETY: as the driver's.
    unsafe { *to = ordinal };
    0
}

pub(super) unsafe extern "C" fn device_count(count: *mut c_int) -> i32 {
    // SAFETY: as the driver's.
    unsafe { *count = ARCHITECTURES.len() as c_int };
    0
}

pub(super) unsafe extern "C" fn device_name(name: *mut c_char, len: c_int, ordinal: c_int) -> i32 {
    let Some(device) = device(ordinal) else { return INVALID_DEVICE };
    let text = format!("pointwise emulator, sm_{}", device.sm);
    let count = text.len().min(usize::try_from(len).unwrap_or(0).saturating_sub(1));
    // SAFETY: as the driver's: there are `len` bytes.
    unsafe {
        std::ptr::copy_nonoverlapping(text.as_ptr(), name.cast(), count);
        *name.add(count) = 0;
    }
    0
}

pub(super) unsafe extern "C" fn device_uuid(uuid: *mut [u8; 16], ordinal: c_int) -> i32 {
    let Some(device) = device(ordinal) else { return INVALID_DEVICE };
    let mut bytes = *b"pointwise-emu\0\0\0";
    bytes[15] = device.sm as u8;
    // SAFETY: as the driver's.
    unsafe { *uuid = bytes };
    0
}

pub(super) unsafe extern "C" fn device_memory(bytes: *mut usize, ordinal: c_int) -> i32 {
    let Some(device) = device(ordinal) else { return INVALID_DEVICE };
    // SAFETY: as the driver's.
    unsafe { *bytes = device.gpu.settings().memory_bytes };
    0
}

pub(super) unsafe extern "C" fn device_attribute(value: *mut c_int, which: c_int, ordinal: c_int) -> i32 {
    let Some(device) = device(ordinal) else { return INVALID_DEVICE };
    let found = match which {
        attribute::MULTIPROCESSOR_COUNT => MULTIPROCESSORS,
        attribute::L2_CACHE_SIZE => L2_BYTES,
        attribute::CAPABILITY_MAJOR => (device.sm / 10) as c_int,
        attribute::CAPABILITY_MINOR => (device.sm % 10) as c_int,
        attribute::MAX_SHARED_MEMORY_PER_MULTIPROCESSOR if device.sm >= 90 => 228 << 10,
        attribute::MAX_SHARED_MEMORY_PER_MULTIPROCESSOR => 164 << 10,
        // Every allocation is one of its own, so that the memory around it is nobody's.
        attribute::MEMORY_POOLS_SUPPORTED => 0,
        _ => return INVALID_VALUE,
    };
    // SAFETY: as the driver's.
    unsafe { *value = found };
    0
}

pub(super) unsafe extern "C" fn default_pool(_: *mut Handle, _: c_int) -> i32 {
    INVALID_VALUE
}

pub(super) unsafe extern "C" fn pool_create(_: *mut Handle, _: *const MemPoolProperties) -> i32 {
    INVALID_VALUE
}

pub(super) unsafe extern "C" fn pool_destroy(_: Handle) -> i32 {
    INVALID_VALUE
}

pub(super) unsafe extern "C" fn pool_set(_: Handle, _: c_int, _: *mut c_void) -> i32 {
    INVALID_VALUE
}

pub(super) unsafe extern "C" fn pool_trim(_: Handle, _: usize) -> i32 {
    INVALID_VALUE
}

pub(super) unsafe extern "C" fn retain(context: *mut Handle, ordinal: c_int) -> i32 {
    let Some(device) = device(ordinal) else { return INVALID_DEVICE };
    // SAFETY: as the driver's.
    unsafe { *context = std::ptr::from_ref(device).cast_mut().cast() };
    0
}

pub(super) unsafe extern "C" fn release(_: c_int) -> i32 {
    0
}

pub(super) unsafe extern "C" fn get_current(context: *mut Handle) -> i32 {
    // SAFETY: as the driver's.
    unsafe { *context = CURRENT.get() };
    0
}

pub(super) unsafe extern "C" fn set_current(context: Handle) -> i32 {
    CURRENT.set(context);
    0
}
