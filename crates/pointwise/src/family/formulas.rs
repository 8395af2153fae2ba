//! The ops of the family, on the host: the modules of `gpu-kernels`, where an op is one function.

#[path = "formulas/binary.rs"]
mod binary;
#[path = "formulas/bitwise.rs"]
mod bitwise;
#[path = "formulas/channel.rs"]
mod channel;
#[path = "formulas/comparison.rs"]
mod comparison;
#[path = "formulas/gated.rs"]
mod gated;
#[path = "formulas/norms.rs"]
mod norms;
#[path = "formulas/powers.rs"]
pub(super) mod powers;
#[path = "formulas/reductions.rs"]
mod reductions;
#[path = "formulas/select.rs"]
mod select;
#[path = "formulas/softmax.rs"]
mod softmax;
#[path = "formulas/ternary.rs"]
mod ternary;
#[path = "formulas/unary.rs"]
mod unary;

pub use select::{
    Where, WhereBackward, r#where as where_cond, where_backward, where_backward_into, where_into as where_cond_into,
};
pub use {
    binary::*, bitwise::*, channel::*, comparison::*, gated::*, norms::*, reductions::*, softmax::*, ternary::*,
    unary::*,
};
