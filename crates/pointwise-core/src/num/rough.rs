//! The compute type of f8e4m3 and f8e5m2.

use core::ops::{Add, Div, Mul, Neg, Sub};

use super::{Num, Real, Value};
use crate::maths;

/// `f32` arithmetic whose quotients and functions need only survive one rounding to f8e4m3 or f8e5m2: the compute type
/// of those two.
///
/// Quotients and those functions whose speed shows have a relative error of about `2^-16`, the tail of gelu one of
/// `2^-13`, and count subnormal f32 as zeros. Of operands of 8 bits every result is correctly rounded
/// (`tests/rough_maths.rs`).
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
#[repr(transparent)]
pub struct Rough(pub f32);

operators!(Rough: Add add +, Sub sub -, Mul mul *);
divide_and_negate!(Rough: maths::rough::div;);
f32_like!(Rough, Rough, |x| x.0, crate::maths::rough);
