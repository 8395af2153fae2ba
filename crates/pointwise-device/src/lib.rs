//! The device side of pointwise: templates, and the macros that make entries of them.
//!
//! The family's kernel crate, `gpu-kernels`, is a crate of `#[op]` functions. `pointwise_build::ops` writes such a crate
//! around a user's ops. Kernels of other templates are exported with [`export!`]. Compiled for the host, such a crate is empty: the templates and entries exist for
//! `nvptx64` only.
//!
//! # Features
//!
//! | Feature | What it adds |
//! |---|---|
//! | `formulas` | the ops of the family as functions that a formula calls; on by default. The family's own kernels leave it out, so that an edit of one op compiles its module alone |
#![no_std]
#![cfg_attr(
    target_arch = "nvptx64",
    feature(stdarch_nvptx, asm_experimental_arch, allow_internal_unstable, stmt_expr_attributes)
)]
// The entry macros expand to unstable syntax in the kernel crate. This feature allows it, so that the kernel crate
// needs no `#![feature]` of its own. Device code is compiled with unstable features in any case.
#![cfg_attr(target_arch = "nvptx64", allow(internal_features))]

pub use pointwise_core::*;

/// The names that the modules of the family import, on the host from `pointwise`.
#[doc(hidden)]
pub mod __family {
    pub use pointwise_core::dual::activations;
    pub use pointwise_core::rows::{PerRow, Place, Row};
    pub use pointwise_core::{Bits, Num, Real, Value};
    pub use pointwise_macros::family_op as op;
}

/// The items that the macros of this crate expand to. No part of the API.
#[doc(hidden)]
pub mod __private {
    pub use pointwise_core as core;
    pub use pointwise_core::formula::source;
    pub use pointwise_macros::entries;

    #[cfg(target_arch = "nvptx64")]
    pub use crate::{formula, generator, rows};

    /// The folder of this crate: `pointwise_build::ops` makes crates that depend on it.
    pub const FOLDER: &str = env!("CARGO_MANIFEST_DIR");
}

pub use pointwise_macros::op;

/// The names that a module of ops imports: the same as in `pointwise::prelude`, as far as a formula can use them. The
/// functions of the family's ops are in [`formulas`], by `use pointwise::formulas;`.
pub mod prelude {
    pub use pointwise_core::op::Index;
    pub use pointwise_core::rows::{PerRow, Place, Row};
    pub use pointwise_core::{BinaryOp, Bits, Num, RandomWord, Real, TernaryOp, UnaryOp, Value};
    pub use pointwise_macros::op;
}

mod export;
#[cfg(target_arch = "nvptx64")]
pub mod formula;
#[cfg(target_arch = "nvptx64")]
pub mod generator;
#[cfg(target_arch = "nvptx64")]
pub mod lookup;
#[cfg(target_arch = "nvptx64")]
pub mod memory;
#[cfg(target_arch = "nvptx64")]
pub mod packed;
#[cfg(target_arch = "nvptx64")]
pub mod random;

#[cfg(target_arch = "nvptx64")]
pub mod rope;
#[cfg(target_arch = "nvptx64")]
pub mod rows;
#[cfg(target_arch = "nvptx64")]
mod stored;
#[cfg(target_arch = "nvptx64")]
pub mod thread;
