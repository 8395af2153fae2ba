//! The family's kernel entries: the op tables x element types x strategies, and nothing else.
//!
//! Each table is behind a feature of its name, so that the builder can compile the tables side by side.
#![no_std]
#![feature(abi_gpu_kernel, asm_experimental_arch)]

pointwise_device::kernel_crate!();

#[cfg(feature = "unary")]
mod unary {
    use pointwise_device::family::unary::*;

    pointwise_device::unary_family!(pointwise_device::export_unary);
}
