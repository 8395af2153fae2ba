//! Kernels of ops of one to three operands, broadcast, `y[i] = op(a[i], b[i], c[i])`: three templates.
//!
//! [`flat`]: every operand lies like the result or is one value. [`tiled`]: the innermost dimension of each operand is
//! contiguous or one value. [`grouped`], by single elements: anything.
//!
//! An operand may be the result's very memory: a thread loads all its inputs before its first store, and no load takes
//! the read-only path. The host guarantees that they are otherwise disjoint.

mod leaky;
mod operand;
mod places;
mod short;
mod words;

pub(crate) use operand::{Loaded, lanes, load, one_each, splat};
pub(crate) use places::{alike, place, single};

use pointwise_core::launch::{GROUP, Groups, ROW_SPLITS, Steps, TWO_SHIFT};
use pointwise_core::map::{Map, absent};
use pointwise_core::{Draw, Element, Value};

use crate::memory;
use crate::packed::{self, Packed, unroll};
use crate::random;
use crate::thread;
use leaky::{in_pairs, leaky};
use operand::{fetch, uniform};
use places::{group_places, row_places};
use short::{one_by_one, short_results};
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
        if M::SHORT {
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
