//! The op family on the host: every table of `pointwise_core::family`, visited.

use pointwise_core::family::unary::*;

crate::include_kernels!();

pointwise_core::unary_family!(crate::host_unary);

/// The kernels embedded in this build.
pub fn embedded() -> &'static crate::embed::Kernels {
    &KERNELS
}

/// The op of a name, as PyTorch has it.
pub fn op(name: &str) -> Option<&'static crate::UnaryDef> {
    UNARY.iter().copied().find(|def| def.info.name == name)
}
