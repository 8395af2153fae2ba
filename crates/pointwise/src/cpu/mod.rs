//! The CPU executor: the formulas of the op table over slices, vectorised and in parallel.
//!
//! An op and an element type are one function pointer ([`MapFn`]): the loops are compiled once for the baseline of the
//! target and once with AVX2 and FMA, chosen when the call runs. Without FMA a fused multiply-add is a library call, so
//! the baseline is right but slow.

mod generator;
mod gradients;
mod map;
mod parallel;
mod random;
pub(crate) mod rope;

pub(crate) use generator::run_generator;
pub use generator::{GeneratorFn, generator};
pub(crate) use gradients::GradientsRun;
pub use gradients::{GradientsFn, gradients};
pub(crate) use map::Run;
pub(crate) use map::convert;
pub use map::{MapFn, Source, binary, random_map, select, ternary, unary};
pub(crate) use random::{RandomFn, random, run_random};
