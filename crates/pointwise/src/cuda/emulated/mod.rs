//! The driver's functions over [`pointwise_emulator`]: devices that run the same PTX on the CPU and check every access.
//!
//! Queued work is done when the call returns, so that streams are in order by themselves and a fault is the error of the
//! call that launched the kernel. A captured stream records instead; a graph does the recorded work, in its order.
//!
//! Each function of the modules is called as the driver's of the same meaning: pointers are to live values, handles are
//! live and of this driver. `SAFETY: as the driver's` says so.

mod capture;
mod device;
mod kernel;
mod memory;
mod stream;

use std::cell::{Cell, RefCell};
use std::ffi::{CStr, c_char, c_int};
use std::ptr::null_mut;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use pointwise_emulator::{Gpu, MemoryError, Settings};

pub(crate) use kernel::name_results;
pub use kernel::with_kernel;

use super::sys::{Api, Driver, Handle, code};
use crate::error::{Error, ErrorKind, Result};

/// The compute capabilities that are emulated, one device each. The first is the default.
pub(crate) const ARCHITECTURES: [u32; 2] = [90, 80];

/// `CUresult` values of this driver, beside those that [`code`] has.
const INVALID_VALUE: i32 = 1;
const INVALID_DEVICE: i32 = 101;
const NOT_FOUND: i32 = 500;
const CAPTURE_INVALIDATED: i32 = 901;
const CAPTURE_UNMATCHED: i32 = 903;
const CAPTURE_UNJOINED: i32 = 904;
const CAPTURE_ISOLATION: i32 = 905;

/// An emulated device, and the context of it.
struct Emulated {
    sm: u32,
    gpu: Gpu,
}

thread_local! {
    static CURRENT: Cell<Handle> = const { Cell::new(null_mut()) };
    /// The fault behind [`code::EMULATOR`], of the thread's last call.
    static FAULT: RefCell<Option<Arc<dyn std::error::Error + Send + Sync>>> = const { RefCell::new(None) };
}

fn devices() -> Result<&'static [Emulated]> {
    static DEVICES: OnceLock<Result<Vec<Emulated>>> = OnceLock::new();
    let made = DEVICES.get_or_init(|| {
        let settings = Settings::from_env()
            .map_err(|error| Error::caused(ErrorKind::Emulator { finding: error.to_string() }, Arc::new(error)))?;
        Ok(ARCHITECTURES.iter().map(|&sm| Emulated { sm, gpu: Gpu::new(settings.clone()) }).collect())
    });
    made.as_ref().map(Vec::as_slice).map_err(Error::clone)
}

/// The driver of the emulated devices.
///
/// # Errors
/// [`ErrorKind::Emulator`] if an environment variable has a value that is none of its.
pub(crate) fn driver() -> Result<&'static Driver> {
    static DRIVER: OnceLock<Driver> = OnceLock::new();
    let devices = devices()?.len();
    Ok(DRIVER.get_or_init(|| {
        let early = std::env::var("POINTWISE_DEPENDENT_LAUNCH").as_deref() != Ok("0");
        Driver { api: api(), version: (13, 0), devices, launch_early: early.then_some(kernel::launch_early) }
    }))
}

fn api() -> Api {
    Api {
        cuInit: device::init,
        cuGetErrorName: error_name,
        cuGetErrorString: error_string,
        cuDeviceGet: device::device_get,
        cuDeviceGetCount: device::device_count,
        cuDeviceGetName: device::device_name,
        cuDeviceGetUuid_v2: device::device_uuid,
        cuDeviceTotalMem_v2: device::device_memory,
        cuDeviceGetAttribute: device::device_attribute,
        cuDeviceGetDefaultMemPool: device::default_pool,
        cuMemPoolCreate: device::pool_create,
        cuMemPoolDestroy: device::pool_destroy,
        cuMemPoolSetAttribute: device::pool_set,
        cuMemPoolTrimTo: device::pool_trim,
        cuDevicePrimaryCtxRetain: device::retain,
        cuDevicePrimaryCtxRelease_v2: device::release,
        cuCtxGetCurrent: device::get_current,
        cuCtxSetCurrent: device::set_current,
        cuModuleLoadDataEx: kernel::module_load,
        cuModuleUnload: kernel::module_unload,
        cuModuleGetFunction: kernel::module_function,
        cuFuncSetAttribute: kernel::function_set,
        cuLaunchKernel: kernel::launch,
        cuMemAllocAsync: memory::allocate_async,
        cuMemAllocFromPoolAsync: memory::allocate_from_pool,
        cuMemFreeAsync: memory::free_async,
        cuMemAlloc_v2: memory::allocate,
        cuMemFree_v2: memory::free,
        cuMemGetInfo_v2: memory::memory_info,
        cuMemcpyHtoDAsync_v2: memory::copy_in,
        cuMemcpyDtoHAsync_v2: memory::copy_out,
        cuMemcpyDtoDAsync_v2: memory::copy_within,
        cuMemcpyPeerAsync: memory::copy_across,
        #[cfg(feature = "cust")]
        cuPointerGetAttribute: memory::pointer_attribute,
        cuMemsetD8Async: memory::fill,
        cuStreamCreate: stream::stream_create,
        cuStreamDestroy_v2: stream::stream_destroy,
        cuStreamSynchronize: stream::stream_synchronize,
        // Queued work is done already: the answer is as after a wait.
        cuStreamQuery: stream::stream_synchronize,
        cuStreamGetCtx: stream::stream_context,
        cuStreamGetFlags: stream::stream_flags,
        cuStreamIsCapturing: stream::stream_is_capturing,
        cuStreamWaitEvent: capture::stream_wait,
        cuStreamBeginCapture_v2: capture::begin_capture,
        cuThreadExchangeStreamCaptureMode: capture::exchange_capture_mode,
        cuStreamEndCapture: capture::end_capture,
        cuGraphInstantiateWithFlags: capture::graph_instantiate,
        cuGraphLaunch: capture::graph_launch,
        cuGraphExecDestroy: capture::graph_destroy,
        cuGraphDestroy: capture::graph_destroy,
        cuEventCreate: capture::event_create,
        cuEventDestroy_v2: capture::event_destroy,
        cuEventRecord: capture::event_record,
        // Queued work is done already: the answer is as after a wait.
        cuEventQuery: capture::event_synchronize,
        cuEventSynchronize: capture::event_synchronize,
        cuEventElapsedTime: capture::event_elapsed,
    }
}

/// Keeps a fault for [`fault_error`].
fn fault(error: impl std::error::Error + Send + Sync + 'static) -> i32 {
    FAULT.set(Some(Arc::new(error)));
    code::EMULATOR
}

/// The error that [`code::EMULATOR`] stands for, of the thread's last call.
#[cold]
pub(super) fn fault_error() -> Error {
    match FAULT.with_borrow(Clone::clone) {
        Some(source) => Error::caused(ErrorKind::Emulator { finding: source.to_string() }, source),
        None => ErrorKind::Emulator { finding: "a fault of another thread".to_owned() }.into(),
    }
}

fn memory_code(result: std::result::Result<(), MemoryError>) -> i32 {
    match result {
        Ok(()) => 0,
        Err(MemoryError::OutOfMemory { .. }) => code::OUT_OF_MEMORY,
        Err(error) => fault(error),
    }
}

fn held<T>(lock: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A handle that points to `value`, to be taken back by [`Box::from_raw`].
fn handle<T>(value: T) -> Handle {
    Box::into_raw(Box::new(value)).cast()
}

/// The calling thread's device.
///
/// # Safety
/// The thread's context was set by [`set_current`], with a handle that [`retain`] gave.
unsafe fn current() -> Option<&'static Emulated> {
    // SAFETY: the caller's promise; contexts are never freed.
    unsafe { CURRENT.get().cast::<Emulated>().as_ref() }
}

/// A device by its number.
fn device(ordinal: c_int) -> Option<&'static Emulated> {
    devices().ok()?.get(usize::try_from(ordinal).ok()?)
}

unsafe extern "C" fn error_name(number: i32, name: *mut *const c_char) -> i32 {
    let text: &CStr = match number {
        INVALID_VALUE => c"CUDA_ERROR_INVALID_VALUE",
        code::OUT_OF_MEMORY => c"CUDA_ERROR_OUT_OF_MEMORY",
        INVALID_DEVICE => c"CUDA_ERROR_INVALID_DEVICE",
        code::INVALID_PTX => c"CUDA_ERROR_INVALID_PTX",
        NOT_FOUND => c"CUDA_ERROR_NOT_FOUND",
        code::NOT_READY => c"CUDA_ERROR_NOT_READY",
        code::STREAM_CAPTURE_UNSUPPORTED => c"CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",
        CAPTURE_INVALIDATED => c"CUDA_ERROR_STREAM_CAPTURE_INVALIDATED",
        CAPTURE_UNMATCHED => c"CUDA_ERROR_STREAM_CAPTURE_UNMATCHED",
        CAPTURE_UNJOINED => c"CUDA_ERROR_STREAM_CAPTURE_UNJOINED",
        CAPTURE_ISOLATION => c"CUDA_ERROR_STREAM_CAPTURE_ISOLATION",
        _ => c"the emulator",
    };
    // SAFETY: as the driver's.
    unsafe { *name = text.as_ptr() };
    0
}

unsafe extern "C" fn error_string(number: i32, text: *mut *const c_char) -> i32 {
    let words = match number {
        CAPTURE_UNJOINED => c"a stream that joined the capture was not waited for at its end".as_ptr(),
        CAPTURE_UNMATCHED => c"the stream is not captured, or another one began the capture".as_ptr(),
        CAPTURE_ISOLATION => c"work in a capture would wait for work that is not in it".as_ptr(),
        code::STREAM_CAPTURE_UNSUPPORTED => c"the call cannot be captured".as_ptr(),
        _ => c"the emulated driver refuses the call".as_ptr(),
    };
    // SAFETY: as the driver's.
    unsafe { *text = words };
    0
}
