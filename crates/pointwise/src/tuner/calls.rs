//! Measuring ops of any number of operands, and dropout.

use super::{Choice, Layout, Settings, Tuner, measure, op_name};
use crate::error::Result;
use crate::kernel::{DEFAULT_THREADS, Kernel};
use crate::{
    Operand, Strategy, TensorView, TensorViewMut,
    kernel::{BinaryKernel, DropoutKernel, GatedKernel, Rng, TernaryKernel},
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

    /// [`Tuner::tune`] for dropout, without a mask; calls with one run with the defaults.
    ///
    /// # Errors
    /// The errors of [`DropoutKernel::run_into`] and of [`Tuner::tune_binary`].
    pub fn tune_dropout<'a, 'b>(
        &mut self,
        kernel: &DropoutKernel,
        x: impl Into<TensorView<'a>>,
        y: impl Into<TensorViewMut<'b>>,
        rng: impl Into<Rng<'a>>,
    ) -> Result<Choice> {
        let (x, mut y, rng) = (x.into(), y.into(), rng.into());
        let stream = kernel.stream().cloned().unwrap_or_else(|| x.device().stream());
        let info = measure::measurable(&x, &stream)?;
        // A call that draws nothing launches no kernel: there are no settings to measure.
        kernel.check_draws(x.dtype())?;
        let default = kernel.untuned();
        let plan = |strategy: Strategy, threads: u32| {
            default.clone().strategy(strategy).threads(threads).plan(x, y.as_view(), None)
        };
        let candidates = measure::candidates(DEFAULT_THREADS, |wish| {
            let plan = plan(wish.strategy, wish.threads)?;
            Ok((Settings { strategy: plan.strategy, threads: plan.threads }, plan.replaced.is_some()))
        })?;
        let lies =
            Layout::aligned(plan(Strategy::RegisterCopy, candidates[0].threads)?.strategy == Strategy::RegisterCopy);
        let choice = measure::fastest(x.device(), stream, &candidates, &mut |settings| {
            default.clone().strategy(settings.strategy).threads(settings.threads).run_into(x, y.reborrow(), rng)
        })?;
        Ok(self.keep(op_name(kernel.info()), info, (x.dtype(), lies, x.numel()), choice))
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
        let lies =
            Layout::Class(plan(Settings { strategy: Strategy::Auto, threads: candidates[0].threads }, results)?.class);
        let choice = measure::fastest(&device, stream, &candidates, &mut |settings| {
            kernel.with(settings).run_into(operands, results)
        })?;
        Ok(self.keep(op_name(&kernel.def().info), info, (dtype, lies, n), choice))
    }
}
