//! Rows that are no aligned vectors, by way of shared memory.
//!
//! Aligned vectors of 16 bytes are copied there as they lie, without a register between, and the row's ends by single elements. A thread
//! reads its vectors from there, each across two aligned ones. Results go the other way.

use pointwise_core::Word;
use pointwise_core::formula::OpData;
use pointwise_core::rows::{RowData, RowOp, RowState, WARP, staged_operand, staged_result, staged_tensor};

use super::Shape;
use super::elements::Results;
use super::part::{Part, kept, size};
use super::reduce::Sums;
use crate::element::Bool;
use crate::memory;
use crate::packed::{self, Packed, unroll};
use crate::stored;
use crate::thread;

/// The bytes of a vector.
const VECTOR: u32 = 16;

impl<O, const N: usize, const R: usize> Part<O, N, R, false>
where
    O: RowData + RowOp<f32, N, R>,
{
    /// Copies the row to shared memory, and loads all operands but weights from there, as [`Part::load`] does.
    ///
    /// # Safety
    /// The conditions of [`staged`](super::staged).
    #[inline(always)]
    pub(super) unsafe fn load_staged<E: Packed, const L: usize, const V: usize>(
        &self,
        shape: Shape,
    ) -> [[[u64; 2]; N]; V] {
        let (row, len) = place_of_row::<E, O>(shape);
        unroll!(const at most 4: LOG < 4 => {
            let mut tensors = Queue::<N> { left: 0, all: [(0, core::ptr::null_mut()); N] };
            unroll!(at most 12: k < N => {
                if !const { O::INFO }.is_row_operand(k) && size::<E, O>(k) == 1 << LOG {
                    let from = if self.moves(k) { self.operands[k].cast_mut() } else { core::ptr::null_mut() };
                    tensors.push(row + staged_operand(&O::INFO, k, size_of::<E>(), len), from);
                }
            });
            tensors.for_each(|place, from| {
                let all = staged_tensor(&O::INFO, 1 << LOG, size_of::<E>(), len);
                // SAFETY: the row is valid, and the place has its vectors; the caller's contract.
                unsafe { copy_in((place, all), from, self.len, 1 << LOG, (self.thread, self.threads)) };
            });
        });
        memory::wait_for_copies();
        thread::sync_threads();
        let mut held = [[[0; 2]; N]; V];
        // SAFETY: as above.
        unsafe { self.read::<E, L, V>(shape, &mut held, !const { O::INFO }.weight_operands as u32) };
        memory::keep_loads_here();
        held
    }

    /// Reads the operands `which`, bit `k` for operand `k`, from shared memory. An operand that is one element fills vectors.
    ///
    /// # Safety
    /// The row was copied there; the conditions of [`staged`](super::staged).
    #[inline(always)]
    unsafe fn read<E: Packed, const L: usize, const V: usize>(
        &self,
        shape: Shape,
        held: &mut [[[u64; 2]; N]; V],
        which: u32,
    ) {
        let (row, len) = place_of_row::<E, O>(shape);
        unroll!(at most 12: k < N => {
            if which >> k & 1 == 1 && const { O::INFO }.is_row_operand(k) {
                unroll!(at most 4: j < V => { held[j][k] = self.filled(k, [0; 2]); });
            } else if which >> k & 1 == 1 {
                let bytes = size::<E, O>(k);
                let (vector, shift) = ((L * bytes) as u32, self.operands[k].addr() as u32 % VECTOR);
                let first = row + staged_operand(&O::INFO, k, size_of::<E>(), len) + shift / vector * vector;
                unroll!(at most 4: j < V => {
                    let index = self.thread + j as u32 * self.threads;
                    let works = (index * (L as u32) < self.len && self.moves(k)) as u32;
                    let at = first + index * vector;
                    // SAFETY: both vectors are of the operand's place; the caller's contract.
                    unsafe {
                        let low = memory::load_shared_or_zero(at, L * bytes, works);
                        let high = memory::load_shared_or_zero(at + vector, L * bytes, works);
                        held[j][k] = self.filled(k, across::<L>(low, high, shift % vector, bytes));
                    }
                });
            }
        });
    }

    /// [`Part::reduce`] of a row that was loaded by way of shared memory. Weights are read where they are asked for: between they take no
    /// registers.
    ///
    /// # Safety
    /// The conditions of [`staged`](super::staged).
    #[inline(always)]
    pub(super) unsafe fn reduce_staged<E: Packed, const L: usize, const V: usize>(
        &self,
        held: &[[[u64; 2]; N]; V],
        shape: Shape,
    ) -> RowState<f32> {
        let mut row = RowState::new(shape.len, E::DTYPE);
        unroll!(const at most 4: ROUND < O::ROUNDS.len() => {
            let (mut sums, mut all) = (Sums::<L>::new::<O, ROUND>(), self.again::<L, V>(held, &row, ROUND));
            // SAFETY: the caller's contract.
            unsafe { self.read::<E, L, V>(shape, &mut all, const { O::INFO }.weight_operands as u32) };
            self.add::<E, L, V, ROUND, false>(&mut sums, &all, &row, self.thread);
            sums.finish::<O, ROUND>(&mut row, self.threads, None);
        });
        self.op.solve(&mut row);
        row
    }

    /// Computes the results of the row, and stores them by way of shared memory.
    ///
    /// # Safety
    /// The conditions of [`staged`](super::staged); the row was loaded by way of shared memory.
    #[inline(always)]
    pub(super) unsafe fn write_staged<E: Packed, const L: usize, const V: usize>(
        &self,
        held: &[[[u64; 2]; N]; V],
        state: &RowState<f32>,
        shape: Shape,
    ) {
        // All threads have loaded what is written over: behind a barrier of a reduction, or of these.
        if const { O::ROUNDS.is_empty() } {
            thread::sync_threads();
        } else if self.threads <= WARP {
            thread::sync_warp();
        }
        let mut all = self.again::<L, V>(held, state, O::ROUNDS.len());
        // SAFETY: the caller's contract.
        unsafe { self.read::<E, L, V>(shape, &mut all, const { O::INFO }.weight_operands as u32) };
        let (row, len) = place_of_row::<E, O>(shape);
        unroll!(at most 4: j < V => {
            let first = (self.thread + j as u32 * self.threads) * L as u32;
            let results = self.results(&self.lanes::<E, L>(&all[j]), state, first);
            if first < self.len {
                unroll!(at most 8: k < R => {
                    if !const { O::INFO }.is_row_result(k) {
                        let place = row + staged_result(&O::INFO, k, size_of::<E>(), len);
                        let bytes = L * const { O::INFO }.result_size(k, size_of::<E>());
                        // SAFETY: the vector is the thread's own of the result's place.
                        unsafe { self.put::<E, L>(k, place + first / L as u32 * bytes as u32, &results) };
                        if bytes < VECTOR as usize && first + L as u32 >= self.len {
                            // Zeros behind the last vector: both are copied as one.
                            let behind = place + (first / L as u32 + 1) * bytes as u32;
                            // SAFETY: the place has 16 bytes more than its elements.
                            unsafe { memory::store_shared(behind, [0; 2], bytes) };
                        }
                    }
                });
            }
        });
        thread::sync_threads();
        unroll!(const at most 4: LOG < 4 => {
            let mut tensors = Queue::<R> { left: 0, all: [(0, core::ptr::null_mut()); R] };
            unroll!(at most 8: k < R => {
                let bytes = const { O::INFO }.result_size(k, size_of::<E>());
                if !const { O::INFO }.is_row_result(k) && bytes == 1 << LOG {
                    tensors.push(row + staged_result(&O::INFO, k, size_of::<E>(), len), self.results[k]);
                }
            });
            tensors.for_each(|place, to| {
                // SAFETY: the row is valid for writing, and the place has its elements; the caller's contract.
                unsafe { copy_out(to, place, self.len, 1 << LOG, (self.thread, self.threads)) };
            });
        });
    }

    /// Stores a vector of result `k` at an address of shared memory.
    ///
    /// # Safety
    /// The vector of shared memory is the thread's own, and aligned.
    #[inline(always)]
    unsafe fn put<E: Packed, const L: usize>(&self, k: usize, address: u32, results: &Results<R, L>) {
        let mut values = results.values[k];
        if const { O::INFO }.is_weight_result(k) {
            // As in `Part::store`.
            unroll!(l < L => { values[l] += 0.0; });
        }
        // SAFETY: the caller's contract.
        unsafe {
            match const { O::INFO }.stored_result(k) {
                Some(dtype) => stored::store_shared::<L>(dtype, address, values),
                _ if const { O::INFO.bool_results() } >> k & 1 == 1 => {
                    packed::store_shared::<Bool, L>(address, results.truths[k]);
                }
                _ => {
                    let mut lanes = [E::Compute::from_word(0); L];
                    unroll!(l < L => { lanes[l] = E::Compute::from_word(values[l].to_bits() as u64); });
                    packed::store_shared::<E, L>(address, lanes);
                }
            }
        }
    }
}

/// Returns the address in shared memory of the thread's row, and the length of rows. They are computed where it is called, and take no
/// registers between.
#[inline(always)]
fn place_of_row<E, O: OpData>(shape: Shape) -> (u32, u32) {
    let len = thread::opaque_here(shape.len);
    (kept() + shape.slot() * staged_result(&O::INFO, O::INFO.results.len(), size_of::<E>(), len), len)
}

/// Returns the vector of `L` elements of `bytes` each from byte `shift` of two such vectors on.
#[inline(always)]
fn across<const L: usize>(low: [u64; 2], high: [u64; 2], shift: u32, bytes: usize) -> [u64; 2] {
    match L * bytes {
        16 => memory::across(low, high, shift, bytes),
        8 => memory::across([low[0], high[0]], [0; 2], shift, bytes),
        all => memory::across([low[0] | high[0] << (8 * all), 0], [0; 2], shift, bytes),
    }
}

/// Tensors of a row: their places in shared memory, and their addresses. The address is null if the row has no tensor there.
struct Queue<const T: usize> {
    left: u32,
    all: [(u32, *mut u8); T],
}

impl<const T: usize> Queue<T> {
    #[inline(always)]
    fn push(&mut self, place: u32, address: *mut u8) {
        self.all[self.left as usize] = (place, address);
        self.left += 1;
    }

    /// Calls a function for each: a loop around one body, through whose registers the tensors go in turn.
    #[inline(always)]
    fn for_each(mut self, each: impl Fn(u32, *mut u8)) {
        if self.left == 0 {
            return;
        }
        let mut left = thread::opaque(self.left);
        while left > 0 {
            thread::no_unrolling();
            let (place, address) = self.all[0];
            if !address.is_null() {
                each(place, address);
            }
            unroll!(at most 12: k < T => { self.all[k] = self.all[if k + 1 < T { k + 1 } else { k }]; });
            left -= 1;
        }
    }
}

/// Copies `len` elements of `size` bytes to a place of `all` bytes in shared memory, with zeros around them, by `threads`: the thread's index
/// and their number. Each is as far behind the place as it is behind an aligned vector of memory.
///
/// # Safety
/// The elements are valid for reading, and aligned. The place is aligned to vectors, and the operand's alone. `size` folds to a constant.
#[inline(always)]
unsafe fn copy_in((to, all): (u32, u32), from: *const u8, len: u32, size: usize, (thread, threads): (u32, u32)) {
    let bytes = len * size as u32;
    let shift = from.addr() as u32 % VECTOR;
    let aligned = from.wrapping_sub(shift as usize);
    // The aligned vectors that lie in the row.
    let (begin, end) = ((shift != 0) as u32, (bytes + shift) / VECTOR);
    let mut vector = begin + thread;
    while vector < end {
        thread::no_unrolling();
        let at = vector * VECTOR;
        // SAFETY: the vector is of the row; the caller's contract.
        unsafe { memory::copy_to_shared_by_cache(to + at, aligned.wrapping_add(at as usize)) };
        vector += threads;
    }
    // The vectors at its ends, by elements.
    let each = VECTOR / size as u32;
    let (front, back) = (begin * each, begin.max(end) * each);
    let count = front + (all / size as u32 - back);
    let mut edge = thread;
    while edge < count {
        thread::no_unrolling();
        let at = if edge < front { edge } else { edge - front + back } * size as u32;
        // SAFETY: the element is of the row, or not read; it is of the place.
        unsafe {
            let works = at >= shift && at < shift + bytes;
            let element = memory::load_here_or_zero(aligned.wrapping_add(at as usize), size, works as u32);
            memory::store_shared(to + at, element, size);
        }
        edge += threads;
    }
}

/// The inverse of [`copy_in`], without the zeros.
///
/// # Safety
/// The elements are valid for writing, and aligned. The place is aligned to vectors, and has them all. `size` folds to a constant.
#[inline(always)]
unsafe fn copy_out(to: *mut u8, from: u32, len: u32, size: usize, (thread, threads): (u32, u32)) {
    let bytes = len * size as u32;
    let shift = to.addr() as u32 % VECTOR;
    let begin = (shift != 0) as u32;
    let aligned = to.wrapping_sub(shift as usize);
    // The aligned vectors of the row: each lies in two of shared memory, from this byte of the first on, or is one.
    let (end, first) = ((bytes + shift) / VECTOR, (VECTOR - shift) % VECTOR);
    let mut vector = begin + thread;
    while vector < end {
        thread::no_unrolling();
        let place = from + vector * VECTOR;
        // SAFETY: the vectors are of the place, the one that is written of the row; the caller's contract.
        unsafe {
            let low = memory::load_shared_or_zero(place - begin * VECTOR, 16, 1);
            let high = memory::load_shared_or_zero(place, 16, 1);
            memory::store(aligned.wrapping_add((vector * VECTOR) as usize), memory::across(low, high, first, size), 16);
        }
        vector += threads;
    }
    // The other elements: those before the aligned vectors, and behind.
    let front = first.min(bytes) / size as u32;
    let back = (end * VECTOR).saturating_sub(shift).max(first).min(bytes) / size as u32;
    let mut edge = thread;
    while edge < front + (len - back) {
        thread::no_unrolling();
        let at = if edge < front { edge } else { edge - front + back };
        // SAFETY: the element is of the place, and of the row.
        unsafe {
            let element = memory::load_shared_or_zero(from + at * size as u32, size, 1);
            memory::store(to.wrapping_add(at as usize * size), element, size);
        }
        edge += threads;
    }
}
