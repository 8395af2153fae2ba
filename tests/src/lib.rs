//! The common parts of the tests, beside the crate `pointwise-testkit`: cases by name, and checks of one kind of call
//! each.

pub mod accuracy;
pub mod cases;
pub mod convert;
pub mod copies;
pub mod golden;
pub mod lookup;
pub mod matrix;
pub mod numbers;
pub mod order;
pub mod planted;
pub mod promote;
pub mod temporaries;

use pointwise::info;
use pointwise::kernel::OpDef;

/// Returns the ops of one operand, and those that run beneath `pow` with a number.
pub fn unary() -> impl Iterator<Item = &'static OpDef> {
    all().filter(|def| def.info.is_unary())
}

/// Returns every op of the family, and those that run beneath `pow` with a number.
pub fn all() -> impl Iterator<Item = &'static OpDef> {
    info::all().chain(info::beneath())
}

/// Returns the ops of the family but for unary ones: gradients that take `grad` alone are among them.
pub fn several() -> impl Iterator<Item = &'static OpDef> {
    info::all().filter(|def| !def.info.is_unary())
}

/// Returns the ops of several operands that compute no gradient.
pub fn forward() -> impl Iterator<Item = &'static OpDef> {
    several().filter(|def| !def.info.is_gradient())
}

/// Returns the gradients of ops of one operand.
pub fn backward() -> impl Iterator<Item = &'static OpDef> {
    info::all().filter(|def| def.info.is_gradient() && def.info.results.len() == 1)
}

/// Returns the gradients of ops of several operands.
pub fn gradients() -> impl Iterator<Item = &'static OpDef> {
    info::all().filter(|def| def.info.results.len() > 1)
}
