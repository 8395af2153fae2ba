//! Ops on rows: their kernels, and a call of them. A row is the last dimension of the shape that the operands broadcast to.

use pointwise_core::formula::{OpData, ParamWords};
use pointwise_core::launch::{MAX_ROW_DIMS, NUMBER, ONCE, ROW_SPLITS};
use pointwise_core::rows::{
    BLOCK, Reduction, RowData, RowOp, RowState, SINGLES, WARP, first_answer, is_held, lanes, threads,
};
use pointwise_core::{DType, Element, OpInfo, Terms, row};

use super::call::{CheckedOperands, Kernel, Results};
use crate::cpu::{RowsFn, RowsRun, rows};
use crate::cuda::{self, Context, Grid};
use crate::embed::Kernels;
use crate::error::{ErrorKind, Result};
use crate::kernel::choice::Params;
use crate::kernel::promote;
use crate::kernel::walk::{Limit, OperandStrides, Places, StepWords, Walk, broadcast};
use crate::kernel::{Class, Entry, KernelPlan, Strategy};
use crate::shape::Shape;
use crate::tensor::{Tensor, TensorView};

/// How a kernel has a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RowClass {
    /// In registers: read once, by vectors.
    Held,
    /// Read once for each round, by vectors or by single elements.
    Streamed,
}

impl RowClass {
    /// Every class.
    pub const ALL: [RowClass; 2] = [RowClass::Held, RowClass::Streamed];

    /// `held` or `streamed`: the last part of a kernel's name.
    pub const fn name(self) -> &'static str {
        match self {
            RowClass::Held => "held",
            RowClass::Streamed => "streamed",
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
}

impl TypedRows {
    /// The op `O` on elements `E`. `symbols` name its kernels in `kernels`, in the order of [`RowClass::ALL`]; `source` is
    /// the hash of the text that they were compiled from.
    ///
    /// # Panics
    /// In a constant, so that it does not compile: a kernel's name says another class; the data of `O` contradict its types.
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
        row::check_class(held, RowClass::Held.name());
        row::check_class(streamed, RowClass::Streamed.name());
        let entries = [Entry::of(held, row, slots, kernels), Entry::of(streamed, row, slots, kernels)];
        TypedRows { dtype: E::DTYPE, source, row, slots, cpu: rows::<E, O, N, R>, entries }
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
    /// The threads of a row.
    threads: u32,
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
    /// As [`Kernel::write`]; the results are checked.
    pub(super) unsafe fn write_rows<const N: usize, const T: usize>(
        &self,
        ready: &CheckedOperands<'_, N>,
        targets: &Results<'_, T>,
    ) -> Result<()> {
        let info = &self.def.info;
        if outer(&ready.shape)?.contains(&0) || length(&ready.shape) == 0 && info.row_results == 0 {
            return Ok(());
        }
        let mut copies: [Option<Tensor>; N] = std::array::from_fn(|_| None);
        let views = self.dense(ready, targets, &mut copies)?;
        let rows = self.rows_of(ready, &views, targets)?;
        let (operands, results) = (info.operands.len(), info.results.len());
        let typed = self.def.typed_rows(ready.dtype)?;
        let Some(context) = ready.device.context() else {
            let pointers = views.map(|view| view.map_or(std::ptr::null(), |view| view.as_ptr()));
            let run = RowsRun {
                op: typed.cpu,
                walk: &rows.walk,
                along: rows.along,
                results: &targets.pointers[..results],
                operands: &pointers[..operands],
                given: &ready.given[..operands],
                sizes: self.sizes(ready.dtype),
                len: rows.len,
                words: &ready.words,
            };
            // SAFETY: walk and steps are of the views' shapes and strides; the caller's contract.
            unsafe { run.run() };
            return Ok(());
        };
        // SAFETY: walk, steps and addresses are of the views; as above.
        unsafe { self.launch_rows(context, ready, &views, targets, &rows) }
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
        let along: [OperandStrides; T] = std::array::from_fn(|k| match k.checked_sub(results) {
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
        let of_row = |k: usize| k < results && info.is_row_result(k);
        let along: Places<T> = std::array::from_fn(|k| {
            let last = |view: TensorView<'_>| view.strides().last().copied().unwrap_or(0);
            match view(k) {
                Some(view) if !of_row(k) && length(view.shape()) > 1 => last(view),
                // Of none, none is read.
                Some(view) if !of_row(k) && length(view.shape()) == 0 => 1,
                // A result of one element is written as one.
                Some(_) if k < results && !of_row(k) => 1,
                _ => 0,
            }
        });
        let at: [usize; T] = std::array::from_fn(|k| view(k).map_or(0, |view| view.address()));
        let sizes: [usize; T] = self.sizes(ready.dtype);
        let element = info.widest(ready.dtype.size());
        let lanes = lanes(element);
        let is_aligned = |k: usize| {
            let vector = (lanes * sizes[k]).min(16);
            let step = |step: i64| (step * sizes[k] as i64).unsigned_abs().is_multiple_of(vector as u64);
            along[k] != 1 || at[k].is_multiple_of(vector) && walk.dims().all(|(_, steps)| step(steps[k]))
        };
        let count = info.operands.len();
        let singles = !(len as usize).is_multiple_of(lanes) || !(0..results + count).all(is_aligned);
        let class = match !singles && is_held(len as usize, element, results + count) {
            true => RowClass::Held,
            false => RowClass::Streamed,
        };
        Ok(Rows { walk, along, at, len, class, singles, threads: threads(len as usize, element, results + count) })
    }

    /// What a call would launch on a CUDA device.
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
            launches: rows.walk.count_parts(Limit::STEPS) as usize,
            n: ready.shape.numel() as u64,
        })
    }

    /// Launches the op's kernel.
    ///
    /// # Safety
    /// The rows are those of the views and the targets; as [`Kernel::write`].
    unsafe fn launch_rows<const N: usize, const T: usize>(
        &self,
        context: &'static Context,
        ready: &CheckedOperands<'_, N>,
        views: &[Option<TensorView<'_>>; N],
        targets: &Results<'_, T>,
        rows: &Rows<T>,
    ) -> Result<()> {
        let info = &self.def.info;
        let (operands, results) = (info.operands.len(), info.results.len());
        let entry = &self.def.typed_rows(ready.dtype)?.entries[rows.class as usize];
        let function = entry.function(context)?;
        let held = self.settings.hold(context, views.iter().flatten(), targets.views.iter().flatten())?;
        let mode = (0..operands).fold(if rows.singles { SINGLES } else { 0 }, |mode, k| {
            let how = match (ready.given[k], rows.along[results + k]) {
                (Some(_), _) => NUMBER,
                (None, 0) => ONCE,
                _ => 0,
            };
            mode | how << (2 * k)
        });
        let given = ready.given.map(Option::unwrap_or_default);
        let parameters = &ready.words[..row::param_words(info)];
        let sizes: [usize; T] = self.sizes(ready.dtype);
        let Rows { len, threads, .. } = *rows;
        rows.walk.parts(Limit::STEPS, [0; T], &mut |part, place| {
            let at: [u64; T] =
                std::array::from_fn(|k| rows.at[k].wrapping_add_signed(place[k] as isize * sizes[k] as isize) as u64);
            let count = part.numel() as u32;
            let steps: StepWords = part.step_words(results + operands, ROW_SPLITS);
            let mut params = Params::default();
            at[..results + operands].iter().for_each(|address| params.push(address));
            params.push(&count);
            params.push(&len);
            params.push(&threads);
            params.push(&mode);
            given[..operands].iter().for_each(|word| params.push(word));
            parameters.iter().for_each(|word| params.push(word));
            params.push_last(&steps);
            let blocks = count.div_ceil(rows.block() / threads);
            let grid = Grid { blocks: [blocks, 1, 1], threads: [rows.block(), 1, 1], shared: 0 };
            // SAFETY: the entry is of the class, its arguments are these; the caller's contract.
            unsafe { cuda::launch_grid(function, grid, &held, params.pointers(None)) }
        })
    }
}

/// The shape of result `k` of an op whose operands broadcast to `shape`.
pub(super) fn result_shape(info: &OpInfo, k: usize, shape: &Shape) -> Result<Shape> {
    if info.is_row_result(k) { outer(shape) } else { Ok(*shape) }
}
