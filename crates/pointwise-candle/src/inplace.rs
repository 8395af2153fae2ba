//! Ops that write over their first operand, as candle's ops in place.

use candle_core::{CpuStorage, CudaStorage, InplaceOp1, InplaceOp2, InplaceOp3, Layout, MetalStorage, Result, Tensor};
use pointwise::{DType, Operand, Stream, TensorViewMut};

use crate::call::Arg;
#[cfg(feature = "cuda")]
use crate::cuda;
#[cfg(not(feature = "cuda"))]
use crate::memory::NO_CUDA;
use crate::memory::{NO_METAL, View, cpu_view, cpu_view_mut, error};

/// An op that writes over its first operand.
pub(crate) trait InPlace {
    /// Names the op.
    fn name(&self) -> &'static str;

    /// Names the type that operand `k` is read as, where that is not its own. Operand 0 is written.
    fn read_as(&self, k: usize) -> Option<DType>;

    /// Runs the op over `x`.
    ///
    /// # Errors
    /// Fails as the op does.
    fn write(&self, x: TensorViewMut<'_>, others: &[Operand<'_>], stream: Option<&Stream>) -> pointwise::Result<()>;
}

/// Runs an op over its first operand.
///
/// # Errors
/// Fails as [`Op::run_inplace`](crate::Op::run_inplace) says.
pub(crate) fn run(op: &dyn InPlace, x: &Tensor, others: &[Arg]) -> Result<()> {
    let tensors: Vec<&Tensor> = others.iter().filter_map(Arg::tensor).collect();
    let over = Over { op, others };
    match tensors[..] {
        [] => x.inplace_op1(&over),
        [a] => x.inplace_op2(a, &over),
        [a, b] => x.inplace_op3(a, b, &over),
        _ => Err(error(format!(
            "{} in place takes three tensors at most, which is what candle passes: use its result instead",
            op.name()
        ))),
    }
}

/// An op over its first operand.
struct Over<'a> {
    op: &'a dyn InPlace,
    others: &'a [Arg],
}

impl Over<'_> {
    /// Runs the op over `x`; `views` are the tensors among the other operands.
    fn write(&self, x: &mut View<'_>, views: &[View<'_>], stream: Option<&Stream>) -> Result<()> {
        let mut views = views.iter();
        let mut others = Vec::with_capacity(self.others.len());
        for arg in self.others {
            others.push(match (arg, arg.tensor().and_then(|_| views.next())) {
                (Arg::Number(number), _) => Operand::Number(*number),
                (Arg::Tensor(_), Some(view)) => Operand::View(view.view()),
                (Arg::Tensor(_), None) => return Err(error("an operand is missing; please report this")),
            });
        }
        let x = x.view_mut().map_err(error)?;
        self.op.write(x, &others, stream).map_err(error)
    }

    /// Returns the places of the other operands that are tensors.
    fn places(&self) -> impl Iterator<Item = usize> {
        let tensors = self.others.iter().enumerate().filter(|(_, arg)| arg.tensor().is_some());
        tensors.map(|(k, _)| k + 1)
    }

    fn on_cpu(&self, x: (&mut CpuStorage, &Layout), others: &[(&CpuStorage, &Layout)]) -> Result<()> {
        let mut views = Vec::with_capacity(others.len());
        for ((storage, layout), k) in others.iter().zip(self.places()) {
            views.push(cpu_view(storage, layout, self.op.read_as(k))?);
        }
        self.write(&mut cpu_view_mut(x.0, x.1, self.op.read_as(0))?, &views, None)
    }

    #[cfg(feature = "cuda")]
    fn on_cuda(&self, x: (&mut CudaStorage, &Layout), others: &[(&CudaStorage, &Layout)]) -> Result<()> {
        let queue = cuda::Queue::new(&x.0.device)?;
        let mut views = Vec::with_capacity(others.len());
        for ((storage, layout), k) in others.iter().zip(self.places()) {
            views.push(cuda::view(storage, layout, self.op.read_as(k), &queue)?);
        }
        self.write(&mut cuda::view_mut(x.0, x.1, self.op.read_as(0), &queue)?, &views, Some(queue.stream()))
    }

    #[cfg(not(feature = "cuda"))]
    fn on_cuda(&self, _: (&mut CudaStorage, &Layout), _: &[(&CudaStorage, &Layout)]) -> Result<()> {
        Err(error(NO_CUDA))
    }
}

/// Implements an op in place of candle's for its number of other tensors, named in turn.
macro_rules! inplace_op {
    ($op:ident, $($x:ident $layout:ident)*) => {
        impl $op for Over<'_> {
            fn name(&self) -> &'static str {
                self.op.name()
            }

            fn cpu_fwd(&self, y: &mut CpuStorage, at: &Layout, $($x: &CpuStorage, $layout: &Layout),*) -> Result<()> {
                self.on_cpu((y, at), &[$(($x, $layout)),*])
            }

            fn cuda_fwd(&self, y: &mut CudaStorage, at: &Layout, $($x: &CudaStorage, $layout: &Layout),*) -> Result<()> {
                self.on_cuda((y, at), &[$(($x, $layout)),*])
            }

            fn metal_fwd(&self, _: &mut MetalStorage, _: &Layout, $(_: &MetalStorage, $layout: &Layout),*) -> Result<()> {
                let _ = ($($layout),*);
                Err(error(NO_METAL))
            }
        }
    };
}

inplace_op!(InplaceOp1,);
inplace_op!(InplaceOp2, a a_at);
inplace_op!(InplaceOp3, a a_at b b_at);
