//! Ops of any number of operands and results: their definitions, and the way of a call from operands to launches.

mod call;
mod checked;
mod def;
mod expansion;
mod gated;
mod groups;
mod launch;
mod own;
mod rows;

pub use call::Kernel;
pub use def::{Facts, OpDef, Oracle, OracleFn, RowOracle, TermsFn, Typed};
pub(crate) use expansion::in_order;
pub use expansion::{Declared, Place, declared_ops, oracle, reference, result, results};
pub use gated::GatedGradientsKernel;
pub(crate) use own::{OwnCall, OwnKernels};
pub use rows::{RowClass, RowReferenceFn, TypedRows, reference_of_rows};

/// The gradients of an op of several operands, with parameters and launch settings.
pub type GradientsKernel = Kernel<'static>;
