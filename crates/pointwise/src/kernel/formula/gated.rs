//! Gated ops whose gate and value are the halves of one tensor; the kernel object of their gradients.

use pointwise_core::{DType, Kind, OpInfo};

use super::call::Kernel;
use super::checked::{CheckedOperands, Results, Shared};
use crate::error::{ErrorKind, Result};
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
        self.0.run_halves(&Halves::Gradient(grad.into(), x.into()))
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
        self.0.run_halves_into(&Halves::Gradient(grad.into(), x.into()), y.into())
    }

    /// Plans the launch of [`GatedGradientsKernel::run_into`] on a CUDA device for these tensors.
    ///
    /// # Errors
    /// Fails as [`GatedGradientsKernel::run_into`] does.
    pub fn plan<'a>(
        &self,
        grad: impl Into<Operand<'a>>,
        x: impl Into<TensorView<'a>>,
        y: impl Into<TensorView<'a>>,
    ) -> Result<KernelPlan> {
        self.0.plan_of_halves(&Halves::Gradient(grad.into(), x.into()), y.into())
    }
}

/// The operands of a gated op whose gate and value are the halves of one tensor, and those of its gradients.
pub(in crate::kernel) enum Halves<'a> {
    /// Gate and value.
    Both(TensorView<'a>),
    /// The gradient of the result; gate and value.
    Gradient(Operand<'a>, TensorView<'a>),
}

impl<'a> Halves<'a> {
    /// Returns the operands, if they are halves of one tensor.
    pub(super) fn of(info: &OpInfo, operands: &[Operand<'a>]) -> Option<Halves<'a>> {
        match (info.kind, operands) {
            (Kind::Gated, [Operand::View(x)]) => Some(Halves::Both(*x)),
            (Kind::GatedGradients, [grad, Operand::View(x)]) => Some(Halves::Gradient(*grad, *x)),
            _ => None,
        }
    }
}

/// Gate and value of an op: the halves of the last dimension of `x`.
fn halves<'a>(info: &OpInfo, x: &TensorView<'a>) -> Result<[TensorView<'a>; 2]> {
    match x.shape().split_last() {
        Some((size, outer)) if size.is_multiple_of(2) => {
            let (last, half) = (outer.len(), size / 2);
            Ok([x.narrow(last, 0, half)?, x.narrow(last, half, half)?])
        }
        _ => Err(ErrorKind::Unsupported {
            what: format!("{} of shape {}", info.name, x.shape()),
            advice: "the last dimension holds gate and value, so it must be even".to_owned(),
        }
        .into()),
    }
}

impl Kernel<'_> {
    /// The halves of `x` as operands.
    pub(crate) fn operands_of<'a>(&self, x: &TensorView<'a>) -> Result<[Operand<'a>; 2]> {
        Ok(halves(&self.def.info, x)?.map(Operand::View))
    }

    /// The result in a new tensor.
    pub(in crate::kernel) fn run_halves(&self, operands: &Halves<'_>) -> Result<Tensor> {
        let (grad, x) = match operands {
            Halves::Both(x) => return self.run_one(&self.operands_of(x)?),
            Halves::Gradient(grad, x) => (*grad, x),
        };
        let mut ready = CheckedOperands::new();
        self.ready_halves(grad, x, &mut ready)?;
        let dtype = self.def.info.result_type(0, ready.dtype);
        let mut y = Tensor::empty(x.device(), dtype, *x.shape())?;
        let pointer = y.as_mut_ptr()?;
        // SAFETY: a new tensor.
        unsafe { self.write(&ready, &self.target_halves(x, pointer, &y.view())?) }?;
        Ok(y)
    }

    /// The result, written to `y`.
    pub(in crate::kernel) fn run_halves_into(&self, operands: &Halves<'_>, mut y: TensorViewMut<'_>) -> Result<()> {
        let (grad, x) = match operands {
            Halves::Both(x) => return self.run_into(&self.operands_of(x)?, &mut [y]),
            Halves::Gradient(grad, x) => (*grad, x),
        };
        let mut ready = CheckedOperands::new();
        self.ready_halves(grad, x, &mut ready)?;
        let pointer = y.as_mut_ptr()?;
        // SAFETY: `y` is exclusively borrowed.
        unsafe { self.write(&ready, &self.target_halves(x, pointer, &y.as_view())?) }
    }

    /// Plans the launch of [`Kernel::run_halves_into`] on a CUDA device.
    pub(in crate::kernel) fn plan_of_halves(&self, operands: &Halves<'_>, y: TensorView<'_>) -> Result<KernelPlan> {
        let (grad, x) = match operands {
            Halves::Both(x) => return self.plan(&self.operands_of(x)?, &[y]),
            Halves::Gradient(grad, x) => (*grad, x),
        };
        let mut ready = CheckedOperands::new();
        self.ready_halves(grad, x, &mut ready)?;
        self.plan_for(&ready, &self.target_halves(x, std::ptr::null_mut(), &y)?)
    }

    /// Element type and shape of the result.
    pub(super) fn result_of_halves(&self, operands: &Halves<'_>) -> Result<(DType, Shape)> {
        let (grad, x) = match operands {
            Halves::Both(x) => return Ok(self.results(&self.operands_of(x)?)?.swap_remove(0)),
            Halves::Gradient(grad, x) => (*grad, x),
        };
        let mut ready = CheckedOperands::new();
        self.ready_halves(grad, x, &mut ready)?;
        Ok((self.def.info.result_type(0, ready.dtype), *x.shape()))
    }

    /// Checks the operands of gradients in halves.
    fn ready_halves<'a>(
        &self,
        grad: Operand<'a>,
        x: &TensorView<'a>,
        ready: &mut CheckedOperands<'a, OPERANDS>,
    ) -> Result<()> {
        let info = &self.def.info;
        // Any op may be asked to run so. There are two halves to write to.
        if info.operands.len() != OPERANDS {
            return Err(check::wrong_count(info, "operands", info.operands, OPERANDS));
        }
        if info.results.len() != 2 {
            return Err(check::wrong_count(info, "results", info.results, 2));
        }
        let [gate, value] = halves(info, x)?;
        self.ready(&[grad, Operand::View(gate), Operand::View(value)], ready)?;
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
    fn target_halves<'a>(
        &self,
        x: &'a TensorView<'a>,
        pointer: *mut u8,
        y: &'a TensorView<'a>,
    ) -> Result<Results<'a, TENSORS>> {
        let [front, back] = halves(&self.def.info, y)?;
        let mut targets = Results::new(Shared::Halves { x, y });
        targets.set(0, pointer, front);
        targets.set(1, pointer.wrapping_add(back.address().wrapping_sub(front.address())), back);
        Ok(targets)
    }
}
