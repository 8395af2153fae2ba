//! Conversions of runs of elements, for fused kernels: floats to f32 and back.

use std::mem::MaybeUninit;

use pointwise_core::{DType, Element, F8E4M3, F8E5M2, bf16, f16};

use super::level::at_best;
use super::operand::{Fill, Source, Store, Target};

/// Writes `n` elements of a float of 16 or 8 bits to `to`, as f32.
///
/// # Safety
/// The elements are valid for reading, `to` for writing so many; both are aligned.
pub(crate) unsafe fn widen(dtype: DType, source: Source, n: usize, to: *mut f32) {
    // SAFETY: the caller's contract.
    unsafe {
        match dtype {
            DType::F16 => widen_of::<f16>(source, n, to),
            DType::F8E4M3 => widen_of::<F8E4M3>(source, n, to),
            DType::F8E5M2 => widen_of::<F8E5M2>(source, n, to),
            _ => widen_of::<bf16>(source, n, to),
        }
    }
}

/// # Safety
/// As of [`widen`]; the compute type of `E` is an f32 by another name.
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
    unsafe {
        match dtype {
            DType::F16 => narrow_of::<f16>(values, n, target),
            DType::F8E4M3 => narrow_of::<F8E4M3>(values, n, target),
            DType::F8E5M2 => narrow_of::<F8E5M2>(values, n, target),
            _ => narrow_of::<bf16>(values, n, target),
        }
    }
}

/// # Safety
/// As of [`narrow`]; the compute type of `E` is an f32 by another name.
unsafe fn narrow_of<E: Element>(values: *const f32, n: usize, target: Target) {
    // SAFETY: the caller's contract.
    unsafe {
        let values = std::slice::from_raw_parts(values.cast::<MaybeUninit<E::Compute>>(), n);
        at_best(Store::<E> { target, start: 0, values });
    }
}
