//! Kernels of formulas that reduce over rows: the last dimension of their operands.
//!
//! A row has `threads` threads, by [`pointwise_core::rows::threads`]: a part of a warp, a warp, or a block. In the `held` kernel
//! they load the row once and keep it in registers. In the `streamed` kernel they load it once for each round: rows that are
//! too long, and rows that are no aligned vectors, whose accesses are single elements. Both reduce by the same tree.
//!
//! A result may be an operand's very memory: the threads of a row have read what they need of it before they write.
//! Otherwise all tensors are disjoint.

use core::arch::asm;

use pointwise_core::formula::OpData;
use pointwise_core::launch::{ONCE, ROW_SPLITS, Steps, how};
use pointwise_core::rows::{
    MAX_GIVEN, MAX_THREADS, Reduction, RowData, RowOp, RowState, SINGLES, WARP, first_answer, most_threads,
};
use pointwise_core::{Coarse, DType, Logic, Rough, Word};

use crate::element::Bool;
use crate::formula::{Loaded, Places, Tensors, arguments, fetch, one_each, place, put};
use crate::packed::{Packed, unroll};
use crate::thread;

/// The rows of a launch.
#[derive(Clone, Copy)]
pub struct Shape {
    /// How many there are.
    pub rows: u32,
    /// The elements of each.
    pub len: u32,
    /// The threads of each, a power of two.
    pub threads: u32,
}

/// The most warps of a row.
const WARPS: u32 = MAX_THREADS / WARP;

/// A thread's part of a row.
struct Part<'a, O, const N: usize, const R: usize> {
    tensors: &'a Tensors<N, R>,
    /// The places of the row's first elements.
    row: Places<N, R>,
    shape: Shape,
    /// The thread's index in the row.
    thread: u32,
    op: O,
}

/// Reads the rows once. Each thread has up to `V` vectors of `L` elements.
///
/// # Safety
/// `steps` leads to the first element of each of `rows < 2^31` rows, from the first elements of the `T` tensors: the results,
/// then the operands. There, each operand is a number, as `mode` says, or valid for `len` elements, or for one if it is
/// [`ONCE`]. Results are valid for writing `len` elements, or one if the row has one. `len` is a multiple of `L`, and all that
/// is read and written by vectors is aligned to them. A result is equal to an operand or disjoint from it, and disjoint from the
/// other results and rows. A row has `threads` threads, a power of two and a whole number of them a block, which is one row if
/// they are more than a warp; they have at least `len` elements together. The module declares `pointwise_rows`.
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
    if const { most_threads(N) == MAX_THREADS } {
        thread::at_most_registers::<128>();
    }
    let (part, is_there) = Part::new::<T>(tensors, steps, shape, op);
    let vectors = shape.len / L as u32;
    let index = |j: usize| part.thread + j as u32 * shape.threads;
    let mut held = [[Loaded::NONE; N]; V];
    unroll!(at most 4: j < V => {
        if index(j) < vectors {
            // SAFETY: the vector is of the row; the caller's contract.
            held[j] = unsafe { fetch::<E, O, N, R, L>(tensors, tensors.mode, &part.at(index(j) * L as u32)) };
        }
    });
    let mut row = RowState::new(shape.len, E::DTYPE);
    unroll!(at most 4: round < O::ROUNDS.len() => {
        let mut sums = Sums::<L>::new::<O>(round);
        unroll!(at most 4: j < V => {
            if index(j) < vectors {
                let lanes = Lanes::of::<E, O, R>(&held[j], &tensors.words);
                sums.add::<O, N, R>(op, round, &lanes, &row, index(j) * L as u32, u32::MAX);
            }
        });
        sums.finish::<O>(round, &mut row, shape.threads);
    });
    op.solve(&mut row);
    // Before an element is overwritten that it reads.
    if is_there {
        // SAFETY: the caller's contract.
        unsafe { part.write_of_row::<E>(&row) };
    }
    unroll!(at most 4: j < V => {
        if index(j) < vectors && is_there {
            let lanes = Lanes::of::<E, O, R>(&held[j], &tensors.words);
            // SAFETY: the vector is of the row; the caller's contract.
            unsafe { part.write::<E, L>(&lanes, &row, index(j) * L as u32, u32::MAX) };
        }
    });
}

/// Reads the rows once for each round, by vectors, or by single elements if `mode` has [`SINGLES`].
///
/// # Safety
/// The conditions of [`held`], but for the number of threads; with [`SINGLES`] any `len`, and any alignment of elements.
#[inline(always)]
pub unsafe fn streamed<E, O, const N: usize, const R: usize, const T: usize, const L: usize>(
    tensors: &Tensors<N, R>,
    steps: &Steps<T, ROW_SPLITS>,
    shape: Shape,
    op: O,
) where
    E: Packed,
    O: RowData + RowOp<f32, N, R>,
{
    if const { most_threads(N) == MAX_THREADS } {
        thread::at_most_registers::<128>();
    }
    let (part, is_there) = Part::new::<T>(tensors, steps, shape, op);
    let vectors = shape.len.div_ceil(L as u32);
    let mut row = RowState::new(shape.len, E::DTYPE);
    unroll!(at most 4: round < O::ROUNDS.len() => {
        let mut sums = Sums::<L>::new::<O>(round);
        let mut index = part.thread;
        while index < vectors {
            thread::no_unrolling();
            let first = index * L as u32;
            // SAFETY: the vector begins in the row; the caller's contract.
            let lanes = unsafe { part.load::<E, L>(first) };
            sums.add::<O, N, R>(op, round, &lanes, &row, first, shape.len - first);
            index += shape.threads;
        }
        sums.finish::<O>(round, &mut row, shape.threads);
    });
    op.solve(&mut row);
    // Before an element is overwritten that it reads.
    if is_there {
        // SAFETY: the caller's contract.
        unsafe { part.write_of_row::<E>(&row) };
    }
    let mut index = part.thread;
    while index < vectors && is_there {
        thread::no_unrolling();
        let first = index * L as u32;
        // SAFETY: the vector begins in the row; the caller's contract.
        unsafe {
            let lanes = part.load::<E, L>(first);
            part.write::<E, L>(&lanes, &row, first, shape.len - first);
        }
        index += shape.threads;
    }
}

impl<'a, O, const N: usize, const R: usize> Part<'a, O, N, R>
where
    O: RowData + RowOp<f32, N, R>,
{
    /// Returns the thread's part, and true if its row exists. A thread without a row works on the last one, as the others of its
    /// warp wait for it, and writes nothing.
    #[inline(always)]
    fn new<const T: usize>(
        tensors: &'a Tensors<N, R>,
        steps: &Steps<T, ROW_SPLITS>,
        shape: Shape,
        op: O,
    ) -> (Self, bool) {
        let (thread, log) = (thread::thread_idx_x(), shape.threads.trailing_zeros());
        let row = thread::block_idx_x() * (thread::block_dim_x() >> log) + (thread >> log);
        let is_there = row < shape.rows;
        let at = place(steps, if is_there { row } else { shape.rows - 1 });
        (Part { tensors, row: at, shape, thread: thread & (shape.threads - 1), op }, is_there)
    }

    /// Returns the places of an element of the row.
    #[inline(always)]
    fn at(&self, element: u32) -> Places<N, R> {
        let mut at = self.row;
        unroll!(at most 8: k < R => { at.results[k] += element as i64; });
        unroll!(at most 12: k < N => {
            if how(self.tensors.mode, k as u32) != ONCE {
                at.operands[k] += element as i64;
            }
        });
        at
    }

    /// Loads `L` elements from `first` on, as far as they are of the row.
    ///
    /// # Safety
    /// The row has `first`; the conditions of [`streamed`].
    #[inline(always)]
    unsafe fn load<E: Packed, const L: usize>(&self, first: u32) -> Lanes<N, L> {
        let mode = self.tensors.mode;
        if mode & SINGLES == 0 {
            // SAFETY: the caller's contract.
            let loaded = unsafe { fetch::<E, O, N, R, L>(self.tensors, mode, &self.at(first)) };
            return Lanes::of::<E, O, R>(&loaded, &self.tensors.words);
        }
        let mut lanes = Lanes { values: [[0.0; N]; L], truths: [[false; N]; L] };
        unroll!(l < L => {
            if first + (l as u32) < self.shape.len {
                // SAFETY: the element is of the row; the caller's contract.
                let loaded = unsafe { fetch::<E, O, N, R, 1>(self.tensors, one_each::<N>(mode), &self.at(first + l as u32)) };
                let one = Lanes::<N, 1>::of::<E, O, R>(&loaded, &self.tensors.words);
                (lanes.values[l], lanes.truths[l]) = (one.values[0], one.truths[0]);
            }
        });
        lanes
    }

    /// Computes and stores the results of `L` elements from `first` on, of which `left` are of the row.
    ///
    /// # Safety
    /// The conditions of [`streamed`].
    #[inline(always)]
    unsafe fn write<E: Packed, const L: usize>(&self, lanes: &Lanes<N, L>, row: &RowState<f32>, first: u32, left: u32) {
        let (mut values, mut truths) = ([[0.0; L]; R], [[Logic(false); L]; R]);
        unroll!(l < L => {
            let (of_type, of_bool) = self.op.results(lanes.values[l], lanes.truths[l], row);
            unroll!(at most 8: k < R => {
                values[k][l] = of_type[k];
                truths[k][l] = Logic(of_bool[k]);
            });
        });
        let at = self.at(first);
        let is_vector = self.tensors.mode & SINGLES == 0;
        unroll!(at most 8: k < R => {
            if !const { O::INFO }.is_row_result(k) {
                let target = self.tensors.results[k];
                // SAFETY: the elements are of the row; the caller's contract.
                unsafe {
                    if is_vector {
                        store::<E, O, L>(k, target, at.results[k], values[k], truths[k]);
                    } else {
                        unroll!(l < L => {
                            if (l as u32) < left {
                                store::<E, O, 1>(k, target, at.results[k] + l as i64, [values[k][l]], [truths[k][l]]);
                            }
                        });
                    }
                }
            }
        });
    }

    /// Computes and stores the results that the row has once, by its first thread.
    ///
    /// # Safety
    /// The conditions of [`streamed`].
    #[inline(always)]
    unsafe fn write_of_row<E: Packed>(&self, row: &RowState<f32>) {
        if const { O::INFO.row_results == 0 } || self.thread != 0 {
            return;
        }
        let mut lanes = Lanes::<N, 1> { values: [[0.0; N]], truths: [[false; N]] };
        if self.shape.len > 0 {
            // SAFETY: the row has an element; the caller's contract.
            let loaded = unsafe { fetch::<E, O, N, R, 1>(self.tensors, one_each::<N>(self.tensors.mode), &self.at(0)) };
            lanes = Lanes::of::<E, O, R>(&loaded, &self.tensors.words);
        }
        let (of_type, of_bool) = self.op.results(lanes.values[0], lanes.truths[0], row);
        unroll!(at most 8: k < R => {
            if const { O::INFO }.is_row_result(k) {
                // SAFETY: the caller's contract.
                unsafe {
                    store::<E, O, 1>(k, self.tensors.results[k], self.row.results[k], [of_type[k]], [Logic(of_bool[k])]);
                }
            }
        });
    }
}

/// The operands of `L` elements, in f32: a row has the same bits wherever it is computed, and approximate functions would have
/// others on a GPU.
struct Lanes<const N: usize, const L: usize> {
    values: [[f32; N]; L],
    truths: [[bool; N]; L],
}

impl<const N: usize, const L: usize> Lanes<N, L> {
    #[inline(always)]
    fn of<E: Packed, O: OpData, const R: usize>(loaded: &[Loaded; N], words: &[u64; N]) -> Self {
        let (compute, truths) = arguments::<E, O, N, L>(loaded, words);
        let mut values = [[0.0; N]; L];
        unroll!(l < L => {
            unroll!(at most 12: k < N => { values[l][k] = f32::from_bits(compute[l][k].to_word() as u32); });
        });
        Lanes { values, truths }
    }
}

/// What the elements of a thread give to the reductions of a round, for each lane of a vector.
struct Sums<const L: usize> {
    parts: [[f32; L]; MAX_GIVEN],
}

/// Returns the reductions of a round that has `k` or more, else none.
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

    /// Adds what a vector's elements give: those from `first` on, of which `left` are of the row.
    #[inline(always)]
    fn add<O, const N: usize, const R: usize>(
        &mut self,
        op: O,
        round: usize,
        lanes: &Lanes<N, L>,
        row: &RowState<f32>,
        first: u32,
        left: u32,
    ) where
        O: RowData + RowOp<f32, N, R>,
    {
        unroll!(l < L => {
            let given = op.given(round, lanes.values[l], lanes.truths[l], row, l == 0 && first == 0);
            unroll!(at most 9: k < MAX_GIVEN => {
                if let Some(reduction) = reduction::<O>(round, k) {
                    let joined = reduction.join(self.parts[k][l], given[k]);
                    self.parts[k][l] = if (l as u32) < left { joined } else { self.parts[k][l] };
                }
            });
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
            let thread = thread::thread_idx_x();
            unroll!(at most 9: k < MAX_GIVEN => {
                if reduction::<O>(round, k).is_some() && thread % WARP == 0 {
                    put_shared((first + k) as u32 * WARPS + thread / WARP, self.parts[k][0]);
                }
            });
            thread::sync_threads();
            let warps = threads / WARP;
            unroll!(at most 9: k < MAX_GIVEN => {
                if let Some(reduction) = reduction::<O>(round, k) {
                    let part = get_shared((first + k) as u32 * WARPS + (thread & (warps - 1)));
                    self.parts[k][0] = within_warp(part, reduction, warps);
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
        match const { O::INFO }.fixed_type(k) {
            Some(DType::F32) => put::<f32, V>(target, at, values, true),
            Some(DType::F16) => put::<crate::f16, V>(target, at, coarse(values), true),
            Some(DType::BF16) => put::<crate::bf16, V>(target, at, coarse(values), true),
            Some(DType::F8E4M3) => put::<crate::F8E4M3, V>(target, at, rough(values), true),
            Some(DType::F8E5M2) => put::<crate::F8E5M2, V>(target, at, rough(values), true),
            _ if const { O::INFO.bool_results } >> k & 1 == 1 => put::<Bool, V>(target, at, truths, true),
            _ => {
                let mut lanes = [E::Compute::from_word(0); V];
                unroll!(l < V => { lanes[l] = E::Compute::from_word(values[l].to_bits() as u64); });
                put::<E, V>(target, at, lanes, true);
            }
        }
    }
}

#[inline(always)]
fn coarse<const V: usize>(values: [f32; V]) -> [Coarse; V] {
    let mut lanes = [Coarse(0.0); V];
    unroll!(l < V => { lanes[l] = Coarse(values[l]); });
    lanes
}

#[inline(always)]
fn rough<const V: usize>(values: [f32; V]) -> [Rough; V] {
    let mut lanes = [Rough(0.0); V];
    unroll!(l < V => { lanes[l] = Rough(values[l]); });
    lanes
}
