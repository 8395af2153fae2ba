//! Loads operands, and turns them into lanes.

use pointwise_core::formula::OpData;
use pointwise_core::launch::{ACROSS, NUMBER, ONCE, PASSING, Steps, how};
use pointwise_core::{Element, Kind, Word};

use super::Tensors;
use super::places::Places;
use crate::element::Bool;
use crate::memory::{self, VectorOrOne};
use crate::packed::{self, Packed, unroll};
use crate::stored;

/// A vector of one operand as it is in memory, not yet converted: all loads are under way before the first conversion
/// waits for one.
#[derive(Clone, Copy)]
pub(crate) struct Loaded {
    bits: VectorOrOne,
    /// The operand came with the call.
    pub(crate) is_word: bool,
    /// One element for all lanes.
    is_one: bool,
}

impl Loaded {
    /// The bits of an operand that does not exist.
    pub(crate) const NONE: Loaded =
        Loaded { bits: VectorOrOne { vector: [0, 0], one: 0 }, is_word: false, is_one: false };

    /// Returns a whole vector.
    #[inline(always)]
    pub(super) const fn vector(vector: [u64; 2]) -> Self {
        Loaded { bits: VectorOrOne { vector, one: 0 }, ..Loaded::NONE }
    }
}

/// # Safety
/// Unless `mode` says that operand `k` came with the call, `first` is valid for reading, and aligned to, `V` elements,
/// or one if it is read once.
#[inline(always)]
pub(crate) unsafe fn load<E: Packed, const V: usize>(first: *const u8, mode: u32, k: u32) -> Loaded {
    let how = how(mode, k);
    // SAFETY: the caller's contract.
    let bits = unsafe {
        if V > 1 {
            memory::load_as(first, V * size_of::<E>(), size_of::<E>(), how)
        } else {
            VectorOrOne { vector: [memory::load_unless(first, size_of::<E>(), how), 0], one: 0 }
        }
    };
    Loaded { bits, is_word: how == NUMBER, is_one: V > 1 && how == ONCE }
}

/// Returns [`ONCE`] for each of `N` operands.
const fn all<const N: usize>() -> u32 {
    (1 << (2 * N)) / 3 * ONCE
}

/// Returns the `mode` that reads none of `N` operands.
#[inline(always)]
pub(super) const fn numbers_alone<const N: usize>() -> u32 {
    all::<N>() * NUMBER
}

/// Returns the `mode` that reads one element of each of `N` operands that is no number.
#[inline(always)]
pub(super) const fn one_each<const N: usize>(mode: u32) -> u32 {
    let numbers = mode >> 1 & !mode & all::<N>();
    numbers * NUMBER | all::<N>() & !numbers
}

/// True if a kernel checks for operands that came with the call, as numbers. A single operand and the halves of a gated
/// op are never numbers. Yet gated ops in f32 check: it costs them nothing, and without it gelu's formula is scheduled
/// differently and loses 6 % (H200).
pub(crate) const fn takes_numbers<E, O: OpData>() -> bool {
    match O::INFO.kind {
        Kind::Gated => size_of::<E>() == 4,
        _ => O::INFO.operands.len() > 1,
    }
}

/// Returns the operand's address, `at` elements behind its first.
#[inline(always)]
pub(super) fn address<E>(first: *const u8, at: i64) -> *const u8 {
    first.wrapping_offset(at as isize * size_of::<E>() as isize)
}

/// Loads a vector of each operand.
///
/// # Safety
/// Each operand meets the conditions of [`load`] at its place.
#[inline(always)]
pub(super) unsafe fn fetch<E, O, const N: usize, const R: usize, const V: usize>(
    tensors: &Tensors<N, R>,
    mode: u32,
    at: &Places<N, R>,
) -> [Loaded; N]
where
    E: Packed,
    O: OpData,
{
    // SAFETY: the caller's contract.
    unsafe {
        if const { O::INFO.has_stored() } {
            stored::fetch::<E, O, N, R, V>(tensors, mode, at)
        } else {
            fetch_alike::<E, O, N, R, V>(tensors, mode, at)
        }
    }
}

/// [`fetch`] of operands that are of the op's type or bools.
///
/// # Safety
/// The conditions of [`fetch`].
#[inline(always)]
unsafe fn fetch_alike<E, O, const N: usize, const R: usize, const V: usize>(
    tensors: &Tensors<N, R>,
    mode: u32,
    at: &Places<N, R>,
) -> [Loaded; N]
where
    E: Packed,
    O: OpData,
{
    let mut loaded = [Loaded::NONE; N];
    unroll!(at most 12: k < N => {
        // SAFETY: the caller's contract.
        loaded[k] = unsafe {
            if const { O::INFO.bool_operands() } >> k & 1 == 1 {
                load::<Bool, V>(address::<Bool>(tensors.operands[k], at.operands[k]), mode, k as u32)
            } else {
                load::<E, V>(address::<E>(tensors.operands[k], at.operands[k]), mode, k as u32)
            }
        };
        loaded[k].is_word &= const { takes_numbers::<E, O>() };
    });
    loaded
}

/// For item `first` of a walk with [`ACROSS`](pointwise_core::launch::ACROSS): returns the operands' places, the items
/// that are left of its row, and the distances from this row's element to the next row's.
#[inline(always)]
pub(super) fn across<const N: usize, const R: usize, const T: usize, const D: usize>(
    steps: &Steps<T, D>,
    mode: u32,
    first: u32,
) -> (Places<N, R>, u32, [i32; N]) {
    let (row, along) = steps.inner[0].size.divide(first);
    let left = steps.inner[0].size.size - along;
    // Rows of one matrix, the common case, or of several matrices.
    let (matrix, row, is_last) = if steps.splits == 1 {
        (row, 0, true)
    } else {
        let (matrix, row) = steps.inner[1].size.divide(row);
        (matrix, row, row + 1 == steps.inner[1].size.size)
    };
    let mut at = Places::alike(first as u64, 0);
    let mut farther = [0; N];
    unroll!(at most 4: k < N => {
        if how(mode, k as u32) == ONCE {
            let (apart, stride) = (steps.outer[R + k], steps.inner[1].strides[R + k]);
            at.operands[k] = (matrix as i32 * apart + row as i32 * stride) as i64;
            farther[k] = if is_last { apart - row as i32 * stride } else { stride };
        }
    });
    (at, left, farther)
}

/// True if an operand of `E` may pass through the level-2 cache: beside results of other sizes.
pub(super) const fn may_pass<E, F, O: OpData>() -> bool {
    size_of::<F>() != size_of::<E>() || O::INFO.bool_results() != 0
}

/// The mode of a walk with [`ACROSS`] and two operands: the first is a vector, the second one value along a row.
pub(super) const COLUMN: u32 = ACROSS | ONCE << 2;

/// True if `mode` is [`COLUMN`]. The first operand may pass through the level-2 cache.
#[inline(always)]
pub(super) const fn is_column(mode: u32) -> bool {
    mode == COLUMN || mode == COLUMN | PASSING
}

/// [`fetch`] for a `mode` of [`COLUMN`]: threads check nothing about an operand.
///
/// # Safety
/// The conditions of [`fetch`].
#[inline(always)]
pub(super) unsafe fn with_column<E, F, O, const N: usize, const R: usize, const V: usize>(
    tensors: &Tensors<N, R>,
    at: &Places<N, R>,
) -> [Loaded; N]
where
    E: Packed,
    O: OpData,
{
    let place = |k: usize| address::<E>(tensors.operands[k], at.operands[k]);
    let mut loaded = [Loaded::NONE; N];
    // SAFETY: the caller's contract.
    unsafe {
        loaded[0] = if const { may_pass::<E, F, O>() && V > 1 } {
            let vector = memory::load_as(place(0), V * size_of::<E>(), size_of::<E>(), tensors.mode & PASSING).vector;
            Loaded::vector(vector)
        } else {
            Loaded::vector(memory::load(place(0), V * size_of::<E>()))
        };
        let one = memory::load(place(1), size_of::<E>())[0];
        loaded[1] = Loaded { bits: VectorOrOne { vector: [0, 0], one }, is_one: true, ..Loaded::NONE };
    }
    loaded
}

/// Puts the next row's element into the operands that are [`ONCE`], from the end of the row on.
///
/// # Safety
/// The first `left` of `V` items are of the row whose elements are loaded. If there are other items, their elements lie
/// `farther` on, and are valid for reading.
#[inline(always)]
pub(super) unsafe fn with_next<E, O, const N: usize, const R: usize, const V: usize>(
    tensors: &Tensors<N, R>,
    mode: u32,
    at: &Places<N, R>,
    left: u32,
    farther: [i32; N],
    loaded: &mut [Loaded; N],
) where
    E: Packed,
    O: OpData,
{
    if left >= V as u32 {
        return;
    }
    unroll!(at most 4: k < N => {
        if how(mode, k as u32) == ONCE {
            let next = at.operands[k] + farther[k] as i64;
            // SAFETY: the caller's contract.
            loaded[k] = unsafe {
                if const { O::INFO.bool_operands() } >> k & 1 == 1 {
                    let next = memory::load(address::<Bool>(tensors.operands[k], next), 1);
                    loaded[k].then::<Bool>(next[0], left)
                } else {
                    let next = memory::load(address::<E>(tensors.operands[k], next), size_of::<E>());
                    loaded[k].then::<E>(next[0], left)
                }
            };
        }
    });
}

/// Returns a formula's arguments from the lanes of each operand: `values[i][k]`, or `truths[i][k]` for a bool.
#[inline(always)]
pub(super) fn arguments<E: Packed, O: OpData, const N: usize, const V: usize>(
    loaded: &[Loaded; N],
    words: &[u64; N],
) -> ([[E::Compute; N]; V], [[bool; N]; V]) {
    if const { O::INFO.has_stored() } {
        stored::arguments::<E, O, N, V>(loaded, words)
    } else {
        arguments_alike::<E, O, N, V>(loaded, words)
    }
}

/// [`arguments`] of operands that are of the op's type or bools.
#[inline(always)]
fn arguments_alike<E: Packed, O: OpData, const N: usize, const V: usize>(
    loaded: &[Loaded; N],
    words: &[u64; N],
) -> ([[E::Compute; N]; V], [[bool; N]; V]) {
    let mut values = [[<E::Compute as pointwise_core::Value>::ZERO; N]; V];
    let mut truths = [[false; N]; V];
    unroll!(at most 12: k < N => {
        if const { O::INFO.bool_operands() } >> k & 1 == 1 {
            let lanes = lanes::<Bool, V>(loaded[k], words[k]);
            unroll!(i < V => { truths[i][k] = lanes[i].0; });
        } else {
            let lanes = lanes::<E, V>(loaded[k], words[k]);
            unroll!(i < V => { values[i][k] = lanes[i]; });
        }
    });
    (values, truths)
}

/// Puts the lowest element into every lane of a vector.
#[inline(always)]
pub(crate) fn splat<E: Element>(element: u64) -> [u64; 2] {
    let word = match size_of::<E>() {
        1 => memory::repeat::<0x0000>(element as u32),
        2 => memory::repeat::<0x1010>(element as u32),
        4 => memory::repeat::<0x3210>(element as u32),
        _ => element,
    };
    [word, word]
}

impl Loaded {
    /// Returns the vector's bits, for an operand that did not come with the call.
    #[inline(always)]
    pub(crate) fn spread<E: Element>(self) -> [u64; 2] {
        if self.is_one { splat::<E>(self.bits.one) } else { self.bits.vector }
    }

    /// Returns the one element in the first `left` lanes, another in the rest.
    #[inline(always)]
    fn then<E: Element>(self, other: u64, left: u32) -> Loaded {
        let ([first, _], [other, _]) = (splat::<E>(self.bits.one), splat::<E>(other));
        let bits = left * 8 * size_of::<E>() as u32;
        // The bits of the lanes from `left` on, for each half.
        let low = if bits < 64 { u64::MAX << bits } else { 0 };
        let high = if bits > 64 { u64::MAX << (bits - 64) } else { u64::MAX };
        Loaded::vector([first & !low | other & low, first & !high | other & high])
    }

    /// Returns an element for each lane, as in memory.
    #[inline(always)]
    pub(super) fn one_for_each<E: Element>(self) -> Loaded {
        Loaded { bits: VectorOrOne { vector: self.spread::<E>(), one: 0 }, is_one: false, ..self }
    }

    /// Drops the first four bytes.
    #[inline(always)]
    pub(super) fn behind_a_word(mut self) -> Loaded {
        let [low, high] = self.bits.vector;
        self.bits.vector = [low >> 32 | high << 32, high >> 32];
        self
    }

    /// Returns the vector's bits, for any operand of an integer type: a number's word has the bits of an element.
    #[inline(always)]
    pub(super) fn bits<E: Element>(self, word: u64) -> [u64; 2] {
        if self.is_word { splat::<E>(word) } else { self.spread::<E>() }
    }
}

/// Returns the operand's elements. A number is a branch that all threads take alike, not a selection for each lane.
#[inline(always)]
pub(crate) fn lanes<E: Packed, const V: usize>(loaded: Loaded, word: u64) -> [E::Compute; V] {
    if loaded.is_word { [E::Compute::from_word(word); V] } else { packed::unpack::<E, V>(loaded.spread::<E>()) }
}
