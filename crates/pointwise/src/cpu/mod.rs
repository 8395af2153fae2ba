//! The CPU executor: formulas over slices, vectorised and in parallel.
//!
//! An op and an element type are one function pointer ([`FormulaFn`]): the loops are compiled for the baseline of the
//! target, with AVX2 and FMA, and with AVX-512; which one runs is chosen when the call does (`level`). Without FMA a
//! fused multiply-add is a library call, so the baseline is right but slow. All give the same bits.

pub(crate) mod blocks;
pub(crate) mod draw;
mod formula;
mod generator;
pub(crate) mod lanes;
pub(crate) mod level;
pub(crate) mod operand;
pub(crate) mod parallel;
mod rows;
mod runs;
mod stored;

pub(crate) use formula::FormulaRun;
pub use formula::{FormulaFn, formula, op};
pub(crate) use generator::run_generator;
pub use generator::{GeneratorFn, generator};
pub use operand::{Source, Target};
pub use rows::{FoldFn, RowsFn, fold_sums, rows};
pub(crate) use rows::{FoldRun, RowsRun};
pub(crate) use runs::runs;

#[cfg(all(test, target_arch = "x86_64"))]
mod tests;
