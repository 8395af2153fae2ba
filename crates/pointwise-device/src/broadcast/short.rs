//! The short path of a vector: all lanes without a branch, then one question whether that served all, and one copy of the
//! long path for the elements that it did not.

use pointwise_core::launch::ONCE;
use pointwise_core::map::{Map, absent};
use pointwise_core::{Element, Value, Word};

use super::operand::{Loaded, fetch, lanes};
use super::{Inputs, Place, alike};
use crate::memory;
use crate::packed::{self, Packed, unroll};
use crate::thread;

/// What the short path left open.
#[derive(Clone, Copy)]
pub(super) struct Open {
    /// Where results are bounded: zero in the bits of each element whose result is known.
    undecided: [u64; 2],
    /// Otherwise none is.
    holds: bool,
    /// Some first operand has a sign, which is yet to be told. Asked of bounded results; of others `holds` says it.
    signed: bool,
}

impl Open {
    #[inline(always)]
    pub(super) fn none(self) -> bool {
        self.holds & !self.signed & (self.undecided[0] | self.undecided[1] == 0)
    }

    /// A bit for each element that is open; where signs are yet to be told, for those that are undecided.
    #[inline(always)]
    fn elements<M: Map>(self) -> u32 {
        let mut open = 0;
        unroll!(at most 8: i < 8 => { open |= (has_bits::<M::R>(self.undecided, i) as u32) << i; });
        if M::MAGNITUDES || self.holds { open } else { u32::MAX }
    }
}

/// Whether any bit of a vector's element is set.
#[inline(always)]
const fn has_bits<E>(bits: [u64; 2], i: usize) -> bool {
    let size = size_of::<E>();
    let per_word = 8 / size;
    i < 2 * per_word && bits[i / per_word] >> (8 * size * (i % per_word)) & (u64::MAX >> (64 - 8 * size)) != 0
}

/// Results by the short path, in bits that are worked out here: behind the branch that follows the lanes of the operands
/// would have to be kept.
#[inline(always)]
pub(super) fn short_results<M, const V: usize>(
    a: [<M::A as Element>::Compute; V],
    b: [<M::B as Element>::Compute; V],
    map: M,
) -> ([u64; 2], Open)
where
    M: Map<R: Packed>,
{
    let mut results = [<M::R as Element>::Compute::ZERO; V];
    let mut others = results;
    let mut holds = true;
    let mut signs = 0;
    unroll!(i < V => {
        let short = map.short(a[i], b[i]);
        [results[i], others[i]] = short.bounds;
        holds &= short.holds;
        signs |= a[i].to_word() as i32;
    });
    let bits = packed::pack::<M::R, V>(results);
    let mut undecided = [0; 2];
    if M::MAGNITUDES {
        // The assembler would take 38 to 40.
        thread::at_most_registers::<32>();
    }
    if M::BOUNDED {
        let others = packed::pack::<M::R, V>(others);
        undecided = [bits[0] ^ others[0], bits[1] ^ others[1]];
    }
    (bits.map(thread::worked_out_here), Open { undecided, holds, signed: M::BOUNDED && signs < 0 })
}

/// The short results of magnitudes made those of the operands, and the elements that are `open` still, a bit each: those
/// that were, and others. Word by word, with operands that are loaded again: all lanes at once would take more registers
/// than there are.
///
/// # Safety
/// As [`work`](super::work).
#[inline(always)]
unsafe fn with_signs<M, const V: usize>(
    inputs: &Inputs<M>,
    at: [i64; 4],
    map: M,
    bits: [u64; 2],
    mut open: u32,
) -> ([u64; 2], u32)
where
    M: Map<A: Packed, B: Packed, C: Packed, R: Packed>,
{
    const { assert!(!M::MAGNITUDES || V * size_of::<M::R>() == 16) }
    // SAFETY: the caller's contract.
    let [a, b, _] = unsafe { fetch::<M, V>(inputs, inputs.mode, at) };
    let (mut a, mut b) = (a.one_for_each::<M::A>(), b.one_for_each::<M::B>());
    let mut words = [bits[0] as u32, (bits[0] >> 32) as u32, bits[1] as u32, (bits[1] >> 32) as u32];
    // One bit more, which is in the way of none, says when all words are done.
    open |= 1 << (2 * V);
    if size_of::<M::R>() == 2 {
        while open >> V != 1 {
            thread::no_unrolling();
            with_signs_of_word::<M, 2>(inputs, [&mut a, &mut b], map, &mut words, &mut open);
        }
    } else {
        unroll!(at most 4: _i < V => {
            with_signs_of_word::<M, 1>(inputs, [&mut a, &mut b], map, &mut words, &mut open);
        });
    }
    ([words[0] as u64 | (words[1] as u64) << 32, words[2] as u64 | (words[3] as u64) << 32], open)
}

/// The first word done, which becomes the last, as do the `N` bits of `open` that belong to it.
#[inline(always)]
fn with_signs_of_word<M, const N: usize>(
    inputs: &Inputs<M>,
    [a, b]: [&mut Loaded; 2],
    map: M,
    words: &mut [u32; 4],
    open: &mut u32,
) where
    M: Map<A: Packed, B: Packed, C: Packed, R: Packed>,
{
    let signed = signed_word::<M, N>(inputs, *a, *b, map);
    let word = words[0] & !signed.zeros | signed.of_zeros & signed.zeros | signed.signs;
    *words = [words[1], words[2], words[3], word];
    (*a, *b) = (a.behind_a_word(), b.behind_a_word());
    // Of zeros, nothing is left to be decided.
    let in_this = *open & !signed.are_zero & ((1 << N) - 1) | signed.unknown;
    *open = *open >> N | in_this << (3 * N);
}

/// [`Signed`](pointwise_core::Signed) of a word of results.
struct SignedWord {
    /// To be set in any result.
    signs: u32,
    /// Set where results are those of zeros.
    zeros: u32,
    /// These.
    of_zeros: u32,
    /// A bit for each element.
    are_zero: u32,
    /// Likewise: nothing is known.
    unknown: u32,
}

/// Of the first `N` lanes of two operands.
#[inline(always)]
fn signed_word<M, const N: usize>(inputs: &Inputs<M>, a: Loaded, b: Loaded, map: M) -> SignedWord
where
    M: Map<A: Packed, B: Packed, C: Packed, R: Packed>,
{
    let (a, b) = (lanes::<M::A, N>(a, inputs.words[0]), lanes::<M::B, N>(b, inputs.words[1]));
    let mut word = SignedWord { signs: 0, zeros: 0, of_zeros: 0, are_zero: 0, unknown: 0 };
    let mut of_zeros = [<M::R as Element>::Compute::ZERO; N];
    let bits = 32 / N as u32;
    unroll!(at most 2: i < N => {
        let signed = map.signed(a[i], b[i]);
        of_zeros[i] = signed.of_zero;
        word.signs |= signed.sign >> (32 - bits) << (bits * i as u32);
        word.zeros |= if signed.is_zero { u32::MAX >> (32 - bits) << (bits * i as u32) } else { 0 };
        word.are_zero |= (signed.is_zero as u32) << i;
        word.unknown |= (!signed.holds as u32) << i;
    });
    word.of_zeros = packed::pack::<M::R, N>(of_zeros)[0] as u32;
    word
}

/// The place of the `i`-th element behind another.
#[inline(always)]
fn place_behind<M: Map, const IN_ROWS: bool>(inputs: &Inputs<M>, place: Place, i: u32) -> [i64; 4] {
    if IN_ROWS {
        let behind = |k: usize| place.at[k + 1] + if place.mode & (ONCE << k) != 0 { 0 } else { i as i64 };
        [place.at[0] + i as i64, behind(0), behind(1), 0]
    } else {
        // Not before the loop, through which the offsets would have to be kept.
        alike(thread::worked_out_here(place.at[0] as u64) + i as u64, inputs.mode)
    }
}

/// What is at a place: `bits`, but for the elements that are open, which are worked out one by one by the only copy of the
/// long path. These are loaded again: to keep all until here would take more registers than there are.
///
/// # Safety
/// As [`work`](super::work).
#[inline(always)]
pub(super) unsafe fn one_by_one<M, const V: usize, const IN_ROWS: bool>(
    inputs: &Inputs<M>,
    place: Place,
    y: *mut M::R,
    map: M,
    mut bits: [u64; 2],
    open: Open,
) where
    M: Map<A: Packed, B: Packed, C: Packed, R: Packed>,
{
    let len = if place.is_vector { V } else { 1 };
    let mut left = open.elements::<M>();
    if M::MAGNITUDES && (open.signed | !open.holds) {
        if place.is_vector {
            // SAFETY: the caller's contract.
            (bits, left) = unsafe { with_signs::<M, V>(inputs, place.at, map, bits, left) };
        } else {
            left = 1;
        }
    }
    left &= (1 << len) - 1;
    while left != 0 {
        thread::no_unrolling();
        let i = left.trailing_zeros();
        left &= left - 1;
        let at = place_behind::<M, IN_ROWS>(inputs, place, i);
        // SAFETY: the caller's contract. What is stored is no operand of another element.
        unsafe {
            let [a, b, _] = fetch::<M, 1>(inputs, place.mode, at);
            let [a] = lanes::<M::A, 1>(a, inputs.words[0]);
            let [b] = lanes::<M::B, 1>(b, inputs.words[1]);
            let result = [map.map(a, b, absent::<M::C>())];
            if M::MAGNITUDES {
                bits = with_element::<M::R>(bits, i, packed::pack::<M::R, 1>(result)[0] as u32);
            } else {
                packed::store::<M::R, 1>(y.offset(at[0] as isize), result);
            }
        }
    }
    if M::MAGNITUDES {
        // SAFETY: the caller's contract.
        unsafe { memory::store(y.offset(place.at[0] as isize).cast(), bits, len * size_of::<M::R>()) }
    }
}

/// Elements of 16 or 32 bits, of which the `i`-th is replaced.
#[inline(always)]
fn with_element<E>(bits: [u64; 2], i: u32, element: u32) -> [u64; 2] {
    let is_half = size_of::<E>() == 2;
    let (word_of_it, shift) = if is_half { (i / 2, 16 * (i % 2)) } else { (i, 0) };
    let others = if is_half { !(0xFFFF << shift) } else { 0 };
    let word = |k: u32| {
        let word = (bits[k as usize / 2] >> (32 * (k % 2))) as u32;
        let replaced = if word_of_it == k { word & others | element << shift } else { word };
        (replaced as u64) << (32 * (k % 2))
    };
    [word(0) | word(1), word(2) | word(3)]
}
