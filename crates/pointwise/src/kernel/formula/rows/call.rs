//! A call of an op on rows: by the loop or the kernels.

use pointwise_core::DType;
use pointwise_core::launch::{NUMBER, ONCE, ROW_SPLITS};
use pointwise_core::row;
use pointwise_core::rows::{FOLD_COLUMNS, KEPT, MAX_THREADS, SINGLES, chunks, counted_tensors, sum_bytes, threads};

use super::RowClass;
use super::plan::Rows;
use super::shapes::{is_summed, length, outer};
use super::typed::Sums;
use crate::cpu::{FoldRun, RowsRun, Target};
use crate::cuda::{self, Function, Grid, Held};
use crate::error::{ErrorKind, Result};
use crate::kernel::choice::Params;
use crate::kernel::formula::call::Kernel;
use crate::kernel::formula::checked::{CheckedOperands, Results};
use crate::kernel::walk::{Limit, StepWords};
use crate::kernel::{check, promote};
use crate::shape::Shape;
use crate::tensor::{Overlap, Tensor, TensorView, overlap};

/// The alignment of a workspace, for accesses of 16 bytes.
const WORKSPACE_BYTES: usize = 16;

impl Kernel<'_> {
    /// Runs the op on each row.
    ///
    /// # Safety
    /// The results are checked. They share no more memory with operands and each other than
    /// [`Shared`](crate::kernel::formula::checked::Shared) says; the pointers are their first elements, and may be written through.
    #[inline(never)] // Its variables would make those of every call more.
    pub(in crate::kernel::formula) unsafe fn write_rows<const N: usize, const T: usize>(
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
    pub(in crate::kernel::formula) fn workspace_of(
        &self,
        shape: &Shape,
        dtype: DType,
        is_summed: bool,
    ) -> Result<Option<Shape>> {
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
            RowClass::HeldSum => (0, rows.block() * sum_bytes(info, info.widest(ready.dtype.size()))),
            RowClass::Staged => (0, rows.kept),
            _ if rows.kept > 0 => (KEPT, rows.kept),
            _ if rows.singles => (SINGLES, 0),
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
