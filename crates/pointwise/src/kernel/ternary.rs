//! Kernel objects of ops of three operands.

use super::{Kernel, KernelPlan, Operand};
use crate::error::Result;
use crate::tensor::{Tensor, TensorView, TensorViewMut};

/// A ternary op with its parameters and launch settings; of `where` the first operand is the condition.
///
/// ```
/// use pointwise::{Device, Tensor, kernels};
///
/// let condition = Tensor::from_slice(&Device::cpu(), &[true, false], [2])?;
/// let a = Tensor::from_slice(&Device::cpu(), &[1.0_f32, 2.0], [2])?;
/// let y = kernels::where_cond().run(&condition, &a, f64::NEG_INFINITY)?;
/// assert_eq!(y.to_vec::<f32>()?, [1.0, f32::NEG_INFINITY]);
/// # Ok::<(), pointwise::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct TernaryKernel(pub(crate) Kernel<'static>);

impl TernaryKernel {
    /// The op on every triple of elements, in a new contiguous tensor of the shape that the operands broadcast to.
    ///
    /// Operands of different types are converted as [`BinaryKernel::run`](crate::kernel::BinaryKernel::run) does, a condition
    /// apart; `lerp` takes one type, as in PyTorch.
    ///
    /// # Errors
    /// As [`BinaryKernel::run`](crate::kernel::BinaryKernel::run); a condition that is not bool.
    pub fn run<'a>(
        &self,
        a: impl Into<Operand<'a>>,
        b: impl Into<Operand<'a>>,
        c: impl Into<Operand<'a>>,
    ) -> Result<Tensor> {
        self.0.run_one(&[a.into(), b.into(), c.into()])
    }

    /// The op on every triple of elements, written to `y`, of any strides. Allocates nothing and waits for nothing, so
    /// that a CUDA graph can capture it, unless operands are converted first. `y` may be an operand's very memory.
    ///
    /// # Errors
    /// As [`TernaryKernel::run`] and [`BinaryKernel::run_into`](crate::kernel::BinaryKernel::run_into).
    pub fn run_into<'a, 'b>(
        &self,
        a: impl Into<Operand<'a>>,
        b: impl Into<Operand<'a>>,
        c: impl Into<Operand<'a>>,
        y: impl Into<TensorViewMut<'b>>,
    ) -> Result<()> {
        self.0.run_into(&[a.into(), b.into(), c.into()], &mut [y.into()])
    }

    /// The op, written back to its first operand, whose shape the others must broadcast to.
    ///
    /// # Errors
    /// As [`TernaryKernel::run_into`].
    pub fn run_inplace<'a, 'b>(
        &self,
        a: impl Into<TensorViewMut<'a>>,
        b: impl Into<Operand<'b>>,
        c: impl Into<Operand<'b>>,
    ) -> Result<()> {
        let (b, c) = (b.into(), c.into());
        self.0.run_over(a.into(), &[0], [b, b, c], 3)
    }

    /// The op, written back to its last operand, whose shape the others must broadcast to.
    ///
    /// # Errors
    /// As [`TernaryKernel::run_into`].
    pub fn run_over_last<'a, 'b>(
        &self,
        a: impl Into<Operand<'b>>,
        b: impl Into<Operand<'b>>,
        c: impl Into<TensorViewMut<'a>>,
    ) -> Result<()> {
        let (a, b) = (a.into(), b.into());
        self.0.run_over(c.into(), &[2], [a, b, b], 3)
    }

    /// Plans the launch of [`TernaryKernel::run_into`] on a CUDA device for these tensors.
    ///
    /// # Errors
    /// Fails as [`TernaryKernel::run_into`] does.
    pub fn plan<'a>(
        &self,
        a: impl Into<Operand<'a>>,
        b: impl Into<Operand<'a>>,
        c: impl Into<Operand<'a>>,
        y: impl Into<TensorView<'a>>,
    ) -> Result<KernelPlan> {
        self.0.plan(&[a.into(), b.into(), c.into()], &[y.into()])
    }
}
