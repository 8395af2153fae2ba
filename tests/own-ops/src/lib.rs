//! Ops that a builder could miss, or compile otherwise than the package.
#![forbid(unsafe_code)]

pub mod ops;
