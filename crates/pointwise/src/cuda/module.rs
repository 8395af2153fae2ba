//! Loading one kernel: PTX, which the driver compiles, or machine code.

use std::ffi::{CString, c_int, c_void};
use std::ptr::null_mut;
use std::sync::Arc;

use super::Context;
use super::graph::Relaxed;
use super::sys::{self, Handle, call, code, jit};
use crate::error::{Error, ErrorKind, Result};

/// A loaded kernel, good for as long as its module is loaded.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Function(pub(super) Handle);

impl Function {
    /// For the cache of an entry; never null.
    pub(crate) fn into_raw(self) -> *mut c_void {
        self.0
    }

    /// # Safety
    /// `raw` is from [`Function::into_raw`].
    pub(crate) unsafe fn from_raw(raw: *mut c_void) -> Function {
        Function(raw)
    }
}

/// The bytes for the driver, and their purpose.
pub(crate) struct Image<'a> {
    /// PTX that ends in a NUL byte, or a cubin.
    pub(crate) bytes: &'a [u8],
    /// The compute capability it was compiled for.
    pub(crate) sm: u32,
    /// The PTX version; (0, 0) for a cubin.
    pub(crate) ptx: (u32, u32),
}

const LOG_BYTES: usize = 8192;

/// Loads `image` and finds `symbol` in it, to be launched with up to `shared` bytes of shared memory, or as much as the device has.
///
/// # Errors
/// [`ErrorKind::Load`] with the driver's log; [`ErrorKind::NoKernel`] if the image has no such symbol.
pub(crate) fn load(context: &'static Context, symbol: &str, image: &Image<'_>, shared: usize) -> Result<Module> {
    let is_ptx = image.ptx != (0, 0);
    if is_ptx && image.bytes.last() != Some(&0) {
        return Err(no_kernel(symbol, "its PTX does not end in a NUL byte: rebuild the kernels"));
    }
    let name = CString::new(symbol).map_err(|_| no_kernel(symbol, "a kernel's name cannot contain a NUL byte"))?;
    let _current = context.make_current()?;

    let mut error_log = vec![0_u8; LOG_BYTES];
    let mut info_log = vec![0_u8; LOG_BYTES];
    let mut options: [c_int; 4] =
        [jit::ERROR_LOG_BUFFER, jit::ERROR_LOG_BUFFER_SIZE, jit::INFO_LOG_BUFFER, jit::INFO_LOG_BUFFER_SIZE];
    // Sizes are passed in the pointers themselves.
    let mut values: [*mut c_void; 4] = [
        error_log.as_mut_ptr().cast(),
        std::ptr::without_provenance_mut(LOG_BYTES),
        info_log.as_mut_ptr().cast(),
        std::ptr::without_provenance_mut(LOG_BYTES),
    ];
    let mut module = null_mut();
    // Loading allocates, which spoils a capture under way on this thread unless it is said not to be part of it.
    let _relaxed = Relaxed::new(context)?;
    // SAFETY: the image is a whole cubin, or PTX with its NUL; options and values are of one length, and the buffers
    // outlive the call.
    let code = unsafe {
        (context.api.cuModuleLoadDataEx)(
            &mut module,
            image.bytes.as_ptr().cast(),
            options.len() as u32,
            options.as_mut_ptr(),
            values.as_mut_ptr(),
        )
    };
    if code != 0 {
        return Err(load_error(context, symbol, image, code, &error_log, &info_log));
    }
    let mut loaded = Module { context, module, function: Function(null_mut()) };
    let function = &mut loaded.function.0;
    // SAFETY: the module is loaded, the name ends in a NUL.
    let found = unsafe { call!(context.api, cuModuleGetFunction(function, module, name.as_ptr())) };
    found.map_err(|error| {
        no_kernel(symbol, &format!("it is not in the module embedded for it ({error}): rebuild the kernels"))
    })?;
    let shared = shared.min(context.info.block_shared_bytes());
    if shared > 0 {
        // SAFETY: the function is loaded.
        unsafe {
            call!(context.api, cuFuncSetAttribute(*function, sys::MAX_DYNAMIC_SHARED_SIZE_BYTES, shared as c_int))
        }?;
    }
    Ok(loaded)
}

/// A module, and its kernel. It is unloaded on drop: drop it when no work of the kernel is queued or captured.
pub(crate) struct Module {
    context: &'static Context,
    module: Handle,
    function: Function,
}

// SAFETY: the driver's handles may be used from any thread.
unsafe impl Send for Module {}
// SAFETY: as above; nothing of it changes.
unsafe impl Sync for Module {}

impl Module {
    /// The kernel.
    #[inline]
    pub(crate) fn function(&self) -> Function {
        self.function
    }

    /// Keeps the module loaded until the process ends.
    pub(crate) fn keep(self) -> Function {
        let function = self.function;
        std::mem::forget(self);
        function
    }
}

impl Drop for Module {
    fn drop(&mut self) {
        // To unload is no part of a capture that this thread has under way.
        let (Ok(_current), Ok(_relaxed)) = (self.context.make_current(), Relaxed::new(self.context)) else { return };
        // SAFETY: the module was loaded in `load`, is unloaded once, and nothing of it is in use. A failure leaves it
        // loaded: that costs memory alone.
        unsafe { (self.context.api.cuModuleUnload)(self.module) };
    }
}

fn no_kernel(symbol: &str, why: &str) -> Error {
    ErrorKind::NoKernel { symbol: symbol.to_owned(), why: why.to_owned() }.into()
}

#[cold]
fn load_error(
    context: &Context,
    symbol: &str,
    image: &Image<'_>,
    code: i32,
    error_log: &[u8],
    info_log: &[u8],
) -> Error {
    let text = |log: &[u8]| {
        let end = log.iter().position(|&byte| byte == 0).unwrap_or(log.len());
        String::from_utf8_lossy(&log[..end]).trim().to_owned()
    };
    let mut log = text(error_log);
    let info = text(info_log);
    if !info.is_empty() {
        if !log.is_empty() {
            log.push('\n');
        }
        log.push_str(&info);
    }
    let kind = ErrorKind::Load {
        symbol: symbol.to_owned(),
        sm: image.sm,
        driver: context.info.driver,
        ptx: image.ptx,
        code,
        log,
        advice: advice(code, image, context).unwrap_or_else(|| {
            sys::check(context.api, "cuModuleLoadDataEx", code)
                .err()
                .map_or_else(String::new, |error| error.to_string())
        }),
    };
    Error::caused(kind, Arc::new(sys::answer(context.api, code)))
}

fn advice(code: i32, image: &Image<'_>, context: &Context) -> Option<String> {
    let (major, minor) = image.ptx;
    let other_device = || {
        Some(format!(
            "the device is sm_{}, and code for sm_{} does not run on it: build the program's kernels for it, too \
             (pointwise_build::Kernels::targets; machine code, POINTWISE_CUBINS)",
            context.info.sm, image.sm
        ))
    };
    match code {
        code::UNSUPPORTED_PTX_VERSION => Some(match cuda_for_ptx(image.ptx) {
            Some((cuda_major, cuda_minor)) => format!(
                "PTX {major}.{minor} needs a driver for CUDA {cuda_major}.{cuda_minor} or newer: update the driver"
            ),
            None => format!("PTX {major}.{minor} needs a newer driver: update it"),
        }),
        // The driver's compiler gives this code for PTX of a newer device.
        code::INVALID_PTX if image.sm > context.info.sm => other_device(),
        code::NO_BINARY_FOR_GPU => other_device(),
        code::INVALID_PTX => {
            Some("the PTX is invalid, or this driver cannot read it: rebuild the kernels, and report it".to_owned())
        }
        _ => None,
    }
}

/// The CUDA release that brought a PTX version, from the table "PTX Release History" of NVIDIA's PTX ISA manual.
fn cuda_for_ptx((major, minor): (u32, u32)) -> Option<(u32, u32)> {
    match (major, minor) {
        (7, 0..=8) => Some((11, minor)),
        // 8.6 came with CUDA 12.7, 8.7 with 12.8.
        (8, 0..=5) => Some((12, minor)),
        (8, 6) => Some((12, 7)),
        (8, 7) => Some((12, 8)),
        (8, 8) => Some((12, 9)),
        (9, minor) => Some((13, minor)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cuda::stub;

    #[test]
    fn a_module_that_does_not_serve_is_unloaded() {
        let mut context = Context::create(stub::driver(""), 0).unwrap();
        context.info.shared_bytes = 100 << 10;
        let context: &'static Context = Box::leak(Box::new(context));
        let image = Image { bytes: b"\0", sm: 80, ptx: (7, 0) };
        for (failing, loaded, unloaded) in
            [("cuModuleLoadDataEx", 0, 0), ("cuModuleGetFunction", 1, 1), ("cuFuncSetAttribute", 1, 1), ("", 1, 0)]
        {
            stub::fail(failing);
            assert_eq!(
                load(context, "relu_f32", &image, 64).map(Module::keep).is_err(),
                !failing.is_empty(),
                "{failing}"
            );
            let calls = stub::calls();
            let count = |name: &str| calls.iter().filter(|call| **call == name).count();
            let counts = (count("cuModuleLoadDataEx"), count("cuModuleUnload"));
            assert_eq!(counts, (loaded, unloaded), "{failing}: {calls:?}");
        }
    }
}
