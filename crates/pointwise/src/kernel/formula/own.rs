//! Ops with loops and kernels of their own, in place of a formula's.

use std::fmt::Debug;
use std::panic::RefUnwindSafe;

use pointwise_core::DType;
use pointwise_core::formula::ParamWords;

use super::Kernel;
use crate::error::Result;
use crate::kernel::{Entry, KernelPlan};
use crate::tensor::TensorView;

/// The loops and kernels of an op.
pub(crate) trait OwnKernels: Debug + Sync + RefUnwindSafe {
    /// Runs a call.
    ///
    /// # Safety
    /// The pointers of the call are the results' first elements, and may be written through. Results share no more memory with
    /// operands and each other than the op allows.
    unsafe fn run(&self, call: &OwnCall<'_>) -> Result<()>;

    /// Returns what a call would launch on a CUDA device.
    fn plan(&self, call: &OwnCall<'_>) -> Result<KernelPlan>;

    /// Returns the kernels for elements of a type, by single elements and by vectors; `None` for a type that the op does not take.
    fn entries(&self, dtype: DType) -> Option<&'static [Entry; 2]>;

    /// True if result `k` may not be the memory of an operand.
    fn is_apart(&self, k: usize) -> bool;
}

/// A call of such an op. Operands, results, settings and the place to draw from are checked.
pub(crate) struct OwnCall<'a> {
    /// The op with its settings.
    pub(crate) kernel: &'a Kernel<'a>,
    pub(crate) dtype: DType,
    /// The parameters.
    pub(crate) words: &'a ParamWords,
    /// The operands; a number is none.
    pub(crate) operands: &'a [Option<TensorView<'a>>],
    pub(crate) results: &'a [Option<TensorView<'a>>],
    /// The first elements of the results.
    pub(crate) pointers: &'a [*mut u8],
}
