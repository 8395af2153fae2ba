//! The ops that models use most as functions. [`op`] runs the rest.

use candle_core::{Result, Tensor};

use crate::call::Arg;
use crate::{args, op};

/// Makes functions of ops that have tensors alone. Their documentation is the op's: the table of ops has it.
macro_rules! functions {
    ($($name:ident($($x:ident),*);)*) => {
        $(
            #[doc = concat!("Runs the op [`", stringify!($name), "`](https://github.com/pointwise-rs/pointwise/blob/main/docs/ops.md), with \
                the defaults of its parameters.")]
            ///
            /// # Errors
            /// Fails as [`Op::run`](crate::Op::run) does.
            pub fn $name($($x: impl Into<Arg>),*) -> Result<Tensor> {
                op(stringify!($name))?.run_one(&args![$($x.into()),*])
            }
        )*
    };
}

functions! {
    exp(x);
    log(x);
    sqrt(x);
    rsqrt(x);
    abs(x);
    neg(x);
    sin(x);
    cos(x);
    tanh(x);
    erf(x);
    relu(x);
    gelu(x);
    gelu_tanh(x);
    silu(x);
    sigmoid(x);
    softplus(x);
    mish(x);
    add(a, b);
    sub(a, b);
    mul(a, b);
    div(a, b);
    pow(a, b);
    maximum(a, b);
    minimum(a, b);
    silu_and_mul(x);
    gelu_and_mul(x);
    gelu_tanh_and_mul(x);
    softmax(x);
    log_softmax(x);
    masked_softmax(x, mask);
}

/// Normalises the rows, the last dimension: `x / sqrt(mean(x^2) + eps) * weight`, with statistics in f32, rounded once.
///
/// candle's `rms_norm` of 16 bits rounds the quotient before the weight; `op("rms_norm")?.set("rounded", true)?` does so, too.
///
/// # Errors
/// Fails as [`Op::run`](crate::Op::run) does.
pub fn rms_norm(x: &Tensor, weight: &Tensor, eps: f64) -> Result<Tensor> {
    op("rms_norm")?.set("eps", eps)?.run_one(&args![x, weight])
}

/// Adds `residual` to `x`, and returns the [`rms_norm`] of the sum, and the sum.
///
/// # Errors
/// Fails as [`Op::run`](crate::Op::run) does.
pub fn add_rms_norm(x: &Tensor, residual: &Tensor, weight: &Tensor, eps: f64) -> Result<(Tensor, Tensor)> {
    pair(op("add_rms_norm")?.set("eps", eps)?.run(&args![x, residual, weight])?)
}

/// Normalises the rows: `(x - mean(x)) / sqrt(var(x) + eps) * weight + bias`, with the variance of the distances from the mean.
///
/// # Errors
/// Fails as [`Op::run`](crate::Op::run) does.
pub fn layer_norm(x: &Tensor, weight: &Tensor, bias: &Tensor, eps: f64) -> Result<Tensor> {
    op("layer_norm")?.set("eps", eps)?.run_one(&args![x, weight, bias])
}

/// Adds `residual` to `x`, and returns the [`layer_norm`] of the sum, and the sum.
///
/// # Errors
/// Fails as [`Op::run`](crate::Op::run) does.
pub fn add_layer_norm(
    x: &Tensor,
    residual: &Tensor,
    weight: &Tensor,
    bias: &Tensor,
    eps: f64,
) -> Result<(Tensor, Tensor)> {
    pair(op("add_layer_norm")?.set("eps", eps)?.run(&args![x, residual, weight, bias])?)
}

/// Returns the cross entropy of each row of logits `[.., classes]` and its label, a whole number: the loss of
/// `candle_nn::loss::cross_entropy` before the mean. Rows labelled -100 count 0; `op("cross_entropy")?` has other numbers for
/// that, and label smoothing.
///
/// ```
/// use candle_core::{Device, Tensor};
/// use pointwise_candle::functions;
///
/// # fn main() -> candle_core::Result<()> {
/// let logits = Tensor::new(&[[1.0_f32, 1.0], [0.0, 9.0]], &Device::Cpu)?;
/// let labels = Tensor::new(&[0_u32, 1], &Device::Cpu)?;
/// let loss = functions::cross_entropy(&logits, &labels)?.mean_all()?;
/// assert!((loss.to_scalar::<f32>()? - 0.5 * 2.0_f32.ln()).abs() < 1e-3);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// Fails as [`Op::run`](crate::Op::run) does.
pub fn cross_entropy(logits: &Tensor, labels: &Tensor) -> Result<Tensor> {
    op("cross_entropy")?.run_one(&args![logits, labels])
}

/// Selects `a` where `condition`, a tensor of u8, is not 0, and `b` elsewhere.
///
/// # Errors
/// Fails as [`Op::run`](crate::Op::run) does.
pub fn where_cond(condition: &Tensor, a: impl Into<Arg>, b: impl Into<Arg>) -> Result<Tensor> {
    op("where")?.run_one(&args![condition, a.into(), b.into()])
}

fn pair(results: Vec<Tensor>) -> Result<(Tensor, Tensor)> {
    let [y, sum] = <[Tensor; 2]>::try_from(results)
        .map_err(|results| crate::memory::error(format!("{} results for two; please report this", results.len())))?;
    Ok((y, sum))
}
