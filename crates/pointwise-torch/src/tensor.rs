//! torch's tensors: owned handles, and what they say of themselves.

use std::ffi::c_void;
use std::ops::Range;
use std::ptr::null_mut;

use crate::abi::{Api, Element, Handle};
use crate::layout;

/// An owned handle of a tensor.
#[derive(Debug)]
pub(crate) struct Tensor(Handle);

/// The memory of a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// The host's.
    Cpu,
    /// A CUDA device's.
    Cuda(i32),
}

/// A tensor's memory and layout.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Raw<'a> {
    /// The first element.
    pub(crate) data: *mut u8,
    /// The element type.
    pub(crate) element: Element,
    /// Its dimensions.
    pub(crate) sizes: &'a [i64],
    /// Steps between elements, in elements.
    pub(crate) strides: &'a [i64],
    /// The device of the memory.
    pub(crate) place: Place,
}

impl Drop for Tensor {
    fn drop(&mut self) {
        if let Ok(api) = Api::get() {
            // SAFETY: the handle is owned, and dropped once.
            unsafe { (api.torch.delete_tensor)(self.0) };
        }
    }
}

/// Turns torch's code into an error.
fn done(code: i32, what: &str) -> Result<(), String> {
    if code == 0 { Ok(()) } else { Err(format!("torch could not {what}")) }
}

impl Tensor {
    /// Takes a handle.
    ///
    /// # Safety
    /// It is a tensor's, and nobody else will delete it.
    pub(crate) unsafe fn from_handle(handle: Handle) -> Tensor {
        Tensor(handle)
    }

    /// Gives the handle away.
    pub(crate) fn into_handle(self) -> Handle {
        let handle = self.0;
        std::mem::forget(self);
        handle
    }

    /// Another handle of the same tensor.
    ///
    /// # Errors
    /// Errors of torch.
    pub(crate) fn again(&self, api: &Api) -> Result<Tensor, String> {
        let mut handle = null_mut();
        // SAFETY: the handle is a tensor's; the new one is ours.
        done(unsafe { (api.torch.new_handle)(self.0, &mut handle) }, "share a tensor")?;
        Ok(Tensor(handle))
    }

    /// A new tensor from torch's allocator.
    ///
    /// # Errors
    /// Out of memory.
    pub(crate) fn empty(
        api: &Api,
        sizes: &[i64],
        strides: &[i64],
        element: Element,
        place: Place,
    ) -> Result<Tensor, String> {
        let (kind, index) = match place {
            Place::Cpu => (api.cpu, 0),
            Place::Cuda(index) => (api.cuda_type, index),
        };
        let (rank, code) = (sizes.len() as i64, api.code(element));
        let mut handle = null_mut();
        // SAFETY: both lists have `rank` numbers.
        let result = unsafe {
            (api.torch.empty_strided)(rank, sizes.as_ptr(), strides.as_ptr(), code, kind, index, &mut handle)
        };
        // The text of an error is not made where there is none.
        if result == 0 {
            Ok(Tensor(handle))
        } else {
            Err(format!("torch could not allocate a tensor of sizes {sizes:?}"))
        }
    }

    /// The number of torch's device type: a tensor of another type than these two has no memory to look at.
    pub(crate) fn device_type(&self, api: &Api) -> i32 {
        let mut kind = -1;
        // SAFETY: the handle is a tensor's.
        unsafe { (api.torch.get_device_type)(self.0, &mut kind) };
        kind
    }

    /// torch's codes of its element type and layout.
    pub(crate) fn codes(&self, api: &Api) -> (i32, i32) {
        let (mut dtype, mut layout) = (-1, -1);
        // SAFETY: the handle is a tensor's.
        unsafe {
            (api.torch.get_dtype)(self.0, &mut dtype);
            (api.torch.get_layout)(self.0, &mut layout);
        }
        (dtype, layout)
    }

    /// Its first element.
    ///
    /// # Errors
    /// A tensor without memory.
    pub(crate) fn data(&self, api: &Api) -> Result<*mut u8, String> {
        let mut data = null_mut::<c_void>();
        // SAFETY: the handle is a dense tensor's.
        done(unsafe { (api.torch.get_data_ptr)(self.0, &mut data) }, "give a tensor's memory")?;
        Ok(data.cast())
    }

    /// Its memory and layout.
    ///
    /// # Errors
    /// An element type, a device or a layout that no op takes.
    pub(crate) fn raw(&self, api: &Api) -> Result<Raw<'_>, String> {
        self.raw_of(api, self.device_type(api), self.codes(api))
    }

    /// [`Tensor::raw`] of a tensor whose device type and codes are known.
    ///
    /// # Errors
    /// The errors of [`Tensor::raw`].
    pub(crate) fn raw_of(&self, api: &Api, kind: i32, (dtype, layout): (i32, i32)) -> Result<Raw<'_>, String> {
        let element = api.element(dtype).ok_or_else(|| {
            format!("pointwise has no kernels for torch's dtype number {dtype} (complex, for example)")
        })?;
        if layout != api.strided {
            return Err("pointwise takes dense tensors alone: call to_dense() first".to_owned());
        }
        let mut index = 0;
        // SAFETY: the handle is a tensor's.
        unsafe { (api.torch.get_device_index)(self.0, &mut index) };
        let place = match kind {
            kind if kind == api.cpu => Place::Cpu,
            kind if kind == api.cuda_type => Place::Cuda(index),
            other => return Err(format!("pointwise runs on CPU and CUDA, not on torch's device type number {other}")),
        };
        let (mut data, mut rank, mut sizes, mut strides) =
            (null_mut::<c_void>(), 0, std::ptr::null(), std::ptr::null());
        // SAFETY: the handle is a dense tensor's.
        let code = unsafe {
            (api.torch.get_data_ptr)(self.0, &mut data)
                | (api.torch.get_dim)(self.0, &mut rank)
                | (api.torch.get_sizes)(self.0, &mut sizes)
                | (api.torch.get_strides)(self.0, &mut strides)
        };
        done(code, "give a tensor's memory")?;
        let rank = rank as usize;
        let list = |pointer: *const i64| match rank {
            0 => &[][..],
            // SAFETY: torch has `rank` numbers there, for as long as the tensor is not resized.
            rank => unsafe { std::slice::from_raw_parts(pointer, rank) },
        };
        Ok(Raw { data: data.cast(), element, sizes: list(sizes), strides: list(strides), place })
    }
}

/// The addresses from the first element to behind the last.
fn range(raw: &Raw<'_>) -> Range<usize> {
    let bytes = layout::extent(raw.sizes, raw.strides).max(0) as usize * raw.element.size();
    raw.data.addr()..raw.data.addr() + bytes
}

/// True if two tensors share memory, for all that their ranges say.
pub(crate) fn overlap(a: &Raw<'_>, b: &Raw<'_>) -> bool {
    let (a, b) = (range(a), range(b));
    a.start < b.end && b.start < a.end
}

/// True if elements of a result are not each its own: indices may share one, or an operand overlaps it without being in
/// its place. torch runs some of these calls, and refuses others.
pub(crate) fn shares<'a>(out: &Raw<'_>, raws: impl IntoIterator<Item = &'a Raw<'a>>) -> bool {
    let same = |raw: &Raw<'_>| {
        let mut steps = raw.sizes.iter().zip(raw.strides.iter().zip(out.strides));
        let lies_alike = raw.sizes == out.sizes && steps.all(|(size, (a, b))| *size == 1 || a == b);
        raw.element == out.element && raw.data == out.data && lies_alike
    };
    let may_repeat = !layout::is_contiguous(out.sizes, out.strides) && layout::may_repeat(out.sizes, out.strides);
    may_repeat || raws.into_iter().any(|raw| overlap(raw, out) && !same(raw))
}
