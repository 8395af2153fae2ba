//! Borrowed tensors: [`TensorView`] to read, [`TensorViewMut`] to write.

use std::fmt;
use std::marker::PhantomData;

use duplicate::duplicate_item;
use pointwise_core::{DType, Scalar};

use super::Layout;
use super::raw::{Raw, RawPointer, slice_mut};
use crate::cuda::{self, Block, Held, Usage};
use crate::error::{ErrorKind, Result};
use crate::shape::{IntoShape, Shape};
use crate::{Device, Tensor};

/// A borrowed tensor to read, with any strides, on any device. Copying it copies no element.
///
/// ```
/// use pointwise::{Device, Tensor};
///
/// let x = Tensor::from_slice(&Device::cpu(), &[1, 2, 3, 4, 5, 6], [2, 3])?;
/// let last_column = x.view().select(1, 2)?;
/// assert_eq!((last_column.shape().dims(), last_column.strides()), (&[2][..], &[3][..]));
/// assert_eq!(last_column.to_vec::<i32>()?, [3, 6]);
/// let own = last_column.to_tensor()?; // contiguous, and outlives `x`
/// drop(x);
/// assert_eq!(own.as_slice::<i32>()?, [3, 6]);
/// # Ok::<(), pointwise::Error>(())
/// ```
#[derive(Clone, Copy)]
pub struct TensorView<'a> {
    raw: Raw<'a>,
    memory: PhantomData<&'a [u8]>,
}

/// A borrowed tensor to write. No two of its indices name the same element.
///
/// ```
/// use pointwise::{Device, Tensor, ops};
///
/// let mut x = Tensor::from_slice(&Device::cpu(), &[-1.0_f32, -2.0, -3.0, -4.0], [2, 2])?;
/// ops::relu_inplace(x.view_mut()?.select(0, 1)?)?; // the second row alone
/// assert_eq!(x.to_vec::<f32>()?, [-1.0, -2.0, 0.0, 0.0]);
/// # Ok::<(), pointwise::Error>(())
/// ```
///
/// Calls make one of `&mut x` by conversion. If the memory is shared, such a view fails when it is written;
/// [`Tensor::view_mut`] fails at once.
pub struct TensorViewMut<'a> {
    raw: Raw<'a>,
    /// True if another tensor has the memory: then it is not written.
    is_shared: bool,
    memory: PhantomData<&'a mut [u8]>,
}

#[duplicate_item(View; [TensorView]; [TensorViewMut])]
impl<'a> View<'a> {
    /// The sizes of the dimensions.
    #[inline]
    pub fn shape(&self) -> &Shape {
        self.raw.layout.shape()
    }

    /// The steps along the dimensions, in elements.
    #[inline]
    pub fn strides(&self) -> &[i64] {
        self.raw.layout.strides()
    }

    /// Shape and strides.
    #[inline]
    pub fn layout(&self) -> &Layout {
        &self.raw.layout
    }

    /// The element type.
    #[inline]
    pub fn dtype(&self) -> DType {
        self.raw.dtype
    }

    /// The device of the elements.
    #[inline]
    pub fn device(&self) -> &Device {
        &self.raw.device
    }

    /// The number of elements.
    #[inline]
    pub fn numel(&self) -> usize {
        self.raw.layout.shape().numel()
    }

    /// True if the elements lie one after another, the last dimension innermost.
    #[inline]
    pub fn is_contiguous(&self) -> bool {
        self.raw.layout.is_contiguous()
    }

    /// The first element's address, on any device.
    #[inline]
    pub fn address(&self) -> usize {
        self.raw.pointer.addr()
    }

    /// The first element's address in the form that a kernel takes.
    #[inline]
    pub fn device_ptr(&self) -> u64 {
        self.raw.pointer.addr() as u64
    }

    /// The addresses of the view's first byte and of one past its last; equal for a view without elements.
    pub fn span(&self) -> (usize, usize) {
        let start = self.address();
        let dtype = self.raw.dtype;
        match self.raw.layout.reach() {
            None => (start, start),
            Some((low, high)) => (
                start.wrapping_add_signed(dtype.offset(low) as isize),
                // Fits, as a layout's reach does.
                start.wrapping_add(dtype.bytes_of(high as usize + 1).unwrap_or_default()),
            ),
        }
    }
}

#[duplicate_item(View; [TensorView]; [TensorViewMut])]
impl fmt::Debug for View<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct(stringify!(View))
            .field("dtype", &self.raw.dtype)
            .field("shape", self.shape())
            .field("strides", &self.strides())
            .field("device", &self.raw.device)
            .field("address", &self.raw.pointer)
            .finish()
    }
}

// SAFETY: a view is a borrow of memory of plain numbers. The host reaches it only through slices that borrow the view,
// the GPU only by kernels that are queued with it.
unsafe impl Send for TensorView<'_> {}
// SAFETY: as above.
unsafe impl Send for TensorViewMut<'_> {}
// SAFETY: as above; a shared reference to a view hands out shared slices only.
unsafe impl Sync for TensorView<'_> {}
// SAFETY: as above.
unsafe impl Sync for TensorViewMut<'_> {}

impl TensorView<'_> {
    /// Takes the device's own stream to queue work on the memory, behind the work that other streams have on it. For memory
    /// of other code the caller has promised this order.
    ///
    /// # Errors
    /// A stream that other code captures, or another thread; the driver's.
    pub(crate) fn hold_own(&self, context: &'static cuda::Context) -> Result<Held<'static>> {
        Block::hold_own(context, self.raw.block)
    }

    /// The record of the streams that use the memory; `None` for memory of other code.
    pub(crate) fn usage(&self) -> Option<&Usage> {
        self.raw.block.map(|block| &block.usage)
    }

    /// Takes note that work on a stream uses this memory, before that work is queued: the first time memory is used on a
    /// stream that is not its device's own, that stream waits until the memory is ready.
    ///
    /// # Errors
    /// Errors of the driver, also of earlier work.
    #[inline]
    pub(crate) fn use_on(&self, held: &Held<'_>) -> Result<()> {
        self.raw.block.map_or(Ok(()), |block| Usage::note(block, held))
    }
}

impl<'a> TensorView<'a> {
    pub(super) fn new(raw: Raw<'a>) -> Self {
        TensorView { raw, memory: PhantomData }
    }

    /// A view of memory that other code owns: a device pointer (`u64`) or a host pointer, of any shape and strides (in
    /// elements; pass [`Shape::contiguous_strides`] for the usual ones).
    ///
    /// # Errors
    /// Null or misaligned pointers; strides that do not go with the shape.
    ///
    /// # Safety
    /// For `'a`, every element that shape and strides reach must lie in one allocation on `device`, hold a valid
    /// `dtype` (a bool is any byte, true unless it is 0), and not be written, by the host or by any device, except in
    /// stream order with the work that reads the view. Work still queued when `'a` ends must be waited for before the
    /// memory is freed, and a graph that has captured work on the view must be dropped before.
    pub unsafe fn from_raw_parts(
        device: &Device,
        pointer: impl Into<RawPointer>,
        dtype: DType,
        shape: impl IntoShape,
        strides: &[i64],
    ) -> Result<Self> {
        Ok(TensorView::new(Raw::foreign(device, pointer, dtype, shape, strides)?))
    }

    /// The first element's address. On the CPU it may be read through, for `'a`.
    #[inline]
    pub fn as_ptr(&self) -> *const u8 {
        self.raw.pointer
    }

    /// The elements as a slice, if the host can read them. For bools it looks at each byte.
    ///
    /// # Errors
    /// Another element type than `T`, a device that is not the CPU, a view that is not contiguous;
    /// [`ErrorKind::BadBool`] for a byte that is no Rust `bool`, which other code may have left (`to_vec` takes it).
    pub fn as_slice<T: Scalar>(&self) -> Result<&'a [T]> {
        let pointer = self.raw.slice_pointer::<T>("as_slice")?;
        // SAFETY: the memory holds `numel` elements of `T`'s representation one after another, borrowed for 'a, and
        // nothing writes it meanwhile; a pointer without elements behind it is dangling but aligned.
        Ok(unsafe { std::slice::from_raw_parts(pointer.as_ptr(), self.numel()) })
    }

    /// The view with two dimensions swapped.
    ///
    /// # Errors
    /// A dimension that does not exist.
    pub fn transpose(&self, d0: usize, d1: usize) -> Result<Self> {
        Ok(Self::new(self.raw.with(self.raw.layout.transpose(d0, d1)?)))
    }

    /// The view with its dimensions reordered: dimension `i` of the result is `order[i]` of this one.
    ///
    /// # Errors
    /// An order that does not name each dimension once.
    pub fn permute(&self, order: &[usize]) -> Result<Self> {
        Ok(Self::new(self.raw.with(self.raw.layout.permute(order)?)))
    }

    /// Elements `start` to `start + len` of dimension `dim`.
    ///
    /// # Errors
    /// A range or dimension that does not exist.
    pub fn narrow(&self, dim: usize, start: usize, len: usize) -> Result<Self> {
        let moved = self.raw.layout.narrow(dim, start, len)?;
        Ok(Self::new(self.raw.moved(moved)))
    }

    /// Every `step`-th element of dimension `dim`, from the first.
    ///
    /// # Errors
    /// A step of 0, a dimension that does not exist.
    pub fn step(&self, dim: usize, step: usize) -> Result<Self> {
        Ok(Self::new(self.raw.with(self.raw.layout.step(dim, step)?)))
    }

    /// Element `index` of dimension `dim`, without that dimension.
    ///
    /// # Errors
    /// An element or dimension that does not exist.
    pub fn select(&self, dim: usize, index: usize) -> Result<Self> {
        let moved = self.raw.layout.select(dim, index)?;
        Ok(Self::new(self.raw.moved(moved)))
    }

    /// The view with dimensions of size 1 repeated, and new ones in front, up to `shape`. No element is copied.
    ///
    /// # Errors
    /// A shape this one does not broadcast to.
    pub fn expand(&self, shape: impl IntoShape) -> Result<Self> {
        let shape = shape.into_shape()?;
        Ok(Self::new(self.raw.with(self.raw.layout.expand(shape)?)))
    }

    /// The same elements in another shape.
    ///
    /// # Errors
    /// Another number of elements, a view that is not contiguous.
    pub fn reshape(&self, shape: impl IntoShape) -> Result<Self> {
        Ok(Self::new(self.raw.with(self.raw.layout.reshape(shape)?)))
    }

    /// The view with a dimension of size 1 inserted before dimension `dim`.
    ///
    /// # Errors
    /// A position that does not exist, too many dimensions.
    pub fn unsqueeze(&self, dim: usize) -> Result<Self> {
        Ok(Self::new(self.raw.with(self.raw.layout.unsqueeze(dim)?)))
    }

    /// The view with groups of `size` neighbours along the last dimension as a dimension.
    pub(crate) fn groups(&self, size: usize) -> Result<Self> {
        Ok(Self::new(self.raw.with(self.raw.layout.groups(size)?)))
    }

    /// The view without dimension `dim`.
    ///
    /// # Errors
    /// A dimension that does not exist or is not of size 1.
    pub fn squeeze(&self, dim: usize) -> Result<Self> {
        Ok(Self::new(self.raw.with(self.raw.layout.squeeze(dim)?)))
    }
}

impl<'a> TensorViewMut<'a> {
    pub(super) fn new(raw: Raw<'a>) -> Self {
        TensorViewMut { raw, is_shared: false, memory: PhantomData }
    }

    /// A view to write of memory that other code owns; see [`TensorView::from_raw_parts`].
    ///
    /// # Errors
    /// The errors of [`TensorView::from_raw_parts`]; strides that give two indices the same element.
    ///
    /// # Safety
    /// The conditions of [`TensorView::from_raw_parts`], and for `'a` nothing else may read or write the memory, except
    /// in stream order with the work that writes the view.
    pub unsafe fn from_raw_parts(
        device: &Device,
        pointer: impl Into<RawPointer>,
        dtype: DType,
        shape: impl IntoShape,
        strides: &[i64],
    ) -> Result<Self> {
        let raw = Raw::foreign(device, pointer, dtype, shape, strides)?;
        if raw.layout.may_repeat() {
            return Err(ErrorKind::Parameter {
                name: "strides",
                value: format!("{strides:?}"),
                why: format!(
                    "two indices of shape {} would name the same element, which cannot be written",
                    raw.layout.shape()
                ),
            }
            .into());
        }
        Ok(TensorViewMut::new(raw))
    }

    /// This view to read.
    #[inline]
    pub fn as_view(&self) -> TensorView<'_> {
        TensorView::new(self.raw)
    }

    /// Borrows this view for a shorter time.
    #[inline]
    pub fn reborrow(&mut self) -> TensorViewMut<'_> {
        TensorViewMut { raw: self.raw, is_shared: self.is_shared, memory: PhantomData }
    }

    /// The first element's address. On the CPU it may be written through, for `'a`.
    ///
    /// # Errors
    /// [`ErrorKind::Shared`] if another tensor has the memory.
    #[inline]
    pub fn as_mut_ptr(&mut self) -> Result<*mut u8> {
        if self.is_shared { Err(ErrorKind::Shared.into()) } else { Ok(self.raw.pointer) }
    }

    /// The elements as a slice, if the host can read them.
    ///
    /// # Errors
    /// The errors of [`TensorView::as_slice`].
    pub fn as_slice<T: Scalar>(&self) -> Result<&[T]> {
        self.as_view().as_slice()
    }

    /// The elements as a slice to write, if the host can write them.
    ///
    /// # Errors
    /// The errors of [`TensorView::as_slice`]; [`ErrorKind::Shared`] if another tensor has the memory.
    pub fn as_mut_slice<T: Scalar>(&mut self) -> Result<&mut [T]> {
        self.as_mut_ptr()?;
        // SAFETY: the view is the only way to its memory, and borrowed for as long as the slice.
        unsafe { slice_mut(self.raw) }
    }

    /// See [`TensorView::transpose`].
    ///
    /// # Errors
    /// The errors of [`TensorView::transpose`].
    pub fn transpose(self, d0: usize, d1: usize) -> Result<Self> {
        Ok(Self { raw: self.raw.with(self.raw.layout.transpose(d0, d1)?), ..self })
    }

    /// See [`TensorView::permute`].
    ///
    /// # Errors
    /// The errors of [`TensorView::permute`].
    pub fn permute(self, order: &[usize]) -> Result<Self> {
        Ok(Self { raw: self.raw.with(self.raw.layout.permute(order)?), ..self })
    }

    /// See [`TensorView::narrow`].
    ///
    /// # Errors
    /// The errors of [`TensorView::narrow`].
    pub fn narrow(self, dim: usize, start: usize, len: usize) -> Result<Self> {
        let moved = self.raw.layout.narrow(dim, start, len)?;
        Ok(Self { raw: self.raw.moved(moved), ..self })
    }

    /// See [`TensorView::step`].
    ///
    /// # Errors
    /// The errors of [`TensorView::step`].
    pub fn step(self, dim: usize, step: usize) -> Result<Self> {
        Ok(Self { raw: self.raw.with(self.raw.layout.step(dim, step)?), ..self })
    }

    /// See [`TensorView::select`].
    ///
    /// # Errors
    /// The errors of [`TensorView::select`].
    pub fn select(self, dim: usize, index: usize) -> Result<Self> {
        let moved = self.raw.layout.select(dim, index)?;
        Ok(Self { raw: self.raw.moved(moved), ..self })
    }

    /// See [`TensorView::reshape`].
    ///
    /// # Errors
    /// The errors of [`TensorView::reshape`].
    pub fn reshape(self, shape: impl IntoShape) -> Result<Self> {
        Ok(Self { raw: self.raw.with(self.raw.layout.reshape(shape)?), ..self })
    }

    /// See [`TensorView::unsqueeze`].
    ///
    /// # Errors
    /// The errors of [`TensorView::unsqueeze`].
    pub fn unsqueeze(self, dim: usize) -> Result<Self> {
        Ok(Self { raw: self.raw.with(self.raw.layout.unsqueeze(dim)?), ..self })
    }

    /// See [`TensorView::squeeze`].
    ///
    /// # Errors
    /// The errors of [`TensorView::squeeze`].
    pub fn squeeze(self, dim: usize) -> Result<Self> {
        Ok(Self { raw: self.raw.with(self.raw.layout.squeeze(dim)?), ..self })
    }
}

impl<'a> From<&'a Tensor> for TensorView<'a> {
    fn from(tensor: &'a Tensor) -> Self {
        tensor.view()
    }
}

impl<'a> From<&'a mut Tensor> for TensorViewMut<'a> {
    fn from(tensor: &'a mut Tensor) -> Self {
        let is_shared = !tensor.is_exclusive();
        TensorViewMut { is_shared, ..TensorViewMut::new(tensor.raw()) }
    }
}

impl<'a> From<&'a TensorView<'_>> for TensorView<'a> {
    fn from(view: &'a TensorView<'_>) -> Self {
        TensorView::new(view.raw)
    }
}

impl<'a> From<&'a TensorViewMut<'_>> for TensorView<'a> {
    fn from(view: &'a TensorViewMut<'_>) -> Self {
        view.as_view()
    }
}

impl<'a> From<&'a mut TensorViewMut<'_>> for TensorViewMut<'a> {
    fn from(view: &'a mut TensorViewMut<'_>) -> Self {
        view.reborrow()
    }
}
