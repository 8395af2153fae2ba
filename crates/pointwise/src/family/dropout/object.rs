//! The kernel object of dropout.

use super::launch::check_draws;
use crate::error::Result;
use crate::kernel::params::Params;
use crate::kernel::{self, Kernel, KernelPlan, OpDef, Operand, Rng, Strategy};
use crate::tensor::{Tensor, TensorView, TensorViewMut};
use crate::tuner::{Choice, Tuner};
use crate::{Number, Stream};

/// Dropout with its probability and launch settings.
///
/// ```
/// use pointwise::{Device, Philox, Tensor, kernels};
///
/// let x = Tensor::full(&Device::cpu(), 1.0_f32, [1000])?;
/// let rng = Philox::new(42);
/// let (y, mask) = kernels::dropout(0.2).run_with_mask(&x, rng)?;
/// let kept = mask.to_vec::<bool>()?.iter().filter(|kept| **kept).count();
/// assert_eq!(y.to_vec::<f32>()?.iter().filter(|y| **y == 1.25).count(), kept);
/// // The next call goes on behind the words of this one.
/// let z = kernels::dropout(0.2).run(&x, rng.after(1000))?;
/// # Ok::<(), pointwise::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct DropoutKernel {
    kernel: Kernel<'static>,
    /// The op with a mask.
    with_mask: &'static OpDef,
    training: bool,
}

impl DropoutKernel {
    /// The ops without and with a mask, with probability `p`.
    pub(super) fn new([plain, with_mask]: [&'static OpDef; 2], p: f64) -> DropoutKernel {
        DropoutKernel { kernel: plain.kernel(&[Number::Float(p)]), with_mask, training: true }
    }

    /// The op.
    pub fn def(&self) -> &'static OpDef {
        self.kernel.def()
    }

    /// The strategy on CUDA devices: runs of four elements ([`Strategy::ExplicitParallel`]) or vectors
    /// ([`Strategy::RegisterCopy`]). Another, or one that cannot serve a call, is replaced; the plan says so. No result depends on
    /// it.
    #[must_use]
    pub fn strategy(mut self, strategy: Strategy) -> Self {
        self.kernel = self.kernel.strategy(strategy);
        self
    }

    /// As [`Kernel::threads`].
    #[must_use]
    pub fn threads(mut self, threads: u32) -> Self {
        self.kernel = self.kernel.threads(threads);
        self
    }

    /// As [`Kernel::on`].
    #[must_use]
    pub fn on(mut self, stream: &Stream) -> Self {
        self.kernel = self.kernel.on(stream);
        self
    }

    /// Turns dropping off with `false`: the result is a copy then, and the mask is true. It is on by default.
    #[must_use]
    pub fn training(mut self, training: bool) -> Self {
        self.training = training;
        self
    }

    /// With the settings that a tuner has found for calls like the one made, as it knows them now. A strategy that was
    /// set holds all the same, and a call with a mask has none.
    #[must_use]
    pub fn tuned(mut self, tuner: &Tuner) -> Self {
        self.kernel = self.kernel.tuned(tuner);
        self
    }

    /// Dropout of `x`, in a new tensor of its shape. Element `i`, counted in row-major order, takes word `i` of
    /// `rng`.
    ///
    /// # Errors
    /// An element type that is no float, a probability outside 0 to 1 (NaN too, and without training too), a tensor to
    /// draw from that is not as [`Rng`] says, a stream of another device, bad launch settings, a missing kernel, out of
    /// memory, the driver's.
    pub fn run<'a>(&self, x: impl Into<TensorView<'a>>, rng: impl Into<Rng<'a>>) -> Result<Tensor> {
        let x = x.into();
        self.at(&x, rng)?.run_one(&[Operand::View(x)])
    }

    /// [`DropoutKernel::run`], and the mask: a bool tensor of the shape of `x`, true where the element was kept.
    ///
    /// # Errors
    /// Fails as [`DropoutKernel::run`] does.
    pub fn run_with_mask<'a>(&self, x: impl Into<TensorView<'a>>, rng: impl Into<Rng<'a>>) -> Result<(Tensor, Tensor)> {
        let x = x.into();
        let [y, mask] = kernel::results(&self.at(&x, rng)?.of(self.with_mask), &[Operand::View(x)])?;
        Ok((y, mask))
    }

    /// Dropout of `x`, written to `y`. Allocates nothing and waits for nothing, so that a CUDA graph can capture it: with seed
    /// and offset as they are now, or with a tensor that has them at each launch. An `x` that is not contiguous is copied to `y`
    /// first, unless nothing is kept.
    ///
    /// # Errors
    /// As [`DropoutKernel::run`], and: another shape, device or element type of `y`, one that is not contiguous, views that
    /// share memory in part.
    pub fn run_into<'a, 'b>(
        &self,
        x: impl Into<TensorView<'a>>,
        y: impl Into<TensorViewMut<'b>>,
        rng: impl Into<Rng<'a>>,
    ) -> Result<()> {
        let x = x.into();
        self.at(&x, rng)?.run_into(&[Operand::View(x)], &mut [y.into()])
    }

    /// [`DropoutKernel::run_into`], and the mask, written to a bool tensor of the same shape.
    ///
    /// # Errors
    /// Fails as [`DropoutKernel::run_into`] does, also for `mask`, which may share no memory with the others.
    pub fn run_with_mask_into<'a, 'b, 'c>(
        &self,
        x: impl Into<TensorView<'a>>,
        y: impl Into<TensorViewMut<'b>>,
        mask: impl Into<TensorViewMut<'c>>,
        rng: impl Into<Rng<'a>>,
    ) -> Result<()> {
        let x = x.into();
        self.at(&x, rng)?.of(self.with_mask).run_into(&[Operand::View(x)], &mut [y.into(), mask.into()])
    }

    /// Dropout of `x`, written back to `x`. Allocates nothing and waits for nothing.
    ///
    /// # Errors
    /// As [`DropoutKernel::run`], and a view that is not contiguous.
    pub fn run_inplace<'a>(&self, x: impl Into<TensorViewMut<'a>>, rng: impl Into<Rng<'a>>) -> Result<()> {
        let x = x.into();
        self.at(&x.as_view(), rng)?.run_inplace(x, &[])
    }

    /// Plans the launch of [`DropoutKernel::run_into`] (with `mask`: of [`DropoutKernel::run_with_mask_into`]) on a CUDA
    /// device for these tensors, if anything is to be drawn.
    ///
    /// # Errors
    /// As [`DropoutKernel::run_with_mask_into`], but for those of a launch.
    pub fn plan<'a, 'b>(
        &self,
        x: impl Into<TensorView<'a>>,
        y: impl Into<TensorView<'b>>,
        mask: Option<TensorView<'_>>,
    ) -> Result<KernelPlan> {
        let (x, y) = (x.into(), y.into());
        match mask {
            None => self.kernel.plan(&[Operand::View(x)], &[y]),
            Some(mask) => self.kernel.of(self.with_mask).plan(&[Operand::View(x)], &[y, mask]),
        }
    }

    /// The call at a place. Without training its probability is checked, and then 0.
    fn at<'a>(&self, x: &TensorView<'_>, rng: impl Into<Rng<'a>>) -> Result<Kernel<'a>> {
        let kernel = self.kernel.clone().rng(rng);
        if self.training {
            return Ok(kernel);
        }
        kernel.dtype(&[Operand::View(*x)])?;
        Ok(Kernel { params: Params::new(&[Number::Int(0)]), ..kernel })
    }
}

impl Tuner {
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
        let x = x.into();
        // A call that draws nothing launches no kernel: there are no settings to measure.
        check_draws(&kernel.kernel, x.dtype())?;
        self.tune_kernel(&kernel.kernel.clone().rng(rng), &[Operand::View(x)], &mut [y.into()])
    }
}
