//! libtorch's stable C ABI (torch 2.10 and newer), found in the process at run time.
//!
//! Handles are pointers to torch's objects. A function returns 0, or the error is torch's own.

use std::ffi::{CStr, CString, c_char, c_void};
use std::sync::OnceLock;

use libloading::os::unix::{Library, RTLD_LAZY};
use pointwise::DType;

/// A tensor of torch, or a library, or another of its objects.
pub(crate) type Handle = *mut c_void;
/// An argument or a result of an op as a word: a handle, a number, a pointer.
pub(crate) type Word = u64;
/// A boxed kernel: its arguments on the stack, which it takes and replaces by its results.
pub(crate) type Kernel = unsafe extern "C-unwind" fn(*mut Word, u64, u64);

/// The version of the ABI that the words here are in: torch 2.10.
pub(crate) const VERSION: u64 = (2 << 56) | (10 << 48);

/// `dlopen` of a library that is there already, or not at all.
const NOLOAD: i32 = 4;

/// An element type of torch that ops can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Element {
    /// A type that pointwise has, too.
    Of(DType),
    /// f64, on the CPU alone.
    F64,
}

impl Element {
    /// Bytes of one.
    pub(crate) fn size(self) -> usize {
        match self {
            Element::Of(dtype) => dtype.size(),
            Element::F64 => 8,
        }
    }

    /// torch's name.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Element::Of(dtype) => dtype.torch_name(),
            Element::F64 => "float64",
        }
    }
}

macro_rules! functions {
    ($struct:ident: $($(#[$doc:meta])* $name:ident $symbol:literal: fn($($argument:ty),*) -> $result:ty;)*) => {
        /// Functions of a library of torch.
        #[derive(Debug)]
        pub(crate) struct $struct { $($(#[$doc])* pub(crate) $name: unsafe extern "C-unwind" fn($($argument),*) -> $result,)* }

        impl $struct {
            /// Finds them.
            fn find(library: &Library) -> Result<$struct, String> {
                // SAFETY: the symbols are functions of these types, as the headers of torch 2.10 (shim.h) and the
                // Itanium C++ ABI have them.
                Ok(unsafe { $struct { $($name: *symbol(library, $symbol)?,)* } })
            }
        }
    };
}

functions! { Torch:
    get_data_ptr c"aoti_torch_get_data_ptr": fn(Handle, *mut *mut c_void) -> i32;
    get_dim c"aoti_torch_get_dim": fn(Handle, *mut i64) -> i32;
    get_sizes c"aoti_torch_get_sizes": fn(Handle, *mut *const i64) -> i32;
    get_strides c"aoti_torch_get_strides": fn(Handle, *mut *const i64) -> i32;
    get_dtype c"aoti_torch_get_dtype": fn(Handle, *mut i32) -> i32;
    get_layout c"aoti_torch_get_layout": fn(Handle, *mut i32) -> i32;
    get_device_type c"aoti_torch_get_device_type": fn(Handle, *mut i32) -> i32;
    get_device_index c"aoti_torch_get_device_index": fn(Handle, *mut i32) -> i32;
    empty_strided c"aoti_torch_empty_strided": fn(i64, *const i64, *const i64, i32, i32, i32, *mut Handle) -> i32;
    new_handle c"aoti_torch_new_tensor_handle": fn(Handle, *mut Handle) -> i32;
    delete_tensor c"aoti_torch_delete_tensor_object": fn(Handle) -> i32;
    library_init_impl c"aoti_torch_library_init_impl": fn(*const c_char, *const c_char, *const c_char, u32, *mut Handle) -> i32;
    library_impl c"torch_library_impl": fn(Handle, *const c_char, Kernel, u64) -> i32;
    string_length c"torch_string_length": fn(Handle, *mut usize) -> i32;
    string_chars c"torch_string_c_str": fn(Handle, *mut *const c_char) -> i32;
    delete_string c"torch_delete_string": fn(Handle) -> i32;
    new_list c"torch_new_list_reserve_size": fn(usize, *mut Handle) -> i32;
    list_size c"torch_list_size": fn(Handle, *mut usize) -> i32;
    list_item c"torch_list_get_item": fn(Handle, usize, *mut Word) -> i32;
    list_push c"torch_list_push_back": fn(Handle, Word) -> i32;
    delete_list c"torch_delete_list": fn(Handle) -> i32;
}

functions! { Cuda:
    current_stream c"aoti_torch_get_current_cuda_stream": fn(i32, *mut *mut c_void) -> i32;
    create_guard c"aoti_torch_create_cuda_guard": fn(i32, *mut Handle) -> i32;
    delete_guard c"aoti_torch_delete_cuda_guard": fn(Handle) -> i32;
}

functions! { Cxx:
    allocate_exception c"__cxa_allocate_exception": fn(usize) -> *mut c_void;
    throw c"__cxa_throw": fn(*mut c_void, *const c_void, unsafe extern "C-unwind" fn(*mut c_void)) -> !;
    runtime_error c"_ZNSt13runtime_errorC1EPKc": fn(*mut c_void, *const c_char) -> ();
    drop_runtime_error c"_ZNSt13runtime_errorD1Ev": fn(*mut c_void) -> ();
    new c"_Znwm": fn(usize) -> *mut c_void;
    delete c"_ZdlPv": fn(*mut c_void) -> ();
}

/// The functions and numbers of torch that this crate uses.
#[derive(Debug)]
pub(crate) struct Api {
    /// `libtorch_cpu.so`, with `libc10.so`, which it needs.
    library: Library,
    /// Tensors, libraries.
    pub(crate) torch: Torch,
    /// Streams; none in a torch without CUDA.
    pub(crate) cuda: Option<Cuda>,
    /// C++ exceptions.
    pub(crate) cxx: Cxx,
    /// `typeid(std::runtime_error)`.
    runtime_error_type: usize,
    /// torch's codes of the element types.
    codes: Vec<(Element, i32)>,
    /// torch's number of the CPU.
    pub(crate) cpu: i32,
    /// torch's number of CUDA.
    pub(crate) cuda_type: i32,
    /// torch's number of the layout of dense tensors.
    pub(crate) strided: i32,
}

static API: OnceLock<Api> = OnceLock::new();

/// A symbol of a library.
///
/// # Safety
/// It is of type `T`.
unsafe fn symbol<T>(library: &Library, name: &CStr) -> Result<libloading::os::unix::Symbol<T>, String> {
    // SAFETY: the caller's promise.
    unsafe { library.get(name.to_bytes_with_nul()) }.map_err(|e| format!("torch 2.10 or newer is needed: {e}"))
}

/// A library that is loaded; it stays so.
fn loaded(path: &str) -> Result<Library, String> {
    // SAFETY: with NOLOAD no library is loaded, so that no code of one runs.
    let library = unsafe { Library::open(Some(path), RTLD_LAZY | NOLOAD) };
    library.map_err(|e| format!("{path} is not loaded ({e}): import torch first"))
}

impl Api {
    /// Finds torch in the process, whose library `libtorch_cpu.so` lies at `path`.
    ///
    /// # Errors
    /// A library that is not loaded; a torch older than 2.10.
    pub(crate) fn load(path: &str) -> Result<&'static Api, String> {
        if let Some(api) = API.get() {
            return Ok(api);
        }
        let library = loaded(path)?;
        let number = |name: &CStr| -> Result<i32, String> {
            // SAFETY: all of these are functions without arguments that return an i32.
            let function = unsafe { symbol::<unsafe extern "C" fn() -> i32>(&library, name)? };
            // SAFETY: as above; it returns a constant.
            Ok(unsafe { function() })
        };
        let mut codes = Vec::new();
        for element in DType::ALL.into_iter().map(Element::Of).chain([Element::F64]) {
            let name = CString::new(format!("aoti_torch_dtype_{}", element.name())).map_err(|e| e.to_string())?;
            codes.push((element, number(&name)?));
        }
        let cuda = loaded(&path.replace("libtorch_cpu", "libtorch_cuda")).ok();
        let cxx = loaded("libstdc++.so.6")?;
        // SAFETY: only the address is used.
        let runtime_error_type = *unsafe { symbol::<usize>(&cxx, c"_ZTISt13runtime_error")? };
        let api = Api {
            torch: Torch::find(&library)?,
            cuda: cuda.as_ref().map(Cuda::find).transpose()?,
            cxx: Cxx::find(&cxx)?,
            runtime_error_type,
            codes,
            cpu: number(c"aoti_torch_device_type_cpu")?,
            cuda_type: number(c"aoti_torch_device_type_cuda")?,
            strided: number(c"aoti_torch_layout_strided")?,
            library,
        };
        // The functions must stay loaded; torch cannot be unloaded anyway.
        std::mem::forget((cuda, cxx));
        Ok(API.get_or_init(|| api))
    }

    /// Returns the functions. They are loaded before any kernel runs.
    pub(crate) fn get() -> Result<&'static Api, String> {
        API.get().ok_or_else(|| "torch was not loaded: import torch first".to_owned())
    }

    /// The element type of a code of torch's.
    pub(crate) fn element(&self, code: i32) -> Option<Element> {
        self.codes.iter().find(|(_, known)| *known == code).map(|(element, _)| *element)
    }

    /// torch's code of an element type.
    pub(crate) fn code(&self, element: Element) -> i32 {
        self.codes.iter().find(|(known, _)| *known == element).map_or(0, |(_, code)| *code)
    }

    /// The address of a function of torch's C++ library, by its mangled name.
    pub(crate) fn address(&self, name: &str) -> Option<usize> {
        let name = CString::new(name).ok()?;
        // SAFETY: only the address is used.
        unsafe { symbol::<usize>(&self.library, &name) }.ok().map(|address| *address)
    }

    /// The text of a `str` argument, until it is dropped.
    pub(crate) fn text<'a>(&self, handle: Handle) -> &'a str {
        let (mut length, mut chars) = (0, std::ptr::null());
        // SAFETY: the caller has the handle from a schema with a string; its text is `length` bytes.
        unsafe {
            let code = (self.torch.string_length)(handle, &mut length) | (self.torch.string_chars)(handle, &mut chars);
            match code {
                0 => str::from_utf8(std::slice::from_raw_parts(chars.cast(), length)).unwrap_or(""),
                _ => "",
            }
        }
    }

    /// Drops a `str` argument.
    pub(crate) fn drop_text(&self, handle: Handle) {
        // SAFETY: the caller has the handle from a schema with a string, and does not use it again.
        unsafe { (self.torch.delete_string)(handle) };
    }

    /// Throws a `std::runtime_error`, which torch raises as Python's RuntimeError.
    ///
    /// # Safety
    /// The caller is called by C++ through `extern "C-unwind"`, and no frame between has anything to drop.
    pub(crate) unsafe fn throw(&self, message: CString) -> ! {
        // The size of a std::runtime_error: a pointer to its functions, and one to its text.
        const SIZE: usize = 16;
        let cxx = &self.cxx;
        // SAFETY: an exception of this size is allocated, constructed and thrown as C++ does it.
        unsafe {
            let error = (cxx.allocate_exception)(SIZE);
            (cxx.runtime_error)(error, message.as_ptr());
            // The exception has a copy.
            drop(message);
            (cxx.throw)(error, self.runtime_error_type as *const c_void, cxx.drop_runtime_error)
        }
    }
}
