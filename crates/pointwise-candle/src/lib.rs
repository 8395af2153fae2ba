//! pointwise's ops on candle's tensors, forward and backward, on the CPU and on CUDA.
//!
//! ```
//! use candle_core::{DType, Device, Tensor, Var};
//! use pointwise_candle::{PointwiseOps, args, functions};
//!
//! # fn main() -> candle_core::Result<()> {
//! let x = Var::randn(0.0_f32, 1.0, (4, 64), &Device::Cpu)?;
//! let weight = Var::ones(64, DType::F32, &Device::Cpu)?;
//! let y = functions::rms_norm(&x, &weight, 1e-5)?; // a function
//! let y = y.pointwise("softplus")?; // any op by its name
//! let y = y.pointwise_with("add", &args![&x])?;
//! let grads = y.sum_all()?.backward()?;
//! assert!(grads.get(&x).is_some() && grads.get(&weight).is_some());
//! # Ok(())
//! # }
//! ```
//!
//! - [`op`] finds an op of the family by PyTorch's name; [`Op`] has its parameters, and runs it. [`functions`] has the common ones.
//! - An op of your own, a function with `#[op]`, runs by its data: `x.pointwise(ops::Snake::<f64>::def())`.
//! - [`Rope`] is the rotary embedding of a model's configuration; [`dropout`], [`alibi`] and [`sinusoidal`] stand apart, too.
//!
//! # Memory
//!
//! Operands are read where they lie: transposed, sliced and broadcast tensors are not copied. (An op on rows copies an operand
//! whose last dimension is not contiguous.) On CUDA an op runs on candle's own stream, in candle's context, and its results are
//! candle's allocations.
//!
//! # Types
//!
//! f32, f16, bf16, f8e4m3, u8, i16, i32 and i64. candle has no bool: conditions are u8, and comparisons return u8. Positions of
//! [`Rope`] and labels may be u32. Other types, f64 among them, are errors, and so is Metal. Operands and results that have a type
//! of their own in the op (`#[stored(f32)]`) have it here; [`Op::of_type`] serves ops whose operands all do.
//!
//! # Gradients
//!
//! candle's graph has custom ops of one result and at most three operands. An op with more, or with several results, is a few
//! nodes: tensors of one element tie the results to the operands, and one launch computes all gradients. The gradient of an operand
//! that was broadcast is summed, in f32. candle does not track writes: do not write over a tensor whose value a gradient reads.
//!
//! # Features
//!
//! | Feature | What it adds |
//! |---|---|
//! | `cuda` | CUDA tensors. candle compiles its kernels, which needs nvcc; pointwise's need nothing |
//!
//! # Errors
//!
//! Bad input is a [`candle_core::Error`] with pointwise's text. Nothing panics.

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod call;
#[cfg(feature = "cuda")]
mod cuda;
pub mod functions;
mod graph;
mod inplace;
mod memory;
mod op;
mod queue;
mod random;
mod rope;

use candle_core::{Result, Tensor};

pub use call::Arg;
pub use op::{IntoOp, Op, op, ops};
pub use random::{alibi, dropout, sinusoidal};
pub use rope::{Positions, Rope};

/// pointwise's ops as methods of candle's tensors.
pub trait PointwiseOps {
    /// Runs an op of one operand: by its name, by the data of an op of your own, or as an [`Op`] with parameters.
    ///
    /// # Errors
    /// Fails as [`Op::run_one`] does, and for a name that no op has.
    fn pointwise(&self, op: impl IntoOp) -> Result<Tensor>;

    /// Runs an op on this tensor and other operands.
    ///
    /// # Errors
    /// Fails as [`Op::run_one`] does, and for a name that no op has.
    fn pointwise_with(&self, op: impl IntoOp, others: &[Arg]) -> Result<Tensor>;

    /// Runs an op, and writes its result over this tensor.
    ///
    /// # Errors
    /// Fails as [`Op::run_inplace`] does, and for a name that no op has.
    fn pointwise_inplace(&self, op: impl IntoOp, others: &[Arg]) -> Result<()>;
}

impl PointwiseOps for Tensor {
    fn pointwise(&self, op: impl IntoOp) -> Result<Tensor> {
        self.pointwise_with(op, &[])
    }

    fn pointwise_with(&self, op: impl IntoOp, others: &[Arg]) -> Result<Tensor> {
        let mut operands = Vec::with_capacity(1 + others.len());
        operands.push(self.into());
        operands.extend_from_slice(others);
        op.into_op()?.run_one(&operands)
    }

    fn pointwise_inplace(&self, op: impl IntoOp, others: &[Arg]) -> Result<()> {
        op.into_op()?.run_inplace(self, others)
    }
}
