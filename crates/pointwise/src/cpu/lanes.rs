//! Neighbouring elements to their compute type and back.
//!
//! The compiler turns these loops into vector code. It has no conversion of f16: levels with F16C use its instructions.

use std::mem::MaybeUninit;

use pointwise_core::{DType, Element};

use super::level::BASELINE;

/// True if elements are converted by F16C.
pub(crate) const fn by_f16c<E: Element>(level: u8) -> bool {
    cfg!(target_arch = "x86_64") && level > BASELINE && matches!(E::DTYPE, DType::F16)
}

/// `values[i] = x[i]`.
///
/// # Safety
/// `x` is aligned and valid for as many elements; the processor has `LEVEL`.
#[inline(always)]
pub(crate) unsafe fn load<E: Element, const LEVEL: u8>(x: *const E, values: &mut [MaybeUninit<E::Compute>]) {
    #[cfg(target_arch = "x86_64")]
    if const { by_f16c::<E>(LEVEL) } {
        // SAFETY: the compute type of f16 is an f32 in memory; the caller's contract.
        return unsafe { f16c::load::<LEVEL>(x.cast(), values.as_mut_ptr().cast(), values.len()) };
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
pub(crate) unsafe fn store<E: Element, const LEVEL: u8>(values: &[MaybeUninit<E::Compute>], y: *mut E) {
    #[cfg(target_arch = "x86_64")]
    if const { by_f16c::<E>(LEVEL) } {
        // SAFETY: as in `load`.
        return unsafe { f16c::store::<LEVEL>(values.as_ptr().cast(), y.cast(), values.len()) };
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

    use crate::cpu::level::AVX512;

    const LANES: usize = 16;
    /// The bits of the NaN that all conversions of this crate return, as an f32.
    const NAN: i32 = 0x7fff_ffff;

    /// Sixteen values.
    ///
    /// # Safety
    /// Valid for sixteen values; the processor has `LEVEL`.
    #[inline(always)]
    unsafe fn widen<const LEVEL: u8>(x: *const u16, values: *mut f32) {
        // SAFETY: the caller's contract.
        unsafe {
            if LEVEL == AVX512 {
                _mm512_storeu_ps(values, _mm512_cvtph_ps(_mm256_loadu_si256(x.cast())));
            } else {
                for i in [0, LANES / 2] {
                    _mm256_storeu_ps(values.add(i), _mm256_cvtph_ps(_mm_loadu_si128(x.add(i).cast())));
                }
            }
        }
    }

    /// Sixteen values, rounded.
    ///
    /// # Safety
    /// Valid for sixteen values; the processor has `LEVEL`.
    #[inline(always)]
    unsafe fn narrow<const LEVEL: u8>(values: *const f32, y: *mut u16) {
        // SAFETY: the caller's contract.
        unsafe {
            if LEVEL == AVX512 {
                let x = _mm512_loadu_ps(values);
                let nan = _mm512_castsi512_ps(_mm512_set1_epi32(NAN));
                let x = _mm512_mask_mov_ps(x, _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(x, x), nan);
                _mm256_storeu_si256(y.cast(), _mm512_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(x));
            } else {
                let nan = _mm256_castsi256_ps(_mm256_set1_epi32(NAN));
                for i in [0, LANES / 2] {
                    let x = _mm256_loadu_ps(values.add(i));
                    let x = _mm256_blendv_ps(x, nan, _mm256_cmp_ps::<_CMP_UNORD_Q>(x, x));
                    _mm_storeu_si128(y.add(i).cast(), _mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(x));
                }
            }
        }
    }

    /// # Safety
    /// Valid for `n` elements; the processor has `LEVEL`.
    #[inline(always)]
    pub(crate) unsafe fn load<const LEVEL: u8>(x: *const u16, values: *mut f32, n: usize) {
        let whole = n - n % LANES;
        // SAFETY: the caller's contract; lanes at the end go by arrays of their own.
        unsafe {
            for i in (0..whole).step_by(LANES) {
                widen::<LEVEL>(x.add(i), values.add(i));
            }
            if whole < n {
                let (mut last, mut wide) = ([0_u16; LANES], [0.0_f32; LANES]);
                copy_nonoverlapping(x.add(whole), last.as_mut_ptr(), n - whole);
                widen::<LEVEL>(last.as_ptr(), wide.as_mut_ptr());
                copy_nonoverlapping(wide.as_ptr(), values.add(whole), n - whole);
            }
        }
    }

    /// # Safety
    /// Valid for `n` elements; the processor has `LEVEL`.
    #[inline(always)]
    pub(crate) unsafe fn store<const LEVEL: u8>(values: *const f32, y: *mut u16, n: usize) {
        let whole = n - n % LANES;
        // SAFETY: as in `load`.
        unsafe {
            for i in (0..whole).step_by(LANES) {
                narrow::<LEVEL>(values.add(i), y.add(i));
            }
            if whole < n {
                let (mut last, mut half) = ([0.0_f32; LANES], [0_u16; LANES]);
                copy_nonoverlapping(values.add(whole), last.as_mut_ptr(), n - whole);
                narrow::<LEVEL>(last.as_ptr(), half.as_mut_ptr());
                copy_nonoverlapping(half.as_ptr(), y.add(whole), n - whole);
            }
        }
    }
}
