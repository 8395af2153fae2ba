//! Kernel objects of ops of two operands: binary, per channel, gated.

use super::{Kernel, KernelPlan, Operand};
use crate::error::Result;
use crate::tensor::{Tensor, TensorView, TensorViewMut};

/// A binary op with its parameters and launch settings.
///
/// ```
/// use pointwise::{Device, Tensor, kernels};
///
/// let rows = Tensor::from_slice(&Device::cpu(), &[1.0_f32, 2.0, 3.0, 4.0], [2, 2])?;
/// let bias = Tensor::from_slice(&Device::cpu(), &[10.0_f32, 20.0], [2])?;
/// let y = kernels::add(1.0).run(&rows, &bias)?;
/// assert_eq!(y.to_vec::<f32>()?, [11.0, 22.0, 13.0, 24.0]);
/// assert_eq!(kernels::sub(1.0).run(1, &bias)?.to_vec::<f32>()?, [-9.0, -19.0]);
/// # Ok::<(), pointwise::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct BinaryKernel(pub(crate) Kernel<'static>);

impl BinaryKernel {
    /// The op on every pair of elements, in a new contiguous tensor of the shape that the operands broadcast to.
    ///
    /// Operands of different types are converted to that of [`result_type`](crate::kernel::result_type) first, and integers and
    /// bool to f32 where the op is a float function ([`Properties::int_to_float`](crate::info::Properties::int_to_float)): each takes
    /// another pass and a tensor meanwhile. `prelu` and gated ops take one type, as in PyTorch.
    ///
    /// # Errors
    /// Operands whose types have no common one ([`result_type`](crate::kernel::result_type)) or that lie on different devices
    /// or cannot be broadcast together, an element type, number or parameter that the op does not take, no tensor at
    /// all; a stream of another device, bad launch settings, a missing kernel, out of memory, the driver's.
    pub fn run<'a>(&self, a: impl Into<Operand<'a>>, b: impl Into<Operand<'a>>) -> Result<Tensor> {
        self.0.run_one(&[a.into(), b.into()])
    }

    /// The op on every pair of elements, written to `y`, of any strides. Allocates nothing and waits for nothing, so
    /// that a CUDA graph can capture it, unless operands are converted first. `y` may be an operand's very memory.
    ///
    /// # Errors
    /// As [`BinaryKernel::run`], and: another shape, device or element type of `y`, an operand that shares memory with
    /// it but is not the same view.
    pub fn run_into<'a, 'b>(
        &self,
        a: impl Into<Operand<'a>>,
        b: impl Into<Operand<'a>>,
        y: impl Into<TensorViewMut<'b>>,
    ) -> Result<()> {
        self.0.run_into(&[a.into(), b.into()], &mut [y.into()])
    }

    /// The op, written back to `a`, whose shape the other operand must broadcast to. Where they meet in another type,
    /// the result is converted to that of `a`, if [`DType::can_cast`](crate::DType::can_cast) allows it.
    ///
    /// # Errors
    /// As [`BinaryKernel::run_into`], and a result that cannot be converted so: of floats over integers, a
    /// comparison's.
    pub fn run_inplace<'a, 'b>(&self, a: impl Into<TensorViewMut<'a>>, b: impl Into<Operand<'b>>) -> Result<()> {
        let b = b.into();
        self.0.run_over(a.into(), &[0], [b, b], 2)
    }

    /// Plans the launch of [`BinaryKernel::run_into`] on a CUDA device for these tensors. A power by the number 1, 2, 0.5,
    /// -0.5 or -1 runs as a copy, a product, a root or a reciprocal instead, by the same settings.
    ///
    /// # Errors
    /// Fails as [`BinaryKernel::run_into`] does.
    pub fn plan<'a>(
        &self,
        a: impl Into<Operand<'a>>,
        b: impl Into<Operand<'a>>,
        y: impl Into<TensorView<'a>>,
    ) -> Result<KernelPlan> {
        self.0.plan(&[a.into(), b.into()], &[y.into()])
    }
}

/// A gated op with its parameters and launch settings: an activation of the first half of the last dimension, times the
/// second half.
///
/// ```
/// use pointwise::{Device, Tensor, kernels};
///
/// let x = Tensor::from_slice(&Device::cpu(), &[0.0_f32, 1.0, 5.0, 3.0], [1, 4])?;
/// let y = kernels::silu_and_mul().run(&x)?;
/// assert_eq!(y.shape(), &[1, 2]);
/// # Ok::<(), pointwise::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct GatedKernel(pub(crate) Kernel<'static>);

impl GatedKernel {
    /// The op on `x` of shape `(.., 2N)`, in a new tensor of shape `(.., N)`.
    ///
    /// # Errors
    /// A last dimension that is odd or missing, and those of [`BinaryKernel::run`].
    pub fn run<'a>(&self, x: impl Into<TensorView<'a>>) -> Result<Tensor> {
        self.0.run_one(&self.0.operands_of(&x.into())?)
    }

    /// The op on `x` of shape `(.., 2N)`, written to `y` of shape `(.., N)`, which shares no memory with `x`.
    ///
    /// # Errors
    /// As [`GatedKernel::run`] and [`BinaryKernel::run_into`].
    pub fn run_into<'a, 'b>(&self, x: impl Into<TensorView<'a>>, y: impl Into<TensorViewMut<'b>>) -> Result<()> {
        self.0.run_into(&self.0.operands_of(&x.into())?, &mut [y.into()])
    }

    /// The op on a gate and a value that are tensors of their own, broadcast.
    ///
    /// # Errors
    /// As [`BinaryKernel::run`], and a number.
    pub fn run_pair<'a>(&self, gate: impl Into<Operand<'a>>, value: impl Into<Operand<'a>>) -> Result<Tensor> {
        self.0.run_one(&[gate.into(), value.into()])
    }

    /// [`GatedKernel::run_pair`] into a tensor that is there.
    ///
    /// # Errors
    /// As [`BinaryKernel::run_into`].
    pub fn run_pair_into<'a, 'b>(
        &self,
        gate: impl Into<Operand<'a>>,
        value: impl Into<Operand<'a>>,
        y: impl Into<TensorViewMut<'b>>,
    ) -> Result<()> {
        self.0.run_into(&[gate.into(), value.into()], &mut [y.into()])
    }

    /// Plans the launch of [`GatedKernel::run_into`] on a CUDA device for these tensors.
    ///
    /// # Errors
    /// Fails as [`GatedKernel::run_into`] does.
    pub fn plan<'a>(&self, x: impl Into<TensorView<'a>>, y: impl Into<TensorView<'a>>) -> Result<KernelPlan> {
        self.0.plan(&self.0.operands_of(&x.into())?, &[y.into()])
    }
}
