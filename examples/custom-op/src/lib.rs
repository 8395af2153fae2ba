//! The ops of `kernels/` as functions (`ops`) and kernel objects (`kernels`), like those of pointwise itself.

use my_kernels::*;

pointwise::include_kernels!();
my_kernels::my_ops!(pointwise::host_unary);
