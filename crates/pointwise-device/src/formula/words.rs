//! Computes results by whole words, several elements at a time: for ops on truths, and for choices.

use pointwise_core::formula::{Formula, OpData};
use pointwise_core::{DType, Element, OpInfo, Value, Word};

use super::operand::Loaded;
use super::{Tensors, target};
use crate::element::Bool;
use crate::memory;
use crate::packed::{self, Packed, unroll};

/// True if the only result is a bool that depends only on the operands' truths: then the formula of zeros and ones
/// gives all results.
const fn is_logical(info: &OpInfo, [operands, result]: [DType; 2]) -> bool {
    let of_bools = matches!(operands, DType::Bool);
    info.results.len() == 1
        && info.bool_operands() == 0
        && !info.has_place()
        && (info.bool_results() == 1 || matches!(result, DType::Bool))
        && (of_bools || info.properties.truths)
}

/// True if the result is the second or the third operand, bit for bit, chosen by the truth of the first: then the
/// formula of zeros and ones gives all results.
const fn selects(info: &OpInfo) -> bool {
    info.properties.moves
}

/// True if results are computed by words: the op is on truths or a choice, and its operands have elements of one size,
/// several in a word.
pub(super) const fn serve<E: Element, F: Element, O: OpData>() -> bool {
    let info = &O::INFO;
    info.operands.len() <= 3
        && match size_of::<E>() {
            1 => is_logical(info, [E::DTYPE, F::DTYPE]) || selects(info),
            2 => is_logical(info, [E::DTYPE, F::DTYPE]),
            _ => false,
        }
}

/// Returns the first three of some.
#[inline(always)]
fn three<T: Copy, const N: usize>(of: &[T; N], none: T) -> [T; 3] {
    let mut three = [none; 3];
    unroll!(at most 3: k < N => { three[k] = of[k]; });
    three
}

/// Evaluates the formula and stores the results, for an op that words [`serve`].
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
    // The result is bools, or chosen elements of one byte.
    let result = target::<u8>(tensors.results[0], at[0]);
    // SAFETY: the caller's contract.
    unsafe { if is_vector { memory::store(result, results, V) } else { memory::store(result, results, 1) } }
}

/// Returns the truths of a vector's elements, in the highest bit of each.
#[inline(always)]
fn truths<E: Packed>(loaded: Loaded, word: u64) -> [u32; 4] {
    let [low, high] = loaded.spread::<E>();
    let mut truths = [low as u32, (low >> 32) as u32, high as u32, (high >> 32) as u32].map(packed::truths::<E>);
    if loaded.is_word {
        truths = [if E::Compute::from_word(word).truth() { u32::MAX } else { 0 }; 4];
    }
    truths
}

/// Computes bools by a truth table, as many at a time as a word has elements. The compiler folds the formula of
/// constants: a few operations on words remain.
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

/// Returns the truth of a formula's first result.
#[inline(always)]
fn answer<E, F, O, const N: usize, const R: usize>(values: [E::Compute; N], truths: [bool; N], op: O) -> bool
where
    E: Packed,
    F: Packed,
    O: OpData + Formula<E::Compute, N, R, F::Compute>,
{
    let (of_type, of_bool) = op.apply(values, truths, 0.into());
    if const { O::INFO.bool_results() } == 1 { of_bool[0] } else { of_type[0].truth() }
}

/// Chooses sixteen bytes from two operands, by the truth in bit 7 of each byte of `truths`, four in a word.
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
