//! Results worked out by whole words: of ops of truths and choices, several elements at a time.

use pointwise_core::map::Map;
use pointwise_core::{Value, Word};

use super::operand::Loaded;
use super::{Inputs, Place};
use crate::memory;
use crate::packed::{self, Packed, unroll};

/// Whether results are worked out by words: the op is one of truths or a choice, and its operands have elements of one
/// size, of which a word has several.
pub(super) const fn whole_words<M: Map>() -> bool {
    let size = size_of::<M::A>();
    let alike = (M::OPERANDS < 2 || size_of::<M::B>() == size) && (M::OPERANDS < 3 || size_of::<M::C>() == size);
    (M::LOGICAL || M::SELECTS) && size <= 2 && alike
}

/// Formulas and store of an op for which [`whole_words`].
///
/// # Safety
/// `y` is valid for writing at the place, and aligned to what is written there.
#[inline(always)]
pub(super) unsafe fn finish_words<M, const V: usize>(
    inputs: &Inputs<M>,
    [a, b, c]: [Loaded; 3],
    place: Place,
    y: *mut M::R,
    map: M,
) where
    M: Map<A: Packed, B: Packed, C: Packed, R: Packed>,
{
    let first = truths::<M::A>(a, inputs.words[0]);
    let results = if M::LOGICAL {
        logical([first, truths::<M::B>(b, inputs.words[1]), truths::<M::C>(c, inputs.words[2])], map)
    } else {
        selected(first, [b.bits::<M::B>(inputs.words[1]), c.bits::<M::C>(inputs.words[2])], map)
    };
    // SAFETY: the caller's contract.
    unsafe {
        let target = y.offset(place.at[0] as isize).cast();
        if place.is_vector { memory::store(target, results, V) } else { memory::store(target, results, 1) }
    }
}

/// Which of a vector's elements are true, in the highest bit of each.
#[inline(always)]
fn truths<E: Packed>(loaded: Loaded, word: u64) -> [u32; 4] {
    let [low, high] = loaded.spread::<E>();
    let mut truths = [low as u32, (low >> 32) as u32, high as u32, (high >> 32) as u32].map(packed::truths::<E>);
    if loaded.word {
        truths = [if E::Compute::from_word(word).truth() { u32::MAX } else { 0 }; 4];
    }
    truths
}

/// Bools by the truth table of [`Map::LOGICAL`], as many at a time as a word has elements: the compiler folds the
/// formula of constants, and what remains are a few operations on words.
#[inline(always)]
fn logical<M: Map>(truths: [[u32; 4]; 3], map: M) -> [u64; 2] {
    let mut words = [0_u32; 4];
    unroll!(at most 8: row < 1 << M::OPERANDS => {
        let is = |k: usize| row >> k & 1 != 0;
        let result = map.map(one_or_zero(is(0)), one_or_zero(is(1)), one_or_zero(is(2)));
        let mask = if result.truth() { packed::highest::<M::A>() } else { 0 };
        unroll!(at most 4: i < 4 => {
            let fits = |k: usize| if is(k) { truths[k][i] } else if k < M::OPERANDS { !truths[k][i] } else { u32::MAX };
            words[i] |= mask & fits(0) & fits(1) & fits(2);
        });
    });
    packed::bools::<M::A>(words)
}

/// Sixteen bytes of one or the other operand, by the truth in bit 7 of each byte of `truths`, four in a word.
#[inline(always)]
fn selected<M: Map>(truths: [u32; 4], [b, c]: [[u64; 2]; 2], map: M) -> [u64; 2] {
    let takes_second = |truth: bool| map.map(one_or_zero(truth), one_or_zero(true), one_or_zero(false)).truth();
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
