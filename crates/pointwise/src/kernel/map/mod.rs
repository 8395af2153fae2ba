//! Ops of several operands: their definitions, and the way of a call from operands to launches.

mod call;
mod def;
mod launch;

pub(crate) use call::Call;
pub use def::MapDef;
