//! Conversions of runs of elements, for fused kernels: floats to f32 and back.

use std::mem::MaybeUninit;

use pointwise_core::{DType, Element};

use super::level::at_best;
use super::operand::{Fill, Source, Store, Target};
use crate::element::with_element;

/// Writes `n` elements of a float of 16 or 8 bits to `to`, as f32.
///
/// # Safety
/// The elements are valid for reading, `to` for writing so many; both are aligned.
pub(crate) unsafe fn widen(dtype: DType, source: Source, n: usize, to: *mut f32) {
    // SAFETY: the caller's contract.
    with_element!(float dtype, E => unsafe { widen_of::<E>(source, n, to) }, ());
}

/// # Safety
/// `n` elements of `source` are valid for reading, `to` for writing so many values; both are aligned. The compute type of `E` is an f32
/// by another name.
unsafe fn widen_of<E: Element>(source: Source, n: usize, to: *mut f32) {
    // SAFETY: the caller's contract.
    unsafe {
        let values = std::slice::from_raw_parts_mut(to.cast::<MaybeUninit<E::Compute>>(), n);
        if source.step == 0 {
            source.spread::<E>(values);
        } else {
            at_best(Fill::<E> { source, start: 0, values });
        }
    }
}

/// Writes `n` values to elements of a float of 16 or 8 bits, rounded.
///
/// # Safety
/// The values are valid for reading, the elements for writing; both are aligned.
pub(crate) unsafe fn narrow(dtype: DType, values: *const f32, n: usize, target: Target) {
    // SAFETY: the caller's contract.
    with_element!(float dtype, E => unsafe { narrow_of::<E>(values, n, target) }, ());
}

/// # Safety
/// `n` values are valid for reading, so many elements of `target` for writing; both are aligned. The compute type of `E` is an f32 by
/// another name.
unsafe fn narrow_of<E: Element>(values: *const f32, n: usize, target: Target) {
    // SAFETY: the caller's contract.
    unsafe {
        let values = std::slice::from_raw_parts(values.cast::<MaybeUninit<E::Compute>>(), n);
        at_best(Store::<E> { target, start: 0, values });
    }
}
