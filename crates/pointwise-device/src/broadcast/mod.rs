//! MapKernel: `y[i] = op(a[i], b[i], c[i])` for one to three operands, broadcast, by three templates.
//!
//! [`flat`]: every operand lies like the result or is one value. [`tiled`]: the innermost dimension of each operand is
//! contiguous or one value. [`grouped`], by single elements: anything.
//!
//! An operand may be the result's very memory: a thread loads all its inputs before its first store, and no load takes
//! the read-only path. The host guarantees that they are otherwise disjoint.

mod leaky;
mod operand;
mod places;
mod words;

pub(crate) use operand::{Loaded, lanes, load, one_each};
pub(crate) use places::{alike, place, single};

use pointwise_core::launch::{GROUP, Groups, ONCE, ROW_SPLITS, Steps, TWO_SHIFT};
use pointwise_core::map::{Map, absent};
use pointwise_core::{Draw, Element, ShortPath, Value, Word};

use crate::memory;
use crate::packed::{self, Packed, unroll};
use crate::random;
use crate::thread;
use leaky::{in_pairs, leaky};
use operand::{fetch, uniform};
use places::{group_places, row_places};
use words::{finish_words, whole_words};

/// The operands of a launch. Those past [`Map::OPERANDS`] are not read.
pub struct Inputs<M: Map> {
    /// First elements.
    pub a: *const M::A,
    /// See `a`.
    pub b: *const M::B,
    /// See `a`.
    pub c: *const M::C,
    /// Operands that came with the call.
    pub words: [u64; 3],
    /// Which operands are one value, and which are passed by: `ONCE`, `WORD_SHIFT`, `STREAM_SHIFT` of
    /// [`pointwise_core::launch`]; and how many blocks have two vectors a thread: [`TWO_SHIFT`].
    pub mode: u32,
    /// Where the random words of `y`'s first element are, and of those behind it; read with [`Map::RANDOM`] alone.
    pub draw: Draw,
}

impl<M: Map> Inputs<M> {
    /// One operand, of which each element is read.
    #[inline(always)]
    pub const fn one(a: *const M::A) -> Self {
        Inputs { a, b: core::ptr::null(), c: core::ptr::null(), words: [0; 3], mode: 0, draw: Draw::NONE }
    }
}

/// Where results go, and where their operands come from.
#[derive(Clone, Copy)]
struct Place {
    /// The first result's place, and those of its operands.
    at: [i64; 4],
    /// How the operands are loaded: as [`Inputs::mode`].
    mode: u32,
    /// Whether there is a vector of results, or this one alone.
    is_vector: bool,
}

/// Formulas and store.
///
/// # Safety
/// As [`finish_words`].
#[inline(always)]
unsafe fn finish_lanes<M, const V: usize>(
    inputs: &Inputs<M>,
    [a, b, c]: [Loaded; 3],
    place: Place,
    y: *mut M::R,
    map: M,
) where
    M: Map<A: Packed, B: Packed, C: Packed, R: Packed>,
{
    if const { in_pairs::<M>() }
        && let Some(bits) = leaky::<M::A>(a, b)
    {
        // SAFETY: the caller's contract.
        return unsafe {
            memory::store(y.offset(place.at[0] as isize).cast(), bits, if place.is_vector { V } else { 1 })
        };
    }
    let a = lanes::<M::A, V>(a, inputs.words[0]);
    // With a formula of its own: one weight for all lanes, met by a vector of weights, would be copied to each of them.
    if M::CHANNEL
        && let Some(weight) = uniform::<M::B>(b, inputs.words[1])
    {
        // SAFETY: the caller's contract.
        return unsafe { finish_operands(inputs, a, [weight; V], [absent::<M::C>(); V], place, y, map) };
    }
    let b = if M::OPERANDS > 1 { lanes::<M::B, V>(b, inputs.words[1]) } else { [absent::<M::B>(); V] };
    let c = if M::OPERANDS > 2 { lanes::<M::C, V>(c, inputs.words[2]) } else { [absent::<M::C>(); V] };
    // SAFETY: the caller's contract.
    unsafe { finish_operands(inputs, a, b, c, place, y, map) }
}

/// [`finish_lanes`] of operands that are there.
///
/// # Safety
/// As [`finish_words`].
#[inline(always)]
unsafe fn finish_operands<M, const V: usize>(
    inputs: &Inputs<M>,
    a: [<M::A as Element>::Compute; V],
    b: [<M::B as Element>::Compute; V],
    c: [<M::C as Element>::Compute; V],
    place: Place,
    y: *mut M::R,
    map: M,
) where
    M: Map<A: Packed, B: Packed, C: Packed, R: Packed>,
{
    let mut results = [<M::R as Element>::Compute::ZERO; V];
    if M::RANDOM {
        let first = inputs.draw.first + place.at[0] as u64;
        // Of this evaluation, nothing remains but what it asks of the words.
        let words = random::words::<V>(&inputs.draw.blocks, first, |i, bits| _ = map.map_drawn(a[i], b[i], c[i], bits));
        unroll!(i < V => { results[i] = map.map_drawn(a[i], b[i], c[i], words[i].into()); });
    } else {
        unroll!(i < V => { results[i] = map.map(a[i], b[i], c[i]); });
    }
    // SAFETY: the caller's contract.
    unsafe {
        let target = y.offset(place.at[0] as isize);
        if place.is_vector {
            packed::store::<M::R, V>(target, results);
        } else {
            packed::store::<M::R, 1>(target, [results[0]]);
        }
    }
}

/// Formulas and store.
///
/// # Safety
/// As [`finish_words`].
#[inline(always)]
unsafe fn finish<M, const V: usize>(inputs: &Inputs<M>, loaded: [Loaded; 3], place: Place, y: *mut M::R, map: M)
where
    M: Map<A: Packed, B: Packed, C: Packed, R: Packed>,
{
    // SAFETY: the caller's contract.
    unsafe {
        if const { whole_words::<M>() } {
            finish_words::<M, V>(inputs, loaded, place, y, map);
        } else {
            finish_lanes::<M, V>(inputs, loaded, place, y, map);
        }
    }
}

/// Loads, formulas and store of what is at a place, in a kernel that has 32-bit offsets or in another.
///
/// # Safety
/// The place is as [`fetch`] and [`finish_words`] ask.
#[inline(always)]
unsafe fn work<M, const V: usize, const IN_ROWS: bool>(inputs: &Inputs<M>, place: Place, y: *mut M::R, map: M)
where
    M: Map<A: Packed, B: Packed, C: Packed, R: Packed>,
{
    // SAFETY: the caller's contract.
    unsafe {
        let loaded = fetch::<M, V>(inputs, place.mode, place.at);
        if matches!(M::SHORT, ShortPath::Always) || IN_ROWS && matches!(M::SHORT, ShortPath::Rows) {
            let [a, b, _] = loaded;
            let (a, b) = (lanes::<M::A, V>(a, inputs.words[0]), lanes::<M::B, V>(b, inputs.words[1]));
            let (bits, open) = short_results(a, b, map);
            if open.none() {
                let target = y.offset(place.at[0] as isize).cast();
                memory::store(target, bits, if place.is_vector { V } else { 1 } * size_of::<M::R>());
            } else {
                one_by_one::<M, V, IN_ROWS>(inputs, place, y, map, bits, open);
            }
        } else {
            finish::<M, V>(inputs, loaded, place, y, map);
        }
    }
}

/// What the short path left open.
#[derive(Clone, Copy)]
struct Open {
    /// Where results are bounded: zero in the bits of each element whose result is known.
    undecided: [u64; 2],
    /// Otherwise none is.
    holds: bool,
    /// Results are those of magnitudes, of which some have a sign.
    signed: bool,
}

impl Open {
    #[inline(always)]
    fn none(self) -> bool {
        self.holds & !self.signed & (self.undecided[0] | self.undecided[1] == 0)
    }

    /// A bit for each element that is open; where signs are yet to be told, for those that are undecided.
    #[inline(always)]
    fn elements<M: Map>(self) -> u32 {
        let mut open = 0;
        unroll!(at most 8: i < 8 => { open |= (lane::<M::R>(self.undecided, i) as u32) << i; });
        if M::MAGNITUDES || self.holds { open } else { u32::MAX }
    }
}

/// Whether any bit of a vector's element is set.
#[inline(always)]
const fn lane<E>(bits: [u64; 2], i: usize) -> bool {
    let size = size_of::<E>();
    let per_word = 8 / size;
    i < 2 * per_word && bits[i / per_word] >> (8 * size * (i % per_word)) & (u64::MAX >> (64 - 8 * size)) != 0
}

/// Results by the short path, in bits that are worked out here: behind the branch that follows the lanes of the operands
/// would have to be kept.
#[inline(always)]
fn short_results<M, const V: usize>(
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
/// As [`work`].
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
    if M::MAGNITUDES && !IN_ROWS {
        // Not before the loop, through which the offsets would have to be kept.
        alike(thread::worked_out_here(place.at[0] as u64) + i as u64, inputs.mode)
    } else {
        let behind = |k: usize| place.at[k + 1] + if place.mode & (ONCE << k) != 0 { 0 } else { i as i64 };
        [place.at[0] + i as i64, behind(0), behind(1), 0]
    }
}

/// What is at a place: `bits`, but for the elements that are open, which are worked out one by one by the only copy of the
/// long path. These are loaded again: to keep all until here would take more registers than there are.
///
/// # Safety
/// As [`work`].
#[inline(always)]
unsafe fn one_by_one<M, const V: usize, const IN_ROWS: bool>(
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
        left = 1;
        if place.is_vector {
            // SAFETY: the caller's contract.
            (bits, left) = unsafe { with_signs::<M, V>(inputs, place.at, map, bits, open.elements::<M>()) };
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

/// How many blocks, the first of the grid, have two vectors a thread.
#[inline(always)]
fn blocks_of_two<M: Map>(inputs: &Inputs<M>) -> u32 {
    if M::TWO_AT_ONCE { inputs.mode >> TWO_SHIFT } else { 0 }
}

/// The item of a thread behind the first `two` blocks, which have two a thread.
#[inline(always)]
fn item_behind(two: u32) -> u32 {
    (thread::block_idx_x() + two) * thread::block_dim_x() + thread::thread_idx_x()
}

/// Two vectors, a block's width apart, where `at` says. Both are loaded before the first is worked on, and no operand
/// is a number, one element, or passes through the cache: what tells these apart would take more registers than there
/// are.
///
/// # Safety
/// Both places are valid for reading a vector of each operand and for writing one of the result, and aligned to them;
/// an element of the one that is also an operand's belongs to the same place there.
#[inline(always)]
unsafe fn two_at_once<M, const V: usize>(
    inputs: &Inputs<M>,
    y: *mut M::R,
    map: M,
    at: impl FnOnce([u32; 2]) -> [[i64; 4]; 2],
) where
    M: Map<A: Packed, B: Packed, C: Packed, R: Packed>,
{
    let width = thread::block_dim_x();
    let first = thread::block_idx_x() * (2 * width) + thread::thread_idx_x();
    let [near, far] = at([first, first + width]);
    // SAFETY: the caller's contract.
    unsafe {
        let loaded = [fetch::<M, V>(inputs, 0, near), fetch::<M, V>(inputs, 0, far)];
        finish::<M, V>(inputs, loaded[0], Place { at: near, mode: 0, is_vector: true }, y, map);
        finish::<M, V>(inputs, loaded[1], Place { at: far, mode: 0, is_vector: true }, y, map);
    }
}

/// A thread one vector of `V` elements, or two in the first blocks, as [`TWO_SHIFT`] says; the `head` elements before
/// the first aligned one and those after the last whole vector are done one by one by the threads that follow.
///
/// # Safety
/// Each operand is one value, as `mode` says, or valid for `n` elements and equal to `y` or disjoint from it; `y` is
/// valid for `n` elements. `head <= n`, and from there on all that are not one value are aligned to `V` of their
/// elements. Blocks that have two vectors a thread have no thread without, and no operand is one value then.
#[inline(always)]
pub unsafe fn flat<M, const V: usize>(inputs: &Inputs<M>, y: *mut M::R, n: u64, head: u32, map: M)
where
    M: Map<A: Packed, B: Packed, C: Packed, R: Packed>,
{
    let two = blocks_of_two(inputs);
    if thread::block_idx_x() < two {
        // SAFETY: there are as many vectors, behind the head; the caller's contract.
        return unsafe {
            two_at_once::<M, V>(inputs, y, map, |items| items.map(|i| alike(head as u64 + i as u64 * V as u64, 0)))
        };
    }
    let (i, mode) = (item_behind(two), inputs.mode);
    let vectors = ((n - head as u64) / V as u64) as u32;
    let singles = (n - vectors as u64 * V as u64) as u32;
    if i < vectors + singles {
        let is_vector = i < vectors;
        let first = if is_vector { head as u64 + i as u64 * V as u64 } else { single::<V>(i - vectors, head, vectors) };
        let how = if is_vector { mode } else { one_each(mode) };
        let place = Place { at: alike(first, mode), mode: how, is_vector };
        // SAFETY: the vector ends at or before n, the single element is below; the caller's contract.
        unsafe { work::<M, V, false>(inputs, place, y, map) }
    }
}

/// A thread one item of `V` elements of the innermost dimension, found by `steps`, which has the strides of the result
/// and, behind them, of the operands, or two items in the first blocks, as [`TWO_SHIFT`] says.
///
/// # Safety
/// Blocks that have two items a thread have no thread without, and no operand is one value then. There are threads
/// enough for all items. For each of `items < 2^31` items, the place that `steps` finds in `y` is valid for writing `V`
/// elements and aligned to them, that in each operand likewise for reading, or for one element where `mode` says that
/// it is one for all `V`. No element of `y` belongs to two items, and one that is also an operand's belongs to the same
/// item there.
#[inline(always)]
pub unsafe fn tiled<M, const V: usize, const N: usize>(
    inputs: &Inputs<M>,
    y: *mut M::R,
    steps: &Steps<N, ROW_SPLITS>,
    items: u32,
    map: M,
) where
    M: Map<A: Packed, B: Packed, C: Packed, R: Packed>,
{
    let two = blocks_of_two(inputs);
    if thread::block_idx_x() < two {
        // SAFETY: there are as many items; the caller's contract.
        return unsafe { two_at_once::<M, V>(inputs, y, map, |items| row_places(steps, items)) };
    }
    let item = item_behind(two);
    if item < items {
        let place = Place { at: place(steps, item), mode: inputs.mode, is_vector: true };
        // SAFETY: item < items; the caller's contract.
        unsafe { work::<M, V, true>(inputs, place, y, map) }
    }
}

/// A thread one item, which is a group of single elements, as `groups` says. Of one that ends early, the first element
/// is worked out again in place of those that there are not.
///
/// # Safety
/// There are threads enough for all items. The places of each of `items < 2^31` groups are valid in `y` for writing,
/// and in each operand for reading, one element. No element of `y` belongs to two groups, and one that is also an
/// operand's is the same of the same group there.
#[inline(always)]
pub unsafe fn grouped<M, const N: usize>(inputs: &Inputs<M>, y: *mut M::R, groups: &Groups<N>, items: u32, map: M)
where
    M: Map<A: Packed, B: Packed, C: Packed, R: Packed>,
{
    let item = thread::index_1d();
    if item >= items {
        return;
    }
    let at = group_places(groups, item);
    // SAFETY: item < items; the caller's contract.
    unsafe {
        // All under way at once: loads of one element are too short for one to fill the time.
        let mut loaded = [[Loaded::NONE; 3]; GROUP];
        let mut results = [0; GROUP];
        unroll!(at most 4: k < GROUP => {
            loaded[k] = fetch::<M, 1>(inputs, inputs.mode, at[k]);
            results[k] = at[k][0];
        });
        // One copy of the formula, which the assembler, who sees the count, repeats if it is short; what is loaded
        // moves up, for an index would be one into local memory.
        let mut left = thread::opaque(GROUP as u32);
        loop {
            let place = Place { at: [results[0], 0, 0, 0], mode: inputs.mode, is_vector: true };
            finish::<M, 1>(inputs, loaded[0], place, y, map);
            left -= 1;
            if left == 0 {
                break;
            }
            unroll!(at most 4: k < GROUP - 1 => {
                loaded[k] = loaded[k + 1];
                results[k] = results[k + 1];
            });
        }
    }
}
