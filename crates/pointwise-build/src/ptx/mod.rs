//! The PTX text that rustc writes: the crate `pointwise-ptx` takes it apart, and the builder completes it here.

pub(crate) mod registers;
pub(crate) mod wait;

pub use pointwise_ptx::{Declaration, Entry, Kind, Module, ParseError, Statement, Statements, parse, without_comment};
