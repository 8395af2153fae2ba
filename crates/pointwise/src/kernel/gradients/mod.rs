//! The gradients of ops of several operands: their definitions, and the way of a call from operands to launches.

mod call;
mod def;
mod gated;
mod kernel;
mod launch;

pub use def::GradientDef;
pub use gated::GatedGradientsKernel;
pub use kernel::GradientsKernel;
