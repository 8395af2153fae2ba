//! pointwise's ops as PyTorch operators.
//!
//! Boxed kernels for torch's dispatcher, written against libtorch's stable C ABI (torch 2.10 and newer). The ABI's functions
//! are found in the process at run time: torch is not needed to build, and one library serves many versions of it.
//!
//! The Python package `pointwise` (folder `python`) is this crate with the feature `python`. A package with ops of its own
//! depends on this crate and has one line, [`export!`].

mod abi;
#[cfg(feature = "python")]
mod arrays;
mod call;
mod describe;
mod double;
pub mod export;
mod kernel;
mod layout;
#[cfg_attr(not(feature = "python"), expect(dead_code, reason = "only Python turns them on"))]
mod overriding;
#[cfg(feature = "python")]
mod python;
mod registry;
#[cfg_attr(not(feature = "python"), expect(dead_code, reason = "only Python asks for tables"))]
mod rope;
mod tensor;
