//! What a module of ops imports, and a program that calls them: `use pointwise::prelude::*;`.
//!
//! A module of [`ops`](macro@crate::op) is compiled for the GPU, too, where the prelude has the names of formulas alone.

pub use pointwise_core::{Bits, Num, RandomWord, Real, Value};
pub use pointwise_macros::op;

pub use crate::{DType, Device, Number, Philox, Tensor, bf16, f16};
