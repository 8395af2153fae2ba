//! The two arithmetics that the frequency formulas run in: f32 as HF computes, and about 106 bits for the exact mode.

use std::f64::consts::{LN_2, PI};
use std::ops::{Add, Div, Mul, Sub};

use super::torch_pow;

/// The operations of a number in a frequency formula.
pub(super) trait Number:
    Copy + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self> + Div<Output = Self>
{
    /// `x`, rounded to this type.
    fn of(x: f64) -> Self;
    /// The nearest f64.
    fn value(self) -> f64;
    /// 2π.
    fn two_pi() -> Self;
    /// `base^(2·index/dim)`, element `index` of a table of `len`.
    fn power(base: f64, index: usize, dim: usize, len: usize) -> Self;
}

impl Number for f32 {
    fn of(x: f64) -> Self {
        x as f32
    }

    fn value(self) -> f64 {
        f64::from(self)
    }

    fn two_pi() -> Self {
        std::f32::consts::TAU
    }

    fn power(base: f64, index: usize, dim: usize, len: usize) -> Self {
        // The quotient is rounded to f32 first: HF divides a f32 `arange`.
        torch_pow::pow(base as f32, (2 * index) as f32 / dim as f32, index, len)
    }
}

/// An unevaluated sum of two f64: about 106 bits.
///
/// The exact mode needs more than f64's 53: a frequency's rounding error grows with the position, and at 2^31 half an
/// ULP of f64 is already 1.5e-7 rad. Arithmetic after T. J. Dekker (1971), with fused multiply-adds.
#[derive(Debug, Clone, Copy)]
pub(super) struct Double {
    hi: f64,
    lo: f64,
}

impl Double {
    const LN_2: Self = Self { hi: LN_2, lo: 2.319_046_813_846_299_6e-17 };
    const TWO_PI: Self = Self { hi: 2.0 * PI, lo: 2.449_293_598_294_706_4e-16 };

    fn sum(a: f64, b: f64) -> Self {
        let hi = a + b;
        let b_part = hi - a;
        Self { hi, lo: (a - (hi - b_part)) + (b - b_part) }
    }

    fn scaled(self, power_of_two: f64) -> Self {
        Self { hi: self.hi * power_of_two, lo: self.lo * power_of_two }
    }

    /// `e^self`.
    fn exp(self) -> Self {
        const HALVINGS: i32 = 8;
        let k = (self.hi / LN_2).round();
        let small = (self - Self::LN_2 * Self::of(k)).scaled(0.5f64.powi(HALVINGS));
        // e^x - 1 by Horner's rule; |x| < 0.0014, so the tenth term is below 2^-110.
        let mut expm1 = small / Self::of(10.0);
        for n in (1..10).rev() {
            expm1 = small * (Self::of(1.0) + expm1) / Self::of(f64::from(n));
        }
        for _ in 0..HALVINGS {
            // (1 + y)^2 - 1, without the loss that squaring 1 + y would bring.
            expm1 = expm1.scaled(2.0) + expm1 * expm1;
        }
        (Self::of(1.0) + expm1).scaled(2f64.powi(k as i32))
    }

    /// Natural logarithm of a positive f64: one Newton step from f64's.
    fn ln(x: f64) -> Self {
        let guess = Self::of(x.ln());
        guess + (Self::of(x) * Self::of(-guess.hi).exp() - Self::of(1.0))
    }

    /// `self / (2π) · 2^64`, rounded to the nearest integer, modulo 2^64.
    pub(super) fn turns(self) -> u64 {
        const TWO_64: f64 = 18_446_744_073_709_551_616.0;
        let turns = self / Self::TWO_PI;
        // Whole turns of the high part go first; what remains scales exactly.
        let high = (turns.hi - turns.hi.floor()) * TWO_64;
        let low = turns.lo * TWO_64;
        let rest = ((high - high.floor()) + low).round();
        (high.floor() as u128 as u64).wrapping_add(rest as i128 as u64)
    }
}

impl Add for Double {
    type Output = Self;
    fn add(self, b: Self) -> Self {
        let high = Self::sum(self.hi, b.hi);
        let low = Self::sum(self.lo, b.lo);
        let middle = Self::sum(high.hi, high.lo + low.hi);
        Self::sum(middle.hi, middle.lo + low.lo)
    }
}

impl Sub for Double {
    type Output = Self;
    fn sub(self, b: Self) -> Self {
        self + Self { hi: -b.hi, lo: -b.lo }
    }
}

impl Mul for Double {
    type Output = Self;
    fn mul(self, b: Self) -> Self {
        let hi = self.hi * b.hi;
        let lo = self.hi.mul_add(b.hi, -hi) + (self.hi * b.lo + self.lo * b.hi);
        Self::sum(hi, lo)
    }
}

impl Div for Double {
    type Output = Self;
    fn div(self, b: Self) -> Self {
        let first = self.hi / b.hi;
        let rest = self - b * Self::of(first);
        let second = rest.hi / b.hi;
        let rest = rest - b * Self::of(second);
        Self::sum(first, second) + Self::of(rest.hi / b.hi)
    }
}

impl Number for Double {
    fn of(x: f64) -> Self {
        Self { hi: x, lo: 0.0 }
    }

    fn value(self) -> f64 {
        self.hi + self.lo
    }

    fn two_pi() -> Self {
        Self::TWO_PI
    }

    fn power(base: f64, index: usize, dim: usize, _len: usize) -> Self {
        if index == 0 {
            return Self::of(1.0);
        }
        (Self::ln(base) * Self::of((2 * index) as f64) / Self::of(dim as f64)).exp()
    }
}
