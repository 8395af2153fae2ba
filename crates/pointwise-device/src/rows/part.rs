//! A thread's part of a row.

use core::arch::asm;
use core::ops::Deref;

use pointwise_core::formula::OpData;
use pointwise_core::launch::{NUMBER, ONCE, ROW_SPLITS, Steps, how};
use pointwise_core::rows::{
    MAX_GIVEN, Reduction, RowData, RowOp, RowState, SINGLES, first_answer, is_keepable, kept_bytes,
};
use pointwise_core::{Logic, Word};

use super::Shape;
use super::elements::{Lanes, store};
use super::reduce::{Shared, Sums, count};
use super::sums::{add_sums, sum_at};
use crate::element::Bool;
use crate::formula::{Places, Tensors, place, splat};
use crate::memory;
use crate::packed::{self, Packed, unroll};
use crate::stored;
use crate::thread;

/// The place of a thread's part of a row.
#[derive(Clone, Copy)]
pub(super) struct Span<const N: usize, const R: usize> {
    /// The row's first elements.
    pub(super) results: [*mut u8; R],
    pub(super) operands: [*const u8; N],
    /// Bit `k`: operand `k` has an element for each of the row. The others are in `once`.
    moving: u32,
    /// A quarter of a vector of the one element, of operands that are not moving; of a stored operand the element in f32.
    pub(super) once: [u32; N],
    /// The elements of the row; 0 for a thread without a row, which others of its warp wait for.
    pub(super) len: u32,
    /// Zero, which neither compiler nor assembler knows.
    zero: u32,
    /// True if the row exists.
    pub(super) is_there: bool,
    /// True if shared memory keeps its operands.
    pub(super) is_kept: bool,
    /// The threads of the row.
    pub(super) threads: u32,
    /// The thread's index among them.
    pub(super) thread: u32,
}

/// A thread's part of a row, and the op on it. In a `STREAMED` row what is not loaded is zero: the
/// registers of a load that may not run are kept for it from the beginning on, through all loops.
pub(super) struct Part<O, const N: usize, const R: usize, const STREAMED: bool> {
    pub(super) span: Span<N, R>,
    pub(super) op: O,
}

impl<O, const N: usize, const R: usize, const STREAMED: bool> Deref for Part<O, N, R, STREAMED> {
    type Target = Span<N, R>;

    #[inline(always)]
    fn deref(&self) -> &Span<N, R> {
        &self.span
    }
}

/// A bit for each operand.
pub(super) const fn all<const N: usize>() -> u32 {
    (1 << N) - 1
}

/// True if the row has one element of operand `k`.
#[inline(always)]
pub(super) const fn is_row_operand<O: OpData>(k: usize) -> bool {
    O::INFO.row_operands >> k & 1 == 1
}

/// True if what a thread holds is unpacked for each round again, as its numbers in f32 would take too many registers: eight vectors or
/// more in a kernel that keeps to few registers, but for exponentials, which take longer; and gradients of weights that read five
/// operands or more.
pub(super) const fn unpacks_again<O: RowData>(lanes: usize, vectors: usize) -> bool {
    let (info, all) = (&O::INFO, vectors * O::INFO.operands.len());
    let is_held = info.properties.few_registers && all >= 8 && !has_extreme(O::ROUNDS);
    lanes > 4 && (is_held || info.weight_results != 0 && all >= 10)
}

/// True if the formula asks for a largest or smallest value. What it sums behind that is an exponential, as in softmax: to compute it
/// once more for the results costs more than the registers that keep it. Other sums are of cheap values.
const fn has_extreme(rounds: &[&[Reduction]]) -> bool {
    let mut round = 0;
    while round < rounds.len() {
        let mut k = 0;
        while k < rounds[round].len() {
            if matches!(rounds[round][k], Reduction::Max | Reduction::Min) {
                return true;
            }
            k += 1;
        }
        round += 1;
    }
    false
}

/// Bytes of an element of operand `k`.
#[inline(always)]
pub(super) const fn size<E, O: OpData>(k: usize) -> usize {
    if const { O::INFO.has_stored() } {
        return const { O::INFO }.operand_size(k, size_of::<E>());
    }
    if const { O::INFO.bool_operands() } >> k & 1 == 1 { 1 } else { size_of::<E>() }
}

/// Returns the address in shared memory of operand `k` of a row of `len` elements, where it is kept.
#[inline(always)]
pub(super) fn kept_place<E, O: OpData>(k: usize, len: u32) -> u32 {
    kept() + kept_bytes(&O::INFO, k, size_of::<E>(), len)
}

/// Returns the address of the shared memory that the launch gives.
#[inline(always)]
pub(super) fn kept() -> u32 {
    let address: u32;
    // SAFETY: computes an address.
    unsafe {
        asm!("mov.u32 {a}, pointwise_kept;", a = out(reg32) address, options(pure, nomem, nostack));
    }
    address
}

impl<O, const N: usize, const R: usize, const STREAMED: bool> Part<O, N, R, STREAMED>
where
    O: RowData + RowOp<f32, N, R>,
{
    /// Finds the thread's part of a row, and reads the operands that are one element.
    ///
    /// # Safety
    /// The conditions of [`held`](super::held).
    #[inline(always)]
    pub(super) unsafe fn new<E: Packed, const T: usize, const L: usize>(
        tensors: &Tensors<N, R>,
        steps: &Steps<T, ROW_SPLITS>,
        shape: Shape,
        place: (u32, u32),
        op: O,
    ) -> Self {
        // SAFETY: the caller's contract.
        unsafe { Part::at::<E, T>(tensors, steps, shape, place, op).with_once::<E, L>(tensors) }
    }

    /// Finds the thread's part of a row.
    ///
    /// # Safety
    /// The conditions of [`held`](super::held).
    #[inline(always)]
    pub(super) unsafe fn at<E: Packed, const T: usize>(
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
        let (mut operands, mut moving) = (tensors.operands, 0);
        unroll!(at most 12: k < N => {
            operands[k] = operands[k].wrapping_offset(at.operands[k] as isize * size::<E, O>(k) as isize);
            moving |= ((how(tensors.mode, k as u32) == 0) as u32) << k;
        });
        let Shape { threads, .. } = shape;
        let len = if is_there { shape.len } else { 0 };
        // Only streamed rows are read by single elements.
        let zero = tensors.mode & SINGLES;
        Part {
            span: Span {
                results,
                operands,
                moving,
                once: [0; N],
                len,
                zero,
                threads,
                thread,
                is_there,
                is_kept: false,
            },
            op,
        }
    }

    /// Reads the operands that are one element.
    ///
    /// # Safety
    /// The conditions of [`held`](super::held).
    #[inline(always)]
    pub(super) unsafe fn with_once<E: Packed, const L: usize>(mut self, tensors: &Tensors<N, R>) -> Self {
        if !self.all_move() {
            unroll!(at most 12: k < N => {
                let is_bool = const { O::INFO.bool_operands() } >> k & 1 == 1;
                let stored = if const { O::INFO.has_stored() } { const { O::INFO }.stored_operand(k) } else { None };
                // SAFETY: the operand is one element; the caller's contract.
                let vector = unsafe {
                    match how(tensors.mode, k as u32) {
                        ONCE if self.is_there => {
                            let element = memory::load(self.operands[k], size::<E, O>(k))[0];
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
                self.span.once[k] = vector[0] as u32;
            });
        }
        self
    }

    /// True if every operand has an element for each of the row.
    #[inline(always)]
    pub(super) fn all_move(&self) -> bool {
        self.moving == all::<N>()
    }

    /// True if operand `k` has an element for each of the row.
    #[inline(always)]
    pub(super) fn moves(&self, k: usize) -> bool {
        self.moving >> k & 1 == 1
    }

    /// Copies the row to shared memory, from where its vectors are read then: by the thread that has copied them.
    ///
    /// # Safety
    /// The conditions of [`held`](super::held). The block has one row, and the memory for it: [`kept_bytes`].
    #[inline(always)]
    pub(super) unsafe fn keep<E: Packed, const L: usize>(&mut self) {
        let mut index = self.thread;
        while index * (L as u32) < self.len {
            thread::no_unrolling();
            let first = index * L as u32;
            unroll!(at most 12: k < N => {
                let bytes = size::<E, O>(k);
                if is_keepable(&O::INFO, k, size_of::<E>()) {
                    let (to, from) = (kept_place::<E, O>(k, self.len) + first * bytes as u32, first as usize * bytes);
                    // SAFETY: the vector is of the row; the caller's contract.
                    unsafe {
                        memory::copy_to_shared(to, self.operands[k].wrapping_add(from), L * bytes, self.moves(k) as u32);
                    }
                }
            });
            index += self.threads;
        }
        memory::wait_for_copies();
        self.span.is_kept = true;
    }

    /// Answers all rounds of a row of `len` elements that the threads hold.
    #[inline(always)]
    pub(super) fn reduce<E: Packed, const L: usize, const V: usize>(
        &self,
        held: &[[[u64; 2]; N]; V],
        len: u32,
        shared: Option<Shared>,
    ) -> RowState<f32> {
        let mut row = RowState::new(len, E::DTYPE);
        unroll!(const at most 4: ROUND < O::ROUNDS.len() => {
            let mut sums = Sums::<L>::new::<O, ROUND>();
            self.add::<E, L, V, ROUND, true>(&mut sums, &self.again::<L, V>(held, &row, ROUND), &row, self.thread);
            sums.finish::<O, ROUND>(&mut row, self.threads, shared);
        });
        self.op.solve(&mut row);
        row
    }

    /// Returns the held bits for round `round`, or for the results if all rounds are answered: these unpack the weights. Where
    /// [`unpacks_again`] holds, the bits seem to depend on the last answer, so that compiler and assembler unpack them again:
    /// numbers that an earlier round unpacked would keep registers.
    #[inline(always)]
    pub(super) fn again<const L: usize, const V: usize>(
        &self,
        held: &[[[u64; 2]; N]; V],
        row: &RowState<f32>,
        round: usize,
    ) -> [[[u64; 2]; N]; V] {
        let mut again = *held;
        let (is_last, weights) = (round == O::ROUNDS.len(), const { O::INFO }.weight_operands);
        if is_last && weights != 0 {
            unroll!(at most 4: j < V => {
                unroll!(at most 12: k < N => {
                    if weights >> k & 1 == 1 {
                        // No instruction: but no round before unpacks them.
                        unroll!(at most 2: i < 2 => { again[j][k][i] = thread::worked_out_here(again[j][k][i]); });
                    }
                });
            });
        }
        if const { unpacks_again::<O>(L, V) } && round > 0 {
            let zero = row.answers[first_answer(O::ROUNDS, round) - 1].to_bits() & self.zero;
            unroll!(at most 4: j < V => {
                unroll!(at most 12: k < N => {
                    if weights >> k & 1 == 0 {
                        unroll!(at most 2: i < 2 => { again[j][k][i] ^= zero as u64 | (zero as u64) << 32; });
                    }
                });
            });
        }
        again
    }

    /// Answers all rounds of a row of `len` elements, which is read for each of them: `V` vectors at a time.
    ///
    /// # Safety
    /// The conditions of [`held`](super::held), but for alignment if `is_single`.
    #[inline(always)]
    pub(super) unsafe fn reduce_streamed<E: Packed, const L: usize, const V: usize>(
        &self,
        len: u32,
        is_single: bool,
    ) -> RowState<f32> {
        let mut row = RowState::new(len, E::DTYPE);
        unroll!(const at most 4: ROUND < O::ROUNDS.len() => {
            let mut sums = Sums::<L>::new::<O, ROUND>();
            let mut index = self.thread;
            while index < self.len.div_ceil(L as u32) {
                thread::no_unrolling();
                // SAFETY: the caller's contract.
                unsafe { self.add_loaded::<E, L, V, ROUND>(&mut sums, &row, index, is_single) };
                index += self.threads * if is_single { 1 } else { V as u32 };
            }
            sums.finish::<O, ROUND>(&mut row, self.threads, None);
        });
        self.op.solve(&mut row);
        row
    }

    /// Adds what loaded vectors give to the reductions of a round. All are computed, and those that are not there do not count:
    /// without branches, what a round has computed serves the next. The row is whole vectors, if it is `WHOLE`.
    #[inline(always)]
    pub(super) fn add<E: Packed, const L: usize, const V: usize, const ROUND: usize, const WHOLE: bool>(
        &self,
        sums: &mut Sums<L>,
        held: &[[[u64; 2]; N]; V],
        row: &RowState<f32>,
        index: u32,
    ) {
        unroll!(at most 4: j < V => {
            let first = (index + j as u32 * self.threads) * L as u32;
            let lanes = self.lanes::<E, L>(&held[j]);
            let mut given = [[0.0; L]; MAX_GIVEN];
            unroll!(l < L => {
                let each = self.op.given(ROUND, lanes.values[l], lanes.truths[l], row, first + l as u32);
                unroll!(at most 9: k < count::<O>(ROUND) => {
                    given[k][l] = each[k];
                    if const { !STREAMED && has_extreme(O::ROUNDS) && ROUND > 0 } {
                        // Not in the branch below, where the results would not find it.
                        thread::computed_here(each[k]);
                    }
                });
            });
            if !WHOLE && first < self.len && first + L as u32 > self.len {
                sums.add_part::<O, ROUND>(&given, self.len - first);
            } else if first < self.len {
                sums.add::<O, ROUND>(&given, !STREAMED && j == 0);
            }
        });
    }

    /// Loads vectors, or their elements one by one, and adds what they give to the reductions of a round.
    ///
    /// # Safety
    /// The conditions of [`held`](super::held), but for alignment if `is_single`.
    #[inline(always)]
    pub(super) unsafe fn add_loaded<E: Packed, const L: usize, const V: usize, const ROUND: usize>(
        &self,
        sums: &mut Sums<L>,
        row: &RowState<f32>,
        index: u32,
        is_single: bool,
    ) {
        if !is_single {
            // SAFETY: the caller's contract.
            let held = unsafe { self.load::<E, L, V, true>(index, all::<N>()) };
            self.add::<E, L, V, ROUND, true>(sums, &held, row, index);
            return;
        }
        let first = index * L as u32;
        unroll!(l < L => {
            let at = first + l as u32;
            // SAFETY: as above.
            let lanes = self.lanes::<E, 1>(&unsafe { self.single::<E>(first, l) });
            let each = self.op.given(ROUND, lanes.values[0], lanes.truths[0], row, at);
            sums.add_one::<O, ROUND>(l, &each, at < self.len);
        });
    }

    /// Computes and stores the results of loaded vectors, as far as they are of the row.
    ///
    /// # Safety
    /// The conditions of [`held`](super::held).
    #[inline(always)]
    pub(super) unsafe fn write<E: Packed, const L: usize, const V: usize>(
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
    /// The conditions of [`held`](super::held), but for alignment; of [`held_sum`](super::held_sum) with `SUMS`.
    #[inline(always)]
    pub(super) unsafe fn write_singles<E: Packed, const SUMS: bool>(
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
            unroll!(if at most 4: i < count => {
                // SAFETY: the element is of the row, if it is read; the caller's contract.
                bits[i] = unsafe { self.single::<E>(first + i as u32 * self.threads, 0) };
            });
            unroll!(if at most 4: i < count => {
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

    /// Computes and stores the results that the row has once, by its first thread.
    ///
    /// # Safety
    /// The conditions of [`held`](super::held).
    #[inline(always)]
    pub(super) unsafe fn write_of_row<E: Packed>(&self, row: &RowState<f32>) {
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
