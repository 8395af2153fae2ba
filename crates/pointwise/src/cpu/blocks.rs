//! Conversions of runs of elements, for fused kernels: floats to f32 and back, and between types.

use std::mem::MaybeUninit;

use pointwise_core::{DType, Element, bf16, f16};

use super::level::at_best;
use super::operand::{Fill, Source, Store, Target};

/// Writes `n` elements of a 16-bit float to `to`, as f32.
///
/// # Safety
/// The elements are valid for reading, `to` for writing so many; both are aligned.
pub(crate) unsafe fn widen(dtype: DType, source: Source, n: usize, to: *mut f32) {
    // SAFETY: the compute type of 16-bit floats is an f32 by another name; the caller's contract.
    unsafe {
        if dtype == DType::F16 {
            let values = std::slice::from_raw_parts_mut(to.cast::<MaybeUninit<<f16 as Element>::Compute>>(), n);
            if source.step == 0 {
                source.spread::<f16>(values)
            } else {
                at_best(Fill::<f16> { source, start: 0, values })
            }
        } else {
            let values = std::slice::from_raw_parts_mut(to.cast::<MaybeUninit<<bf16 as Element>::Compute>>(), n);
            if source.step == 0 {
                source.spread::<bf16>(values)
            } else {
                at_best(Fill::<bf16> { source, start: 0, values })
            }
        }
    }
}

/// Writes `n` values to elements of a 16-bit float, rounded.
///
/// # Safety
/// The values are valid for reading, the elements for writing; both are aligned.
pub(crate) unsafe fn narrow(dtype: DType, values: *const f32, n: usize, target: Target) {
    // SAFETY: as in `widen`.
    unsafe {
        if dtype == DType::F16 {
            let values = std::slice::from_raw_parts(values.cast::<MaybeUninit<<f16 as Element>::Compute>>(), n);
            at_best(Store::<f16> { target, start: 0, values });
        } else {
            let values = std::slice::from_raw_parts(values.cast::<MaybeUninit<<bf16 as Element>::Compute>>(), n);
            at_best(Store::<bf16> { target, start: 0, values });
        }
    }
}
