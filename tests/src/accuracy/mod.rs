//! The distances of results from the exact ones: every op over all inputs, or over many random ones.

mod draw;
mod subject;
mod sweep;

pub use draw::{GRADS, GRID, Inputs};
pub use subject::{Subject, subjects};
pub use sweep::sweep;
