//! The op family on the host: every table of `pointwise_core::family`, visited.

mod convert;
mod special;
mod tables;

crate::include_kernels!();

pub use tables::{BACKWARD, BINARY, GATED, GRADIENTS, MASKED_FILL, POWERS, TERNARY, UNARY};

pub(crate) use tables::powers;

/// The definitions of the ops, by name.
pub mod definitions {
    pub use super::tables::definitions::*;
}

/// The ops as kernel objects, whose strategy, threads and stream can be set.
pub mod kernels {
    pub use super::convert::to_dtype;
    pub use super::special::kernels::*;
    pub use super::tables::kernels::*;
}

/// The ops as functions. An operand is a tensor, a view or a number; a parameter is any number, or `Number::Default`.
pub mod ops {
    pub use super::convert::ops::*;
    pub use super::special::ops::*;
    pub use super::tables::ops::*;
    pub use crate::rope::{
        rope_cos_sin, rope_llama31, rope_llama31_inplace, rope_llama31_into, rope_longrope, rope_longrope_inplace,
        rope_longrope_into, rope_neox, rope_neox_inplace, rope_neox_into, rope_non_neox, rope_non_neox_inplace,
        rope_non_neox_into, rope_yarn, rope_yarn_inplace, rope_yarn_into,
    };
}

/// The kernels embedded in this build.
pub const fn embedded() -> &'static crate::embed::Kernels {
    &KERNELS
}

/// Returns every op of the tables: unary ones, of two operands, gated ones, of three operands, then all gradients.
pub fn all() -> impl Iterator<Item = &'static crate::kernel::OpDef> {
    [UNARY, BINARY, GATED, TERNARY, BACKWARD, GRADIENTS].into_iter().flatten().copied()
}

/// Finds an op by its name (`silu`, `add`, `mul_backward`) in [`info::all`](crate::info::all).
/// [`rope_op`](crate::rope::rope_op) finds rotary ones.
pub fn op(name: &str) -> Option<&'static crate::kernel::OpDef> {
    all().find(|def| def.info.name == name)
}
