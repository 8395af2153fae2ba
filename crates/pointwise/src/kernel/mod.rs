//! Kernel objects: an op with its parameters and launch settings, ready to run on tensors.

mod strategy;
mod unary;

pub use strategy::{Plan, Strategy};
pub use unary::{UnaryDef, UnaryKernel, Variant};
