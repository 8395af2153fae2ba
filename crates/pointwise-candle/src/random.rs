//! Dropout, and tensors made of indices: ALiBi and sinusoidal encodings.

use candle_core::{DType as CandleType, Device, Result, Shape as CandleShape, Tensor};
use pointwise::kernel::{DropoutKernel, GeneratorKernel, SinusoidalLayout};
use pointwise::{DType, Operand, Philox, Shape, Stream, TensorViewMut, kernels};

use crate::call::{Arg, Call, allocated, call_detached, detached};
use crate::graph::call;
use crate::memory::{self, error};
use crate::op::{on, tensor};
use crate::queue::Queue;

/// Sets each element to 0 with probability `p`, and divides the others by `1 - p`. Element `i`, in row-major order, takes word
/// `i` of `rng`; `rng.after(n)` is the place behind a call on `n` elements. The gradient draws the same words again.
///
/// ```
/// use candle_core::{DType, Device, Tensor};
/// use pointwise::Philox;
///
/// # fn main() -> candle_core::Result<()> {
/// let x = Tensor::ones(1000, DType::F32, &Device::Cpu)?;
/// let y = pointwise_candle::dropout(&x, 0.2, Philox::new(42))?.to_vec1::<f32>()?;
/// assert!(y.iter().all(|y| *y == 0.0 || *y == 1.25));
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// Fails for an element type that is no float, for a probability outside 0 to 1, and on Metal.
pub fn dropout(x: &Tensor, p: f64, rng: Philox) -> Result<Tensor> {
    let result = call(Dropout { operands: [x.into()], p, rng })?.pop();
    result.ok_or_else(|| error("dropout gave no result; please report this"))
}

struct Dropout {
    operands: [Arg; 1],
    p: f64,
    rng: Philox,
}

impl Call for Dropout {
    fn name(&self) -> &'static str {
        "dropout"
    }

    fn operands(&self) -> &[Arg] {
        &self.operands
    }

    fn results(&self, operands: &[Operand<'_>]) -> pointwise::Result<Vec<(DType, Shape)>> {
        let x = tensor(&operands[0], "x")?;
        Ok(vec![(x.dtype(), *x.shape())])
    }

    fn run(
        &self,
        operands: &[Operand<'_>],
        results: &mut [TensorViewMut<'_>],
        stream: Option<&Stream>,
    ) -> pointwise::Result<()> {
        let x = tensor(&operands[0], "x")?;
        on(kernels::dropout(self.p), stream, DropoutKernel::on).run_into(x, results[0].reborrow(), self.rng)
    }

    fn gradients(&self, _: &[Option<Tensor>], grads: &[Option<Tensor>]) -> Result<Vec<Option<Tensor>>> {
        match grads {
            [Some(grad)] => {
                let back = Dropout { operands: [grad.into()], ..*self };
                Ok(call_detached(&back)?.into_iter().map(Some).collect())
            }
            _ => Ok(vec![None]),
        }
    }
}

/// Makes ALiBi's bias for attention scores, `-slope(h) |i - j|`, of shape `(num_heads, seq_len, seq_len)`.
///
/// # Errors
/// Fails for an element type that is no float, for another number of dimensions, and on Metal.
pub fn alibi(shape: impl Into<CandleShape>, dtype: CandleType, device: &Device) -> Result<Tensor> {
    generated(kernels::alibi(), shape.into(), dtype, device)
}

/// Makes the sinusoidal position encodings, of shape `(seq_len, d_model)`.
///
/// # Errors
/// Fails for an element type that is no float, for another number of dimensions, and on Metal.
pub fn sinusoidal(
    layout: SinusoidalLayout,
    shape: impl Into<CandleShape>,
    dtype: CandleType,
    device: &Device,
) -> Result<Tensor> {
    generated(kernels::sinusoidal(layout), shape.into(), dtype, device)
}

fn generated(kernel: GeneratorKernel, shape: CandleShape, dtype: CandleType, device: &Device) -> Result<Tensor> {
    let (queue, shape) = (Queue::of(device)?, Shape::new(shape.dims()).map_err(error)?);
    let made = allocated(&queue, &[(memory::dtype(dtype)?, shape)], |results, stream| {
        on(kernel, stream, GeneratorKernel::on).run_into(results[0].reborrow())
    })?;
    made.into_iter().next().map(detached).ok_or_else(|| error("no result; please report this"))
}
