//! Ops on rows: their kernels, and a call of them. A row is the last dimension of the shape that the operands broadcast to; of groups
//! that is a group.

use pointwise_core::formula::{OpData, ParamWords};
use pointwise_core::launch::{MAX_ROW_DIMS, NUMBER, ONCE, ROW_SPLITS};
use pointwise_core::row::{self, EntryClass, of_class};
use pointwise_core::rows::{
    BLOCK, FOLD_COLUMNS, KEPT, MAX_THREADS, Reduction, RowData, RowOp, RowState, SINGLES, WARP, chunks,
    counted_tensors, first_answer, is_crowded, is_held, keeps, kept_bytes, lanes, most_threads, sum_bytes, threads,
    vectors,
};
use pointwise_core::{DType, Element, OpInfo, Terms};

use super::call::Kernel;
use super::checked::{CheckedOperands, Results};
use super::groups;
use crate::cpu::{FoldFn, FoldRun, RowsFn, RowsRun, Target, fold_sums, rows};
use crate::cuda::{self, Function, Grid, Held};
use crate::embed::Kernels;
use crate::error::{ErrorKind, Result};
use crate::kernel::choice::Params;
use crate::kernel::walk::{Limit, OperandStrides, Places, StepWords, Walk, broadcast};
use crate::kernel::{Class, Entry, KernelPlan, Strategy};
use crate::kernel::{check, promote};
use crate::shape::Shape;
use crate::tensor::{Overlap, Tensor, TensorView, overlap};

/// How a kernel has a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RowClass {
    /// In registers: read once, by vectors.
    Held,
    /// Read once for each round, by vectors or by single elements.
    Streamed,
    /// As `Held`, of the rows of a chunk in turn, with sums over them: gradients of weights.
    HeldSum,
    /// As `Streamed`, of the rows of a chunk in turn, with sums over them.
    StreamedSum,
    /// The sums of all chunks together.
    Fold,
}

impl RowClass {
    /// The classes of every op on rows.
    pub const ALL: [RowClass; 2] = [RowClass::Held, RowClass::Streamed];
    /// The classes of gradients of weights beside them.
    pub const SUMS: [RowClass; 3] = [RowClass::HeldSum, RowClass::StreamedSum, RowClass::Fold];

    /// Returns the last part of a kernel's name, such as `held`.
    pub const fn name(self) -> &'static str {
        match self {
            RowClass::Held => "held",
            RowClass::Streamed => "streamed",
            RowClass::HeldSum => "held_sum",
            RowClass::StreamedSum => "streamed_sum",
            RowClass::Fold => "fold",
        }
    }
}

/// An op on rows in one element type: its loop and its kernels.
#[derive(Debug)]
pub struct TypedRows {
    pub(super) dtype: DType,
    pub(super) source: u64,
    pub(super) row: u64,
    pub(super) slots: u128,
    pub(super) cpu: RowsFn,
    pub(super) entries: [Entry; RowClass::ALL.len()],
    pub(super) sums: Option<Sums>,
    /// True if the streamed kernel may keep a row in shared memory.
    keeps: bool,
}

/// The loops and kernels of gradients of weights.
#[derive(Debug)]
pub(super) struct Sums {
    cpu: RowsFn,
    fold: FoldFn,
    entries: [Entry; RowClass::SUMS.len()],
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
        let [held, streamed] = symbols;
        let entries = [
            Entry::of(held, of_class(row, EntryClass::Held), slots, kernels),
            Entry::of(streamed, of_class(row, EntryClass::Streamed), slots, kernels).launched_with(usize::MAX),
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

    /// Returns the bytes of shared memory that keep a row of vectors in a kernel of a class, and the sums of its chunk, at most `most`. 0
    /// where they are not kept.
    fn kept(&self, info: &OpInfo, class: RowClass, len: u32, most: usize) -> u32 {
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
    pub(super) fn entry(&self, class: RowClass) -> Option<&Entry> {
        match class {
            RowClass::Held | RowClass::Streamed => Some(&self.entries[class as usize]),
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

/// The rows of a call.
struct Rows<const T: usize> {
    /// Over the rows: of the results, then the operands.
    walk: Walk<T>,
    /// Steps along a row, in the same order.
    along: Places<T>,
    /// Addresses of the first elements, 0 for numbers.
    at: [usize; T],
    /// Elements of a row.
    len: u32,
    class: RowClass,
    /// True if every access is to one element.
    singles: bool,
    /// The bytes of shared memory that keep a row; 0 where a streamed row is loaded for each round.
    kept: u32,
    /// The threads of a row.
    threads: u32,
    /// The chunks of rows that gradients of weights are summed over, if they are.
    chunks: Option<u32>,
}

impl<const T: usize> Rows<T> {
    /// The threads of a block.
    fn block(&self) -> u32 {
        if self.threads > WARP { self.threads } else { BLOCK }
    }
}

/// The shape of the rows, without the last dimension.
pub(super) fn outer(shape: &Shape) -> Result<Shape> {
    Shape::new(&shape[..shape.rank().saturating_sub(1)])
}

/// The most threads of 72 registers of which a multiprocessor has two blocks.
const MOST_CROWDED: u32 = 448;

/// The elements of a row.
fn length(shape: &Shape) -> usize {
    shape.last().copied().unwrap_or(1)
}

/// True if elements of a row lie one after another in a view, or are one.
fn is_dense(view: &TensorView<'_>) -> bool {
    let last = view.strides().last().copied().unwrap_or(0);
    matches!(last, 0 | 1) || length(view.shape()) == 1
}

impl Kernel<'_> {
    /// Runs the op on each row.
    ///
    /// # Safety
    /// The results are checked. They share no more memory with operands and each other than
    /// [`Shared`](super::checked::Shared) says; the pointers are their first elements, and may be written through.
    #[inline(never)] // Its variables would make those of every call more.
    pub(super) unsafe fn write_rows<const N: usize, const T: usize>(
        &self,
        ready: &CheckedOperands<'_, N>,
        targets: &Results<'_, T>,
    ) -> Result<()> {
        let info = &self.def.info;
        let is_empty = outer(&ready.shape)?.contains(&0);
        let is_summed = is_summed(info, &ready.shape, &ready.views);
        if is_empty && !is_summed || length(&ready.shape) == 0 && info.row_results == 0 {
            return Ok(());
        }
        let mut copies: [Option<Tensor>; N] = std::array::from_fn(|_| None);
        let views = self.dense(ready, targets, &mut copies)?;
        let mut rows = self.rows_of(ready, &views, targets)?;
        let (operands, results) = (info.operands.len(), info.results.len());
        let typed = self.def.typed_rows(ready.dtype)?;
        let (sums, mut pointers) = (typed.sums.as_ref().filter(|_| is_summed), targets.pointers);
        let mut made = None;
        if let Some(shape) = self.workspace_of(&ready.shape, ready.dtype, is_summed)? {
            let pointer = match targets.workspace {
                Some((pointer, view)) => {
                    self.check_workspace(ready, targets, view, &shape)?;
                    pointer
                }
                None => {
                    promote::refuse_captured(self.stream(), || {
                        (format!("sums of {} in a call that is captured", info.name), "give it a workspace()")
                    })?;
                    made.insert(Tensor::empty(&ready.device, DType::F32, shape)?).as_mut_ptr()?
                }
            };
            // The chunks of each gradient of a weight, one behind the other.
            let bytes = rows.chunks.unwrap_or(0) as usize * rows.len as usize * size_of::<f32>();
            for (at, k) in (0..results).filter(|&k| info.is_weight_result(k)).enumerate() {
                pointers[k] = pointer.wrapping_add(at * bytes);
                rows.at[k] = pointers[k].addr();
            }
        }
        let memory = made.as_ref().map(Tensor::view).or(targets.workspace.map(|(_, view)| *view));
        let Some(context) = ready.device.context() else {
            let sources = views.map(|view| view.map_or(std::ptr::null(), |view| view.as_ptr()));
            let run = RowsRun {
                op: sums.map_or(typed.cpu, |sums| sums.cpu),
                walk: &rows.walk,
                along: rows.along,
                results: &pointers[..results],
                operands: &sources[..operands],
                given: &ready.given[..operands],
                dtypes: self.dtypes(ready.dtype),
                len: rows.len,
                words: &ready.words,
                weights: info.weight_results,
                chunks: rows.chunks.unwrap_or(0),
            };
            // SAFETY: walk and steps are of the views' shapes and strides; the workspace has the chunks; the caller's contract.
            unsafe {
                if !is_empty {
                    run.run();
                }
                if let Some(sums) = sums {
                    let weights = || (0..results).filter(|&k| info.is_weight_result(k));
                    let first = weights().next().map_or(std::ptr::null_mut(), |k| pointers[k]);
                    let mut folded = [Target { pointer: std::ptr::null_mut(), step: 1 }; T];
                    folded.iter_mut().zip(weights()).for_each(|(to, k)| to.pointer = targets.pointers[k]);
                    let fold = FoldRun {
                        op: sums.fold,
                        sums: first.cast(),
                        results: &folded[..weights().count()],
                        chunks: rows.chunks.unwrap_or(0) as usize,
                        len: rows.len as usize,
                    };
                    fold.run();
                }
            }
            return Ok(());
        };
        if !rows.singles {
            rows.kept = typed.kept(info, rows.class, rows.len, context.info.block_shared_bytes());
        }
        let entry = typed.entry(rows.class).ok_or_else(|| check::wrong_dtype(info, ready.dtype))?;
        let function = entry.function(context)?;
        let fold = sums.map(|Sums { entries: [.., fold], .. }| fold.function(context)).transpose()?;
        let written = targets.views.iter().chain([&memory]).flatten();
        let held = self.settings.hold(context, views.iter().flatten(), written)?;
        // SAFETY: walk, steps and addresses are of the views and the workspace; as above.
        unsafe {
            if !is_empty {
                self.launch_rows(function, ready, &held, &rows)?;
            }
            match fold {
                Some(fold) => self.launch_fold(fold, &held, targets, &rows),
                None => Ok(()),
            }
        }
    }

    /// Returns the shape of the f32 tensor that a call on operands of a shape keeps sums in, if it needs one.
    pub(super) fn workspace_of(&self, shape: &Shape, dtype: DType, is_summed: bool) -> Result<Option<Shape>> {
        let info = &self.def.info;
        if !is_summed || shape.contains(&0) {
            return Ok(None);
        }
        let len = length(shape);
        let threads = threads(len, info.widest(dtype.size()), counted_tensors(info));
        let chunks = chunks((shape.numel() / len) as u64, threads) as usize;
        Ok(Some(Shape::new(&[info.weight_results.count_ones() as usize * chunks, len])?))
    }

    /// Checks the caller's workspace.
    fn check_workspace<const N: usize, const T: usize>(
        &self,
        ready: &CheckedOperands<'_, N>,
        targets: &Results<'_, T>,
        view: &TensorView<'_>,
        shape: &Shape,
    ) -> Result<()> {
        let what = || format!("the workspace of {}", self.def.info.name);
        check::output(what, view, (ready.dtype, DType::F32), shape, &ready.device)?;
        view.layout().require_contiguous("the workspace of sums")?;
        if !view.address().is_multiple_of(WORKSPACE_BYTES) {
            return Err(ErrorKind::Unsupported {
                what: format!("{} at an address that is no multiple of {WORKSPACE_BYTES}", what()),
                advice: "give it a tensor of its own".to_owned(),
            }
            .into());
        }
        let others = ready.views.iter().chain(&targets.views).flatten();
        match others.into_iter().find(|other| overlap(other, view) != Overlap::None) {
            Some(_) => Err(ErrorKind::Overlap { what: format!("{} and another tensor of the call", what()) }.into()),
            None => Ok(()),
        }
    }

    /// The operands, copied where the elements of a row do not lie one after another, or rows lie in too many ways.
    fn dense<'a, const N: usize, const T: usize>(
        &self,
        ready: &CheckedOperands<'a, N>,
        targets: &Results<'_, T>,
        copies: &'a mut [Option<Tensor>; N],
    ) -> Result<[Option<TensorView<'a>>; N]> {
        let is_many = self.walk_of_rows(ready, &ready.views, targets)?.dims().len() > MAX_ROW_DIMS;
        // The operand with all rows: what is broadcast lies in ways of its own, too.
        let whole = |view: TensorView<'a>| {
            let mut dims = ready.shape.to_vec();
            if let (Some(last), Some(own)) = (dims.last_mut(), view.shape().last()) {
                *last = *own;
            }
            view.expand(dims.as_slice())
        };
        for (copy, view) in copies.iter_mut().zip(&ready.views) {
            let Some(view) = *view else { continue };
            let view = if is_many { whole(view)? } else { view };
            if !is_dense(&view) || is_many && !view.is_contiguous() {
                *copy = Some(promote::convert(&view, view.dtype(), self.stream())?);
            }
        }
        let copies = &*copies;
        Ok(std::array::from_fn(|k| copies[k].as_ref().map(Tensor::view).or(ready.views[k])))
    }

    /// The loop over rows.
    fn walk_of_rows<const N: usize, const T: usize>(
        &self,
        ready: &CheckedOperands<'_, N>,
        views: &[Option<TensorView<'_>>; N],
        targets: &Results<'_, T>,
    ) -> Result<Walk<T>> {
        let info = &self.def.info;
        let results = info.results.len();
        let is_summed = is_summed(info, &ready.shape, &ready.views);
        let along: [OperandStrides; T] = std::array::from_fn(|k| match k.checked_sub(results) {
            // Sums are not walked: a chunk has them once.
            None if is_summed && info.is_weight_result(k) => OperandStrides::default(),
            None => targets.views[k].map_or(OperandStrides::default(), |view| {
                let mut strides = OperandStrides::default();
                let rank =
                    if info.is_row_result(k) { view.shape().rank() } else { view.shape().rank().saturating_sub(1) };
                strides[..rank].copy_from_slice(&view.strides()[..rank]);
                strides
            }),
            Some(operand) => views
                .get(operand)
                .copied()
                .flatten()
                .map_or(OperandStrides::default(), |view| broadcast(view.shape(), view.strides(), &ready.shape)),
        });
        Ok(Walk::new(&outer(&ready.shape)?, &along))
    }

    /// The rows of a call, and how a kernel has them.
    fn rows_of<const N: usize, const T: usize>(
        &self,
        ready: &CheckedOperands<'_, N>,
        views: &[Option<TensorView<'_>>; N],
        targets: &Results<'_, T>,
    ) -> Result<Rows<T>> {
        let info = &self.def.info;
        let walk = self.walk_of_rows(ready, views, targets)?;
        let len = length(&ready.shape);
        let Some(len) = u32::try_from(len).ok().filter(|&len| len < 1 << 31) else {
            return Err(ErrorKind::Unsupported {
                what: format!("{} of rows of {len} elements", info.name),
                advice: "a row has fewer than 2^31".to_owned(),
            }
            .into());
        };
        if walk.dims().len() > MAX_ROW_DIMS {
            return Err(ErrorKind::Unsupported {
                what: format!("{} into a result whose rows lie in {} ways", info.name, walk.dims().len()),
                advice: "write to a contiguous tensor".to_owned(),
            }
            .into());
        }
        let results = info.results.len();
        let view = |k: usize| match k.checked_sub(results) {
            None => targets.views[k],
            Some(operand) => views.get(operand).copied().flatten(),
        };
        let is_summed = is_summed(info, &ready.shape, &ready.views);
        let is_sum = |k: usize| is_summed && k < results && info.is_weight_result(k);
        let of_row = |k: usize| k < results && info.is_row_result(k);
        let along: Places<T> = std::array::from_fn(|k| {
            let last = |view: TensorView<'_>| view.strides().last().copied().unwrap_or(0);
            match view(k) {
                Some(view) if !of_row(k) && length(view.shape()) > 1 => last(view),
                // A row of no elements is not read.
                Some(view) if !of_row(k) && length(view.shape()) == 0 => 1,
                // A result of one element is written as one.
                Some(_) if k < results && !of_row(k) => 1,
                _ => 0,
            }
        });
        let at: [usize; T] = std::array::from_fn(|k| view(k).map_or(0, |view| view.address()));
        let dtypes: [DType; T] = self.dtypes(ready.dtype);
        let element = info.widest(ready.dtype.size());
        let lanes = lanes(element);
        let is_aligned = |k: usize| {
            let vector = (lanes * dtypes[k].size()).min(16);
            let step = |step: i64| dtypes[k].offset(step).unsigned_abs().is_multiple_of(vector as u64);
            along[k] != 1 || is_sum(k) || at[k].is_multiple_of(vector) && walk.dims().all(|(_, steps)| step(steps[k]))
        };
        let count = info.operands.len();
        let singles = !(len as usize).is_multiple_of(lanes) || !(0..results + count).all(is_aligned);
        let (tensors, threads) = (counted_tensors(info), threads(len as usize, element, counted_tensors(info)));
        // A block for itself on a multiprocessor is slower than two that read shared memory.
        let is_alone = threads > MOST_CROWDED && is_crowded(info, lanes, vectors(element, tensors));
        let class = match (!singles && is_held(len as usize, element, tensors), is_summed) {
            (true, false) if !is_alone => RowClass::Held,
            (_, false) => RowClass::Streamed,
            (true, true) => RowClass::HeldSum,
            (false, true) => RowClass::StreamedSum,
        };
        let chunks = is_summed.then(|| chunks(walk.numel(), threads));
        Ok(Rows { walk, along, at, len, class, singles, kept: 0, threads, chunks })
    }

    /// Plans the launch of a call on a CUDA device.
    pub(super) fn plan_of_rows<const N: usize, const T: usize>(
        &self,
        ready: &CheckedOperands<'_, N>,
        targets: &Results<'_, T>,
    ) -> Result<KernelPlan> {
        let rows = self.rows_of(ready, &ready.views, targets)?;
        let strategy = if rows.singles { Strategy::Direct } else { Strategy::RegisterCopy };
        let asked = self.settings.strategy;
        let replaced = match rows.singles {
            true => "the rows are no aligned vectors",
            false => "rows that are aligned vectors are read so",
        };
        Ok(KernelPlan {
            class: Class::Rows,
            row: Some(rows.class),
            strategy,
            replaced: (asked != Strategy::Auto && asked != strategy).then_some(replaced),
            dims: rows.walk.dims().len(),
            threads: rows.block(),
            lanes: if rows.singles { 1 } else { lanes(self.def.info.widest(ready.dtype.size())) },
            group: 1,
            head: 0,
            launches: rows.walk.count_parts(Limit::STEPS) as usize + usize::from(rows.chunks.is_some()),
            n: ready.shape.numel() as u64,
        })
    }

    /// Launches the op's kernel.
    ///
    /// # Safety
    /// The rows are those of the views and the targets; as [`Kernel::write`].
    unsafe fn launch_rows<const N: usize, const T: usize>(
        &self,
        function: Function,
        ready: &CheckedOperands<'_, N>,
        held: &Held<'_>,
        rows: &Rows<T>,
    ) -> Result<()> {
        let info = &self.def.info;
        let (operands, results) = (info.operands.len(), info.results.len());
        let (flag, shared) = match rows.class {
            _ if rows.singles => (SINGLES, 0),
            RowClass::HeldSum => (0, rows.block() * sum_bytes(info, info.widest(ready.dtype.size()))),
            _ if rows.kept > 0 => (KEPT, rows.kept),
            _ => (0, 0),
        };
        let mode = (0..operands).fold(flag, |mode, k| {
            let how = match (ready.given[k], rows.along[results + k]) {
                (Some(_), _) => NUMBER,
                (None, 0) => ONCE,
                _ => 0,
            };
            mode | how << (2 * k)
        });
        let given = ready.given.map(Option::unwrap_or_default);
        let parameters = &ready.words[..row::param_words(info)];
        let dtypes: [DType; T] = self.dtypes(ready.dtype);
        let Rows { len, threads, chunks, .. } = *rows;
        let mut before = 0_u64;
        rows.walk.parts(Limit::STEPS, [0; T], &mut |part, place| {
            let at: [u64; T] =
                std::array::from_fn(|k| rows.at[k].wrapping_add_signed(dtypes[k].offset(place[k]) as isize) as u64);
            let count = part.numel() as u32;
            let steps: StepWords = part.step_words(results + operands, ROW_SPLITS);
            let mut params = Params::default();
            at[..results + operands].iter().for_each(|address| params.push(address));
            params.push(&count);
            params.push(&len);
            params.push(&threads);
            // For sums: the chunks, the chunk of the part's first row, and the rows before it, up to the chunks.
            let order = chunks
                .map(|chunks| [chunks, (before % u64::from(chunks)) as u32, before.min(u64::from(chunks)) as u32]);
            order.iter().flatten().for_each(|word| params.push(word));
            params.push(&mode);
            given[..operands].iter().for_each(|word| params.push(word));
            parameters.iter().for_each(|word| params.push(word));
            params.push_last(&steps);
            let blocks = chunks.unwrap_or(count).div_ceil(rows.block() / threads);
            before += u64::from(count);
            let grid = Grid { blocks: [blocks, 1, 1], threads: [rows.block(), 1, 1], shared };
            // SAFETY: the entry is of the class, its arguments are these; the caller's contract.
            unsafe { cuda::launch_grid(function, grid, held, params.pointers(None)) }
        })
    }

    /// Launches the kernel that adds the chunks of gradients of weights.
    ///
    /// # Safety
    /// The chunks are written before, on the same stream; as [`Kernel::write`].
    unsafe fn launch_fold<const T: usize>(
        &self,
        function: Function,
        held: &Held<'_>,
        targets: &Results<'_, T>,
        rows: &Rows<T>,
    ) -> Result<()> {
        let info = &self.def.info;
        let results: [u64; T] = targets.views.map(|view| view.map_or(0, |view| view.address() as u64));
        let first = (0..info.results.len()).find(|&k| info.is_weight_result(k)).unwrap_or(0);
        let (chunks, memory) = (rows.chunks.unwrap_or(0), rows.at[first] as u64);
        let mut params = Params::default();
        results[..info.results.len()].iter().for_each(|address| params.push(address));
        params.push(&memory);
        params.push(&chunks);
        params.push(&rows.len);
        let blocks = rows.len.div_ceil(FOLD_COLUMNS);
        let grid = Grid { blocks: [blocks, 1, 1], threads: [MAX_THREADS, 1, 1], shared: 0 };
        // SAFETY: the entry is of the class, its arguments are these; the caller's contract.
        unsafe { cuda::launch_grid(function, grid, held, params.pointers(None)) }
    }
}

/// The alignment of a workspace, for accesses of 16 bytes.
const WORKSPACE_BYTES: usize = 16;

/// True if gradients of weights are sums over rows: each weight is one row, one element or a number.
pub(super) fn is_summed(info: &OpInfo, shape: &Shape, operands: &[Option<TensorView<'_>>]) -> bool {
    let is_one = |view: &TensorView<'_>| view.numel() == 1 || is_row(view, shape);
    let mut weights = operands.iter().enumerate().filter(|(k, _)| info.is_weight(*k));
    info.weight_results != 0 && weights.all(|(_, view)| view.as_ref().is_none_or(is_one))
}

/// True if a weight is one row of the shape that the operands broadcast to.
fn is_row(view: &TensorView<'_>, shape: &Shape) -> bool {
    length(view.shape()) == length(shape) && view.numel() == length(shape)
}

/// The shape of result `k` of an op whose checked operands broadcast to `shape`.
pub(super) fn result_shape(
    info: &OpInfo,
    k: usize,
    shape: &Shape,
    operands: &[Option<TensorView<'_>>],
) -> Result<Shape> {
    let of_rows = shape_of_rows(info, k, shape, operands)?;
    if info.group == 0 || info.is_row_result(k) { Ok(of_rows) } else { groups::joined(&of_rows) }
}

/// The shape of result `k` as the op's rows have it. A gradient that is summed over rows has the shape of its weight, where that is
/// one row.
pub(super) fn shape_of_rows(
    info: &OpInfo,
    k: usize,
    shape: &Shape,
    operands: &[Option<TensorView<'_>>],
) -> Result<Shape> {
    if info.is_row_result(k) {
        return outer(shape);
    }
    match info.weight_of(k) {
        Some(weight) if is_summed(info, shape, operands) => match operands.get(weight) {
            Some(Some(view)) if is_row(view, shape) => Ok(*view.shape()),
            _ => Shape::new(&shape[shape.rank().saturating_sub(1)..]),
        },
        _ => Ok(*shape),
    }
}
