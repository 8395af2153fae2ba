//! pointwise's ops as PyTorch operators.
//!
//! Boxed kernels for torch's dispatcher, written against libtorch's stable C ABI (torch 2.10 and newer). The ABI's functions
//! are found in the process at run time: torch is not needed to build, and one library serves many versions of it.
//!
//! The Python package `pointwise` (folder `python`) is this crate with the feature `python`. A package with ops of its own
//! depends on this crate and has one line, [`export!`].
//!
//! # Features
//!
//! | Feature | What it adds |
//! |---|---|
//! | `python` | the Python module `pointwise._native`. A package with ops of its own leaves it out |

// Without Python the crate serves a package's own ops: it has no use for the family's.
#![cfg_attr(not(feature = "python"), allow(dead_code))]

mod abi;
mod aligned;
mod arguments;
#[cfg(feature = "python")]
mod arrays;
mod call;
mod dense;
mod describe;
mod double;
pub mod export;
mod fusion;
mod kernel;
mod layout;
mod operand;
mod overriding;
#[cfg(feature = "python")]
mod python;
mod registry;
mod results;
mod rope;
mod tensor;
mod threads;
mod view;
