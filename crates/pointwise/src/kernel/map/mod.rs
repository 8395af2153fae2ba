//! Ops of several operands: their definitions, and the way of a call from operands to launches.

mod call;
mod check;
mod def;
mod launch;
mod params;

pub(crate) use call::Call;
pub use def::MapDef;
pub use launch::MapPlan;
pub(super) use params::launch_strided_unary;
