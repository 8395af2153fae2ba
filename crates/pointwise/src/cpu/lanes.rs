//! Neighbouring elements to their compute type and back.
//!
//! Loops that the compiler makes vector code of, but for f16, for which it has no conversion: F16C's, from the level on
//! that has them.

use std::mem::MaybeUninit;

use pointwise_core::{DType, Element};

use super::level::BASELINE;

/// Whether elements are converted by F16C.
pub(super) const fn by_f16c<E: Element>(level: u8) -> bool {
    cfg!(target_arch = "x86_64") && level > BASELINE && matches!(E::DTYPE, DType::F16)
}

/// `values[i] = x[i]`.
///
/// # Safety
/// `x` is aligned and valid for as many elements; the processor has `LEVEL`.
#[inline(always)]
pub(super) unsafe fn load<E: Element, const LEVEL: u8>(x: *const E, values: &mut [MaybeUninit<E::Compute>]) {
    #[cfg(target_arch = "x86_64")]
    if const { by_f16c::<E>(LEVEL) } {
        // SAFETY: the compute type of f16 is an f32 in memory; the caller's contract.
        return unsafe { f16c::load(x.cast(), values.as_mut_ptr().cast(), values.len()) };
    }
    for (i, value) in values.iter_mut().enumerate() {
        // SAFETY: the caller's contract.
        unsafe { value.write(x.add(i).read().widen()) };
    }
}

/// `y[i] = values[i]`, rounded.
///
/// # Safety
/// `y` is aligned and valid for as many elements; all values are initialised; the processor has `LEVEL`.
#[inline(always)]
pub(super) unsafe fn store<E: Element, const LEVEL: u8>(values: &[MaybeUninit<E::Compute>], y: *mut E) {
    #[cfg(target_arch = "x86_64")]
    if const { by_f16c::<E>(LEVEL) } {
        // SAFETY: as in `load`.
        return unsafe { f16c::store(values.as_ptr().cast(), y.cast(), values.len()) };
    }
    for (i, value) in values.iter().enumerate() {
        // SAFETY: the caller's contract.
        unsafe { y.add(i).write(E::narrow(value.assume_init())) };
    }
}

#[cfg(target_arch = "x86_64")]
mod f16c {
    use std::arch::x86_64::*;
    use std::ptr::copy_nonoverlapping;

    const LANES: usize = 8;

    /// # Safety
    /// Valid for `n` elements; the processor has F16C.
    #[inline(always)]
    pub(super) unsafe fn load(x: *const u16, values: *mut f32, n: usize) {
        // SAFETY: the caller's contract; lanes at the end go by arrays of their own.
        unsafe {
            let eight = |x: *const u16| _mm256_cvtph_ps(_mm_loadu_si128(x.cast()));
            let whole = n - n % LANES;
            for i in (0..whole).step_by(LANES) {
                _mm256_storeu_ps(values.add(i), eight(x.add(i)));
            }
            if whole < n {
                let (mut last, mut wide) = ([0_u16; LANES], [0.0_f32; LANES]);
                copy_nonoverlapping(x.add(whole), last.as_mut_ptr(), n - whole);
                _mm256_storeu_ps(wide.as_mut_ptr(), eight(last.as_ptr()));
                copy_nonoverlapping(wide.as_ptr(), values.add(whole), n - whole);
            }
        }
    }

    /// # Safety
    /// As [`load`].
    #[inline(always)]
    pub(super) unsafe fn store(values: *const f32, y: *mut u16, n: usize) {
        // SAFETY: as in `load`.
        unsafe {
            // Every NaN as the one that all conversions of this crate return.
            let nan = _mm256_castsi256_ps(_mm256_set1_epi32(0x7fff_ffff));
            let eight = |values: *const f32| {
                let x = _mm256_loadu_ps(values);
                let x = _mm256_blendv_ps(x, nan, _mm256_cmp_ps::<_CMP_UNORD_Q>(x, x));
                _mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(x)
            };
            let whole = n - n % LANES;
            for i in (0..whole).step_by(LANES) {
                _mm_storeu_si128(y.add(i).cast(), eight(values.add(i)));
            }
            if whole < n {
                let (mut last, mut narrow) = ([0.0_f32; LANES], [0_u16; LANES]);
                copy_nonoverlapping(values.add(whole), last.as_mut_ptr(), n - whole);
                _mm_storeu_si128(narrow.as_mut_ptr().cast(), eight(last.as_ptr()));
                copy_nonoverlapping(narrow.as_ptr(), y.add(whole), n - whole);
            }
        }
    }
}
