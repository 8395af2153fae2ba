//! Formulas that reduce over a row, on the CPU: by the same tree as kernels, so that a row has the same bits.

use std::marker::PhantomData;
use std::mem::MaybeUninit;

use pointwise_core::element::Bool;
use pointwise_core::formula::ParamWords;
use pointwise_core::rows::{
    FOLD_GROUPS, FOLD_IN_WARP, MAX_THREADS, Reduction, RowData, RowOp, RowState, WARP, all_of_row, counted_tensors,
    first_answer, lanes, threads,
};
use pointwise_core::{DType, Element, Logic, Word};

use super::level::{Loop, at, at_better};
use super::operand::{BLOCK, Buffer, Fill, Source, Store, Target};
use super::parallel::tasks;
use super::stored::{FillStored, StoreStored};
use crate::kernel::Walk;

/// `(operands, results, len, parameters)`: an op on one row of `len` elements, in one element type. Sources and targets begin
/// at the row; a result that the row has once has a step of 0. A loop with sums adds the gradients of weights to what is there, in
/// f32.
///
/// # Safety
/// There are as many operands and results as the op has, of its types: aligned, and valid for `len` elements at their steps, a
/// result of the row for one. A result is an operand's very elements, or shares memory with none; results share none with
/// each other.
pub type RowsFn = unsafe fn(&[Source], &[Target], u32, &ParamWords);

/// The op `O` on a row of elements `E`, with sums or without.
///
/// # Safety
/// The contract of [`RowsFn`] holds.
pub unsafe fn rows<E, O, const N: usize, const R: usize, const SUMS: bool>(
    operands: &[Source],
    results: &[Target],
    len: u32,
    words: &ParamWords,
) where
    E: Element,
    O: RowData + RowOp<f32, N, R>,
{
    let (Some(operands), Some(results)) = (operands.first_chunk(), results.first_chunk()) else { return };
    // SAFETY: the caller's contract.
    unsafe { at_better(OneRow::<E, O, N, R, SUMS> { operands, results, len, words, of: PhantomData }) }
}

/// A row of an op.
struct OneRow<'a, E, O, const N: usize, const R: usize, const SUMS: bool> {
    operands: &'a [Source; N],
    results: &'a [Target; R],
    len: u32,
    words: &'a ParamWords,
    of: PhantomData<(E, O)>,
}

/// Elements of each operand: in the compute type, or as bools.
struct Values<E: Element, const N: usize> {
    values: [Buffer<E>; N],
    truths: [Buffer<Bool>; N],
}

impl<E: Element, const N: usize> Values<E, N> {
    /// The operands of element `i` in f32.
    ///
    /// # Safety
    /// They are loaded; bit `k` of `bools` says that operand `k` is a bool.
    #[inline(always)]
    unsafe fn at(&self, i: usize, bools: u16) -> ([f32; N], [bool; N]) {
        let (mut values, mut truths) = ([0.0; N], [false; N]);
        let mut k = 0;
        while k < N {
            // SAFETY: the caller's contract.
            unsafe {
                if bools >> k & 1 == 1 {
                    truths[k] = self.truths[k].0[i].assume_init().0;
                } else {
                    values[k] = f32::from_bits(self.values[k].0[i].assume_init().to_word() as u32);
                }
            }
            k += 1;
        }
        (values, truths)
    }
}

/// # Safety
/// The contract of [`RowsFn`] holds.
impl<E, O, const N: usize, const R: usize, const SUMS: bool> Loop for OneRow<'_, E, O, N, R, SUMS>
where
    E: Element,
    O: RowData + RowOp<f32, N, R>,
{
    #[inline(always)]
    unsafe fn run<const LEVEL: u8>(self) {
        let op = O::from_words(self.words);
        let mut state = RowState::new(self.len, E::DTYPE);
        let mut values = Values { values: [const { Buffer::NEW }; N], truths: [const { Buffer::NEW }; N] };
        // SAFETY: the caller's contract.
        unsafe {
            self.round::<LEVEL, 0>(op, &mut state, &mut values);
            self.round::<LEVEL, 1>(op, &mut state, &mut values);
            self.round::<LEVEL, 2>(op, &mut state, &mut values);
            self.round::<LEVEL, 3>(op, &mut state, &mut values);
            op.solve(&mut state);
            self.finish::<LEVEL>(op, &state, &mut values);
        }
    }
}

impl<E, O, const N: usize, const R: usize, const SUMS: bool> OneRow<'_, E, O, N, R, SUMS>
where
    E: Element,
    O: RowData + RowOp<f32, N, R>,
{
    /// Loads `count` elements from `start` on.
    ///
    /// # Safety
    /// The contract of [`RowsFn`] holds; the processor has `LEVEL`.
    #[inline(always)]
    unsafe fn load<const LEVEL: u8>(&self, start: usize, count: usize, values: &mut Values<E, N>) {
        let mut k = 0;
        while k < N {
            let source = self.operands[k];
            // SAFETY: the caller's contract.
            unsafe {
                if let Some(dtype) = const { O::INFO }.stored_operand(k) {
                    at::<LEVEL, _>(FillStored::<E> { dtype, source, start, values: &mut values.values[k].0[..count] });
                } else if const { O::INFO.bool_operands() } >> k & 1 == 1 {
                    elements::<Bool, LEVEL>(source, start, &mut values.truths[k].0[..count]);
                } else {
                    elements::<E, LEVEL>(source, start, &mut values.values[k].0[..count]);
                }
            }
            k += 1;
        }
    }

    /// One round, if the op has so many.
    ///
    /// # Safety
    /// The contract of [`RowsFn`] holds; the processor has `LEVEL`.
    #[inline(always)]
    unsafe fn round<const LEVEL: u8, const ROUND: usize>(
        &self,
        op: O,
        state: &mut RowState<f32>,
        values: &mut Values<E, N>,
    ) {
        if const { ROUND >= O::ROUNDS.len() } {
            return;
        }
        let reductions: &'static [Reduction] = const { if ROUND < O::ROUNDS.len() { O::ROUNDS[ROUND] } else { &[] } };
        let len = self.len as usize;
        let widest = const { O::INFO.widest(size_of::<E>()) };
        let threads = threads(len, widest, counted_tensors(&O::INFO)) as usize;
        let width = threads * lanes(widest);
        let total = width * reductions.len();
        // Short rows need no memory from the heap.
        let (mut small, mut large) = ([const { MaybeUninit::<f32>::uninit() }; SMALL], Vec::new());
        if total > SMALL {
            large.resize(total, MaybeUninit::uninit());
        }
        let places = if total > SMALL { &mut large[..total] } else { &mut small[..total] };
        for (places, reduction) in places.chunks_mut(width).zip(reductions) {
            places.fill(MaybeUninit::new(reduction.neutral()));
        }
        // SAFETY: all were written.
        let parts = unsafe { std::slice::from_raw_parts_mut(places.as_mut_ptr().cast::<f32>(), total) };
        let mut start = 0;
        while start < len {
            // A block that ends where the lanes end.
            let first = start % width;
            let count = BLOCK.min(width - first).min(len - start);
            // SAFETY: the elements are of the row; the caller's contract.
            unsafe { self.load::<LEVEL>(start, count, values) };
            let mut i = 0;
            while i < count {
                // SAFETY: so many are loaded.
                let (of_type, of_bool) = unsafe { values.at(i, const { O::INFO.bool_operands() }) };
                let each = op.given(ROUND, of_type, of_bool, state, (start + i) as u32);
                let mut k = 0;
                while k < const { if ROUND < O::ROUNDS.len() { O::ROUNDS[ROUND].len() } else { 0 } } {
                    // SAFETY: lane `first + i` is below `width`, and there are as many of each reduction.
                    unsafe {
                        let part = parts.as_mut_ptr().add(k * width + first + i);
                        *part = O::ROUNDS[ROUND][k].join(*part, each[k]);
                    }
                    k += 1;
                }
                i += 1;
            }
            start += count;
        }
        for (k, (parts, &reduction)) in parts.chunks_mut(width).zip(reductions).enumerate() {
            let all = match const { lanes(O::INFO.widest(size_of::<E>())) } {
                2 => fold::<2>(reduction, parts, threads),
                4 => fold::<4>(reduction, parts, threads),
                8 => fold::<8>(reduction, parts, threads),
                _ => fold::<16>(reduction, parts, threads),
            };
            state.answers[first_answer(O::ROUNDS, ROUND) + k] = reduction.finish(all, state.len);
        }
    }

    /// Computes and stores the results.
    ///
    /// # Safety
    /// The contract of [`RowsFn`] holds; the processor has `LEVEL`.
    #[inline(always)]
    unsafe fn finish<const LEVEL: u8>(&self, op: O, state: &RowState<f32>, values: &mut Values<E, N>) {
        let len = self.len as usize;
        if const { O::INFO.row_results != 0 } {
            // Before an element is overwritten that this reads.
            let (mut of_type, mut of_bool) = ([0.0; N], [false; N]);
            if len > 0 {
                // SAFETY: the row has an element; the caller's contract.
                unsafe {
                    self.load::<LEVEL>(0, 1, values);
                    (of_type, of_bool) = values.at(0, const { O::INFO.bool_operands() });
                }
            }
            let (results, _) = op.results(of_type, of_bool, state, 0);
            let mut k = 0;
            while k < R {
                if const { O::INFO }.is_row_result(k) {
                    // SAFETY: the caller's contract.
                    unsafe { store::<E, O, LEVEL>(k, self.results[k], 0, &[results[k]], &[false]) };
                }
                k += 1;
            }
        }
        if const { all_of_row(&O::INFO) } {
            return;
        }
        let (mut results, mut answers) = ([[0.0; BLOCK]; R], [[false; BLOCK]; R]);
        let mut start = 0;
        while start < len {
            let count = BLOCK.min(len - start);
            // SAFETY: the elements are of the row; the caller's contract.
            unsafe { self.load::<LEVEL>(start, count, values) };
            let mut i = 0;
            while i < count {
                // SAFETY: so many are loaded.
                let (of_type, of_bool) = unsafe { values.at(i, const { O::INFO.bool_operands() }) };
                let (y, truths) = op.results(of_type, of_bool, state, (start + i) as u32);
                let mut k = 0;
                while k < R {
                    (results[k][i], answers[k][i]) = (y[k], truths[k]);
                    k += 1;
                }
                i += 1;
            }
            let mut k = 0;
            while k < R {
                if SUMS && const { O::INFO }.is_weight_result(k) {
                    // SAFETY: the sums of the row's elements; the caller's contract.
                    let sums = unsafe {
                        std::slice::from_raw_parts_mut(self.results[k].pointer.cast::<f32>().add(start), count)
                    };
                    sums.iter_mut().zip(&results[k]).for_each(|(sum, part)| *sum += part);
                } else if !const { O::INFO }.is_row_result(k) {
                    if const { O::INFO }.is_weight_result(k) {
                        // A sum over rows begins with a zero, so that -0 becomes 0. So it does of one row.
                        results[k][..count].iter_mut().for_each(|result| *result += 0.0);
                    }
                    let (results, answers) = (&results[k][..count], &answers[k][..count]);
                    // SAFETY: the elements are of the row; the caller's contract.
                    unsafe { store::<E, O, LEVEL>(k, self.results[k], start, results, answers) };
                }
                k += 1;
            }
            start += count;
        }
    }
}

/// The numbers of a round that lie on the stack.
const SMALL: usize = 1024;

/// Elements of an operand from `start` on.
///
/// # Safety
/// They are valid for reading, and aligned; the processor has `LEVEL`.
#[inline(always)]
unsafe fn elements<E: Element, const LEVEL: u8>(source: Source, start: usize, values: &mut [MaybeUninit<E::Compute>]) {
    // SAFETY: the caller's contract.
    unsafe {
        if source.is_uniform() {
            source.spread::<E>(values);
        } else {
            at::<LEVEL, _>(Fill::<E> { source, start, values });
        }
    }
}

/// Joins each part with another.
#[inline(always)]
fn join(reduction: Reduction, parts: &mut [f32], others: &[f32]) {
    // A loop for each, without a question inside.
    let pairs = parts.iter_mut().zip(others);
    match reduction {
        Reduction::Sum | Reduction::Mean => pairs.for_each(|(part, &other)| *part = Reduction::Sum.join(*part, other)),
        Reduction::Max => pairs.for_each(|(part, &other)| *part = Reduction::Max.join(*part, other)),
        Reduction::Min => pairs.for_each(|(part, &other)| *part = Reduction::Min.join(*part, other)),
    }
}

/// Folds parts in halves, a power of two.
#[inline(always)]
fn halves(reduction: Reduction, parts: &mut [f32]) -> f32 {
    let mut half = parts.len() / 2;
    while half > 0 {
        let (near, far) = parts.split_at_mut(half);
        join(reduction, near, &far[..half]);
        half /= 2;
    }
    parts[0]
}

/// Folds the `L` lanes of each thread, then the threads of each warp, then the warps, in halves.
#[inline(always)]
fn fold<const L: usize>(reduction: Reduction, parts: &mut [f32], threads: usize) -> f32 {
    let mut of_threads = [0.0; MAX_THREADS as usize];
    for (part, lanes) in of_threads.iter_mut().zip(parts.as_chunks_mut::<L>().0) {
        *part = halves(reduction, lanes);
    }
    let warp = threads.min(WARP as usize);
    let mut of_warps = [reduction.neutral(); (MAX_THREADS / WARP) as usize];
    for (part, threads) in of_warps.iter_mut().zip(of_threads[..threads].chunks_mut(warp)) {
        *part = halves(reduction, threads);
    }
    if threads <= WARP as usize { of_warps[0] } else { halves(reduction, &mut of_warps) }
}

/// Stores elements of result `k` from `start` on, in its type.
///
/// # Safety
/// They are valid for writing, and aligned; the processor has `LEVEL`.
#[inline(always)]
unsafe fn store<E: Element, O: RowData, const LEVEL: u8>(
    k: usize,
    target: Target,
    start: usize,
    results: &[f32],
    truths: &[bool],
) {
    // SAFETY: the caller's contract.
    unsafe {
        match const { O::INFO }.stored_result(k) {
            Some(dtype) => {
                let mut buffer = Buffer::<f32>::NEW;
                for (to, &value) in buffer.0.iter_mut().zip(results) {
                    to.write(value);
                }
                let values = &buffer.0[..results.len()];
                at::<LEVEL, _>(StoreStored::<f32> { dtype, target, start, values });
            }
            _ if const { O::INFO.bool_results() } >> k & 1 == 1 => {
                put::<Bool, _, LEVEL>(target, start, truths, Logic);
            }
            _ => put::<E, _, LEVEL>(target, start, results, |value| E::Compute::from_word(value.to_bits().into())),
        }
    }
}

/// Stores what `of` makes of values.
///
/// # Safety
/// The conditions of [`store`].
#[inline(always)]
unsafe fn put<E: Element, V: Copy, const LEVEL: u8>(
    target: Target,
    start: usize,
    values: &[V],
    of: impl Fn(V) -> E::Compute,
) {
    let mut buffer = Buffer::<E>::NEW;
    for (to, &value) in buffer.0.iter_mut().zip(values) {
        to.write(of(value));
    }
    // SAFETY: the caller's contract.
    unsafe { at::<LEVEL, _>(Store::<E> { target, start, values: &buffer.0[..values.len()] }) };
}

/// `(sums, results, chunks, len, first column, columns)`: adds the chunks of the gradients of weights, some columns of them.
/// `results` has the gradients of weights alone.
///
/// # Safety
/// `sums` is valid for reading `chunks` rows of `len` elements in f32 for each result, and each result for writing `len` elements of
/// its type. The columns are below `len`, and at most 256.
pub type FoldFn = unsafe fn(*const f32, &[Target], [usize; 4]);

/// The columns of a call of [`FoldFn`].
const FOLDED: usize = BLOCK;

/// The sum of the chunks of gradients of weights, on the CPU.
pub(crate) struct FoldRun<'a> {
    /// The op.
    pub(crate) op: FoldFn,
    /// The chunks of the first gradient; those of the others lie behind.
    pub(crate) sums: *const f32,
    /// The gradients of weights.
    pub(crate) results: &'a [Target],
    /// The chunks of each.
    pub(crate) chunks: usize,
    /// Elements of a row.
    pub(crate) len: usize,
}

// SAFETY: the sums are read, and of the results each thread writes its own columns.
unsafe impl Sync for FoldRun<'_> {}

impl FoldRun<'_> {
    /// Adds the chunks, in parallel.
    ///
    /// # Safety
    /// The sums and results are as [`FoldFn`] asks.
    pub(crate) unsafe fn run(&self) {
        let this = self;
        tasks(this.len.div_ceil(FOLDED), |task| {
            let first = task * FOLDED;
            let columns = FOLDED.min(this.len - first);
            // SAFETY: the columns are of the row; the caller's contract.
            unsafe { (this.op)(this.sums, this.results, [this.chunks, this.len, first, columns]) };
        });
    }
}

/// The op `O` on elements `E` as [`FoldFn`].
///
/// # Safety
/// The contract of [`FoldFn`] holds.
pub unsafe fn fold_sums<E: Element, O: RowData>(
    sums: *const f32,
    results: &[Target],
    [chunks, len, first, columns]: [usize; 4],
) {
    // SAFETY: the caller's contract.
    unsafe { at_better(Fold::<E, O> { sums, results, chunks, len, first, columns, of: PhantomData }) }
}

/// Some columns of gradients of weights.
struct Fold<'a, E, O> {
    sums: *const f32,
    results: &'a [Target],
    chunks: usize,
    len: usize,
    first: usize,
    columns: usize,
    of: PhantomData<(E, O)>,
}

/// # Safety
/// The contract of [`FoldFn`] holds.
impl<E: Element, O: RowData> Loop for Fold<'_, E, O> {
    #[inline(always)]
    unsafe fn run<const LEVEL: u8>(self) {
        const GROUPS: usize = FOLD_GROUPS as usize;
        const IN_WARP: usize = FOLD_IN_WARP as usize;
        let Fold { chunks, len, first, columns, .. } = self;
        let weights = (0..O::INFO.results.len()).filter(|&k| O::INFO.is_weight_result(k));
        for (weight, (k, &target)) in weights.zip(self.results).enumerate() {
            let mut groups = [[0.0_f32; BLOCK]; GROUPS];
            for chunk in 0..chunks {
                // SAFETY: the columns are of the chunk; the caller's contract.
                let row = unsafe {
                    std::slice::from_raw_parts(self.sums.add((weight * chunks + chunk) * len + first), columns)
                };
                groups[chunk % GROUPS].iter_mut().zip(row).for_each(|(sum, part)| *sum += part);
            }
            // The groups of each warp in halves, then the warps.
            for warp in groups.chunks_mut(IN_WARP) {
                fold_rows(warp);
            }
            let mut warps = [[0.0_f32; BLOCK]; GROUPS / IN_WARP];
            warps.iter_mut().zip(groups.chunks(IN_WARP)).for_each(|(warp, groups)| *warp = groups[0]);
            fold_rows(&mut warps);
            let (sums, none) = (&warps[0][..columns], [false; BLOCK]);
            // SAFETY: the caller's contract.
            unsafe { store::<E, O, LEVEL>(k, target, first, sums, &none[..columns]) };
        }
    }
}

/// Adds a power of two of rows in halves, into the first.
#[inline(always)]
fn fold_rows(rows: &mut [[f32; BLOCK]]) {
    let mut half = rows.len() / 2;
    while half > 0 {
        let (near, far) = rows.split_at_mut(half);
        near.iter_mut().zip(far).for_each(|(near, far)| join(Reduction::Sum, near, far));
        half /= 2;
    }
}

/// A call on the CPU.
pub(crate) struct RowsRun<'a, const T: usize> {
    /// The op.
    pub(crate) op: RowsFn,
    /// The loop over rows: of the results, then the operands, then nothing.
    pub(crate) walk: &'a Walk<T>,
    /// Steps along a row, in the same order.
    pub(crate) along: [i64; T],
    /// First elements of the results.
    pub(crate) results: &'a [*mut u8],
    /// First elements of the operands.
    pub(crate) operands: &'a [*const u8],
    /// Operands that came with the call.
    pub(crate) given: &'a [Option<u64>],
    /// The element type of each tensor.
    pub(crate) dtypes: [DType; T],
    /// Elements of a row.
    pub(crate) len: u32,
    /// Parameters.
    pub(crate) words: &'a ParamWords,
    /// The results that are gradients of weights: rows of f32 for each chunk. None if `chunks` is 0.
    pub(crate) weights: u16,
    /// The chunks of rows that are summed, or 0.
    pub(crate) chunks: u32,
}

// SAFETY: the pointers are of memory that is borrowed for the call, of which each thread writes its own rows.
unsafe impl<const T: usize> Sync for RowsRun<'_, T> {}

/// Elements of a task.
const TASK: usize = 1 << 14;

impl<const T: usize> RowsRun<'_, T> {
    /// Runs the op on every row, in parallel.
    ///
    /// # Safety
    /// Every row of the walk is valid in its tensors, as [`RowsFn`] asks.
    pub(crate) unsafe fn run(&self) {
        let this = self;
        let rows = this.walk.numel() as usize;
        if this.chunks > 0 {
            let chunks = this.chunks as usize;
            tasks(chunks, |chunk| {
                for (_, sums) in this.results.iter().enumerate().filter(|(k, _)| this.weights >> k & 1 == 1) {
                    let len = this.len as usize;
                    // SAFETY: the sums of the chunk, which no other task touches; the caller's contract.
                    unsafe { sums.cast::<f32>().add(chunk * len).write_bytes(0, len) };
                }
                // SAFETY: the caller's contract.
                (chunk..rows).step_by(chunks).for_each(|row| unsafe { this.row(row, chunk) });
            });
            return;
        }
        let together = TASK.div_ceil((this.len as usize).max(1)).max(1);
        tasks(rows.div_ceil(together), |task| {
            let first = task * together;
            // SAFETY: the caller's contract.
            (first..rows.min(first + together)).for_each(|row| unsafe { this.row(row, 0) });
        });
    }

    /// Runs the op on a row of a chunk.
    ///
    /// # Safety
    /// The contract of [`RowsRun::run`] holds; no other thread runs a row of the chunk.
    #[inline]
    unsafe fn row(&self, row: usize, chunk: usize) {
        let place = self.walk.place(row as u64);
        let bytes = |k: usize| self.dtypes[k].offset(place[k]) as isize;
        let count = self.results.len();
        let none = Source { pointer: std::ptr::null(), step: 0, word: None };
        let (mut sources, mut targets) = ([none; T], [Target { pointer: std::ptr::null_mut(), step: 0 }; T]);
        for (k, (operand, word)) in self.operands.iter().zip(self.given).enumerate() {
            let pointer = operand.wrapping_offset(bytes(count + k));
            sources[k] = Source { pointer, step: self.along[count + k] as isize, word: *word };
        }
        for (k, result) in self.results.iter().enumerate() {
            let is_sum = self.chunks > 0 && self.weights >> k & 1 == 1;
            let offset = if is_sum { (chunk * self.len as usize * 4) as isize } else { bytes(k) };
            targets[k] = Target { pointer: result.wrapping_offset(offset), step: self.along[k] as isize };
        }
        // SAFETY: the caller's contract.
        unsafe { (self.op)(&sources[..self.operands.len()], &targets[..count], self.len, self.words) };
    }
}
