//! `y0[i], .. = op(x0[i], ..)` for any number of operands and results: along a run of elements, and over all runs of a
//! walk.

use std::mem::MaybeUninit;

use pointwise_core::element::Bool;
use pointwise_core::formula::{Formula, OpData, ParamWords};
use pointwise_core::{Draw, Element, Logic, Philox, RandomWord, Value};

use super::draw::drawn;
use super::lanes::store;
#[cfg(target_arch = "x86_64")]
use super::level;
use super::level::BASELINE;
use super::operand::{BLOCK, Buffer, Source, buffer, fill};
use super::parallel::split;
use super::runs::runs;
use crate::kernel::Walk;

/// A result along a run: its first element, and the step to the next, in elements.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// The first element.
    pub pointer: *mut u8,
    /// From one element to the next, in elements.
    pub step: isize,
}

/// `(operands, results, n, parameters, what the first element draws from)`: a formula in one element type, along a run.
///
/// # Safety
/// There are as many operands and results as the formula has, of its types: aligned, and valid for `n` elements at their
/// steps. Element `i` of an operand shares memory with no element of a result but `i`; results share none with each
/// other.
pub type FormulaFn = unsafe fn(&[Source], &[Target], usize, &ParamWords, &Draw);

/// The formula `O` on elements `E`.
///
/// # Safety
/// As [`FormulaFn`].
pub unsafe fn formula<E, O, const N: usize, const R: usize>(
    operands: &[Source],
    results: &[Target],
    n: usize,
    words: &ParamWords,
    draw: &Draw,
) where
    E: Element,
    O: OpData + Formula<E::Compute, N, R>,
{
    #[cfg(target_arch = "x86_64")]
    if level::level() >= level::AVX2 {
        // SAFETY: the processor has the level; the caller's contract.
        return unsafe { run_avx2::<E, O, N, R>(operands, results, n, words, draw) };
    }
    // SAFETY: the caller's contract.
    unsafe { blocks::<E, O, N, R, BASELINE>(operands, results, n, words, draw) }
}

/// # Safety
/// As [`FormulaFn`]; the processor has the features.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,f16c")]
unsafe fn run_avx2<E, O, const N: usize, const R: usize>(
    operands: &[Source],
    results: &[Target],
    n: usize,
    words: &ParamWords,
    draw: &Draw,
) where
    E: Element,
    O: OpData + Formula<E::Compute, N, R>,
{
    // SAFETY: the caller's contract.
    unsafe { blocks::<E, O, N, R, { level::AVX2 }>(operands, results, n, words, draw) }
}

/// Whether operand or result `k` is a bool, of the bits of [`pointwise_core::OpInfo`].
const fn is_bool(bits: u16, k: usize) -> bool {
    bits >> k & 1 == 1
}

/// # Safety
/// As [`FormulaFn`]; the processor has `LEVEL`.
#[inline(always)]
unsafe fn blocks<E, O, const N: usize, const R: usize, const LEVEL: u8>(
    operands: &[Source],
    results: &[Target],
    n: usize,
    words: &ParamWords,
    draw: &Draw,
) where
    E: Element,
    O: OpData + Formula<E::Compute, N, R>,
{
    let op = O::from_words(words);
    let (bool_operands, bool_results) = const { (O::INFO.bool_operands, O::INFO.bool_results) };
    let (Some(operands), Some(results)) = (operands.first_chunk::<N>(), results.first_chunk::<R>()) else { return };
    let mut values: [Buffer<E>; N] = [const { buffer::<E>() }; N];
    let mut truths: [Buffer<Bool>; N] = [const { buffer::<Bool>() }; N];
    let mut of_type: [Buffer<E>; R] = [const { buffer::<E>() }; R];
    let mut of_bool: [Buffer<Bool>; R] = [const { buffer::<Bool>() }; R];
    let block = BLOCK.min(n);
    for k in 0..N {
        // What an operand is not is never written again.
        values[k][..block].fill(MaybeUninit::new(E::Compute::ZERO));
        truths[k][..block].fill(MaybeUninit::new(Logic(false)));
        // SAFETY: the caller's contract.
        unsafe {
            if is_bool(bool_operands, k) {
                operands[k].spread::<Bool>(&mut truths[k][..block]);
            } else {
                operands[k].spread::<E>(&mut values[k][..block]);
            }
        }
    }
    let mut start = 0;
    while start < n {
        let len = BLOCK.min(n - start);
        // Loads, maths and stores are loops of their own, as in `map`.
        // SAFETY: start + len <= n; the caller's contract. Every value read was written before.
        unsafe {
            for k in 0..N {
                if is_bool(bool_operands, k) {
                    fill::<Bool, LEVEL>(&operands[k], start, &mut truths[k][..len]);
                } else {
                    fill::<E, LEVEL>(&operands[k], start, &mut values[k][..len]);
                }
            }
            let at = |i: usize| -> ([E::Compute; N], [bool; N]) {
                (
                    std::array::from_fn(|k| values[k][i].assume_init()),
                    std::array::from_fn(|k| truths[k][i].assume_init().0),
                )
            };
            if const { O::INFO.is_random } {
                let draw = Draw { first: draw.first + start as u64, ..*draw };
                // Of the first evaluation, nothing remains but what it asks of the words.
                let bits = drawn(&draw, len, |i, bits| {
                    let (values, truths) = at(i);
                    _ = op.apply(values, truths, bits);
                });
                for (i, &bits) in bits[..len].iter().enumerate() {
                    let (values, truths) = at(i);
                    let (y, answers) = op.apply(values, truths, bits.into());
                    (0..R).for_each(|k| _ = (of_type[k][i].write(y[k]), of_bool[k][i].write(Logic(answers[k]))));
                }
            } else {
                for i in 0..len {
                    let (values, truths) = at(i);
                    let (y, answers) = op.apply(values, truths, RandomWord::from(0));
                    (0..R).for_each(|k| _ = (of_type[k][i].write(y[k]), of_bool[k][i].write(Logic(answers[k]))));
                }
            }
            for k in 0..R {
                if is_bool(bool_results, k) {
                    put::<Bool, LEVEL>(&of_bool[k][..len], results[k], start);
                } else {
                    put::<E, LEVEL>(&of_type[k][..len], results[k], start);
                }
            }
        }
        start += len;
    }
}

/// Rounds and stores the elements of a result from `start` on.
///
/// # Safety
/// The target is valid for them, and all values are initialised; the processor has `LEVEL`.
#[inline(always)]
unsafe fn put<E: Element, const LEVEL: u8>(values: &[MaybeUninit<E::Compute>], target: Target, start: usize) {
    let Target { pointer, step } = target;
    // SAFETY: the caller's contract.
    unsafe {
        let y = pointer.cast::<E>().offset(start as isize * step);
        if step == 1 {
            return store::<E, LEVEL>(values, y);
        }
        for (i, value) in values.iter().enumerate() {
            y.offset(i as isize * step).write(E::narrow(value.assume_init()));
        }
    }
}

/// A call on the CPU.
pub(crate) struct FormulaRun<'a, const T: usize> {
    /// The formula.
    pub(crate) op: FormulaFn,
    /// The loop: over the results, then the operands, then nothing.
    pub(crate) walk: &'a Walk<T>,
    /// First elements of the operands.
    pub(crate) operands: &'a [*const u8],
    /// Operands that came with the call.
    pub(crate) given: &'a [Option<u64>],
    /// First elements of the results.
    pub(crate) results: &'a [*mut u8],
    /// Bytes of an element of each tensor.
    pub(crate) sizes: [usize; T],
    /// Parameters.
    pub(crate) words: &'a ParamWords,
    /// Where a random op draws from; its results are contiguous, so that the walk's order is that of the elements.
    pub(crate) rng: Philox,
}

// SAFETY: the pointers are of memory that is borrowed for the call, of which each thread writes its own part.
unsafe impl<const T: usize> Sync for FormulaRun<'_, T> {}

impl<const T: usize> FormulaRun<'_, T> {
    /// Runs the formula over the whole walk, in parallel.
    ///
    /// # Safety
    /// Every place of the walk is valid in its tensor, as [`FormulaFn`] asks.
    pub(crate) unsafe fn run(&self) {
        let this = self;
        let count = this.results.len();
        split(this.walk.numel() as usize, |start, len| {
            let mut draw = Draw { blocks: this.rng.blocks(), first: start as u64 };
            runs(this.walk, start, len, |first, step, n| {
                let bytes = |k: usize| first[k] as isize * this.sizes[k] as isize;
                let none = Source { pointer: std::ptr::null(), step: 0, word: None };
                let (mut sources, mut targets) = ([none; T], [Target { pointer: std::ptr::null_mut(), step: 0 }; T]);
                for (k, (operand, word)) in this.operands.iter().zip(this.given).enumerate() {
                    let pointer = operand.wrapping_offset(bytes(count + k));
                    sources[k] = Source { pointer, step: step[count + k] as isize, word: *word };
                }
                for (k, result) in this.results.iter().enumerate() {
                    targets[k] = Target { pointer: result.wrapping_offset(bytes(k)), step: step[k] as isize };
                }
                let (sources, targets) = (&sources[..this.operands.len()], &targets[..count]);
                // SAFETY: the caller's contract; parts are disjoint in every result.
                unsafe { (this.op)(sources, targets, n, this.words, &draw) };
                draw.first += n as u64;
            });
        });
    }
}
