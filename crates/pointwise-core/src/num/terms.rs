//! `f64` with the size of what rounding errors come from: how much of an error a formula may have.

use core::cmp::Ordering;
use core::ops::{Add, Div, Mul, Neg, Sub};

use duplicate::duplicate_item;

use super::{Num, Real, Value};
use crate::dual::Dual;
use crate::op::Word;

/// A value in f64, and what f32 steps to it could lose.
///
/// A step of f32 has an error of a part of its result. Where terms cancel, that is a large part of their sum: `size` is
/// then larger than the value. Later steps pass on the size of the terms. Operands are exact: their size is
/// 0, and their sum loses nothing but its own rounding.
///
/// The argument of a function counts where it is a sum that has cancelled, and of the logarithm, sine and cosine always:
/// these have zeros where their argument has none, so that its error is a large part of them.
#[derive(Clone, Copy, Debug, Default)]
pub struct Terms {
    /// The value.
    pub value: f64,
    /// The size of the terms that it comes from; 0 if it is exact.
    pub size: f64,
    /// The largest finite magnitude of any step: beyond the range of f32, the steps of f32 give an infinity.
    pub peak: f64,
    /// True if a step is below the normal numbers of f32: the functions of narrow types take it for 0.
    pub vanishes: bool,
    /// The lowest step, or 0: types without a sign do not have it if it is negative.
    pub low: f64,
}

/// The size of a value that may be the next whole number: more than an error of a few parts in 2^24 of it is 1.
const JUMP: f64 = (1 << 24) as f64;

/// The smallest normal number of f32.
const NORMAL: f64 = f32::MIN_POSITIVE as f64;

/// How near to a jump an error may lead, as a part of the size.
const NEAR: f64 = 1.0 / (1 << 20) as f64;

impl Terms {
    /// An operand, or a parameter.
    pub const fn exact(value: f64) -> Terms {
        Terms { value, size: 0.0, peak: 0.0, vanishes: false, low: 0.0 }
    }

    /// The result of a step on others, from terms of some size.
    fn step(value: f64, size: f64, from: &[Terms]) -> Terms {
        let magnitude = value.abs();
        // The rounding of a subnormal number is that of the smallest normal one.
        let own = if magnitude == 0.0 { 0.0 } else { magnitude.max(NORMAL) };
        let peak = if magnitude.is_finite() { magnitude } else { 0.0 };
        let vanishes = magnitude != 0.0 && magnitude < NORMAL;
        let own = Terms { value, size: size.max(own), peak, vanishes, low: value.min(0.0) };
        from.iter().fold(own, |own, from| own.after(from))
    }

    /// The range of steps with those before.
    fn after(self, from: &Terms) -> Terms {
        Terms {
            peak: self.peak.max(from.peak),
            vanishes: self.vanishes || from.vanishes,
            low: self.low.min(from.low),
            ..self
        }
    }

    /// By how much the size is more than the value.
    fn excess(self) -> f64 {
        (self.size - self.value.abs()).max(0.0)
    }

    /// A function, by its value and slope. `errors` is the size of the argument's that counts.
    fn function(self, errors: f64, f: impl Fn(Dual<f64, 1>) -> Dual<f64, 1>) -> Terms {
        let y = f(Dual::variable(self.value, 0, 1.0));
        Terms::step(y.value(), scaled(errors, y.gradient(0)), &[self])
    }

    /// A function of two values, as [`Terms::function`].
    fn with(self, other: Terms, f: impl Fn(Dual<f64, 2>, Dual<f64, 2>) -> Dual<f64, 2>) -> Terms {
        let y = f(Dual::variable(self.value, 0, 1.0), Dual::variable(other.value, 1, 1.0));
        let size = scaled(self.excess(), y.gradient(0)).max(scaled(other.excess(), y.gradient(1)));
        Terms::step(y.value(), size, &[self, other])
    }

    /// True if a number of steps, `at`, may be the next whole one, as far as the value is known.
    fn may_jump(self, at: f64, step: f64) -> bool {
        self.size > 0.0 && (at - at.round()).abs() <= NEAR * self.size / step.abs()
    }

    /// A whole number of steps of a value, the next one if `at` is near it.
    fn whole(self, value: f64, at: f64, step: f64) -> Terms {
        Terms::step(value, if self.may_jump(at, step) { JUMP * step.abs() } else { 0.0 }, &[self])
    }

    /// A quotient without its rounding, for what is a whole number of it.
    fn quotient(self, divisor: Terms) -> Terms {
        let (a, b) = (self.value, divisor.value);
        let exact = self.size.max(divisor.size) == 0.0;
        if exact { Terms::exact(a / b) } else { self / divisor }
    }
}

/// A size times a factor; no size stays none.
fn scaled(size: f64, factor: f64) -> f64 {
    if size == 0.0 { 0.0 } else { size * factor.abs() }
}

/// By the values.
impl PartialEq for Terms {
    fn eq(&self, other: &Self) -> bool {
        self.value == other.value
    }
}

/// By the values.
impl PartialOrd for Terms {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        self.value.partial_cmp(&other.value)
    }
}

/// A parameter is exact.
impl Word for Terms {
    fn to_word(self) -> u64 {
        self.value.to_word()
    }
    fn from_word(word: u64) -> Self {
        Terms::exact(f64::from_word(word))
    }
}

impl Value for Terms {
    const ZERO: Self = Terms::exact(0.0);
    const ONE: Self = Terms::exact(1.0);
    fn whole(number: i64) -> Self {
        Terms::exact(number as f64)
    }
    fn is_nan(self) -> bool {
        self.value.is_nan()
    }
    fn is_infinite(self) -> bool {
        self.value.is_infinite()
    }
}

#[duplicate_item(Operator method; [Add] [add]; [Sub] [sub])]
impl Operator for Terms {
    type Output = Terms;
    fn method(self, other: Terms) -> Terms {
        Terms::step(self.value.method(other.value), self.size.max(other.size), &[self, other])
    }
}

impl Mul for Terms {
    type Output = Terms;
    fn mul(self, other: Terms) -> Terms {
        let size = scaled(self.size, other.value).max(scaled(other.size, self.value));
        Terms::step(self.value * other.value, size, &[self, other])
    }
}

impl Div for Terms {
    type Output = Terms;
    fn div(self, divisor: Terms) -> Terms {
        let quotient = self.value / divisor.value;
        let size = scaled(self.size, 1.0 / divisor.value).max(scaled(divisor.size, quotient / divisor.value));
        Terms::step(quotient, size, &[self, divisor])
    }
}

impl Neg for Terms {
    type Output = Terms;
    fn neg(self) -> Terms {
        Terms { value: -self.value, low: self.low.min(-self.value), ..self }
    }
}

impl Num for Terms {
    fn abs(self) -> Self {
        Terms { value: self.value.abs(), ..self }
    }
    #[duplicate_item(name; [maximum]; [minimum])]
    fn name(self, other: Self) -> Self {
        let value = Num::name(self.value, other.value);
        let chosen = if value == self.value { self } else { other };
        Terms { value, size: chosen.size, ..self.after(&other) }
    }
    #[duplicate_item(name; [floor]; [ceil]; [trunc])]
    fn name(self) -> Self {
        self.whole(self.value.name(), self.value, 1.0)
    }
    fn round_ties_even(self) -> Self {
        self.whole(self.value.round_ties_even(), self.value + 0.5, 1.0)
    }
    fn round_decimals(self, decimals: Self) -> Self {
        let step = 10.0_f64.powf(-decimals.value);
        self.whole(Num::round_decimals(self.value, decimals.value), self.value / step + 0.5, step)
    }
    fn remainder(self, divisor: Self) -> Self {
        let (quotient, b) = (self.quotient(divisor), divisor.value);
        let jump = if quotient.may_jump(quotient.value, 1.0) { JUMP * b.abs() } else { 0.0 };
        let size = scaled(divisor.size, quotient.value).max(self.size).max(jump);
        Terms::step(Num::remainder(self.value, b), size, &[self, divisor])
    }
    #[duplicate_item(name; [floor_divide]; [trunc_divide])]
    fn name(self, divisor: Self) -> Self {
        let quotient = self.quotient(divisor);
        quotient.whole(Num::name(self.value, divisor.value), quotient.value, 1.0)
    }
    fn pow(self, exponent: Self) -> Self {
        self.with(exponent, Num::pow)
    }
    fn scaled_add(self, scale: Self, addend: Self) -> Self {
        self.mul_add(scale, addend)
    }
}

impl Real for Terms {
    fn constant(value: f64) -> Self {
        let is_exact = f64::from(value as f32) == value || value.is_nan();
        Terms { size: if is_exact { 0.0 } else { value.abs() }, ..Terms::exact(value) }
    }
    fn to_f64(self) -> f64 {
        self.value
    }
    fn in_range(self) -> Self {
        Terms { value: self.value.in_range(), ..self }
    }
    fn rounded_to(self, dtype: crate::DType) -> Self {
        let value = self.value.rounded_to(dtype);
        // Near the middle of two elements, steps of f32 may lead to the other one.
        let near = self.size.max(self.value.abs()) / 4_194_304.0;
        let [below, above] = [self.value - near, self.value + near].map(|x| x.rounded_to(dtype));
        let size = if dtype.size() < 4 { self.size.max((above - below) * 262_144.0) } else { self.size };
        Terms { value, size, ..self }
    }
    fn mul_add(self, a: Self, b: Self) -> Self {
        self * a + b
    }
    fn if_above(self, limit: Self, yes: Self, no: Self) -> Self {
        if self > limit { yes } else { no }
    }
    #[duplicate_item(name; [over_twice_sqrt]; [times_exp]; [times_sigmoid])]
    fn name(self, x: Self) -> Self {
        self.with(x, Real::name)
    }
    #[duplicate_item(
        name; [sqrt]; [rsqrt]; [recip]; [exp]; [exp_negative]; [exp_negative_16]; [exp_m1]; [exp_m1_negative]; [ln_1p]; [tanh]; [erf]; [normal_cdf];
        [normal_density]; [sigmoid]; [softplus]; [silu]; [mish]; [mish_derivative]; [gelu]; [gelu_tanh]
    )]
    fn name(self) -> Self {
        self.function(self.excess(), Real::name)
    }
    fn ln(self) -> Self {
        self.function(self.size, Real::ln)
    }
    #[duplicate_item(name; [sin]; [cos])]
    fn name(self) -> Self {
        let y = self.function(self.size, Real::name);
        // Where the slope is 0, the square of the error counts. The phase of a large angle may be any.
        let square = (self.size * self.size / JUMP).min(JUMP);
        Terms { size: y.size.max(square), ..y }
    }
}
