//! Kernel objects: an op with its parameters and launch settings, ready to run on tensors.
//!
//! The way of a call: views and an op -> types, shapes, devices and overlap checked -> a [`Plan`] -> an [`Entry`] ->
//! one launch. On the CPU the last three are one function pointer.

mod entry;
mod plan;
mod strategy;
mod unary;

pub use entry::Entry;
pub use strategy::{Plan, Strategy, Variant};
pub use unary::{UnaryDef, UnaryKernel};
