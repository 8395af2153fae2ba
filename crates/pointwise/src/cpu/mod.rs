//! The CPU executor: the formulas of the op table over slices, vectorised and in parallel.
//!
//! An op and an element type are one function pointer ([`UnaryFn`]): the loops are compiled once for the baseline of the
//! target and once with AVX2 and FMA, chosen when the call runs. Without FMA a fused multiply-add is a library call, so
//! the baseline is right but slow.

mod parallel;
mod unary;


pub use unary::{UnaryFn, unary};
pub(crate) use unary::run_unary;
