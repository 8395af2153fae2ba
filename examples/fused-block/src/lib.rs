//! The end of a transformer block as one kernel, and as the ops of pointwise one after another.
#![forbid(unsafe_code)]

pub mod ops;

use pointwise::{Philox, Result, Tensor};

/// `residual + dropout(silu(gate) * value, p)` by the ops of pointwise, one after another: three passes over memory.
///
/// # Errors
/// Fails if one of the ops fails.
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
