//! The PTX text that rustc writes: what crate `pointwise-ptx` takes apart, and how the builder completes it.

pub(crate) mod registers;
pub(crate) mod wait;

pub use pointwise_ptx::{Declaration, Entry, Kind, Module, ParseError, Statement, Statements, parse, without_comment};
