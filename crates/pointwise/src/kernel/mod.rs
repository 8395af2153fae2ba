//! Kernel objects: an op with its parameters and launch settings, ready to run on tensors.
//!
//! The way of a call: views and an op -> types, shapes, devices and overlap checked -> a [`Plan`] -> an [`Entry`] ->
//! one launch. On the CPU the last three are one function pointer.

mod binary;
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
mod scalar;
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
pub use strategy::{Plan, Strategy, Variant};
pub use ternary::TernaryKernel;
pub(crate) use unary::DEFAULT_THREADS;
pub use unary::{UnaryDef, UnaryKernel};
pub use walk::Class;
pub(crate) use walk::{Places, Walk};

/// Whether the level-2 cache of a device holds a result of so many bytes, if what is read passes through it. Cold calls
/// with results of up to three fifths of the cache were faster so, by up to 9 % where results are narrow, and larger ones
/// slower by 1 to 5 % (H200, `docs/tuning.md`).
#[inline]
fn result_stays(device: &crate::Device, bytes: u64) -> bool {
    device.info().is_some_and(|info| bytes <= info.l2_bytes as u64 / 5 * 3)
}

/// The launch settings of a kernel object that wraps a call of an op of definition `$Def`.
macro_rules! settings {
    ($Def:ident) => {
        /// The op.
        pub fn def(&self) -> &'static $Def {
            self.0.def
        }

        /// The strategy on CUDA devices: vectors ([`Strategy::RegisterCopy`]), single elements ([`Strategy::Direct`]) or, of
        /// some ops, a table ([`Strategy::Table`]). One that cannot serve a call is replaced by one that can; the plan says
        /// so.
        #[must_use]
        pub fn strategy(mut self, strategy: Strategy) -> Self {
            self.0.strategy = strategy;
            self
        }

        /// Threads of a block on CUDA devices: a multiple of 32 from 32 to 1,024.
        #[must_use]
        pub fn threads(mut self, threads: u32) -> Self {
            self.0.threads = threads;
            self
        }

        /// The stream to launch on; without one it is the device's own.
        #[must_use]
        pub fn on(mut self, stream: &Stream) -> Self {
            self.0.stream = Some(stream.clone());
            self
        }
    };
}
use settings;

/// The tuner's setting of a kernel object that wraps a [`map::Call`].
macro_rules! tuned {
    () => {
        /// With the settings that a tuner has found for calls like the one made, as it knows them now. A strategy that was
        /// set holds all the same.
        #[must_use]
        pub fn tuned(mut self, tuner: &crate::Tuner) -> Self {
            self.0.tuned = Some(tuner.choices(&self.0.def.info));
            self
        }
    };
}
use tuned;

/// A stream must be of the tensors' device.
fn check_stream(stream: &crate::Stream, device: &crate::Device) -> crate::Result<()> {
    if stream.device() == device {
        return Ok(());
    }
    Err(crate::ErrorKind::DeviceMismatch { what: "the stream".to_owned(), expected: *device, got: *stream.device() }
        .into())
}

/// Threads of a block that CUDA has, in whole warps.
fn check_threads(threads: u32) -> crate::Result<()> {
    if (32..=1024).contains(&threads) && threads.is_multiple_of(32) {
        return Ok(());
    }
    Err(crate::ErrorKind::Parameter {
        name: "threads",
        value: threads.to_string(),
        why: "must be a multiple of 32 from 32 to 1024".to_owned(),
    }
    .into())
}
