//! Dual numbers: the derivatives of any formula, by evaluating the formula.
//!
//! A [`Dual`] is a value and up to `K` tangents, one for each operand whose gradient is wanted. It is a compute type
//! ([`Real`]), so every formula written for `T: Real` evaluates at it:
//!
//! ```
//! use pointwise_core::{Real, dual::Dual};
//!
//! fn snake<T: Real>(x: T, a: T) -> T {
//!     let s = (a * x).sin();
//!     x + s * s / a
//! }
//!
//! let (x, a, grad) = (0.5_f64, 2.0, 3.0);
//! let y = snake(Dual::<f64, 2>::variable(x, 0, grad), Dual::variable(a, 1, grad));
//! assert_eq!(y.value(), snake(x, a));
//! assert!((y.gradient(0) - grad * (1.0 + (2.0 * a * x).sin())).abs() < 1e-12);
//! let s = (a * x).sin();
//! assert!((y.gradient(1) - grad * (x * (2.0 * a * x).sin() / a - s * s / (a * a))).abs() < 1e-12);
//! ```
//!
//! The seed of a variable is the gradient of the formula's result. With one result every product then starts from the
//! gradient, as in formulas written by hand; with several results the seed is 1.
//!
//! **Absent tangents.** A tangent has a flag that says whether it is there. A constant has none, and `x` has none by
//! `y`. The flags are constants once everything is inlined, so an absent tangent leaves no instruction behind. A zero
//! would: no compiler folds `0 * x` or `x + 0` of floats. And `0 * inf` is NaN, where the derivative is 0.
//!
//! **Rules.** Operands `x`, `y` and `z` have the tangents `t`, `u` and `v`; `r` is the result. A sum has only the terms
//! that are there. No rule subtracts terms that cancel, unless the derivative itself is such a difference (`gelu`,
//! `gelu_tanh`, `silu`, `mish`).
//!
//! | function | tangent of the result |
//! |---|---|
//! | `x + y`, `x - y`, `-x` | `t + u`, `t - u`, `-t` |
//! | `x * y` | `t y + u x`, one product fused |
//! | `x / y` | `t / y`; `-u (x / y / y)`; both: `(t - u (x / y)) / y`, fused |
//! | `mul_add(x, y, z)`, `scaled_add` | `v + t y + u x`, the products fused |
//! | `recip` | `-t / x / x` by the correctly rounded quotient `1 / x` |
//! | `sqrt` | `t / (2 sqrt x)` by [`Real::over_twice_sqrt`] |
//! | `rsqrt` | `-t/2 r r r` |
//! | `over_twice_sqrt(x, y)` | `t / (2 sqrt y) - u/2 r / y` |
//! | `abs` | `t`, `-t`; 0 at 0 and for NaN |
//! | `maximum`, `minimum` | of the chosen operand; halves of both if equal; both for NaN |
//! | `relu` | `t`; 0 where `x <= 0` |
//! | `clamp(x, y, z)` | `t` where `y <= x <= z`; `u` where `x < y < z`; `v` where `x > z` or `z < y`; else 0 |
//! | `hardtanh(x, y, z)` | `t`, 0 where `x <= y` or `x >= z`; `u` where `x <= y < z`; `v` where `x >= z` or `z <= y` |
//! | `floor`, `ceil`, `trunc`, `round_ties_even`, `round_decimals`, `floor_divide`, `trunc_divide` | none |
//! | `remainder` | `t - u floor_divide(x, y)` |
//! | `pow` | `t y x^(y - 1)`, 0 where `y = 0`; `u x^y ln x`, 0 for `x = 0` and `y >= 0`: [`Real::pow_gradients`] |
//! | `pow_gradients` | the derivatives of its two results by plain steps |
//! | `exp`, `exp_negative`, `exp_negative_16` | `t r` |
//! | `exp_m1` | `t e^x` |
//! | `exp_m1_negative` | `t e^x` by [`Real::times_exp`] |
//! | `times_exp(x, y)` | `t e^y + u r` |
//! | `ln`, `ln_1p` | `t / x`, `t / (1 + x)` |
//! | `sin`, `cos` | `t cos x`, `-t sin x` |
//! | `tanh` | `t 4 s (1 - s)`, `s = sigmoid(-2 abs x)` |
//! | `sigmoid` | `t s (1 - s)`, `s = sigmoid(-abs x)` |
//! | `times_sigmoid(x, y)` | `t sigmoid(y) + u x s (1 - s)`, `s = sigmoid(-abs y)` |
//! | `softplus` | `t sigmoid(x)` by [`Real::times_sigmoid`] |
//! | `silu` | `t s (1 + x (1 - s))`, `s` and `1 - s` each accurate in its tail |
//! | `gelu_tanh` | `t (s + x s (1 - s) p)`, `s` the sigmoid of the inner polynomial, `p` its slope |
//! | `erf` | `t 2 / sqrt(pi) e^(-x^2)`, the rounding of `x^2` put back |
//! | `normal_cdf` | `t` times the density |
//! | `normal_density` | `-t x r` |
//! | `gelu` | `t (cdf + x density)` |
//! | `mish`, `mish_derivative` | `t` times [`Real::mish_derivative`]; its derivative by plain steps |
//! | `in_range` | `t` |
//! | `if_above(x, limit, yes, no)` | of `yes` or `no`; `x` and `limit` do not count |
//! | `dropout(x, p, bits)` | `t / (1 - p)` and `u x / (1 - p)^2` where kept, else 0 |
//! | `uniform`, constants, bits, bools | none |
//!
//! At kinks these are PyTorch's conventions. Comparisons compare values, so an `if` of a formula takes the tangents of
//! the branch it takes.
//!
//! The value is the formula's value without tangents, bit for bit. The exceptions are `silu`, `gelu` and `gelu_tanh` of
//! an operand with a tangent: their value is `x` times the factor that the derivative needs, within the same bounds.

#[doc(hidden)]
pub mod activations;
mod num;
mod operators;
mod real;

use duplicate::duplicate;

use crate::num::{Real, Value};

/// The most tangents that a [`Dual`] can have: an op has at most eight operands.
pub const MAX_TANGENTS: usize = 8;

/// A value with up to `K` tangents, `K` at most [`MAX_TANGENTS`]. See the [module](self).
#[derive(Clone, Copy, Debug)]
pub struct Dual<T, const K: usize> {
    value: T,
    tangents: [Tangent<T>; K],
}

/// A derivative by one operand, times the seed; or none. If it is absent, its value has no meaning.
#[derive(Clone, Copy, Debug)]
struct Tangent<T> {
    is_there: bool,
    value: T,
}

impl<T: Value> Tangent<T> {
    const ABSENT: Self = Tangent { is_there: false, value: T::ZERO };

    /// Returns the tangent, 0 if it is absent.
    #[inline(always)]
    fn or_zero(self) -> T {
        if self.is_there { self.value } else { T::ZERO }
    }

    /// Applies `f` to the tangent, also to an absent one: `f` has no branch, and that result is never read.
    #[inline(always)]
    fn map(self, f: impl FnOnce(T) -> T) -> Self {
        Tangent { is_there: self.is_there, value: f(self.value) }
    }

    /// Returns the tangent if `keeps`, else 0.
    #[inline(always)]
    fn where_(self, keeps: bool) -> Self {
        self.map(|t| if keeps { t } else { T::ZERO })
    }
}

impl<T: Real> Tangent<T> {
    /// Returns this tangent if `is_this`, else the other; if only one is there, that one.
    #[inline(always)]
    fn or(self, is_this: bool, other: Self) -> Self {
        let both = if is_this { self.value } else { other.value };
        Self::sum(self, other, both, other.value)
    }

    #[inline(always)]
    fn plus(self, other: Self) -> Self {
        let both = self.value + other.value;
        Self::sum(self, other, both, other.value)
    }

    #[inline(always)]
    fn minus(self, other: Self) -> Self {
        let both = self.value - other.value;
        Self::sum(self, other, both, -other.value)
    }

    /// Returns the tangent plus `factor` times another, fused.
    #[inline(always)]
    fn plus_product(self, other: Self, factor: T) -> Self {
        let both = other.value.mul_add(factor, self.value);
        Self::sum(self, other, both, other.value * factor)
    }

    /// Returns the tangent of `quotient`, a division by `divisor`. One division serves two tangents.
    #[inline(always)]
    fn over(self, of_divisor: Self, quotient: T, divisor: T) -> Self {
        let both = (-of_divisor.value).mul_add(quotient, self.value);
        let dividend = if of_divisor.is_there { both } else { self.value };
        let alone = -of_divisor.value * (quotient / divisor);
        let value = if self.is_there { dividend / divisor } else { alone };
        Tangent { is_there: self.is_there | of_divisor.is_there, value }
    }

    /// `both` if both tangents are there, `alone` if the second is and the first is not.
    #[inline(always)]
    fn sum(first: Self, second: Self, both: T, alone: T) -> Self {
        let with_first = if second.is_there { both } else { first.value };
        let value = if first.is_there { with_first } else { alone };
        Tangent { is_there: first.is_there | second.is_there, value }
    }
}

/// Returns the tangents that a function gives for each index. Written out, so that an index is a constant from the
/// start, and the array never lies in memory.
#[inline(always)]
fn each<T: Value, const K: usize>(of: impl Fn(usize) -> Tangent<T>) -> [Tangent<T>; K] {
    const { assert!(K <= MAX_TANGENTS, "a dual number has at most 8 tangents") };
    // A constant: written out at run time, the array is a loop for each step of a formula, and what the compiler does about
    // loops grows with the square of their number.
    let mut all = const { [Tangent::ABSENT; K] };
    duplicate! {
        [k; [0]; [1]; [2]; [3]; [4]; [5]; [6]; [7]]
        if const { k < K } {
            all[k] = of(k);
        }
    }
    all
}

impl<T: Value, const K: usize> Dual<T, K> {
    /// Returns a value without tangents.
    #[inline(always)]
    pub const fn constant(value: T) -> Self {
        Dual { value, tangents: const { [Tangent::ABSENT; K] } }
    }

    /// Returns the operand whose gradient is number `k`: its tangent is `seed`. A constant if `k` is `K` or more.
    #[inline(always)]
    pub fn variable(value: T, k: usize, seed: T) -> Self {
        Dual {
            value,
            tangents: each(|at| if at == k { Tangent { is_there: true, value: seed } } else { Tangent::ABSENT }),
        }
    }

    /// The value.
    #[inline(always)]
    pub const fn value(self) -> T {
        self.value
    }

    /// Returns the derivative by variable `k` times its seed; 0 if the value does not depend on it.
    #[inline(always)]
    pub fn gradient(self, k: usize) -> T {
        if k < K { self.tangents[k].or_zero() } else { T::ZERO }
    }

    /// True if the value may depend on variable `k`.
    #[inline(always)]
    pub fn has_gradient(self, k: usize) -> bool {
        k < K && self.tangents[k].is_there
    }

    /// True if there is any tangent.
    #[inline(always)]
    fn is_variable(self) -> bool {
        let mut any = false;
        duplicate! {
            [k; [0]; [1]; [2]; [3]; [4]; [5]; [6]; [7]]
            if const { k < K } {
                any |= self.tangents[k].is_there;
            }
        }
        any
    }

    /// Applies a function to the value and a rule to each tangent. The value comes last: if it is unused, no rare path
    /// of a rule shares work with it, and it is not kept alive for all elements.
    #[inline(always)]
    fn then(self, value: impl FnOnce(T) -> T, rule: impl Fn(T) -> T) -> Self {
        let tangents = each(|k| self.tangents[k].map(&rule));
        Dual { value: value(self.value), tangents }
    }

    /// Applies a function and a rule to two values, like [`Dual::then`].
    #[inline(always)]
    fn with(
        self,
        other: Self,
        value: impl FnOnce(T, T) -> T,
        rule: impl Fn(Tangent<T>, Tangent<T>) -> Tangent<T>,
    ) -> Self {
        let tangents = each(|k| rule(self.tangents[k], other.tangents[k]));
        Dual { value: value(self.value, other.value), tangents }
    }
}
