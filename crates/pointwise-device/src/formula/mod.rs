//! Kernels of formulas: `y0[i], .. = op(x0[i], ..)` for any number of operands and results, broadcast. Operands have
//! elements `E`, results `F`; any of them may be a bool.
//!
//! [`flat`]: every operand lies like the results or is one value. [`tiled`]: the innermost dimension of each operand is
//! contiguous or one value; with vectors of one element it takes any layout. [`grouped`] takes any layout of few
//! tensors, by single elements, and operands that are one value along each row, by vectors across the ends of rows.
//! [`table`] looks up results, for one operand and one result of a byte each.
//!
//! A result may be an operand's very memory: a thread loads all its operands before its first store, and no load takes
//! the read-only path. Otherwise all tensors are disjoint, also the results from each other.

mod angle;
mod body;
mod operand;
mod places;
mod short;
mod table;
mod words;

pub use body::{body, loaded};
pub(crate) use operand::{Loaded, lanes, load, splat, takes_numbers};
pub(crate) use places::{Places, place};
pub use table::table;

use pointwise_core::formula::{Formula, OpData, goes_across, takes_turns};
use pointwise_core::launch::{ACROSS, GROUP, Groups, NUMBER, ONCE, PASSING, SPLITS, Steps, how};
use pointwise_core::philox::MAX_RANDOM_WORDS;
use pointwise_core::{At, Draw, Logic, Value};

use crate::element::Bool;
use crate::memory;
use crate::packed::{self, Packed, unroll};
use crate::random;
use crate::stored;
use crate::thread;
use operand::{address, arguments, fetch, numbers_alone, one_each, with_next};
use places::{group_places, single};

/// The tensors of a launch.
pub struct Tensors<const N: usize, const R: usize> {
    /// The results' first elements.
    pub results: [*mut u8; R],
    /// The operands' first elements; not read if the operand is a number.
    pub operands: [*const u8; N],
    /// Operands that came with the call, as words of the compute type.
    pub words: [u64; N],
    /// The way to read each operand: [`pointwise_core::launch::how`].
    pub mode: u32,
    /// The place of the first element; only ops that draw random words or take indices read it.
    pub draw: Draw,
}

impl Tensors<1, 1> {
    /// Returns an operand and a result of an op that does not know its elements' places; the operand is no number.
    #[inline(always)]
    pub const fn of_one(x: *const u8, y: *mut u8, mode: u32) -> Self {
        Tensors { results: [y], operands: [x], words: [0], mode, draw: Draw::NONE }
    }
}

/// Evaluates the formula, and stores the results.
///
/// # Safety
/// Results are valid at the places for writing `V` elements, or one if `is_vector` is false, and aligned to them.
#[inline(always)]
unsafe fn finish_lanes<E, F, O, const N: usize, const R: usize, const V: usize>(
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
    let (values, truths) = arguments::<E, O, N, V>(loaded, &tensors.words);
    // SAFETY: the caller's contract.
    unsafe { finish_values::<E, F, O, N, R, V>(tensors, values, truths, at, is_vector, op) }
}

/// [`finish_lanes`] for operands that are lanes already.
///
/// # Safety
/// The conditions of [`finish_lanes`].
#[inline(always)]
unsafe fn finish_values<E, F, O, const N: usize, const R: usize, const V: usize>(
    tensors: &Tensors<N, R>,
    values: [[E::Compute; N]; V],
    truths: [[bool; N]; V],
    at: [i64; R],
    is_vector: bool,
    op: O,
) where
    E: Packed,
    F: Packed,
    O: OpData + Formula<E::Compute, N, R, F::Compute>,
{
    let mut results = [[F::Compute::ZERO; V]; R];
    let mut answers = [[Logic(false); V]; R];
    let mut index = [[0; 3]; V];
    if const { O::INFO.indices > 0 } {
        let mut at = tensors.draw.index(at[0] as u64);
        unroll!(i < V => {
            index[i] = at;
            at = tensors.draw.next(at);
        });
    }
    let mut words = [[0; V]; MAX_RANDOM_WORDS];
    if const { O::INFO.is_random() } {
        // The results are contiguous: an element's place is its index. Only the questions to the words remain of this
        // evaluation.
        words = random::all_words::<V>(
            const { O::INFO.random },
            &tensors.draw,
            at[0] as u64,
            #[inline(always)]
            |i, words| _ = op.apply(values[i], truths[i], At { words, index: index[i] }),
        );
    }
    unroll!(i < V => {
        let (of_type, of_bool) = op.apply(values[i], truths[i], At::new([words[0][i], words[1][i]], index[i]));
        unroll!(at most 8: k < R => {
            results[k][i] = of_type[k];
            answers[k][i] = Logic(of_bool[k]);
        });
    });
    if const { O::INFO.has_stored() } {
        // SAFETY: the caller's contract.
        unsafe { stored::put_all::<F, O, N, R, V>(tensors, at, (results, answers), is_vector) };
        return;
    }
    unroll!(at most 8: k < R => {
        // SAFETY: the caller's contract.
        unsafe {
            if const { O::INFO.bool_results() } >> k & 1 == 1 {
                put::<Bool, V>(tensors.results[k], at[k], answers[k], is_vector);
            } else {
                put::<F, V>(tensors.results[k], at[k], results[k], is_vector);
            }
        }
    });
}

/// Returns the address of a result's element, `at` elements behind its first.
#[inline(always)]
fn target<E>(first: *mut u8, at: i64) -> *mut E {
    first.wrapping_offset(at as isize * size_of::<E>() as isize).cast()
}

/// Stores a whole vector, or its first element.
///
/// # Safety
/// `first`, `at` elements on, is valid for writing as many, and aligned to them.
#[inline(always)]
pub(crate) unsafe fn put<E: Packed, const V: usize>(first: *mut u8, at: i64, lanes: [E::Compute; V], is_vector: bool) {
    let target = target::<E>(first, at);
    // SAFETY: the caller's contract.
    unsafe {
        if is_vector {
            packed::store::<E, V>(target, lanes);
        } else {
            packed::store::<E, 1>(target, [lanes[0]]);
        }
    }
}

/// Evaluates the formula and stores the results, by whole words if the op allows it.
///
/// # Safety
/// The conditions of [`finish_lanes`].
#[inline(always)]
unsafe fn finish<E, F, O, const N: usize, const R: usize, const V: usize>(
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
    // SAFETY: the caller's contract.
    unsafe {
        if const { words::serve::<E, F, O>() } {
            words::finish::<E, F, O, N, R, V>(tensors, loaded, at, is_vector, op);
        } else {
            finish_lanes::<E, F, O, N, R, V>(tensors, loaded, at, is_vector, op);
        }
    }
}

/// Returns the places of the `i`-th element behind others.
#[inline(always)]
fn behind<const N: usize, const R: usize, const IN_ROWS: bool>(
    tensors: &Tensors<N, R>,
    mode: u32,
    mut at: Places<N, R>,
    i: u32,
) -> Places<N, R> {
    if IN_ROWS {
        unroll!(at most 8: k < R => { at.results[k] += i as i64; });
        unroll!(at most 12: k < N => { at.operands[k] += if how(mode, k as u32) == ONCE { 0 } else { i as i64 }; });
        at
    } else {
        // Inside the loop on purpose: outside, offsets and modes would hold registers.
        let [first, mode] = [at.results[0] as u64, tensors.mode as u64].map(thread::worked_out_here);
        Places::alike(first + i as u64, mode as u32)
    }
}

/// Evaluates the formula for a loaded vector, and stores all results or the first. `IN_ROWS` is true in kernels with
/// 32-bit offsets.
///
/// # Safety
/// At the places, the operands meet the conditions of [`load`] for `mode`, and the results meet the conditions of
/// [`finish_lanes`].
#[inline(always)]
unsafe fn work<E, F, O, const N: usize, const R: usize, const V: usize, const IN_ROWS: bool>(
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
    if const { O::INFO.properties.few_registers } {
        if size_of::<E>() == 4 { thread::at_most_registers::<32>() } else { thread::at_most_registers::<48>() }
    }
    // SAFETY: the caller's contract.
    unsafe {
        if const { short::serves::<E, O>() } {
            short::run::<E, F, O, N, R, V, IN_ROWS>(tensors, mode, at, is_vector, loaded, op);
        } else if const { angle::serves::<E, O>() && V > 1 } {
            angle::run::<E, F, O, N, R, V, IN_ROWS>(tensors, mode, at, is_vector, loaded, op);
        } else {
            finish::<E, F, O, N, R, V>(tensors, loaded, at.results, is_vector, op);
        }
    }
}

/// Each thread computes one vector of `V` elements, or several in turn if the op [`takes_turns`]. The threads that
/// follow compute, one by one, the `head` elements before the first aligned one and the elements after the last whole
/// vector.
///
/// # Safety
/// Each operand is a number or one value, as `mode` says, or valid for `n` elements, and equal to or disjoint from each
/// result; results are valid for writing `n` elements, and disjoint from each other. `head <= n`, and from there on all
/// that are not one value are aligned to `V` of their elements. If threads have vectors in turn, an operand of more
/// than one element is neither a number nor one value.
#[inline(always)]
pub unsafe fn flat<E, F, O, const N: usize, const R: usize, const V: usize>(
    tensors: &Tensors<N, R>,
    n: u64,
    head: u32,
    op: O,
) where
    E: Packed,
    F: Packed,
    O: OpData + Formula<E::Compute, N, R, F::Compute>,
{
    let (i, mode) = (thread::index_1d(), tensors.mode);
    let vectors = ((n - head as u64) / V as u64) as u32;
    let singles = (n - vectors as u64 * V as u64) as u32;
    if const { takes_turns(&O::INFO, size_of::<E>()) } {
        // SAFETY: the caller's contract.
        unsafe { in_turns::<E, F, O, N, R, V>(tensors, [vectors, singles, head], op) }
    } else if i < vectors + singles {
        let is_vector = i < vectors;
        let first = if is_vector { head as u64 + i as u64 * V as u64 } else { single::<V>(i - vectors, head, vectors) };
        let how = if is_vector { mode } else { one_each::<N>(mode) };
        // SAFETY: the vector ends at or before n, the single element is below; the caller's contract.
        unsafe {
            let at = Places::alike(first, mode);
            let loaded = fetch::<E, O, N, R, V>(tensors, how, &at);
            work::<E, F, O, N, R, V, false>(tensors, how, at, is_vector, &loaded, op);
        }
    }
}

/// Computes the vectors and single elements of [`flat`], a grid's width apart for each thread. The next vector is on
/// its way while the last is computed. A thread checks nothing but that a vector exists: all work besides a long
/// formula counts.
///
/// # Safety
/// The conditions of [`flat`], and: the operand is neither a number nor one value.
#[inline(always)]
unsafe fn in_turns<E, F, O, const N: usize, const R: usize, const V: usize>(
    tensors: &Tensors<N, R>,
    [vectors, singles, head]: [u32; 3],
    op: O,
) where
    E: Packed,
    F: Packed,
    O: OpData + Formula<E::Compute, N, R, F::Compute>,
{
    const { assert!(N == 1 && R == 1 || !takes_turns(&O::INFO, size_of::<E>())) }
    if const { O::INFO.properties.of_family } {
        thread::at_most_registers::<32>();
    }
    let apart = thread::grid_dim_x() * thread::block_dim_x();
    let vector = size_of::<E>() * V;
    // Computed once, not for each vector. The index is opaque, as the compiler would keep it in two parts.
    let source = thread::worked_out_here(address::<E>(tensors.operands[0], head as i64) as u64) as *const u8;
    let mut i = thread::opaque(thread::index_1d());
    let place = |i: u32| source.wrapping_add(i as usize * vector);
    let may_pass = const { operand::may_pass::<E, F, O>() };
    let passing = tensors.mode & PASSING;
    // SAFETY: the caller's contract: the vector ends at or before n.
    let load = |i: u32| unsafe {
        if may_pass {
            memory::load_as(place(i), vector, size_of::<E>(), passing).vector
        } else {
            memory::load(place(i), vector)
        }
    };
    // SAFETY: as above, where there is a vector.
    let load_if = |i: u32, is_there: bool| unsafe {
        if may_pass {
            let how = if is_there { passing } else { NUMBER };
            memory::load_as(place(i), vector, size_of::<E>(), how).vector
        } else {
            memory::load_here_if(place(i), vector, is_there as u32)
        }
    };
    // SAFETY: a vector ends at or before n, the single element is below; the caller's contract.
    unsafe {
        if i < vectors {
            let mut bits = load(i);
            loop {
                thread::no_unrolling();
                let next = i + apart;
                let more = next < vectors;
                let coming = load_if(next, more);
                let at = Places::alike(head as u64 + i as u64 * V as u64, 0);
                work::<E, F, O, N, R, V, false>(tensors, 0, at, true, &[Loaded::vector(bits); N], op);
                (i, bits) = (next, coming);
                if !more {
                    break;
                }
            }
        }
        if i < vectors + singles {
            let at = single::<V>(i - vectors, head, vectors) as i64;
            let bits = memory::load(address::<E>(tensors.operands[0], at), size_of::<E>());
            finish::<E, F, O, N, R, 1>(tensors, &[Loaded::vector(bits); N], [at; R], true, op);
        }
    }
}

/// Each thread computes one vector of `V` elements along the innermost dimension. `steps` leads there from the first
/// elements of the `T` tensors: the results, then the operands.
///
/// # Safety
/// There are enough threads for all items. For each of `items < 2^31` items, each operand is a number, or valid for `V`
/// elements there, or for one if `mode` says that it is one value, and equal to or disjoint from each result there;
/// results are valid for writing `V` elements, and disjoint from each other. No element of a result belongs to two
/// items. All are aligned to what is read and written at once.
#[inline(always)]
pub unsafe fn tiled<E, F, O, const N: usize, const R: usize, const T: usize, const V: usize, const D: usize>(
    tensors: &Tensors<N, R>,
    steps: &Steps<T, D>,
    items: u32,
    op: O,
) where
    E: Packed,
    F: Packed,
    O: OpData + Formula<E::Compute, N, R, F::Compute>,
{
    let item = thread::index_1d();
    if item < items {
        // SAFETY: item < items; the caller's contract.
        unsafe {
            let at = place(steps, item);
            let loaded = fetch::<E, O, N, R, V>(tensors, tensors.mode, &at);
            work::<E, F, O, N, R, V, true>(tensors, tensors.mode, at, true, &loaded, op);
        }
    }
}

/// Each thread computes one item of `groups`: a group of single elements. In a group that ends early, the first element
/// is computed again in place of the missing ones; in groups of one element, nothing is. With [`ACROSS`] an item is a
/// vector of `V` elements: see [`across`].
///
/// # Safety
/// The conditions of [`tiled`] with vectors of one element, for each element of a group; or the conditions of
/// [`across`].
#[inline(always)]
pub unsafe fn grouped<E, F, O, const N: usize, const R: usize, const T: usize, const V: usize>(
    tensors: &Tensors<N, R>,
    groups: &Groups<T>,
    items: u32,
    op: O,
) where
    E: Packed,
    F: Packed,
    O: OpData + Formula<E::Compute, N, R, F::Compute>,
{
    // With the vectors, the assembler would take more registers than single elements need. 16-bit integers would spill.
    let is_bounded = const { O::INFO.properties.of_family };
    if is_bounded && const { goes_across(&O::INFO) && E::DTYPE.is_float() && size_of::<E>() > 1 } {
        if T > 3 { thread::at_most_registers::<40>() } else { thread::at_most_registers::<32>() }
    }
    if const { goes_across(&O::INFO) && N == 2 && O::INFO.bool_operands() == 0 } && operand::is_column(tensors.mode) {
        // SAFETY: the caller's contract.
        return unsafe { column::<E, F, O, N, R, T, V>(tensors, &groups.steps, items, op) };
    }
    if const { goes_across(&O::INFO) } && tensors.mode & ACROSS != 0 {
        // SAFETY: the caller's contract.
        return unsafe { across::<E, F, O, N, R, T, V>(tensors, &groups.steps, items, op) };
    }
    let item = thread::index_1d();
    if item >= items {
        return;
    }
    let at = group_places::<N, R, T>(groups, item);
    let is_single = (groups.ends[0] == 0) as u32;
    // A number is not loaded, nor is an element that the thread does not work on.
    let others = if is_single == 1 { numbers_alone::<N>() } else { tensors.mode };
    // SAFETY: item < items; the caller's contract.
    unsafe {
        // All loads are under way at once: a load of one element is too short to fill the time.
        let mut loaded = [[Loaded::NONE; N]; GROUP];
        let mut results = [[0; R]; GROUP];
        unroll!(at most 4: k < GROUP => {
            loaded[k] = fetch::<E, O, N, R, 1>(tensors, if k == 0 { tensors.mode } else { others }, &at[k]);
            results[k] = at[k].results;
        });
        // One copy of the formula. The assembler sees the count, and repeats a short one. The loaded elements move up,
        // as an index would go to local memory.
        let mut left = thread::opaque(GROUP as u32);
        loop {
            finish::<E, F, O, N, R, 1>(tensors, &loaded[0], results[0], true, op);
            left -= 1;
            // Opaque, or the compiler makes a second copy of the formula, for groups of one element.
            if left == 0 || thread::opaque(is_single) == 1 {
                break;
            }
            unroll!(at most 3: k < GROUP - 1 => {
                loaded[k] = loaded[k + 1];
                results[k] = results[k + 1];
            });
        }
    }
}

/// [`across`] for two operands, the second of them one value along a row: threads check nothing else.
///
/// # Safety
/// The conditions of [`across`], and: `mode` [is a column's](operand::is_column).
#[inline(always)]
unsafe fn column<E, F, O, const N: usize, const R: usize, const T: usize, const V: usize>(
    tensors: &Tensors<N, R>,
    steps: &Steps<T, SPLITS>,
    items: u32,
    op: O,
) where
    E: Packed,
    F: Packed,
    O: OpData + Formula<E::Compute, N, R, F::Compute>,
{
    let item = thread::opaque(thread::index_1d());
    let vectors = items / V as u32;
    // SAFETY: the vector, or the element, is of the items; the caller's contract.
    unsafe {
        if item < vectors {
            let (at, left, farther) = operand::across(steps, operand::COLUMN, item * V as u32);
            let mut loaded = operand::with_column::<E, F, O, N, R, V>(tensors, &at);
            with_next::<E, O, N, R, V>(tensors, operand::COLUMN, &at, left, farther, &mut loaded);
            finish::<E, F, O, N, R, V>(tensors, &loaded, at.results, true, op);
        } else if item < vectors + items % V as u32 {
            let (at, ..) = operand::across(steps, operand::COLUMN, item + vectors * (V as u32 - 1));
            let loaded = operand::with_column::<E, F, O, N, R, 1>(tensors, &at);
            finish::<E, F, O, N, R, 1>(tensors, &loaded, at.results, true, op);
        }
    }
}

/// Each thread computes one vector of `V` elements of contiguous results, wherever rows end. An operand lies like the
/// results, or is one value along a row; then a vector has the values of one row or of two. The threads that follow
/// compute the elements behind the last whole vector, one by one.
///
/// # Safety
/// There are enough threads for all items, which are elements. The op [`goes_across`], and a row has at least `V`
/// items. Results are valid for writing `items < 2^31` elements one after another, aligned to `V` of them, and disjoint
/// from each other. An operand is a number; or [`ONCE`] in `mode`, and valid where `steps` lead, which is one place
/// along each row; or lies like the results, and is equal to or disjoint from each.
#[inline(always)]
unsafe fn across<E, F, O, const N: usize, const R: usize, const T: usize, const V: usize>(
    tensors: &Tensors<N, R>,
    steps: &Steps<T, SPLITS>,
    items: u32,
    op: O,
) where
    E: Packed,
    F: Packed,
    O: OpData + Formula<E::Compute, N, R, F::Compute>,
{
    let item = thread::index_1d();
    let vectors = items / V as u32;
    if item >= vectors + items % V as u32 {
        return;
    }
    let is_vector = item < vectors;
    let first = if is_vector { item * V as u32 } else { item + vectors * (V as u32 - 1) };
    let how = if is_vector { tensors.mode } else { one_each::<N>(tensors.mode) };
    let (at, left, farther) = operand::across(steps, tensors.mode, first);
    // SAFETY: the vector, or the element, is of the items; the caller's contract.
    unsafe {
        let mut loaded = fetch::<E, O, N, R, V>(tensors, how, &at);
        if is_vector {
            with_next::<E, O, N, R, V>(tensors, tensors.mode, &at, left, farther, &mut loaded);
        }
        finish::<E, F, O, N, R, V>(tensors, &loaded, at.results, is_vector, op);
    }
}
