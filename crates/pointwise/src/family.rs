//! The op family on the host: its ops, which are `#[op]` functions (`gpu-kernels`), dropout, the position encodings. Without the
//! feature `family` the lists are empty, and the modules have the conversions alone.

#[cfg(feature = "family")]
mod bound;
#[cfg(feature = "family")]
mod composites;
#[cfg(feature = "family")]
mod dropout;
#[cfg(feature = "family")]
mod expressions;
#[cfg(feature = "family")]
mod formulas;
#[cfg(feature = "family")]
mod fused_gradient;
#[cfg(feature = "family")]
mod objects;
#[cfg(feature = "family")]
mod operators;
#[cfg(feature = "family")]
mod positions;
#[cfg(feature = "family")]
mod power;

use std::sync::OnceLock;

#[cfg(feature = "family")]
use pointwise_core::OpInfo;

use crate::kernel::{OpDef, in_order};

#[cfg(feature = "family")]
pub use composites::{CHOICES, Choice, MASKED_FILL};

/// The types of calls of single ops, which the module `kernel` has, too.
#[cfg(feature = "family")]
pub(crate) mod fronts {
    pub use super::{bound::Bound, dropout::DropoutKernel, positions::SinusoidalLayout};
}

/// The functions that ops of the family name as `__rewrite(..)`.
#[cfg(feature = "family")]
pub mod rewrites {
    pub use super::power::power;
}

/// The ops as kernel objects, whose strategy, threads and stream can be set.
pub mod kernels {
    #[cfg(feature = "family")]
    pub use super::{dropout::objects::*, objects::*, positions::objects::*};
    pub use crate::kernel::convert::functions::to_dtype;
}

/// The ops as functions. An operand is a tensor, a view or a number; a parameter is any number, or `Number::Default`.
///
/// An op's struct has its parameters, its formula for any compute type (`Silu::formula`) and its data (`Silu::def()`).
pub mod ops {
    #[cfg(feature = "family")]
    pub use super::{dropout::ops::*, formulas::*, positions::ops::*};
    pub use crate::kernel::convert::functions::ops::*;
    // These take precedence over the functions of the same names.
    #[cfg(feature = "family")]
    pub use super::composites::{
        add, add_inplace, add_into, clamp, clamp_backward, clamp_backward_inplace, clamp_backward_into, clamp_inplace,
        clamp_into, group_norm, masked_fill, masked_fill_backward, masked_fill_inplace, masked_fill_into, sub,
        sub_inplace, sub_into,
    };
    #[cfg(feature = "family")]
    pub use crate::rope::{
        rope_cos_sin, rope_llama31, rope_llama31_inplace, rope_llama31_into, rope_longrope, rope_longrope_inplace,
        rope_longrope_into, rope_neox, rope_neox_inplace, rope_neox_into, rope_non_neox, rope_non_neox_inplace,
        rope_non_neox_into, rope_yarn, rope_yarn_inplace, rope_yarn_into,
    };
}

/// The ops: those of fewer operands first, then as in the source; those beneath others at the end.
fn declared() -> &'static [&'static OpDef] {
    static OPS: OnceLock<Vec<&'static OpDef>> = OnceLock::new();
    OPS.get_or_init(|| {
        let mut ops = in_order(None);
        ops.sort_by_key(|(place, def)| (def.info.properties.beneath, def.info.operands.len(), *place));
        ops.into_iter().map(|(_, def)| def).collect()
    })
}

/// Returns every op of the family on elements: those of one operand, of two, of three, then the gradients of all.
pub fn all() -> impl Iterator<Item = &'static OpDef> {
    let is_listed = |def: &&OpDef| !def.info.properties.beneath && !def.info.is_of_rows();
    let ops = move || declared().iter().copied().filter(is_listed);
    ops().chain(ops().filter_map(|def| def.backward))
}

/// Returns every op of the family on rows, then the gradients of all.
fn rows() -> impl Iterator<Item = &'static OpDef> {
    let ops = || declared().iter().copied().filter(|def| def.info.is_of_rows());
    ops().chain(ops().filter_map(|def| def.backward))
}

/// Returns the ops that other ops run, and PyTorch has no names for.
pub fn beneath() -> impl Iterator<Item = &'static OpDef> {
    declared().iter().copied().filter(|def| def.info.properties.beneath)
}

/// Returns every op of the family: those of [`info::all`](crate::info::all), those on rows with their gradients,
/// dropout, dropout with a mask, its gradient, and the position encodings, which have no operands. The data of each
/// says which it is: `is_of_rows`, `is_random`, `is_of_indices`, `is_gradient`.
pub fn every() -> impl Iterator<Item = &'static OpDef> {
    let ops = all().chain(rows());
    #[cfg(feature = "family")]
    return ops.chain(dropout::all()).chain(positions::all());
    #[cfg(not(feature = "family"))]
    ops
}

/// Returns the data of every function that lists show: the ops on elements and on rows, then [`MASKED_FILL`], dropout
/// and the position encodings. One op of dropout stands for all three, and an op with a flag for those that it chooses.
#[cfg(feature = "family")]
pub fn listed() -> impl Iterator<Item = &'static OpInfo> {
    let is_of_flag = |info: &OpInfo| CHOICES.iter().any(|choice| choice.is_flag() && choice.chooses_besides(info.name));
    let others = dropout::all().take(1).chain(positions::all());
    let infos = all().chain(rows()).map(|def| &def.info).chain([&MASKED_FILL]).chain(others.map(|def| &def.info));
    infos.filter(move |info| !is_of_flag(info))
}

/// Finds an op of the family by its name (`silu`, `add`, `mul_backward`, `softmax`, `dropout`, `alibi`).
/// [`rope_op`](crate::rope::rope_op) finds rotary ones.
pub fn op(name: &str) -> Option<&'static OpDef> {
    every().find(|def| def.info.name == name)
}
