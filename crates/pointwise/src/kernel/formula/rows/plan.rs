//! The rows of a call, and how a kernel has them.

use pointwise_core::DType;
use pointwise_core::launch::MAX_ROW_DIMS;
use pointwise_core::rows::{BLOCK, WARP, chunks, counted_tensors, is_crowded, is_held, lanes, threads, vectors};

use super::RowClass;
use super::shapes::{is_dense, is_summed, length, outer};
use crate::error::{ErrorKind, Result};
use crate::kernel::formula::call::Kernel;
use crate::kernel::formula::checked::{CheckedOperands, Results};
use crate::kernel::walk::{Limit, OperandStrides, Places, Walk, broadcast};
use crate::kernel::{Class, KernelPlan, Strategy, promote};
use crate::tensor::{Tensor, TensorView};

/// The rows of a call.
pub(super) struct Rows<const T: usize> {
    /// Over the rows: of the results, then the operands.
    pub(super) walk: Walk<T>,
    /// Steps along a row, in the same order.
    pub(super) along: Places<T>,
    /// Addresses of the first elements, 0 for numbers.
    pub(super) at: [usize; T],
    /// Elements of a row.
    pub(super) len: u32,
    pub(super) class: RowClass,
    /// True if every access is to one element.
    pub(super) singles: bool,
    /// The bytes of shared memory that keep a streamed row, or through which a block's rows go that are held and no aligned vectors; else 0.
    pub(super) kept: u32,
    /// The threads of a row.
    pub(super) threads: u32,
    /// The chunks of rows that gradients of weights are summed over, if they are.
    pub(super) chunks: Option<u32>,
}

impl<const T: usize> Rows<T> {
    /// The threads of a block.
    pub(super) fn block(&self) -> u32 {
        block(self.threads)
    }
}

/// The threads of a block, by those of a row.
const fn block(threads: u32) -> u32 {
    if threads > WARP { threads } else { BLOCK }
}

/// The fewest threads of a row that goes by way of shared memory: a row of one thread is mostly ends, and faster by single elements.
const LEAST_STAGED: u32 = 2;

/// The bytes of shared memory of a block in a plan for tensors of the CPU, which have no GPU.
const SHARED_OF_SM_90: usize = 226 << 10;

/// The most threads of 72 registers of which a multiprocessor has two blocks.
const MOST_CROWDED: u32 = 448;

impl Kernel<'_> {
    /// The operands, copied where the elements of a row do not lie one after another, or rows lie in too many ways.
    pub(super) fn dense<'a, const N: usize, const T: usize>(
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
    pub(super) fn rows_of<const N: usize, const T: usize>(
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
        let is_odd = !(len as usize).is_multiple_of(lanes) || !(0..results + count).all(is_aligned);
        let (tensors, threads) = (counted_tensors(info), threads(len as usize, element, counted_tensors(info)));
        // A block for itself on a multiprocessor is slower than two that read shared memory.
        let is_alone = threads > MOST_CROWDED && is_crowded(info, lanes, vectors(element, tensors));
        let is_held = is_held(len as usize, element, tensors);
        let most = ready.device.context().map_or(SHARED_OF_SM_90, |context| context.info.block_shared_bytes());
        let typed = self.def.typed_rows(ready.dtype)?;
        let staged = match is_odd && is_held && !is_alone && !is_summed && threads >= LEAST_STAGED {
            true => typed.staged(info, (block(threads) / threads, len), most),
            false => 0,
        };
        let singles = is_odd && staged == 0;
        let class = match (is_held && !singles, is_summed) {
            (true, false) if is_odd => RowClass::Staged,
            (true, false) if !is_alone => RowClass::Held,
            (_, false) => RowClass::Streamed,
            (true, true) => RowClass::HeldSum,
            (false, true) => RowClass::StreamedSum,
        };
        let kept = if is_odd { staged } else { typed.kept(info, class, len, most) };
        let chunks = is_summed.then(|| chunks(walk.numel(), threads));
        Ok(Rows { walk, along, at, len, class, singles, kept, threads, chunks })
    }

    /// Plans the launch of a call on a CUDA device.
    pub(in crate::kernel::formula) fn plan_of_rows<const N: usize, const T: usize>(
        &self,
        ready: &CheckedOperands<'_, N>,
        targets: &Results<'_, T>,
    ) -> Result<KernelPlan> {
        let rows = self.rows_of(ready, &ready.views, targets)?;
        let strategy = if rows.singles { Strategy::Direct } else { Strategy::RegisterCopy };
        let asked = self.settings.strategy;
        let replaced = match rows.singles {
            true => "the rows are no aligned vectors",
            false => "rows are read by vectors",
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
}
