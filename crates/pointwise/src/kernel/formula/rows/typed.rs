//! An op on rows in one element type: its loop, its kernels, and its reference.

use pointwise_core::formula::{OpData, ParamWords};
use pointwise_core::row::{self, EntryClass, of_class};
use pointwise_core::rows::{
    Reduction, RowData, RowOp, RowState, counted_tensors, first_answer, keeps, kept_bytes, most_threads, staged_result,
    sum_bytes,
};
use pointwise_core::{DType, Element, OpInfo, Terms};

use crate::cpu::{FoldFn, RowsFn, fold_sums, rows};
use crate::embed::Kernels;
use crate::kernel::Entry;

/// How a kernel has a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RowClass {
    /// In registers: read once, by vectors.
    Held,
    /// Read once for each round, by vectors or by single elements.
    Streamed,
    /// As `Held`, of rows that are no aligned vectors, by way of shared memory.
    Staged,
    /// As `Held`, of the rows of a chunk in turn, with sums over them: gradients of weights.
    HeldSum,
    /// As `Streamed`, of the rows of a chunk in turn, with sums over them.
    StreamedSum,
    /// The sums of all chunks together.
    Fold,
}

impl RowClass {
    /// The classes of every op on rows.
    pub const ALL: [RowClass; 3] = [RowClass::Held, RowClass::Streamed, RowClass::Staged];
    /// The classes of gradients of weights beside them.
    pub const SUMS: [RowClass; 3] = [RowClass::HeldSum, RowClass::StreamedSum, RowClass::Fold];

    /// Returns the last part of a kernel's name, such as `held`.
    pub const fn name(self) -> &'static str {
        match self {
            RowClass::Held => "held",
            RowClass::Streamed => "streamed",
            RowClass::Staged => "staged",
            RowClass::HeldSum => "held_sum",
            RowClass::StreamedSum => "streamed_sum",
            RowClass::Fold => "fold",
        }
    }
}

/// An op on rows in one element type: its loop and its kernels.
#[derive(Debug)]
pub struct TypedRows {
    pub(in crate::kernel::formula) dtype: DType,
    pub(in crate::kernel::formula) source: u64,
    pub(in crate::kernel::formula) row: u64,
    pub(in crate::kernel::formula) slots: u128,
    pub(super) cpu: RowsFn,
    pub(in crate::kernel::formula) entries: [Entry; RowClass::ALL.len()],
    pub(in crate::kernel::formula) sums: Option<Sums>,
    /// True if the streamed kernel may keep a row in shared memory.
    keeps: bool,
}

/// The loops and kernels of gradients of weights.
#[derive(Debug)]
pub(in crate::kernel::formula) struct Sums {
    pub(super) cpu: RowsFn,
    pub(super) fold: FoldFn,
    pub(super) entries: [Entry; RowClass::SUMS.len()],
}

impl TypedRows {
    /// The op `O` on elements `E`. `symbols` name its kernels in `kernels`, in the order of [`RowClass::ALL`]; `source` is
    /// the hash of the text that they were compiled from.
    ///
    /// # Panics
    /// In a constant, so that it does not compile: the data of `O` contradict its types.
    #[must_use]
    #[track_caller]
    pub const fn new<E, O, const N: usize, const R: usize>(
        symbols: [&'static str; RowClass::ALL.len()],
        source: u64,
        kernels: &'static Kernels,
    ) -> TypedRows
    where
        E: Element,
        O: RowData + RowOp<f32, N, R>,
    {
        let (row, slots) = (row::of_rows::<E, O, N, R>(source), row::slots(&O::INFO));
        let [held, streamed, staged] = symbols;
        let entries = [
            Entry::of(held, of_class(row, EntryClass::Held), slots, kernels),
            Entry::of(streamed, of_class(row, EntryClass::Streamed), slots, kernels).launched_with(usize::MAX),
            Entry::of(staged, of_class(row, EntryClass::Staged), slots, kernels).launched_with(usize::MAX),
        ];
        let cpu = rows::<E, O, N, R, false>;
        TypedRows { dtype: E::DTYPE, source, row, slots, cpu, entries, sums: None, keeps: keeps::<O>() }
    }

    /// With the kernels of gradients of weights: `symbols` name them in the order of [`RowClass::SUMS`].
    ///
    /// # Panics
    /// In a constant, so that it does not compile: the op is another, or has no such gradients.
    #[must_use]
    #[track_caller]
    pub const fn with_sums<E, O, const N: usize, const R: usize>(
        self,
        symbols: [&'static str; RowClass::SUMS.len()],
        kernels: &'static Kernels,
    ) -> TypedRows
    where
        E: Element,
        O: RowData + RowOp<f32, N, R>,
    {
        let TypedRows { dtype, source, row, slots, cpu, entries, keeps, sums: _ } = self;
        assert!(row::of_rows::<E, O, N, R>(source) == row && row::slots(&O::INFO) == slots, "the op is another");
        assert!(O::INFO.weight_results != 0, "the op has no gradients of weights");
        let [held, streamed, fold] = symbols;
        let widest = O::INFO.widest(size_of::<E>());
        let shared = most_threads(counted_tensors(&O::INFO)) * sum_bytes(&O::INFO, widest);
        let of_sums = [
            Entry::of(held, of_class(row, EntryClass::HeldSum), slots, kernels).launched_with(shared as usize),
            Entry::of(streamed, of_class(row, EntryClass::StreamedSum), slots, kernels).launched_with(usize::MAX),
            Entry::of(fold, of_class(row, EntryClass::Fold), slots, kernels),
        ];
        let sums = Some(Sums { cpu: rows::<E, O, N, R, true>, fold: fold_sums::<E, O>, entries: of_sums });
        TypedRows { dtype, source, row, slots, cpu, entries, sums, keeps }
    }

    /// Returns the bytes of shared memory of `count` rows that are no aligned vectors, at most `most`. 0 where they are read by single elements.
    pub(super) fn staged(&self, info: &OpInfo, (count, len): (u32, u32), most: usize) -> u32 {
        let element = self.dtype.size();
        if len as usize > most {
            return 0;
        }
        let bytes = u64::from(count) * u64::from(staged_result(info, info.results.len(), element, len));
        u32::try_from(bytes).ok().filter(|&bytes| bytes as usize <= most).unwrap_or(0)
    }

    /// Returns the bytes of shared memory that keep a row of vectors in a kernel of a class, and the sums of its chunk, at most `most`. 0
    /// where they are not kept.
    pub(super) fn kept(&self, info: &OpInfo, class: RowClass, len: u32, most: usize) -> u32 {
        let sums = match class {
            RowClass::Streamed => 0,
            RowClass::StreamedSum => info.weight_results.count_ones(),
            _ => return 0,
        };
        if !self.keeps || len as usize > most {
            return 0;
        }
        let bytes =
            kept_bytes(info, info.operands.len(), self.dtype.size(), len) + sums * len * size_of::<f32>() as u32;
        if bytes as usize > most { 0 } else { bytes }
    }

    /// Returns the kernel of a class.
    pub(in crate::kernel::formula) fn entry(&self, class: RowClass) -> Option<&Entry> {
        match class {
            RowClass::Held | RowClass::Streamed | RowClass::Staged => Some(&self.entries[class as usize]),
            _ => Some(&self.sums.as_ref()?.entries[class as usize - RowClass::ALL.len()]),
        }
    }
}

/// `(operands, elements of the row, parameters, element type)`: an op on a row in f64, with what steps of f32 could lose. An
/// operand has an element for each of the row, or one for all; a bool is 0 or 1. Results have one for each of the row, or one.
pub type RowReferenceFn = fn(&[&[f64]], usize, &ParamWords, DType) -> Vec<Vec<Terms>>;

/// The op `O` as [`RowReferenceFn`].
pub fn reference_of_rows<O, const N: usize, const R: usize>(
    operands: &[&[f64]],
    len: usize,
    words: &ParamWords,
    dtype: DType,
) -> Vec<Vec<Terms>>
where
    O: OpData + RowOp<Terms, N, R>,
{
    let number = |k: usize, i: usize| match operands.get(k) {
        Some(&&[one]) => one,
        Some(row) => row.get(i).copied().unwrap_or(0.0),
        None => 0.0,
    };
    let at = |i: usize| {
        let values: [Terms; N] = std::array::from_fn(|k| Terms::exact(number(k, i)));
        (values, std::array::from_fn(|k| number(k, i) != 0.0))
    };
    let op = O::from_words(words);
    let mut state = RowState::new(len as u32, dtype);
    for (round, reductions) in O::ROUNDS.iter().enumerate() {
        let mut all: Vec<Terms> = reductions.iter().map(|reduction| reduction.neutral()).collect();
        // Sums lose a part of the size of all terms.
        let mut sizes = vec![0.0; reductions.len()];
        for i in 0..len {
            let (values, truths) = at(i);
            let given = op.given(round, values, truths, &state, i as u32);
            for (((all, size), reduction), given) in all.iter_mut().zip(&mut sizes).zip(*reductions).zip(given) {
                *all = Reduction::join(*reduction, *all, given);
                *size += given.size.max(given.value.abs());
            }
        }
        for ((all, size), reduction) in all.iter_mut().zip(sizes).zip(*reductions) {
            if matches!(reduction, Reduction::Sum | Reduction::Mean) && size.is_finite() {
                all.size = all.size.max(size);
            }
        }
        let first = first_answer(O::ROUNDS, round);
        for (k, (reduction, all)) in reductions.iter().zip(all).enumerate() {
            state.answers[first + k] = reduction.finish(all, state.len);
        }
    }
    op.solve(&mut state);
    let mut results = vec![Vec::new(); R];
    for (k, result) in results.iter_mut().enumerate() {
        let count = if O::INFO.is_row_result(k) { 1 } else { len };
        for i in 0..count {
            let (values, truths) = if i < len { at(i) } else { ([Terms::exact(0.0); N], [false; N]) };
            let (of_type, of_bool) = op.results(values, truths, &state, i as u32);
            let is_bool = O::INFO.bool_results() >> k & 1 == 1;
            result.push(if is_bool { Terms::exact(u8::from(of_bool[k]).into()) } else { of_type[k] });
        }
    }
    results
}
