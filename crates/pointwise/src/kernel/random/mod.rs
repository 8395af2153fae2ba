//! Ops with a random word for each element: their definitions, and dropout's kernel object.

mod execute;
mod plan;

use pointwise_core::family::random::last_kept;
use pointwise_core::op::Words;
use pointwise_core::{DType, OpInfo, Word};

use super::{DEFAULT_THREADS, Entry, LaunchSettings, Plan, Rng, Strategy, Variant, check, promote};
use crate::cpu::RandomFn;
use crate::error::{ErrorKind, Result};
use crate::tensor::{Overlap, Tensor, TensorView, TensorViewMut, overlap};
use crate::tuner::Choices;
use crate::{Stream, tuner::Tuner};

/// A random op as the host knows it.
#[derive(Debug)]
pub(crate) struct RandomDef {
    /// Name, types, documentation.
    pub(crate) info: OpInfo,
    /// The loop over elements of a type on the CPU; `None` for a type the op does not take.
    pub(crate) cpu: fn(DType) -> Option<RandomFn>,
    /// The kernel of a variant for elements of a type, with or without a mask; `None` where there is none.
    pub(crate) entry: fn(DType, Variant, bool) -> Option<&'static Entry>,
}

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
    def: &'static RandomDef,
    p: f64,
    training: bool,
    pub(super) settings: LaunchSettings,
    tuned: Option<Choices>,
}

/// What a call comes to.
enum Mode {
    /// Everything is kept, unchanged.
    Keep,
    /// Nothing is kept.
    Drop,
    Draw(Words),
}

impl RandomDef {
    /// Dropout with probability `p`.
    pub(crate) fn dropout(&'static self, p: f64) -> DropoutKernel {
        DropoutKernel { def: self, p, training: true, settings: LaunchSettings::new(), tuned: None }
    }
}

impl DropoutKernel {
    /// Name, types, documentation.
    pub fn info(&self) -> &'static OpInfo {
        &self.def.info
    }

    /// Whether to drop anything (the default): without, the result is a copy and the mask is true.
    #[must_use]
    pub fn training(mut self, training: bool) -> Self {
        self.training = training;
        self
    }

    /// With the settings that a tuner has found for calls like the one made, as it knows them now. A strategy that was
    /// set holds all the same, and a call with a mask has none.
    #[must_use]
    pub fn tuned(mut self, tuner: &Tuner) -> Self {
        self.tuned = Some(tuner.choices(&self.def.info));
        self
    }

    /// The kernel with the default settings, and no choices of a tuner.
    pub(crate) fn untuned(&self) -> DropoutKernel {
        let settings = self.settings.with(Strategy::Auto, DEFAULT_THREADS);
        DropoutKernel { settings, tuned: None, ..self.clone() }
    }

    /// The stream that was set.
    pub(crate) fn stream(&self) -> Option<&Stream> {
        self.settings.stream.as_ref()
    }

    /// That a call launches dropout's kernel.
    pub(crate) fn check_draws(&self, dtype: DType) -> Result<()> {
        match self.mode(dtype)? {
            Mode::Draw(_) => Ok(()),
            Mode::Keep | Mode::Drop => Err(ErrorKind::Unsupported {
                what: format!("tuning {} that draws nothing", self.def.info.name),
                advice: "give a probability between 0 and 1, with training".to_owned(),
            }
            .into()),
        }
    }

    /// Dropout of `x`, in a new tensor of its shape. Element `i`, counted in row-major order, takes word `i` of
    /// `rng`.
    ///
    /// # Errors
    /// An element type that is no float, a probability outside 0 to 1 (NaN too, and without training too), a tensor to
    /// draw from that is not as [`Rng`] says, a stream of another device, bad launch settings, a missing kernel, out of
    /// memory, the driver's.
    pub fn run<'a>(&self, x: impl Into<TensorView<'a>>, rng: impl Into<Rng<'a>>) -> Result<Tensor> {
        let (x, rng) = (x.into(), rng.into());
        self.mode(x.dtype())?;
        let mut copy = None;
        let x = self.in_order(x, &mut copy)?;
        let mut y = Tensor::empty(x.device(), x.dtype(), x.shape())?;
        self.run_into(x, &mut y, rng)?;
        Ok(y)
    }

    /// [`DropoutKernel::run`], and the mask: a bool tensor of the shape of `x`, true where the element was kept.
    ///
    /// # Errors
    /// As there.
    pub fn run_with_mask<'a>(&self, x: impl Into<TensorView<'a>>, rng: impl Into<Rng<'a>>) -> Result<(Tensor, Tensor)> {
        let (x, rng) = (x.into(), rng.into());
        self.mode(x.dtype())?;
        let mut copy = None;
        let x = self.in_order(x, &mut copy)?;
        let mut y = Tensor::empty(x.device(), x.dtype(), x.shape())?;
        let mut mask = Tensor::empty(x.device(), DType::Bool, x.shape())?;
        self.run_with_mask_into(x, &mut y, &mut mask, rng)?;
        Ok((y, mask))
    }

    /// Dropout of `x`, written to `y`. Allocates nothing and waits for nothing, so that a CUDA graph can capture it:
    /// with seed and offset as they are now, or with a tensor that has them at each launch.
    ///
    /// # Errors
    /// As [`DropoutKernel::run`], and: another shape, device or element type of `y`, views that are not contiguous or
    /// share memory in part.
    pub fn run_into<'a, 'b>(
        &self,
        x: impl Into<TensorView<'a>>,
        y: impl Into<TensorViewMut<'b>>,
        rng: impl Into<Rng<'a>>,
    ) -> Result<()> {
        self.checked(x.into(), y.into(), None, rng.into())
    }

    /// [`DropoutKernel::run_into`], and the mask, written to a bool tensor of the same shape.
    ///
    /// # Errors
    /// As there, and the same for `mask`, which may share no memory with the others.
    pub fn run_with_mask_into<'a, 'b, 'c>(
        &self,
        x: impl Into<TensorView<'a>>,
        y: impl Into<TensorViewMut<'b>>,
        mask: impl Into<TensorViewMut<'c>>,
        rng: impl Into<Rng<'a>>,
    ) -> Result<()> {
        self.checked(x.into(), y.into(), Some(mask.into()), rng.into())
    }

    /// Dropout of `x`, written back to `x`. Allocates nothing and waits for nothing.
    ///
    /// # Errors
    /// As [`DropoutKernel::run`], and a view that is not contiguous.
    pub fn run_inplace<'a>(&self, x: impl Into<TensorViewMut<'a>>, rng: impl Into<Rng<'a>>) -> Result<()> {
        let mut x = x.into();
        let mode = self.mode(x.dtype())?;
        x.layout().require_contiguous("dropout in place")?;
        let target = x.as_mut_ptr()?;
        let view = x.as_view();
        // SAFETY: one exclusively borrowed tensor is operand and result.
        unsafe { self.execute(&mode, &view, (target, &view), None, &rng.into()) }
    }

    /// What [`DropoutKernel::run_into`] (with `mask`: [`DropoutKernel::run_with_mask_into`]) would launch on a CUDA
    /// device for these tensors, if anything is to be drawn.
    ///
    /// # Errors
    /// As [`DropoutKernel::run_with_mask_into`], but for those of a launch.
    pub fn plan<'a, 'b>(
        &self,
        x: impl Into<TensorView<'a>>,
        y: impl Into<TensorView<'b>>,
        mask: Option<TensorView<'_>>,
    ) -> Result<Plan> {
        let (x, y) = (x.into(), y.into());
        self.mode(x.dtype())?;
        self.check_tensors(&x, &y, mask.as_ref())?;
        self.settings.check(x.device())?;
        self.plan_for(&x, y.address(), mask.map(|mask| mask.address()))
    }

    /// `x`, or its elements one after another in `copy`, which a call that is captured cannot make.
    fn in_order<'a>(&self, x: TensorView<'a>, copy: &'a mut Option<Tensor>) -> Result<TensorView<'a>> {
        if x.is_contiguous() {
            return Ok(x);
        }
        let stream = self.settings.stream.as_ref();
        promote::refuse_captured(stream, || {
            let what = format!("{} of x that is not contiguous, in a call that is captured", self.def.info.name);
            (what, "copy x with to_tensor() before the capture")
        })?;
        Ok(copy.insert(promote::convert(&x, x.dtype(), stream)?).view())
    }

    /// Checks type and probability.
    fn mode(&self, dtype: DType) -> Result<Mode> {
        let info = &self.def.info;
        check::dtype(info, dtype)?;
        // NaN is in no range.
        if !(0.0..=1.0).contains(&self.p) {
            return Err(ErrorKind::Parameter {
                name: "p",
                value: self.p.to_string(),
                why: "must be a probability, from 0 to 1".to_owned(),
            }
            .into());
        }
        // As a row's parameter is, so that a fused op with dropout in it drops the same elements.
        let p = f64::from(self.p as f32);
        Ok(if !self.training || p == 0.0 {
            Mode::Keep
        } else if p == 1.0 {
            Mode::Drop
        } else {
            let scale = (1.0 / (1.0 - p)) as f32;
            Mode::Draw([u64::from(last_kept(p)), scale.to_word(), 0, 0])
        })
    }

    fn checked(
        &self,
        x: TensorView<'_>,
        mut y: TensorViewMut<'_>,
        mut mask: Option<TensorViewMut<'_>>,
        rng: Rng<'_>,
    ) -> Result<()> {
        let mode = self.mode(x.dtype())?;
        self.check_tensors(&x, &y.as_view(), mask.as_ref().map(|mask| mask.as_view()).as_ref())?;
        let target = y.as_mut_ptr()?;
        let mask = match &mut mask {
            Some(mask) => Some((mask.as_mut_ptr()?, mask.as_view())),
            None => None,
        };
        // SAFETY: types, sizes, devices and overlaps are checked; the views are borrowed until the call is queued, and
        // noted as used on its stream.
        unsafe { self.execute(&mode, &x, (target, &y.as_view()), mask, &rng) }
    }

    fn check_tensors(&self, x: &TensorView<'_>, y: &TensorView<'_>, mask: Option<&TensorView<'_>>) -> Result<()> {
        x.layout().require_contiguous("the operand of dropout")?;
        self.check_output("output", x, y, x.dtype())?;
        if overlap(x, y) == Overlap::Partial {
            return Err(self.overlap("input and output"));
        }
        if let Some(mask) = mask {
            self.check_output("mask", x, mask, DType::Bool)?;
            if overlap(x, mask) != Overlap::None || overlap(y, mask) != Overlap::None {
                return Err(self.overlap("mask and another tensor"));
            }
        }
        Ok(())
    }

    fn check_output(&self, which: &str, x: &TensorView<'_>, y: &TensorView<'_>, dtype: DType) -> Result<()> {
        let what = || format!("the {which} of {}", self.def.info.name);
        check::output(what, y, (x.dtype(), dtype), x.shape(), x.device())?;
        y.layout().require_contiguous("an output of dropout")
    }

    fn overlap(&self, which: &str) -> crate::Error {
        ErrorKind::Overlap { what: format!("{which} of {}", self.def.info.name) }.into()
    }
}
