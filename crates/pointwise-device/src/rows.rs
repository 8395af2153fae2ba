//! Kernels of formulas that reduce over rows: the last dimension of their operands.
//!
//! A row has `threads` threads, by [`pointwise_core::rows::threads`]: a part of a warp, a warp, or a block. In the `held` kernel
//! they load the row once and keep it in registers. In the `streamed` kernel they load it once for each round: rows that are too
//! long, and rows that are no aligned vectors, whose accesses are to single elements. Both reduce by the same tree.
//!
//! A result may be an operand's very memory: the threads of a row have read what they need of it before they write.
//! Otherwise all tensors are disjoint.
//!
//! The gradients of weights are sums over rows. In `held_sum` and `streamed_sum` the threads of a row take the rows of a chunk
//! in turn, and keep its sums in f32: in shared memory, or in global memory. `fold` adds the chunks.

use core::arch::asm;

use pointwise_core::formula::OpData;
use pointwise_core::launch::{NUMBER, ONCE, ROW_SPLITS, Steps, how};
use pointwise_core::rows::{
    FOLD_COLUMNS, FOLD_GROUPS, FOLD_IN_WARP, MAX_GIVEN, MAX_THREADS, Reduction, RowData, RowOp, RowState, SINGLES,
    WARP, all_of_row, first_answer, most_threads, sum_bytes, sum_vectors,
};
use pointwise_core::{Logic, Word};

use crate::element::Bool;
use crate::formula::{Places, Tensors, place, put, splat};
use crate::memory;
use crate::packed::{self, Packed, unroll};
use crate::stored;
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
}

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

/// The most warps of a row.
const WARPS: u32 = MAX_THREADS / WARP;

/// A thread's part of a row.
struct Part<O, const N: usize, const R: usize> {
    /// The row's first elements.
    results: [*mut u8; R],
    operands: [*const u8; N],
    /// Bit `k`: operand `k` has an element for each of the row. The others are in `once`.
    moving: u32,
    /// Half a vector of the one element, of operands that are not moving; of a stored operand the element in f32.
    once: [u64; N],
    /// The elements of the row; 0 for a thread without a row, which others of its warp wait for.
    len: u32,
    /// True if the row exists.
    is_there: bool,
    /// The threads of the row.
    threads: u32,
    /// The thread's index among them.
    thread: u32,
    op: O,
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
    few_registers::<T>();
    let place = shape.place();
    // SAFETY: the caller's contract.
    let part = unsafe { Part::new::<E, T, L>(tensors, steps, shape, place, op) };
    // SAFETY: as above.
    let held = unsafe { part.load::<E, L, V>(part.thread) };
    let mut row = RowState::new(shape.len, E::DTYPE);
    unroll!(at most 4: round < O::ROUNDS.len() => {
        let mut sums = Sums::<L>::new::<O>(round);
        part.add::<E, L, V>(&mut sums, round, &held, &row, part.thread);
        sums.finish::<O>(round, &mut row, shape.threads);
    });
    op.solve(&mut row);
    // SAFETY: the caller's contract. Before an element is overwritten that it reads.
    unsafe {
        part.write_of_row::<E>(&row);
        part.write::<E, L, V>(&held, &row, part.thread);
    }
}

/// Reads the rows once for each round, `V` vectors at a time.
///
/// # Safety
/// The conditions of [`held`], but for the number of threads; with [`SINGLES`] any `len`, and any alignment of elements.
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
    few_registers::<T>();
    let place = shape.place();
    // SAFETY: the caller's contract.
    let part = unsafe { Part::new::<E, T, L>(tensors, steps, shape, place, op) };
    let is_single = tensors.mode & SINGLES != 0;
    let vectors = part.len.div_ceil(L as u32);
    let mut row = RowState::new(shape.len, E::DTYPE);
    unroll!(at most 4: round < O::ROUNDS.len() => {
        let mut sums = Sums::<L>::new::<O>(round);
        let mut index = part.thread;
        while index < vectors {
            thread::no_unrolling();
            // SAFETY: the caller's contract.
            unsafe { part.add_loaded::<E, L, V>(&mut sums, round, &row, index, is_single) };
            index += shape.threads * V as u32;
        }
        sums.finish::<O>(round, &mut row, shape.threads);
    });
    op.solve(&mut row);
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
    while index < vectors {
        thread::no_unrolling();
        // SAFETY: the caller's contract.
        unsafe {
            let held = part.load::<E, L, V>(index);
            part.write::<E, L, V>(&held, &row, index);
        }
        index += shape.threads * V as u32;
    }
}

/// [`held`] of several rows in turn, with sums over the rows of each chunk.
///
/// # Safety
/// The conditions of [`held`], but for results that are gradients of weights. Of these each is valid for `chunks.count` rows of
/// `len` elements in f32, aligned to 16 bytes, and disjoint from all else. Launches before this one have written the chunks whose
/// rows are not all of this one. `rows` and `chunks.count` together are below 2^32. There are the threads of `chunks.count` rows.
/// The launch gives [`sum_bytes`] of shared memory for each.
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
    // Two blocks of 256 threads for each multiprocessor. In f32 many tensors take more registers.
    if const { T <= 7 || L > 4 } {
        thread::at_most_registers::<128>();
    }
    let (chunk, thread) = shape.place();
    let first = chunks.row(chunk);
    let works = chunk < chunks.count && first < shape.rows;
    const { assert!(most_threads(T) * sum_bytes(&O::INFO, 16 / L, T) <= SUMS_BYTES, "too many weights") };
    unroll!(at most 8: k < R => {
        if const { O::INFO }.is_weight_result(k) {
            unroll!(at most 4: j < V => {
                let column = (thread + j as u32 * shape.threads) * L as u32;
                let at = sum_at(tensors, k, chunk, shape.len, column);
                let is_there = works && !chunks.begins(first) && column < shape.len;
                // SAFETY: the sums of the chunk; the caller's contract.
                put_totals::<O, T, L>(slot::<O, T, L>(k, j), unsafe { load_sums::<L>(at, is_there) });
            });
        }
    });
    // All threads of a block, and of a warp, take as many turns.
    let mut turn = 0;
    while turn < shape.rows {
        thread::no_unrolling();
        let (chunk, thread) = hidden(shape).place();
        let place = (if chunk < chunks.count { chunks.row(chunk) + turn } else { shape.rows }, thread);
        let tensors = &Tensors { mode: thread::opaque(tensors.mode), ..*tensors };
        // SAFETY: the caller's contract.
        let part = unsafe { Part::new::<E, T, L>(tensors, steps, shape, place, op) };
        // SAFETY: as above.
        let held = unsafe { part.load::<E, L, V>(part.thread) };
        let mut state = RowState::new(shape.len, E::DTYPE);
        unroll!(at most 4: round < O::ROUNDS.len() => {
            let mut sums = Sums::<L>::new::<O>(round);
            part.add::<E, L, V>(&mut sums, round, &held, &state, part.thread);
            sums.finish::<O>(round, &mut state, shape.threads);
        });
        op.solve(&mut state);
        // SAFETY: the caller's contract. Before an element is overwritten that it reads.
        unsafe { part.write_of_row::<E>(&state) };
        unroll!(at most 4: j < V => {
            let first = (part.thread + j as u32 * part.threads) * L as u32;
            let results = part.results(&part.lanes::<E, L>(&held[j]), &state, first);
            if first < part.len {
                // SAFETY: what is stored is of the row; the caller's contract.
                unsafe { part.store::<E, L, true>(first, &results) };
                unroll!(at most 8: k < R => {
                    if const { O::INFO }.is_weight_result(k) {
                        let slot = slot::<O, T, L>(k, j);
                        let mut totals = get_totals::<O, T, L>(slot);
                        unroll!(l < L => { totals[l] += results.values[k][l]; });
                        put_totals::<O, T, L>(slot, totals);
                    }
                });
            }
        });
        wait_for_answers::<O>();
        turn += chunks.count;
    }
    let (chunk, thread) = hidden(shape).place();
    if chunk < chunks.count && chunks.row(chunk) < shape.rows {
        unroll!(at most 8: k < R => {
            if const { O::INFO }.is_weight_result(k) {
                unroll!(at most 4: j < V => {
                    let column = (thread + j as u32 * shape.threads) * L as u32;
                    let at = sum_at(tensors, k, chunk, shape.len, column);
                    if column < shape.len {
                        let totals = get_totals::<O, T, L>(slot::<O, T, L>(k, j));
                        // SAFETY: as above.
                        unsafe { store_sums::<L>(at, totals) };
                    }
                });
            }
        });
    }
}

/// [`streamed`] of several rows in turn, with sums over the rows of each chunk.
///
/// # Safety
/// The conditions of [`held_sum`], but for the number of threads; with [`SINGLES`] any `len`, and any alignment of elements.
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
    few_registers::<T>();
    let (chunk, thread) = shape.place();
    let is_single = tensors.mode & SINGLES != 0;
    // All threads of a block, and of a warp, take as many turns.
    let mut turn = 0;
    while turn < shape.rows {
        thread::no_unrolling();
        let row = chunks.row(chunk) + turn;
        let place = (if chunk < chunks.count { row } else { shape.rows }, thread);
        let tensors = &Tensors { mode: thread::opaque(tensors.mode), ..*tensors };
        // SAFETY: the caller's contract.
        let part = unsafe { Part::new::<E, T, L>(tensors, steps, shape, place, op) };
        let vectors = part.len.div_ceil(L as u32);
        let mut state = RowState::new(shape.len, E::DTYPE);
        unroll!(at most 4: round < O::ROUNDS.len() => {
            let mut sums = Sums::<L>::new::<O>(round);
            let mut index = part.thread;
            while index < vectors {
                thread::no_unrolling();
                // SAFETY: the caller's contract.
                unsafe { part.add_loaded::<E, L, V>(&mut sums, round, &state, index, is_single) };
                index += shape.threads * V as u32;
            }
            sums.finish::<O>(round, &mut state, shape.threads);
        });
        op.solve(&mut state);
        // SAFETY: the caller's contract. Before an element is overwritten that it reads.
        unsafe { part.write_of_row::<E>(&state) };
        let begins = chunks.begins(row);
        // SAFETY: what is stored is of the row, and the sums are of the chunk; the caller's contract.
        unsafe {
            if is_single {
                part.write_singles::<E, true>(&state, tensors, chunk, begins);
            } else {
                let mut index = part.thread;
                while index < vectors {
                    thread::no_unrolling();
                    let held = part.load::<E, L, V>(index);
                    unroll!(at most 4: j < V => {
                        let first = (index + j as u32 * part.threads) * L as u32;
                        let results = part.results(&part.lanes::<E, L>(&held[j]), &state, first);
                        if first < part.len {
                            part.store::<E, L, true>(first, &results);
                            unroll!(at most 8: k < R => {
                                if const { O::INFO }.is_weight_result(k) {
                                    let at = sum_at(tensors, k, chunk, shape.len, first);
                                    add_sums::<L>(at, results.values[k], !begins);
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

/// Adds the chunks of each gradient of a weight, by blocks of [`MAX_THREADS`]: [`FOLD_COLUMNS`] columns of [`FOLD_GROUPS`]
/// groups.
///
/// # Safety
/// `sums` is valid for reading, for each gradient of a weight, `chunks` rows of `len` elements in f32. Their results are valid for
/// writing `len` elements. The module declares `pointwise_rows`.
#[inline(always)]
pub unsafe fn fold<E, O, const R: usize>(results: [*mut u8; R], sums: *const u8, chunks: u32, len: u32)
where
    E: Packed,
    O: RowData,
{
    thread::at_most_registers::<128>();
    const _: () = assert!(FOLD_COLUMNS * FOLD_GROUPS == MAX_THREADS && FOLD_GROUPS / FOLD_IN_WARP == WARPS);
    let thread = thread::thread_idx_x();
    let (lane, group) = (thread % FOLD_COLUMNS, thread / FOLD_COLUMNS);
    let column = thread::block_idx_x() * FOLD_COLUMNS + lane;
    let row = len as usize * 4;
    unroll!(at most 8: k < R => {
        if const { O::INFO }.is_weight_result(k) {
            let weight = (const { O::INFO }.weight_results & ((1 << k) - 1)).count_ones();
            if weight > 0 {
                thread::sync_threads();
            }
            let mut sum = 0.0;
            if column < len {
                let mut chunk = group;
                let first = weight as u64 * chunks as u64 + group as u64;
                let mut at = sums.wrapping_add(first as usize * row).wrapping_add(4 * column as usize);
                while chunk < chunks {
                    thread::no_unrolling();
                    let mut parts = [0.0; 4];
                    // Four are under way together. Zeros in the place of chunks that are not there change no sum.
                    unroll!(at most 4: i < 4 => {
                        let is_there = chunk + i as u32 * FOLD_GROUPS < chunks;
                        // SAFETY: the caller's contract.
                        [parts[i]] = unsafe { load_sums::<1>(at.wrapping_add(i * FOLD_GROUPS as usize * row), is_there) };
                    });
                    unroll!(at most 4: i < 4 => { sum += parts[i]; });
                    chunk += 4 * FOLD_GROUPS;
                    at = at.wrapping_add(4 * FOLD_GROUPS as usize * row);
                }
            }
            unroll!(at most 4: step < FOLD_IN_WARP.ilog2() as usize => { sum += exchanged(sum, WARP >> (step + 1)); });
            if thread % WARP < FOLD_COLUMNS {
                put_shared(thread / WARP * FOLD_COLUMNS + lane, sum);
            }
            thread::sync_threads();
            if thread < FOLD_COLUMNS && column < len {
                let mut parts = [0.0; WARPS as usize];
                unroll!(warp < WARPS as usize => {
                    parts[warp] = get_shared(warp as u32 * FOLD_COLUMNS + lane);
                });
                unroll!(at most 4: step < WARPS.ilog2() as usize => {
                    let half = WARPS as usize >> (step + 1);
                    unroll!(at most 8: i < half => { parts[i] += parts[i + half]; });
                });
                // SAFETY: the caller's contract.
                unsafe { store::<E, O, 1>(k, results[k], column as i64, [parts[0]], [Logic(false)]) };
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

/// The most bytes of `pointwise_sums`: what a block has without more ado, less `pointwise_rows`.
const SUMS_BYTES: u32 = 47 << 10;

/// Returns the place of vector `j` of result `k` in the thread's part of `pointwise_sums`.
#[inline(always)]
const fn slot<O: OpData, const T: usize, const L: usize>(k: usize, j: usize) -> usize {
    sum_vectors(&O::INFO, k, 16 / L, T) + j * L.div_ceil(4)
}

/// Returns the thread's place in `pointwise_sums`, in a kernel of `T` tensors.
#[inline(always)]
fn total_at<O: OpData, const T: usize, const L: usize>(slot: usize) -> u32 {
    thread::thread_idx_x() * const { sum_bytes(&O::INFO, 16 / L, T) } + slot as u32 * 16
}

/// Reads `L` sums of the thread from `pointwise_sums`.
#[inline(always)]
fn get_totals<O: OpData, const T: usize, const L: usize>(slot: usize) -> [f32; L] {
    let mut totals = [0.0; L];
    unroll!(at most 4: quad < L.div_ceil(4) => {
        let (a, b, c, d): (f32, f32, f32, f32);
        // SAFETY: the slot is of `pointwise_sums`, which has [`sum_bytes`] for each thread of the block; the launch gives it.
        unsafe {
            asm!("{{ .reg .u32 p; mov.u32 p, pointwise_sums; add.u32 p, p, {s};",
                "ld.shared.v4.f32 {{{a}, {b}, {c}, {d}}}, [p]; }}", s = in(reg32) total_at::<O, T, L>(slot + quad),
                a = out(reg32) a, b = out(reg32) b, c = out(reg32) c, d = out(reg32) d, options(nostack));
        }
        let four = [a, b, c, d];
        unroll!(at most 4: l < 4 => {
            if 4 * quad + l < L { totals[4 * quad + l] = four[l]; }
        });
    });
    totals
}

/// Writes `L` sums of the thread to `pointwise_sums`.
#[inline(always)]
fn put_totals<O: OpData, const T: usize, const L: usize>(slot: usize, totals: [f32; L]) {
    unroll!(at most 4: quad < L.div_ceil(4) => {
        let mut four = [0.0; 4];
        unroll!(at most 4: l < 4 => {
            if 4 * quad + l < L { four[l] = totals[4 * quad + l]; }
        });
        let [a, b, c, d] = four;
        // SAFETY: the slot is of `pointwise_sums`, as above.
        unsafe {
            asm!("{{ .reg .u32 p; mov.u32 p, pointwise_sums; add.u32 p, p, {s};",
                "st.shared.v4.f32 [p], {{{a}, {b}, {c}, {d}}}; }}", s = in(reg32) total_at::<O, T, L>(slot + quad),
                a = in(reg32) a, b = in(reg32) b, c = in(reg32) c, d = in(reg32) d, options(nostack));
        }
    });
}

/// Returns the place of a chunk's sum, of result `k`.
#[inline(always)]
fn sum_at<const N: usize, const R: usize>(
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
unsafe fn load_sums<const L: usize>(at: *const u8, is_there: bool) -> [f32; L] {
    let mut sums = [0.0; L];
    // SAFETY: the caller's contract.
    unsafe {
        if const { L == 1 } {
            let bits = memory::load_unless(at, 4, if is_there { 0 } else { NUMBER });
            sums[0] = if is_there { f32::from_bits(bits as u32) } else { 0.0 };
            return sums;
        }
        unroll!(at most 8: pair < L / 2 => {
            if pair % 2 == 0 {
                let bytes = if const { L == 2 } { 8 } else { 16 };
                let bits = memory::load_here_if(at.wrapping_add(8 * pair), bytes, is_there as u32);
                unroll!(at most 4: l < 4 => {
                    if 2 * pair + l < L {
                        let one = f32::from_bits((bits[l / 2] >> (32 * (l % 2))) as u32);
                        sums[2 * pair + l] = if is_there { one } else { 0.0 };
                    }
                });
            }
        });
    }
    sums
}

/// Adds to `L` sums, which begin with these parts if `is_there` is false: by vectors of 16 bytes, as few registers as can be.
///
/// # Safety
/// The place is aligned, and valid for writing them, and for reading if they exist.
#[inline(always)]
unsafe fn add_sums<const L: usize>(at: *mut u8, parts: [f32; L], is_there: bool) {
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
        unroll!(at most 8: pair < L / 2 => {
            if pair % 2 == 0 {
                let mut words = [0; 2];
                unroll!(at most 4: l < 4 => {
                    if 2 * pair + l < L {
                        words[l / 2] |= (sums[2 * pair + l].to_bits() as u64) << (32 * (l % 2));
                    }
                });
                memory::store(at.wrapping_add(8 * pair), words, if const { L == 2 } { 8 } else { 16 });
            }
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

/// Keeps a block of the most threads within a multiprocessor's registers.
#[inline(always)]
fn few_registers<const T: usize>() {
    if const { most_threads(T) == MAX_THREADS } {
        thread::at_most_registers::<128>();
    }
}

/// A bit for each operand.
const fn all<const N: usize>() -> u32 {
    (1 << N) - 1
}

/// True if the row has one element of operand `k`.
#[inline(always)]
const fn is_row_operand<O: OpData>(k: usize) -> bool {
    O::INFO.row_operands >> k & 1 == 1
}

/// Bytes of an element of operand `k`.
#[inline(always)]
const fn size<E, O: OpData>(k: usize) -> usize {
    if const { O::INFO.has_stored() } {
        return const { O::INFO }.operand_size(k, size_of::<E>());
    }
    if const { O::INFO.bool_operands() } >> k & 1 == 1 { 1 } else { size_of::<E>() }
}

impl<O, const N: usize, const R: usize> Part<O, N, R>
where
    O: RowData + RowOp<f32, N, R>,
{
    /// Finds the thread's part of a row, and reads the operands that are one element.
    ///
    /// # Safety
    /// The conditions of [`held`].
    #[inline(always)]
    unsafe fn new<E: Packed, const T: usize, const L: usize>(
        tensors: &Tensors<N, R>,
        steps: &Steps<T, ROW_SPLITS>,
        shape: Shape,
        (row, thread): (u32, u32),
        op: O,
    ) -> Self {
        let is_there = row < shape.rows;
        let at: Places<N, R> = place(steps, if is_there { row } else { shape.rows - 1 });
        let mut results = tensors.results;
        unroll!(at most 8: k < R => {
            let bytes = const { O::INFO }.result_size(k, size_of::<E>());
            results[k] = results[k].wrapping_offset(at.results[k] as isize * bytes as isize);
        });
        let (mut operands, mut moving, mut once) = (tensors.operands, 0, [0; N]);
        unroll!(at most 12: k < N => {
            operands[k] = operands[k].wrapping_offset(at.operands[k] as isize * size::<E, O>(k) as isize);
            moving |= ((how(tensors.mode, k as u32) == 0) as u32) << k;
        });
        if moving != all::<N>() {
            unroll!(at most 12: k < N => {
                let is_bool = const { O::INFO.bool_operands() } >> k & 1 == 1;
                let stored = if const { O::INFO.has_stored() } { const { O::INFO }.stored_operand(k) } else { None };
                // SAFETY: the operand is one element; the caller's contract.
                let vector = unsafe {
                    match how(tensors.mode, k as u32) {
                        ONCE if is_there => {
                            let element = memory::load(operands[k], size::<E, O>(k))[0];
                            if let Some(dtype) = stored {
                                [stored::unpack::<1>(dtype, [element, 0])[0].to_word(), 0]
                            } else if is_bool { splat::<Bool>(element) } else { splat::<E>(element) }
                        }
                        NUMBER if stored.is_some() => [tensors.words[k], 0],
                        NUMBER if is_bool => splat::<Bool>(tensors.words[k]),
                        NUMBER => packed::pack::<E, L>([E::Compute::from_word(tensors.words[k]); L]),
                        _ => [0; 2],
                    }
                };
                once[k] = vector[0];
            });
        }
        let Shape { threads, .. } = shape;
        let len = if is_there { shape.len } else { 0 };
        Part { results, operands, moving, once, len, threads, thread, is_there, op }
    }

    /// Returns true if operand `k` has an element for each of the row.
    #[inline(always)]
    fn moves(&self, k: usize) -> bool {
        self.moving >> k & 1 == 1
    }

    /// Loads `V` vectors of each operand, as far as they are of the row: the thread's from its vector `index` on. All loads are
    /// under way before the first is waited for.
    ///
    /// # Safety
    /// The conditions of [`held`].
    #[inline(always)]
    unsafe fn load<E: Packed, const L: usize, const V: usize>(&self, index: u32) -> [[[u64; 2]; N]; V] {
        let mut held = [[[0; 2]; N]; V];
        unroll!(at most 4: j < V => {
            let first = (index + j as u32 * self.threads) * L as u32;
            unroll!(at most 12: k < N => {
                if const { O::INFO.row_operands == 0 } || !is_row_operand::<O>(k) {
                    let place = self.operands[k].wrapping_add(first as usize * size::<E, O>(k));
                    let works = (first < self.len && self.moves(k)) as u32;
                    // SAFETY: the vector is of the row; the caller's contract.
                    held[j][k] = unsafe { memory::load_here_if(place, L * size::<E, O>(k), works) };
                }
            });
        });
        if self.moving != all::<N>() {
            unroll!(at most 4: j < V => {
                unroll!(at most 12: k < N => {
                    if !const { O::INFO.has_stored() } || const { O::INFO }.stored_operand(k).is_none() {
                        held[j][k] = if self.moves(k) { held[j][k] } else { [self.once[k]; 2] };
                    }
                });
            });
        }
        held
    }

    /// Adds what loaded vectors give to the reductions of a round. All are computed, and those that are not there do not count:
    /// without branches, what a round has computed serves the next.
    #[inline(always)]
    fn add<E: Packed, const L: usize, const V: usize>(
        &self,
        sums: &mut Sums<L>,
        round: usize,
        held: &[[[u64; 2]; N]; V],
        row: &RowState<f32>,
        index: u32,
    ) {
        unroll!(at most 4: j < V => {
            let first = (index + j as u32 * self.threads) * L as u32;
            let lanes = self.lanes::<E, L>(&held[j]);
            let mut given = [[0.0; L]; MAX_GIVEN];
            unroll!(l < L => {
                let each = self.op.given(round, lanes.values[l], lanes.truths[l], row, first + l as u32);
                unroll!(at most 9: k < MAX_GIVEN => { given[k][l] = each[k]; });
            });
            if first < self.len {
                sums.add::<O>(round, &given);
            }
        });
    }

    /// Loads vectors, or their elements one by one, and adds what they give to the reductions of a round.
    ///
    /// # Safety
    /// The conditions of [`held`], but for alignment if `is_single`.
    #[inline(always)]
    unsafe fn add_loaded<E: Packed, const L: usize, const V: usize>(
        &self,
        sums: &mut Sums<L>,
        round: usize,
        row: &RowState<f32>,
        index: u32,
        is_single: bool,
    ) {
        if !is_single {
            // SAFETY: the caller's contract.
            let held = unsafe { self.load::<E, L, V>(index) };
            self.add::<E, L, V>(sums, round, &held, row, index);
            return;
        }
        unroll!(at most 4: j < V => {
            let first = (index + j as u32 * self.threads) * L as u32;
            unroll!(l < L => {
                let at = first + l as u32;
                // SAFETY: as above.
                let lanes = self.lanes::<E, 1>(&unsafe { self.single::<E>(first, l) });
                let each = self.op.given(round, lanes.values[0], lanes.truths[0], row, at);
                sums.add_one::<O>(round, l, &each, at < self.len);
            });
        });
    }

    /// Computes and stores the results of loaded vectors, as far as they are of the row.
    ///
    /// # Safety
    /// The conditions of [`held`].
    #[inline(always)]
    unsafe fn write<E: Packed, const L: usize, const V: usize>(
        &self,
        held: &[[[u64; 2]; N]; V],
        row: &RowState<f32>,
        index: u32,
    ) {
        unroll!(at most 4: j < V => {
            let first = (index + j as u32 * self.threads) * L as u32;
            let results = self.results(&self.lanes::<E, L>(&held[j]), row, first);
            if first < self.len {
                // SAFETY: what is stored is of the row; the caller's contract.
                unsafe { self.store::<E, L, false>(first, &results) };
            }
        });
    }

    /// Computes and stores the results of all elements of the row, one by one: neighbours have neighbouring threads. With `SUMS`
    /// gradients of weights are added to the sums of `chunk`, which begin with this row if `begins`.
    ///
    /// # Safety
    /// The conditions of [`held`], but for alignment; of [`held_sum`] with `SUMS`.
    #[inline(always)]
    unsafe fn write_singles<E: Packed, const SUMS: bool>(
        &self,
        row: &RowState<f32>,
        tensors: &Tensors<N, R>,
        chunk: u32,
        begins: bool,
    ) {
        let mut first = self.thread;
        while first < self.len {
            thread::no_unrolling();
            let mut bits = [[[0; 2]; N]; 4];
            // So many are under way together: sums take registers, too.
            let count = if SUMS { 1 } else { 4 };
            unroll!(at most 4: i < count => {
                // SAFETY: the element is of the row, if it is read; the caller's contract.
                bits[i] = unsafe { self.single::<E>(first + i as u32 * self.threads, 0) };
            });
            unroll!(at most 4: i < count => {
                let at = first + i as u32 * self.threads;
                if at < self.len {
                    let results = self.results(&self.lanes::<E, 1>(&bits[i]), row, at);
                    // SAFETY: the element is of the row, and the sums are of the chunk; the caller's contract.
                    unsafe {
                        self.store::<E, 1, SUMS>(at, &results);
                        unroll!(at most 8: k < R => {
                            if SUMS && const { O::INFO }.is_weight_result(k) {
                                let place = sum_at(tensors, k, chunk, self.len, at);
                                add_sums::<1>(place, results.values[k], !begins);
                            }
                        });
                    }
                }
            });
            first += count as u32 * self.threads;
        }
    }

    /// Loads one element of each operand, the one `l` behind `first`, if the row has it.
    ///
    /// # Safety
    /// The conditions of [`held`], but for alignment.
    #[inline(always)]
    unsafe fn single<E: Packed>(&self, first: u32, l: usize) -> [[u64; 2]; N] {
        let mut bits = [[0; 2]; N];
        unroll!(at most 12: k < N => {
            // Of neighbours one address, and offsets that are known.
            let place = self.operands[k].wrapping_add(first as usize * size::<E, O>(k)).wrapping_add(l * size::<E, O>(k));
            let works = self.moves(k) && first + (l as u32) < self.len;
            // SAFETY: the caller's contract.
            let element = unsafe { memory::load_unless(place, size::<E, O>(k), if works { 0 } else { NUMBER }) };
            bits[k] = if self.moves(k) { [element, 0] } else { [self.once[k]; 2] };
        });
        bits
    }

    /// Returns the operands of `L` elements.
    #[inline(always)]
    fn lanes<E: Packed, const L: usize>(&self, bits: &[[u64; 2]; N]) -> Lanes<N, L> {
        let mut lanes = Lanes { values: [[0.0; N]; L], truths: [[false; N]; L] };
        unroll!(at most 12: k < N => {
            if const { O::INFO.has_stored() } && let Some(dtype) = const { O::INFO }.stored_operand(k) {
                let one = f32::from_word(self.once[k]);
                let mut values = [one; L];
                if !is_row_operand::<O>(k) && self.moves(k) {
                    values = stored::unpack::<L>(dtype, bits[k]);
                }
                unroll!(l < L => { lanes.values[l][k] = values[l]; });
            } else if const { O::INFO.bool_operands() } >> k & 1 == 1 {
                let truths = packed::unpack::<Bool, L>(bits[k]);
                unroll!(l < L => { lanes.truths[l][k] = truths[l].0; });
            } else {
                let values = packed::unpack::<E, L>(bits[k]);
                unroll!(l < L => { lanes.values[l][k] = f32::from_bits(values[l].to_word() as u32); });
            }
        });
        lanes
    }

    /// Computes the results of a vector, from element `first` on.
    #[inline(always)]
    fn results<const L: usize>(&self, lanes: &Lanes<N, L>, row: &RowState<f32>, first: u32) -> Results<R, L> {
        let mut results = Results { values: [[0.0; L]; R], truths: [[Logic(false); L]; R] };
        unroll!(l < L => {
            let (of_type, of_bool) = self.op.results(lanes.values[l], lanes.truths[l], row, first + l as u32);
            unroll!(at most 8: k < R => {
                results.values[k][l] = of_type[k];
                results.truths[k][l] = Logic(of_bool[k]);
            });
        });
        results
    }

    /// Stores the results of a vector, from element `first` on; with `SUMS` without gradients of weights.
    ///
    /// # Safety
    /// The row has `L` elements there; the conditions of [`held`].
    #[inline(always)]
    unsafe fn store<E: Packed, const L: usize, const SUMS: bool>(&self, first: u32, results: &Results<R, L>) {
        unroll!(at most 8: k < R => {
            if !const { O::INFO }.is_row_result(k) && !(SUMS && const { O::INFO }.is_weight_result(k)) {
                // SAFETY: the caller's contract.
                unsafe { store::<E, O, L>(k, self.results[k], first as i64, results.values[k], results.truths[k]) };
            }
        });
    }

    /// Computes and stores the results that the row has once, by its first thread.
    ///
    /// # Safety
    /// The conditions of [`held`].
    #[inline(always)]
    unsafe fn write_of_row<E: Packed>(&self, row: &RowState<f32>) {
        if const { O::INFO.row_results == 0 } || self.thread != 0 || !self.is_there {
            return;
        }
        let mut lanes = Lanes::<N, 1> { values: [[0.0; N]], truths: [[false; N]] };
        if self.len > 0 {
            // SAFETY: the caller's contract.
            lanes = self.lanes::<E, 1>(&unsafe { self.single::<E>(0, 0) });
        }
        let (of_type, of_bool) = self.op.results(lanes.values[0], lanes.truths[0], row, 0);
        unroll!(at most 8: k < R => {
            if const { O::INFO }.is_row_result(k) {
                // SAFETY: the caller's contract.
                unsafe { store::<E, O, 1>(k, self.results[k], 0, [of_type[k]], [Logic(of_bool[k])]) };
            }
        });
    }
}

/// The results of `L` elements.
struct Results<const R: usize, const L: usize> {
    values: [[f32; L]; R],
    truths: [[Logic; L]; R],
}

/// The operands of `L` elements, in f32: a row has the same bits wherever it is computed, and approximate functions would have
/// others on a GPU.
struct Lanes<const N: usize, const L: usize> {
    values: [[f32; N]; L],
    truths: [[bool; N]; L],
}

/// The parts of a thread's elements in the reductions of a round, for each lane of a vector.
struct Sums<const L: usize> {
    parts: [[f32; L]; MAX_GIVEN],
}

/// Returns reduction `k` of a round, if it has so many.
#[inline(always)]
fn reduction<O: RowData>(round: usize, k: usize) -> Option<Reduction> {
    if k < O::ROUNDS[round].len() { Some(O::ROUNDS[round][k]) } else { None }
}

impl<const L: usize> Sums<L> {
    #[inline(always)]
    fn new<O: RowData>(round: usize) -> Self {
        let mut parts = [[0.0; L]; MAX_GIVEN];
        unroll!(at most 9: k < MAX_GIVEN => {
            if let Some(reduction) = reduction::<O>(round, k) {
                parts[k] = [reduction.neutral(); L];
            }
        });
        Sums { parts }
    }

    /// Adds what the elements of a vector give.
    #[inline(always)]
    fn add<O: RowData>(&mut self, round: usize, given: &[[f32; L]; MAX_GIVEN]) {
        unroll!(at most 9: k < MAX_GIVEN => {
            if let Some(reduction) = reduction::<O>(round, k) {
                unroll!(l < L => { self.parts[k][l] = reduction.join(self.parts[k][l], given[k][l]); });
            }
        });
    }

    /// Adds what an element gives to a lane, if it counts.
    #[inline(always)]
    fn add_one<O: RowData>(&mut self, round: usize, l: usize, given: &[f32; MAX_GIVEN], counts: bool) {
        unroll!(at most 9: k < MAX_GIVEN => {
            if let Some(reduction) = reduction::<O>(round, k) {
                let joined = reduction.join(self.parts[k][l], given[k]);
                self.parts[k][l] = if counts { joined } else { self.parts[k][l] };
            }
        });
    }

    /// Reduces the lanes of a vector, then those of the row's threads, and puts the answers into `row`.
    #[inline(always)]
    fn finish<O: RowData>(mut self, round: usize, row: &mut RowState<f32>, threads: u32) {
        let first = first_answer(O::ROUNDS, round);
        unroll!(at most 9: k < MAX_GIVEN => {
            if let Some(reduction) = reduction::<O>(round, k) {
                unroll!(at most 4: step < 4 => {
                    let half = L >> (step + 1);
                    unroll!(at most 8: l < half => {
                        self.parts[k][l] = reduction.join(self.parts[k][l], self.parts[k][l + half]);
                    });
                });
                self.parts[k][0] = within_warp(self.parts[k][0], reduction, threads);
            }
        });
        if threads > WARP {
            let (thread, warps) = (thread::thread_idx_x(), threads / WARP);
            unroll!(at most 9: k < MAX_GIVEN => {
                if reduction::<O>(round, k).is_some() && thread % WARP == 0 {
                    put_shared((first + k) as u32 * WARPS + thread / WARP, self.parts[k][0]);
                }
            });
            thread::sync_threads();
            unroll!(at most 9: k < MAX_GIVEN => {
                if let Some(reduction) = reduction::<O>(round, k) {
                    // Every warp has the answer. There are places for as many warps as a row may have.
                    let warp = thread % WARPS;
                    let part = get_shared((first + k) as u32 * WARPS + warp);
                    let part = if warp < warps { part } else { reduction.neutral() };
                    self.parts[k][0] = within_warp(part, reduction, WARPS);
                }
            });
        }
        unroll!(at most 9: k < MAX_GIVEN => {
            if let Some(reduction) = reduction::<O>(round, k) {
                row.answers[first + k] = reduction.finish(self.parts[k][0], row.len);
            }
        });
    }
}

/// Returns the parts of `threads` neighbours in a warp together, the same bits in each.
#[inline(always)]
fn within_warp(mut part: f32, reduction: Reduction, threads: u32) -> f32 {
    unroll!(at most 8: step < 5 => {
        let apart = WARP >> (step + 1);
        if apart < threads {
            part = reduction.join(part, exchanged(part, apart));
        }
    });
    part
}

/// Returns the value of the thread whose index in the warp differs by `apart` in one bit.
#[inline(always)]
fn exchanged(value: f32, apart: u32) -> f32 {
    let other;
    // SAFETY: all threads of the warp are here, as the condition around it is the same for all of them.
    unsafe {
        asm!("shfl.sync.bfly.b32 {o}, {v}, {a}, 31, 0xffffffff;", o = out(reg32) other, v = in(reg32) value,
            a = in(reg32) apart, options(nomem, nostack));
    }
    other
}

/// Writes a number to the shared memory of the block.
#[inline(always)]
fn put_shared(slot: u32, value: f32) {
    // SAFETY: the slot is of `pointwise_rows`, which has one for each answer and warp.
    unsafe {
        asm!("{{ .reg .u32 a; mov.u32 a, pointwise_rows; add.u32 a, a, {s}; st.shared.f32 [a], {v}; }}",
            s = in(reg32) slot * 4, v = in(reg32) value, options(nostack));
    }
}

/// Reads a number from the shared memory of the block.
#[inline(always)]
fn get_shared(slot: u32) -> f32 {
    let value;
    // SAFETY: the slot is of `pointwise_rows`, which has one for each answer and warp.
    unsafe {
        asm!("{{ .reg .u32 a; mov.u32 a, pointwise_rows; add.u32 a, a, {s}; ld.shared.f32 {v}, [a]; }}",
            s = in(reg32) slot * 4, v = out(reg32) value, options(nostack));
    }
    value
}

/// Stores elements of result `k`, in its type.
///
/// # Safety
/// The place is valid for writing `V` elements, and aligned to them.
#[inline(always)]
unsafe fn store<E: Packed, O: OpData, const V: usize>(
    k: usize,
    target: *mut u8,
    at: i64,
    values: [f32; V],
    truths: [Logic; V],
) {
    // SAFETY: the caller's contract.
    unsafe {
        match const { O::INFO }.stored_result(k) {
            Some(dtype) => stored::store::<V>(dtype, target, at, values, true),
            _ if const { O::INFO.bool_results() } >> k & 1 == 1 => put::<Bool, V>(target, at, truths, true),
            _ => {
                let mut lanes = [E::Compute::from_word(0); V];
                unroll!(l < V => { lanes[l] = E::Compute::from_word(values[l].to_bits() as u64); });
                put::<E, V>(target, at, lanes, true);
            }
        }
    }
}
