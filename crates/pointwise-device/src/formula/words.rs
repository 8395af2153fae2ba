//! Results worked out by whole words: of ops of truths and choices, several elements at a time.

use pointwise_core::formula::{Formula, OpData};
use pointwise_core::{DType, Element, Kind, OpInfo, Value, Word};

use super::operand::Loaded;
use super::{Tensors, target};
use crate::element::Bool;
use crate::memory;
use crate::packed::{self, Packed, unroll};

/// Whether the one result is a bool that depends on nothing but which operands are true: the formula of zeros and ones
/// then says everything.
const fn is_logical(info: &OpInfo, [operands, result]: [DType; 2]) -> bool {
    let of_bools = matches!(operands, DType::Bool);
    info.results.len() == 1
        && info.bool_operands == 0
        && !info.is_random
        && (info.bool_results == 1 || matches!(result, DType::Bool))
        && (of_bools || info.properties.truths)
}

/// Whether the result is the second or the third operand, bit for bit, and which of them is for the truth of the first
/// to say: the formula of zeros and ones then says everything.
const fn selects(info: &OpInfo) -> bool {
    matches!(info.kind, Kind::Select)
}

/// Whether results are worked out by words: the op is one of truths or a choice, and its operands have elements of one
/// size, of which a word has several.
pub(super) const fn serve<E: Element, F: Element, O: OpData>() -> bool {
    let info = &O::INFO;
    info.operands.len() <= 3
        && match size_of::<E>() {
            1 => is_logical(info, [E::DTYPE, F::DTYPE]) || selects(info),
            2 => is_logical(info, [E::DTYPE, F::DTYPE]),
            _ => false,
        }
}

/// The first three of some.
#[inline(always)]
fn three<T: Copy, const N: usize>(of: &[T; N], none: T) -> [T; 3] {
    let mut three = [none; 3];
    unroll!(at most 3: k < N => { three[k] = of[k]; });
    three
}

/// Formulas and store of an op for which words [`serve`].
///
/// # Safety
/// The result is valid for writing at the place, and aligned to what is written there.
#[inline(always)]
pub(super) unsafe fn finish<E, F, O, const N: usize, const R: usize, const V: usize>(
    tensors: &Tensors<N, R>,
    loaded: &[Loaded; N],
    at: [i64; R],
    is_vector: bool,
    op: O,
) where
    E: Packed,
    F: Packed,
    O: OpData + Formula<E::Compute, N, R, F::Compute>,
{
    let ([a, b, c], [wa, wb, wc]) = (three(loaded, Loaded::NONE), three(&tensors.words, 0));
    let results = if const { selects(&O::INFO) } {
        selected::<E, F, O, N, R>(truths::<Bool>(a, wa), [b.bits::<E>(wb), c.bits::<E>(wc)], op)
    } else {
        logical::<E, F, O, N, R>([truths::<E>(a, wa), truths::<E>(b, wb), truths::<E>(c, wc)], op)
    };
    // Of bools, or of what is chosen among elements of one byte.
    let result = target::<u8>(tensors.results[0], at[0]);
    // SAFETY: the caller's contract.
    unsafe { if is_vector { memory::store(result, results, V) } else { memory::store(result, results, 1) } }
}

/// Which of a vector's elements are true, in the highest bit of each.
#[inline(always)]
fn truths<E: Packed>(loaded: Loaded, word: u64) -> [u32; 4] {
    let [low, high] = loaded.spread::<E>();
    let mut truths = [low as u32, (low >> 32) as u32, high as u32, (high >> 32) as u32].map(packed::truths::<E>);
    if loaded.is_word {
        truths = [if E::Compute::from_word(word).truth() { u32::MAX } else { 0 }; 4];
    }
    truths
}

/// Bools by a truth table, as many at a time as a word has elements: the compiler folds the formula of constants, and
/// what remains are a few operations on words.
#[inline(always)]
fn logical<E, F, O, const N: usize, const R: usize>(truths: [[u32; 4]; 3], op: O) -> [u64; 2]
where
    E: Packed,
    F: Packed,
    O: OpData + Formula<E::Compute, N, R, F::Compute>,
{
    let mut words = [0_u32; 4];
    unroll!(at most 8: row < 1 << N => {
        let is = |k: usize| row >> k & 1 != 0;
        let mut values = [E::Compute::ZERO; N];
        unroll!(at most 4: k < N => { values[k] = one_or_zero(is(k)); });
        let mask = if answer::<E, F, O, N, R>(values, [false; N], op) { packed::highest::<E>() } else { 0 };
        unroll!(at most 4: i < 4 => {
            let fits = |k: usize| if is(k) { truths[k][i] } else if k < N { !truths[k][i] } else { u32::MAX };
            words[i] |= mask & fits(0) & fits(1) & fits(2);
        });
    });
    packed::bools::<E>(words)
}

/// The truth of a formula's first result.
#[inline(always)]
fn answer<E, F, O, const N: usize, const R: usize>(values: [E::Compute; N], truths: [bool; N], op: O) -> bool
where
    E: Packed,
    F: Packed,
    O: OpData + Formula<E::Compute, N, R, F::Compute>,
{
    let (of_type, of_bool) = op.apply(values, truths, 0.into());
    if const { O::INFO.bool_results } == 1 { of_bool[0] } else { of_type[0].truth() }
}

/// Sixteen bytes of one or the other operand, by the truth in bit 7 of each byte of `truths`, four in a word.
#[inline(always)]
fn selected<E, F, O, const N: usize, const R: usize>(truths: [u32; 4], [b, c]: [[u64; 2]; 2], op: O) -> [u64; 2]
where
    E: Packed,
    F: Packed,
    O: OpData + Formula<E::Compute, N, R, F::Compute>,
{
    let takes_second = |truth: bool| {
        let (mut values, mut truths) = ([E::Compute::ZERO; N], [false; N]);
        unroll!(at most 4: k < N => {
            values[k] = one_or_zero(k == 1);
            truths[k] = k == 0 && truth;
        });
        answer::<E, F, O, N, R>(values, truths, op)
    };
    let (if_true, if_false) = (takes_second(true), takes_second(false));
    let mut out = [0; 2];
    unroll!(at most 4: i < 4 => {
        let word = |pair: [u64; 2]| (pair[i / 2] >> (32 * (i % 2))) as u32;
        let truth = memory::choose::<0xBA98>(truths[i], 0);
        let mask = if if_true { truth } else { 0 } | if if_false { !truth } else { 0 };
        out[i / 2] |= ((word(b) & mask | word(c) & !mask) as u64) << (32 * (i % 2));
    });
    out
}

#[inline(always)]
fn one_or_zero<T: Value>(one: bool) -> T {
    if one { T::ONE } else { T::ZERO }
}
