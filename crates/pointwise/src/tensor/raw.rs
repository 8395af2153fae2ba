//! The common part of both kinds of view: a place in memory, and the elements' layout there.

use std::ptr::{NonNull, without_provenance_mut};
use std::sync::Arc;

use pointwise_core::{DType, Scalar};

use super::{Layout, check_bools};
use crate::Device;
use crate::cuda::Block;
use crate::error::{ErrorKind, Result};
use crate::shape::IntoShape;

/// A pointer into a device's memory: a pointer on the CPU, an address on a GPU.
#[derive(Clone, Copy, Debug)]
pub struct RawPointer(*mut u8);

impl From<u64> for RawPointer {
    fn from(address: u64) -> Self {
        // GPU addresses have as many bits as the host's: CUDA's address space is unified.
        RawPointer(without_provenance_mut(address as usize))
    }
}

impl<T> From<*const T> for RawPointer {
    fn from(pointer: *const T) -> Self {
        RawPointer(pointer.cast_mut().cast())
    }
}

impl<T> From<*mut T> for RawPointer {
    fn from(pointer: *mut T) -> Self {
        RawPointer(pointer.cast())
    }
}

/// The fields that both kinds of view have.
#[derive(Clone, Copy)]
pub(super) struct Raw<'a> {
    pub(super) pointer: *mut u8,
    pub(super) dtype: DType,
    pub(super) device: Device,
    pub(super) layout: Layout,
    /// The device's memory, with its record of the streams that touch it; none for foreign memory.
    pub(super) block: Option<&'a Arc<Block>>,
}

impl Raw<'_> {
    /// Returns the same elements with another layout.
    pub(super) fn with(self, layout: Layout) -> Self {
        Raw { layout, ..self }
    }

    /// Returns the elements of `layout`, whose first is `elements` past the first of this view.
    pub(super) fn moved(self, (layout, elements): (Layout, i64)) -> Self {
        let bytes = self.dtype.offset(elements) as isize;
        Raw { layout, pointer: self.pointer.wrapping_offset(bytes), ..self }
    }

    /// Memory that other code owns.
    ///
    /// # Errors
    /// Null or misaligned pointers; strides that do not go with the shape.
    pub(super) fn foreign(
        device: &Device,
        pointer: impl Into<RawPointer>,
        dtype: DType,
        shape: impl IntoShape,
        strides: &[i64],
    ) -> Result<Self> {
        let layout = Layout::strided(shape.into_shape()?, strides)?;
        let pointer = pointer.into();
        let aligned = pointer.0.addr().is_multiple_of(dtype.size());
        if layout.shape().numel() > 0 && (pointer.0.is_null() || !aligned) {
            return Err(ErrorKind::Parameter {
                name: "pointer",
                value: format!("{:p}", pointer.0),
                why: format!(
                    "must not be null and must be a multiple of {}, the size of a {dtype} ({device})",
                    dtype.size()
                ),
            }
            .into());
        }
        Ok(Raw { pointer: pointer.0, dtype, device: *device, layout, block: None })
    }

    /// A pointer for a slice of `T` over all elements.
    ///
    /// # Errors
    /// Another element type than `T`; a device that is not the CPU; a view that is not contiguous; a byte of a bool
    /// that is neither 0 nor 1.
    pub(super) fn slice_pointer<T: Scalar>(&self, what: &'static str) -> Result<NonNull<T>> {
        if self.dtype != T::DTYPE {
            return Err(ErrorKind::DType {
                op: format!("{what}::<{}>", T::DTYPE),
                got: self.dtype,
                allowed: vec![T::DTYPE],
            }
            .into());
        }
        if !self.device.is_cpu() {
            return Err(ErrorKind::Unsupported {
                what: format!("{what} on {}", self.device),
                advice: "the host cannot reach this memory; copy it with to_vec() or to_device(&Device::cpu())"
                    .to_owned(),
            }
            .into());
        }
        self.layout.require_contiguous("the tensor of a slice")?;
        let numel = self.layout.shape().numel();
        let Some(pointer) = NonNull::new(self.pointer).filter(|_| numel > 0) else { return Ok(NonNull::dangling()) };
        if T::DTYPE == DType::Bool {
            // SAFETY: the memory holds `numel` bytes one after another, initialised, and nothing writes it meanwhile.
            check_bools(T::DTYPE, unsafe { std::slice::from_raw_parts(pointer.as_ptr(), numel) })?;
        }
        Ok(pointer.cast())
    }
}

/// The elements, to write.
///
/// # Errors
/// The errors of [`Raw::slice_pointer`].
///
/// # Safety
/// The memory is exclusively borrowed for `'a`.
pub(super) unsafe fn slice_mut<'a, T: Scalar>(raw: Raw<'a>) -> Result<&'a mut [T]> {
    let pointer = raw.slice_pointer::<T>("as_mut_slice")?;
    // SAFETY: the memory holds `numel` elements of `T`'s representation one after another, and the caller has the only
    // way to it; a pointer without elements behind it is dangling but aligned.
    Ok(unsafe { std::slice::from_raw_parts_mut(pointer.as_ptr(), raw.layout.shape().numel()) })
}
