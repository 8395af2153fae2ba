//! An operand along a run, and the buffers that its elements are converted to.

use std::mem::MaybeUninit;

use pointwise_core::{Element, Word};

use super::lanes::load;

/// One operand along a run.
#[derive(Clone, Copy, Debug)]
pub struct Source {
    /// The first element; not read where there is a word.
    pub pointer: *const u8,
    /// From one element to the next, in elements; 0 for a value that is the same for all.
    pub step: isize,
    /// A value that came with the call, in the compute type.
    pub word: Option<u64>,
}

impl Source {
    /// Whether every element is the same.
    #[inline(always)]
    pub(super) fn is_uniform(&self) -> bool {
        self.word.is_some() || self.step == 0
    }

    /// The value of a uniform operand to all of `values`; leaves them alone if it is not uniform.
    ///
    /// # Safety
    /// If there are any values, the first element is valid for reading.
    #[inline(always)]
    pub(super) unsafe fn spread<E: Element>(&self, values: &mut [MaybeUninit<E::Compute>]) {
        if let Some(word) = self.word {
            values.fill(MaybeUninit::new(E::Compute::from_word(word)));
        } else if self.step == 0 && !values.is_empty() {
            // SAFETY: the caller's contract.
            values.fill(MaybeUninit::new(unsafe { self.pointer.cast::<E>().read() }.widen()));
        }
    }
}

/// Elements converted, computed and stored at a time: loops over buffers that stay in the first-level cache.
pub(super) const BLOCK: usize = 256;

/// Values of a compute type, written up to some length.
pub(super) type Buffer<E> = [MaybeUninit<<E as Element>::Compute>; BLOCK];

/// An empty buffer.
#[inline(always)]
pub(super) const fn buffer<E: Element>() -> Buffer<E> {
    [const { MaybeUninit::uninit() }; BLOCK]
}

/// Has the cache fetch a block of elements that comes after this one: while a loop over buffers is at work, nothing asks
/// for memory.
#[inline(always)]
pub(super) fn prefetch<E: Element>(first: *const E, start: usize) {
    #[cfg(target_arch = "x86_64")]
    for byte in (0..BLOCK * size_of::<E>()).step_by(64) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: no access, and every x86-64 processor has it.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(first.wrapping_add(start).wrapping_byte_add(byte).cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (first, start);
}

/// Elements `start ..` of an operand, unless it is uniform: see [`Source::spread`].
///
/// # Safety
/// They are valid for reading, and aligned; the processor has `LEVEL`.
#[inline(always)]
pub(super) unsafe fn fill<E: Element, const LEVEL: u8>(
    source: &Source,
    start: usize,
    values: &mut [MaybeUninit<E::Compute>],
) {
    if source.is_uniform() {
        return;
    }
    let (x, step) = (source.pointer.cast::<E>(), source.step);
    // SAFETY: the caller's contract.
    unsafe {
        let x = x.offset(start as isize * step);
        if step == 1 {
            return load::<E, LEVEL>(x, values);
        }
        for (i, value) in values.iter_mut().enumerate() {
            value.write(x.offset(i as isize * step).read().widen());
        }
    }
}
