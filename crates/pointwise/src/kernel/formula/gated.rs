//! The kernel object of a gated op's gradients, in the halves of one tensor.

use pointwise_core::OpInfo;

use super::call::{Kernel, Ready, Targets, overlapping};
use crate::error::{ErrorKind, Result};
use crate::kernel::binary::halves;
use crate::kernel::{KernelPlan, Operand, check};
use crate::shape::Shape;
use crate::tensor::{Overlap, Tensor, TensorView, TensorViewMut, overlap};

/// The gradient, gate and value.
const OPERANDS: usize = 3;
/// These, and a gradient of each half.
const TENSORS: usize = OPERANDS + 2;

/// The gradients of a gated op, with parameters and launch settings: those of both halves of `x` in one pass.
///
/// ```
/// use pointwise::{Device, Tensor, ops};
///
/// let cpu = Device::cpu();
/// let x = Tensor::from_slice(&cpu, &[0.0_f32, 3.0], [1, 2])?; // gate and value
/// let grad = Tensor::full(&cpu, 2.0_f32, [1, 1])?;
/// let y = ops::silu_and_mul_backward(&grad, &x)?;
/// assert_eq!(y.to_vec::<f32>()?, [3.0, 0.0]); // grad value silu'(0), grad silu(0)
/// # Ok::<(), pointwise::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct GatedGradientsKernel(pub(in crate::kernel) Kernel<'static>);

impl GatedGradientsKernel {
    /// The gradient of `x` of shape `(.., 2N)` for `grad` of shape `(.., N)`, in a new tensor of x's shape.
    ///
    /// # Errors
    /// A last dimension that is odd or missing, a `grad` that does not broadcast to `(.., N)`, an op of another number of
    /// results than two, and those of
    /// [`Kernel::run`].
    pub fn run<'a>(&self, grad: impl Into<Operand<'a>>, x: impl Into<TensorView<'a>>) -> Result<Tensor> {
        let x = x.into();
        let mut ready = Ready::new();
        self.ready(grad.into(), &x, &mut ready)?;
        let mut y = Tensor::empty(x.device(), x.dtype(), *x.shape())?;
        let pointer = y.as_mut_ptr()?;
        let targets = halves_of(&self.0.def.info, pointer, &y.view())?;
        // SAFETY: a new tensor of the result's type, shape and device.
        unsafe { self.0.write(&ready, &targets) }?;
        Ok(y)
    }

    /// The gradient of `x`, written to `y` of its shape, which may be `x` itself.
    ///
    /// # Errors
    /// As [`GatedGradientsKernel::run`] and [`Kernel::run_into`].
    pub fn run_into<'a, 'b>(
        &self,
        grad: impl Into<Operand<'a>>,
        x: impl Into<TensorView<'a>>,
        y: impl Into<TensorViewMut<'b>>,
    ) -> Result<()> {
        let (grad, x, mut y) = (grad.into(), x.into(), y.into());
        let mut ready = Ready::new();
        self.ready(grad, &x, &mut ready)?;
        let pointer = y.as_mut_ptr()?;
        self.check(&grad, &x, &y.as_view())?;
        // SAFETY: `y` is exclusively borrowed, and checked.
        unsafe { self.0.write(&ready, &halves_of(&self.0.def.info, pointer, &y.as_view())?) }
    }

    /// What [`GatedGradientsKernel::run_into`] would launch on a CUDA device for these tensors.
    ///
    /// # Errors
    /// As there.
    pub fn plan<'a>(
        &self,
        grad: impl Into<Operand<'a>>,
        x: impl Into<TensorView<'a>>,
        y: impl Into<TensorView<'a>>,
    ) -> Result<KernelPlan> {
        let (grad, x, y) = (grad.into(), x.into(), y.into());
        let mut ready = Ready::new();
        self.ready(grad, &x, &mut ready)?;
        self.check(&grad, &x, &y)?;
        self.0.plan_for(&ready, &halves_of(&self.0.def.info, std::ptr::null_mut(), &y)?)
    }

    fn ready<'a>(&self, grad: Operand<'a>, x: &TensorView<'a>, ready: &mut Ready<'a, OPERANDS>) -> Result<()> {
        let info = &self.0.def.info;
        // Any op may be asked to run so. There are two halves to write to.
        if info.operands.len() != OPERANDS {
            return Err(check::wrong_count(info, "operands", info.operands, OPERANDS));
        }
        if info.results.len() != 2 {
            return Err(check::wrong_count(info, "results", info.results, 2));
        }
        let [gate, value] = halves(info, x)?;
        self.0.ready(&[grad, Operand::View(gate), Operand::View(value)], ready)?;
        if &ready.shape != gate.shape() {
            let got = match grad {
                Operand::View(grad) => *grad.shape(),
                Operand::Number(_) => Shape::SCALAR,
            };
            let what = format!("grad of {} of shape {}", info.name, x.shape());
            return Err(ErrorKind::ShapeMismatch { what, expected: *gate.shape(), got }.into());
        }
        Ok(())
    }

    fn check(&self, grad: &Operand<'_>, x: &TensorView<'_>, y: &TensorView<'_>) -> Result<()> {
        let info = &self.0.def.info;
        let what = || format!("the output y of {}", info.name);
        check::output(what, y, (x.dtype(), x.dtype()), x.shape(), x.device())?;
        if overlap(x, y) == Overlap::Partial {
            return Err(overlapping("operand x", &what()));
        }
        match grad {
            Operand::View(grad) if overlap(grad, y) != Overlap::None => Err(overlapping("operand grad", &what())),
            _ => Ok(()),
        }
    }
}

/// The halves of `y`'s last dimension as results; `pointer` is its first element.
fn halves_of<'a>(info: &OpInfo, pointer: *mut u8, y: &TensorView<'a>) -> Result<Targets<'a, TENSORS>> {
    let [front, back] = halves(info, y)?;
    let mut targets = Targets::new();
    targets.set(0, pointer, front);
    targets.set(1, pointer.wrapping_add(back.address().wrapping_sub(front.address())), back);
    Ok(targets)
}
