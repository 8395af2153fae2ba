//! The ops as kernel objects, whose strategy, threads and stream can be set.
//!
//! Written from the ops' data by `POINTWISE_BLESS=1 cargo test -p tests --test docs`.

use super::formulas;
use crate::Number;
use crate::kernel::{BinaryKernel, GatedGradientsKernel, GatedKernel, GradientsKernel, TernaryKernel, UnaryKernel};

/// `e^x`.
#[must_use]
pub fn exp() -> UnaryKernel {
    formulas::Exp::def().unary_with(&[])
}

/// Natural logarithm; `-inf` at 0, NaN below.
#[must_use]
pub fn log() -> UnaryKernel {
    formulas::Log::def().unary_with(&[])
}

/// Square root; -0 stays -0.
#[must_use]
pub fn sqrt() -> UnaryKernel {
    formulas::Sqrt::def().unary_with(&[])
}

/// `1 / sqrt(x)`; infinite with the sign of x at 0.
#[must_use]
pub fn rsqrt() -> UnaryKernel {
    formulas::Rsqrt::def().unary_with(&[])
}

/// Magnitude; the smallest signed integer wraps to itself.
#[must_use]
pub fn abs() -> UnaryKernel {
    formulas::Abs::def().unary_with(&[])
}

/// `-x`; integers wrap.
#[must_use]
pub fn neg() -> UnaryKernel {
    formulas::Neg::def().unary_with(&[])
}

/// `1 / x`.
#[must_use]
pub fn reciprocal() -> UnaryKernel {
    formulas::Reciprocal::def().unary_with(&[])
}

/// -1, 0 or 1; 0 for NaN and -0.
#[must_use]
pub fn sign() -> UnaryKernel {
    formulas::Sign::def().unary_with(&[])
}

/// Sine of x radians, the argument reduced exactly whatever its size.
#[must_use]
pub fn sin() -> UnaryKernel {
    formulas::Sin::def().unary_with(&[])
}

/// Cosine of x radians, the argument reduced exactly whatever its size.
#[must_use]
pub fn cos() -> UnaryKernel {
    formulas::Cos::def().unary_with(&[])
}

/// Towards minus infinity; integers unchanged.
#[must_use]
pub fn floor() -> UnaryKernel {
    formulas::Floor::def().unary_with(&[])
}

/// Towards plus infinity; integers unchanged.
#[must_use]
pub fn ceil() -> UnaryKernel {
    formulas::Ceil::def().unary_with(&[])
}

/// To nearest, ties to even; integers unchanged.
#[must_use]
pub fn round() -> UnaryKernel {
    formulas::Round::def().unary_with(&[])
}

/// `torch.round(x, decimals=d)`: at `decimals` digits behind the point (before it where negative), as
/// `rint(x 10^decimals) / 10^decimals` in f32; integers unchanged.
#[must_use]
pub fn round_decimals(decimals: impl Into<Number>) -> UnaryKernel {
    formulas::RoundDecimals::def().unary_with(&[decimals.into()])
}

/// Towards zero; integers unchanged.
#[must_use]
pub fn trunc() -> UnaryKernel {
    formulas::Trunc::def().unary_with(&[])
}

/// Error function.
#[must_use]
pub fn erf() -> UnaryKernel {
    formulas::Erf::def().unary_with(&[])
}

/// `ln(1 + x)`, accurate near 0.
#[must_use]
pub fn log1p() -> UnaryKernel {
    formulas::Log1p::def().unary_with(&[])
}

/// `e^x - 1`, accurate near 0.
#[must_use]
pub fn expm1() -> UnaryKernel {
    formulas::Expm1::def().unary_with(&[])
}

/// `max(x, 0)`; NaN stays NaN.
#[must_use]
pub fn relu() -> UnaryKernel {
    formulas::Relu::def().unary_with(&[])
}

/// `x (1 + erf(x / sqrt 2)) / 2` (Hendrycks and Gimpel 2016), accurate in the negative tail.
#[must_use]
pub fn gelu() -> UnaryKernel {
    formulas::Gelu::def().unary_with(&[])
}

/// `x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) / 2`: `gelu(approximate='tanh')`.
#[must_use]
pub fn gelu_tanh() -> UnaryKernel {
    formulas::GeluTanh::def().unary_with(&[])
}

/// `x / (1 + e^-x)`.
#[must_use]
pub fn silu() -> UnaryKernel {
    formulas::Silu::def().unary_with(&[])
}

/// `1 / (1 + e^-x)`.
#[must_use]
pub fn sigmoid() -> UnaryKernel {
    formulas::Sigmoid::def().unary_with(&[])
}

/// Hyperbolic tangent.
#[must_use]
pub fn tanh() -> UnaryKernel {
    formulas::Tanh::def().unary_with(&[])
}

/// `x > 0 ? x : x * negative_slope`.
#[must_use]
pub fn leaky_relu(negative_slope: impl Into<Number>) -> UnaryKernel {
    formulas::LeakyRelu::def().unary_with(&[negative_slope.into()])
}

/// `x > 0 ? x : alpha (e^x - 1)`.
#[must_use]
pub fn elu(alpha: impl Into<Number>) -> UnaryKernel {
    formulas::Elu::def().unary_with(&[alpha.into()])
}

/// `s (x > 0 ? x : a (e^x - 1))` with the constants of Klambauer et al. 2017.
#[must_use]
pub fn selu() -> UnaryKernel {
    formulas::Selu::def().unary_with(&[])
}

/// `x min(max(x + 3, 0), 6) / 6`, multiplied in PyTorch's order: infinite above 5.7e37 in f32.
#[must_use]
pub fn hardswish() -> UnaryKernel {
    formulas::Hardswish::def().unary_with(&[])
}

/// `min(max(x + 3, 0), 6) / 6`.
#[must_use]
pub fn hardsigmoid() -> UnaryKernel {
    formulas::Hardsigmoid::def().unary_with(&[])
}

/// `min(max(x, min_val), max_val)`; NaN stays NaN.
#[must_use]
pub fn hardtanh(min_val: impl Into<Number>, max_val: impl Into<Number>) -> UnaryKernel {
    formulas::Hardtanh::def().unary_with(&[min_val.into(), max_val.into()])
}

/// `beta x > threshold ? x : ln(1 + e^(beta x)) / beta`. The bound is for a `beta` that is a power of two: with
/// another the rounding of `beta x` is added, as in PyTorch.
#[must_use]
pub fn softplus(beta: impl Into<Number>, threshold: impl Into<Number>) -> UnaryKernel {
    formulas::Softplus::def().unary_with(&[beta.into(), threshold.into()])
}

/// `x tanh(ln(1 + e^x))` (Misra 2019).
#[must_use]
pub fn mish() -> UnaryKernel {
    formulas::Mish::def().unary_with(&[])
}

/// `x == 0`; false for NaN.
#[must_use]
pub fn logical_not() -> UnaryKernel {
    formulas::LogicalNot::def().unary_with(&[])
}

/// Every bit flipped; bool: not.
#[must_use]
pub fn bitwise_not() -> UnaryKernel {
    formulas::BitwiseNot::def().unary_with(&[])
}

/// True if x is NaN; false for integers and bool.
#[must_use]
pub fn isnan() -> UnaryKernel {
    formulas::Isnan::def().unary_with(&[])
}

/// True if x is infinite; false for integers, bool and f8e4m3.
#[must_use]
pub fn isinf() -> UnaryKernel {
    formulas::Isinf::def().unary_with(&[])
}

/// Neither NaN nor infinite.
#[must_use]
pub fn isfinite() -> UnaryKernel {
    formulas::Isfinite::def().unary_with(&[])
}

/// NaN and the infinities replaced; by default with 0 and the largest and lowest finite value of the element type.
#[must_use]
pub fn nan_to_num(nan: impl Into<Number>, posinf: impl Into<Number>, neginf: impl Into<Number>) -> UnaryKernel {
    formulas::NanToNum::def().unary_with(&[nan.into(), posinf.into(), neginf.into()])
}

/// `min(max(x, min), max)`: `max` where `min > max`; NaN in x or in a bound gives NaN, in a bound given alone, too, where PyTorch's CPU returns x. A side left out is open.
#[must_use]
pub fn clamp(min: impl Into<Number>, max: impl Into<Number>) -> UnaryKernel {
    formulas::Clamp::def().unary_with(&[min.into(), max.into()])
}

/// `a + alpha b`, with one rounding to f32; bool: or.
#[must_use]
pub fn add(alpha: impl Into<Number>) -> BinaryKernel {
    formulas::Add::def().binary_with(&[alpha.into()])
}

/// `a - alpha b`, with one rounding to f32.
#[must_use]
pub fn sub(alpha: impl Into<Number>) -> BinaryKernel {
    formulas::Sub::def().binary_with(&[alpha.into()])
}

/// `a b`; bool: and.
#[must_use]
pub fn mul() -> BinaryKernel {
    formulas::Mul::def().binary_with(&[])
}

/// `a / b`; infinite or NaN for a zero divisor, as in IEEE 754.
#[must_use]
pub fn div() -> BinaryKernel {
    formulas::Div::def().binary_with(&[])
}

/// The quotient, rounded to f32, cut towards zero; integers: that of C, 0 for a zero divisor.
#[must_use]
pub fn div_trunc() -> BinaryKernel {
    formulas::DivTrunc::def().binary_with(&[])
}

/// The quotient rounded down, through the exact remainder; integers: 0 for a zero divisor.
#[must_use]
pub fn floor_divide() -> BinaryKernel {
    formulas::FloorDivide::def().binary_with(&[])
}

/// The remainder of the quotient rounded down, exact but for one rounding; the sign of b. Integers: 0 for a zero
/// divisor.
#[must_use]
pub fn remainder() -> BinaryKernel {
    formulas::Remainder::def().binary_with(&[])
}

/// `a` to the power `b`, with the special cases of C99; integers wrap, and a negative exponent leaves 1, -1 or 0.
#[must_use]
pub fn pow() -> BinaryKernel {
    formulas::Pow::def().binary_with(&[])
}

/// The larger; NaN if either is NaN; +0 above -0; bool: or.
#[must_use]
pub fn maximum() -> BinaryKernel {
    formulas::Maximum::def().binary_with(&[])
}

/// The smaller; NaN if either is NaN; -0 below +0; bool: and.
#[must_use]
pub fn minimum() -> BinaryKernel {
    formulas::Minimum::def().binary_with(&[])
}

/// Each bit and; bool: and.
#[must_use]
pub fn bitwise_and() -> BinaryKernel {
    formulas::BitwiseAnd::def().binary_with(&[])
}

/// Each bit or; bool: or.
#[must_use]
pub fn bitwise_or() -> BinaryKernel {
    formulas::BitwiseOr::def().binary_with(&[])
}

/// Each bit exclusive or; bool: not equal.
#[must_use]
pub fn bitwise_xor() -> BinaryKernel {
    formulas::BitwiseXor::def().binary_with(&[])
}

/// `x > 0 ? x : weight x` (He et al. 2015); one weight for all, or one for each of dimension 1 of x.
#[must_use]
pub fn prelu() -> BinaryKernel {
    formulas::Prelu::def().binary_with(&[])
}

/// `a == b`; false with NaN, and +0 equals -0.
#[must_use]
pub fn eq() -> BinaryKernel {
    formulas::Eq::def().binary_with(&[])
}

/// `a != b`; true with NaN.
#[must_use]
pub fn ne() -> BinaryKernel {
    formulas::Ne::def().binary_with(&[])
}

/// `a > b`; false with NaN.
#[must_use]
pub fn gt() -> BinaryKernel {
    formulas::Gt::def().binary_with(&[])
}

/// `a < b`; false with NaN.
#[must_use]
pub fn lt() -> BinaryKernel {
    formulas::Lt::def().binary_with(&[])
}

/// `a >= b`; false with NaN.
#[must_use]
pub fn ge() -> BinaryKernel {
    formulas::Ge::def().binary_with(&[])
}

/// `a <= b`; false with NaN.
#[must_use]
pub fn le() -> BinaryKernel {
    formulas::Le::def().binary_with(&[])
}

/// Neither is zero; NaN counts as true.
#[must_use]
pub fn logical_and() -> BinaryKernel {
    formulas::LogicalAnd::def().binary_with(&[])
}

/// Not both are zero; NaN counts as true.
#[must_use]
pub fn logical_or() -> BinaryKernel {
    formulas::LogicalOr::def().binary_with(&[])
}

/// `silu(gate) * value`: SwiGLU (Shazeer 2020).
#[must_use]
pub fn silu_and_mul() -> GatedKernel {
    formulas::SiluAndMul::def().gated_with(&[])
}

/// `gelu(gate) * value`, by the error function: GEGLU (Shazeer 2020).
#[must_use]
pub fn gelu_and_mul() -> GatedKernel {
    formulas::GeluAndMul::def().gated_with(&[])
}

/// `gelu(gate, approximate='tanh') * value`.
#[must_use]
pub fn gelu_tanh_and_mul() -> GatedKernel {
    formulas::GeluTanhAndMul::def().gated_with(&[])
}

/// `condition ? a : b`.
#[must_use]
pub fn where_cond() -> TernaryKernel {
    formulas::Where::def().ternary_with(&[])
}

/// From a to b: `weight < 1/2 ? a + weight (b - a) : b - (b - a) (1 - weight)` by magnitude of the weight, with
/// fused multiply-adds in f32.
#[must_use]
pub fn lerp() -> TernaryKernel {
    formulas::Lerp::def().ternary_with(&[])
}

/// `clamp` with a bound for each element: `min(max(x, min), max)`, so `max` where `min > max`; NaN in any gives
/// NaN.
#[must_use]
pub fn clamp_tensor() -> TernaryKernel {
    formulas::ClampTensor::def().ternary_with(&[])
}

/// `grad e^x`.
#[must_use]
pub fn exp_backward() -> BinaryKernel {
    formulas::ExpBackward::def().binary_with(&[])
}

/// `grad / x`.
#[must_use]
pub fn log_backward() -> BinaryKernel {
    formulas::LogBackward::def().binary_with(&[])
}

/// `grad / (2 sqrt(x))`.
#[must_use]
pub fn sqrt_backward() -> BinaryKernel {
    formulas::SqrtBackward::def().binary_with(&[])
}

/// `-grad / (2 x sqrt(x))`.
#[must_use]
pub fn rsqrt_backward() -> BinaryKernel {
    formulas::RsqrtBackward::def().binary_with(&[])
}

/// `grad sign(x)`: 0 at 0.
#[must_use]
pub fn abs_backward() -> BinaryKernel {
    formulas::AbsBackward::def().binary_with(&[])
}

/// `-grad`.
#[must_use]
pub fn neg_backward() -> BinaryKernel {
    formulas::NegBackward::def().binary_with(&[])
}

/// `-grad / x^2`.
#[must_use]
pub fn reciprocal_backward() -> BinaryKernel {
    formulas::ReciprocalBackward::def().binary_with(&[])
}

/// 0.
#[must_use]
pub fn sign_backward() -> BinaryKernel {
    formulas::SignBackward::def().binary_with(&[])
}

/// `grad cos(x)`.
#[must_use]
pub fn sin_backward() -> BinaryKernel {
    formulas::SinBackward::def().binary_with(&[])
}

/// `-grad sin(x)`.
#[must_use]
pub fn cos_backward() -> BinaryKernel {
    formulas::CosBackward::def().binary_with(&[])
}

/// 0.
#[must_use]
pub fn floor_backward() -> BinaryKernel {
    formulas::FloorBackward::def().binary_with(&[])
}

/// 0.
#[must_use]
pub fn ceil_backward() -> BinaryKernel {
    formulas::CeilBackward::def().binary_with(&[])
}

/// 0.
#[must_use]
pub fn round_backward() -> BinaryKernel {
    formulas::RoundBackward::def().binary_with(&[])
}

/// 0, whatever the decimals.
#[must_use]
pub fn round_decimals_backward() -> BinaryKernel {
    formulas::RoundDecimalsBackward::def().binary_with(&[])
}

/// 0.
#[must_use]
pub fn trunc_backward() -> BinaryKernel {
    formulas::TruncBackward::def().binary_with(&[])
}

/// `grad 2 / sqrt(pi) e^(-x^2)`.
#[must_use]
pub fn erf_backward() -> BinaryKernel {
    formulas::ErfBackward::def().binary_with(&[])
}

/// `grad / (1 + x)`.
#[must_use]
pub fn log1p_backward() -> BinaryKernel {
    formulas::Log1pBackward::def().binary_with(&[])
}

/// `grad e^x`.
#[must_use]
pub fn expm1_backward() -> BinaryKernel {
    formulas::Expm1Backward::def().binary_with(&[])
}

/// `x <= 0 ? 0 : grad`: 0 at 0, grad for NaN.
#[must_use]
pub fn relu_backward() -> BinaryKernel {
    formulas::ReluBackward::def().binary_with(&[])
}

/// `grad (cdf(x) + x pdf(x))` of the normal distribution.
#[must_use]
pub fn gelu_backward() -> BinaryKernel {
    formulas::GeluBackward::def().binary_with(&[])
}

/// The gradient of `gelu(approximate='tanh')`; as in PyTorch NaN where `x^2` overflows.
#[must_use]
pub fn gelu_tanh_backward() -> BinaryKernel {
    formulas::GeluTanhBackward::def().binary_with(&[])
}

/// `grad s (1 + x (1 - s))` with `s = sigmoid(x)`.
#[must_use]
pub fn silu_backward() -> BinaryKernel {
    formulas::SiluBackward::def().binary_with(&[])
}

/// `grad s (1 - s)` with `s = sigmoid(x)`.
#[must_use]
pub fn sigmoid_backward() -> BinaryKernel {
    formulas::SigmoidBackward::def().binary_with(&[])
}

/// `grad (1 - tanh(x)^2)`, as `grad 4 s (1 - s)` with `s = sigmoid(-2 |x|)`, which does not cancel.
#[must_use]
pub fn tanh_backward() -> BinaryKernel {
    formulas::TanhBackward::def().binary_with(&[])
}

/// `x > 0 ? grad : grad * negative_slope`: the slope at 0 and for NaN.
#[must_use]
pub fn leaky_relu_backward(negative_slope: impl Into<Number>) -> BinaryKernel {
    formulas::LeakyReluBackward::def().binary_with(&[negative_slope.into()])
}

/// `x <= 0 ? grad alpha e^x : grad`; grad for NaN. `alpha` may be negative.
#[must_use]
pub fn elu_backward(alpha: impl Into<Number>) -> BinaryKernel {
    formulas::EluBackward::def().binary_with(&[alpha.into()])
}

/// `x <= 0 ? grad s a e^x : grad s`, the constants those of `selu`.
#[must_use]
pub fn selu_backward() -> BinaryKernel {
    formulas::SeluBackward::def().binary_with(&[])
}

/// `x <= -3 ? 0 : x < 3 ? grad (x / 3 + 1/2) : grad`.
#[must_use]
pub fn hardswish_backward() -> BinaryKernel {
    formulas::HardswishBackward::def().binary_with(&[])
}

/// `-3 < x < 3 ? grad / 6 : 0`.
#[must_use]
pub fn hardsigmoid_backward() -> BinaryKernel {
    formulas::HardsigmoidBackward::def().binary_with(&[])
}

/// `x <= min_val or x >= max_val ? 0 : grad`; grad for NaN.
#[must_use]
pub fn hardtanh_backward(min_val: impl Into<Number>, max_val: impl Into<Number>) -> BinaryKernel {
    formulas::HardtanhBackward::def().binary_with(&[min_val.into(), max_val.into()])
}

/// `beta x > threshold ? grad : grad sigmoid(beta x)`.
#[must_use]
pub fn softplus_backward(beta: impl Into<Number>, threshold: impl Into<Number>) -> BinaryKernel {
    formulas::SoftplusBackward::def().binary_with(&[beta.into(), threshold.into()])
}

/// `grad (t + x s (1 - t^2))` with `t = tanh(ln(1 + e^x))` and `s = sigmoid(x)`.
#[must_use]
pub fn mish_backward() -> BinaryKernel {
    formulas::MishBackward::def().binary_with(&[])
}

/// `grad` where x is finite, else `grad * 0`.
#[must_use]
pub fn nan_to_num_backward() -> BinaryKernel {
    formulas::NanToNumBackward::def().binary_with(&[])
}

/// `min <= x <= max ? grad : 0`: grad at the bounds, 0 for NaN.
#[must_use]
pub fn clamp_backward(min: impl Into<Number>, max: impl Into<Number>) -> BinaryKernel {
    formulas::ClampBackward::def().binary_with(&[min.into(), max.into()])
}

/// `grad` and `alpha grad`.
#[must_use]
pub fn add_backward(alpha: impl Into<Number>) -> GradientsKernel {
    formulas::AddBackward::def().kernel(&[alpha.into()])
}

/// `grad` and `-alpha grad`.
#[must_use]
pub fn sub_backward(alpha: impl Into<Number>) -> GradientsKernel {
    formulas::SubBackward::def().kernel(&[alpha.into()])
}

/// `grad b` and `grad a`.
#[must_use]
pub fn mul_backward() -> GradientsKernel {
    formulas::MulBackward::def().kernel(&[])
}

/// `grad / b` and `-grad a / b / b`.
#[must_use]
pub fn div_backward() -> GradientsKernel {
    formulas::DivBackward::def().kernel(&[])
}

/// 0 and 0.
#[must_use]
pub fn div_trunc_backward() -> GradientsKernel {
    formulas::DivTruncBackward::def().kernel(&[])
}

/// 0 and 0.
#[must_use]
pub fn floor_divide_backward() -> GradientsKernel {
    formulas::FloorDivideBackward::def().kernel(&[])
}

/// `grad` and `-grad floor(a / b)`.
#[must_use]
pub fn remainder_backward() -> GradientsKernel {
    formulas::RemainderBackward::def().kernel(&[])
}

/// `grad b a^(b - 1)`, 0 for `b = 0`; and `grad a^b ln(a)`, `grad * 0` for `a = 0` and `b >= 0`. In 16 bits exponents of magnitude 2^16 and more count as even.
#[must_use]
pub fn pow_backward() -> GradientsKernel {
    formulas::PowBackward::def().kernel(&[])
}

/// `grad` to the larger and 0 to the other, halves where they are equal; `grad` to both for NaN.
#[must_use]
pub fn maximum_backward() -> GradientsKernel {
    formulas::MaximumBackward::def().kernel(&[])
}

/// `grad` to the smaller and 0 to the other, halves where they are equal; `grad` to both for NaN.
#[must_use]
pub fn minimum_backward() -> GradientsKernel {
    formulas::MinimumBackward::def().kernel(&[])
}

/// `x > 0 ? grad : weight grad` and `x > 0 ? 0 : x grad`.
#[must_use]
pub fn prelu_backward() -> GradientsKernel {
    formulas::PreluBackward::def().kernel(&[])
}

/// `grad value silu'(gate)` and `grad silu(gate)`.
#[must_use]
pub fn silu_and_mul_backward() -> GatedGradientsKernel {
    formulas::SiluAndMulBackward::def().gated_gradients(&[])
}

/// `grad value gelu'(gate)` and `grad gelu(gate)`, by the error function.
#[must_use]
pub fn gelu_and_mul_backward() -> GatedGradientsKernel {
    formulas::GeluAndMulBackward::def().gated_gradients(&[])
}

/// `grad value gelu'(gate)` and `grad gelu(gate)` with `approximate='tanh'`.
#[must_use]
pub fn gelu_tanh_and_mul_backward() -> GatedGradientsKernel {
    formulas::GeluTanhAndMulBackward::def().gated_gradients(&[])
}

/// `condition ? grad : 0` and `condition ? 0 : grad`.
#[must_use]
pub fn where_backward() -> GradientsKernel {
    formulas::WhereBackward::def().kernel(&[])
}

/// `grad (1 - weight)`, `grad weight` and `grad (b - a)`.
#[must_use]
pub fn lerp_backward() -> GradientsKernel {
    formulas::LerpBackward::def().kernel(&[])
}

/// `grad` to x where `min <= x <= max`, to min where `x < min < max`, to max where `x > max` or `max < min`; else 0. For a bound that is left out there is `ops::clamp_backward`.
#[must_use]
pub fn clamp_tensor_backward() -> GradientsKernel {
    formulas::ClampTensorBackward::def().kernel(&[])
}
