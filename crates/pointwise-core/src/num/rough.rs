//! The compute type of f8e4m3 and f8e5m2.

/// `f32` arithmetic whose quotients and functions need only survive one rounding to f8e4m3 or f8e5m2: the compute type
/// of those two.
///
/// Quotients, and the functions whose speed shows, have a relative error of about `2^-16` (the tail of gelu `2^-13`)
/// and count subnormal f32 as zeros. With operands of 8 bits every result is correctly rounded
/// (`tests/narrow_maths`).
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
#[repr(transparent)]
pub struct Rough(pub f32);
