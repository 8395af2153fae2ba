//! The two C functions that a package with ops of its own exports to Python. `pointwise.load` calls them.

use std::ffi::{CStr, CString, c_char};

use crate::abi::Api;
use crate::describe::describe;
use crate::kernel::{Library, implement};
use crate::threads;

/// Makes a library's ops callable from Python: write `pointwise_torch::export!();` once in a crate of the type `cdylib`.
///
/// It exports the ops that `#[pointwise::op]` made in the crate. In Python, `mine = pointwise.load("libmine.so", "mine")`
/// has them as `mine.NAME`, and as `torch.ops.mine.NAME`.
#[macro_export]
macro_rules! export {
    () => {
        /// The ops of this library as JSON: a text that stays.
        #[unsafe(no_mangle)]
        pub extern "C" fn pointwise_torch_describe() -> *const ::std::ffi::c_char {
            $crate::export::describe_package(env!("CARGO_PKG_NAME"))
        }

        /// Gives torch the kernels of a list; returns null, or what went wrong: a text that stays.
        ///
        /// # Safety
        /// All three are texts that end with a null.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn pointwise_torch_implement(
            torch: *const ::std::ffi::c_char,
            namespace: *const ::std::ffi::c_char,
            kernels: *const ::std::ffi::c_char,
        ) -> *const ::std::ffi::c_char {
            // SAFETY: the caller's promise.
            unsafe { $crate::export::implement_package(torch, namespace, kernels) }
        }
    };
}

/// A text that stays.
fn leak(text: String) -> *const c_char {
    CString::new(text.replace('\0', " ")).unwrap_or_default().into_raw()
}

/// The ops of a package as JSON.
#[doc(hidden)]
pub fn describe_package(package: &str) -> *const c_char {
    leak(describe(Library::of_package(package)))
}

/// Gives torch kernels.
///
/// # Safety
/// All three are texts that end with a null.
#[doc(hidden)]
pub unsafe fn implement_package(
    torch: *const c_char,
    namespace: *const c_char,
    kernels: *const c_char,
) -> *const c_char {
    // SAFETY: the caller's promise.
    let text = |pointer| unsafe { CStr::from_ptr(pointer) }.to_string_lossy().into_owned();
    match implement_all(&text(torch), &text(namespace), &text(kernels)) {
        Ok(()) => std::ptr::null(),
        Err(message) => leak(message),
    }
}

/// Gives torch kernels: lines of a dispatch key, a name with its overload, and a number.
///
/// # Errors
/// Errors of torch; lines of another form.
pub fn implement_all(torch: &str, namespace: &str, kernels: &str) -> Result<(), String> {
    let api = Api::load(torch)?;
    threads::use_torchs(api)?;
    let c = |text: &str| CString::new(text).map_err(|e| e.to_string());
    let mut keys: Vec<(&str, Vec<(CString, usize)>)> = Vec::new();
    for line in kernels.lines() {
        let mut words = line.split(' ');
        let (Some(key), Some(name), Some(Ok(number))) = (words.next(), words.next(), words.next().map(str::parse))
        else {
            return Err(format!("{line:?} is not a key, a name and a number"));
        };
        let kernel = (c(name)?, number);
        match keys.last_mut() {
            Some((known, list)) if *known == key => list.push(kernel),
            _ => keys.push((key, vec![kernel])),
        }
    }
    let namespace = c(namespace)?;
    keys.iter().try_for_each(|(key, list)| implement(api, &namespace, &c(key)?, list))
}
