//! Kernels of formulas: `y0[i], .. = op(x0[i], ..)` for any number of operands and results, broadcast.
//!
//! [`flat`]: every operand lies like the results or is one value. [`tiled`]: the innermost dimension of each operand is
//! contiguous or one value; by vectors of one element, anything.
//!
//! A result may be an operand's very memory: a thread loads all its operands before its first store, and no load takes
//! the read-only path. Tensors are otherwise disjoint, the results from each other too.

use pointwise_core::formula::{Formula, OpData};
use pointwise_core::launch::{FORMULA_STREAM_SHIFT, FORMULA_WORD_SHIFT, Steps};
use pointwise_core::{Draw, Logic, Value, Word};

use crate::broadcast::single;
use crate::element::Bool;
use crate::memory::{self, VectorOrOne};
use crate::packed::{self, Packed, unroll};
use crate::random;
use crate::thread;

/// The tensors of a launch.
pub struct Tensors<const N: usize, const R: usize> {
    /// The results' first elements.
    pub results: [*mut u8; R],
    /// The operands' first elements; not read where the operand is a number.
    pub operands: [*const u8; N],
    /// Operands that came with the call, as words of the compute type.
    pub words: [u64; N],
    /// Bit `k`: operand `k` is one element for a whole vector. Shifted by [`FORMULA_WORD_SHIFT`]: it is a number, and by
    /// [`FORMULA_STREAM_SHIFT`]: it passes through the level-2 cache. An operand has one of these bits at most.
    pub mode: u64,
    /// Where the random words of the first element are; read by random ops alone.
    pub draw: Draw,
}

/// Operand `k` as it lies in memory: all loads are under way before the first conversion waits for one.
#[derive(Clone, Copy)]
struct Loaded {
    bits: VectorOrOne,
    is_word: bool,
    is_one: bool,
}

impl Loaded {
    const NONE: Loaded = Loaded { bits: VectorOrOne { vector: [0, 0], one: 0 }, is_word: false, is_one: false };

    /// # Safety
    /// Unless `mode` says that operand `k` is a number, `first` is valid for reading `V` elements, or one where it is to
    /// be read once, and aligned to them.
    #[inline(always)]
    unsafe fn new<E: Packed, const V: usize>(first: *const u8, mode: u64, k: u32) -> Loaded {
        let bit = |shift: u32| (mode >> (shift + k)) as u32 & 1;
        let (nothing, one) = (bit(FORMULA_WORD_SHIFT), bit(0));
        // SAFETY: the caller's contract.
        let bits = unsafe {
            if V > 1 {
                let how = memory::How { nothing, one, passing: bit(FORMULA_STREAM_SHIFT) };
                memory::load_as(first, V * size_of::<E>(), size_of::<E>(), how)
            } else {
                VectorOrOne { vector: [memory::load_unless(first, size_of::<E>(), nothing), 0], one: 0 }
            }
        };
        Loaded { bits, is_word: nothing != 0, is_one: V > 1 && one != 0 }
    }

    /// The elements. A number is a branch that all threads take alike, not a selection for each lane.
    #[inline(always)]
    fn lanes<E: Packed, const V: usize>(self, word: u64) -> [E::Compute; V] {
        if self.is_word {
            [E::Compute::from_word(word); V]
        } else {
            let bits = if self.is_one { crate::broadcast::splat::<E>(self.bits.one) } else { self.bits.vector };
            packed::unpack::<E, V>(bits)
        }
    }
}

/// Offsets of the tensors' elements: the results', then the operands'.
#[derive(Clone, Copy)]
struct Places<const N: usize, const R: usize> {
    results: [i64; R],
    operands: [i64; N],
}

/// The operand's address, `at` elements behind its first.
#[inline(always)]
fn address<E>(first: *const u8, at: i64) -> *const u8 {
    first.wrapping_offset(at as isize * size_of::<E>() as isize)
}

/// One vector: loads, formulas, stores of all elements or of the first.
///
/// # Safety
/// At the places, operands are as [`Loaded::new`] asks, and results valid for writing `V` elements and aligned to them,
/// or one where `is_vector` is false.
#[inline(always)]
unsafe fn vector<E, O, const N: usize, const R: usize, const V: usize>(
    tensors: &Tensors<N, R>,
    mode: u64,
    at: Places<N, R>,
    is_vector: bool,
    op: O,
) where
    E: Packed,
    O: OpData + Formula<E::Compute, N, R>,
{
    let is_bool = const { [O::INFO.bool_operands, O::INFO.bool_results] };
    if const { O::INFO.properties.few_registers } {
        if size_of::<E>() == 4 { thread::at_most_registers::<32>() } else { thread::at_most_registers::<48>() }
    }
    let mut loaded = [Loaded::NONE; N];
    unroll!(at most 12: k < N => {
        // SAFETY: the caller's contract.
        loaded[k] = unsafe {
            if is_bool[0] >> k & 1 == 1 {
                Loaded::new::<Bool, V>(address::<Bool>(tensors.operands[k], at.operands[k]), mode, k as u32)
            } else {
                Loaded::new::<E, V>(address::<E>(tensors.operands[k], at.operands[k]), mode, k as u32)
            }
        };
    });
    let mut values = [[E::Compute::ZERO; N]; V];
    let mut truths = [[false; N]; V];
    unroll!(at most 12: k < N => {
        if is_bool[0] >> k & 1 == 1 {
            let lanes = loaded[k].lanes::<Bool, V>(tensors.words[k]);
            unroll!(i < V => { truths[i][k] = lanes[i].0; });
        } else {
            let lanes = loaded[k].lanes::<E, V>(tensors.words[k]);
            unroll!(i < V => { values[i][k] = lanes[i]; });
        }
    });
    let mut results = [[E::Compute::ZERO; V]; R];
    let mut answers = [[Logic(false); V]; R];
    let mut words = [0; V];
    if const { O::INFO.is_random } {
        // The results of random ops are contiguous: an element's place is its index.
        let first = tensors.draw.first + at.results[0] as u64;
        // Of this evaluation, nothing remains but what it asks of the words.
        words = random::words::<V>(&tensors.draw.blocks, first, |i, bits| _ = op.apply(values[i], truths[i], bits));
    }
    unroll!(i < V => {
        let (of_type, of_bool) = op.apply(values[i], truths[i], words[i].into());
        unroll!(at most 8: k < R => {
            results[k][i] = of_type[k];
            answers[k][i] = Logic(of_bool[k]);
        });
    });
    unroll!(at most 8: k < R => {
        // SAFETY: the caller's contract.
        unsafe {
            if is_bool[1] >> k & 1 == 1 {
                put::<Bool, V>(tensors.results[k], at.results[k], answers[k], is_vector);
            } else {
                put::<E, V>(tensors.results[k], at.results[k], results[k], is_vector);
            }
        }
    });
}

/// Stores all of a vector, or its first element.
///
/// # Safety
/// `first`, `at` elements on, is valid for writing as many, and aligned to them.
#[inline(always)]
unsafe fn put<E: Packed, const V: usize>(first: *mut u8, at: i64, lanes: [E::Compute; V], is_vector: bool) {
    let target = first.wrapping_offset(at as isize * size_of::<E>() as isize).cast::<E>();
    // SAFETY: the caller's contract.
    unsafe {
        if is_vector {
            packed::store::<E, V>(target, lanes);
        } else {
            packed::store::<E, 1>(target, [lanes[0]]);
        }
    }
}

/// The `mode` that reads one element of each of `N` operands that is no number.
#[inline(always)]
const fn one_each<const N: usize>(mode: u64) -> u64 {
    let all = (1 << N) - 1;
    let numbers = mode >> FORMULA_WORD_SHIFT & all;
    numbers << FORMULA_WORD_SHIFT | all & !numbers
}

/// A thread one vector of `V` elements; the `head` elements before the first aligned one and those after the last whole
/// vector are done one by one by the threads that follow.
///
/// # Safety
/// Each operand is a number or one value, as `mode` says, or valid for `n` elements, and equal to or disjoint from each
/// result; results are valid for writing `n` elements, and disjoint from each other. `head <= n`, and from there on all
/// that are not one value are aligned to `V` of their elements.
#[inline(always)]
pub unsafe fn flat<E, O, const N: usize, const R: usize, const V: usize>(
    tensors: &Tensors<N, R>,
    n: u64,
    head: u32,
    op: O,
) where
    E: Packed,
    O: OpData + Formula<E::Compute, N, R>,
{
    let i = thread::index_1d();
    let vectors = ((n - head as u64) / V as u64) as u32;
    let singles = (n - vectors as u64 * V as u64) as u32;
    if i < vectors + singles {
        let (mode, is_vector) = (tensors.mode, i < vectors);
        let first = if is_vector { head as u64 + i as u64 * V as u64 } else { single::<V>(i - vectors, head, vectors) };
        let how = if is_vector { mode } else { one_each::<N>(mode) };
        let mut at = Places { results: [first as i64; R], operands: [0; N] };
        unroll!(at most 12: k < N => { at.operands[k] = if mode >> k & 1 == 1 { 0 } else { first as i64 }; });
        // SAFETY: the vector ends at or before n, the single element is below; the caller's contract.
        unsafe { vector::<E, O, N, R, V>(tensors, how, at, is_vector, op) }
    }
}

/// A thread one vector of `V` elements along the innermost dimension, where `steps` leads from the tensors' first
/// elements: `T` of them, the results, then the operands.
///
/// # Safety
/// For each item, each operand is a number, or valid for `V` elements there, or one where `mode` says that it is one
/// value, and equal to or disjoint from each result there; results are valid for writing `V` elements, and disjoint
/// from each other. All are aligned to what is read and written at once.
#[inline(always)]
pub unsafe fn tiled<E, O, const N: usize, const R: usize, const T: usize, const V: usize, const D: usize>(
    tensors: &Tensors<N, R>,
    steps: &Steps<T, D>,
    items: u32,
    op: O,
) where
    E: Packed,
    O: OpData + Formula<E::Compute, N, R>,
{
    const { assert!(T == N + R) };
    let item = thread::index_1d();
    if item < items {
        let mut offsets = [0_i32; T];
        let mut rest = item;
        unroll!(at most 8: d < D => {
            if d == 0 || (d as u32) < steps.splits {
                let (next, index) = steps.inner[d].size.divide(rest);
                unroll!(at most 20: k < T => { offsets[k] += index as i32 * steps.inner[d].strides[k]; });
                rest = next;
            }
        });
        unroll!(at most 20: k < T => { offsets[k] += rest as i32 * steps.outer[k]; });
        let mut at = Places { results: [0; R], operands: [0; N] };
        unroll!(at most 8: k < R => { at.results[k] = offsets[k] as i64; });
        unroll!(at most 12: k < N => { at.operands[k] = offsets[R + k] as i64; });
        // SAFETY: item < items; the caller's contract.
        unsafe { vector::<E, O, N, R, V>(tensors, tensors.mode, at, true, op) }
    }
}
