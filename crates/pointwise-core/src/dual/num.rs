//! The functions that floats share with integers.

use super::{Dual, each};
use crate::num::{Num, Real};

impl<T: Real, const K: usize> Dual<T, K> {
    /// Returns the larger or the smaller operand. `first` and `second` are true if only that operand is chosen.
    #[inline(always)]
    fn extreme(self, other: Self, value: impl FnOnce(T, T) -> T, first: bool, second: bool) -> Self {
        let equal = self.value == other.value;
        self.with(other, value, |t, u| {
            let share = |t: T, other_alone: bool| {
                let shared = if equal { t * T::constant(0.5) } else { t };
                if other_alone { T::ZERO } else { shared }
            };
            t.map(|t| share(t, second)).plus(u.map(|u| share(u, first)))
        })
    }

    /// Returns the value between two bounds, with the tangent of the operand that decides.
    #[inline(always)]
    fn bounded(self, min: Self, max: Self, value: T, [inside, below, above]: [bool; 3]) -> Self {
        let tangents = each(|k| {
            // Each of the conditions excludes the others.
            let t = self.tangents[k].where_(inside);
            let (u, v) = (min.tangents[k].where_(below), max.tangents[k].where_(above));
            t.or(inside, u.or(below, v))
        });
        Dual { value, tangents }
    }
}

impl<T: Real, const K: usize> Num for Dual<T, K> {
    #[inline(always)]
    fn abs(self) -> Self {
        let x = self.value;
        let sign = if x > T::ZERO {
            T::ONE
        } else if x < T::ZERO {
            -T::ONE
        } else {
            T::ZERO
        };
        self.then(T::abs, |t| t * sign)
    }
    #[inline(always)]
    fn maximum(self, other: Self) -> Self {
        let (a, b) = (self.value, other.value);
        self.extreme(other, T::maximum, a > b, a < b)
    }
    #[inline(always)]
    fn minimum(self, other: Self) -> Self {
        let (a, b) = (self.value, other.value);
        self.extreme(other, T::minimum, a < b, a > b)
    }
    #[inline(always)]
    fn relu(self) -> Self {
        let x = self.value;
        self.then(T::relu, |t| if x <= T::ZERO { T::ZERO } else { t })
    }
    #[inline(always)]
    fn clamp(self, min: Self, max: Self) -> Self {
        let (x, low, high) = (self.value, min.value, max.value);
        let inside = (x >= low) & (x <= high);
        let below = (x < low) & (low < high);
        let above = (x > high) | (high < low);
        self.bounded(min, max, x.clamp(low, high), [inside, below, above])
    }
    #[inline(always)]
    fn hardtanh(self, min: Self, max: Self) -> Self {
        let (x, low, high) = (self.value, min.value, max.value);
        let inside = !((x <= low) | (x >= high));
        let below = (x <= low) & (low < high);
        let above = (x >= high) | (high <= low);
        self.bounded(min, max, x.hardtanh(low, high), [inside, below, above])
    }
    #[inline(always)]
    fn floor(self) -> Self {
        Dual::constant(self.value.floor())
    }
    #[inline(always)]
    fn ceil(self) -> Self {
        Dual::constant(self.value.ceil())
    }
    #[inline(always)]
    fn trunc(self) -> Self {
        Dual::constant(self.value.trunc())
    }
    #[inline(always)]
    fn round_ties_even(self) -> Self {
        Dual::constant(self.value.round_ties_even())
    }
    #[inline(always)]
    fn round_decimals(self, decimals: Self) -> Self {
        Dual::constant(self.value.round_decimals(decimals.value))
    }
    #[inline(always)]
    fn remainder(self, divisor: Self) -> Self {
        let (a, b) = (self.value, divisor.value);
        let quotient = a.floor_divide(b);
        self.with(divisor, T::remainder, |t, u| t.plus_product(u.map(|u| -u), quotient))
    }
    #[inline(always)]
    fn floor_divide(self, divisor: Self) -> Self {
        Dual::constant(self.value.floor_divide(divisor.value))
    }
    #[inline(always)]
    fn trunc_divide(self, divisor: Self) -> Self {
        Dual::constant(self.value.trunc_divide(divisor.value))
    }
    #[inline(always)]
    fn pow(self, exponent: Self) -> Self {
        let (a, b) = (self.value, exponent.value);
        let (by_base, by_exponent) = a.pow_gradients(b);
        self.with(exponent, T::pow, |t, u| {
            let of_base = t.map(|t| if b == T::ZERO { T::ZERO } else { t * by_base });
            of_base.plus_product(u, by_exponent)
        })
    }
    #[inline(always)]
    fn scaled_add(self, scale: Self, addend: Self) -> Self {
        self.mul_add(scale, addend)
    }
}
