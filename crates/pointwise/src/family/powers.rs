//! What `pow` by a number runs.

use pointwise_core::family::powers::*;

use super::KERNELS;

macro_rules! host_powers {
    ($($rows:tt)*) => { crate::__definitions! { (POWERS OpDef __several_def (unary same Unary)) $($rows)* } };
}

pointwise_core::powers_family!(host_powers);
