//! The kernel object of a gated op's gradients, in the halves of one tensor.

use super::call::{CheckedOperands, Kernel, Results, Shared};
use crate::error::{ErrorKind, Result};
use crate::kernel::binary::halves;
use crate::kernel::{KernelPlan, Operand, check};
use crate::shape::Shape;
use crate::tensor::{Tensor, TensorView, TensorViewMut};

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
    /// results than two, or of two of different types, and those of [`Kernel::run`].
    pub fn run<'a>(&self, grad: impl Into<Operand<'a>>, x: impl Into<TensorView<'a>>) -> Result<Tensor> {
        let x = x.into();
        let mut ready = CheckedOperands::new();
        self.ready(grad.into(), &x, &mut ready)?;
        let dtype = self.0.def.info.result_type(0, ready.dtype);
        let mut y = Tensor::empty(x.device(), dtype, *x.shape())?;
        let pointer = y.as_mut_ptr()?;
        // SAFETY: a new tensor.
        unsafe { self.0.write(&ready, &self.targets(&x, pointer, y.view())?) }?;
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
        let (x, mut y) = (x.into(), y.into());
        let mut ready = CheckedOperands::new();
        self.ready(grad.into(), &x, &mut ready)?;
        let pointer = y.as_mut_ptr()?;
        // SAFETY: `y` is exclusively borrowed.
        unsafe { self.0.write(&ready, &self.targets(&x, pointer, y.as_view())?) }
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
        let x = x.into();
        let mut ready = CheckedOperands::new();
        self.ready(grad.into(), &x, &mut ready)?;
        self.0.plan_for(&ready, &self.targets(&x, std::ptr::null_mut(), y.into())?)
    }

    fn ready<'a>(
        &self,
        grad: Operand<'a>,
        x: &TensorView<'a>,
        ready: &mut CheckedOperands<'a, OPERANDS>,
    ) -> Result<()> {
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
        let [first, second] = [0, 1].map(|k| info.result_type(k, ready.dtype));
        if first != second {
            let what = format!("{} with results in the halves of a tensor", info.name);
            let advice = format!("they are of {first} and {second}: give gate and value as tensors of their own");
            return Err(ErrorKind::Unsupported { what, advice }.into());
        }
        Ok(())
    }

    /// The halves of `y`'s last dimension as results; `pointer` is its first element.
    fn targets<'a>(&self, x: &TensorView<'a>, pointer: *mut u8, y: TensorView<'a>) -> Result<Results<'a, TENSORS>> {
        let [front, back] = halves(&self.0.def.info, &y)?;
        let mut targets = Results::new(Shared::Halves { x: *x, y });
        targets.set(0, pointer, front);
        targets.set(1, pointer.wrapping_add(back.address().wrapping_sub(front.address())), back);
        Ok(targets)
    }
}
