//! The driver's functions over [`pointwise_emulator`]: devices that run the same PTX on the CPU and check every access.
//!
//! What is queued is done when the call returns, so that streams are in order by themselves and a fault is the error of
//! the call that launched the kernel. A captured stream records instead; a graph does what was recorded, in its order.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::ops::Range;
use std::ptr::null_mut;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Instant;

use pointwise_emulator::{Gpu, Kernel, Launch, MemoryError, Module, Settings};

use super::sys::{Api, DevicePointer, Driver, Handle, LaunchConfig, MemPoolProperties, attribute, code, jit};
use crate::error::{Error, ErrorKind, Result};

/// The compute capabilities that are emulated, one device each. The first is the default.
pub(crate) const ARCHITECTURES: [u32; 2] = [90, 80];

/// Multiprocessors of a device: few, so that small tensors take the launches of large ones.
const MULTIPROCESSORS: c_int = 4;
const L2_BYTES: c_int = 4 << 20;

/// `CUresult` values of this driver, beside those that [`code`] has.
const INVALID_VALUE: i32 = 1;
const INVALID_DEVICE: i32 = 101;
const NOT_FOUND: i32 = 500;
const NOT_READY: i32 = 600;
const CAPTURE_INVALIDATED: i32 = 901;
const CAPTURE_UNMATCHED: i32 = 903;
const CAPTURE_UNJOINED: i32 = 904;
const CAPTURE_ISOLATION: i32 = 905;

/// An emulated device, and the context of it.
struct Emulated {
    sm: u32,
    gpu: Gpu,
}

/// A stream: only what it records matters, as all else is done at once.
struct EmulatedStream {
    device: &'static Emulated,
    flags: c_uint,
    capture: Mutex<Option<Capture>>,
}

/// A capture that a stream is part of.
#[derive(Clone)]
struct Capture {
    recording: Arc<Mutex<Recording>>,
    /// Whether it was begun on this stream.
    is_origin: bool,
}

/// What the streams of a capture were given to do.
#[derive(Default)]
struct Recording {
    /// In the order of the calls, which respects every wait.
    commands: Vec<Command>,
    has_ended: bool,
    /// Streams that joined and have work that the capture's first stream does not wait for yet, with how many commands
    /// there were when they got it.
    open: HashMap<usize, usize>,
}

/// What a stream is given to do.
#[derive(Clone)]
enum Command {
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

/// A graph, or what it is instantiated as.
struct EmulatedGraph {
    device: &'static Emulated,
    commands: Vec<Command>,
}

/// An event: when it was recorded, and in which capture.
struct EmulatedEvent {
    at: Mutex<Option<Mark>>,
}

struct Mark {
    time: Instant,
    /// The capture, the stream in it, and how many commands there were.
    capture: Option<(Capture, usize, usize)>,
}

/// A loaded kernel.
struct EmulatedFunction {
    kernel: Kernel,
}

thread_local! {
    static CURRENT: Cell<Handle> = const { Cell::new(null_mut()) };
    static CAPTURE_MODE: Cell<c_int> = const { Cell::new(0) };
    /// What [`code::EMULATOR`] stands for, of the thread's last call.
    static FAULT: RefCell<Option<Arc<dyn std::error::Error + Send + Sync>>> = const { RefCell::new(None) };
    /// Run in place of the kernel of its name.
    static SUBSTITUTE: RefCell<Option<Kernel>> = const { RefCell::new(None) };
    /// What the thread's next launches may write.
    static RESULTS: RefCell<Option<Vec<Range<u64>>>> = const { RefCell::new(None) };
}

/// Says what the kernels that this thread launches from now on may write.
pub(crate) fn name_results(results: Vec<Range<u64>>) {
    RESULTS.set(Some(results));
}

/// Runs `call` with the kernel `name` of `ptx` in place of the embedded one of that name, on emulated devices and in this
/// thread: for tests of what a wrong kernel does. Launches fail if its parameters are others.
///
/// # Errors
/// [`ErrorKind::Emulator`] if the text is no PTX that the emulator knows, or has no such kernel.
pub fn with_kernel<T>(ptx: &str, name: &str, call: impl FnOnce() -> T) -> Result<T> {
    /// Takes the kernel out again, after a panic too.
    struct Out;
    impl Drop for Out {
        fn drop(&mut self) {
            SUBSTITUTE.set(None);
        }
    }
    let module = Module::parse(ptx)
        .map_err(|error| Error::caused(ErrorKind::Emulator { finding: error.to_string() }, Arc::new(error)))?;
    let absent = || ErrorKind::Emulator { finding: format!("the PTX has no kernel {name}") };
    let kernel = module.kernel(name).ok_or_else(absent)?;
    SUBSTITUTE.set(Some(kernel));
    let _out = Out;
    Ok(call())
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
        Driver { api: api(), version: (13, 0), devices, launch_early: early.then_some(launch_early) }
    }))
}

fn api() -> Api {
    Api {
        cuInit: init,
        cuGetErrorName: error_name,
        cuGetErrorString: error_string,
        cuDeviceGet: device_get,
        cuDeviceGetCount: device_count,
        cuDeviceGetName: device_name,
        cuDeviceGetUuid_v2: device_uuid,
        cuDeviceTotalMem_v2: device_memory,
        cuDeviceGetAttribute: device_attribute,
        cuDeviceGetDefaultMemPool: default_pool,
        cuMemPoolCreate: pool_create,
        cuMemPoolDestroy: pool_destroy,
        cuMemPoolSetAttribute: pool_set,
        cuMemPoolTrimTo: pool_trim,
        cuDevicePrimaryCtxRetain: retain,
        cuDevicePrimaryCtxRelease_v2: release,
        cuCtxGetCurrent: get_current,
        cuCtxSetCurrent: set_current,
        cuModuleLoadDataEx: module_load,
        cuModuleUnload: module_unload,
        cuModuleGetFunction: module_function,
        cuFuncSetAttribute: function_set,
        cuLaunchKernel: launch,
        cuMemAllocAsync: allocate_async,
        cuMemAllocFromPoolAsync: allocate_from_pool,
        cuMemFreeAsync: free_async,
        cuMemAlloc_v2: allocate,
        cuMemFree_v2: free,
        cuMemGetInfo_v2: memory_info,
        cuMemcpyHtoDAsync_v2: copy_in,
        cuMemcpyDtoHAsync_v2: copy_out,
        cuMemcpyDtoDAsync_v2: copy_within,
        cuMemcpyPeerAsync: copy_across,
        #[cfg(feature = "cust")]
        cuPointerGetAttribute: pointer_attribute,
        cuMemsetD8Async: fill,
        cuStreamCreate: stream_create,
        cuStreamDestroy_v2: stream_destroy,
        cuStreamSynchronize: stream_synchronize,
        cuStreamGetCtx: stream_context,
        cuStreamGetFlags: stream_flags,
        cuStreamIsCapturing: stream_is_capturing,
        cuStreamWaitEvent: stream_wait,
        cuStreamBeginCapture_v2: begin_capture,
        cuThreadExchangeStreamCaptureMode: exchange_capture_mode,
        cuStreamEndCapture: end_capture,
        cuGraphInstantiateWithFlags: graph_instantiate,
        cuGraphLaunch: graph_launch,
        cuGraphExecDestroy: graph_destroy,
        cuGraphDestroy: graph_destroy,
        cuEventCreate: event_create,
        cuEventDestroy_v2: event_destroy,
        cuEventRecord: event_record,
        cuEventSynchronize: event_synchronize,
        cuEventElapsedTime: event_elapsed,
    }
}

/// A kernel in place of another one takes other parameters.
#[derive(Debug, thiserror::Error)]
#[error("kernel `{name}` has other parameters than the one it replaces: {own}, not {given}")]
struct OtherParameters {
    name: String,
    own: String,
    given: String,
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
    fn capture(&self) -> Option<Capture> {
        let mut capture = held(&self.capture);
        if capture.as_ref().is_some_and(|capture| held(&capture.recording).has_ended) {
            *capture = None;
        }
        capture.clone()
    }

    fn id(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }
}

/// Does a command, or records it.
///
/// # Safety
/// `stream` is a live stream of this driver.
unsafe fn submit(stream: Handle, command: Command) -> i32 {
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

/// Whether a stream records.
///
/// # Safety
/// `stream` is a live stream of this driver.
unsafe fn records(stream: Handle) -> bool {
    // SAFETY: the caller's promise.
    unsafe { stream.cast::<EmulatedStream>().as_ref() }.is_some_and(|stream| stream.capture().is_some())
}

// Each function below is called as the driver's of the same meaning: pointers are to live values, handles are live and
// of this driver. `SAFETY: as the driver's` says so.

unsafe extern "C" fn init(_: c_uint) -> i32 {
    0
}

unsafe extern "C" fn error_name(number: i32, name: *mut *const c_char) -> i32 {
    let text: &CStr = match number {
        INVALID_VALUE => c"CUDA_ERROR_INVALID_VALUE",
        code::OUT_OF_MEMORY => c"CUDA_ERROR_OUT_OF_MEMORY",
        INVALID_DEVICE => c"CUDA_ERROR_INVALID_DEVICE",
        code::INVALID_PTX => c"CUDA_ERROR_INVALID_PTX",
        NOT_FOUND => c"CUDA_ERROR_NOT_FOUND",
        NOT_READY => c"CUDA_ERROR_NOT_READY",
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

unsafe extern "C" fn device_get(to: *mut c_int, ordinal: c_int) -> i32 {
    if device(ordinal).is_none() {
        return INVALID_DEVICE;
    }
    // SAFETY: as the driver's.
    unsafe { *to = ordinal };
    0
}

unsafe extern "C" fn device_count(count: *mut c_int) -> i32 {
    // SAFETY: as the driver's.
    unsafe { *count = ARCHITECTURES.len() as c_int };
    0
}

unsafe extern "C" fn device_name(name: *mut c_char, len: c_int, ordinal: c_int) -> i32 {
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

unsafe extern "C" fn device_uuid(uuid: *mut [u8; 16], ordinal: c_int) -> i32 {
    let Some(device) = device(ordinal) else { return INVALID_DEVICE };
    let mut bytes = *b"pointwise-emu\0\0\0";
    bytes[15] = device.sm as u8;
    // SAFETY: as the driver's.
    unsafe { *uuid = bytes };
    0
}

unsafe extern "C" fn device_memory(bytes: *mut usize, ordinal: c_int) -> i32 {
    let Some(device) = device(ordinal) else { return INVALID_DEVICE };
    // SAFETY: as the driver's.
    unsafe { *bytes = device.gpu.settings().memory_bytes };
    0
}

unsafe extern "C" fn device_attribute(value: *mut c_int, which: c_int, ordinal: c_int) -> i32 {
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

unsafe extern "C" fn default_pool(_: *mut Handle, _: c_int) -> i32 {
    INVALID_VALUE
}

unsafe extern "C" fn pool_create(_: *mut Handle, _: *const MemPoolProperties) -> i32 {
    INVALID_VALUE
}

unsafe extern "C" fn pool_destroy(_: Handle) -> i32 {
    INVALID_VALUE
}

unsafe extern "C" fn pool_set(_: Handle, _: c_int, _: *mut c_void) -> i32 {
    INVALID_VALUE
}

unsafe extern "C" fn pool_trim(_: Handle, _: usize) -> i32 {
    INVALID_VALUE
}

unsafe extern "C" fn retain(context: *mut Handle, ordinal: c_int) -> i32 {
    let Some(device) = device(ordinal) else { return INVALID_DEVICE };
    // SAFETY: as the driver's.
    unsafe { *context = std::ptr::from_ref(device).cast_mut().cast() };
    0
}

unsafe extern "C" fn release(_: c_int) -> i32 {
    0
}

unsafe extern "C" fn get_current(context: *mut Handle) -> i32 {
    // SAFETY: as the driver's.
    unsafe { *context = CURRENT.get() };
    0
}

unsafe extern "C" fn set_current(context: Handle) -> i32 {
    CURRENT.set(context);
    0
}

unsafe extern "C" fn module_load(
    to: *mut Handle,
    image: *const c_void,
    count: c_uint,
    options: *mut c_int,
    values: *mut *mut c_void,
) -> i32 {
    // SAFETY: as the driver's: PTX ends in a NUL byte.
    let text = unsafe { CStr::from_ptr(image.cast()) };
    let module = text.to_str().map_err(|_| "the PTX is not UTF-8".to_owned());
    match module.and_then(|text| Module::parse(text).map_err(|error| error.to_string())) {
        Ok(module) => {
            // SAFETY: as the driver's.
            unsafe { *to = handle(module) };
            0
        }
        Err(words) => {
            // SAFETY: as the driver's: options and values are of one length.
            unsafe { log(&words, count, options, values) };
            code::INVALID_PTX
        }
    }
}

/// Writes `words` to the buffer for errors among the options of a load.
///
/// # Safety
/// There are `count` options and values; the size of the buffer is one of them.
unsafe fn log(words: &str, count: c_uint, options: *const c_int, values: *const *mut c_void) {
    let find = |wanted: c_int| {
        // SAFETY: the caller's promise.
        (0..count as usize).find(|&k| unsafe { *options.add(k) } == wanted).map(|k| unsafe { *values.add(k) })
    };
    let (Some(buffer), Some(size)) = (find(jit::ERROR_LOG_BUFFER), find(jit::ERROR_LOG_BUFFER_SIZE)) else { return };
    let len = words.len().min(size.addr().saturating_sub(1));
    // SAFETY: the caller's promise: the buffer has `size` bytes.
    unsafe {
        std::ptr::copy_nonoverlapping(words.as_ptr(), buffer.cast(), len);
        *buffer.cast::<u8>().add(len) = 0;
    }
}

unsafe extern "C" fn module_unload(module: Handle) -> i32 {
    // SAFETY: as the driver's: loaded here, unloaded once. Functions keep what they need.
    drop(unsafe { Box::from_raw(module.cast::<Module>()) });
    0
}

unsafe extern "C" fn module_function(to: *mut Handle, module: Handle, name: *const c_char) -> i32 {
    // SAFETY: as the driver's.
    let (module, name) = unsafe { (&*module.cast::<Module>(), CStr::from_ptr(name)) };
    let Some(kernel) = name.to_str().ok().and_then(|name| module.kernel(name)) else { return NOT_FOUND };
    // SAFETY: as the driver's. Functions live as long as their modules, which this crate does not unload.
    unsafe { *to = handle(EmulatedFunction { kernel }) };
    0
}

unsafe extern "C" fn function_set(_: Handle, _: c_int, _: c_int) -> i32 {
    0
}

unsafe extern "C" fn launch(
    function: Handle,
    grid_x: c_uint,
    grid_y: c_uint,
    grid_z: c_uint,
    block_x: c_uint,
    block_y: c_uint,
    block_z: c_uint,
    shared: c_uint,
    stream: Handle,
    params: *mut *mut c_void,
    _: *mut *mut c_void,
) -> i32 {
    let (grid, block) = ([grid_x, grid_y, grid_z], [block_x, block_y, block_z]);
    // SAFETY: as the driver's.
    unsafe { queue(function, grid, block, shared, stream, params, false) }
}

unsafe extern "C" fn launch_early(
    config: *const LaunchConfig,
    function: Handle,
    params: *mut *mut c_void,
    _: *mut *mut c_void,
) -> i32 {
    // SAFETY: as the driver's. The only attribute that this crate passes says that the kernel may start early.
    unsafe {
        let config = &*config;
        queue(function, config.blocks, config.threads, config.shared, config.stream, params, config.count > 0)
    }
}

/// # Safety
/// As the driver's launch: `params` has a pointer for each of the kernel's parameters.
unsafe fn queue(
    function: Handle,
    grid: [u32; 3],
    block: [u32; 3],
    shared: u32,
    stream: Handle,
    params: *const *mut c_void,
    early: bool,
) -> i32 {
    // SAFETY: the caller's promise.
    let kernel = unsafe { &(*function.cast::<EmulatedFunction>()).kernel };
    let substitute = SUBSTITUTE.with_borrow(|other| other.clone().filter(|other| other.name() == kernel.name()));
    let same = |other: &Kernel| {
        let of = |kernel: &Kernel| kernel.parameters().iter().map(|p| (p.offset, p.bytes)).collect::<Vec<_>>();
        of(other) == of(kernel)
    };
    if let Some(other) = substitute.as_ref().filter(|other| !same(other)) {
        let size = |kernel: &Kernel| format!("{} of {} bytes", kernel.parameters().len(), kernel.parameter_bytes());
        let (name, own, given) = (kernel.name(), size(other), size(kernel));
        return fault(OtherParameters { name: name.to_owned(), own, given });
    }
    let kernel = substitute.as_ref().unwrap_or(kernel);
    let mut arguments = vec![0_u8; kernel.parameter_bytes()];
    for (k, parameter) in kernel.parameters().iter().enumerate() {
        let Some(to) = arguments.get_mut(parameter.offset..parameter.offset + parameter.bytes) else {
            return INVALID_VALUE;
        };
        // SAFETY: the caller's promise: the pointer is to a value of the parameter's type.
        unsafe { std::ptr::copy_nonoverlapping((*params.add(k)).cast::<u8>(), to.as_mut_ptr(), parameter.bytes) };
    }
    let results = RESULTS.with_borrow(Clone::clone);
    // SAFETY: the caller's promise.
    unsafe {
        submit(stream, Command::Launch { kernel: kernel.clone(), grid, block, shared, arguments, early, results })
    }
}

unsafe extern "C" fn allocate(to: *mut DevicePointer, bytes: usize) -> i32 {
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

unsafe extern "C" fn allocate_async(to: *mut DevicePointer, bytes: usize, _: Handle) -> i32 {
    // SAFETY: as the driver's.
    unsafe { allocate(to, bytes) }
}

unsafe extern "C" fn allocate_from_pool(to: *mut DevicePointer, bytes: usize, _: Handle, _: Handle) -> i32 {
    // SAFETY: as the driver's.
    unsafe { allocate(to, bytes) }
}

unsafe extern "C" fn free(address: DevicePointer) -> i32 {
    // SAFETY: as the driver's.
    match unsafe { current() } {
        Some(device) => memory_code(device.gpu.free(address)),
        None => INVALID_VALUE,
    }
}

unsafe extern "C" fn free_async(address: DevicePointer, _: Handle) -> i32 {
    // SAFETY: as the driver's.
    unsafe { free(address) }
}

unsafe extern "C" fn memory_info(free: *mut usize, total: *mut usize) -> i32 {
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

unsafe extern "C" fn copy_in(to: DevicePointer, from: *const c_void, bytes: usize, stream: Handle) -> i32 {
    // SAFETY: as the driver's.
    let (device, from) = unsafe {
        if records(stream) {
            return code::STREAM_CAPTURE_UNSUPPORTED;
        }
        (current(), std::slice::from_raw_parts(from.cast::<u8>(), bytes))
    };
    device.map_or(INVALID_VALUE, |device| memory_code(device.gpu.write(to, from)))
}

unsafe extern "C" fn copy_out(to: *mut c_void, from: DevicePointer, bytes: usize, stream: Handle) -> i32 {
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

unsafe extern "C" fn copy_within(to: DevicePointer, from: DevicePointer, bytes: usize, stream: Handle) -> i32 {
    // SAFETY: as the driver's.
    unsafe { submit(stream, Command::Copy { to, from, bytes }) }
}

unsafe extern "C" fn copy_across(
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
unsafe extern "C" fn pointer_attribute(_: *mut c_void, _: c_int, _: DevicePointer) -> i32 {
    INVALID_VALUE
}

unsafe extern "C" fn fill(to: DevicePointer, value: u8, bytes: usize, stream: Handle) -> i32 {
    // SAFETY: as the driver's.
    unsafe { submit(stream, Command::Fill { to, value, bytes }) }
}

unsafe extern "C" fn stream_create(to: *mut Handle, flags: c_uint) -> i32 {
    // SAFETY: as the driver's.
    let Some(device) = (unsafe { current() }) else { return INVALID_VALUE };
    // SAFETY: as the driver's.
    unsafe { *to = handle(EmulatedStream { device, flags, capture: Mutex::new(None) }) };
    0
}

unsafe extern "C" fn stream_destroy(stream: Handle) -> i32 {
    // SAFETY: as the driver's: created here, destroyed once.
    drop(unsafe { Box::from_raw(stream.cast::<EmulatedStream>()) });
    0
}

unsafe extern "C" fn stream_synchronize(stream: Handle) -> i32 {
    // SAFETY: as the driver's.
    if unsafe { records(stream) } { code::STREAM_CAPTURE_UNSUPPORTED } else { 0 }
}

unsafe extern "C" fn stream_context(stream: Handle, context: *mut Handle) -> i32 {
    // SAFETY: as the driver's.
    unsafe {
        let Some(stream) = stream.cast::<EmulatedStream>().as_ref() else { return INVALID_VALUE };
        *context = std::ptr::from_ref(stream.device).cast_mut().cast();
    }
    0
}

unsafe extern "C" fn stream_flags(stream: Handle, flags: *mut c_uint) -> i32 {
    // SAFETY: as the driver's.
    unsafe {
        let Some(stream) = stream.cast::<EmulatedStream>().as_ref() else { return INVALID_VALUE };
        *flags = stream.flags;
    }
    0
}

unsafe extern "C" fn stream_is_capturing(stream: Handle, status: *mut c_int) -> i32 {
    // SAFETY: as the driver's.
    unsafe { *status = c_int::from(records(stream)) };
    0
}

unsafe extern "C" fn stream_wait(stream: Handle, event: Handle, _: c_uint) -> i32 {
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

unsafe extern "C" fn begin_capture(stream: Handle, _: c_int) -> i32 {
    // SAFETY: as the driver's.
    let stream = unsafe { &*stream.cast::<EmulatedStream>() };
    if stream.capture().is_some() {
        return code::STREAM_CAPTURE_UNSUPPORTED;
    }
    *held(&stream.capture) = Some(Capture { recording: Arc::default(), is_origin: true });
    0
}

unsafe extern "C" fn exchange_capture_mode(mode: *mut c_int) -> i32 {
    // SAFETY: as the driver's.
    unsafe { *mode = CAPTURE_MODE.replace(*mode) };
    0
}

unsafe extern "C" fn end_capture(stream: Handle, to: *mut Handle) -> i32 {
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

unsafe extern "C" fn graph_instantiate(to: *mut Handle, graph: Handle, _: u64) -> i32 {
    // SAFETY: as the driver's.
    unsafe {
        let graph = &*graph.cast::<EmulatedGraph>();
        *to = handle(EmulatedGraph { device: graph.device, commands: graph.commands.clone() });
    }
    0
}

unsafe extern "C" fn graph_launch(graph: Handle, stream: Handle) -> i32 {
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

unsafe extern "C" fn graph_destroy(graph: Handle) -> i32 {
    // SAFETY: as the driver's: made here, destroyed once.
    drop(unsafe { Box::from_raw(graph.cast::<EmulatedGraph>()) });
    0
}

unsafe extern "C" fn event_create(to: *mut Handle, _: c_uint) -> i32 {
    // SAFETY: as the driver's.
    unsafe { *to = handle(EmulatedEvent { at: Mutex::new(None) }) };
    0
}

unsafe extern "C" fn event_destroy(event: Handle) -> i32 {
    // SAFETY: as the driver's: created here, destroyed once.
    drop(unsafe { Box::from_raw(event.cast::<EmulatedEvent>()) });
    0
}

unsafe extern "C" fn event_record(event: Handle, stream: Handle) -> i32 {
    // SAFETY: as the driver's.
    let (event, stream) = unsafe { (&*event.cast::<EmulatedEvent>(), &*stream.cast::<EmulatedStream>()) };
    let capture = stream.capture().map(|capture| {
        let count = held(&capture.recording).commands.len();
        (capture, stream.id(), count)
    });
    *held(&event.at) = Some(Mark { time: Instant::now(), capture });
    0
}

unsafe extern "C" fn event_synchronize(event: Handle) -> i32 {
    // SAFETY: as the driver's.
    let event = unsafe { &*event.cast::<EmulatedEvent>() };
    let is_captured = held(&event.at).as_ref().is_some_and(|mark| mark.capture.is_some());
    if is_captured { code::STREAM_CAPTURE_UNSUPPORTED } else { 0 }
}

unsafe extern "C" fn event_elapsed(milliseconds: *mut f32, start: Handle, end: Handle) -> i32 {
    // SAFETY: as the driver's.
    let [start, end] = unsafe { [start, end].map(|event| &*event.cast::<EmulatedEvent>()) };
    let [Some(start), Some(end)] = [start, end].map(|event| held(&event.at).as_ref().map(|mark| mark.time)) else {
        return NOT_READY;
    };
    // SAFETY: as the driver's.
    unsafe { *milliseconds = end.saturating_duration_since(start).as_secs_f32() * 1e3 };
    0
}
