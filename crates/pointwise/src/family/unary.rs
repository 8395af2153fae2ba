//! The unary ops.

use pointwise_core::family::unary::*;

use super::KERNELS;

pointwise_core::unary_family!(crate::host_unary);
