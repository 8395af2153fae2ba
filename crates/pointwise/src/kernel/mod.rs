//! Kernel objects: an op with its parameters and launch settings, ready to run on tensors.
//!
//! The way of a call: views and an op -> types, shapes, devices and overlap checked -> a [`KernelPlan`] -> an [`Entry`] ->
//! one launch. On the CPU the last three are one function pointer.

mod binary;
pub(crate) mod check;
mod choice;
mod convert;
#[cfg(feature = "family")]
mod dropout;
mod entry;
mod formula;
mod generator;
mod grid;
mod lookup;
mod operand;
pub(crate) mod params;
mod promote;
mod rewrite;
mod rng;
pub(crate) mod scalar;
mod settings;
mod strategy;
mod ternary;
mod unary;
mod walk;

#[cfg(feature = "family")]
pub use crate::family::SinusoidalLayout;
pub use binary::{BinaryKernel, GatedKernel};
pub use choice::KernelPlan;
pub(crate) use convert::ConvertDef;
pub use convert::ConvertKernel;
pub(crate) use convert::bits_of;
#[cfg(feature = "family")]
pub use dropout::DropoutKernel;
pub use entry::Entry;
#[cfg(feature = "family")]
pub(crate) use formula::Drawn;
pub(crate) use formula::in_order;
#[doc(hidden)]
pub use formula::{Declared, Place, TypedRows, oracle, reference, reference_of_rows, results};
pub use formula::{
    Facts, GatedGradientsKernel, GradientsKernel, Kernel, OpDef, Oracle, OracleFn, RowClass, RowOracle, RowReferenceFn,
    TermsFn, Typed, declared_ops,
};
#[cfg(feature = "family")]
pub(crate) use generator::wrong_shape;
pub use generator::{GeneratorKernel, GeneratorOracle, GeneratorTyped, IndexOracle};
use generator::{Indices, SizesFn};
pub use lookup::Lookup;
pub use operand::{Bound, Operand};
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

/// Bytes of a device's level-2 cache that a call may fill with what it leaves there: results, and operands beside them
/// as far as they fit. Other operands pass through, unless the results alone are larger. That is faster by up to 9 %
/// cold, and by up to 14 % where the operands were just written; of smaller calls it would push out what the next one
/// may read (H200, `docs/tuning.md`).
#[inline]
fn cache_room(device: &crate::Device) -> u64 {
    device.info().map_or(0, |info| info.l2_bytes as u64 / 5 * 3)
}
