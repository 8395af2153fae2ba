//! THE FAMILY: `#[op]` functions, as a user's package has them, in modules by what they are. The package is compiled for the
//! GPU; `pointwise` compiles its modules for the host.
//!
//! Each module is behind a feature of its name, so that the builder can compile them side by side. Below them are the
//! kernels whose templates are not formulas'.
#![no_std]
#![cfg_attr(target_arch = "nvptx64", feature(abi_gpu_kernel, asm_experimental_arch))]

pointwise::kernel_crate!();

#[cfg(feature = "binary")]
mod binary;
#[cfg(feature = "bitwise")]
mod bitwise;
#[cfg(feature = "channel")]
mod channel;
#[cfg(feature = "comparison")]
mod comparison;
#[cfg(feature = "gated")]
mod gated;
#[cfg(feature = "norms")]
mod norms;
#[cfg(feature = "powers")]
mod powers;
#[cfg(feature = "reductions")]
mod reductions;
#[cfg(feature = "select")]
mod select;
#[cfg(feature = "softmax")]
mod softmax;
#[cfg(feature = "ternary")]
mod ternary;
#[cfg(feature = "unary")]
mod unary;

#[cfg(feature = "conversions")]
pointwise::export!(Conversions;);
#[cfg(feature = "generators")]
pointwise::export!(Generators;);
#[cfg(feature = "lookup")]
pointwise::export!(Lookup;);
#[cfg(feature = "random")]
pointwise::export!(Random;);
#[cfg(feature = "rope")]
pointwise::export!(Rope;);
