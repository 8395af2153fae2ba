//! The driver functions this crate calls, loaded at run time: integers for results, pointers for handles.
//!
//! The table is ours, not cudarc's: its functions panic on a missing symbol and return an enum, while a newer driver may
//! return codes that enum does not have; and a program that depends on cudarc itself chooses there, for all of its crates,
//! which version of CUDA it is for.

use std::ffi::{c_char, c_int, c_uint, c_void};
use std::ptr::NonNull;
use std::sync::{Arc, OnceLock};

use libloading::Library;

use crate::error::{DriverError, Error, ErrorKind, Result};

/// Any handle of the driver: context, module, function, stream, event, graph, memory pool.
pub(crate) type Handle = *mut c_void;
/// An address in a device's memory.
pub(crate) type DevicePointer = u64;

/// The oldest driver that has every function below: CUDA 11.4, in the driver's way of counting.
const OLDEST: c_int = 11040;

/// The oldest driver that captures launches before the kernel before has ended: CUDA 12.3.
const EARLY_LAUNCHES: (u32, u32) = (12, 3);

/// `CUdevice_attribute` values.
pub(crate) mod attribute {
    pub(crate) const MULTIPROCESSOR_COUNT: i32 = 16;
    pub(crate) const L2_CACHE_SIZE: i32 = 38;
    pub(crate) const CAPABILITY_MAJOR: i32 = 75;
    pub(crate) const CAPABILITY_MINOR: i32 = 76;
    pub(crate) const MAX_SHARED_MEMORY_PER_MULTIPROCESSOR: i32 = 81;
    pub(crate) const MEMORY_POOLS_SUPPORTED: i32 = 115;
}

/// `CUfunction_attribute`: bytes of shared memory that a launch may give each block.
pub(crate) const MAX_DYNAMIC_SHARED_SIZE_BYTES: i32 = 8;
/// `CUmemPool_attribute`: bytes a pool keeps when it is idle.
pub(crate) const POOL_RELEASE_THRESHOLD: i32 = 4;
/// `CUpointer_attribute`: the context of an allocation.
#[cfg(feature = "cust")]
pub(crate) const POINTER_CONTEXT: i32 = 1;
/// `CUpointer_attribute`: the device of an allocation.
#[cfg(feature = "cust")]
pub(crate) const POINTER_DEVICE_ORDINAL: i32 = 9;
/// `CUstream_flags`: a stream that does not wait for the legacy default stream.
pub(crate) const STREAM_NON_BLOCKING: u32 = 1;
/// `CUstreamCaptureMode`: calls beside a capture are no part of it, and do not end it.
pub(crate) const CAPTURE_RELAXED: i32 = 2;

/// `CUjit_option` values.
pub(crate) mod jit {
    pub(crate) const INFO_LOG_BUFFER: i32 = 3;
    pub(crate) const INFO_LOG_BUFFER_SIZE: i32 = 4;
    pub(crate) const ERROR_LOG_BUFFER: i32 = 5;
    pub(crate) const ERROR_LOG_BUFFER_SIZE: i32 = 6;
}

/// `CUresult` values that are told apart.
pub(crate) mod code {
    pub(crate) const OUT_OF_MEMORY: i32 = 2;
    pub(crate) const STUB_LIBRARY: i32 = 34;
    pub(crate) const NO_DEVICE: i32 = 100;
    pub(crate) const NO_BINARY_FOR_GPU: i32 = 209;
    pub(crate) const INVALID_PTX: i32 = 218;
    pub(crate) const UNSUPPORTED_PTX_VERSION: i32 = 222;
    pub(crate) const NOT_READY: i32 = 600;
    pub(crate) const ILLEGAL_ADDRESS: i32 = 700;
    pub(crate) const LAUNCH_OUT_OF_RESOURCES: i32 = 701;
    pub(crate) const LAUNCH_TIMEOUT: i32 = 702;
    pub(crate) const ASSERT: i32 = 710;
    // From here to `LAUNCH_FAILED`, each says that the context is lost: illegal instruction, misaligned address,
    // invalid address space, invalid program counter.
    pub(crate) const HARDWARE_STACK_ERROR: i32 = 714;
    pub(crate) const LAUNCH_FAILED: i32 = 719;
    pub(crate) const STREAM_CAPTURE_UNSUPPORTED: i32 = 900;
    /// The last of those that say a stream is captured.
    pub(crate) const STREAM_CAPTURE_WRONG_THREAD: i32 = 908;
    /// The emulator found a fault. The driver has no such code.
    #[cfg(feature = "emulator")]
    pub(crate) const EMULATOR: i32 = 1 << 20;
}

macro_rules! driver {
    ($($(#[$when:meta])? $name:ident($($arg:ident: $ty:ty),*);)*) => {
        /// The driver's functions.
        #[allow(non_snake_case)]
        pub(crate) struct Api {
            $($(#[$when])? pub(crate) $name: unsafe extern "C" fn($($arg: $ty),*) -> i32,)*
        }

        impl Api {
            fn load() -> Result<Api, &'static str> {
                Ok(Api {
                    // SAFETY: the driver's header declares the function with this signature.
                    $($(#[$when])? $name: unsafe { symbol(stringify!($name)) }.ok_or(stringify!($name))?,)*
                })
            }

            /// Functions that do nothing, and return what the test wants.
            #[cfg(test)]
            pub(super) fn stub() -> Api {
                Api {
                    $($(#[$when])? $name: {
                        unsafe extern "C" fn stub($(_: $ty),*) -> i32 {
                            super::stub::answer(stringify!($name))
                        }
                        stub
                    },)*
                }
            }
        }
    };
}

driver! {
    cuInit(flags: c_uint);
    cuGetErrorName(code: i32, name: *mut *const c_char);
    cuGetErrorString(code: i32, text: *mut *const c_char);
    cuDeviceGet(device: *mut c_int, ordinal: c_int);
    cuDeviceGetCount(count: *mut c_int);
    cuDeviceGetName(name: *mut c_char, len: c_int, device: c_int);
    cuDeviceGetUuid_v2(uuid: *mut [u8; 16], device: c_int);
    cuDeviceTotalMem_v2(bytes: *mut usize, device: c_int);
    cuDeviceGetAttribute(value: *mut c_int, attribute: c_int, device: c_int);
    cuDeviceGetDefaultMemPool(pool: *mut Handle, device: c_int);
    cuMemPoolCreate(pool: *mut Handle, properties: *const MemPoolProperties);
    cuMemPoolDestroy(pool: Handle);
    cuMemPoolSetAttribute(pool: Handle, attribute: c_int, value: *mut c_void);
    cuMemPoolTrimTo(pool: Handle, keep: usize);
    cuDevicePrimaryCtxRetain(context: *mut Handle, device: c_int);
    cuDevicePrimaryCtxRelease_v2(device: c_int);
    cuCtxGetCurrent(context: *mut Handle);
    cuCtxSetCurrent(context: Handle);
    cuModuleLoadDataEx(module: *mut Handle, image: *const c_void, count: c_uint, options: *mut c_int, values: *mut *mut c_void);
    cuModuleUnload(module: Handle);
    cuModuleGetFunction(function: *mut Handle, module: Handle, name: *const c_char);
    cuFuncSetAttribute(function: Handle, attribute: c_int, value: c_int);
    cuLaunchKernel(
        function: Handle,
        grid_x: c_uint, grid_y: c_uint, grid_z: c_uint,
        block_x: c_uint, block_y: c_uint, block_z: c_uint,
        shared: c_uint, stream: Handle, params: *mut *mut c_void, extra: *mut *mut c_void
    );
    cuMemAllocAsync(pointer: *mut DevicePointer, bytes: usize, stream: Handle);
    cuMemAllocFromPoolAsync(pointer: *mut DevicePointer, bytes: usize, pool: Handle, stream: Handle);
    cuMemFreeAsync(pointer: DevicePointer, stream: Handle);
    cuMemAlloc_v2(pointer: *mut DevicePointer, bytes: usize);
    cuMemFree_v2(pointer: DevicePointer);
    cuMemGetInfo_v2(free: *mut usize, total: *mut usize);
    cuMemcpyHtoDAsync_v2(to: DevicePointer, from: *const c_void, bytes: usize, stream: Handle);
    cuMemcpyDtoHAsync_v2(to: *mut c_void, from: DevicePointer, bytes: usize, stream: Handle);
    cuMemcpyDtoDAsync_v2(to: DevicePointer, from: DevicePointer, bytes: usize, stream: Handle);
    cuMemcpyPeerAsync(
        to: DevicePointer, to_context: Handle, from: DevicePointer, from_context: Handle, bytes: usize, stream: Handle
    );
    #[cfg(feature = "cust")]
    cuPointerGetAttribute(value: *mut c_void, attribute: c_int, pointer: DevicePointer);
    cuMemsetD8Async(to: DevicePointer, value: u8, bytes: usize, stream: Handle);
    cuStreamCreate(stream: *mut Handle, flags: c_uint);
    cuStreamDestroy_v2(stream: Handle);
    cuStreamSynchronize(stream: Handle);
    cuStreamQuery(stream: Handle);
    cuStreamGetCtx(stream: Handle, context: *mut Handle);
    cuStreamGetFlags(stream: Handle, flags: *mut c_uint);
    cuStreamIsCapturing(stream: Handle, status: *mut c_int);
    cuStreamWaitEvent(stream: Handle, event: Handle, flags: c_uint);
    cuStreamBeginCapture_v2(stream: Handle, mode: c_int);
    cuThreadExchangeStreamCaptureMode(mode: *mut c_int);
    cuStreamEndCapture(stream: Handle, graph: *mut Handle);
    cuGraphInstantiateWithFlags(exec: *mut Handle, graph: Handle, flags: u64);
    cuGraphLaunch(exec: Handle, stream: Handle);
    cuGraphExecDestroy(exec: Handle);
    cuGraphDestroy(graph: Handle);
    cuEventCreate(event: *mut Handle, flags: c_uint);
    cuEventDestroy_v2(event: Handle);
    cuEventRecord(event: Handle, stream: Handle);
    cuEventQuery(event: Handle);
    cuEventSynchronize(event: Handle);
    cuEventElapsedTime(milliseconds: *mut f32, start: Handle, end: Handle);
}

/// `CUmemPoolProps`, of memory of a device that no other process sees.
#[repr(C)]
pub(crate) struct MemPoolProperties {
    allocation: c_int,
    handles: c_int,
    location: c_int,
    device: c_int,
    security: *const c_void,
    /// The most bytes, where not 0; and what later versions have put behind, all 0.
    rest: [u64; 8],
}

impl MemPoolProperties {
    pub(crate) const fn of(device: c_int) -> MemPoolProperties {
        // `CU_MEM_ALLOCATION_TYPE_PINNED`, `CU_MEM_LOCATION_TYPE_DEVICE`.
        MemPoolProperties { allocation: 1, handles: 0, location: 1, device, security: std::ptr::null(), rest: [0; 8] }
    }
}

/// `CUlaunchAttributeID`: the kernel may start before the one before it in the stream has ended.
pub(crate) const PROGRAMMATIC_STREAM_SERIALIZATION: c_int = 6;

/// `CUlaunchAttribute`, of an attribute whose value is a number.
#[repr(C, align(8))]
pub(crate) struct LaunchAttribute {
    pub(crate) id: c_int,
    padding: c_int,
    pub(crate) value: c_int,
    /// The rest of a union of 64 bytes.
    rest: [c_int; 15],
}

impl LaunchAttribute {
    pub(crate) const fn new(id: c_int, value: c_int) -> LaunchAttribute {
        LaunchAttribute { id, padding: 0, value, rest: [0; 15] }
    }
}

/// `CUlaunchConfig`.
#[repr(C)]
pub(crate) struct LaunchConfig {
    pub(crate) blocks: [c_uint; 3],
    pub(crate) threads: [c_uint; 3],
    pub(crate) shared: c_uint,
    pub(crate) stream: Handle,
    pub(crate) attributes: *const LaunchAttribute,
    pub(crate) count: c_uint,
}

/// `cuLaunchKernelEx`, of drivers since CUDA 11.8.
pub(crate) type LaunchKernelEx =
    unsafe extern "C" fn(*const LaunchConfig, Handle, *mut *mut c_void, *mut *mut c_void) -> i32;

/// The driver's library, by the names it is installed under.
const NAMES: &[&str] = if cfg!(windows) { &["nvcuda.dll"] } else { &["libcuda.so.1", "libcuda.so"] };

/// The driver's library; looked for once, never unloaded.
///
/// # Errors
/// The loader's, of the first name.
fn library() -> std::result::Result<&'static Library, Arc<libloading::Error>> {
    static LIBRARY: OnceLock<std::result::Result<Library, Arc<libloading::Error>>> = OnceLock::new();
    let load = || {
        // SAFETY: loading the driver runs its initialisers, which is what this is for.
        let mut tries = NAMES.iter().map(|name| unsafe { Library::new(*name) });
        let first = tries.next().unwrap_or(Err(libloading::Error::DlOpenUnknown));
        first.or_else(|error| tries.find_map(std::result::Result::ok).ok_or(Arc::new(error)))
    };
    LIBRARY.get_or_init(load).as_ref().map_err(Arc::clone)
}

/// A driver function by name.
///
/// # Safety
/// `T` must be the function's pointer type.
unsafe fn symbol<T: Copy>(name: &str) -> Option<T> {
    // SAFETY: any symbol's address can be read as an optional pointer.
    let address = *unsafe { library().ok()?.get::<Option<NonNull<c_void>>>(name) }.ok()?;
    // SAFETY: the caller vouches that `T` is the function's pointer type, and the address is not null.
    address.map(|address| unsafe { std::mem::transmute_copy::<NonNull<c_void>, T>(&address) })
}

/// The driver, loaded and initialised.
pub(crate) struct Driver {
    pub(crate) api: Api,
    /// The newest CUDA version it serves, major and minor.
    pub(crate) version: (u32, u32),
    pub(crate) devices: usize,
    /// For launches before the kernel before has ended, of drivers that also capture them in graphs, unless
    /// `POINTWISE_DEPENDENT_LAUNCH` is 0.
    pub(crate) launch_early: Option<LaunchKernelEx>,
}

impl Driver {
    /// The process's driver; looked for once.
    ///
    /// # Errors
    /// [`ErrorKind::NoDriver`], which says what was tried; [`ErrorKind::BrokenDriver`].
    pub(crate) fn get() -> Result<&'static Driver> {
        static DRIVER: OnceLock<Result<Driver>> = OnceLock::new();
        DRIVER.get_or_init(Driver::load).as_ref().map_err(Error::clone)
    }

    fn load() -> Result<Driver> {
        let absent = |tried: &str| Error::from(ErrorKind::NoDriver { tried: tried.to_owned() });
        let broken = |why: String| Error::from(ErrorKind::BrokenDriver { why });
        let failed = |api: &Api, call: &str, code| {
            let error = answer(api, code);
            Error::caused(ErrorKind::BrokenDriver { why: format!("{call} failed: {error}") }, Arc::new(error))
        };
        if let Err(error) = library() {
            let tried = format!("{} could not be loaded", NAMES.join(" or "));
            return Err(Error::caused(ErrorKind::NoDriver { tried }, error));
        }
        type GetVersion = unsafe extern "C" fn(*mut c_int) -> i32;
        // SAFETY: the type is the function's, and the library is there.
        let get_version: GetVersion = unsafe { symbol("cuDriverGetVersion") }
            .ok_or_else(|| absent("the libcuda found has no cuDriverGetVersion: it is not NVIDIA's"))?;
        let mut number = 0;
        // SAFETY: the pointer is to a live integer.
        let code = unsafe { get_version(&mut number) };
        if code != 0 {
            // A stub has no device behind it.
            let tried = format!("cuDriverGetVersion failed with {code}; the libcuda found may be the toolkit's stub");
            return Err(if code == code::STUB_LIBRARY { absent(&tried) } else { broken(tried) });
        }
        let version = split_version(number);
        if number < OLDEST {
            return Err(broken(format!(
                "it serves CUDA {}.{}, and CUDA 11.4 (driver 470) is the oldest that can be used",
                version.0, version.1
            )));
        }
        let api = Api::load().map_err(|name| {
            broken(format!("it says that it serves CUDA {}.{}, but has no {name}", version.0, version.1))
        })?;
        // SAFETY: no precondition.
        let code = unsafe { (api.cuInit)(0) };
        let mut count = 0;
        match code {
            // A driver without a device is a driver all the same: the error to come names the count.
            code::NO_DEVICE => {}
            0 => {
                // SAFETY: the pointer is to a live integer, the driver is initialised.
                let code = unsafe { (api.cuDeviceGetCount)(&mut count) };
                if code != 0 {
                    return Err(failed(&api, "cuDeviceGetCount", code));
                }
            }
            _ => return Err(failed(&api, "cuInit", code)),
        }
        let early = version >= EARLY_LAUNCHES && std::env::var("POINTWISE_DEPENDENT_LAUNCH").as_deref() != Ok("0");
        // SAFETY: the driver's header declares the function with this signature; the library is there.
        let launch_early = if early { unsafe { symbol("cuLaunchKernelEx") } } else { None };
        Ok(Driver { api, version, devices: usize::try_from(count).unwrap_or(0), launch_early })
    }
}

/// CUDA's version numbers: 12040 is 12.4.
fn split_version(number: c_int) -> (u32, u32) {
    let number = number.unsigned_abs();
    (number / 1000, number % 1000 / 10)
}

/// Returns the error of a result, with the driver's words.
pub(crate) fn answer(api: &Api, code: i32) -> DriverError {
    let read = |get: unsafe extern "C" fn(i32, *mut *const c_char) -> i32| {
        let mut text = std::ptr::null();
        // SAFETY: the pointer is to a live pointer; the driver takes any code.
        let found = unsafe { get(code, &mut text) } == 0 && !text.is_null();
        found.then(|| {
            // SAFETY: the driver's strings are NUL-terminated and live as long as the process.
            unsafe { std::ffi::CStr::from_ptr(text) }.to_string_lossy().into_owned()
        })
    };
    DriverError {
        code,
        name: read(api.cuGetErrorName).unwrap_or_else(|| "unknown result".to_owned()),
        text: read(api.cuGetErrorString).unwrap_or_else(|| "the driver has no words for it".to_owned()),
    }
}

/// A driver call's result as a [`Result`].
///
/// # Errors
/// [`ErrorKind::Driver`] for anything but success.
#[inline]
pub(crate) fn check(api: &Api, call: &'static str, code: i32) -> Result<()> {
    if code == 0 { Ok(()) } else { Err(driver_error(api, call, code)) }
}

#[cold]
fn driver_error(api: &Api, call: &'static str, code: i32) -> Error {
    #[cfg(feature = "emulator")]
    if code == code::EMULATOR {
        return super::emulated::fault_error();
    }
    let source = answer(api, code);
    let advice = match code {
        code::ILLEGAL_ADDRESS
        | code::LAUNCH_TIMEOUT
        | code::ASSERT
        | code::HARDWARE_STACK_ERROR..=code::LAUNCH_FAILED => {
            "; a kernel queued earlier did this and its device is lost to this process: start the program again"
        }
        code::LAUNCH_OUT_OF_RESOURCES => {
            "; a block of so many threads needs more registers than there are: take fewer threads a block"
        }
        code::STREAM_CAPTURE_UNSUPPORTED..=code::STREAM_CAPTURE_WRONG_THREAD => {
            "; while a stream is captured, call only what can be captured: the `_into` functions, no copies to the host"
        }
        _ => "",
    };
    let (name, message) = (source.name.clone(), format!("{}{advice}", source.text));
    Error::caused(ErrorKind::Driver { call, code, name, message }, Arc::new(source))
}

/// `call!(api, cuFunction(arguments))`: the call, checked. To be used in an `unsafe` block of its own.
macro_rules! call {
    ($api:expr, $name:ident($($arg:expr),* $(,)?)) => {{
        let api: &$crate::cuda::sys::Api = $api;
        $crate::cuda::sys::check(api, stringify!($name), (api.$name)($($arg),*))
    }};
}
pub(crate) use call;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn structs_are_the_headers() {
        assert_eq!((size_of::<LaunchAttribute>(), std::mem::offset_of!(LaunchAttribute, value)), (72, 8));
        assert_eq!((size_of::<MemPoolProperties>(), std::mem::offset_of!(MemPoolProperties, security)), (88, 16));
        assert_eq!((size_of::<LaunchConfig>(), std::mem::offset_of!(LaunchConfig, stream)), (56, 32));
        assert_eq!(
            (std::mem::offset_of!(LaunchConfig, attributes), std::mem::offset_of!(LaunchConfig, count)),
            (40, 48)
        );
    }

    #[test]
    fn versions_split() {
        assert_eq!(split_version(11040), (11, 4));
        assert_eq!(split_version(13020), (13, 2));
    }
}
