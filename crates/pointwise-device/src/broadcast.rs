//! MapKernel: `y[i] = op(a[i], b[i], c[i])` for one to three operands, broadcast, by three templates.
//!
//! [`flat`]: every operand lies like the result or is one value. [`tiled`]: the innermost dimension of each operand is
//! contiguous or one value. [`grouped`], by single elements: anything.
//!
//! An operand may be the result's very memory: a thread loads all its inputs before its first store, and no load takes
//! the read-only path. The host guarantees that they are otherwise disjoint.

use pointwise_core::launch::{GROUP, Groups, ONCE, ROW_SPLITS, SPLITS, STREAM_SHIFT, Steps, TWO_SHIFT, WORD_SHIFT};
use pointwise_core::map::{Map, absent};
use pointwise_core::op::MAX_OPERANDS;
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
    /// Which operands are one value, and which are passed by: [`ONCE`], [`WORD_SHIFT`], [`STREAM_SHIFT`]; and how many
    /// blocks have two vectors a thread: [`TWO_SHIFT`].
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
            VectorOrOne { vector: [memory::load_unless(p.cast(), size_of::<E>(), nothing), 0], one: 0 }
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
    pub(crate) fn spread<E: Element>(self) -> [u64; 2] {
        if self.one { splat::<E>(self.bits.one) } else { self.bits.vector }
    }
}

impl Loaded {
    /// The vector's bits, of any operand of an integer type: a number's word has those of an element.
    #[inline(always)]
    fn bits<E: Element>(self, word: u64) -> [u64; 2] {
        if self.word { splat::<E>(word) } else { self.spread::<E>() }
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
/// `inputs` as [`load`] asks; without [`Map::NUMBERS`] no operand came with the call.
#[inline(always)]
unsafe fn fetch<M, const V: usize>(inputs: &Inputs<M>, mode: u32, at: [i64; 4]) -> [Loaded; 3]
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

/// Whether results are worked out by words: the op is one of truths or a choice, and its operands have elements of one
/// size, of which a word has several.
const fn whole_words<M: Map>() -> bool {
    let size = size_of::<M::A>();
    let alike = (M::OPERANDS < 2 || size_of::<M::B>() == size) && (M::OPERANDS < 3 || size_of::<M::C>() == size);
    (M::LOGICAL || M::SELECTS) && size <= 2 && alike
}

/// Formulas and store of an op for which [`whole_words`].
///
/// # Safety
/// `y` is valid for writing at the place, and aligned to what is written there.
#[inline(always)]
unsafe fn finish_words<M, const V: usize>(
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
        let target = y.offset(place.first as isize).cast();
        if place.is_vector { memory::store(target, results, V) } else { memory::store(target, results, 1) }
    }
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
    let a = lanes::<M::A, V>(a, inputs.words[0]);
    let b = if M::OPERANDS > 1 { lanes::<M::B, V>(b, inputs.words[1]) } else { [absent::<M::B>(); V] };
    let c = if M::OPERANDS > 2 { lanes::<M::C, V>(c, inputs.words[2]) } else { [absent::<M::C>(); V] };
    let mut results = [<M::R as Element>::Compute::ZERO; V];
    if M::RANDOM {
        let first = inputs.draw.first + place.first as u64;
        // Of this evaluation, nothing remains but what it asks of the words.
        let words = random::words::<V>(&inputs.draw.blocks, first, |i, bits| _ = map.map_drawn(a[i], b[i], c[i], bits));
        unroll!(i < V => { results[i] = map.map_drawn(a[i], b[i], c[i], words[i].into()); });
    } else {
        unroll!(i < V => { results[i] = map.map(a[i], b[i], c[i]); });
    }
    // SAFETY: the caller's contract.
    unsafe {
        let target = y.offset(place.first as isize);
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

/// Bools by the truth table of [`Map::LOGICAL`], as many at a time as a word has elements: the compiler folds the formula of
/// constants, and what remains are a few operations on words.
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

/// Offsets of element `i` of tensors that all lie alike, but for operands that are one value.
#[inline(always)]
pub(crate) fn alike(i: u64, mode: u32) -> [i64; 4] {
    let of = |k: u32| if mode & (ONCE << k) != 0 { 0 } else { i as i64 };
    [i as i64, of(0), of(1), of(2)]
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
        finish::<M, V>(inputs, loaded[0], Place { first: near[0], is_vector: true }, y, map);
        finish::<M, V>(inputs, loaded[1], Place { first: far[0], is_vector: true }, y, map);
    }
}

/// A thread one vector of `V` elements, or two in the first blocks, as [`TWO_SHIFT`] says; the `head` elements before
/// the first aligned one and those after the last whole vector are done one by one by the threads that follow.
///
/// # Safety
/// Each operand is one value, as `mode` says, or valid for `n` elements and equal to `y` or disjoint from it; `y` is valid
/// for `n` elements. `head <= n`, and from there on all that are not one value are aligned to `V` of their elements.
/// Blocks that have two vectors a thread have no thread without, and no operand is one value then.
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
        // SAFETY: the vector ends at or before n, the single element is below; the caller's contract.
        unsafe {
            let loaded = fetch::<M, V>(inputs, how, alike(first, mode));
            finish::<M, V>(inputs, loaded, Place { first: first as i64, is_vector }, y, map);
        }
    }
}

/// Where results go.
struct Place {
    /// The first one's.
    first: i64,
    /// Whether there is a vector of them, or this one alone.
    is_vector: bool,
}

/// Element `i` of those that lie before and behind whole vectors, `head` of them before.
#[inline(always)]
pub(crate) fn single<const V: usize>(i: u32, head: u32, vectors: u32) -> u64 {
    if i < head { i as u64 } else { i as u64 + vectors as u64 * V as u64 }
}

/// [`ONCE`] for each operand.
const ALL: u32 = (ONCE << MAX_OPERANDS) - ONCE;

/// The `mode` that reads one element of each operand that did not come with the call.
#[inline(always)]
pub(crate) fn one_each(mode: u32) -> u32 {
    let numbers = mode & ALL << WORD_SHIFT;
    numbers | ALL & !(numbers >> WORD_SHIFT)
}

/// A thread one item of `V` elements of the innermost dimension, found by `steps`, which has the strides of the result
/// and, behind them, of the operands, or two items in the first blocks, as [`TWO_SHIFT`] says.
///
/// # Safety
/// Blocks that have two items a thread have no thread without, and no operand is one value then. There are threads
/// enough for all items. For each of `items < 2^31` items, the place that `steps` finds in `y` is valid for writing `V`
/// elements and aligned to them, that in each operand likewise for reading, or for one element where `mode` says that it
/// is one for all `V`. No element of `y` belongs to two items, and one that is also an operand's belongs to the same item
/// there.
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
        let at: [i64; 4] = place(steps, item);
        // SAFETY: item < items; the caller's contract.
        unsafe {
            let loaded = fetch::<M, V>(inputs, inputs.mode, at);
            finish::<M, V>(inputs, loaded, Place { first: at[0], is_vector: true }, y, map);
        }
    }
}

/// A thread one item, which is a group of single elements, as `groups` says. Of one that ends early, the first element is
/// worked out again in place of those that there are not.
///
/// # Safety
/// There are threads enough for all items. The places of each of `items < 2^31` groups are valid in `y` for writing, and in
/// each operand for reading, one element. No element of `y` belongs to two groups, and one that is also an operand's is the
/// same of the same group there.
#[inline(always)]
pub unsafe fn grouped<M, const N: usize>(inputs: &Inputs<M>, y: *mut M::R, groups: &Groups<N>, items: u32, map: M)
where
    M: Map<A: Packed, B: Packed, C: Packed, R: Packed>,
{
    let item = thread::index_1d();
    if item >= items {
        return;
    }
    let at = places(groups, item);
    // SAFETY: item < items; the caller's contract.
    unsafe {
        // All under way at once: loads of one element are too short for one to fill the time.
        let mut loaded = [[Loaded::NONE; 3]; GROUP];
        let mut results = [0; GROUP];
        unroll!(at most 4: k < GROUP => {
            loaded[k] = fetch::<M, 1>(inputs, inputs.mode, at[k]);
            results[k] = at[k][0];
        });
        // One copy of the formula, which the assembler, who sees the count, repeats if it is short; what is loaded moves
        // up, for an index would be one into local memory.
        let mut left = thread::opaque(GROUP as u32);
        loop {
            finish::<M, 1>(inputs, loaded[0], Place { first: results[0], is_vector: true }, y, map);
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

/// Offsets of items in `N` tensors, zeros behind them.
#[inline(always)]
fn row_places<const N: usize, const D: usize, const ITEMS: usize>(
    steps: &Steps<N, D>,
    mut items: [u32; ITEMS],
) -> [[i64; 4]; ITEMS] {
    let mut at = [[0_i32; 4]; ITEMS];
    take(steps, 0, &mut items, &mut at);
    unroll!(at most 8: d < D => {
        if d > 0 && (d as u32) < steps.splits {
            take(steps, d, &mut items, &mut at);
        }
    });
    unroll!(at most 4: i < ITEMS => { outermost(steps, items[i], &mut at[i]); });
    at.map(|at| at.map(i64::from))
}

/// Offsets of the elements of a group in `N` tensors, zeros behind them. Every index is a constant, so that nothing goes
/// to local memory.
#[inline(always)]
fn places<const N: usize>(groups: &Groups<N>, item: u32) -> [[i64; 4]; GROUP] {
    let steps = &groups.steps;
    let (mut rest, mut first, mut along) = (item, [0_i32; 4], 0);
    'dims: {
        unroll!(at most 8: d < SPLITS => {
            // Few have more: those of them leave at the first question.
            if d > 0 && d as u32 >= steps.splits {
                break 'dims;
            }
            let (next, index) = steps.inner[d].size.divide(rest);
            unroll!(at most 4: k < N => { first[k] += index as i32 * steps.inner[d].strides[k]; });
            if groups.divided == d as u32 {
                along = index;
            }
            rest = next;
        });
    }
    unroll!(at most 4: k < N => { first[k] += rest as i32 * steps.outer[k]; });
    if groups.divided == steps.splits {
        along = rest;
    }
    let mut at = [first; GROUP];
    unroll!(at most 4: i < GROUP => {
        let further = if i > 0 && along < groups.ends[i - 1] { i as i32 } else { 0 };
        unroll!(at most 4: k < N => { at[i][k] += further * groups.apart[k]; });
    });
    at.map(|at| at.map(i64::from))
}

/// Takes dimension `d`, a constant.
#[inline(always)]
fn take<const N: usize, const D: usize, const ITEMS: usize>(
    steps: &Steps<N, D>,
    d: usize,
    rest: &mut [u32; ITEMS],
    at: &mut [[i32; 4]; ITEMS],
) {
    unroll!(at most 4: i < ITEMS => {
        let (next, index) = steps.inner[d].size.divide(rest[i]);
        unroll!(at most 4: k < N => { at[i][k] += index as i32 * steps.inner[d].strides[k]; });
        rest[i] = next;
    });
}

#[inline(always)]
fn outermost<const N: usize, const D: usize>(steps: &Steps<N, D>, rest: u32, at: &mut [i32; 4]) {
    unroll!(at most 4: k < N => { at[k] += rest as i32 * steps.outer[k]; });
}

/// Offsets of an item in `N` tensors, zeros behind them. Every index is a constant, so that nothing goes to local memory.
#[inline(always)]
pub(crate) fn place<const N: usize, const D: usize, const T: usize>(steps: &Steps<N, D>, item: u32) -> [i64; T] {
    let mut at = [0_i32; T];
    let mut rest = item;
    unroll!(at most 8: d < D => {
        if d == 0 || (d as u32) < steps.splits {
            let (next, index) = steps.inner[d].size.divide(rest);
            unroll!(at most 8: k < N => { at[k] += index as i32 * steps.inner[d].strides[k]; });
            rest = next;
        }
    });
    unroll!(at most 8: k < N => { at[k] += rest as i32 * steps.outer[k]; });
    at.map(i64::from)
}
