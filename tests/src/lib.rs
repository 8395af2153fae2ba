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

/// The ops of one operand, and what runs beneath `pow` with a number.
pub fn unary() -> impl Iterator<Item = &'static pointwise::kernel::OpDef> {
    pointwise::info::UNARY.iter().chain(pointwise::info::POWERS).copied()
}

/// Every op of the tables, and what runs beneath `pow` with a number.
pub fn all() -> impl Iterator<Item = &'static pointwise::kernel::OpDef> {
    pointwise::info::all().chain(pointwise::info::POWERS.iter().copied())
}

/// The ops of the tables but for unary ones: gradients that take `grad` alone are among them.
pub fn several() -> impl Iterator<Item = &'static pointwise::kernel::OpDef> {
    pointwise::info::all().filter(|def| def.info.kind != pointwise_core::Kind::Unary)
}
