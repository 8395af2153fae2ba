//! Memory of other code together with its owner.

use std::fmt;

use pointwise_core::DType;

use crate::Device;
use crate::error::{ErrorKind, Result};
use crate::kernel::Operand;
use crate::tensor::{IntoShape, RawPointer, TensorView, TensorViewMut};

/// A tensor in memory of other code, with its owner: a value that is dropped when the memory is no longer used. It may
/// be a counted reference, or a value whose drop tells a library.
///
/// ```
/// use std::sync::Arc;
/// use pointwise::{DType, Device, interop::Foreign, ops};
///
/// let owner = Arc::new([1.0_f32, -2.0]);
/// // SAFETY: the array lives as long as the reference, and nobody writes it meanwhile.
/// let x = unsafe { Foreign::from_raw_parts(&Device::cpu(), owner.as_ptr(), DType::F32, [2], &[1], Arc::clone(&owner)) }?;
/// assert_eq!(ops::relu(&x)?.to_vec::<f32>()?, [1.0, 0.0]);
/// drop(x);
/// assert_eq!(Arc::strong_count(&owner), 1);
/// # Ok::<(), pointwise::Error>(())
/// ```
pub struct Foreign<'a, O> {
    view: TensorView<'a>,
    is_writable: bool,
    _owner: O,
}

impl<'a> Foreign<'a, ()> {
    /// Takes the memory without an owner yet.
    ///
    /// # Errors
    /// The errors of [`TensorView::from_raw_parts`].
    ///
    /// # Safety
    /// The conditions of [`Foreign::from_raw_parts`] or, if it is writable, [`Foreign::from_raw_parts_mut`], with the
    /// later owner.
    pub(super) unsafe fn checked(
        device: &Device,
        pointer: RawPointer,
        dtype: DType,
        shape: impl IntoShape,
        strides: &[i64],
        is_writable: bool,
    ) -> Result<Self> {
        // SAFETY: the caller's promise.
        let view = unsafe { TensorView::from_raw_parts(device, pointer, dtype, shape, strides) }?;
        Ok(Foreign { view, is_writable, _owner: () })
    }

    /// Gives the memory its owner.
    pub(super) fn kept_by<O>(self, owner: O) -> Foreign<'a, O> {
        Foreign { view: self.view, is_writable: self.is_writable, _owner: owner }
    }
}

impl<'a, O> Foreign<'a, O> {
    /// A tensor to read, in memory that `owner` keeps. If this fails, `owner` is dropped.
    ///
    /// # Errors
    /// The errors of [`TensorView::from_raw_parts`].
    ///
    /// # Safety
    /// The conditions of [`TensorView::from_raw_parts`], for as long as `owner` lives and in `'a`. If the result can be
    /// dropped while a GPU works with the memory, dropping `owner` must wait for that work or free the memory after it.
    pub unsafe fn from_raw_parts(
        device: &Device,
        pointer: impl Into<RawPointer>,
        dtype: DType,
        shape: impl IntoShape,
        strides: &[i64],
        owner: O,
    ) -> Result<Self> {
        // SAFETY: the caller's promise.
        let kept = unsafe { Foreign::checked(device, pointer.into(), dtype, shape, strides, false) }?;
        Ok(kept.kept_by(owner))
    }

    /// A tensor to read and write, in memory that `owner` keeps. If this fails, `owner` is dropped.
    ///
    /// # Errors
    /// The errors of [`TensorView::from_raw_parts`].
    ///
    /// # Safety
    /// The conditions of [`Foreign::from_raw_parts`] and [`TensorViewMut::from_raw_parts`].
    pub unsafe fn from_raw_parts_mut(
        device: &Device,
        pointer: impl Into<RawPointer>,
        dtype: DType,
        shape: impl IntoShape,
        strides: &[i64],
        owner: O,
    ) -> Result<Self> {
        // SAFETY: the caller's promise.
        let kept = unsafe { Foreign::checked(device, pointer.into(), dtype, shape, strides, true) }?;
        Ok(kept.kept_by(owner))
    }

    /// The elements, to read.
    pub fn view(&self) -> TensorView<'_> {
        self.view
    }

    /// The elements, to write.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] if the owner lets the memory only be read; strides that give two indices the same
    /// element.
    pub fn view_mut(&mut self) -> Result<TensorViewMut<'_>> {
        if !self.is_writable {
            return Err(ErrorKind::Unsupported {
                what: "writing memory that its owner gave to read".to_owned(),
                advice: "write to a copy (`to_tensor()`)".to_owned(),
            }
            .into());
        }
        let view = &self.view;
        let pointer = view.as_ptr().cast_mut();
        // SAFETY: the maker has promised it for the memory; `self` is exclusively borrowed.
        unsafe { TensorViewMut::from_raw_parts(view.device(), pointer, view.dtype(), view.shape(), view.strides()) }
    }
}

impl<'a, O> From<&'a Foreign<'_, O>> for TensorView<'a> {
    fn from(foreign: &'a Foreign<'_, O>) -> Self {
        foreign.view()
    }
}

impl<'a, O> From<&'a Foreign<'_, O>> for Operand<'a> {
    fn from(foreign: &'a Foreign<'_, O>) -> Self {
        Operand::View(foreign.view())
    }
}

impl<O> fmt::Debug for Foreign<'_, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.view.fmt(f)
    }
}
