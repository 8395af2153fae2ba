//! Measuring ops of any number of operands.

use super::{Choice, Settings, Tuner, measure, op_name};
use crate::error::Result;
use crate::kernel::{DEFAULT_THREADS, Kernel};
use crate::{
    Operand, Strategy, TensorView, TensorViewMut,
    kernel::{BinaryKernel, GatedKernel, TernaryKernel},
};

impl Tuner {
    /// [`Tuner::tune`] for a binary op or one with a weight a channel.
    ///
    /// # Errors
    /// The errors of [`BinaryKernel::run_into`]; tensors on the CPU or without elements; a stream that is being captured.
    pub fn tune_binary<'a, 'b>(
        &mut self,
        kernel: &BinaryKernel,
        a: impl Into<Operand<'a>>,
        b: impl Into<Operand<'a>>,
        y: impl Into<TensorViewMut<'b>>,
    ) -> Result<Choice> {
        self.tune_kernel(&kernel.0, &[a.into(), b.into()], &mut [y.into()])
    }

    /// [`Tuner::tune`] for a gated op.
    ///
    /// # Errors
    /// The errors of [`GatedKernel::run_into`] and of [`Tuner::tune_binary`].
    pub fn tune_gated<'a, 'b>(
        &mut self,
        kernel: &GatedKernel,
        x: impl Into<TensorView<'a>>,
        y: impl Into<TensorViewMut<'b>>,
    ) -> Result<Choice> {
        self.tune_kernel(&kernel.0, &kernel.0.operands_of(&x.into())?, &mut [y.into()])
    }

    /// [`Tuner::tune`] for an op of three operands.
    ///
    /// # Errors
    /// The errors of [`TernaryKernel::run_into`] and of [`Tuner::tune_binary`].
    pub fn tune_ternary<'a, 'b>(
        &mut self,
        kernel: &TernaryKernel,
        a: impl Into<Operand<'a>>,
        b: impl Into<Operand<'a>>,
        c: impl Into<Operand<'a>>,
        y: impl Into<TensorViewMut<'b>>,
    ) -> Result<Choice> {
        self.tune_kernel(&kernel.0, &[a.into(), b.into(), c.into()], &mut [y.into()])
    }

    /// [`Tuner::tune`] for an op of any number of operands and results.
    ///
    /// # Errors
    /// The errors of [`Kernel::run_into`] and of [`Tuner::tune_binary`].
    pub fn tune_kernel(
        &mut self,
        kernel: &Kernel<'_>,
        operands: &[Operand<'_>],
        results: &mut [TensorViewMut<'_>],
    ) -> Result<Choice> {
        let plan = |settings: Settings, results: &[TensorViewMut<'_>]| {
            let views: Vec<TensorView<'_>> = results.iter().map(TensorViewMut::as_view).collect();
            kernel.with(settings).plan(operands, &views)
        };
        // Checks the call, of another number of results than the op has, too.
        plan(Settings { strategy: Strategy::Auto, threads: DEFAULT_THREADS }, results)?;
        let (y, dtype) = (results[0].as_view(), kernel.dtype(operands)?);
        let (device, n) = (*y.device(), y.numel());
        let stream = kernel.stream().cloned().unwrap_or_else(|| device.stream());
        let info = measure::measurable(&y, &stream)?;
        let candidates = measure::candidates(DEFAULT_THREADS, |wish| {
            let plan = plan(wish, results)?;
            Ok((Settings { strategy: plan.strategy, threads: plan.threads }, plan.replaced.is_some()))
        })?;
        let lies = plan(Settings { strategy: Strategy::Auto, threads: candidates[0].threads }, results)?.class;
        let choice = measure::fastest(&device, stream, &candidates, &mut |settings| {
            kernel.with(settings).run_into(operands, results)
        })?;
        Ok(self.keep(op_name(&kernel.def().info), info, (dtype, lies, n), choice))
    }
}
