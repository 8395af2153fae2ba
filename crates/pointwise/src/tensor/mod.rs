//! Tensors: owned ([`Tensor`]) and borrowed ([`TensorView`], [`TensorViewMut`]).

mod display;
mod gather;
mod layout;
mod overlap;
mod raw;
mod view;

use std::fmt;
use std::sync::Arc;

use pointwise_core::{DType, Scalar};

pub use crate::shape::{IntoShape, MAX_RANK, Strides};
pub use layout::Layout;
pub(crate) use overlap::interleave;
pub use overlap::{Overlap, overlap};
pub use raw::RawPointer;
pub use view::{TensorView, TensorViewMut};

use crate::Device;
use crate::cuda;
use crate::error::{Error, ErrorKind, Result};
use crate::shape::Shape;
use crate::storage::Storage;

/// An array of numbers on a device, which owns its memory. Its elements lie one after another, the last dimension
/// innermost; only views have other strides.
///
/// A clone shares the memory, and so does [`Tensor::reshape`]; [`Tensor::copy`] copies. Shared memory is only read: a
/// call that would write it fails with [`ErrorKind::Shared`] while another tensor has it.
///
/// ```
/// use pointwise::{DType, Device, Tensor, bf16, ops};
///
/// let device = Device::cpu();
/// let x = Tensor::from_slice(&device, &[1.0_f32, 2.0, 3.0, 4.0, 5.0, 6.0], [2, 3])?;
/// assert_eq!((x.dtype(), x.shape().dims()), (DType::F32, &[2, 3][..]));
/// // Elements come back as the Rust type of the tensor's; `to_dtype` converts them before.
/// let h = x.to_dtype(DType::BF16)?;
/// assert_eq!(h.to_vec::<bf16>()?[5].to_f32(), 6.0);
/// // Parts of a tensor, and its dimensions in another order, are views, which ops take as they take tensors.
/// let columns = x.transpose(0, 1)?;
/// assert_eq!(ops::neg(columns.narrow(0, 1, 2)?)?.to_vec::<f32>()?, [-2.0, -5.0, -3.0, -6.0]);
/// // A file's tensor is made of its bytes, and gives them back.
/// let copy = Tensor::from_bytes(&device, x.dtype(), &x.to_bytes()?, x.shape())?;
/// assert_eq!(copy.as_slice::<f32>()?[0], 1.0);
/// // Operators are ops, whose errors they return.
/// let y = (&x * 2.0)? + &x;
/// assert_eq!(y?.as_slice::<f32>()?[5], 18.0);
/// # Ok::<(), pointwise::Error>(())
/// ```
#[derive(Clone)]
pub struct Tensor {
    storage: Arc<Storage>,
    dtype: DType,
    device: Device,
    layout: Layout,
}

/// The bytes of `shape` elements of `dtype`.
pub(crate) fn byte_len(dtype: DType, shape: &Shape) -> Result<usize> {
    Ok(dtype
        .bytes_of(shape.numel())
        .filter(|&bytes| isize::try_from(bytes).is_ok())
        .ok_or_else(|| ErrorKind::SizeOverflow { dims: shape.to_vec() })?)
}

fn check_len(expected: usize, got: usize, unit: &'static str) -> Result<()> {
    if expected == got {
        return Ok(());
    }
    Err(ErrorKind::DataLength { expected, got, unit }.into())
}

/// Refuses bytes that are not bools: as a Rust `bool` they would be undefined behaviour.
fn check_bools(dtype: DType, bytes: &[u8]) -> Result<()> {
    if dtype != DType::Bool {
        return Ok(());
    }
    match bytes.iter().position(|&byte| byte > 1) {
        None => Ok(()),
        Some(at) => Err(ErrorKind::BadBool { at, value: bytes[at] }.into()),
    }
}

/// The bytes of `data`.
fn bytes_of<T: Scalar>(data: &[T]) -> &[u8] {
    // SAFETY: the sealed element types are plain numbers without padding.
    unsafe { std::slice::from_raw_parts(data.as_ptr().cast(), size_of_val(data)) }
}

impl Tensor {
    fn with_storage(
        device: &Device,
        dtype: DType,
        shape: Shape,
        storage: impl FnOnce(usize) -> Result<Storage>,
    ) -> Result<Tensor> {
        Ok(Tensor {
            storage: Arc::new(storage(byte_len(dtype, &shape)?)?),
            dtype,
            device: *device,
            layout: Layout::contiguous(shape),
        })
    }

    /// A tensor of the elements of `data`, in row-major order.
    ///
    /// # Errors
    /// A shape of another number of elements; out of memory.
    pub fn from_slice<T: Scalar>(device: &Device, data: &[T], shape: impl IntoShape) -> Result<Tensor> {
        let shape = shape.into_shape()?;
        check_len(shape.numel(), data.len(), "elements")?;
        Tensor::with_storage(device, T::DTYPE, shape, |_| Storage::from_bytes(device, bytes_of(data)))
    }

    /// A tensor of raw bytes, in the machine's byte order.
    ///
    /// # Errors
    /// Another number of bytes than shape and type need; for bool, a byte other than 0 and 1; out of memory.
    pub fn from_bytes(device: &Device, dtype: DType, bytes: &[u8], shape: impl IntoShape) -> Result<Tensor> {
        let shape = shape.into_shape()?;
        check_len(byte_len(dtype, &shape)?, bytes.len(), "bytes")?;
        check_bools(dtype, bytes)?;
        Tensor::with_storage(device, dtype, shape, |_| Storage::from_bytes(device, bytes))
    }

    /// A tensor of zeros.
    ///
    /// # Errors
    /// A shape that is too large; out of memory.
    pub fn zeros(device: &Device, dtype: DType, shape: impl IntoShape) -> Result<Tensor> {
        Tensor::with_storage(device, dtype, shape.into_shape()?, |bytes| Storage::zeros(device, bytes))
    }

    /// Makes a tensor to write into: any contents on a GPU, zeros on the CPU.
    ///
    /// # Errors
    /// A shape that is too large; out of memory.
    pub fn empty(device: &Device, dtype: DType, shape: impl IntoShape) -> Result<Tensor> {
        Tensor::with_storage(device, dtype, shape.into_shape()?, |bytes| Storage::empty(device, bytes))
    }

    /// Makes a tensor whose elements are all `value`. On a GPU the host sends at most 64 KiB, which the device repeats.
    /// repeats them.
    ///
    /// # Errors
    /// A shape that is too large; out of memory; errors of the driver.
    pub fn full<T: Scalar>(device: &Device, value: T, shape: impl IntoShape) -> Result<Tensor> {
        let mut tensor = Tensor::empty(device, T::DTYPE, shape)?;
        match device.context() {
            None => tensor.as_mut_slice::<T>()?.fill(value),
            Some(context) => {
                // SAFETY: the tensor is new, and has the bytes that its shape says.
                unsafe { cuda::repeat(context, tensor.device_ptr(), bytes_of(&[value]), tensor.byte_len()) }?
            }
        }
        Ok(tensor)
    }

    /// The sizes of the dimensions.
    #[inline]
    pub fn shape(&self) -> &Shape {
        self.layout.shape()
    }

    /// The steps along the dimensions, in elements.
    #[inline]
    pub fn strides(&self) -> &[i64] {
        self.layout.strides()
    }

    /// The element type.
    #[inline]
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// The device of the elements.
    #[inline]
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// The number of elements.
    #[inline]
    pub fn numel(&self) -> usize {
        self.layout.shape().numel()
    }

    /// The number of bytes of the elements.
    #[inline]
    pub fn byte_len(&self) -> usize {
        // Fits: it was checked when the tensor was made.
        self.dtype.bytes_of(self.numel()).unwrap_or_default()
    }

    /// True: a tensor's elements lie one after another.
    #[inline]
    pub fn is_contiguous(&self) -> bool {
        true
    }

    /// Borrows the tensor to read.
    #[inline]
    pub fn view(&self) -> TensorView<'_> {
        TensorView::new(self.raw())
    }

    /// Borrows the tensor to write.
    ///
    /// # Errors
    /// [`ErrorKind::Shared`] while another tensor has the memory.
    #[inline]
    pub fn view_mut(&mut self) -> Result<TensorViewMut<'_>> {
        self.storage_mut()?;
        Ok(TensorViewMut::new(self.raw()))
    }

    /// True if no other tensor has the memory. While `self` is exclusively borrowed, none can get it.
    #[inline]
    fn is_exclusive(&mut self) -> bool {
        Arc::get_mut(&mut self.storage).is_some()
    }

    /// Borrows the memory to write.
    ///
    /// # Errors
    /// [`ErrorKind::Shared`] while another tensor has it.
    #[inline]
    fn storage_mut(&mut self) -> Result<&mut Storage> {
        Arc::get_mut(&mut self.storage).ok_or_else(shared)
    }

    /// See [`TensorView::transpose`].
    ///
    /// # Errors
    /// The errors of [`TensorView::transpose`].
    pub fn transpose(&self, d0: usize, d1: usize) -> Result<TensorView<'_>> {
        self.view().transpose(d0, d1)
    }

    /// See [`TensorView::permute`].
    ///
    /// # Errors
    /// The errors of [`TensorView::permute`].
    pub fn permute(&self, order: &[usize]) -> Result<TensorView<'_>> {
        self.view().permute(order)
    }

    /// See [`TensorView::narrow`].
    ///
    /// # Errors
    /// The errors of [`TensorView::narrow`].
    pub fn narrow(&self, dim: usize, start: usize, len: usize) -> Result<TensorView<'_>> {
        self.view().narrow(dim, start, len)
    }

    /// See [`TensorView::select`].
    ///
    /// # Errors
    /// The errors of [`TensorView::select`].
    pub fn select(&self, dim: usize, index: usize) -> Result<TensorView<'_>> {
        self.view().select(dim, index)
    }

    /// See [`TensorView::expand`].
    ///
    /// # Errors
    /// The errors of [`TensorView::expand`].
    pub fn expand(&self, shape: impl IntoShape) -> Result<TensorView<'_>> {
        self.view().expand(shape)
    }

    /// See [`TensorView::unsqueeze`].
    ///
    /// # Errors
    /// The errors of [`TensorView::unsqueeze`].
    pub fn unsqueeze(&self, dim: usize) -> Result<TensorView<'_>> {
        self.view().unsqueeze(dim)
    }

    #[inline]
    fn raw(&self) -> raw::Raw<'_> {
        raw::Raw {
            pointer: self.storage.pointer(),
            dtype: self.dtype,
            device: self.device,
            layout: self.layout,
            block: self.storage.block(),
        }
    }

    /// The first element's address. On the CPU it may be read through while the tensor is borrowed.
    #[inline]
    pub fn as_ptr(&self) -> *const u8 {
        self.storage.pointer()
    }

    /// The first element's address. On the CPU it may be written through while the tensor is borrowed.
    ///
    /// # Errors
    /// [`ErrorKind::Shared`] while another tensor has the memory.
    #[inline]
    pub fn as_mut_ptr(&mut self) -> Result<*mut u8> {
        Ok(self.storage_mut()?.pointer())
    }

    /// The first element's address in the form that a kernel takes; 0 for a GPU tensor without elements.
    #[inline]
    pub fn device_ptr(&self) -> u64 {
        self.storage.pointer().addr() as u64
    }

    /// The elements of a CPU tensor.
    ///
    /// # Errors
    /// The errors of [`TensorView::as_slice`].
    pub fn as_slice<T: Scalar>(&self) -> Result<&[T]> {
        self.view().as_slice()
    }

    /// The elements of a CPU tensor, to write.
    ///
    /// # Errors
    /// The errors of [`TensorView::as_slice`]; [`ErrorKind::Shared`] while another tensor has the memory.
    pub fn as_mut_slice<T: Scalar>(&mut self) -> Result<&mut [T]> {
        self.storage_mut()?;
        // SAFETY: no other tensor has the memory, and this one is exclusively borrowed for as long as the slice.
        unsafe { raw::slice_mut(self.raw()) }
    }

    /// Copies the elements, in row-major order. Waits for the work that writes them.
    ///
    /// # Errors
    /// The errors of [`TensorView::to_vec`].
    pub fn to_vec<T: Scalar>(&self) -> Result<Vec<T>> {
        self.view().to_vec()
    }

    /// Returns the only element. Waits for the work that writes it.
    ///
    /// # Errors
    /// The errors of [`TensorView::item`].
    pub fn item<T: Scalar>(&self) -> Result<T> {
        self.view().item()
    }

    /// Copies the elements' bytes, in row-major order. Waits for the work that writes them.
    ///
    /// # Errors
    /// The errors of [`TensorView::to_bytes`].
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        self.view().to_bytes()
    }

    /// Overwrites the elements, in row-major order; done when this returns.
    ///
    /// # Errors
    /// Another element type or number of elements; errors of the driver; [`ErrorKind::Shared`] while another tensor has
    /// the memory.
    pub fn copy_from_slice<T: Scalar>(&mut self, data: &[T]) -> Result<()> {
        if self.dtype != T::DTYPE {
            return Err(ErrorKind::DType {
                op: format!("copy_from_slice::<{}>", T::DTYPE),
                got: self.dtype,
                allowed: vec![T::DTYPE],
            }
            .into());
        }
        check_len(self.numel(), data.len(), "elements")?;
        // SAFETY: the storage has the elements the shape says.
        unsafe { self.storage_mut()?.write(bytes_of(data)) }
    }

    /// Overwrites the elements' bytes; done when this returns.
    ///
    /// # Errors
    /// Another number of bytes; for bool, a byte other than 0 and 1; errors of the driver; [`ErrorKind::Shared`] while
    /// another tensor has the memory.
    pub fn copy_from_bytes(&mut self, bytes: &[u8]) -> Result<()> {
        check_len(self.byte_len(), bytes.len(), "bytes")?;
        check_bools(self.dtype, bytes)?;
        // SAFETY: the storage has the bytes the shape says.
        unsafe { self.storage_mut()?.write(bytes) }
    }

    /// Overwrites the elements with zeros. On a GPU it is queued, as ops are.
    ///
    /// # Errors
    /// Errors of the driver; [`ErrorKind::Shared`] while another tensor has the memory.
    pub fn set_zero(&mut self) -> Result<()> {
        let bytes = self.byte_len();
        // SAFETY: the storage has the bytes the shape says; all-zero bytes are an element of every type.
        unsafe { self.storage_mut()?.set_zero(bytes) }
    }

    /// Copies the elements of a tensor of the same shape and type, on any device, over this tensor's. On one GPU the
    /// copy is queued on the device's own stream, as ops are; to or from the host, and between GPUs, it is done when
    /// this returns.
    ///
    /// # Errors
    /// Another shape or element type; errors of the driver; [`ErrorKind::Shared`] while another tensor has the memory.
    pub fn copy_from(&mut self, source: &Tensor) -> Result<()> {
        if self.shape() != source.shape() {
            return Err(ErrorKind::ShapeMismatch {
                what: "copy_from".to_owned(),
                expected: *self.shape(),
                got: *source.shape(),
            }
            .into());
        }
        if self.dtype != source.dtype {
            return Err(
                ErrorKind::DType { op: "copy_from".to_owned(), got: source.dtype, allowed: vec![self.dtype] }.into()
            );
        }
        let bytes = self.byte_len();
        // SAFETY: both storages have the bytes their shapes say; `self` shares its storage with no tensor, so not with
        // `source`.
        unsafe { self.storage_mut()?.copy_from(&source.storage, bytes) }
    }

    /// Copies the tensor to `device`, as [`Tensor::copy_from`] does.
    ///
    /// # Errors
    /// Out of memory; errors of the driver.
    pub fn to_device(&self, device: &Device) -> Result<Tensor> {
        let mut copy = Tensor::empty(device, self.dtype, self.shape())?;
        copy.copy_from(self)?;
        Ok(copy)
    }

    /// Copies the tensor to new memory on the same device, as [`Tensor::copy_from`] does.
    ///
    /// # Errors
    /// Out of memory; errors of the driver.
    pub fn copy(&self) -> Result<Tensor> {
        self.to_device(&self.device)
    }

    /// Returns the tensor in another shape with as many elements. It shares the memory.
    ///
    /// # Errors
    /// Another number of elements.
    pub fn reshape(&self, shape: impl IntoShape) -> Result<Tensor> {
        Ok(Tensor { layout: self.layout.reshape(shape)?, ..self.clone() })
    }
}

#[cold]
fn shared() -> Error {
    ErrorKind::Shared.into()
}

impl fmt::Debug for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tensor")
            .field("dtype", &self.dtype)
            .field("shape", self.shape())
            .field("device", &self.device)
            .finish()
    }
}
