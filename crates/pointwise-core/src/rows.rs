//! Formulas that reduce over a row: what they ask, and how templates and loops answer.
//!
//! A formula is evaluated by phases. In phase `k` it knows the answers of the reductions before `k`; what it gives to
//! reduction `k` is recorded, and everything behind it is dead code. After the last reduction it is evaluated once more, for
//! its results. Kernels, CPU loops, the oracle and gradients all evaluate the same function so.
//!
//! **The tree of a reduction is fixed by the op, the row's length and the element type.** A row has `threads * lanes`
//! virtual lanes ([`threads`]); element `i` belongs to lane `i % (threads * lanes)`, which takes its elements in order.
//! Lanes are folded in halves: those of a vector, of a warp, of 16 warps. So a row has the same bits in every batch, on every
//! GPU and on the CPU. Sums over rows, the gradients of weights, are of fixed [`chunks`] of rows.

use core::cell::Cell;

use crate::dtype::DType;
use crate::dual::Dual;
use crate::formula::OpData;
use crate::info::OpInfo;
use crate::num::Real;

/// The most reductions of a formula.
pub const MAX_REDUCTIONS: usize = 3;
/// The most values that one round reduces: the sums of a gradient.
pub const MAX_GIVEN: usize = 9;
/// The most answers of all rounds.
pub const MAX_ANSWERS: usize = MAX_REDUCTIONS + MAX_GIVEN;
/// The most threads of a row.
pub const MAX_THREADS: u32 = 512;
/// The threads of a warp.
pub const WARP: u32 = 32;
/// The threads of a block whose rows have a warp or less each.
pub const BLOCK: u32 = 128;
/// The bit of a row kernel's `mode`: every access is to one element.
pub const SINGLES: u32 = 1 << 31;
/// The bit of a streamed kernel's `mode`: the row's operands are copied to shared memory first, and read there. Sums over rows are
/// there, too.
pub const KEPT: u32 = 1 << 30;
/// The multiprocessors that [`chunks`] are made for, of an H100 or H200: each has as many of them, so that none waits for the last.
const MULTIPROCESSORS: u32 = 132;
/// The threads that a multiprocessor has at once, of 128 registers each, as kernels that sum over rows have.
const SUMMING_THREADS: u32 = 512;
/// The most chunks of a multiprocessor. To add the chunks of short rows would take longer than to sum them.
const MAX_CHUNKS: u32 = 64;
/// The columns that a block takes the chunks' sums of.
pub const FOLD_COLUMNS: u32 = 8;
/// The groups that a block puts the chunks of a column into: group `g` has chunks `g`, `g + FOLD_GROUPS`, ...
pub const FOLD_GROUPS: u32 = 64;
/// The groups of a column in a warp.
pub const FOLD_IN_WARP: u32 = WARP / FOLD_COLUMNS;

/// A reduction of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reduction {
    /// The sum.
    Sum,
    /// The sum divided by the number of elements.
    Mean,
    /// The largest; NaN if there is one.
    Max,
    /// The smallest; NaN if there is one.
    Min,
}

impl Reduction {
    /// Returns the answer of a row without elements, before [`Reduction::finish`].
    #[inline(always)]
    pub fn neutral<T: Real>(self) -> T {
        match self {
            Reduction::Sum | Reduction::Mean => T::ZERO,
            Reduction::Max => T::constant(f64::NEG_INFINITY),
            Reduction::Min => T::constant(f64::INFINITY),
        }
    }

    /// Returns two parts together. It is commutative, bit for bit.
    #[inline(always)]
    pub fn join<T: Real>(self, a: T, b: T) -> T {
        match self {
            Reduction::Sum | Reduction::Mean => a + b,
            Reduction::Max => a.maximum(b),
            Reduction::Min => a.minimum(b),
        }
    }

    /// Returns the answer, of all parts together, of a row of `len` elements.
    #[inline(always)]
    pub fn finish<T: Real>(self, all: T, len: T) -> T {
        match self {
            Reduction::Mean => all / len,
            _ => all,
        }
    }
}

/// The knowledge of a round of a row's evaluation.
#[derive(Clone, Copy, Debug)]
pub struct RowState<T> {
    /// The answers so far: of the reductions; of a gradient also its sums behind them.
    pub answers: [T; MAX_ANSWERS],
    /// The number of elements of the row.
    pub len: T,
    /// The element type.
    pub dtype: DType,
}

impl<T: Real> RowState<T> {
    /// Returns the state before the first round, of a row of `len` elements.
    #[inline(always)]
    pub fn new(len: u32, dtype: DType) -> Self {
        RowState { answers: [T::ZERO; MAX_ANSWERS], len: T::whole(len as i64), dtype }
    }
}

/// The rounds of an op on rows, each with its reductions.
pub trait RowData: OpData {
    /// The reductions of each round.
    const ROUNDS: &'static [&'static [Reduction]];
}

/// Returns the index of a round's first answer.
#[must_use]
pub const fn first_answer(rounds: &[&[Reduction]], round: usize) -> usize {
    let (mut first, mut k) = (0, 0);
    while k < round {
        first += rounds[k].len();
        k += 1;
    }
    first
}

/// An op on rows from `N` operands to `R` results, in the compute type `T`: [`Formula`](crate::Formula) with rounds before
/// the results.
pub trait RowOp<T, const N: usize, const R: usize>: RowData {
    /// Returns what an element gives to the reductions of a round: element `index` of the row.
    fn given(self, round: usize, values: [T; N], truths: [bool; N], row: &RowState<T>, index: u32) -> [T; MAX_GIVEN];
    /// Works on the answers, after the last round.
    #[inline(always)]
    fn solve(self, row: &mut RowState<T>) {
        _ = row;
    }
    /// Computes the results of element `index`, not yet rounded; those of the row are the same for all elements.
    fn results(self, values: [T; N], truths: [bool; N], row: &RowState<T>, index: u32) -> ([T; R], [bool; R]);
}

/// The row of an element. A formula that has it as an argument reduces over the last dimension of its operands.
///
/// ```ignore
/// #[op(f32, f16, bf16, ulp = 8)]
/// pub fn softmax<T: Real>(x: T, row: Row<T>) -> T {
///     let e = (x - row.max(x)).exp();
///     e / row.sum(e)
/// }
/// ```
#[derive(Clone, Copy)]
pub struct Row<'a, T> {
    asked: &'a Asked<T>,
}

impl<T: Real> Row<'_, T> {
    /// The sum of a value over all elements of the row; 0 if it has none.
    #[inline(always)]
    pub fn sum(self, value: T) -> T {
        self.asked.ask(value)
    }
    /// The mean; NaN of a row without elements.
    #[inline(always)]
    pub fn mean(self, value: T) -> T {
        self.asked.ask(value)
    }
    /// The biased variance and the mean, as `torch.var_mean(correction=0)`: two reductions. The variance is the mean of the squared
    /// distances from the mean. Its gradient does not go through that mean, where it is zero.
    #[inline(always)]
    pub fn var_mean(self, value: T) -> (T, T) {
        let mean = self.mean(value);
        let distance = value - mean.detach();
        (self.mean(distance * distance), mean)
    }
    /// The largest value: NaN if one is, as `torch.amax`. Equal ones share its derivative.
    #[inline(always)]
    pub fn max(self, value: T) -> T {
        self.asked.ask(value)
    }
    /// The smallest value: NaN if one is, as `torch.amin`. Equal ones share its derivative.
    #[inline(always)]
    pub fn min(self, value: T) -> T {
        self.asked.ask(value)
    }
    /// The number of elements.
    #[inline(always)]
    pub fn len(self) -> T {
        self.asked.len
    }
    /// The element's place in the row, from 0 on; a whole number, exact up to 2^24.
    #[inline(always)]
    pub fn index(self) -> T {
        self.asked.index
    }
    /// A value as it is stored: rounded to the element type. Its derivative is that of the value.
    #[inline(always)]
    pub fn stored(self, value: T) -> T {
        value.rounded_to(self.asked.dtype)
    }
    /// `e^value` of a value that is not positive, as exact as results of the element type need. Of another value it has no meaning.
    #[inline(always)]
    pub fn exp_negative(self, value: T) -> T {
        if self.asked.dtype.size() < 4 { value.exp_negative_16() } else { value.exp_negative() }
    }
}

/// The place of an element in its row, for a gradient that is a function: such a function reduces nothing.
#[derive(Clone, Copy)]
pub struct Place<'a, T> {
    row: Row<'a, T>,
}

impl<T: Real> Place<'_, T> {
    /// The number of elements of the row.
    #[inline(always)]
    pub fn len(self) -> T {
        self.row.len()
    }
    /// The element's place in the row, from 0 on; a whole number, exact up to 2^24.
    #[inline(always)]
    pub fn index(self) -> T {
        self.row.index()
    }
    /// A value as it is stored: rounded to the element type.
    #[inline(always)]
    pub fn stored(self, value: T) -> T {
        self.row.stored(value)
    }
}

/// A result that a row has once. Its shape is that of the others without the last dimension.
///
/// Write it of what the row answered: of other values it has those of the row's first element, and its derivative by them
/// is not counted.
#[derive(Clone, Copy, Debug)]
pub struct PerRow<T>(pub T);

/// The answers to a formula in one phase, and what it gives.
pub struct Asked<T> {
    known: [T; MAX_REDUCTIONS],
    /// The number of reductions that are answered.
    phase: usize,
    len: T,
    index: T,
    dtype: DType,
    seen: Cell<usize>,
    given: [Cell<T>; MAX_REDUCTIONS],
}

impl<T: Real> Asked<T> {
    /// Returns the answers of `phase` reductions to element `index`, each made by `of` from the one in `row` and its
    /// number; `plain` makes the length and the index.
    #[inline(always)]
    pub fn new<S: Real>(
        row: &RowState<S>,
        phase: usize,
        index: u32,
        of: impl Fn(S, usize) -> T,
        plain: impl Fn(S) -> T,
    ) -> Self {
        let [a, b, c, ..] = row.answers;
        Asked {
            known: [of(a, 0), of(b, 1), of(c, 2)],
            phase,
            len: plain(row.len),
            index: plain(S::whole(index as i64)),
            dtype: row.dtype,
            seen: Cell::new(0),
            given: [Cell::new(T::ZERO), Cell::new(T::ZERO), Cell::new(T::ZERO)],
        }
    }

    /// Returns the row that a formula asks.
    #[inline(always)]
    pub fn row(&self) -> Row<'_, T> {
        Row { asked: self }
    }

    /// Returns the place of the element, for a function that reduces nothing.
    #[inline(always)]
    pub fn place(&self) -> Place<'_, T> {
        Place { row: self.row() }
    }

    #[inline(always)]
    fn ask(&self, value: T) -> T {
        let k = self.seen.get();
        self.seen.set(k + 1);
        if let Some(given) = self.given.get(k) {
            given.set(value);
        }
        match self.known.get(k) {
            Some(&known) if k < self.phase => known,
            _ => T::ZERO,
        }
    }

    /// Returns what was given to reduction `k`.
    #[inline(always)]
    pub fn given(&self, k: usize) -> T {
        self.given.get(k).map_or(T::ZERO, Cell::get)
    }

    /// Returns what was given to the reductions from `first` on.
    #[inline(always)]
    pub fn from(&self, first: usize) -> [T; MAX_GIVEN] {
        let mut given = [T::ZERO; MAX_GIVEN];
        let mut k = 0;
        while k < MAX_REDUCTIONS - first {
            given[k] = self.given(first + k);
            k += 1;
        }
        given
    }
}

/// Returns the part of a gradient by variable `k`: `grad` times the derivative, if there is one.
#[inline(always)]
pub fn term<T: Real, const K: usize>(grad: T, of: Dual<T, K>, k: usize) -> Option<T> {
    if of.has_gradient(k) { Some(grad * of.gradient(k)) } else { None }
}

/// Returns a part of a gradient by what the row has once: its first element has it.
#[inline(always)]
pub fn once<T: Real>(part: Option<T>, index: u32) -> Option<T> {
    match part {
        Some(part) if index == 0 => Some(part),
        Some(_) => Some(T::ZERO),
        None => None,
    }
}

/// Returns two parts of a gradient together. No compiler leaves out the addition of a zero, so a part that is not there is none.
#[inline(always)]
pub fn both<T: Real>(a: Option<T>, b: Option<T>) -> Option<T> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a + b),
        (Some(one), None) | (None, Some(one)) => Some(one),
        (None, None) => None,
    }
}

/// Returns all parts of a gradient together: 0 if there are none.
#[inline(always)]
pub fn or_zero<T: Real>(all: Option<T>) -> T {
    match all {
        Some(all) => all,
        None => T::ZERO,
    }
}

/// Returns the derivative `value` of what an element gives to a reduction, as far as it counts for its answer: all of it in
/// a sum, and of the largest or smallest elements alone.
#[inline(always)]
pub fn chosen<T: Real>(reduction: Reduction, given: T, answer: T, value: T) -> T {
    match reduction {
        Reduction::Max | Reduction::Min if given != answer => T::ZERO,
        _ => value,
    }
}

/// [`chosen`], of a derivative that may not be there.
#[inline(always)]
pub fn chosen_part<T: Real>(reduction: Reduction, given: T, answer: T, part: Option<T>) -> Option<T> {
    Some(chosen(reduction, given, answer, part?))
}

/// Returns the derivative by an answer, `total`, as one by a given value: divided by the elements that share it, which are
/// `count` in a largest or smallest.
#[inline(always)]
pub fn shared<T: Real>(reduction: Reduction, total: T, len: T, count: T) -> T {
    match reduction {
        Reduction::Sum => total,
        Reduction::Mean => total / len,
        Reduction::Max | Reduction::Min => total / count,
    }
}

/// Returns the vectors of 16 bytes that the kernels promise: loads, stores.
#[must_use]
pub const fn promises(info: &OpInfo, element: usize) -> [bool; 2] {
    let (widest, mut loads, mut stores, mut k) = (info.widest(element), false, false, 0);
    while k < info.operands.len() {
        loads |= info.operand_size(k, element) >= widest && !info.is_row_operand(k);
        k += 1;
    }
    k = 0;
    while k < info.results.len() {
        stores |= info.result_size(k, element) >= widest && !info.is_row_result(k);
        k += 1;
    }
    [loads && info.bool_operands() == 0, stores]
}

/// Returns the vectors of 16 bytes of shared memory that a thread keeps sums over rows in: those of the gradients of weights before
/// result `k`.
#[inline(always)]
#[must_use]
pub const fn sum_vectors(info: &OpInfo, k: usize, element: usize) -> usize {
    let before = info.weight_results as u32 & ((1 << k) - 1);
    before.count_ones() as usize * vectors(element, counted_tensors(info)) * lanes(element).div_ceil(4)
}

/// Returns the bytes of shared memory that a thread keeps sums over rows in: an odd number of vectors, so that neighbours have other
/// banks.
#[inline(always)]
#[must_use]
pub const fn sum_bytes(info: &OpInfo, element: usize) -> u32 {
    let all = sum_vectors(info, info.results.len(), element);
    16 * (all | 1) as u32
}

/// True if a thread holds twelve vectors or more of elements of up to 16 bits, in a kernel that keeps to few registers: 72 of them.
#[must_use]
pub const fn is_crowded(info: &OpInfo, lanes: usize, vectors: usize) -> bool {
    info.properties.few_registers && lanes > 4 && vectors * info.operands.len() >= 12
}

/// True if a kernel reads its rows more than once, and so may keep them in shared memory.
#[must_use]
pub const fn keeps<O: RowData>() -> bool {
    O::ROUNDS.len() > all_of_row(&O::INFO) as usize
}

/// True if a streamed kernel may keep operand `k` in shared memory. Weights stay where they are, as all rows read them. Elements are
/// copied by 4 bytes or more.
#[inline(always)]
#[must_use]
pub const fn is_keepable(info: &OpInfo, k: usize, element: usize) -> bool {
    let bytes = lanes(info.widest(element)) * info.operand_size(k, element);
    !info.is_row_operand(k) && !info.is_weight(k) && bytes >= 4
}

/// Returns the bytes of shared memory that operands before `k` take, where they are kept for a row of `len` elements: the place of
/// operand `k`, and of the number of operands the bytes of all.
#[inline(always)]
#[must_use]
pub const fn kept_bytes(info: &OpInfo, k: usize, element: usize, len: u32) -> u32 {
    let (mut bytes, mut before) = (0, 0);
    while before < k {
        if is_keepable(info, before, element) {
            bytes += (len * info.operand_size(before, element) as u32).next_multiple_of(16);
        }
        before += 1;
    }
    bytes
}

/// Returns the bytes of a staged tensor: whole vectors, and 16 more, as the first element is where it is in an aligned vector of memory.
#[inline(always)]
#[must_use]
pub const fn staged_tensor(info: &OpInfo, size: usize, element: usize, len: u32) -> u32 {
    let len = len.next_multiple_of(lanes(info.widest(element)) as u32);
    (len * size as u32).next_multiple_of(16) + 16
}

/// Returns the bytes of shared memory that operands before `k` take in a staged row of `len` elements: the place of operand `k`.
#[inline(always)]
#[must_use]
pub const fn staged_operand(info: &OpInfo, k: usize, element: usize, len: u32) -> u32 {
    let (mut bytes, mut before) = (0, 0);
    while before < k {
        if !info.is_row_operand(before) {
            bytes += staged_tensor(info, info.operand_size(before, element), element, len);
        }
        before += 1;
    }
    bytes
}

/// Returns the place in shared memory of result `k` of a staged row of `len` elements, and of the number of results the bytes of all
/// tensors. A result takes the place of the operand of its index, if their elements have one size; weights are read to the end.
#[inline(always)]
#[must_use]
pub const fn staged_result(info: &OpInfo, k: usize, element: usize, len: u32) -> u32 {
    if k < info.results.len() && replaces_operand(info, k, element) {
        return staged_operand(info, k, element, len);
    }
    let (mut bytes, mut before) = (staged_operand(info, info.operands.len(), element, len), 0);
    while before < k {
        if !info.is_row_result(before) && !replaces_operand(info, before, element) {
            bytes += staged_tensor(info, info.result_size(before, element), element, len);
        }
        before += 1;
    }
    bytes
}

/// True if result `k` of a staged row takes the place of operand `k`.
#[inline(always)]
const fn replaces_operand(info: &OpInfo, k: usize, element: usize) -> bool {
    k < info.operands.len()
        && !info.is_row_operand(k)
        && !info.is_weight(k)
        && info.operand_size(k, element) == info.result_size(k, element)
}

/// Returns the barriers of a kernel of staged rows beside its rounds'. The first is before threads read what others have copied. If no
/// reduction follows, the second is before results overwrite operands. The last is before threads copy what others have written.
#[must_use]
pub const fn staging_barriers(info: &OpInfo, rounds: usize) -> usize {
    if all_of_row(info) { 1 } else { 2 + (rounds == 0) as usize }
}

/// Returns the barriers of a kernel of an op: one a round. A kernel that takes several rows in turn has one more where one round's
/// shared memory would be written again before all have read it.
#[must_use]
pub const fn barriers(rounds: usize, sums: bool) -> usize {
    if sums && rounds == 1 { 2 } else { rounds }
}

/// Returns the barriers of the kernel that adds the chunks of `weights` results: each is written to shared memory and read.
#[must_use]
pub const fn fold_barriers(weights: u32) -> usize {
    (2 * weights - 1) as usize
}

/// True if the row has each result once.
#[must_use]
pub const fn all_of_row(info: &OpInfo) -> bool {
    info.row_results as u32 == (1 << info.results.len()) - 1
}

/// Returns the vectors that a thread of a streamed row has under way together: more where there are few tensors, and so few
/// registers for each.
#[must_use]
pub const fn streamed_vectors<O: RowData>() -> usize {
    let info = &O::INFO;
    let of_row = info.row_operands.count_ones() + info.row_results.count_ones();
    match info.operands.len() + info.results.len() - of_row as usize {
        ..=2 => 4,
        3 | 4 => 2,
        _ => 1,
    }
}

/// Returns the elements of a vector of 16 bytes, `element` bytes each.
#[inline(always)]
#[must_use]
pub const fn lanes(element: usize) -> usize {
    16 / element
}

/// Returns the tensors of an op, as its threads are counted by them: gradients of weights are one, since their sums take no registers.
#[must_use]
pub const fn counted_tensors(info: &OpInfo) -> usize {
    let sums = info.weight_results.count_ones() as usize;
    info.operands.len() + info.results.len() - sums.saturating_sub(1)
}

/// Returns the most threads of a row, of an op of so many tensors: with many, a thread takes more registers.
#[inline(always)]
#[must_use]
pub const fn most_threads(tensors: usize) -> u32 {
    if tensors <= 6 { MAX_THREADS } else { MAX_THREADS / 2 }
}

/// Returns the vectors of a row that a thread has in registers at most, in kernels of so many tensors.
#[inline(always)]
#[must_use]
pub const fn vectors(element: usize, tensors: usize) -> usize {
    let most = match tensors {
        ..=4 => 32,
        5..=8 => 16,
        _ => 8,
    };
    let vectors = most / lanes(element);
    match vectors {
        0 => 1,
        1..=4 => vectors,
        _ => 4,
    }
}

/// Returns the threads of a row of `len` elements, of `element` bytes each, of an op of so many tensors: a power of two up to a
/// warp, or whole warps. The tree of its reductions is fixed by it.
#[inline(always)]
#[must_use]
pub const fn threads(len: usize, element: usize, tensors: usize) -> u32 {
    let vectors = len.div_ceil(lanes(element));
    let each = self::vectors(element, tensors);
    let wanted = vectors.div_ceil(each);
    if wanted <= WARP as usize {
        return if wanted == 0 { 1 } else { (wanted as u32).next_power_of_two() };
    }
    let warps = wanted.div_ceil(WARP as usize);
    let most = most_threads(tensors);
    if warps >= (most / WARP) as usize { most } else { warps as u32 * WARP }
}

/// Returns the chunks that sums over rows are made of, for `rows` rows of `threads` threads each: chunk `c` has rows `c`,
/// `c + chunks`, ..., added in this order. The sum of the chunks has a tree of its own, by [`FOLD_GROUPS`]: groups of chunks in
/// order, then the groups of each warp in halves, then the warps in halves.
#[inline(always)]
#[must_use]
pub const fn chunks(rows: u64, threads: u32) -> u32 {
    let each = SUMMING_THREADS / threads;
    let most = MULTIPROCESSORS * if each < MAX_CHUNKS { each } else { MAX_CHUNKS };
    if rows < most as u64 { rows as u32 } else { most }
}

/// True if the threads of a row hold all of its vectors in registers.
#[inline(always)]
#[must_use]
pub const fn is_held(len: usize, element: usize, tensors: usize) -> bool {
    let vectors = len.div_ceil(lanes(element));
    vectors <= threads(len, element, tensors) as usize * self::vectors(element, tensors)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_by_length_and_type() {
        let of = |len| threads(len, 2, 2);
        assert_eq!(
            [0, 1, 8, 9, 64, 128, 256, 1024, 4096, 5120, 16_384, 1 << 20].map(of),
            [1, 1, 1, 1, 2, 4, 8, 32, 128, 160, 512, 512]
        );
        assert_eq!([4096, 4097, 8192].map(|len| threads(len, 4, 2)), [256, 288, 512]);
        assert!(is_held(16_384, 2, 2) && !is_held(16_385, 2, 2));
        assert_eq!([(2, 2), (2, 5), (2, 9), (4, 9), (1, 9)].map(|(size, n)| vectors(size, n)), [4, 2, 1, 2, 1]);
    }

    #[test]
    fn chunks_are_by_rows_and_threads() {
        assert_eq!(
            [(0, 1), (5, 512), (1000, 512), (1 << 40, 256), (1 << 40, 1)].map(|(m, t)| chunks(m, t)),
            [0, 5, 132, 264, 8448]
        );
        assert_eq!((barriers(0, true), barriers(1, true), barriers(2, true), barriers(1, false)), (0, 2, 2, 1));
    }

    #[test]
    fn staged_results_take_operands_places() {
        // `x`, a weight and a bool; results of the op's type, one for the row, and of 8 bits.
        let info = OpInfo {
            operands: &["x", "weight", "mask"],
            results: &["y", "scale", "q"],
            operand_types: &[None, None, Some(DType::Bool)],
            result_types: &[None, Some(DType::F32), Some(DType::F8E4M3)],
            weight_operands: 0b10,
            row_results: 0b10,
            ..OpInfo::FORMULA
        };
        let operands = [0, 1, 2, 3].map(|k| staged_operand(&info, k, 2, 9));
        assert_eq!(operands, [0, 48, 96, 128]);
        assert_eq!([0, 2, 3].map(|k| staged_result(&info, k, 2, 9)), [0, 96, 128]);
    }

    #[test]
    fn a_formula_is_asked_in_phases() {
        let formula = |x: f64, row: Row<f64>| {
            let e = (x - row.max(x)).exp();
            e / row.sum(e)
        };
        let mut row = RowState::new(2, DType::F32);
        let plain = |x: f64| x;
        let phase = |row: &RowState<f64>, k: usize, x: f64| {
            let asked = Asked::new(row, k, 0, |known, _| known, plain);
            let y = formula(x, asked.row());
            (y, asked.given(0), asked.given(1))
        };
        assert_eq!(phase(&row, 0, 3.0).1, 3.0);
        row.answers[0] = 3.0;
        assert_eq!(phase(&row, 1, 3.0).2, 1.0);
        row.answers[1] = 4.0;
        assert_eq!(phase(&row, 2, 3.0).0, 0.25);
    }
}
