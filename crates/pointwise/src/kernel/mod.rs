//! Kernel objects: an op with its parameters and launch settings, ready to run on tensors.
//!
//! The way of a call: views and an op -> types, shapes, devices and overlap checked -> a [`Plan`] -> an [`Entry`] ->
//! one launch. On the CPU the last three are one function pointer.

mod binary;
mod check;
mod choice;
mod convert;
mod entry;
mod generator;
mod gradients;
mod lookup;
mod map;
mod operand;
mod plan;
mod power;
mod promote;
mod random;
mod random_map;
mod ready;
mod scalar;
mod settings;
mod strategy;
mod ternary;
mod unary;
mod walk;

pub use binary::{BinaryKernel, GatedKernel};
pub use choice::MapPlan;
pub(crate) use convert::ConvertDef;
pub use convert::ConvertKernel;
#[cfg(test)]
pub(crate) use convert::bits_of;
pub use entry::Entry;
pub use generator::{GeneratorDef, GeneratorKernel, SinusoidalLayout};
pub use gradients::{GatedGradientsKernel, GradientDef, GradientsKernel};
pub use lookup::Lookup;
pub(crate) use map::Call as MapCall;
pub use map::MapDef;
pub use operand::Operand;
pub(crate) use plan::MAX_STEPS;
pub use promote::result_type;
pub use random::DropoutKernel;
pub(crate) use random::RandomDef;
pub use random_map::RandomKernel;
pub(crate) use settings::LaunchSettings;
use settings::{launch_settings, settings, tuned, vectors_per_thread};
pub use strategy::{Plan, Strategy, Variant};
pub use ternary::TernaryKernel;
pub(crate) use unary::DEFAULT_THREADS;
pub use unary::{UnaryDef, UnaryKernel};
pub use walk::Class;
pub(crate) use walk::{Places, Walk};

/// Whether the level-2 cache of a device holds a result of so many bytes, if what is read passes through it. Cold calls
/// with results of up to three fifths of the cache were faster so, by up to 9 % where results are narrow, and larger
/// ones slower by 1 to 5 % (H200, `docs/tuning.md`).
#[inline]
fn result_stays(device: &crate::Device, bytes: u64) -> bool {
    device.info().is_some_and(|info| bytes <= info.l2_bytes as u64 / 5 * 3)
}
