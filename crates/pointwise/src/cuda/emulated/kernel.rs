//! Modules and launches; kernels that tests put in place of others.

use std::cell::RefCell;
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::ops::Range;
use std::sync::Arc;

use pointwise_emulator::{Kernel, Module};

use super::stream::{Command, submit};
use super::{INVALID_VALUE, NOT_FOUND, fault, handle};
use crate::cuda::sys::{Handle, LaunchConfig, code, jit};
use crate::error::{Error, ErrorKind, Result};

thread_local! {
    /// Run in place of the kernel of its name.
    static SUBSTITUTE: RefCell<Option<Kernel>> = const { RefCell::new(None) };
    /// The memory that the thread's next launches may write.
    static RESULTS: RefCell<Option<Vec<Range<u64>>>> = const { RefCell::new(None) };
}

/// A loaded kernel.
struct EmulatedFunction {
    kernel: Kernel,
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

/// A kernel in place of another one takes other parameters.
#[derive(Debug, thiserror::Error)]
#[error("kernel `{name}` has other parameters than the one it replaces: {own}, not {given}")]
struct OtherParameters {
    name: String,
    own: String,
    given: String,
}

pub(super) unsafe extern "C" fn module_load(
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

pub(super) unsafe extern "C" fn module_unload(module: Handle) -> i32 {
    // SAFETY: as the driver's: loaded here, unloaded once. Functions keep what they need.
    drop(unsafe { Box::from_raw(module.cast::<Module>()) });
    0
}

pub(super) unsafe extern "C" fn module_function(to: *mut Handle, module: Handle, name: *const c_char) -> i32 {
    // SAFETY: as the driver's.
    let (module, name) = unsafe { (&*module.cast::<Module>(), CStr::from_ptr(name)) };
    let Some(kernel) = name.to_str().ok().and_then(|name| module.kernel(name)) else { return NOT_FOUND };
    // SAFETY: as the driver's. The function is never freed: it holds a share of the parsed module, which is small.
    unsafe { *to = handle(EmulatedFunction { kernel }) };
    0
}

pub(super) unsafe extern "C" fn function_set(_: Handle, _: c_int, _: c_int) -> i32 {
    0
}

pub(super) unsafe extern "C" fn launch(
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

pub(super) unsafe extern "C" fn launch_early(
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
/// `params` has a pointer for each of the kernel's parameters, to a value of its type.
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
