//! The only module that talks to CUDA: contexts, modules, launches, memory, streams, events and graphs.

mod context;
#[cfg(feature = "emulator")]
mod emulated;
mod event;
mod graph;
mod launch;
mod loaded;
mod memory;
mod module;
mod reuse;
mod stream;
#[cfg(test)]
mod stub;
mod sys;
mod usage;

pub use context::DeviceInfo;
#[cfg(feature = "emulator")]
pub(crate) use emulated::name_results;
#[cfg(feature = "emulator")]
pub use emulated::with_kernel;
pub use event::Event;
pub use graph::Graph;
pub(crate) use graph::{begin_capture, end_capture};

pub(crate) use context::{Context, SLOTS, device_count};
pub(crate) use launch::{Grid, launch, launch_grid};
pub(crate) use loaded::LoadedKernel;
pub(crate) use memory::{Block, copy_across, copy_in, copy_out, copy_within, fill, keep, repeat};
pub(crate) use module::{Function, Image, load};
pub(crate) use stream::{Held, RawStream, stream_wait};
pub(crate) use usage::Usage;
