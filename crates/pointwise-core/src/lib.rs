//! The kernel DSL of pointwise: element types, branch-free maths, op traits, and dual numbers.
//!
//! This crate is compiled twice: for the GPU (`nvptx64`) and for the CPU, where formulas also run in `f64` as the
//! oracle that tests both. It allocates nothing. Its `unsafe` blocks and its inline PTX are in [`maths`] and
//! [`convert`].
//!
//! # Features
//!
//! | Feature | What it adds |
//! |---|---|
//! | `formulas` | the ops of the family as functions that a formula calls; on by default. The family's own kernels leave it out, so that an edit of one op compiles its module alone |
#![no_std]
#![cfg_attr(target_arch = "nvptx64", feature(asm_experimental_arch, core_float_math))]
#![deny(unsafe_code)]

#[cfg(not(target_arch = "nvptx64"))]
extern crate std;

// The family's modules name this crate as users' name theirs.
extern crate self as pointwise;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

pub mod cast;
#[allow(unsafe_code)]
pub mod convert;
pub mod dtype;
pub mod dual;
pub mod element;
pub mod family;
mod float16;
pub mod formula;
#[cfg(feature = "formulas")]
pub mod formulas;
pub mod fp8;
pub mod info;
pub mod launch;
#[allow(unsafe_code)]
pub mod maths;
pub mod num;
pub mod op;
pub mod philox;
pub mod rope;
#[doc(hidden)]
pub mod row;
pub mod rows;

pub use dtype::{DType, NoDType, Scalar};
pub use dual::Dual;
pub use element::Element;
pub use float16::{bf16, f16};
pub use formula::{At, Formula, OpData, ParamWords};
pub use fp8::{F8E4M3, F8E5M2};
pub use info::{Accuracy, BinaryFunction, Domain, Each, Kind, OpInfo, ParamInfo, ParamKind, Properties, SignChange};
#[cfg(not(target_arch = "nvptx64"))]
pub use num::Terms;
pub use num::{Bits, Coarse, Logic, Num, Real, Rough, Short, Signed, Stepped, Value};
pub use op::{BinaryOp, DescribedOp, GeneratorOp, RandomOp, TernaryOp, UnaryOp, Word, Words};
pub use philox::{Blocks, Draw, Philox, RandomWord};

/// The names that the modules of the family import: here an op is its function alone.
#[cfg(feature = "formulas")]
#[doc(hidden)]
pub mod __family {
    pub use pointwise_macros::family_formula as op;

    pub use crate::dual::activations;
    pub use crate::num::{Bits, Num, Real, Value};
}
