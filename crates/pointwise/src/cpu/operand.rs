//! Operands and results along a run, and the buffers of elements in the compute type.

use std::mem::MaybeUninit;

use pointwise_core::{Element, Word};

use super::lanes::{load, store};
use super::level::Loop;

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
    /// True if every element is the same.
    #[inline(always)]
    pub(crate) fn is_uniform(&self) -> bool {
        self.word.is_some() || self.step == 0
    }

    /// The value of a uniform operand to all of `values`; leaves them alone if it is not uniform. A function of its own,
    /// not a part of each loop.
    ///
    /// # Safety
    /// If there are any values, the first element is valid for reading.
    #[inline(never)]
    pub(crate) unsafe fn spread<E: Element>(&self, values: &mut [MaybeUninit<E::Compute>]) {
        if let Some(word) = self.word {
            values.fill(MaybeUninit::new(E::Compute::from_word(word)));
        } else if self.step == 0 && !values.is_empty() {
            // SAFETY: the caller's contract.
            values.fill(MaybeUninit::new(unsafe { self.pointer.cast::<E>().read() }.widen()));
        }
    }

    /// True unless it is a number of the compute type that the element type does not have. A function of its own, as
    /// [`Source::spread`].
    #[cfg(target_arch = "x86_64")]
    #[inline(never)]
    pub(crate) fn has_elements<E: Element>(&self) -> bool {
        self.word.is_none_or(|word| {
            let number = E::Compute::from_word(word);
            E::narrow(number).widen().to_word() == number.to_word()
        })
    }
}

/// Writes the element of a uniform operand `n` times.
#[cfg(target_arch = "x86_64")]
pub(crate) struct Repeat<E> {
    /// The operand.
    pub(crate) source: Source,
    /// The first of the elements.
    pub(crate) to: *mut E,
    /// As many.
    pub(crate) n: usize,
}

/// # Safety
/// If there are any elements, the first is valid for reading; the others are for writing.
#[cfg(target_arch = "x86_64")]
impl<E: Element> Loop for Repeat<E> {
    #[inline(always)]
    unsafe fn run<const LEVEL: u8>(self) {
        let Repeat { source, to, n } = self;
        if n == 0 {
            return;
        }
        let element = match source.word {
            Some(word) => E::narrow(E::Compute::from_word(word)),
            // SAFETY: the caller's contract.
            None => unsafe { source.pointer.cast::<E>().read() },
        };
        let mut i = 0;
        while i < n {
            // SAFETY: the caller's contract.
            unsafe { to.add(i).write(element) };
            i += 1;
        }
    }
}

/// Elements converted, computed and stored at a time: loops over buffers that stay in the first-level cache.
pub(crate) const BLOCK: usize = 256;

/// Values of a compute type, written up to some length. They begin a line of the cache: a vector that lies across two
/// takes twice as long.
#[repr(align(64))]
pub(crate) struct Buffer<E: Element, const LEN: usize = BLOCK>(pub(crate) [MaybeUninit<E::Compute>; LEN]);

impl<E: Element, const LEN: usize> Buffer<E, LEN> {
    /// A buffer without values.
    pub(crate) const NEW: Self = Buffer([const { MaybeUninit::uninit() }; LEN]);
}

/// Has the cache fetch a block of elements of `size` bytes that comes after this one: while a loop over buffers is at
/// work, nothing asks for memory.
#[inline(always)]
pub(crate) fn prefetch(first: *const u8, size: usize) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        let mut byte = 0;
        while byte < BLOCK * size {
            // SAFETY: no access, and every x86-64 processor has it.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(first.wrapping_add(byte).cast()) };
            byte += 64;
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (first, size);
}

/// Elements `start ..` of an operand that is not uniform, to buffers.
pub(crate) struct Fill<'a, E: Element> {
    /// The operand.
    pub(crate) source: Source,
    /// The first element.
    pub(crate) start: usize,
    /// As many elements.
    pub(crate) values: &'a mut [MaybeUninit<E::Compute>],
}

/// # Safety
/// The elements are valid for reading, and aligned.
impl<E: Element> Loop for Fill<'_, E> {
    #[inline(always)]
    unsafe fn run<const LEVEL: u8>(self) {
        let (x, step) = (self.source.pointer.cast::<E>(), self.source.step);
        // SAFETY: the caller's contract.
        unsafe {
            let x = x.offset(self.start as isize * step);
            if step == 1 {
                return load::<E, LEVEL>(x, self.values);
            }
            for (i, value) in self.values.iter_mut().enumerate() {
                value.write(x.offset(i as isize * step).read().widen());
            }
        }
    }
}

/// A result along a run: its first element, and the step to the next, in elements.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// The first element.
    pub pointer: *mut u8,
    /// From one element to the next, in elements.
    pub step: isize,
}

/// Elements `start ..` of a result, from buffers: rounded.
pub(crate) struct Store<'a, E: Element> {
    /// The result.
    pub(crate) target: Target,
    /// The first element.
    pub(crate) start: usize,
    /// As many elements.
    pub(crate) values: &'a [MaybeUninit<E::Compute>],
}

/// # Safety
/// The elements are valid for writing, and aligned; all values are initialised.
impl<E: Element> Loop for Store<'_, E> {
    #[inline(always)]
    unsafe fn run<const LEVEL: u8>(self) {
        let Target { pointer, step } = self.target;
        // SAFETY: the caller's contract.
        unsafe {
            let y = pointer.cast::<E>().offset(self.start as isize * step);
            if step == 1 {
                return store::<E, LEVEL>(self.values, y);
            }
            for (i, value) in self.values.iter().enumerate() {
                y.offset(i as isize * step).write(E::narrow(value.assume_init()));
            }
        }
    }
}
