//! An op of each form that `#[op]` knows.
#![forbid(unsafe_code)]

pub mod ops;
