//! The short path of a vector of a function of two operands: all lanes without a branch, then one check of all, and one
//! copy of the long path for the elements that fail it.

use pointwise_core::formula::{Formula, OpData};
use pointwise_core::{BinaryFunction, Element, Signed, Value, Word};

use super::operand::{Loaded, arguments, fetch, lanes};
use super::{Places, Tensors, behind, put, target};
use crate::memory;
use crate::packed::{self, Packed, unroll};
use crate::thread;

/// Returns the function that the op computes.
const fn function<O: OpData>() -> Option<BinaryFunction> {
    O::INFO.properties.function
}

/// True if kernels of vectors take the short path first.
pub(super) const fn serves<E: Element, O: OpData>() -> bool {
    matches!(function::<O>(), Some(function) if function.has_short_path(E::DTYPE))
}

/// True if it gives bounds, not results.
const fn is_bounded<E: Element, O: OpData>() -> bool {
    matches!(function::<O>(), Some(function) if function.is_bounded(E::DTYPE))
}

/// True if it takes the first operand's magnitude.
const fn takes_magnitudes<O: OpData>() -> bool {
    matches!(function::<O>(), Some(function) if function.takes_magnitudes())
}

/// Returns the first two of some.
#[inline(always)]
fn pair<T: Copy, const N: usize>(of: &[T; N], none: T) -> [T; 2] {
    let mut pair = [none; 2];
    unroll!(at most 2: k < N => { pair[k] = of[k]; });
    pair
}

/// The elements that the short path left open.
#[derive(Clone, Copy)]
struct Open {
    /// For bounded results: zero in the bits of each element whose result is known.
    undecided: [u64; 2],
    /// If false, no result is known.
    holds: bool,
    /// True if some first operand is negative, and the result's sign is not known yet. Only for bounded results; for
    /// others `holds` is false then.
    signed: bool,
}

impl Open {
    #[inline(always)]
    fn none(self) -> bool {
        self.holds & !self.signed & (self.undecided[0] | self.undecided[1] == 0)
    }

    /// Returns a bit for each open element. If signs are not known yet, a bit for each undecided one.
    #[inline(always)]
    fn elements<E, O: OpData>(self) -> u32 {
        let mut open = 0;
        unroll!(at most 8: i < 8 => { open |= (has_bits::<E>(self.undecided, i) as u32) << i; });
        if const { takes_magnitudes::<O>() } || self.holds { open } else { u32::MAX }
    }
}

/// True if any bit of a vector's element is set.
#[inline(always)]
const fn has_bits<E>(bits: [u64; 2], i: usize) -> bool {
    let size = size_of::<E>();
    let per_word = 8 / size;
    i < 2 * per_word && bits[i / per_word] >> (8 * size * (i % per_word)) & (u64::MAX >> (64 - 8 * size)) != 0
}

/// Computes a vector, or its first element, by the short path, and by the long one the elements that are left open.
///
/// # Safety
/// The conditions of [`super::work`].
#[inline(always)]
pub(super) unsafe fn run<E, F, O, const N: usize, const R: usize, const V: usize, const IN_ROWS: bool>(
    tensors: &Tensors<N, R>,
    mode: u32,
    at: Places<N, R>,
    is_vector: bool,
    loaded: &[Loaded; N],
    op: O,
) where
    E: Packed,
    F: Packed,
    O: OpData + Formula<E::Compute, N, R, F::Compute>,
{
    let ([a, b], [wa, wb]) = (pair(loaded, Loaded::NONE), pair(&tensors.words, 0));
    let (bits, open) = short_results::<E, O, V>(lanes::<E, V>(a, wa), lanes::<E, V>(b, wb));
    // SAFETY: the caller's contract.
    unsafe {
        if open.none() {
            let target = target::<E>(tensors.results[0], at.results[0]).cast();
            memory::store(target, bits, if is_vector { V } else { 1 } * size_of::<E>());
        } else {
            one_by_one::<E, F, O, N, R, V, IN_ROWS>(tensors, mode, at, is_vector, op, bits, open);
        }
    }
}

/// Computes results by the short path. Their bits are computed here: behind the branch that follows, the operands'
/// lanes would hold registers.
#[inline(always)]
fn short_results<E: Packed, O: OpData, const V: usize>(a: [E::Compute; V], b: [E::Compute; V]) -> ([u64; 2], Open) {
    let mut results = [E::Compute::ZERO; V];
    let mut others = results;
    let mut holds = true;
    let mut signs = 0;
    if let Some(function) = const { function::<O>() } {
        unroll!(i < V => {
            let short = a[i].short(b[i], function);
            [results[i], others[i]] = short.bounds;
            holds &= short.holds;
            signs |= a[i].to_word() as i32;
        });
    }
    let bits = packed::pack::<E, V>(results);
    let mut undecided = [0; 2];
    if const { takes_magnitudes::<O>() } {
        // The assembler would take 38 to 40.
        thread::at_most_registers::<32>();
    }
    let is_bounded = const { is_bounded::<E, O>() };
    if is_bounded {
        let others = packed::pack::<E, V>(others);
        undecided = [bits[0] ^ others[0], bits[1] ^ others[1]];
    }
    (bits.map(thread::worked_out_here), Open { undecided, holds, signed: is_bounded && signs < 0 })
}

/// Turns the short results of magnitudes into results of the operands. Returns them, and a bit for each element that is
/// now open: the ones in `open`, and others. It goes word by word, and loads the operands again: all lanes at once
/// would take more registers than there are.
///
/// # Safety
/// The conditions of [`super::work`].
#[inline(always)]
unsafe fn with_signs<E, O, const N: usize, const R: usize, const V: usize>(
    tensors: &Tensors<N, R>,
    at: &Places<N, R>,
    bits: [u64; 2],
    mut open: u32,
) -> ([u64; 2], u32)
where
    E: Packed,
    O: OpData,
{
    const { assert!(!takes_magnitudes::<O>() || V * size_of::<E>() == 16) }
    // SAFETY: the caller's contract.
    let loaded = unsafe { fetch::<E, O, N, R, V>(tensors, thread::worked_out_here(tensors.mode as u64) as u32, at) };
    let mut both = pair(&loaded, Loaded::NONE).map(Loaded::one_for_each::<E>);
    let given = pair(&tensors.words, 0);
    let mut words = [bits[0] as u32, (bits[0] >> 32) as u32, bits[1] as u32, (bits[1] >> 32) as u32];
    // One more bit, beyond the elements', shows when all words are done.
    open |= 1 << (2 * V);
    if size_of::<E>() == 2 {
        while open >> V != 1 {
            thread::no_unrolling();
            with_signs_of_word::<E, O, 2>(&mut both, given, &mut words, &mut open);
        }
    } else {
        unroll!(at most 4: _i < V => {
            with_signs_of_word::<E, O, 1>(&mut both, given, &mut words, &mut open);
        });
    }
    ([words[0] as u64 | (words[1] as u64) << 32, words[2] as u64 | (words[3] as u64) << 32], open)
}

/// Corrects the first word, and moves it to the end, together with its `N` bits of `open`.
#[inline(always)]
fn with_signs_of_word<E: Packed, O: OpData, const N: usize>(
    both: &mut [Loaded; 2],
    given: [u64; 2],
    words: &mut [u32; 4],
    open: &mut u32,
) {
    let signed = signed_word::<E, O, N>(*both, given);
    let word = words[0] & !signed.zeros | signed.of_zeros & signed.zeros | signed.signs;
    *words = [words[1], words[2], words[3], word];
    *both = both.map(Loaded::behind_a_word);
    // Results of zeros are decided.
    let in_this = *open & !signed.are_zero & ((1 << N) - 1) | signed.unknown;
    *open = *open >> N | in_this << (3 * N);
}

/// [`Signed`] of a word of results.
struct SignedWord {
    /// Bits to set in any result.
    signs: u32,
    /// All ones in elements whose first operand is zero.
    zeros: u32,
    /// The magnitudes of such results.
    of_zeros: u32,
    /// A bit for each element whose first operand is zero.
    are_zero: u32,
    /// A bit for each element whose corrections do not hold.
    unknown: u32,
}

/// Returns the corrections for the first `N` lanes of two operands.
#[inline(always)]
fn signed_word<E: Packed, O: OpData, const N: usize>([a, b]: [Loaded; 2], [wa, wb]: [u64; 2]) -> SignedWord {
    let (a, b) = (lanes::<E, N>(a, wa), lanes::<E, N>(b, wb));
    let mut word = SignedWord { signs: 0, zeros: 0, of_zeros: 0, are_zero: 0, unknown: 0 };
    let mut of_zeros = [E::Compute::ZERO; N];
    let bits = 32 / N as u32;
    unroll!(at most 2: i < N => {
        let signed = match const { function::<O>() } {
            Some(function) => a[i].signed(b[i], function),
            None => Signed::unknown(a[i]),
        };
        of_zeros[i] = signed.of_zero;
        word.signs |= signed.sign >> (32 - bits) << (bits * i as u32);
        word.zeros |= if signed.is_zero { u32::MAX >> (32 - bits) << (bits * i as u32) } else { 0 };
        word.are_zero |= (signed.is_zero as u32) << i;
        word.unknown |= (!signed.holds as u32) << i;
    });
    word.of_zeros = packed::pack::<E, N>(of_zeros)[0] as u32;
    word
}

/// Stores `bits` at a place, but computes the open elements one by one, by the only copy of the long path. It loads
/// their operands again: keeping all until here would take more registers than there are.
///
/// # Safety
/// The conditions of [`super::work`].
#[inline(always)]
unsafe fn one_by_one<E, F, O, const N: usize, const R: usize, const V: usize, const IN_ROWS: bool>(
    tensors: &Tensors<N, R>,
    mode: u32,
    at: Places<N, R>,
    is_vector: bool,
    op: O,
    mut bits: [u64; 2],
    open: Open,
) where
    E: Packed,
    F: Packed,
    O: OpData + Formula<E::Compute, N, R, F::Compute>,
{
    let takes_magnitudes = const { takes_magnitudes::<O>() };
    let len = if is_vector { V } else { 1 };
    let mut left = open.elements::<E, O>();
    if takes_magnitudes && (open.signed | !open.holds) {
        if is_vector {
            let at = behind::<N, R, IN_ROWS>(tensors, mode, at, 0);
            // SAFETY: the caller's contract.
            (bits, left) = unsafe { with_signs::<E, O, N, R, V>(tensors, &at, bits, left) };
        } else {
            left = 1;
        }
    }
    left &= (1 << len) - 1;
    while left != 0 {
        thread::no_unrolling();
        let i = left.trailing_zeros();
        left &= left - 1;
        // Taken apart again for each element: else the ways to read each operand would hold registers.
        let mode = thread::worked_out_here(mode as u64) as u32;
        let at = behind::<N, R, IN_ROWS>(tensors, mode, at, i);
        // SAFETY: the caller's contract. What is stored is no operand of another element.
        unsafe {
            let loaded = fetch::<E, O, N, R, 1>(tensors, mode, &at);
            let ([values], [truths]) = arguments::<E, O, N, 1>(&loaded, &tensors.words);
            let (results, _) = op.apply(values, truths, 0.into());
            if takes_magnitudes {
                bits = with_element::<E>(bits, i, packed::pack::<F, 1>([results[0]])[0] as u32);
            } else {
                put::<F, 1>(tensors.results[0], at.results[0], [results[0]], true);
            }
        }
    }
    if takes_magnitudes {
        // SAFETY: the caller's contract.
        unsafe {
            memory::store(target::<E>(tensors.results[0], at.results[0]).cast(), bits, len * size_of::<E>());
        }
    }
}

/// Replaces the `i`-th of some elements of 16 or 32 bits.
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
