//! A call, from operands to results.

#[cfg(doc)]
use pointwise_core::OpInfo;
use pointwise_core::formula::{MAX_INPUTS, MAX_TENSORS};
use pointwise_core::{DType, Draw};

use super::OpDef;
use super::checked::{CheckedOperands, Results, Shared, has_free};
use super::gated::Halves;
use super::own::OwnCall;
use super::rows::{is_summed, result_shape};
use crate::cpu::FormulaRun;
use crate::error::{ErrorKind, Result};
use crate::kernel::params::Params;
use crate::kernel::promote::{self, Converted};
use crate::kernel::rewrite::Rewritten;
use crate::kernel::walk::{OperandStrides, Walk, broadcast};
use crate::kernel::{KernelPlan, LaunchSettings, Operand, Rng, check};
use crate::shape::Shape;
use crate::tensor::{Tensor, TensorView, TensorViewMut};
use crate::tuner::{Choices, Settings, Tuner};
use crate::{Number, Stream};

/// An op with its parameters and launch settings.
///
/// Operands are broadcast together; every result has the shape that they broadcast to. In an op on rows, a result of each row has
/// no last dimension, or one of groups. An operand is a tensor or a
/// number; one at least is a tensor that is no condition. Operands of different types are converted to that of
/// [`result_type`](crate::kernel::result_type) first, and integers and bool to f32 where the op is a float function
/// ([`Properties::int_to_float`](pointwise_core::Properties::int_to_float)): each takes another pass and a tensor meanwhile. Ops of floats alone, and gradients, take one
/// type. A power by the number 1, 2, 3, 0.5, -0.5 or -1 runs as a copy, products, a root or a reciprocal, as in PyTorch.
/// `'r` is how long the tensor lives that a random op draws from, if it does.
///
/// The gradient of an operand that was broadcast is to be summed over the dimensions along which it was:
///
/// ```
/// use pointwise::{Device, Tensor, ops};
///
/// let cpu = Device::cpu();
/// let x = Tensor::from_slice(&cpu, &[1.0_f32, 2.0, 3.0, 4.0], [2, 2])?;
/// let scale = Tensor::from_slice(&cpu, &[10.0_f32, 100.0], [2])?;
/// let grad = Tensor::full(&cpu, 1.0_f32, [2, 2])?; // of mul(x, scale)
/// let (grad_x, grad_scale) = ops::mul_backward(&grad, &x, &scale)?;
/// assert_eq!(grad_x.to_vec::<f32>()?, [10.0, 100.0, 10.0, 100.0]);
/// // `scale` was broadcast along dimension 0: its gradient is the sum of the rows.
/// let rows = grad_scale.to_vec::<f32>()?;
/// assert_eq!([rows[0] + rows[2], rows[1] + rows[3]], [4.0, 6.0]);
/// # Ok::<(), pointwise::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Kernel<'r> {
    pub(crate) def: &'static OpDef,
    pub(crate) params: Params,
    pub(crate) settings: LaunchSettings,
    pub(crate) tuned: Option<Choices>,
    pub(crate) rng: Rng<'r>,
    /// The element type, where no operand decides it.
    pub(crate) dtype: Option<DType>,
}

/// Calls a method with room for as many operands and tensors as the op has, or a few more: loops over tensors are short
/// for most.
macro_rules! sized {
    ($kernel:ident.$method:ident($($argument:expr),*)) => {
        match $kernel.def.info.operands.len() + $kernel.def.info.results.len() {
            ..=2 => $kernel.$method::<1, 2>($($argument),*),
            3..=4 => $kernel.$method::<3, 4>($($argument),*),
            5..=8 => $kernel.$method::<7, 8>($($argument),*),
            _ => $kernel.$method::<MAX_INPUTS, MAX_TENSORS>($($argument),*),
        }
    };
}

impl<'r> Kernel<'r> {
    pub(super) fn new(def: &'static OpDef, params: &[Number]) -> Kernel<'r> {
        Kernel {
            def,
            params: Params::new(params),
            settings: LaunchSettings::new(),
            tuned: None,
            rng: Rng::default(),
            dtype: None,
        }
    }

    /// With the settings that a tuner has found for calls like the one made, as it knows them now. A strategy that was set
    /// holds all the same.
    #[must_use]
    pub fn tuned(mut self, tuner: &Tuner) -> Self {
        self.tuned = Some(tuner.choices(&self.def.info));
        self
    }

    /// The kernel with settings that a tuner tries.
    pub(crate) fn with(&self, settings: Settings) -> Kernel<'r> {
        let settings = self.settings.with(settings.strategy, settings.threads);
        Kernel { settings, tuned: None, ..self.clone() }
    }

    pub(in crate::kernel) fn settings(&self) -> &LaunchSettings {
        &self.settings
    }

    /// The stream that was set.
    pub(crate) fn stream(&self) -> Option<&Stream> {
        self.settings.stream.as_ref()
    }

    #[cfg(test)]
    pub(in crate::kernel) fn has_no_choices(&self) -> bool {
        self.tuned.is_none()
    }

    /// The same call of another op.
    pub(crate) fn of(&self, def: &'static OpDef) -> Kernel<'r> {
        // A tuner's choices are for the op that it measured.
        Kernel { def, tuned: None, ..self.clone() }
    }

    /// Sets where a random op draws from: seed and offset, as a [`Philox`](crate::Philox) or in a tensor. The random word of an
    /// element depends on these and on its index in the result alone, so that another call at the same place draws the
    /// same. Other ops ignore it.
    #[must_use]
    pub fn rng(mut self, rng: impl Into<Rng<'r>>) -> Self {
        self.rng = rng.into();
        self
    }

    /// The op on elements of type `dtype`, where all operands are of fixed types: without it [`Kernel::run`] takes the first of
    /// the op's types. Other ops ignore it, and [`Kernel::run_into`] takes the type of the results.
    #[must_use]
    pub fn of_type(mut self, dtype: DType) -> Self {
        self.dtype = Some(dtype);
        self
    }

    /// The op.
    pub fn def(&self) -> &'static OpDef {
        self.def
    }

    /// The results in new contiguous tensors, in the order of [`OpInfo::results`].
    ///
    /// A gated op takes gate and value, or one tensor whose last dimension holds both, as do its gradients, which then are one
    /// tensor: the operands are [`OpInfo::arguments`], the results [`OpInfo::outputs`].
    ///
    /// # Errors
    /// Another number of operands than the op has; operands whose types have no common one
    /// ([`result_type`](crate::kernel::result_type)), that lie on different devices or cannot be broadcast together, an
    /// element type, number or parameter that the op does not take, no tensor at all; of a random op a tensor to draw
    /// from that is not as [`Rng`] says; a stream of another device, bad launch settings, a missing kernel, out of memory,
    /// the driver's.
    pub fn run(&self, operands: &[Operand<'_>]) -> Result<Vec<Tensor>> {
        if Halves::of(&self.def.info, operands).is_some() || self.def.info.results.len() == 1 {
            return Ok(vec![self.run_single(operands)?]);
        }
        sized!(self.run_of(operands))
    }

    /// [`Kernel::run`] of one result.
    pub(super) fn run_single(&self, operands: &[Operand<'_>]) -> Result<Tensor> {
        match Halves::of(&self.def.info, operands) {
            Some(halves) => self.run_halves(&halves),
            None => self.run_one(operands),
        }
    }

    fn run_of<const N: usize, const T: usize>(&self, operands: &[Operand<'_>]) -> Result<Vec<Tensor>> {
        let mut converted = Converted::default();
        let mut ready = CheckedOperands::<N>::new();
        self.ready_promoted(operands, &mut converted, &mut ready)?;
        let info = &self.def.info;
        let mut results = Vec::with_capacity(info.results.len());
        for k in 0..info.results.len() {
            let shape = result_shape(info, k, &ready.shape, &ready.views)?;
            results.push(Tensor::empty(&ready.device, info.result_type(k, ready.dtype), shape)?);
        }
        let mut targets = Results::<T>::new(Shared::Nothing);
        for (k, result) in results.iter_mut().enumerate() {
            targets.pointers[k] = result.as_mut_ptr()?;
        }
        for (view, result) in targets.views.iter_mut().zip(&results) {
            *view = Some(result.view());
        }
        // SAFETY: new tensors.
        unsafe { self.write(&ready, &targets) }?;
        Ok(results)
    }

    /// The result of an op that has one.
    pub(crate) fn run_one(&self, operands: &[Operand<'_>]) -> Result<Tensor> {
        match (Rewritten::of(self, operands)?, operands) {
            (Some(Rewritten::Copy(kernel)), [Operand::View(x), _]) => kernel.run(*x, x.dtype()),
            (Some(Rewritten::OfItself(product)), [x, _]) => product.run_one(&[*x, *x]),
            (Some(Rewritten::Unary(kernel)), [Operand::View(x), _]) => kernel.run(*x),
            _ => sized!(self.run_one_of(operands)),
        }
    }

    fn run_one_of<const N: usize, const T: usize>(&self, operands: &[Operand<'_>]) -> Result<Tensor> {
        self.check_count(1)?;
        let mut converted = Converted::default();
        let mut ready = CheckedOperands::<N>::new();
        self.ready_promoted(operands, &mut converted, &mut ready)?;
        let info = &self.def.info;
        let shape = result_shape(info, 0, &ready.shape, &ready.views)?;
        let mut y = Tensor::empty(&ready.device, info.result_type(0, ready.dtype), shape)?;
        let pointer = y.as_mut_ptr()?;
        let mut targets = Results::<T>::new(Shared::Nothing);
        targets.set(0, pointer, y.view());
        // SAFETY: a new tensor.
        unsafe { self.write(&ready, &targets) }?;
        Ok(y)
    }

    /// The results into tensors that are there, of any strides. Allocates nothing and waits for nothing, so that a CUDA
    /// graph can capture it, unless operands are converted first. A result may be an operand's very memory.
    ///
    /// # Errors
    /// As [`Kernel::run`], and: another number of results than the op has; another shape, device or element type of a
    /// result; one that shares memory with another, or with an operand but is not the same view; of a random op one that
    /// is not contiguous.
    pub fn run_into(&self, operands: &[Operand<'_>], results: &mut [TensorViewMut<'_>]) -> Result<()> {
        if let (Some(halves), [y]) = (Halves::of(&self.def.info, operands), &mut *results) {
            return self.run_halves_into(&halves, y.reborrow());
        }
        if let (Some(indices), [y], []) = (self.def.indices(), &mut *results, operands) {
            return self.generate_into(indices, y);
        }
        match (Rewritten::of(self, operands)?, operands, &mut *results) {
            // Into another type it would convert.
            (Some(Rewritten::Copy(kernel)), [Operand::View(x), _], [y]) if x.dtype() == y.dtype() => {
                kernel.run_into(*x, y.reborrow())
            }
            (Some(Rewritten::OfItself(product)), [x, _], [_]) => product.run_into(&[*x, *x], results),
            (Some(Rewritten::Unary(kernel)), [Operand::View(x), _], [y]) => kernel.run_into(*x, y.reborrow()),
            _ => sized!(self.run_into_of(operands, results, None)),
        }
    }

    /// [`Kernel::run_into`] with the memory that [`Kernel::workspace`] asks for: such a call allocates nothing.
    ///
    /// # Errors
    /// As [`Kernel::run_into`]; a workspace of another shape, type or device, that is not contiguous, or shares memory with a tensor
    /// of the call.
    pub fn run_into_with(
        &self,
        operands: &[Operand<'_>],
        results: &mut [TensorViewMut<'_>],
        mut workspace: TensorViewMut<'_>,
    ) -> Result<()> {
        let pointer = workspace.as_mut_ptr()?;
        let workspace = Some((pointer, &workspace.as_view()));
        sized!(self.run_into_of(operands, results, workspace))
    }

    /// Returns the shape of the f32 tensor that a call of these operands needs meanwhile, for sums over rows: the gradients of
    /// weights. [`Kernel::run_into`] allocates it, [`Kernel::run_into_with`] takes it. Runs nothing.
    ///
    /// # Errors
    /// Fails for operands, types and parameters that [`Kernel::run`] refuses.
    pub fn workspace(&self, operands: &[Operand<'_>]) -> Result<Option<Shape>> {
        if self.def.info.weight_results == 0 {
            return Ok(None);
        }
        let mut ready = CheckedOperands::<MAX_INPUTS>::new();
        self.ready(operands, &mut ready)?;
        let is_summed = is_summed(&self.def.info, &ready.shape, &ready.views);
        self.workspace_of(&ready.shape, ready.dtype, is_summed)
    }

    fn run_into_of<const N: usize, const T: usize>(
        &self,
        operands: &[Operand<'_>],
        results: &mut [TensorViewMut<'_>],
        workspace: Option<(*mut u8, &TensorView<'_>)>,
    ) -> Result<()> {
        self.check_count(results.len())?;
        let typed;
        let this = if has_free(&self.def.info) {
            self
        } else {
            typed = self.typed(results.iter().map(TensorViewMut::dtype));
            typed.as_ref().unwrap_or(self)
        };
        let mut converted = Converted::default();
        let mut ready = CheckedOperands::<N>::new();
        this.ready_promoted(operands, &mut converted, &mut ready)?;
        let mut targets = Results::<T>::new(Shared::Operands);
        for (target, result) in targets.pointers.iter_mut().zip(&mut *results) {
            *target = result.as_mut_ptr()?;
        }
        for (view, result) in targets.views.iter_mut().zip(results.iter()) {
            *view = Some(result.as_view());
        }
        targets.workspace = workspace;
        // SAFETY: the results and the workspace are exclusively borrowed.
        unsafe { this.write(&ready, &targets) }
    }

    /// Returns the same call in the type of its results, where no operand decides it.
    #[inline(never)]
    fn typed(&self, results: impl Iterator<Item = DType>) -> Option<Kernel<'r>> {
        let info = &self.def.info;
        if has_free(info) {
            return None;
        }
        let free = results.enumerate().find(|(k, _)| info.fixed_result(*k).is_none());
        free.map(|(_, dtype)| self.clone().of_type(dtype))
    }

    /// The op, written back to its first operand, whose shape the others must broadcast to. Where they meet in another
    /// type, the result is converted to that of the operand, if [`DType::can_cast`] allows it.
    ///
    /// # Errors
    /// As [`Kernel::run_into`]; an op of several results; a result that cannot be converted so.
    pub fn run_inplace(&self, first: TensorViewMut<'_>, others: &[Operand<'_>]) -> Result<()> {
        let mut operands = [Operand::Number(Number::Default); MAX_INPUTS];
        let count = 1 + others.len();
        let Some(slots) = operands.get_mut(1..count) else {
            let info = &self.def.info;
            return Err(check::wrong_count(info, "operands", info.operands, count));
        };
        slots.copy_from_slice(others);
        self.run_over(first, &[0], operands, count)
    }

    /// The op, written over `y`, which is each of the operands `at`, whatever the first `count` of `operands` have there.
    pub(in crate::kernel) fn run_over<const K: usize>(
        &self,
        mut y: TensorViewMut<'_>,
        at: &[usize],
        operands: [Operand<'_>; K],
        count: usize,
    ) -> Result<()> {
        let pointer = y.as_mut_ptr()?;
        let view = y.as_view();
        let mut filled: [Operand<'_>; K] = operands;
        at.iter().for_each(|&at| filled[at] = Operand::View(view));
        match Rewritten::of(self, &filled[..count])? {
            Some(Rewritten::Copy(_)) => return Ok(()),
            Some(Rewritten::OfItself(product)) => return product.run_over(y, &[0, 1], operands, count),
            Some(Rewritten::Unary(kernel)) => return kernel.run_inplace(y),
            None => {}
        }
        let operands = &filled[..count];
        self.check_operands(operands)?;
        self.check_count(1)?;
        let info = &self.def.info;
        let met = match promote::common_type(info, operands, self.params.of(info)?)? {
            Some(dtype) => dtype,
            None => self.led(operands)?.2,
        };
        let result = info.result_type(0, met);
        if info.fixed_result(0).is_some() && view.dtype() != result {
            return Err(ErrorKind::Unsupported {
                what: format!("{} of {} in place", info.name, view.dtype()),
                advice: format!("its result is {result}: write it to another tensor"),
            }
            .into());
        }
        if result != view.dtype() {
            if !result.can_cast(view.dtype()) {
                return Err(ErrorKind::Cast { op: info.name.to_owned(), result, got: view.dtype() }.into());
            }
            // Before anything is computed: a result of another shape would be found by its conversion alone.
            let shape = self.planned_shape(operands, met)?;
            if *view.shape() != shape {
                let what = format!("the output of {}", info.name);
                return Err(ErrorKind::ShapeMismatch { what, expected: shape, got: *view.shape() }.into());
            }
            promote::refuse_capture(self.stream(), result, view.dtype())?;
            let made = self.run_one(operands)?;
            return crate::kernel::ConvertKernel::new().on_stream(self.stream()).run_into(&made, y);
        }
        sized!(self.run_over_of(pointer, view, operands))
    }

    fn run_over_of<const N: usize, const T: usize>(
        &self,
        pointer: *mut u8,
        view: TensorView<'_>,
        operands: &[Operand<'_>],
    ) -> Result<()> {
        let mut converted = Converted::default();
        let mut ready = CheckedOperands::<N>::new();
        self.ready_promoted(operands, &mut converted, &mut ready)?;
        let mut targets = Results::<T>::new(Shared::Operands);
        targets.set(0, pointer, view);
        // SAFETY: the result is exclusively borrowed by the caller.
        unsafe { self.write(&ready, &targets) }
    }

    /// Returns the shape that operands broadcast to once they are converted to `dtype`.
    fn planned_shape(&self, operands: &[Operand<'_>], dtype: DType) -> Result<Shape> {
        let planned = promote::stand_in_all::<MAX_INPUTS>(&self.def.info, operands, dtype)?;
        let mut ready = CheckedOperands::<MAX_INPUTS>::new();
        self.ready(&planned[..operands.len()], &mut ready)?;
        Ok(ready.shape)
    }

    /// Returns element type and shape of each result that [`Kernel::run`] would make of these operands, for a caller that
    /// allocates the results. Runs nothing.
    ///
    /// ```
    /// use pointwise::{DType, Device, Operand, Tensor, ops};
    ///
    /// let x = Tensor::zeros(&Device::cpu(), DType::F16, [2, 3])?;
    /// let results = ops::Gt::def().kernel(&[]).results(&[Operand::from(&x), Operand::from(0.5)])?;
    /// assert_eq!((results[0].0, results[0].1.dims()), (DType::Bool, &[2, 3][..]));
    /// # Ok::<(), pointwise::Error>(())
    /// ```
    ///
    /// # Errors
    /// Fails for operands, types and parameters that [`Kernel::run`] refuses.
    pub fn results(&self, operands: &[Operand<'_>]) -> Result<Vec<(DType, Shape)>> {
        if let Some(halves) = Halves::of(&self.def.info, operands) {
            return Ok(vec![self.result_of_halves(&halves)?]);
        }
        sized!(self.results_of(operands))
    }

    fn results_of<const N: usize, const T: usize>(&self, operands: &[Operand<'_>]) -> Result<Vec<(DType, Shape)>> {
        let mut ready = CheckedOperands::<N>::new();
        let promoted = self.promoted::<N>(operands)?;
        self.ready(promoted.as_ref().map_or(operands, |promoted| &promoted[..operands.len()]), &mut ready)?;
        let info = &self.def.info;
        let result = |k| Ok((info.result_type(k, ready.dtype), result_shape(info, k, &ready.shape, &ready.views)?));
        (0..info.results.len()).map(result).collect()
    }

    /// Returns views of no memory in the place of operands that a call converts; `None` where it converts none.
    fn promoted<'a, const N: usize>(&self, operands: &[Operand<'a>]) -> Result<Option<[Operand<'a>; N]>> {
        self.check_operands(operands)?;
        let info = &self.def.info;
        let met = promote::common_type(info, operands, self.params.of(info)?)?;
        met.map(|dtype| promote::stand_in_all::<N>(info, operands, dtype)).transpose()
    }

    /// Plans the launch of [`Kernel::run_into`] on a CUDA device for these tensors.
    ///
    /// # Errors
    /// Those of [`Kernel::run_into`].
    pub fn plan(&self, operands: &[Operand<'_>], results: &[TensorView<'_>]) -> Result<KernelPlan> {
        if let (Some(halves), [y]) = (Halves::of(&self.def.info, operands), results) {
            return self.plan_of_halves(&halves, *y);
        }
        if let (Some(indices), [y], []) = (self.def.indices(), results, operands) {
            return self.plan_generated(indices, y);
        }
        sized!(self.plan_of_tensors(operands, results))
    }

    fn plan_of_tensors<const N: usize, const T: usize>(
        &self,
        operands: &[Operand<'_>],
        results: &[TensorView<'_>],
    ) -> Result<KernelPlan> {
        let typed = self.typed(results.iter().map(TensorView::dtype));
        let this = typed.as_ref().unwrap_or(self);
        let promoted = this.promoted::<N>(operands)?;
        let mut ready = CheckedOperands::<N>::new();
        this.ready(promoted.as_ref().map_or(operands, |promoted| &promoted[..operands.len()]), &mut ready)?;
        self.check_count(results.len())?;
        let mut targets = Results::<T>::new(Shared::Operands);
        for (view, result) in targets.views.iter_mut().zip(results) {
            *view = Some(*result);
        }
        this.plan_for(&ready, &targets)
    }

    /// Plans the launch of [`Kernel::write`] on a CUDA device.
    pub(super) fn plan_for<const N: usize, const T: usize>(
        &self,
        ready: &CheckedOperands<'_, N>,
        targets: &Results<'_, T>,
    ) -> Result<KernelPlan> {
        let mut grouped = None;
        let targets = self.checked(ready, targets, &mut grouped)?;
        if self.def.info.is_of_rows() {
            return self.plan_of_rows(ready, targets);
        }
        if let Some(own) = self.def.own() {
            return own.plan(&self.own_call(ready, targets));
        }
        Ok(self.plan_of(ready, &self.walk(ready, targets), targets))
    }

    /// The element type that a call runs in: that in which its operands meet.
    pub(crate) fn dtype(&self, operands: &[Operand<'_>]) -> Result<DType> {
        self.check_operands(operands)?;
        match promote::common_type(&self.def.info, operands, self.params.of(&self.def.info)?)? {
            Some(dtype) => Ok(dtype),
            None => {
                let mut ready = CheckedOperands::<MAX_INPUTS>::new();
                self.ready(operands, &mut ready)?;
                Ok(ready.dtype)
            }
        }
    }

    /// Checks the results, the settings and the tensor to draw from. Returns the results as the kernels have them: groups as rows, in
    /// `grouped`.
    #[inline(always)]
    fn checked<'t, 'v, const N: usize, const T: usize>(
        &self,
        ready: &CheckedOperands<'_, N>,
        targets: &'t Results<'v, T>,
        grouped: &'t mut Option<Results<'v, T>>,
    ) -> Result<&'t Results<'v, T>> {
        let targets = match self.def.info.group {
            0 => targets,
            _ => grouped.insert(self.in_groups(ready, targets)?),
        };
        self.check_results(ready, targets)?;
        self.settings.check(&ready.device)?;
        self.check_rng(ready, targets)?;
        Ok(targets)
    }

    /// Checks the results, and runs the op.
    ///
    /// # Safety
    /// The targets share no more memory with operands and each other than [`Shared`] says; the pointers are their first
    /// elements, and may be written through.
    pub(super) unsafe fn write<const N: usize, const T: usize>(
        &self,
        ready: &CheckedOperands<'_, N>,
        targets: &Results<'_, T>,
    ) -> Result<()> {
        let mut grouped = None;
        let targets = self.checked(ready, targets, &mut grouped)?;
        if self.def.info.is_of_rows() {
            // SAFETY: the caller's contract.
            return unsafe { self.write_rows(ready, targets) };
        }
        if let Some(own) = self.def.own() {
            // SAFETY: the caller's contract; all is checked above.
            return unsafe { own.run(&self.own_call(ready, targets)) };
        }
        if ready.shape.contains(&0) {
            return Ok(());
        }
        let walk: Walk<T> = self.walk(ready, targets);
        let info = &self.def.info;
        let (operands, results) = (info.operands.len(), info.results.len());
        let Some(context) = ready.device.context() else {
            let pointers = ready.views.map(|view| view.map_or(std::ptr::null(), |view| view.as_ptr()));
            let run = FormulaRun {
                op: self.def.cpu(ready.dtype)?,
                walk: &walk,
                operands: &pointers[..operands],
                given: &ready.given[..operands],
                results: &targets.pointers[..results],
                dtypes: self.dtypes(ready.dtype),
                words: &ready.words,
                draw: Draw {
                    blocks: if info.is_random() { self.rng.on_cpu()?.blocks() } else { Draw::NONE.blocks },
                    ..Draw::of(info.random, &ready.shape)
                },
            };
            // SAFETY: the walk is of the views' shapes and strides; the caller's contract.
            unsafe { run.run() };
            return Ok(());
        };
        // SAFETY: walk and addresses are those of the views, and the tensor to draw from is checked; as above.
        unsafe { self.launch(context, ready, &walk, targets) }
    }

    /// The call of an op with kernels of its own.
    fn own_call<'a, const N: usize, const T: usize>(
        &'a self,
        ready: &'a CheckedOperands<'_, N>,
        targets: &'a Results<'_, T>,
    ) -> OwnCall<'a> {
        let info = &self.def.info;
        OwnCall {
            kernel: self,
            dtype: ready.dtype,
            words: &ready.words,
            operands: &ready.views[..info.operands.len()],
            results: &targets.views[..info.results.len()],
            pointers: &targets.pointers[..info.results.len()],
        }
    }

    /// The loop of a call: over the results, then the operands.
    fn walk<const N: usize, const T: usize>(
        &self,
        ready: &CheckedOperands<'_, N>,
        targets: &Results<'_, T>,
    ) -> Walk<T> {
        let results = self.def.info.results.len();
        // The usual call, for which nothing need be sorted or merged.
        let mut views = targets.views.iter().chain(&ready.views).flatten();
        if views.all(|view| view.shape() == &ready.shape && view.is_contiguous()) {
            let steps = std::array::from_fn(|k| match k.checked_sub(results) {
                None => 1,
                Some(operand) => ready.views.get(operand).is_some_and(Option::is_some).into(),
            });
            return Walk::contiguous(&ready.shape, steps);
        }
        let of = |view: &Option<TensorView<'_>>| {
            view.map_or(OperandStrides::default(), |view| broadcast(view.shape(), view.strides(), &ready.shape))
        };
        let along: [OperandStrides; T] = std::array::from_fn(|k| match k.checked_sub(results) {
            None => of(&targets.views[k]),
            Some(operand) => ready.views.get(operand).map_or(OperandStrides::default(), of),
        });
        Walk::new(&ready.shape, &along)
    }

    /// The element type of each tensor: results, then operands.
    pub(super) fn dtypes<const T: usize>(&self, dtype: DType) -> [DType; T] {
        let info = &self.def.info;
        let results = info.results.len();
        std::array::from_fn(|k| match k.checked_sub(results) {
            None => info.result_type(k, dtype),
            Some(operand) => info.operand_type(operand, dtype),
        })
    }
}
