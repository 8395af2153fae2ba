//! An op of five operands and its gradient.
#![forbid(unsafe_code)]

pub mod ops;
