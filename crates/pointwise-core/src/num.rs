//! The compute types of formulas, and their operations.
//!
//! | compute type | storage types | maths |
//! |---|---|---|
//! | `f32` | f32 | [`crate::maths`], bounds of `docs/accuracy.md` |
//! | [`Coarse`] | f16, bf16 | [`crate::maths::half`]: `f32` arithmetic, functions good enough for a result rounded to 16 bits |
//! | [`Rough`] | f8e4m3, f8e5m2 | [`crate::maths::rough`]: `f32` arithmetic, functions and quotients good enough for 8 bits |
//! | `f64` | (the oracle) | std and `libm` |
//! | `Terms` | (tests) | those of `f64`, with the size of what rounding errors come from |
//! | `Wrapping<int>` | i8, i16, i32, i64, u8 | two's complement, wrapping |
//! | [`Dual<T, K>`](crate::Dual) | none | `T`'s functions, each with its derivative: gradients |
//! | [`Logic`] | bool | `+` is or, `*` is and, as in PyTorch |

use core::ops::{Add, BitAnd, BitOr, BitXor, Div, Mul, Neg, Not, Sub};

use crate::info::BinaryFunction;
use crate::op::Word;

mod coarse;
mod float;
mod integer;
mod logic;
#[cfg(not(target_arch = "nvptx64"))]
mod oracle;
mod rough;
mod stepped;
#[cfg(not(target_arch = "nvptx64"))]
mod terms;

pub use coarse::Coarse;
pub use logic::Logic;
pub use rough::Rough;
pub use stepped::Stepped;
#[cfg(not(target_arch = "nvptx64"))]
pub use terms::Terms;

/// Any compute type: can be compared and tested.
pub trait Value: Word + PartialEq + PartialOrd + Send + Sync + 'static {
    /// Zero, or false.
    const ZERO: Self;
    /// One, or true.
    const ONE: Self;
    /// A whole number as a constant of the formula: integers wrap, floats round, a bool is true unless it is 0.
    fn whole(number: i64) -> Self;
    /// Returns the value as a condition: false for zero, true for NaN and all others.
    #[inline(always)]
    fn truth(self) -> bool {
        self != Self::ZERO
    }
    /// True for NaN. False for every integer and bool.
    fn is_nan(self) -> bool;
    /// True for infinities. False for every integer and bool.
    fn is_infinite(self) -> bool;
    /// Computes a function of this value and another by a path without a branch, which is right for most values.
    #[inline(always)]
    fn short(self, other: Self, function: BinaryFunction) -> Short<Self> {
        let _ = (other, function);
        Short::known(self, false)
    }
    /// Returns the corrections for sign and zero that turn `short(abs(self), other)` into `short(self, other)`, for a
    /// function that [`takes_magnitudes`](BinaryFunction::takes_magnitudes).
    #[inline(always)]
    fn signed(self, other: Self, function: BinaryFunction) -> Signed<Self> {
        let _ = (other, function);
        Signed::unknown(self)
    }
}

/// A result of a path without a branch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Short<T> {
    /// The result lies between these: if both round to the same element, so does the result.
    pub bounds: [T; 2],
    /// True if the bounds are right for these operands.
    pub holds: bool,
}

impl<T: Copy> Short<T> {
    /// Returns a known result, right if `holds`.
    #[inline(always)]
    pub fn known(result: T, holds: bool) -> Self {
        Short { bounds: [result; 2], holds }
    }

    /// Converts the values with `to`.
    #[inline(always)]
    pub fn map<U>(self, to: impl Fn(T) -> U) -> Short<U> {
        Short { bounds: self.bounds.map(to), holds: self.holds }
    }
}

/// Corrections for sign and zero that turn a [`Short`] result of magnitudes into the result.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Signed<T> {
    /// Bits to OR into the f32 result: its sign, or a NaN pattern. A type of 16 bits takes the upper half.
    pub sign: u32,
    /// True if `of_zero` replaces the short result.
    pub is_zero: bool,
    /// The magnitude of the result for a first operand of zero.
    pub of_zero: T,
    /// True if the corrections are right for these operands.
    pub holds: bool,
}

impl<T> Signed<T> {
    /// Returns corrections that do not hold. `any` is a placeholder.
    #[inline(always)]
    pub fn unknown(any: T) -> Self {
        Signed { sign: 0, is_zero: false, of_zero: any, holds: false }
    }

    /// Converts the values with `to`.
    #[inline(always)]
    pub fn map<U>(self, to: impl FnOnce(T) -> U) -> Signed<U> {
        Signed { sign: self.sign, is_zero: self.is_zero, of_zero: to(self.of_zero), holds: self.holds }
    }
}

/// Floats and integers. Integer arithmetic wraps.
pub trait Num: Value + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self> + Neg<Output = Self> {
    /// Magnitude; the smallest signed integer wraps to itself.
    fn abs(self) -> Self;
    /// The larger operand, NaN if either is NaN; `maximum(-0, +0)` is `+0`.
    fn maximum(self, other: Self) -> Self;
    /// The smaller operand, NaN if either is NaN; `minimum(-0, +0)` is `-0`.
    fn minimum(self, other: Self) -> Self;
    /// `max(x, 0)`; NaN stays NaN. Its derivative at 0 is 0; [`Num::maximum`] has one half there.
    #[inline(always)]
    fn relu(self) -> Self {
        self.maximum(Self::ZERO)
    }
    /// `min(max(x, min), max)`: `max` where `min > max`; NaN in any gives NaN. Its derivative at a bound is 1.
    #[inline(always)]
    fn clamp(self, min: Self, max: Self) -> Self {
        self.maximum(min).minimum(max)
    }
    /// [`Num::clamp`] whose derivative at a bound is 0.
    #[inline(always)]
    fn hardtanh(self, min: Self, max: Self) -> Self {
        self.clamp(min, max)
    }
    /// Towards minus infinity; integers unchanged.
    fn floor(self) -> Self;
    /// Towards plus infinity; integers unchanged.
    fn ceil(self) -> Self;
    /// Towards zero; integers unchanged.
    fn trunc(self) -> Self;
    /// To nearest, ties to even; integers unchanged.
    fn round_ties_even(self) -> Self;
    /// To `decimals` digits behind the point (if negative, before it), ties to even; integers unchanged.
    fn round_decimals(self, decimals: Self) -> Self;
    /// PyTorch's `remainder`: the sign of the divisor. Integers: 0 for a zero divisor.
    fn remainder(self, divisor: Self) -> Self;
    /// PyTorch's `floor_divide`, exact for floats. Integers: 0 for a zero divisor, wraps for `MIN / -1`.
    fn floor_divide(self, divisor: Self) -> Self;
    /// `div(rounding_mode='trunc')`. Integers: 0 for a zero divisor, wraps for `MIN / -1`.
    fn trunc_divide(self, divisor: Self) -> Self;
    /// C99 `pow`; integers by repeated squaring, a negative exponent as in PyTorch.
    fn pow(self, exponent: Self) -> Self;
    /// `self * scale + addend`: floats with one rounding, integers wrap, bool by and and or.
    fn scaled_add(self, scale: Self, addend: Self) -> Self;
}

/// Integers and bool: whole-word logic.
pub trait Bits:
    Value + Not<Output = Self> + BitAnd<Output = Self> + BitOr<Output = Self> + BitXor<Output = Self>
{
    /// Shifts the bits up by `count` places, as `torch.bitwise_left_shift`; 0 from the width of the type on.
    fn shl(self, count: u32) -> Self;
    /// Shifts the bits down by `count` places, as `torch.bitwise_right_shift`: an integer with a sign keeps it.
    fn shr(self, count: u32) -> Self;
}

/// Floats: the functions that formulas of activations use.
///
/// Every method is branch-free, covers the whole range of the type and keeps NaN, infinities, subnormals and the sign
/// of zero as C99 has them. `/` and [`Real::sqrt`] are correctly rounded for `f32`.
pub trait Real: Num + Div<Output = Self> {
    /// A constant of the formula, rounded once to the compute type.
    fn constant(value: f64) -> Self;
    /// Turns a number beyond f32's range into an infinity, and keeps every other value. For formulas where PyTorch's
    /// result depends on an overflow on the way: compute types of f32's range overflow by themselves, the oracle does
    /// not.
    fn in_range(self) -> Self;
    /// `self * a + b` with one rounding.
    fn mul_add(self, a: Self, b: Self) -> Self;
    /// Square root.
    fn sqrt(self) -> Self;
    /// `1 / sqrt(x)`.
    fn rsqrt(self) -> Self;
    /// `1 / x`.
    fn recip(self) -> Self;
    /// `b a^(b - 1)` and `a^b ln(a)`, with `self` as `a` and the exponent as `b`: the derivatives of a power. The
    /// second is 0 for `a = 0` and `b >= 0`.
    #[inline(always)]
    fn pow_gradients(self, exponent: Self) -> (Self, Self) {
        let is_zero = (self == Self::ZERO) & (exponent >= Self::ZERO);
        let by_exponent = if is_zero { Self::ZERO } else { self.pow(exponent) * self.ln() };
        (exponent * self.pow(exponent - Self::ONE), by_exponent)
    }
    /// `self / (2 sqrt(x))`, every step rounded: the gradient of a square root.
    #[inline(always)]
    fn over_twice_sqrt(self, x: Self) -> Self {
        self / (x.sqrt() * Self::constant(2.0))
    }
    /// `self e^x`: the gradient of an exponential. For results of 16 bits it is as good as f32's function. A product
    /// with [`Real::exp`] is not, next to numbers half way between two of them.
    #[inline(always)]
    fn times_exp(self, x: Self) -> Self {
        self * x.exp()
    }
    /// `self / (1 + e^-x)`, as good as [`Real::times_exp`].
    #[inline(always)]
    fn times_sigmoid(self, x: Self) -> Self {
        self * x.sigmoid()
    }
    /// `e^x`.
    fn exp(self) -> Self;
    /// `e^x` for `x <= 0`, in fewer steps. The result for other `x` has no meaning.
    fn exp_negative(self) -> Self;
    /// [`Real::exp_negative`] for a result that is rounded to 16 bits, in fewer steps yet.
    fn exp_negative_16(self) -> Self;
    /// `e^x - 1`, accurate near 0.
    fn exp_m1(self) -> Self;
    /// `e^x - 1` for `x <= 0`. The result for other `x` has no meaning.
    fn exp_m1_negative(self) -> Self;
    /// Returns `yes` if `self > limit`, else `no`, also for NaN. Both are computed; an `if` might become a branch.
    fn if_above(self, limit: Self, yes: Self, no: Self) -> Self;
    /// Natural logarithm.
    fn ln(self) -> Self;
    /// `ln(1 + x)`, accurate near 0.
    fn ln_1p(self) -> Self;
    /// Sine of an angle in radians.
    fn sin(self) -> Self;
    /// Cosine of an angle in radians.
    fn cos(self) -> Self;
    /// Hyperbolic tangent.
    fn tanh(self) -> Self;
    /// Error function.
    fn erf(self) -> Self;
    /// The normal distribution function, `erfc(-x / sqrt 2) / 2`: accurate in the far negative tail, where
    /// `1 + erf(x / sqrt 2)` cancels.
    fn normal_cdf(self) -> Self;
    /// The normal distribution's density, `e^(-x^2 / 2) / sqrt(2 pi)`.
    fn normal_density(self) -> Self;
    /// `1 / (1 + e^-x)`, accurate in the far negative tail.
    fn sigmoid(self) -> Self;
    /// `ln(1 + e^x)` without overflow.
    fn softplus(self) -> Self;
    /// `x / (1 + e^-x)`.
    fn silu(self) -> Self;
    /// `x tanh(ln(1 + e^x))`.
    fn mish(self) -> Self;
    /// The derivative of [`Real::mish`].
    #[inline(always)]
    fn mish_derivative(self) -> Self {
        mish_derivative(self)
    }
    /// `x (1 + erf(x / sqrt 2)) / 2`.
    fn gelu(self) -> Self;
    /// `x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) / 2`.
    fn gelu_tanh(self) -> Self;
    /// The value as an f64, exactly.
    fn to_f64(self) -> f64;
    /// The value without its derivative.
    #[inline(always)]
    fn detach(self) -> Self {
        self
    }
    /// The value rounded to a type of floats, by way of f32. Its derivative is that of the value.
    #[inline(always)]
    fn rounded_to(self, dtype: crate::DType) -> Self {
        Self::constant(crate::convert::rounded(self.to_f64() as f32, dtype) as f64)
    }
    /// PyTorch's dropout with probability `p` of an element that has the random word `bits`: `self / (1 - p)`, or +0
    /// (also for NaN and infinities) with probability `p`. It keeps the same elements as `ops::dropout` at the same
    /// place with the same `p`. Both take `p` as an f32.
    ///
    /// The host does not check this `p`: below 0 it counts as 0, and one above 1 or NaN drops every element.
    #[inline(always)]
    fn dropout(self, p: Self, bits: crate::RandomWord<'_>) -> Self {
        // Threshold and factor are the same for all elements of a thread: one division, exact for every type.
        let scale = (Self::ONE - p.maximum(Self::ZERO)).recip();
        match crate::philox::last_kept(p.to_f64() as f32) {
            Some(last) if bits.is_at_most(last) => self * scale,
            _ => Self::ZERO,
        }
    }
    /// The power of two at or below the magnitude, which counts as an f32: at least 2^-126; infinity for infinities and
    /// NaN. Times 2^-7, it is the distance from `x` to its neighbour in bf16.
    ///
    /// Its derivative is 0.
    #[inline(always)]
    fn binade(self) -> Self {
        let power = (self.to_f64() as f32).to_bits() & 0x7F80_0000;
        let power = if power == 0 { f32::MIN_POSITIVE } else { f32::from_bits(power) };
        Self::constant(power as f64)
    }
    /// The entry of a table whose index the value is: constants such as the 16 of a 4-bit code. NaN where it is the index of
    /// none. Each entry costs a comparison and a choice, so that a table is short. Its derivative is 0.
    #[inline(always)]
    fn entry_of<const N: usize>(self, table: [f64; N]) -> Self {
        let (mut entry, mut k) = (Self::constant(f64::NAN), 0);
        while k < N {
            if self == Self::whole(k as i64) {
                entry = Self::constant(table[k]);
            }
            k += 1;
        }
        entry
    }
    /// A random word as a number, uniform over the multiples of 2^-24 in `0 .. 1`.
    #[inline(always)]
    fn uniform(bits: crate::RandomWord<'_>) -> Self {
        Self::constant(crate::philox::uniform(bits.bits()) as f64)
    }
}

/// The derivative of `mish` in plain steps.
#[inline(always)]
pub(crate) fn mish_derivative<T: Real>(x: T) -> T {
    // With w = e^x and n = w (w + 2): tanh(softplus x) is n / (n + 2), its derivative 4 w (w + 1) / (n + 2)^2. From 20
    // on that is too small to count, and the square would overflow.
    let top = T::constant(20.0);
    let w = x.minimum(top).exp();
    let n = w * (w + T::constant(2.0));
    let inverse = (n + T::constant(2.0)).recip();
    let slope = x.if_above(top, T::ZERO, T::constant(4.0) * w * inverse * ((w + T::ONE) * inverse));
    x.mul_add(slope, n * inverse)
}

#[cfg(test)]
mod tests {
    use super::Real;
    use crate::convert::rounded;
    use crate::dtype::DType;
    use crate::dual::Dual;

    #[test]
    fn a_value_is_stored_in_the_type() {
        assert_eq!([DType::F32, DType::F16, DType::BF16].map(|dtype| rounded(1.003, dtype)), [1.003, 1.0029297, 1.0]);
        assert_eq!(1.003_f64.rounded_to(DType::BF16), 1.0);
    }

    #[test]
    fn an_entry_is_found_by_its_index() {
        const TABLE: [f64; 3] = [0.25, -1.0, 8.0];
        assert_eq!([0.0_f32, 1.0, 2.0].map(|index| index.entry_of(TABLE)), [0.25, -1.0, 8.0]);
        assert!([-1.0_f32, 0.5, 3.0, f32::NAN].iter().all(|index| index.entry_of(TABLE).is_nan()));
        let entry = Dual::<f64, 1>::variable(2.0, 0, 1.0).entry_of(TABLE);
        assert_eq!((entry.value(), entry.gradient(0)), (8.0, 0.0));
    }
}
