//! Tensors to and from every library that speaks [DLPack](https://dmlc.github.io/dlpack/latest/), without a copy.
//!
//! A producer hands over a C struct that describes its memory and has a function to give it back. [`Managed`] takes one
//! over and makes a tensor of it, on the CPU or a CUDA device. [`export`] and [`export_versioned`] make one of a
//! tensor. In Python such a struct travels in a capsule, named `dltensor` or `dltensor_versioned`.
//!
//! ```
//! use pointwise::{Device, Tensor, interop::dlpack, ops};
//!
//! let x = Tensor::from_slice(&Device::cpu(), &[-1.0_f32, 2.0], [2])?;
//! let given = dlpack::export_versioned(x, None)?;
//! // SAFETY: it was just made, and nobody else has it.
//! let x = unsafe { dlpack::Managed::from_versioned(given)? }.into_tensor()?;
//! assert_eq!(ops::relu(&x)?.to_vec::<f32>()?, [0.0, 2.0]);
//! # Ok::<(), pointwise::Error>(())
//! ```

use std::ffi::c_void;
use std::ptr::{NonNull, null_mut};

use pointwise_core::DType;

use super::Foreign;
use crate::error::{ErrorKind, Result};
use crate::shape::Shape;
use crate::tensor::{RawPointer, Tensor};
use crate::{Device, Error, Stream};

/// The version of DLPack that [`export_versioned`] writes.
pub const VERSION: DLPackVersion = DLPackVersion { major: 1, minor: 1 };
/// The flag of memory that the consumer must not write.
pub const READ_ONLY: u64 = 1;

/// A version of DLPack. Structs of one major version have one layout.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DLPackVersion {
    /// Changes with the layout.
    pub major: u32,
    /// Changes with the types and devices there are.
    pub minor: u32,
}

/// A kind of memory and its device's number.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DLDevice {
    /// 1 the CPU, 2 CUDA, 3 the CPU's memory pinned for CUDA, 13 CUDA's managed memory.
    pub device_type: i32,
    /// The device's number.
    pub device_id: i32,
}

/// An element type.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DLDataType {
    /// The kind: 0 integer, 1 unsigned, 2 float, 4 bf16, 6 bool, 10 f8e4m3, 12 f8e5m2.
    pub code: u8,
    /// Bits of a lane.
    pub bits: u8,
    /// Lanes of an element.
    pub lanes: u16,
}

/// Memory and the order of the elements in it.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct DLTensor {
    /// The memory.
    pub data: *mut c_void,
    /// The place of the memory.
    pub device: DLDevice,
    /// The number of dimensions.
    pub ndim: i32,
    /// The element type.
    pub dtype: DLDataType,
    /// `ndim` sizes.
    pub shape: *mut i64,
    /// `ndim` steps in elements; null for elements one after another, the last dimension innermost.
    pub strides: *mut i64,
    /// Bytes from `data` to the first element.
    pub byte_offset: u64,
}

/// A tensor with its owner, as before version 1.0.
#[repr(C)]
#[derive(Debug)]
pub struct DLManagedTensor {
    /// The tensor.
    pub dl_tensor: DLTensor,
    /// A pointer for the owner's use.
    pub manager_ctx: *mut c_void,
    /// Gives the struct and the memory back; may be null.
    pub deleter: Option<unsafe extern "C" fn(*mut DLManagedTensor)>,
}

/// A tensor with its owner.
#[repr(C)]
#[derive(Debug)]
pub struct DLManagedTensorVersioned {
    /// The version of the struct.
    pub version: DLPackVersion,
    /// A pointer for the owner's use.
    pub manager_ctx: *mut c_void,
    /// Gives the struct and the memory back; may be null.
    pub deleter: Option<unsafe extern "C" fn(*mut DLManagedTensorVersioned)>,
    /// [`READ_ONLY`], and others.
    pub flags: u64,
    /// The tensor.
    pub dl_tensor: DLTensor,
}

/// A struct taken over from other code. It is given back on drop, on any thread.
#[derive(Debug)]
pub struct Managed(Given);

#[derive(Debug)]
enum Given {
    Versioned(NonNull<DLManagedTensorVersioned>),
    Unversioned(NonNull<DLManagedTensor>),
}

// SAFETY: the maker has promised that its deleter may be called on any thread; all else is only read.
unsafe impl Send for Managed {}
// SAFETY: as above.
unsafe impl Sync for Managed {}

impl Drop for Managed {
    fn drop(&mut self) {
        // SAFETY: the struct was taken over, so that it is live and given back once.
        unsafe {
            match self.0 {
                Given::Versioned(given) => {
                    if let Some(deleter) = given.as_ref().deleter {
                        deleter(given.as_ptr());
                    }
                }
                Given::Unversioned(given) => {
                    if let Some(deleter) = given.as_ref().deleter {
                        deleter(given.as_ptr());
                    }
                }
            }
        }
    }
}

impl Managed {
    /// Takes over a struct of version 1. It is given back if this fails, too.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] for another version.
    ///
    /// # Safety
    /// `given` points to a live struct of DLPack, which nobody else uses from now on and whose deleter may be called on
    /// any thread. Until the result is dropped, its memory meets the conditions of
    /// [`TensorView::from_raw_parts`](crate::TensorView::from_raw_parts) and, without the flag [`READ_ONLY`], of
    /// [`TensorViewMut::from_raw_parts`](crate::TensorViewMut::from_raw_parts). Work on a GPU is done, or will be
    /// waited for, before that.
    pub unsafe fn from_versioned(given: NonNull<DLManagedTensorVersioned>) -> Result<Managed> {
        // The deleter has the same place in structs of every version.
        let managed = Managed(Given::Versioned(given));
        // SAFETY: the caller's promise; the version comes first in structs of every version.
        let version = unsafe { given.cast::<DLPackVersion>().read() };
        if version.major != VERSION.major {
            return Err(ErrorKind::Unsupported {
                what: format!("a tensor of DLPack {}.{}", version.major, version.minor),
                advice: "ask the producer for version 1 (`max_version`)".to_owned(),
            }
            .into());
        }
        Ok(managed)
    }

    /// Takes over a struct as before version 1.0, which has no flags: its memory may be written.
    ///
    /// # Safety
    /// The conditions of [`Managed::from_versioned`].
    pub unsafe fn from_unversioned(given: NonNull<DLManagedTensor>) -> Managed {
        Managed(Given::Unversioned(given))
    }

    /// The struct's tensor.
    pub fn tensor(&self) -> &DLTensor {
        // SAFETY: the struct is live until this is dropped.
        unsafe {
            match &self.0 {
                Given::Versioned(given) => &given.as_ref().dl_tensor,
                Given::Unversioned(given) => &given.as_ref().dl_tensor,
            }
        }
    }

    /// The sizes of the dimensions.
    ///
    /// # Errors
    /// [`ErrorKind::Parameter`] for a negative number of dimensions, or for a null pointer to the sizes.
    pub fn sizes(&self) -> Result<&[i64]> {
        let rank = self.rank()?;
        if rank > 0 && self.tensor().shape.is_null() {
            return Err(parameter("shape", "null".to_owned(), "must point to the sizes"));
        }
        // SAFETY: there are that many, until this is dropped.
        Ok(unsafe { list(self.tensor().shape, rank) })
    }

    /// The steps in elements; none if the elements lie one after another, the last dimension innermost.
    ///
    /// # Errors
    /// The errors of a negative number of dimensions, as in [`Managed::sizes`].
    pub fn strides(&self) -> Result<Option<&[i64]>> {
        let rank = self.rank()?;
        let strides = self.tensor().strides;
        // SAFETY: as above.
        Ok((!strides.is_null()).then(|| unsafe { list(strides, rank) }))
    }

    /// The first element.
    pub fn data(&self) -> *mut u8 {
        // An offset beyond the address space points to no valid memory, so it may wrap.
        self.tensor().data.cast::<u8>().wrapping_add(self.tensor().byte_offset as usize)
    }

    /// True if the memory must not be written.
    pub fn is_read_only(&self) -> bool {
        match &self.0 {
            // SAFETY: the struct is live until this is dropped.
            Given::Versioned(given) => unsafe { given.as_ref() }.flags & READ_ONLY != 0,
            Given::Unversioned(_) => false,
        }
    }

    fn rank(&self) -> Result<usize> {
        let ndim = self.tensor().ndim;
        usize::try_from(ndim).map_err(|_| parameter("ndim", ndim.to_string(), "must not be negative"))
    }

    /// The tensor, on the CPU or a CUDA device.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] for an element type or a device that the crate does not have; bad sizes, strides or
    /// pointers; more dimensions than [`MAX_RANK`](crate::tensor::MAX_RANK); the errors of [`Device::cuda`].
    pub fn into_tensor(self) -> Result<Foreign<'static, Managed>> {
        let sizes = self.sizes()?;
        let dims: Option<Vec<usize>> = sizes.iter().map(|&size| usize::try_from(size).ok()).collect();
        let dims = dims.ok_or_else(|| parameter("shape", format!("{sizes:?}"), "must not be negative"))?;
        let shape = Shape::new(&dims)?;
        let contiguous = shape.contiguous_strides();
        let strides = self.strides()?.unwrap_or(&contiguous);
        let (device, dtype) = (self.tensor().device.device()?, self.tensor().dtype.dtype()?);
        let pointer = RawPointer::from(self.data());
        // SAFETY: the promise of the maker.
        let found = unsafe { Foreign::checked(&device, pointer, dtype, shape, strides, !self.is_read_only()) }?;
        Ok(found.kept_by(self))
    }
}

fn parameter(name: &'static str, value: String, why: &str) -> Error {
    ErrorKind::Parameter { name, value, why: why.to_owned() }.into()
}

/// # Safety
/// `pointer` points to `len` numbers for `'a`, unless `len` is 0 or it is null.
unsafe fn list<'a>(pointer: *const i64, len: usize) -> &'a [i64] {
    // SAFETY: the caller's promise.
    if len == 0 || pointer.is_null() { &[] } else { unsafe { std::slice::from_raw_parts(pointer, len) } }
}

/// Makes a struct of version 1.1 that owns the tensor until its deleter is called. It has the flag [`READ_ONLY`] if
/// another tensor has the memory.
///
/// The consumer works on `stream`. The stream waits for the work that writes the tensor, and the memory is freed after
/// the work that is queued there. Without a stream, the consumer must wait for the tensor's device
/// ([`Device::synchronize`]) and be done with the memory before it calls the deleter.
///
/// # Errors
/// [`ErrorKind::Unsupported`] for an emulated device; a stream of another device; errors of the driver.
pub fn export_versioned(tensor: Tensor, stream: Option<&Stream>) -> Result<NonNull<DLManagedTensorVersioned>> {
    unsafe extern "C" fn delete(given: *mut DLManagedTensorVersioned) {
        // SAFETY: the consumer gives back once what was made below.
        drop(unsafe { Box::from_raw((*given).manager_ctx.cast::<Exported<DLManagedTensorVersioned>>()) });
    }
    Exported::give(tensor, stream, |dl_tensor, is_shared| {
        Ok(DLManagedTensorVersioned {
            version: VERSION,
            manager_ctx: null_mut(),
            deleter: Some(delete),
            flags: if is_shared { READ_ONLY } else { 0 },
            dl_tensor,
        })
    })
}

/// [`export_versioned`] as a struct from before version 1.0, which has no flag for memory that must not be written.
///
/// # Errors
/// The errors of [`export_versioned`], and [`ErrorKind::Shared`] while another tensor has the memory.
pub fn export(tensor: Tensor, stream: Option<&Stream>) -> Result<NonNull<DLManagedTensor>> {
    unsafe extern "C" fn delete(given: *mut DLManagedTensor) {
        // SAFETY: the consumer gives back once what was made below.
        drop(unsafe { Box::from_raw((*given).manager_ctx.cast::<Exported<DLManagedTensor>>()) });
    }
    Exported::give(tensor, stream, |dl_tensor, is_shared| {
        if is_shared {
            return Err(ErrorKind::Shared.into());
        }
        Ok(DLManagedTensor { dl_tensor, manager_ctx: null_mut(), deleter: Some(delete) })
    })
}

/// A struct with all that it points to.
struct Exported<M> {
    managed: M,
    sizes: Vec<i64>,
    strides: Vec<i64>,
    _tensor: Tensor,
}

/// The fields of both structs.
trait HasTensor {
    fn parts(&mut self) -> (&mut DLTensor, &mut *mut c_void);
}

impl HasTensor for DLManagedTensorVersioned {
    fn parts(&mut self) -> (&mut DLTensor, &mut *mut c_void) {
        (&mut self.dl_tensor, &mut self.manager_ctx)
    }
}

impl HasTensor for DLManagedTensor {
    fn parts(&mut self) -> (&mut DLTensor, &mut *mut c_void) {
        (&mut self.dl_tensor, &mut self.manager_ctx)
    }
}

impl<M: HasTensor> Exported<M> {
    fn give(
        mut tensor: Tensor,
        stream: Option<&Stream>,
        managed: impl FnOnce(DLTensor, bool) -> Result<M>,
    ) -> Result<NonNull<M>> {
        let device = device_for(tensor.device())?;
        if let Some(stream) = stream {
            stream.check_device(tensor.device())?;
            if let Some(context) = tensor.device().context() {
                let view = tensor.view();
                drop(view.hold_own(context)?);
                view.use_on(&context.hold(stream.shared())?)?;
            }
            stream.wait_for(&tensor.device().stream())?;
        }
        let is_shared = tensor.view_mut().is_err();
        let dl_tensor = DLTensor {
            data: tensor.as_ptr().cast_mut().cast(),
            device,
            ndim: tensor.shape().rank() as i32,
            dtype: dtype_for(tensor.dtype()),
            shape: null_mut(),
            strides: null_mut(),
            byte_offset: 0,
        };
        let sizes = tensor.shape().iter().map(|&size| size as i64).collect();
        let strides = tensor.strides().to_vec();
        let managed = managed(dl_tensor, is_shared)?;
        let exported = Box::into_raw(Box::new(Exported { managed, sizes, strides, _tensor: tensor }));
        // SAFETY: just made, and nobody else has it.
        let Exported { managed, sizes, strides, .. } = unsafe { &mut *exported };
        let (dl_tensor, owner) = managed.parts();
        (dl_tensor.shape, dl_tensor.strides) = (sizes.as_mut_ptr(), strides.as_mut_ptr());
        *owner = exported.cast();
        // SAFETY: a field of what was just made is not at null.
        Ok(unsafe { NonNull::new_unchecked(&raw mut (*exported).managed) })
    }
}

/// Numbers of [`DLDevice::device_type`].
const CPU: i32 = 1;
const CUDA: i32 = 2;
const CUDA_HOST: i32 = 3;
const CUDA_MANAGED: i32 = 13;

impl DLDevice {
    /// The device.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] for memory of another kind; the errors of [`Device::cuda`].
    pub fn device(self) -> Result<Device> {
        match self.device_type {
            CPU | CUDA_HOST => Ok(Device::cpu()),
            // No device has a negative number.
            CUDA | CUDA_MANAGED => Device::cuda(usize::try_from(self.device_id).unwrap_or(usize::MAX)),
            other => Err(ErrorKind::Unsupported {
                what: format!("memory of DLPack's device type {other}"),
                advice: "copy it to the CPU (1) or a CUDA device (2)".to_owned(),
            }
            .into()),
        }
    }
}

fn device_for(device: &Device) -> Result<DLDevice> {
    match device.ordinal() {
        None if device.is_cpu() => Ok(DLDevice { device_type: CPU, device_id: 0 }),
        Some(ordinal) => Ok(DLDevice { device_type: CUDA, device_id: ordinal as i32 }),
        None => Err(ErrorKind::Unsupported {
            what: format!("memory of {device} for other code"),
            advice: "copy it with to_device(&Device::cpu())".to_owned(),
        }
        .into()),
    }
}

/// Kinds and bits of the element types, by DLPack's `DLDataTypeCode`.
const TYPES: [(DType, u8, u8); 11] = [
    (DType::I8, 0, 8),
    (DType::I16, 0, 16),
    (DType::I32, 0, 32),
    (DType::I64, 0, 64),
    (DType::U8, 1, 8),
    (DType::F16, 2, 16),
    (DType::F32, 2, 32),
    (DType::BF16, 4, 16),
    (DType::Bool, 6, 8),
    (DType::F8E4M3, 10, 8),
    (DType::F8E5M2, 12, 8),
];

impl DLDataType {
    /// The element type.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] for a type that the crate does not have.
    pub fn dtype(self) -> Result<DType> {
        let DLDataType { code, bits, lanes } = self;
        let found = TYPES.iter().find(|&&(_, its, of)| (its, of, 1) == (code, bits, lanes));
        Ok(found.map(|(dtype, ..)| *dtype).ok_or_else(|| {
            let kind = match code {
                0 => "int",
                1 => "uint",
                2 => "float",
                5 => "complex",
                _ => "code ",
            };
            let of = if kind == "code " { format!("{kind}{code}, {bits} bits") } else { format!("{kind}{bits}") };
            let lanes = if lanes == 1 { String::new() } else { format!(" of {lanes} lanes") };
            let names: Vec<_> = TYPES.iter().map(|(dtype, ..)| dtype.name()).collect();
            ErrorKind::Unsupported {
                what: format!("elements of DLPack's {of}{lanes}"),
                advice: format!("convert them to one of {}", names.join(", ")),
            }
        })?)
    }
}

fn dtype_for(dtype: DType) -> DLDataType {
    let (code, bits) = TYPES.iter().find(|(its, ..)| *its == dtype).map_or((0, 0), |&(_, code, bits)| (code, bits));
    DLDataType { code, bits, lanes: 1 }
}
