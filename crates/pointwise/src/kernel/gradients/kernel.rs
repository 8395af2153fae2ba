//! The kernel object of gradients in tensors of their own.

use pointwise_core::Kind;

use super::GradientDef;
use super::call::{Call, Ready, Targets, overlapping};
use crate::Stream;
use crate::error::Result;
use crate::kernel::binary::channel;
use crate::kernel::{MapPlan, Operand, Strategy, check, settings};
use crate::tensor::{Overlap, Tensor, TensorView, TensorViewMut, overlap};

/// The gradients of an op of several operands, with parameters and launch settings: all of them in one pass over
/// `grad` and the operands.
///
/// Operands are broadcast together. Every gradient has the shape of the result: that of an operand which was broadcast
/// is to be summed over the dimensions along which it was.
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
pub struct GradientsKernel(pub(super) Call);

impl GradientsKernel {
    settings!(GradientDef);

    /// The gradients in new contiguous tensors, in the order of [`OpInfo::results`](crate::info::OpInfo::results).
    ///
    /// # Errors
    /// Another number of operands than the op has; operands of different element types or devices or that cannot be
    /// broadcast together, an element type, number or parameter that the op does not take, no tensor at all; a stream
    /// of another device, bad launch settings, a missing kernel, out of memory, the driver's.
    pub fn run(&self, operands: &[Operand<'_>]) -> Result<Vec<Tensor>> {
        let ready = self.ready(operands)?;
        let mut results = Vec::with_capacity(self.0.def.info.results.len());
        for _ in self.0.def.info.results {
            results.push(Tensor::empty(&ready.device, ready.dtype, ready.shape)?);
        }
        let mut targets = Targets::default();
        for (target, result) in targets.pointers.iter_mut().zip(&mut results) {
            *target = result.as_mut_ptr()?;
        }
        for (view, result) in targets.views.iter_mut().zip(&results) {
            *view = Some(result.view());
        }
        // SAFETY: new tensors of the results' type, shape and device.
        unsafe { self.0.write(&ready, &targets) }?;
        Ok(results)
    }

    /// The gradients into tensors that are there, of any strides. Allocates nothing and waits for nothing, so that a
    /// CUDA graph can capture it. A result may be an operand's very memory.
    ///
    /// # Errors
    /// As [`GradientsKernel::run`], and: another number of results than the op has; another shape, device or element
    /// type of a result; one that shares memory with another, or with an operand but is not the same view.
    pub fn run_into(&self, operands: &[Operand<'_>], results: &mut [TensorViewMut<'_>]) -> Result<()> {
        let info = &self.0.def.info;
        let ready = self.ready(operands)?;
        if results.len() != info.results.len() {
            return Err(check::wrong_count(info, "results", info.results, results.len()));
        }
        let mut targets = Targets::default();
        for (target, result) in targets.pointers.iter_mut().zip(&mut *results) {
            *target = result.as_mut_ptr()?;
        }
        for (view, result) in targets.views.iter_mut().zip(results.iter()) {
            *view = Some(result.as_view());
        }
        self.check_results(&ready, &targets)?;
        // SAFETY: the results are exclusively borrowed, and checked.
        unsafe { self.0.write(&ready, &targets) }
    }

    /// What [`GradientsKernel::run_into`] would launch on a CUDA device for these tensors.
    ///
    /// # Errors
    /// As there.
    pub fn plan(&self, operands: &[Operand<'_>], results: &[TensorView<'_>]) -> Result<MapPlan> {
        let info = &self.0.def.info;
        let ready = self.ready(operands)?;
        if results.len() != info.results.len() {
            return Err(check::wrong_count(info, "results", info.results, results.len()));
        }
        let mut targets = Targets::default();
        for (view, result) in targets.views.iter_mut().zip(results) {
            *view = Some(*result);
        }
        self.check_results(&ready, &targets)?;
        self.0.plan(&ready, &targets)
    }

    fn ready<'a>(&self, operands: &[Operand<'a>]) -> Result<Ready<'a>> {
        let info = &self.0.def.info;
        if let (Kind::ChannelGradients, [grad, Operand::View(x), Operand::View(weight)]) = (info.kind, operands)
            && (x.shape().rank() < 2 || weight.shape().rank() != x.shape().rank())
        {
            return self.0.ready(&[*grad, Operand::View(*x), Operand::View(channel(x.shape(), weight)?)]);
        }
        self.0.ready(operands)
    }

    fn check_results(&self, ready: &Ready<'_>, targets: &Targets<'_>) -> Result<()> {
        let info = &self.0.def.info;
        for (k, (name, view)) in info.results.iter().zip(targets.views.iter().flatten()).enumerate() {
            self.0.check_result(name, view, ready.dtype, &ready.shape, &ready.device)?;
            for (operand, source) in info.operands.iter().zip(&ready.views) {
                if source.is_some_and(|source| overlap(&source, view) == Overlap::Partial) {
                    return Err(overlapping(info, operand, name));
                }
            }
            for (other, earlier) in info.results.iter().zip(targets.views[..k].iter().flatten()) {
                if overlap(earlier, view) != Overlap::None {
                    return Err(overlapping(info, other, name));
                }
            }
        }
        Ok(())
    }
}
