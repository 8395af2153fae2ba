//! Ops whose kernels are templates of their own: dropout and the position encodings.

pub mod generator;
pub mod random;
