//! How an operand is loaded, and becomes lanes.

use pointwise_core::launch::{ONCE, STREAM_SHIFT, WORD_SHIFT};
use pointwise_core::map::Map;
use pointwise_core::{Element, Word};

use super::Inputs;
use crate::memory::{self, VectorOrOne};
use crate::packed::{self, Packed};

/// A vector of one operand as it lies in memory, not yet converted: all loads are under way before the first conversion
/// waits for one.
#[derive(Clone, Copy)]
pub(crate) struct Loaded {
    bits: VectorOrOne,
    /// The operand came with the call.
    pub(super) word: bool,
    /// One element for all lanes.
    one: bool,
}

impl Loaded {
    /// Of an operand that is not there.
    pub(crate) const NONE: Loaded = Loaded { bits: VectorOrOne { vector: [0, 0], one: 0 }, word: false, one: false };
}

/// # Safety
/// Where `mode` does not say that operand `k` came with the call, `p` is valid for reading, and aligned to, `V`
/// elements, or one where it is to be read once.
#[inline(always)]
pub(crate) unsafe fn load<E: Packed, const V: usize>(p: *const E, mode: u32, k: u32) -> Loaded {
    let nothing = mode & (ONCE << (WORD_SHIFT + k));
    let one = mode & (ONCE << k);
    // SAFETY: the caller's contract.
    let bits = unsafe {
        if V > 1 {
            let how = memory::How { nothing, one, passing: mode & (ONCE << (STREAM_SHIFT + k)) };
            memory::load_as(p.cast(), V * size_of::<E>(), size_of::<E>(), how)
        } else {
            VectorOrOne { vector: [memory::load_unless(p.cast(), size_of::<E>(), nothing), 0], one: 0 }
        }
    };
    Loaded { bits, word: nothing != 0, one: V > 1 && one != 0 }
}

/// [`ONCE`] for each operand.
const ALL: u32 = (ONCE << WORD_SHIFT) - ONCE;

/// The `mode` that reads one element of each operand that did not come with the call.
#[inline(always)]
pub(crate) fn one_each(mode: u32) -> u32 {
    let numbers = mode & ALL << WORD_SHIFT;
    numbers | ALL & !(numbers >> WORD_SHIFT)
}

/// The loads of a vector: of the operands, from where `at` says, behind the result's place.
///
/// # Safety
/// `inputs` as [`load`] asks; without [`Map::NUMBERS`] no operand came with the call.
#[inline(always)]
pub(super) unsafe fn fetch<M, const V: usize>(inputs: &Inputs<M>, mode: u32, at: [i64; 4]) -> [Loaded; 3]
where
    M: Map<A: Packed, B: Packed, C: Packed>,
{
    let none = Loaded::NONE;
    let mode = if M::NUMBERS { mode } else { mode & !(ALL << WORD_SHIFT) };
    // SAFETY: the caller's contract.
    unsafe {
        let a = load::<M::A, V>(inputs.a.offset(at[1] as isize), mode, 0);
        let b = if M::OPERANDS > 1 { load::<M::B, V>(inputs.b.offset(at[2] as isize), mode, 1) } else { none };
        let c = if M::OPERANDS > 2 { load::<M::C, V>(inputs.c.offset(at[3] as isize), mode, 2) } else { none };
        [a, b, c]
    }
}

/// The lowest element in every lane of a vector.
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
    /// The vector's bits, of an operand that did not come with the call.
    #[inline(always)]
    pub(crate) fn spread<E: Element>(self) -> [u64; 2] {
        if self.one { splat::<E>(self.bits.one) } else { self.bits.vector }
    }

    /// An element for each lane, as in memory.
    #[inline(always)]
    pub(super) fn one_for_each<E: Element>(self) -> Loaded {
        Loaded { bits: VectorOrOne { vector: self.spread::<E>(), one: 0 }, one: false, ..self }
    }

    /// Without the first four bytes.
    #[inline(always)]
    pub(super) fn behind_a_word(mut self) -> Loaded {
        let [low, high] = self.bits.vector;
        self.bits.vector = [low >> 32 | high << 32, high >> 32];
        self
    }

    /// The vector's bits, of any operand of an integer type: a number's word has those of an element.
    #[inline(always)]
    pub(super) fn bits<E: Element>(self, word: u64) -> [u64; 2] {
        if self.word { splat::<E>(word) } else { self.spread::<E>() }
    }
}

/// The one value of an operand that is a number or one element for all lanes.
#[inline(always)]
pub(super) fn uniform<E: Packed>(loaded: Loaded, word: u64) -> Option<E::Compute> {
    if loaded.word {
        Some(E::Compute::from_word(word))
    } else if loaded.one {
        Some(packed::unpack::<E, 1>([loaded.bits.one, 0])[0])
    } else {
        None
    }
}

/// The operand's elements. A number is a branch that all threads take alike, not a selection for each lane.
#[inline(always)]
pub(crate) fn lanes<E: Packed, const V: usize>(loaded: Loaded, word: u64) -> [E::Compute; V] {
    if loaded.word { [E::Compute::from_word(word); V] } else { packed::unpack::<E, V>(loaded.spread::<E>()) }
}
