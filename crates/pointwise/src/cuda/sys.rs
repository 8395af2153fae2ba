//! The driver functions this crate calls, with integers for results and pointers for handles. The one file that names
//! the binding crate.
//!
//! Results are plain `i32`: a newer driver may return codes that a binding's enum does not know.

use std::ffi::{c_char, c_int, c_uint, c_void};

use cudarc::driver::sys as bindings;
pub(crate) use cudarc::driver::sys::{
    CUdevice_attribute, CUmemPool_attribute, CUstreamCaptureMode, CUuuid,
};

/// Any handle of the driver: context, module, function, stream, event, graph, memory pool.
pub(crate) type Handle = *mut c_void;
/// An address in a device's memory.
pub(crate) type DevicePointer = u64;

macro_rules! driver {
    ($($name:ident($($arg:ident: $ty:ty),*);)*) => { $(
        #[allow(non_snake_case, clippy::missing_safety_doc)]
        #[inline]
        pub(crate) unsafe fn $name($($arg: $ty),*) -> i32 {
            // SAFETY: the caller upholds the driver function's contract; pointers and handles are of the same
            // representation in the binding.
            unsafe { bindings::$name($($arg as _),*) as i32 }
        }
    )* };
}

driver! {
    cuInit(flags: c_uint);
    cuDriverGetVersion(version: *mut c_int);
    cuGetErrorName(code: bindings::CUresult, name: *mut *const c_char);
    cuGetErrorString(code: bindings::CUresult, text: *mut *const c_char);
    cuDeviceGet(device: *mut c_int, ordinal: c_int);
    cuDeviceGetCount(count: *mut c_int);
    cuDeviceGetName(name: *mut c_char, len: c_int, device: c_int);
    cuDeviceGetUuid_v2(uuid: *mut CUuuid, device: c_int);
    cuDeviceTotalMem_v2(bytes: *mut usize, device: c_int);
    cuDeviceGetAttribute(value: *mut c_int, attribute: CUdevice_attribute, device: c_int);
    cuDeviceGetDefaultMemPool(pool: *mut Handle, device: c_int);
    cuMemPoolSetAttribute(pool: Handle, attribute: CUmemPool_attribute, value: *mut c_void);
    cuMemPoolTrimTo(pool: Handle, keep: usize);
    cuDevicePrimaryCtxRetain(context: *mut Handle, device: c_int);
    cuCtxGetCurrent(context: *mut Handle);
    cuCtxSetCurrent(context: Handle);
    cuCtxSynchronize();
    cuModuleLoadDataEx(module: *mut Handle, image: *const c_void, count: c_uint, options: *mut c_int, values: *mut *mut c_void);
    cuModuleUnload(module: Handle);
    cuModuleGetFunction(function: *mut Handle, module: Handle, name: *const c_char);
    cuLaunchKernel(function: Handle, grid_x: c_uint, grid_y: c_uint, grid_z: c_uint, block_x: c_uint, block_y: c_uint, block_z: c_uint, shared: c_uint, stream: Handle, params: *mut *mut c_void, extra: *mut *mut c_void);
    cuMemAllocAsync(pointer: *mut DevicePointer, bytes: usize, stream: Handle);
    cuMemFreeAsync(pointer: DevicePointer, stream: Handle);
    cuMemAlloc_v2(pointer: *mut DevicePointer, bytes: usize);
    cuMemFree_v2(pointer: DevicePointer);
    cuMemGetInfo_v2(free: *mut usize, total: *mut usize);
    cuMemcpyHtoDAsync_v2(to: DevicePointer, from: *const c_void, bytes: usize, stream: Handle);
    cuMemcpyDtoHAsync_v2(to: *mut c_void, from: DevicePointer, bytes: usize, stream: Handle);
    cuMemcpyDtoDAsync_v2(to: DevicePointer, from: DevicePointer, bytes: usize, stream: Handle);
    cuMemcpyPeerAsync(to: DevicePointer, to_context: Handle, from: DevicePointer, from_context: Handle, bytes: usize, stream: Handle);
    cuMemsetD8Async(to: DevicePointer, value: u8, bytes: usize, stream: Handle);
    cuStreamCreate(stream: *mut Handle, flags: c_uint);
    cuStreamDestroy_v2(stream: Handle);
    cuStreamSynchronize(stream: Handle);
    cuStreamGetCtx(stream: Handle, context: *mut Handle);
    cuStreamWaitEvent(stream: Handle, event: Handle, flags: c_uint);
    cuStreamBeginCapture_v2(stream: Handle, mode: CUstreamCaptureMode);
    cuStreamEndCapture(stream: Handle, graph: *mut Handle);
    cuGraphInstantiateWithFlags(exec: *mut Handle, graph: Handle, flags: u64);
    cuGraphLaunch(exec: Handle, stream: Handle);
    cuGraphExecDestroy(exec: Handle);
    cuGraphDestroy(graph: Handle);
    cuEventCreate(event: *mut Handle, flags: c_uint);
    cuEventDestroy_v2(event: Handle);
    cuEventRecord(event: Handle, stream: Handle);
    cuEventSynchronize(event: Handle);
    cuEventElapsedTime(milliseconds: *mut f32, start: Handle, end: Handle);
}
