//! Kernel objects: an op with its parameters and launch settings, ready to run on tensors.
//!
//! The way of a call: views and an op -> types, shapes, devices and overlap checked -> a [`KernelPlan`] -> an [`Entry`] ->
//! one launch. On the CPU the last three are one function pointer.

mod binary;
pub(crate) mod check;
pub(crate) mod choice;
pub(crate) mod convert;
mod entry;
mod formula;
pub(crate) mod generator;
mod lookup;
mod operand;
pub(crate) mod params;
pub(crate) mod promote;
mod rewrite;
mod rng;
pub(crate) mod scalar;
mod settings;
mod strategy;
mod ternary;
mod unary;
mod walk;

#[cfg(feature = "family")]
pub use crate::family::fronts::*;
pub use binary::{BinaryKernel, GatedKernel};
pub use choice::KernelPlan;
pub use convert::ConvertKernel;
pub(crate) use convert::bits_of;
pub use entry::Entry;
pub(crate) use formula::in_order;
#[doc(hidden)]
pub use formula::{Declared, Place, TypedRows, oracle, reference, reference_of_rows, result, results};
pub use formula::{
    Facts, GatedGradientsKernel, GradientsKernel, Kernel, OpDef, Oracle, OracleFn, RowClass, RowOracle, RowReferenceFn,
    TermsFn, Typed, declared_ops,
};
pub(crate) use formula::{OwnCall, OwnKernels};
pub use generator::{GeneratorKernel, GeneratorOracle, GeneratorTyped, IndexOracle};
use generator::{Indices, SizesFn};
pub use lookup::Lookup;
pub use operand::Operand;
pub use pointwise_core::{At, Draw};
pub use promote::result_type;
pub(crate) use promote::{computed_type, met, promoted};
pub use rewrite::{Rewrite, RewriteFn};
pub use rng::Rng;
pub(crate) use settings::{DEFAULT_THREADS, LaunchSettings};
pub use strategy::Strategy;
pub use ternary::TernaryKernel;
pub use unary::UnaryKernel;
pub use walk::Class;
pub(crate) use walk::{Limit, OperandStrides, Places, Walk, broadcast};

/// Threads that are resident on a multiprocessor of sm_80, sm_90 or sm_100, of kernels with at most 32 registers.
const RESIDENT: u64 = 2048;

/// Bytes of a device's level-2 cache that a call may fill with what it leaves there: results, and operands beside them
/// as far as they fit. Other operands pass through, unless the results alone are larger. That is faster by up to 9 %
/// cold, and by up to 14 % where the operands were just written; of smaller calls it would push out what the next one
/// may read (H200, `docs/tuning.md`).
#[inline]
fn cache_room(device: &crate::Device) -> u64 {
    device.info().map_or(0, |info| info.l2_bytes as u64 / 5 * 3)
}
