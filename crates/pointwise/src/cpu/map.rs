//! `y[i] = op(a[i], b[i], c[i])` along a run of elements, and over all runs of a walk.

use std::mem::MaybeUninit;

use pointwise_core::cast;
use pointwise_core::map::{self, Map, absent};
use pointwise_core::op::Words;
use pointwise_core::philox::BLOCK as WORDS;
use pointwise_core::{BinaryOp, Draw, Element, Logic, Philox, RandomMapOp, Store, TableOp, TernaryOp, UnaryOp, Word};

use super::parallel::split;
use crate::kernel::{Places, Walk};

/// `(operands, y, step of y in elements, n, parameters, what the first element draws from)`: an op in one element type,
/// along a run.
///
/// # Safety
/// Operands and `y` are aligned to their elements, and valid for `n` of them at their steps. Element `i` of an operand
/// shares memory with no element of `y` but `i`.
pub type MapFn = unsafe fn(&[Source; 3], *mut u8, isize, usize, Words, Draw);

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

/// Elements converted, computed and stored at a time: loops over buffers that stay in the first-level cache.
pub(super) const BLOCK: usize = 256;

macro_rules! arities {
    ($($(#[doc = $doc:literal])* $name:ident: $Map:ident, [$($bound:tt)*];)*) => { $(
        $(#[doc = $doc])*
        ///
        /// # Safety
        /// As [`MapFn`].
        pub unsafe fn $name<E, O>(
            operands: &[Source; 3],
            y: *mut u8,
            step: isize,
            n: usize,
            words: Words,
            draw: Draw,
        )
        where
            E: Element,
            O: TableOp + $($bound)*,
        {
            // SAFETY: the caller's contract.
            unsafe { run::<map::$Map<E, O>>(operands, y, step, n, words, draw) }
        }
    )* };
}

arities! {
    /// The unary op `O` on elements `E`.
    unary: Unary, [UnaryOp<E::Compute, Output: Store<E>>];
    /// The binary op `O` on elements `E`.
    binary: Binary, [BinaryOp<E::Compute, Output: Store<E>>];
    /// The ternary op `O` on elements `E`.
    ternary: Ternary, [TernaryOp<E::Compute, Output: Store<E>>];
    /// The op `O` on a condition and elements `E`.
    select: Select, [TernaryOp<E::Compute, Logic, Output: Store<E>>];
    /// The op `O` on up to three operands of elements `E` and a random word for each.
    random_map: Random, [RandomMapOp<E::Compute>];
}

/// The conversion of elements `A` to elements `B`.
///
/// # Safety
/// As [`MapFn`].
pub(crate) unsafe fn convert<A, B>(operands: &[Source; 3], y: *mut u8, step: isize, n: usize, words: Words, draw: Draw)
where
    A: Element<Compute: cast::Source>,
    B: Element<Compute: cast::Target>,
{
    // SAFETY: the caller's contract.
    unsafe { run::<cast::Convert<A, B>>(operands, y, step, n, words, draw) }
}

/// # Safety
/// As [`MapFn`].
unsafe fn run<M: Map>(operands: &[Source; 3], y: *mut u8, step: isize, n: usize, words: Words, draw: Draw) {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("fma") {
        // SAFETY: the features are there; the caller's contract.
        return unsafe { run_avx2::<M>(operands, y, step, n, words, draw) };
    }
    // SAFETY: the caller's contract.
    unsafe { blocks::<M>(operands, y, step, n, words, draw) }
}

/// # Safety
/// As [`MapFn`]; the processor has AVX2 and FMA.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
unsafe fn run_avx2<M: Map>(operands: &[Source; 3], y: *mut u8, step: isize, n: usize, words: Words, draw: Draw) {
    // SAFETY: the caller's contract.
    unsafe { blocks::<M>(operands, y, step, n, words, draw) }
}

/// Values of a compute type, written up to some length.
pub(super) type Buffer<E> = [MaybeUninit<<E as Element>::Compute>; BLOCK];

/// # Safety
/// As [`MapFn`].
#[inline(always)]
unsafe fn blocks<M: Map>(operands: &[Source; 3], y: *mut u8, step: isize, n: usize, words: Words, draw: Draw) {
    let map = M::from_words(words);
    let y = y.cast::<M::R>();
    let [a, b, c] = operands;
    let mut start = 0;
    while start < n {
        let len = BLOCK.min(n - start);
        let mut av: Buffer<M::A> = [MaybeUninit::uninit(); BLOCK];
        let mut bv: Buffer<M::B> = [MaybeUninit::new(absent::<M::B>()); BLOCK];
        let mut cv: Buffer<M::C> = [MaybeUninit::new(absent::<M::C>()); BLOCK];
        let mut results: Buffer<M::R> = [MaybeUninit::uninit(); BLOCK];
        // Loads, maths and stores are loops of their own: an operand may be y, and a loop that reads and writes it at
        // once would not be vectorised.
        // SAFETY: start + len <= n; the caller's contract. Every value read was written before.
        unsafe {
            fill::<M::A>(a, start, &mut av[..len]);
            if M::OPERANDS > 1 {
                fill::<M::B>(b, start, &mut bv[..len]);
            }
            if M::OPERANDS > 2 {
                fill::<M::C>(c, start, &mut cv[..len]);
            }
            let values = av[..len].iter().zip(&bv[..len]).zip(&cv[..len]).zip(&mut results[..len]);
            if M::RANDOM {
                let bits = bits(draw.place, draw.first + start as u64);
                for ((((a, b), c), result), &bits) in values.zip(&bits) {
                    result.write(map.with_bits(bits).map(a.assume_init(), b.assume_init(), c.assume_init()));
                }
            } else {
                for (((a, b), c), result) in values {
                    result.write(map.map(a.assume_init(), b.assume_init(), c.assume_init()));
                }
            }
            if step == 1 {
                let y = y.add(start);
                for (i, result) in results[..len].iter().enumerate() {
                    y.add(i).write(M::R::narrow(result.assume_init()));
                }
            } else {
                let y = y.offset(start as isize * step);
                for (i, result) in results[..len].iter().enumerate() {
                    y.offset(i as isize * step).write(M::R::narrow(result.assume_init()));
                }
            }
        }
        start += len;
    }
}

/// The random words of the elements from `first` on.
#[inline(always)]
fn bits(place: Philox, first: u64) -> [u32; BLOCK] {
    let (block, skip) = (first / WORDS as u64, first as usize % WORDS);
    let mut all = [0; BLOCK + WORDS];
    for (i, four) in all.chunks_exact_mut(WORDS).enumerate() {
        four.copy_from_slice(&place.block(block + i as u64));
    }
    std::array::from_fn(|i| all[i + skip])
}

/// Elements `start ..` of an operand.
///
/// # Safety
/// They are valid for reading, and aligned.
#[inline(always)]
pub(super) unsafe fn fill<E: Element>(source: &Source, start: usize, values: &mut [MaybeUninit<E::Compute>]) {
    if let Some(word) = source.word {
        values.fill(MaybeUninit::new(E::Compute::from_word(word)));
        return;
    }
    let x = source.pointer.cast::<E>();
    // SAFETY: the caller's contract.
    unsafe {
        match source.step {
            0 => values.fill(MaybeUninit::new(x.read().widen())),
            1 => {
                let x = x.add(start);
                for (i, value) in values.iter_mut().enumerate() {
                    value.write(x.add(i).read().widen());
                }
            }
            step => {
                let x = x.offset(start as isize * step);
                for (i, value) in values.iter_mut().enumerate() {
                    value.write(x.offset(i as isize * step).read().widen());
                }
            }
        }
    }
}

/// A call on the CPU.
pub(crate) struct Run<'a> {
    /// The op.
    pub(crate) op: MapFn,
    /// The loop; tensor 0 is the result.
    pub(crate) walk: &'a Walk,
    /// First elements of the operands.
    pub(crate) operands: [*const u8; 3],
    /// Operands that came with the call.
    pub(crate) given: [Option<u64>; 3],
    /// The result's first element.
    pub(crate) y: *mut u8,
    /// Bytes of an element of each tensor.
    pub(crate) sizes: [usize; 4],
    /// Parameters.
    pub(crate) words: Words,
    /// Where a random op draws from; its result is contiguous, so that the walk's order is that of the elements.
    pub(crate) place: Philox,
}

// SAFETY: the pointers are of memory that is borrowed for the call, of which each thread writes its own part.
unsafe impl Sync for Run<'_> {}

impl Run<'_> {
    /// Runs the op over the whole walk, in parallel.
    ///
    /// # Safety
    /// Every place of the walk is valid in its tensor, as [`MapFn`] asks.
    pub(crate) unsafe fn run(&self) {
        let this = self;
        split(this.walk.numel() as usize, |start, len| {
            // SAFETY: the caller's contract; parts are disjoint in y.
            unsafe { this.part(start, len) }
        });
    }

    /// Elements `start .. start + len` in the walk's order.
    ///
    /// # Safety
    /// As [`Run::run`].
    unsafe fn part(&self, start: usize, len: usize) {
        let mut at = start as u64;
        runs(self.walk, start, len, |first, step, n| {
            let draw = Draw { place: self.place, first: at };
            at += n as u64;
            // SAFETY: the caller's contract.
            unsafe {
                let sources = std::array::from_fn(|k| Source {
                    pointer: self.operands[k].wrapping_offset(first[k + 1] as isize * self.sizes[k + 1] as isize),
                    step: step[k + 1] as isize,
                    word: self.given[k],
                });
                let y = self.y.offset(first[0] as isize * self.sizes[0] as isize);
                (self.op)(&sources, y, step[0] as isize, n, self.words, draw);
            }
        });
    }
}

/// Calls `run` with the place of the first element, the step to the next and the number of elements, for each run along
/// the innermost dimension that has any of the elements `start .. start + len` in the walk's order.
pub(super) fn runs<const N: usize>(
    walk: &Walk<N>,
    start: usize,
    len: usize,
    mut run: impl FnMut(&Places<N>, &Places<N>, usize),
) {
    let (inner, step) = walk.inner();
    let outer = walk.dims().len().saturating_sub(1);
    let mut along = start % inner;
    // The row's index along each outer dimension, the last first, and its place in every tensor.
    let mut index = [0_usize; pointwise_core::launch::MAX_DIMS];
    let mut place = [0; N];
    let mut rest = start / inner;
    for (slot, (size, step)) in index.iter_mut().zip(walk.dims().take(outer).rev()) {
        *slot = rest % size;
        rest /= size;
        move_by(&mut place, step, *slot as i64);
    }
    let mut left = len;
    while left > 0 {
        let n = left.min(inner - along);
        let mut first = place;
        move_by(&mut first, &step, along as i64);
        run(&first, &step, n);
        (left, along) = (left - n, 0);
        for (slot, (size, step)) in index.iter_mut().zip(walk.dims().take(outer).rev()) {
            *slot += 1;
            move_by(&mut place, step, 1);
            if *slot < size {
                break;
            }
            move_by(&mut place, step, -(size as i64));
            *slot = 0;
        }
    }
}

fn move_by<const N: usize>(place: &mut Places<N>, step: &Places<N>, times: i64) {
    for (place, step) in place.iter_mut().zip(step) {
        *place += step * times;
    }
}
