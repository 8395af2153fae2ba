//! `y0[i], y1[i], .. = op(first[i], b[i], ..)` along a run of elements, and over all runs of a walk.

use std::mem::MaybeUninit;

use pointwise_core::launch::GRADIENT_TENSORS;
use pointwise_core::op::{MAX_OPERANDS, MAX_RESULTS, Words};
use pointwise_core::{Element, GradientOp, TableOp, Value, row};

use super::lanes::store;
#[cfg(target_arch = "x86_64")]
use super::level;
use super::level::BASELINE;
use super::operand::{BLOCK, Buffer, Source, buffer, fill};
use super::parallel::split;
use super::runs::runs;
use crate::kernel::Walk;

/// `(operands, results with their steps in elements, n, parameters)`: gradients in one element type, along a run.
///
/// # Safety
/// As [`MapFn`](super::MapFn), of each result; results share no memory with each other.
pub type GradientsFn = unsafe fn(&[Source; MAX_OPERANDS], &[(*mut u8, isize); MAX_RESULTS], usize, Words);

/// The gradients `O` of elements `E`, the first operand being of type `F`.
///
/// # Safety
/// As [`GradientsFn`].
pub unsafe fn gradients<F, E, O>(
    operands: &[Source; MAX_OPERANDS],
    results: &[(*mut u8, isize); MAX_RESULTS],
    n: usize,
    words: Words,
) where
    F: Element,
    E: Element,
    O: TableOp + GradientOp<E::Compute, F::Compute>,
{
    const { _ = row::of_gradients::<F, E, O, O>() };
    #[cfg(target_arch = "x86_64")]
    if level::level() >= level::AVX2 {
        // SAFETY: the processor has the level; the caller's contract.
        return unsafe { run_avx2::<F, E, O>(operands, results, n, words) };
    }
    // SAFETY: the caller's contract.
    unsafe { blocks::<F, E, O, BASELINE>(operands, results, n, words) }
}

/// # Safety
/// As [`GradientsFn`]; the processor has the features.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,f16c")]
unsafe fn run_avx2<F, E, O>(
    operands: &[Source; MAX_OPERANDS],
    results: &[(*mut u8, isize); MAX_RESULTS],
    n: usize,
    words: Words,
) where
    F: Element,
    E: Element,
    O: TableOp + GradientOp<E::Compute, F::Compute>,
{
    // SAFETY: the caller's contract.
    unsafe { blocks::<F, E, O, { level::AVX2 }>(operands, results, n, words) }
}

/// # Safety
/// As [`GradientsFn`]; the processor has `LEVEL`.
#[inline(always)]
unsafe fn blocks<F, E, O, const LEVEL: u8>(
    operands: &[Source; MAX_OPERANDS],
    results: &[(*mut u8, isize); MAX_RESULTS],
    n: usize,
    words: Words,
) where
    F: Element,
    E: Element,
    O: TableOp + GradientOp<E::Compute, F::Compute>,
{
    let op = O::from_words(words);
    let mut first = buffer::<F>();
    let mut others: [Buffer<E>; MAX_OPERANDS - 1] = [[MaybeUninit::new(E::Compute::ZERO); BLOCK]; MAX_OPERANDS - 1];
    let mut values: [Buffer<E>; MAX_RESULTS] = [buffer::<E>(); MAX_RESULTS];
    let used = O::INFO.operands.len() - 1;
    let block = BLOCK.min(n);
    // SAFETY: the caller's contract.
    unsafe {
        operands[0].spread::<F>(&mut first[..block]);
        for (other, source) in others[..used].iter_mut().zip(&operands[1..]) {
            source.spread::<E>(&mut other[..block]);
        }
    }
    let mut start = 0;
    while start < n {
        let len = BLOCK.min(n - start);
        // Loads, maths and stores are loops of their own, as in `map`.
        // SAFETY: start + len <= n; the caller's contract. Every value read was written before.
        unsafe {
            fill::<F, LEVEL>(&operands[0], start, &mut first[..len]);
            for (other, source) in others[..used].iter_mut().zip(&operands[1..]) {
                fill::<E, LEVEL>(source, start, &mut other[..len]);
            }
            let [b, c, d] = &others;
            let [y0, y1, y2] = &mut values;
            for i in 0..len {
                let others = [b[i].assume_init(), c[i].assume_init(), d[i].assume_init()];
                let [v0, v1, v2] = op.apply(first[i].assume_init(), others);
                y0[i].write(v0);
                y1[i].write(v1);
                y2[i].write(v2);
            }
            for (values, &(y, step)) in values.iter().zip(&results[..O::INFO.results.len()]) {
                let y = y.cast::<E>().offset(start as isize * step);
                if step == 1 {
                    store::<E, LEVEL>(&values[..len], y);
                    continue;
                }
                for (i, value) in values[..len].iter().enumerate() {
                    y.offset(i as isize * step).write(E::narrow(value.assume_init()));
                }
            }
        }
        start += len;
    }
}

/// A call on the CPU.
pub(crate) struct GradientsRun<'a> {
    /// The op.
    pub(crate) op: GradientsFn,
    /// The loop; the first tensors are the results.
    pub(crate) walk: &'a Walk<GRADIENT_TENSORS>,
    /// First elements of the operands.
    pub(crate) operands: [*const u8; MAX_OPERANDS],
    /// Operands that came with the call.
    pub(crate) given: [Option<u64>; MAX_OPERANDS],
    /// First elements of the results; null where there is none.
    pub(crate) results: [*mut u8; MAX_RESULTS],
    /// Bytes of an element of each tensor.
    pub(crate) sizes: [usize; GRADIENT_TENSORS],
    /// Parameters.
    pub(crate) words: Words,
}

// SAFETY: the pointers are of memory that is borrowed for the call, of which each thread writes its own part.
unsafe impl Sync for GradientsRun<'_> {}

impl GradientsRun<'_> {
    /// Runs the op over the whole walk, in parallel.
    ///
    /// # Safety
    /// Every place of the walk is valid in its tensor, as [`GradientsFn`] asks.
    pub(crate) unsafe fn run(&self) {
        let this = self;
        split(this.walk.numel() as usize, |start, len| {
            runs(this.walk, start, len, |first, step, n| {
                let bytes = |k: usize| first[k] as isize * this.sizes[k] as isize;
                let sources = std::array::from_fn(|k| Source {
                    pointer: this.operands[k].wrapping_offset(bytes(MAX_RESULTS + k)),
                    step: step[MAX_RESULTS + k] as isize,
                    word: this.given[k],
                });
                let results = std::array::from_fn(|k| (this.results[k].wrapping_offset(bytes(k)), step[k] as isize));
                // SAFETY: the caller's contract; parts are disjoint in every result.
                unsafe { (this.op)(&sources, &results, n, this.words) }
            });
        });
    }
}
