//! The compute type of f16 and bf16.

/// `f32` arithmetic whose functions need only survive one rounding to f16 or bf16: the compute type of those two.
///
/// The bound (all 65,536 inputs, `docs/accuracy.md`): at most 1 ULP of the 16-bit type, correctly rounded for at least
/// 99.5 % of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
#[repr(transparent)]
pub struct Coarse(pub f32);
