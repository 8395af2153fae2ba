//! Every op of one operand.
//!
//! Formulas and special values: PyTorch's (`torch.*`, `torch.nn.functional.*`). A name is PyTorch's, but for
//! `gelu_tanh`, which is `gelu(approximate='tanh')`.

use pointwise::__family::*;

/// `e^x`.
#[op(floats, ulp = 1, __rules(int_to_float), __grad(ulp = 3), grad_doc = "`grad e^x`.")]
pub fn exp<T: Real>(x: T) -> T {
    x.exp()
}

/// Natural logarithm; `-inf` at 0, NaN below.
#[op(floats, ulp = 1, __rules(int_to_float), __grad(exact), grad_doc = "`grad / x`.")]
pub fn log<T: Real>(x: T) -> T {
    x.ln()
}

/// Square root; -0 stays -0.
#[op(floats, ulp = 0.5, __rules(int_to_float), __grad(exact), grad_doc = "`grad / (2 sqrt(x))`.")]
pub fn sqrt<T: Real>(x: T) -> T {
    x.sqrt()
}

/// `1 / sqrt(x)`; infinite with the sign of x at 0.
#[op(floats, ulp = 2, __rules(int_to_float), __grad(ulp = 9), grad_doc = "`-grad / (2 x sqrt(x))`.")]
pub fn rsqrt<T: Real>(x: T) -> T {
    x.rsqrt()
}

/// Magnitude; the smallest signed integer wraps to itself.
#[op(floats, ints, bool, exact, __hints(clears_sign), __grad(exact), grad_doc = "`grad sign(x)`: 0 at 0.")]
pub fn abs<T: Num>(x: T) -> T {
    x.abs()
}

/// `-x`; integers wrap.
#[op(floats, ints, exact, __hints(flips_sign), __grad(exact), grad_doc = "`-grad`.")]
pub fn neg<T: Num>(x: T) -> T {
    -x
}

/// `1 / x`.
#[op(floats, ulp = 0.5, __rules(int_to_float), __grad(exact), grad_doc = "`-grad / x^2`.")]
pub fn reciprocal<T: Real>(x: T) -> T {
    x.recip()
}

/// -1, 0 or 1; 0 for NaN and -0.
#[op(floats, ints, bool, exact, __grad(exact, constant), grad_doc = "0.")]
pub fn sign<T: Num>(x: T) -> T {
    if x > T::ZERO {
        T::ONE
    } else if x < T::ZERO {
        -T::ONE
    } else {
        T::ZERO
    }
}

/// Sine of x radians, the argument reduced exactly whatever its size.
#[op(floats, ulp = 2, __rules(int_to_float), __hints(angle), __grad(ulp = 4, angle), grad_doc = "`grad cos(x)`.")]
pub fn sin<T: Real>(x: T) -> T {
    x.sin()
}

/// Cosine of x radians, the argument reduced exactly whatever its size.
#[op(floats, ulp = 2, __rules(int_to_float), __hints(angle), __grad(ulp = 4, angle), grad_doc = "`-grad sin(x)`.")]
pub fn cos<T: Real>(x: T) -> T {
    x.cos()
}

/// Towards minus infinity; integers unchanged.
#[op(floats, ints, exact, __grad(exact, constant), grad_doc = "0.")]
pub fn floor<T: Num>(x: T) -> T {
    x.floor()
}

/// Towards plus infinity; integers unchanged.
#[op(floats, ints, exact, __grad(exact, constant), grad_doc = "0.")]
pub fn ceil<T: Num>(x: T) -> T {
    x.ceil()
}

/// To nearest, ties to even; integers unchanged.
#[op(floats, ints, exact, __grad(exact, constant), grad_doc = "0.")]
pub fn round<T: Num>(x: T) -> T {
    x.round_ties_even()
}

/// `torch.round(x, decimals=d)`: at `decimals` digits behind the point (before it where negative), as
/// `rint(x 10^decimals) / 10^decimals` in f32; integers unchanged.
#[op(
    floats,
    ints,
    exact,
    __rules(copies_ints, whole_parameter),
    saves(x),
    __grad(exact, constant),
    grad_doc = "0, whatever the decimals."
)]
pub fn round_decimals<T: Num>(x: T, #[param(default = 0.0)] decimals: T) -> T {
    x.round_decimals(decimals)
}

/// Towards zero; integers unchanged.
#[op(floats, ints, exact, __grad(exact, constant), grad_doc = "0.")]
pub fn trunc<T: Num>(x: T) -> T {
    x.trunc()
}

/// Error function.
#[op(floats, ulp = 2, __rules(int_to_float), __grad(ulp = 5), grad_doc = "`grad 2 / sqrt(pi) e^(-x^2)`.")]
pub fn erf<T: Real>(x: T) -> T {
    x.erf()
}

/// `ln(1 + x)`, accurate near 0.
#[op(floats, ulp = 1, __rules(int_to_float), __grad(exact), grad_doc = "`grad / (1 + x)`.")]
pub fn log1p<T: Real>(x: T) -> T {
    x.ln_1p()
}

/// `e^x - 1`, accurate near 0.
#[op(floats, ulp = 1, __rules(int_to_float), __grad(ulp = 3), grad_doc = "`grad e^x`.")]
pub fn expm1<T: Real>(x: T) -> T {
    x.exp_m1()
}

/// `max(x, 0)`; NaN stays NaN.
#[op(floats, ints, exact, __grad(exact), grad_doc = "`x <= 0 ? 0 : grad`: 0 at 0, grad for NaN.")]
pub fn relu<T: Num>(x: T) -> T {
    x.relu()
}

/// `x (1 + erf(x / sqrt 2)) / 2` (Hendrycks and Gimpel 2016), accurate in the negative tail.
#[op(floats, ulp = 3, grad_ulp = 6, grad_doc = "`grad (cdf(x) + x pdf(x))` of the normal distribution.")]
pub fn gelu<T: Real>(x: T) -> T {
    x.gelu()
}

/// `x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) / 2`: `gelu(approximate='tanh')`.
#[op(
    floats,
    ulp = 3,
    grad_ulp = 6,
    grad_doc = "The gradient of `gelu(approximate='tanh')`; as in PyTorch NaN where `x^2` overflows."
)]
pub fn gelu_tanh<T: Real>(x: T) -> T {
    x.gelu_tanh()
}

/// `x / (1 + e^-x)`.
#[op(floats, ulp = 3, grad_ulp = 6, grad_doc = "`grad s (1 + x (1 - s))` with `s = sigmoid(x)`.")]
pub fn silu<T: Real>(x: T) -> T {
    x.silu()
}

/// `1 / (1 + e^-x)`.
#[op(floats, ulp = 3, __rules(int_to_float), __grad(ulp = 5), grad_doc = "`grad s (1 - s)` with `s = sigmoid(x)`.")]
pub fn sigmoid<T: Real>(x: T) -> T {
    x.sigmoid()
}

/// Hyperbolic tangent.
#[op(
    floats,
    ulp = 2,
    __rules(int_to_float),
    __grad(ulp = 5),
    grad_doc = "`grad (1 - tanh(x)^2)`, as `grad 4 s (1 - s)` with `s = sigmoid(-2 |x|)`, which does not cancel."
)]
pub fn tanh<T: Real>(x: T) -> T {
    x.tanh()
}

/// `x > 0 ? x : x * negative_slope`.
#[op(
    floats,
    ulp = 0.5,
    __grad(exact),
    grad_doc = "`x > 0 ? grad : grad * negative_slope`: the slope at 0 and for NaN."
)]
pub fn leaky_relu<T: Real>(x: T, #[param(default = 0.01)] negative_slope: T) -> T {
    if x > T::ZERO { x } else { x * negative_slope }
}

/// `x > 0 ? x : alpha (e^x - 1)`.
#[op(
    floats,
    ulp = 3,
    grad = elu_gradient,
    __grad(ulp = 3),
    grad_doc = "`x <= 0 ? grad alpha e^x : grad`; grad for NaN. `alpha` may be negative.",
)]
pub fn elu<T: Real>(x: T, #[param(default = 1.0)] alpha: T) -> T {
    x.if_above(T::ZERO, x, alpha * x.exp_m1_negative())
}

/// Returns the gradient of [`elu()`].
///
/// By hand: of NaN the formula's own gradient is NaN.
#[inline(always)]
fn elu_gradient<T: Real>(grad: T, x: T, alpha: T) -> T {
    let below = (grad * alpha).times_exp(x);
    if x <= T::ZERO { below } else { grad }
}

/// `s (x > 0 ? x : a (e^x - 1))` with the constants of Klambauer et al. 2017.
#[op(
    floats,
    ulp = 3,
    grad = selu_gradient,
    __grad(ulp = 3),
    grad_doc = "`x <= 0 ? grad s a e^x : grad s`, the constants those of `selu`.",
)]
pub fn selu<T: Real>(x: T) -> T {
    let (a, s) = (1.673_263_242_354_377_2, 1.050_700_987_355_480_5);
    x.if_above(T::ZERO, T::constant(s) * x, T::constant(a * s) * x.exp_m1_negative())
}

/// Returns the gradient of [`selu()`].
///
/// By hand: as `elu_backward`.
#[inline(always)]
fn selu_gradient<T: Real>(grad: T, x: T) -> T {
    let (a, s) = (1.673_263_242_354_377_2, 1.050_700_987_355_480_5);
    let below = (grad * T::constant(a * s)).times_exp(x);
    if x <= T::ZERO { below } else { grad * T::constant(s) }
}

/// `x min(max(x + 3, 0), 6) / 6`, multiplied in PyTorch's order: infinite above 5.7e37 in f32.
#[op(
    floats,
    ulp = 3,
    grad = hardswish_gradient,
    __grad(exact),
    grad_doc = "`x <= -3 ? 0 : x < 3 ? grad (x / 3 + 1/2) : grad`.",
)]
pub fn hardswish<T: Real>(x: T) -> T {
    let gate = (x + T::constant(3.0)).hardtanh(T::ZERO, T::constant(6.0));
    (x * gate).in_range() * T::constant(1.0 / 6.0)
}

/// Returns the gradient of [`hardswish()`].
///
/// By hand: the formula's product overflows, and `x + 3` is rounded.
#[inline(always)]
fn hardswish_gradient<T: Real>(grad: T, x: T) -> T {
    let three = T::constant(3.0);
    let inside = grad * (x / three + T::constant(0.5));
    if x <= -three {
        T::ZERO
    } else if x < three {
        inside
    } else {
        grad
    }
}

/// `min(max(x + 3, 0), 6) / 6`.
#[op(floats, ulp = 3, grad = hardsigmoid_gradient, __grad(exact), grad_doc = "`-3 < x < 3 ? grad / 6 : 0`.")]
pub fn hardsigmoid<T: Real>(x: T) -> T {
    (x + T::constant(3.0)).hardtanh(T::ZERO, T::constant(6.0)) * T::constant(1.0 / 6.0)
}

/// Returns the gradient of [`hardsigmoid()`].
///
/// By hand: the formula's `x + 3` is rounded, and of NaN its own gradient is not 0.
#[inline(always)]
fn hardsigmoid_gradient<T: Real>(grad: T, x: T) -> T {
    let three = T::constant(3.0);
    if (x > -three) & (x < three) { grad * T::constant(1.0 / 6.0) } else { T::ZERO }
}

/// `min(max(x, min_val), max_val)`; NaN stays NaN.
#[op(floats, ints, exact, __grad(exact), grad_doc = "`x <= min_val or x >= max_val ? 0 : grad`; grad for NaN.")]
pub fn hardtanh<T: Num>(x: T, #[param(default = -1.0)] min_val: T, #[param(default = 1.0)] max_val: T) -> T {
    x.hardtanh(min_val, max_val)
}

/// `beta x > threshold ? x : ln(1 + e^(beta x)) / beta`. The bound is for a `beta` that is a power of two: with
/// another the rounding of `beta x` is added, as in PyTorch.
#[op(
    floats,
    ulp = 3,
    grad = softplus_gradient,
    __grad(ulp = 5),
    grad_doc = "`beta x > threshold ? grad : grad sigmoid(beta x)`.",
)]
pub fn softplus<T: Real>(x: T, #[param(default = 1.0)] beta: T, #[param(default = 20.0)] threshold: T) -> T {
    let t = x * beta;
    t.if_above(threshold, x, t.softplus() * beta.recip())
}

/// Returns the gradient of [`softplus()`].
///
/// By hand: the formula's own gradient multiplies and divides by `beta`.
#[inline(always)]
fn softplus_gradient<T: Real>(grad: T, x: T, beta: T, threshold: T) -> T {
    let t = x * beta;
    t.if_above(threshold, grad, grad.times_sigmoid(t))
}

/// `x tanh(ln(1 + e^x))` (Misra 2019).
#[op(
    floats,
    ulp = 3,
    grad_ulp = 8,
    grad_doc = "`grad (t + x s (1 - t^2))` with `t = tanh(ln(1 + e^x))` and `s = sigmoid(x)`."
)]
pub fn mish<T: Real>(x: T) -> T {
    x.mish()
}

/// `x == 0`; false for NaN.
#[op(floats, ints, bool, exact, __hints(truths))]
pub fn logical_not<T: Value>(x: T) -> bool {
    !x.truth()
}

/// Every bit flipped; bool: not.
#[op(ints, bool, exact)]
pub fn bitwise_not<T: Bits>(x: T) -> T {
    !x
}

/// True if x is NaN; false for integers and bool.
#[op(floats, ints, bool, exact)]
pub fn isnan<T: Value>(x: T) -> bool {
    x.is_nan()
}

/// True if x is infinite; false for integers, bool and f8e4m3.
#[op(floats, ints, bool, exact)]
pub fn isinf<T: Value>(x: T) -> bool {
    x.is_infinite()
}

/// Neither NaN nor infinite.
#[op(floats, ints, bool, exact)]
pub fn isfinite<T: Value>(x: T) -> bool {
    !x.is_nan() & !x.is_infinite()
}

/// NaN and the infinities replaced; by default with 0 and the largest and lowest finite value of the element type.
#[op(
    floats,
    ints,
    bool,
    exact,
    __rules(copies_ints),
    saves(x),
    grad = nan_to_num_gradient,
    __grad(exact),
    grad_doc = "`grad` where x is finite, else `grad * 0`.",
)]
pub fn nan_to_num<T: Value>(
    x: T,
    #[param(default = 0.0)] nan: T,
    #[param(default = f64::MAX)] posinf: T,
    #[param(default = f64::MIN)] neginf: T,
) -> T {
    let infinity = if x > T::ZERO { posinf } else { neginf };
    if x.is_nan() {
        nan
    } else if x.is_infinite() {
        infinity
    } else {
        x
    }
}

/// Returns the gradient of [`nan_to_num()`].
///
/// By hand: the formula's own gradient is 0 where this is `grad * 0`, NaN for an infinite `grad`.
#[inline(always)]
fn nan_to_num_gradient<T: Real>(grad: T, x: T) -> T {
    grad * if x.is_nan() | x.is_infinite() { T::ZERO } else { T::ONE }
}

/// `min(max(x, min), max)`: `max` where `min > max`; NaN in x or in a bound gives NaN, in a bound given alone, too, where PyTorch's CPU returns x. A side left out is open.
#[op(floats, ints, exact, __grad(exact), grad_doc = "`min <= x <= max ? grad : 0`: grad at the bounds, 0 for NaN.")]
pub fn clamp<T: Num>(
    x: T,
    #[param(default = f64::NEG_INFINITY)] min: T,
    #[param(default = f64::INFINITY)] max: T,
) -> T {
    x.clamp(min, max)
}
