//! Gradients of weights: sums over rows, in chunks.
//!
//! The threads of a row take the rows of a chunk in turn, and keep its sums in f32: in shared memory where the row is held, each
//! thread its own, as it has the same columns of all rows. Where it is streamed, they are behind the row that shared memory keeps, or in
//! global memory.

use core::arch::asm;

use pointwise_core::formula::OpData;
use pointwise_core::launch::{NUMBER, ROW_SPLITS, Steps};
use pointwise_core::rows::{
    KEPT, MAX_THREADS, RowData, RowOp, SINGLES, counted_tensors, most_threads, sum_bytes, sum_vectors,
};

use super::elements::Results;
use super::part::{Part, Span, all, kept_place, unpacks_again};
use super::reduce::Shared;
use super::{Shape, few_registers};
use crate::formula::Tensors;
use crate::memory;
use crate::packed::{Packed, unroll};
use crate::thread;

/// The chunks of rows that sums are made of.
#[derive(Clone, Copy)]
pub struct Chunks {
    /// The number of chunks.
    pub count: u32,
    /// The chunk of the launch's first row. The next row is of the next chunk.
    pub first: u32,
    /// The rows of launches before it, at most `count`.
    pub done: u32,
}

impl Chunks {
    /// Returns the launch's first row in a chunk.
    #[inline(always)]
    fn row(self, chunk: u32) -> u32 {
        if chunk < self.first { chunk + self.count - self.first } else { chunk - self.first }
    }

    /// True if a row of the launch is the first of its chunk.
    #[inline(always)]
    fn begins(self, row: u32) -> bool {
        self.done + row < self.count
    }
}

/// [`held`](super::held) of several rows in turn, with sums over the rows of each chunk.
///
/// # Safety
/// The conditions of [`held`](super::held), but for results that are gradients of weights. Of these each is valid for `chunks.count`
/// rows of `len` elements in f32, aligned to 16 bytes, and disjoint from all else. Each weight is the same for all rows. Launches
/// before this one have written the chunks whose rows are not all of this one. `chunks.count` is below 2^30. There are the threads of
/// `chunks.count` rows.
#[inline(always)]
pub unsafe fn held_sum<E, O, const N: usize, const R: usize, const T: usize, const L: usize, const V: usize>(
    tensors: &Tensors<N, R>,
    steps: &Steps<T, ROW_SPLITS>,
    shape: Shape,
    chunks: Chunks,
    op: O,
) where
    E: Packed,
    O: RowData + RowOp<f32, N, R>,
{
    // A block of the most threads, or two of 256, for each multiprocessor. In f32 many tensors take more registers.
    let is_roomy = const { most_threads(counted_tensors(&O::INFO)) == MAX_THREADS };
    if is_roomy || L > 4 {
        thread::at_most_registers::<128>();
    }
    // In 16 bits a row takes as long to compute as to load: the next one is under way meanwhile, and weights are loaded once.
    let is_ahead = L > 4 && is_roomy;
    let rows = InTurn::<O, N, R, T> { tensors, steps, shape, chunks, op };
    let weights = if is_ahead { const { O::INFO }.weight_operands as u32 } else { 0 };
    const {
        assert!(most_threads(counted_tensors(&O::INFO)) * sum_bytes(&O::INFO, 16 / L) <= SUMS_BYTES, "too many weights")
    };
    let mut turn = 0;
    // SAFETY: the caller's contract.
    let part = unsafe { rows.part::<E, L, false>(shape.place(), turn).with_once::<E, L>(tensors) };
    // SAFETY: as above.
    let (same, mut loaded) = unsafe {
        (
            part.load::<E, L, V, true>(part.thread, weights),
            part.load::<E, L, V, false>(part.thread, all::<N>() & !weights),
        )
    };
    let mut span = part.span;
    // A thread has the same columns of all rows.
    let (own, shared) = (own_totals::<O, L>(), Shared::new());
    // SAFETY: the caller's contract.
    unsafe { rows.begin::<L, V>(own, span.is_there) };
    // All threads of a block, and of a warp, take as many turns.
    while turn < shape.rows {
        thread::no_unrolling();
        let mut part = Part::<O, N, R, false> { span, op };
        let mut held = loaded;
        if !part.all_move() {
            // Read here: kept from the turn before they would take registers.
            // SAFETY: the caller's contract.
            let found = unsafe { rows.part::<E, L, false>(hidden(shape).place(), turn).with_once::<E, L>(tensors) };
            part.span.once = found.once;
            unroll!(at most 4: j < V => {
                unroll!(at most 12: k < N => {
                    if weights >> k & 1 == 0 {
                        held[j][k] = part.filled(k, held[j][k]);
                    }
                });
            });
        }
        turn += chunks.count;
        let mut next = (span, loaded);
        if is_ahead {
            // SAFETY: the caller's contract. No result of a row is an operand of another.
            next = unsafe { rows.load::<E, L, V>(turn, all::<N>() & !weights) };
        }
        unroll!(at most 4: j < V => {
            unroll!(at most 12: k < N => {
                if weights >> k & 1 == 1 {
                    held[j][k] = same[j][k];
                }
            });
        });
        let state = part.reduce::<E, L, V>(&held, shape.len, Some(shared));
        if const { unpacks_again::<O>(L, V) } {
            held = part.again::<L, V>(&held, &state, O::ROUNDS.len());
        }
        // SAFETY: the caller's contract. Before an element is overwritten that it reads.
        unsafe { part.write_of_row::<E>(&state) };
        unroll!(at most 4: j < V => {
            let first = (part.thread + j as u32 * part.threads) * L as u32;
            let results = part.results(&part.lanes::<E, L>(&held[j]), &state, first);
            if first < part.len {
                // SAFETY: what is stored is of the row; the caller's contract.
                unsafe { part.store::<E, L, true>(first, &results) };
                add_totals::<O, R, L>(own, j, &results);
            }
        });
        wait_for_answers::<O>();
        if !is_ahead {
            // SAFETY: as above.
            next = unsafe { rows.load::<E, L, V>(turn, all::<N>() & !weights) };
        }
        (span, loaded) = next;
    }
    // SAFETY: the caller's contract.
    unsafe { rows.end::<L, V>(own) };
}

/// The rows of a launch that sums over them.
struct InTurn<'a, O, const N: usize, const R: usize, const T: usize> {
    tensors: &'a Tensors<N, R>,
    steps: &'a Steps<T, ROW_SPLITS>,
    shape: Shape,
    chunks: Chunks,
    op: O,
}

impl<O, const N: usize, const R: usize, const T: usize> InTurn<'_, O, N, R, T>
where
    O: RowData + RowOp<f32, N, R>,
{
    /// Begins the thread's sums: with those of the launches before, if its first row is there and not the first of its chunk.
    ///
    /// # Safety
    /// The conditions of [`held_sum`].
    #[inline(always)]
    unsafe fn begin<const L: usize, const V: usize>(&self, own: u32, is_there: bool) {
        let Self { tensors, shape, chunks, .. } = *self;
        let (chunk, thread) = shape.place();
        let is_begun = is_there && !chunks.begins(chunks.row(chunk));
        unroll!(at most 8: k < R => {
            if const { O::INFO }.is_weight_result(k) {
                unroll!(at most 4: j < V => {
                    let column = (thread + j as u32 * shape.threads) * L as u32;
                    let at = sum_at(tensors, k, chunk, shape.len, column);
                    // SAFETY: the sums of the chunk; the caller's contract.
                    let begun = unsafe { load_sums::<L>(at, is_begun && column < shape.len) };
                    put_totals::<L>(own, slot::<O, L>(k, j), begun);
                });
            }
        });
    }

    /// Writes the thread's sums to its chunk's.
    ///
    /// # Safety
    /// The conditions of [`held_sum`].
    #[inline(always)]
    unsafe fn end<const L: usize, const V: usize>(&self, own: u32) {
        let Self { tensors, shape, chunks, .. } = *self;
        let (chunk, thread) = hidden(shape).place();
        if chunk < chunks.count && chunks.row(chunk) < shape.rows {
            unroll!(at most 8: k < R => {
                if const { O::INFO }.is_weight_result(k) {
                    unroll!(at most 4: j < V => {
                        let column = (thread + j as u32 * shape.threads) * L as u32;
                        let at = sum_at(tensors, k, chunk, shape.len, column);
                        if column < shape.len {
                            // SAFETY: the sums of the chunk; the caller's contract.
                            unsafe { store_sums::<L>(at, get_totals::<L>(own, slot::<O, L>(k, j))) };
                        }
                    });
                }
            });
        }
    }

    /// [`Part::at`] of the thread's chunk's row in a turn, a multiple of the number of chunks: by the chunk, and its index among the
    /// threads. There may be none.
    ///
    /// # Safety
    /// The conditions of [`held_sum`].
    #[inline(always)]
    unsafe fn part<E: Packed, const L: usize, const STREAMED: bool>(
        &self,
        (chunk, thread): (u32, u32),
        turn: u32,
    ) -> Part<O, N, R, STREAMED> {
        let row = if chunk < self.chunks.count { self.chunks.row(chunk) + turn } else { self.shape.rows };
        let tensors = &Tensors { mode: thread::opaque(self.tensors.mode), ..*self.tensors };
        // SAFETY: the caller's contract.
        unsafe { Part::at::<E, T>(tensors, self.steps, self.shape, (row, thread), self.op) }
    }

    /// [`InTurn::part`], and the vectors of some operands: [`Part::load`] that does not wait.
    ///
    /// # Safety
    /// The conditions of [`held_sum`].
    #[inline(always)]
    unsafe fn load<E: Packed, const L: usize, const V: usize>(
        &self,
        turn: u32,
        which: u32,
    ) -> (Span<N, R>, [[[u64; 2]; N]; V]) {
        // SAFETY: the caller's contract.
        unsafe {
            let part = self.part::<E, L, false>(hidden(self.shape).place(), turn);
            (part.span, part.load::<E, L, V, false>(part.thread, which))
        }
    }
}

/// [`streamed`](super::streamed) of several rows in turn, with sums over the rows of each chunk.
///
/// # Safety
/// The conditions of [`held_sum`], but for the number of threads; with [`SINGLES`] any `len`, and any alignment of elements. With [`KEPT`]
/// those of [`streamed`](super::streamed), and shared memory for a row of sums in f32 of each weight behind the operands.
#[inline(always)]
pub unsafe fn streamed_sum<E, O, const N: usize, const R: usize, const T: usize, const L: usize, const V: usize>(
    tensors: &Tensors<N, R>,
    steps: &Steps<T, ROW_SPLITS>,
    shape: Shape,
    chunks: Chunks,
    op: O,
) where
    E: Packed,
    O: RowData + RowOp<f32, N, R>,
{
    few_registers::<O>();
    let place = shape.place();
    let is_single = tensors.mode & SINGLES != 0;
    let rows = InTurn::<O, N, R, T> { tensors, steps, shape, chunks, op };
    // All threads of a block, and of a warp, take as many turns.
    let mut turn = 0;
    while turn < shape.rows {
        thread::no_unrolling();
        // SAFETY: the caller's contract.
        let mut part = unsafe { rows.part::<E, L, true>(place, turn).with_once::<E, L>(tensors) };
        let is_kept = tensors.mode & KEPT != 0;
        if is_kept {
            // SAFETY: as above.
            unsafe { part.keep::<E, L>() };
        }
        // SAFETY: as above.
        let state = unsafe { part.reduce_streamed::<E, L, V>(shape.len, is_single) };
        // SAFETY: the caller's contract. Before an element is overwritten that it reads.
        unsafe { part.write_of_row::<E>(&state) };
        let (chunk, _) = place;
        let row = chunks.row(chunk) + turn;
        let begins = chunks.begins(row);
        // The sums of a row that is kept are in shared memory between its chunk's first and last rows of the launch.
        let (is_first, is_last) = (turn == 0, row + chunks.count >= shape.rows);
        // SAFETY: what is stored is of the row, and the sums are of the chunk; the caller's contract.
        unsafe {
            if is_single {
                part.write_singles::<E, true>(&state, tensors, chunk, begins);
            } else {
                let mut index = part.thread;
                while index < part.len.div_ceil(L as u32) {
                    thread::no_unrolling();
                    let held = part.load::<E, L, V, true>(index, all::<N>());
                    unroll!(at most 4: j < V => {
                        let first = (index + j as u32 * part.threads) * L as u32;
                        let results = part.results(&part.lanes::<E, L>(&held[j]), &state, first);
                        if first < part.len {
                            part.store::<E, L, true>(first, &results);
                            unroll!(at most 8: k < R => {
                                if const { O::INFO }.is_weight_result(k) {
                                    let at = sum_at(tensors, k, chunk, shape.len, first);
                                    if is_kept {
                                        let own = kept_sums::<E, O>(k, shape.len)
                                            + const { quad_bytes(L) } as u32 * (index + j as u32 * part.threads);
                                        add_kept::<L>((at, own), shape.len, results.values[k], Turn { begins, is_first, is_last });
                                    } else {
                                        add_sums::<L>(at, results.values[k], !begins);
                                    }
                                }
                            });
                        }
                    });
                    index += shape.threads * V as u32;
                }
            }
        }
        wait_for_answers::<O>();
        turn += chunks.count;
    }
}

/// Returns the address of the sums of result `k`, in shared memory behind a row of `len` elements that is kept.
#[inline(always)]
fn kept_sums<E, O: OpData>(k: usize, len: u32) -> u32 {
    let before = O::INFO.weight_results as u32 & ((1 << k) - 1);
    kept_place::<E, O>(O::INFO.operands.len(), len) + before.count_ones() * len * 4
}

/// Returns the bytes of up to four sums of a vector of `lanes`, which lie together.
const fn quad_bytes(lanes: usize) -> usize {
    if lanes == 2 { 8 } else { 16 }
}

/// The turn of a row among those of its chunk.
#[derive(Clone, Copy)]
struct Turn {
    /// True for the first of the chunk.
    begins: bool,
    /// True for the first of the launch.
    is_first: bool,
    /// True for the last of the launch.
    is_last: bool,
}

/// Adds to `L` sums of a chunk: in shared memory, where each four of a vector lie beside those of the other vectors, but that the first
/// turn finds them in global memory, and the last leaves them there.
///
/// # Safety
/// Both places are aligned, and the sums' alone; the conditions of [`add_sums`].
#[inline(always)]
unsafe fn add_kept<const L: usize>((at, own): (*mut u8, u32), len: u32, parts: [f32; L], turn: Turn) {
    unroll!(at most 4: quad < L.div_ceil(4) => {
        let (at, own) = (at.wrapping_add(16 * quad), own + quad as u32 * (len / L as u32) * 16);
        // SAFETY: the caller's contract. A turn that is not the first reads what one before has written.
        unsafe {
            let bytes = const { quad_bytes(L) };
            let mut sums = floats(if turn.is_first {
                memory::load_or_zero(at, bytes, !turn.begins as u32)
            } else {
                memory::load_shared_or_zero(own, bytes, 1)
            });
            unroll!(at most 4: l < 4 => {
                if 4 * quad + l < L { sums[l] += parts[4 * quad + l]; }
            });
            let bits = words(sums);
            if turn.is_last {
                memory::store(at, bits, bytes);
            } else {
                memory::store_shared(own, bits, bytes);
            }
        }
    });
}

/// Returns the shape, but hides the number of threads from the compiler: what depends on it is computed again, and takes no
/// registers meanwhile.
#[inline(always)]
fn hidden(shape: Shape) -> Shape {
    Shape { threads: thread::opaque(shape.threads), ..shape }
}

/// The most bytes of `pointwise_sums`: what a block may have on every GPU, less `pointwise_rows`.
const SUMS_BYTES: u32 = 96 << 10;

/// Returns the place of vector `j` of result `k` in the thread's part of `pointwise_sums`.
#[inline(always)]
const fn slot<O: OpData, const L: usize>(k: usize, j: usize) -> usize {
    sum_vectors(&O::INFO, k, 16 / L) + j * L.div_ceil(4)
}

/// Adds the results of vector `j` to the thread's sums.
#[inline(always)]
fn add_totals<O: OpData, const R: usize, const L: usize>(own: u32, j: usize, results: &Results<R, L>) {
    unroll!(at most 8: k < R => {
        if const { O::INFO }.is_weight_result(k) {
            let slot = slot::<O, L>(k, j);
            let mut totals = get_totals::<L>(own, slot);
            unroll!(l < L => { totals[l] += results.values[k][l]; });
            put_totals::<L>(own, slot, totals);
        }
    });
}

/// Returns the address of the thread's sums in shared memory.
#[inline(always)]
fn own_totals<O: OpData, const L: usize>() -> u32 {
    let address: u32;
    // SAFETY: computes an address. Not where it is used: it stays in a register.
    unsafe {
        asm!("{{ .reg .u32 p; mov.u32 p, pointwise_sums; add.u32 {a}, p, {s}; }}", a = out(reg32) address,
            s = in(reg32) thread::thread_idx_x() * const { sum_bytes(&O::INFO, 16 / L) },
            options(nomem, nostack));
    }
    address
}

/// Reads `L` sums of the thread from `pointwise_sums`.
#[inline(always)]
fn get_totals<const L: usize>(own: u32, slot: usize) -> [f32; L] {
    let mut totals = [0.0; L];
    unroll!(at most 4: quad < L.div_ceil(4) => {
        // SAFETY: the slot is of `pointwise_sums`, which has [`sum_bytes`] for each thread of the block; the launch gives it.
        let four = floats(unsafe { memory::load_shared_or_zero(own + 16 * (slot + quad) as u32, 16, 1) });
        unroll!(at most 4: l < 4 => {
            if 4 * quad + l < L { totals[4 * quad + l] = four[l]; }
        });
    });
    totals
}

/// Writes `L` sums of the thread to `pointwise_sums`.
#[inline(always)]
fn put_totals<const L: usize>(own: u32, slot: usize, totals: [f32; L]) {
    unroll!(at most 4: quad < L.div_ceil(4) => {
        // SAFETY: the slot is of `pointwise_sums`, as above.
        unsafe { memory::store_shared(own + 16 * (slot + quad) as u32, words(four(&totals, quad)), 16) }
    });
}

/// Returns four of `L` numbers, with zeros behind the last.
#[inline(always)]
fn four<const L: usize>(all: &[f32; L], quad: usize) -> [f32; 4] {
    let mut four = [0.0; 4];
    unroll!(at most 4: l < 4 => {
        if 4 * quad + l < L { four[l] = all[4 * quad + l]; }
    });
    four
}

/// Returns the words of four numbers, as memory has them.
#[inline(always)]
fn words([a, b, c, d]: [f32; 4]) -> [u64; 2] {
    [[a, b], [c, d]].map(|[low, high]| low.to_bits() as u64 | (high.to_bits() as u64) << 32)
}

/// The inverse of [`words`].
#[inline(always)]
fn floats([a, b]: [u64; 2]) -> [f32; 4] {
    [a as u32, (a >> 32) as u32, b as u32, (b >> 32) as u32].map(f32::from_bits)
}

/// Returns the place of a chunk's sum, of result `k`.
#[inline(always)]
pub(super) fn sum_at<const N: usize, const R: usize>(
    tensors: &Tensors<N, R>,
    k: usize,
    chunk: u32,
    len: u32,
    column: u32,
) -> *mut u8 {
    tensors.results[k].wrapping_add(4 * (chunk as usize * len as usize + column as usize))
}

/// Returns `L` sums, zeros if they do not exist.
///
/// # Safety
/// They are aligned and valid for reading, if they exist.
#[inline(always)]
pub(super) unsafe fn load_sums<const L: usize>(at: *const u8, is_there: bool) -> [f32; L] {
    let mut sums = [0.0; L];
    // SAFETY: the caller's contract.
    unsafe {
        if const { L == 1 } {
            let bits = memory::load_unless(at, 4, if is_there { 0 } else { NUMBER });
            sums[0] = if is_there { f32::from_bits(bits as u32) } else { 0.0 };
            return sums;
        }
        unroll!(at most 4: quad < L.div_ceil(4) => {
            let four = floats(memory::load_here_if(at.wrapping_add(16 * quad), const { quad_bytes(L) }, is_there as u32));
            unroll!(at most 4: l < 4 => {
                if 4 * quad + l < L { sums[4 * quad + l] = if is_there { four[l] } else { 0.0 }; }
            });
        });
    }
    sums
}

/// Adds to `L` sums, which begin with these parts if `is_there` is false: by vectors of 16 bytes, as few registers as can be.
///
/// # Safety
/// The place is aligned, and valid for writing them, and for reading if they exist.
#[inline(always)]
pub(super) unsafe fn add_sums<const L: usize>(at: *mut u8, parts: [f32; L], is_there: bool) {
    // SAFETY: the caller's contract.
    unsafe {
        if const { L <= 2 } {
            let mut sums = load_sums::<L>(at, is_there);
            unroll!(at most 2: l < L => { sums[l] += parts[l]; });
            store_sums::<L>(at, sums);
            return;
        }
        unroll!(at most 4: vector < L / 4 => {
            let at = at.wrapping_add(16 * vector);
            let mut sums = load_sums::<4>(at, is_there);
            unroll!(at most 4: l < 4 => { sums[l] += parts[4 * vector + l]; });
            store_sums::<4>(at, sums);
        });
    }
}

/// Stores `L` sums.
///
/// # Safety
/// The place is aligned, and valid for writing them.
#[inline(always)]
unsafe fn store_sums<const L: usize>(at: *mut u8, sums: [f32; L]) {
    // SAFETY: the caller's contract.
    unsafe {
        if const { L == 1 } {
            memory::store(at, [sums[0].to_bits() as u64, 0], 4);
            return;
        }
        unroll!(at most 4: quad < L.div_ceil(4) => {
            memory::store(at.wrapping_add(16 * quad), words(four(&sums, quad)), const { quad_bytes(L) });
        });
    }
}

/// Waits until all threads of the row have read the answers, where the next row's would be written over them: those of the last
/// round of two or more lie behind a barrier of the next row's.
#[inline(always)]
fn wait_for_answers<O: RowData>() {
    if const { O::ROUNDS.len() == 1 } {
        thread::sync_threads();
    }
}
