//! Ops of one's own in PyTorch: `pointwise.load("libtorch_op.so", "mine")`.

pub mod ops;

pointwise_torch::export!();
