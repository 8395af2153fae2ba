//! Kernels of formulas that reduce over rows: the last dimension of their operands.
//!
//! A row has `threads` threads, by [`pointwise_core::rows::threads`]: a part of a warp, a warp, or a block. In the `held` kernel
//! they load the row once and keep it in registers; in the `staged` kernel, too, of rows that are no aligned vectors: by way of
//! shared memory. In the `streamed` kernel they read it once for each round: rows that are too long for registers, by vectors, from shared
//! memory where the row fits it; and rows that are no aligned vectors and not staged, by single elements. All reduce by the same tree.
//!
//! A result may be an operand's very memory: the threads of a row have read what they need of it before they write.
//! Otherwise all tensors are disjoint.
//!
//! The gradients of weights are sums over rows: [`sums`]. `fold` adds their chunks.

mod elements;
mod fold;
mod part;
mod reduce;
mod staged;
mod sums;

use pointwise_core::launch::{ROW_SPLITS, Steps};
use pointwise_core::rows::{
    KEPT, MAX_THREADS, RowData, RowOp, SINGLES, WARP, all_of_row, counted_tensors, is_crowded, keeps, most_threads,
};

pub use self::fold::fold;
use self::part::{Part, all};
pub use self::sums::{Chunks, held_sum, streamed_sum};
use crate::formula::Tensors;
use crate::packed::Packed;
use crate::thread;

/// The rows of a launch.
#[derive(Clone, Copy)]
pub struct Shape {
    /// The number of rows.
    pub rows: u32,
    /// The elements of each.
    pub len: u32,
    /// The threads of each.
    pub threads: u32,
}

impl Shape {
    /// Returns the index of the row that the thread works on, and the thread's index among those of the row.
    #[inline(always)]
    fn place(self) -> (u32, u32) {
        let (block, thread) = (thread::block_idx_x(), thread::thread_idx_x());
        // More than a warp are all of the block; fewer are a power of two.
        if self.threads > WARP {
            return (block, thread);
        }
        let log = self.threads.trailing_zeros();
        (block * (thread::block_dim_x() >> log) + (thread >> log), thread & (self.threads - 1))
    }

    /// Returns the index of the thread's row among those of the block.
    #[inline(always)]
    fn slot(self) -> u32 {
        if self.threads > WARP { 0 } else { thread::thread_idx_x() >> self.threads.trailing_zeros() }
    }
}

/// Reads the rows once. Each thread has up to `V` vectors of `L` elements.
///
/// # Safety
/// `steps` leads to the first element of each of `rows < 2^31` rows, from the first elements of the `T` tensors: the results,
/// then the operands. There, each operand is a number, as `mode` says, or valid for `len` elements, or for one if it is
/// [`ONCE`]. Results are valid for writing `len` elements, or one if the row has one. `len` is a multiple of `L`, and all that
/// is read and written by vectors is aligned to them. A result is equal to an operand or disjoint from it, and
/// disjoint from the other results and rows. A row has `threads` threads, a power of two or whole warps; a block has whole
/// rows, one if they are more than a warp. They have at least `len` elements together. The module declares `pointwise_rows`.
#[inline(always)]
pub unsafe fn held<E, O, const N: usize, const R: usize, const T: usize, const L: usize, const V: usize>(
    tensors: &Tensors<N, R>,
    steps: &Steps<T, ROW_SPLITS>,
    shape: Shape,
    op: O,
) where
    E: Packed,
    O: RowData + RowOp<f32, N, R>,
{
    if const { is_crowded(&O::INFO, L, V) } {
        thread::at_most_registers::<72>();
    } else if const { O::INFO.properties.few_registers } && L > 4 {
        thread::at_most_registers::<64>();
    } else if const { !O::INFO.properties.of_family || counted_tensors(&O::INFO) > 3 } {
        few_registers::<O>();
    }
    let place = shape.place();
    // SAFETY: the caller's contract.
    let part = unsafe { Part::<O, N, R, false>::new::<E, T, L>(tensors, steps, shape, place, op) };
    // SAFETY: as above.
    let held = unsafe { part.load::<E, L, V, true>(part.thread, all::<N>()) };
    let row = part.reduce::<E, L, V>(&held, shape.len, None);
    // SAFETY: the caller's contract. Before an element is overwritten that it reads.
    unsafe {
        part.write_of_row::<E>(&row);
        part.write::<E, L, V>(&part.again::<L, V>(&held, &row, O::ROUNDS.len()), &row, part.thread);
    }
}

/// [`held`] of rows that are no aligned vectors, by way of shared memory.
///
/// # Safety
/// The conditions of [`held`], but for `len`, which may be any, and alignment: tensors are aligned to elements. A block has
/// [`staged_result`](pointwise_core::rows::staged_result) of shared memory for all tensors of each of its rows.
#[inline(always)]
pub unsafe fn staged<E, O, const N: usize, const R: usize, const T: usize, const L: usize, const V: usize>(
    tensors: &Tensors<N, R>,
    steps: &Steps<T, ROW_SPLITS>,
    shape: Shape,
    op: O,
) where
    E: Packed,
    O: RowData + RowOp<f32, N, R>,
{
    if const { !O::INFO.properties.of_family || counted_tensors(&O::INFO) > 3 } {
        few_registers::<O>();
    }
    let place = shape.place();
    // SAFETY: the caller's contract.
    let part = unsafe { Part::<O, N, R, false>::new::<E, T, L>(tensors, steps, shape, place, op) };
    // SAFETY: as above.
    let held = unsafe { part.load_staged::<E, L, V>(shape) };
    // SAFETY: as above.
    let row = unsafe { part.reduce_staged::<E, L, V>(&held, shape) };
    // SAFETY: the caller's contract. Before an element is overwritten that it reads.
    unsafe {
        part.write_of_row::<E>(&row);
        if const { !all_of_row(&O::INFO) } {
            part.write_staged::<E, L, V>(&held, &row, shape);
        }
    }
}

/// Reads the rows once for each round, `V` vectors at a time; with [`KEPT`] from shared memory, to which it copies each row first.
///
/// # Safety
/// The conditions of [`held`], but for the number of threads; with [`SINGLES`] any `len`, and any alignment of elements. With [`KEPT`]
/// a block has one row, and [`kept_bytes`](pointwise_core::rows::kept_bytes) of shared memory for all operands.
#[inline(always)]
pub unsafe fn streamed<E, O, const N: usize, const R: usize, const T: usize, const L: usize, const V: usize>(
    tensors: &Tensors<N, R>,
    steps: &Steps<T, ROW_SPLITS>,
    shape: Shape,
    op: O,
) where
    E: Packed,
    O: RowData + RowOp<f32, N, R>,
{
    if const { !O::INFO.properties.of_family } {
        few_registers::<O>();
    }
    let place = shape.place();
    // SAFETY: the caller's contract.
    let mut part = unsafe { Part::<O, N, R, true>::new::<E, T, L>(tensors, steps, shape, place, op) };
    let is_single = tensors.mode & SINGLES != 0;
    if const { keeps::<O>() } && tensors.mode & KEPT != 0 {
        // SAFETY: as above.
        unsafe { part.keep::<E, L>() };
    }
    // SAFETY: as above.
    let row = unsafe { part.reduce_streamed::<E, L, V>(shape.len, is_single) };
    // SAFETY: the caller's contract. Before an element is overwritten that it reads.
    unsafe { part.write_of_row::<E>(&row) };
    if const { all_of_row(&O::INFO) } {
        return;
    }
    if is_single {
        // SAFETY: the caller's contract.
        unsafe { part.write_singles::<E, false>(&row, tensors, 0, false) };
        return;
    }
    let mut index = part.thread;
    while index < part.len.div_ceil(L as u32) {
        thread::no_unrolling();
        // SAFETY: the caller's contract.
        unsafe {
            let held = part.load::<E, L, V, true>(index, all::<N>());
            part.write::<E, L, V>(&held, &row, index);
        }
        index += shape.threads * V as u32;
    }
}

/// Keeps a block of the most threads within a multiprocessor's registers.
///
/// The assembler takes fewer registers where it knows no limit, and more threads fit. The family's streamed kernels and its held ones of up
/// to three tensors stay below the limit so, which the table of registers shows. Held ones of more gain by more loads under way.
#[inline(always)]
fn few_registers<O: RowData>() {
    if const { most_threads(counted_tensors(&O::INFO)) == MAX_THREADS } {
        thread::at_most_registers::<128>();
    }
}
