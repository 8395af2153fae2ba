//! MapKernel: `y[i] = op(a[i], b[i], c[i])` for one to three operands, broadcast, by three templates.
//!
//! [`flat`]: every operand lies like the result or is one value. [`tiled`] with vectors: the innermost dimension of each
//! operand is contiguous or one value. [`tiled`] by single elements: anything.
//!
//! An operand may be the result's very memory: a thread loads all its inputs before its first store, and no load takes
//! the read-only path. The host guarantees that they are otherwise disjoint.

use pointwise_core::launch::{ITEMS, MAX_DIMS, MAX_ROW_DIMS, ONCE, STREAM_SHIFT, Steps, WORD_SHIFT};
use pointwise_core::map::{Map, absent};
use pointwise_core::{Draw, Element, Value, Word};

use crate::memory::{self, VectorOrOne};
use crate::packed::{self, Packed, unroll};
use crate::random;
use crate::thread;

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
    /// Which operands are one value, and which are passed by: [`ONCE`], [`WORD_SHIFT`], [`STREAM_SHIFT`].
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

/// A vector of one operand as it lies in memory, not yet converted: all loads are under way before the first conversion
/// waits for one.
#[derive(Clone, Copy)]
pub(crate) struct Loaded {
    bits: VectorOrOne,
    /// The operand came with the call.
    word: bool,
    /// One element for all lanes.
    one: bool,
}

impl Loaded {
    /// Of an operand that is not there.
    pub(crate) const NONE: Loaded = Loaded { bits: VectorOrOne { vector: [0, 0], one: 0 }, word: false, one: false };
}

/// # Safety
/// Where `mode` does not say that operand `k` came with the call, `p` is valid for reading, and aligned to, `V` elements,
/// or one where it is to be read once.
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
            let vector = if nothing == 0 { memory::load(p.cast(), size_of::<E>()) } else { [0, 0] };
            VectorOrOne { vector, one: 0 }
        }
    };
    Loaded { bits, word: nothing != 0, one: V > 1 && one != 0 }
}

/// The lowest element in every lane of a vector.
#[inline(always)]
fn splat<E: Element>(element: u64) -> [u64; 2] {
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
    fn spread<E: Element>(self) -> [u64; 2] {
        if self.one { splat::<E>(self.bits.one) } else { self.bits.vector }
    }
}

/// The operand's elements. A number is a branch that all threads take alike, not a selection for each lane.
#[inline(always)]
pub(crate) fn lanes<E: Packed, const V: usize>(loaded: Loaded, word: u64) -> [E::Compute; V] {
    if loaded.word { [E::Compute::from_word(word); V] } else { packed::unpack::<E, V>(loaded.spread::<E>()) }
}

/// The loads of a vector: of the operands, from where `at` says, behind the result's place.
///
/// # Safety
/// `inputs` as [`load`] asks.
#[inline(always)]
unsafe fn fetch<M, const V: usize>(inputs: &Inputs<M>, at: [i64; 4]) -> [Loaded; 3]
where
    M: Map<A: Packed, B: Packed, C: Packed>,
{
    let none = Loaded::NONE;
    // SAFETY: the caller's contract.
    unsafe {
        let a = load::<M::A, V>(inputs.a.offset(at[1] as isize), inputs.mode, 0);
        let b = if M::OPERANDS > 1 { load::<M::B, V>(inputs.b.offset(at[2] as isize), inputs.mode, 1) } else { none };
        let c = if M::OPERANDS > 2 { load::<M::C, V>(inputs.c.offset(at[3] as isize), inputs.mode, 2) } else { none };
        [a, b, c]
    }
}

/// Formulas and store of a vector whose first result is `y[place]`.
///
/// # Safety
/// `y` is valid there for writing `V` elements and aligned to them.
#[inline(always)]
unsafe fn finish<M, const V: usize>(inputs: &Inputs<M>, [a, b, c]: [Loaded; 3], place: i64, y: *mut M::R, map: M)
where
    M: Map<A: Packed, B: Packed, C: Packed, R: Packed>,
{
    // SAFETY: the caller's contract.
    let target = unsafe { y.offset(place as isize) };
    if const { M::LOGICAL && all_are_bytes::<M>() } {
        let truths = [
            truths::<M::A>(a, inputs.words[0]),
            truths::<M::B>(b, inputs.words[1]),
            truths::<M::C>(c, inputs.words[2]),
        ];
        // SAFETY: the caller's contract.
        unsafe { memory::store(target.cast(), logical(truths, map), V) };
        return;
    }
    let a = lanes::<M::A, V>(a, inputs.words[0]);
    let b = if M::OPERANDS > 1 { lanes::<M::B, V>(b, inputs.words[1]) } else { [absent::<M::B>(); V] };
    let c = if M::OPERANDS > 2 { lanes::<M::C, V>(c, inputs.words[2]) } else { [absent::<M::C>(); V] };
    let mut results = [<M::R as Element>::Compute::ZERO; V];
    if M::RANDOM {
        let first = inputs.draw.first + place as u64;
        // Of this evaluation, nothing remains but what it asks of the words.
        let words = random::words::<V>(&inputs.draw.blocks, first, |i, bits| _ = map.map_drawn(a[i], b[i], c[i], bits));
        unroll!(i < V => { results[i] = map.map_drawn(a[i], b[i], c[i], words[i].into()); });
    } else {
        unroll!(i < V => { results[i] = map.map(a[i], b[i], c[i]); });
    }
    // SAFETY: the caller's contract.
    unsafe { packed::store::<M::R, V>(target, results) }
}

/// One vector: loads, formulas, store.
///
/// # Safety
/// Those of [`fetch`] and [`finish`].
#[inline(always)]
unsafe fn vector<M, const V: usize>(inputs: &Inputs<M>, at: [i64; 4], y: *mut M::R, map: M)
where
    M: Map<A: Packed, B: Packed, C: Packed, R: Packed>,
{
    // SAFETY: the caller's contract.
    unsafe { finish::<M, V>(inputs, fetch::<M, V>(inputs, at), at[0], y, map) }
}

/// Whether all operands and the result are types of one byte.
const fn all_are_bytes<M: Map>() -> bool {
    size_of::<M::R>() == 1
        && size_of::<M::A>() == 1
        && (M::OPERANDS < 2 || size_of::<M::B>() == 1)
        && (M::OPERANDS < 3 || size_of::<M::C>() == 1)
}

/// Which of sixteen elements of one byte are true, in bit 7 of each byte.
#[inline(always)]
fn truths<E: Packed>(loaded: Loaded, word: u64) -> [u32; 4] {
    let [low, high] = loaded.spread::<E>();
    let mut truths = [low as u32, (low >> 32) as u32, high as u32, (high >> 32) as u32].map(packed::truths::<E>);
    if loaded.word {
        truths = [if E::Compute::from_word(word).truth() { u32::MAX } else { 0 }; 4];
    }
    truths
}

/// Sixteen bools by the truth table of [`Map::LOGICAL`], four in a word: the compiler folds the formula of constants, and
/// what remains are a few operations on words.
#[inline(always)]
fn logical<M: Map>(truths: [[u32; 4]; 3], map: M) -> [u64; 2] {
    let mut words = [0_u32; 4];
    unroll!(at most 8: row < 1 << M::OPERANDS => {
        let is = |k: usize| row >> k & 1 != 0;
        let result = map.map(one_or_zero(is(0)), one_or_zero(is(1)), one_or_zero(is(2)));
        let mask = if result.truth() { 0x8080_8080 } else { 0 };
        unroll!(at most 4: i < 4 => {
            let fits = |k: usize| if is(k) { truths[k][i] } else if k < M::OPERANDS { !truths[k][i] } else { u32::MAX };
            words[i] |= mask & fits(0) & fits(1) & fits(2);
        });
    });
    let [a, b, c, d] = words.map(|word| (word >> 7) as u64);
    [a | b << 32, c | d << 32]
}

#[inline(always)]
fn one_or_zero<T: Value>(one: bool) -> T {
    if one { T::ONE } else { T::ZERO }
}

/// Offsets of element `i` of tensors that all lie alike, but for operands that are one value.
#[inline(always)]
fn alike(i: u64, mode: u32) -> [i64; 4] {
    let of = |k: u32| if mode & (ONCE << k) != 0 { 0 } else { i as i64 };
    [i as i64, of(0), of(1), of(2)]
}

/// A thread one vector of `V` elements; the `head` elements before the first aligned one and those after the last whole
/// vector are done one by one by the threads that follow.
///
/// # Safety
/// Each operand is one value, as `mode` says, or valid for `n` elements and equal to `y` or disjoint from it; `y` is valid
/// for `n` elements. `head <= n`, and from there on all that are not one value are aligned to `V` of their elements.
#[inline(always)]
pub unsafe fn flat<M, const V: usize>(inputs: &Inputs<M>, y: *mut M::R, n: u64, head: u32, map: M)
where
    M: Map<A: Packed, B: Packed, C: Packed, R: Packed>,
{
    let i = thread::index_1d();
    let vectors = ((n - head as u64) / V as u64) as u32;
    if i < vectors {
        let first = head as u64 + i as u64 * V as u64;
        // SAFETY: the vector ends at or before n; the caller's contract.
        unsafe { vector::<M, V>(inputs, alike(first, inputs.mode), y, map) }
    } else {
        let rest = i - vectors;
        let single = if rest < head { rest as u64 } else { rest as u64 + vectors as u64 * V as u64 };
        if single < n {
            // SAFETY: single < n; the caller's contract.
            unsafe { vector::<M, 1>(inputs, alike(single, inputs.mode), y, map) }
        }
    }
}

/// A thread one item of `V` elements of the innermost dimension, found by `steps`, which has the strides of the result
/// and, behind them, of the operands. Where there are fewer threads than items, a thread has [`ITEMS`] of one element.
///
/// # Safety
/// With vectors, `steps` has at most [`MAX_ROW_DIMS`] dimensions, and there is a thread for each item. For each of
/// `items < 2^31` items, the place that `steps` finds in `y` is valid for writing `V` elements and aligned to them, that in
/// each operand likewise for reading, or for one element where `mode` says that it is one for all `V`. No element of `y`
/// belongs to two items, and one that is also an operand's belongs to the same item there.
#[inline(always)]
pub unsafe fn tiled<M, const V: usize, const N: usize>(
    inputs: &Inputs<M>,
    y: *mut M::R,
    steps: &Steps<N>,
    items: u32,
    map: M,
) where
    M: Map<A: Packed, B: Packed, C: Packed, R: Packed>,
{
    if V > 1 {
        let item = thread::index_1d();
        if item < items {
            // SAFETY: item < items; the caller's contract.
            unsafe { vector::<M, V>(inputs, place::<{ MAX_ROW_DIMS }, N, 4>(steps, item), y, map) }
        }
        return;
    }
    let width = thread::block_dim_x();
    let each = if thread::grid_dim_x() * width >= items { 1 } else { ITEMS };
    let first = thread::block_idx_x() * (width * each) + thread::thread_idx_x();
    let (mut item, mut left) = (first, each);
    while left > 0 && item < items {
        let mut loaded = [[Loaded::NONE; 3]; ITEMS as usize];
        let mut results = [0; ITEMS as usize];
        let mut count = 1;
        // SAFETY: every item is below `items`; the caller's contract.
        unsafe {
            if left == ITEMS && steps.splits < FEW_DIMS as u32 && item + (ITEMS - 1) * width < items {
                // All under way at once: loads of one element are too short for one to fill the time.
                count = ITEMS;
                unroll!(at most 4: k < ITEMS as usize => {
                    let at: [i64; 4] = place::<FEW_DIMS, N, 4>(steps, item + k as u32 * width);
                    loaded[k] = fetch::<M, 1>(inputs, at);
                    results[k] = at[0];
                });
            } else {
                let at: [i64; 4] = place::<MAX_DIMS, N, 4>(steps, item);
                loaded[0] = fetch::<M, 1>(inputs, at);
                results[0] = at[0];
            }
            left -= count;
            item += count * width;
            // One copy of the formula; what is loaded moves up, for an index would be one into local memory.
            loop {
                finish::<M, 1>(inputs, loaded[0], results[0], y, map);
                count -= 1;
                if count == 0 {
                    break;
                }
                unroll!(at most 4: k < ITEMS as usize - 1 => {
                    loaded[k] = loaded[k + 1];
                    results[k] = results[k + 1];
                });
            }
        }
    }
}

/// The most dimensions of which a thread finds several places at a time.
const FEW_DIMS: usize = 3;

/// Offsets of an item in `N` tensors, zeros behind them; `steps` has at most `DIMS` dimensions. Every index is a constant,
/// so that nothing goes to local memory.
#[inline(always)]
pub(crate) fn place<const DIMS: usize, const N: usize, const T: usize>(steps: &Steps<N>, item: u32) -> [i64; T] {
    let mut at = [0_i32; T];
    let mut rest = item;
    unroll!(at most 8: d < MAX_DIMS - 1 => {
        if d < DIMS - 1 && (d as u32) < steps.splits {
            let (next, index) = steps.sizes[d].divide(rest);
            unroll!(at most 8: k < N => { at[k] += index as i32 * steps.strides[d][k]; });
            rest = next;
        }
    });
    unroll!(at most 8: k < N => { at[k] += rest as i32 * steps.outer[k]; });
    at.map(i64::from)
}
