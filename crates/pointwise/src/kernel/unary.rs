//! Kernel objects of ops of one operand.

use super::{Kernel, KernelPlan, Operand};
use crate::error::Result;
use crate::tensor::{Tensor, TensorView, TensorViewMut};
use crate::{Number, Stream};

/// A unary op with its parameters and launch settings.
///
/// ```
/// use pointwise::{Device, Strategy, Tensor, kernels};
///
/// let x = Tensor::from_slice(&Device::cpu(), &[-1.0_f32, 0.0, 2.0], [3])?;
/// let y = kernels::leaky_relu(0.1).strategy(Strategy::RegisterCopy).threads(128).run(&x)?;
/// assert_eq!(y.to_vec::<f32>()?, [-0.1, 0.0, 2.0]);
/// # Ok::<(), pointwise::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct UnaryKernel(pub(crate) Kernel<'static>);

impl UnaryKernel {
    /// With a stream, where there is one.
    pub(super) fn on_stream(mut self, stream: Option<&Stream>) -> Self {
        self.0.settings.stream = stream.cloned();
        self
    }

    /// The op on every element of `x`, in a new contiguous tensor of its shape. Integers and bool are converted to f32
    /// first where the op is a float function ([`Properties::int_to_float`](crate::info::Properties::int_to_float)), which takes
    /// another pass and a tensor meanwhile.
    ///
    /// # Errors
    /// An element type or a parameter that the op does not take, a stream of another device, bad launch settings, a
    /// missing kernel, out of memory, the driver's.
    pub fn run<'a>(&self, x: impl Into<TensorView<'a>>) -> Result<Tensor> {
        self.0.run_one(&[Operand::View(x.into())])
    }

    /// The op on every element of `x`, written to `y`, of any strides. Allocates nothing and waits for nothing, so that a
    /// CUDA graph can capture it, unless `x` is converted first. `y` may be the very memory of `x`.
    ///
    /// # Errors
    /// As [`UnaryKernel::run`], and: another shape, device or element type of `y`, views that share memory but are not
    /// the same.
    pub fn run_into<'a, 'b>(&self, x: impl Into<TensorView<'a>>, y: impl Into<TensorViewMut<'b>>) -> Result<()> {
        self.0.run_into(&[Operand::View(x.into())], &mut [y.into()])
    }

    /// The op on every element of `x`, written back to `x`. Allocates nothing and waits for nothing.
    ///
    /// # Errors
    /// As [`UnaryKernel::run`], and a result of another element type than `x`.
    pub fn run_inplace<'a>(&self, x: impl Into<TensorViewMut<'a>>) -> Result<()> {
        self.0.run_over(x.into(), &[0], [Operand::Number(Number::Default)], 1)
    }

    /// Plans the launch of [`UnaryKernel::run_into`] on a CUDA device for these tensors. For tensors on the CPU the answer is
    /// as on a CUDA device.
    ///
    /// # Errors
    /// As [`UnaryKernel::run_into`], but for those of a launch.
    pub fn plan<'a>(&self, x: impl Into<TensorView<'a>>, y: impl Into<TensorView<'a>>) -> Result<KernelPlan> {
        self.0.plan(&[Operand::View(x.into())], &[y.into()])
    }
}
