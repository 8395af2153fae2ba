//! The device side of pointwise: what a kernel crate depends on.
//!
//! A kernel crate declares its ops with the macros of [`pointwise_core`] and exports their entries with [`export`]:
//!
//! ```ignore
//! #![no_std]
//! pointwise_device::kernel_crate!();
//!
//! pointwise_device::unary_ops! { my_ops;
//!     /// `max(x, 0)^2`.
//!     squared_relu: SquaredRelu (x: Num) -> T, [floats], Ulp(1.0) => { let r = x.maximum(T::ZERO); r * r };
//! }
//! my_ops!(pointwise_device::export_unary);
//! ```
//!
//! Compiled for the host, such a crate holds the ops alone: the templates and entries exist for `nvptx64` only.
#![no_std]
#![cfg_attr(
    target_arch = "nvptx64",
    feature(abi_gpu_kernel, stdarch_nvptx, asm_experimental_arch)
)]

pub use pointwise_core::*;

mod export;
#[cfg(target_arch = "nvptx64")]
pub mod memory;
#[cfg(target_arch = "nvptx64")]
pub mod packed;

#[cfg(target_arch = "nvptx64")]
pub mod thread;
#[cfg(target_arch = "nvptx64")]
pub mod unary;
