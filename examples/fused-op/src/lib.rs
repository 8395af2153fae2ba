//! The formulas of `kernels/` as functions (`ops`) and kernel objects (`kernels`), like those of pointwise itself.

pointwise::include_kernels!();

macro_rules! tables {
    ($($(#[doc = $doc:literal])* $module:ident $table:ident $visitor:ident;)*) => { $(
        $(#[doc = $doc])*
        pub mod $module {
            use crate::KERNELS;
            use my_fused_kernels::$module::*;

            my_fused_kernels::$table!(pointwise::$visitor);
        }
    )* };
}

tables! {
    /// Up to three operands and a random word for each element.
    random random_table host_random;
    /// Three operands.
    ternary ternary_table host_ternary;
    /// Two operands.
    binary binary_table host_binary;
    /// The two halves of one tensor's last dimension.
    gated gated_table host_gated;
    /// No operand.
    generator generator_table host_generator;
}

/// The ops of all tables as functions.
pub mod ops {
    pub use crate::binary::ops::*;
    pub use crate::gated::ops::*;
    pub use crate::generator::ops::*;
    pub use crate::random::ops::*;
    pub use crate::ternary::ops::*;
}

use pointwise::{Philox, Result, Tensor};

/// `residual + dropout(silu(gate) * value, p)` by the ops of pointwise, one after another: three passes over memory.
///
/// # Errors
/// Those of the ops.
pub fn one_by_one(
    residual: &Tensor,
    gate: &Tensor,
    value: &Tensor,
    y: &mut Tensor,
    scratch: &mut Tensor,
    p: f32,
    rng: Philox,
) -> Result<()> {
    pointwise::kernels::silu_and_mul().run_pair_into(gate, value, &mut *scratch)?;
    pointwise::ops::dropout_inplace(&mut *scratch, f64::from(p), rng)?;
    pointwise::ops::add_into(residual, &*scratch, y)
}
