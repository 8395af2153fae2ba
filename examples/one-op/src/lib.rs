//! An op of one's own: `snake`.
#![forbid(unsafe_code)]

pub mod ops;
