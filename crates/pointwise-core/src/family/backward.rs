//! The gradients of the ops of one operand: `(grad, x) -> grad * f'(x)`.
//!
//! What comes out at kinks, boundaries and NaN is what PyTorch's autograd has. Element types are f32, f16 and bf16: an
//! fp8 tensor holds gradients only together with a scale of its own, which is not an elementwise result.
//!
//! The formula of most rows is `of_one`, the op's own at [dual numbers](crate::dual). The other rows say why.
//!
//! A bound is that of the formula with every step in f32, as PyTorch computes it; where two terms of a sum cancel it is
//! [`Accuracy::Cancels`](crate::Accuracy::Cancels).

use super::derived::of_one;
use super::unary::*;
use crate::dual::Dual;

pointwise_macros::table! { backward_family Backward;
    /// `grad e^x`.
    exp_backward: ExpBackward (grad, x: Real) -> T, [f32 f16 bf16], Ulp(3.0) => of_one(Exp, grad, x);
    /// `grad / x`.
    log_backward: LogBackward (grad, x: Real) -> T, [f32 f16 bf16], Exact => of_one(Log, grad, x);
    /// `grad / (2 sqrt(x))`.
    sqrt_backward: SqrtBackward (grad, x: Real) -> T, [f32 f16 bf16], Exact => of_one(Sqrt, grad, x);
    /// `-grad / (2 x sqrt(x))`.
    rsqrt_backward: RsqrtBackward (grad, x: Real) -> T, [f32 f16 bf16], Ulp(9.0) => of_one(Rsqrt, grad, x);
    /// `grad sign(x)`: 0 at 0.
    abs_backward: AbsBackward (grad, x: Real) -> T, [f32 f16 bf16], Exact => of_one(Abs, grad, x);
    /// `-grad`.
    neg_backward: NegBackward (grad, x: Real) -> T, [f32 f16 bf16], Exact => of_one(Neg, grad, x);
    /// `-grad / x^2`.
    reciprocal_backward: ReciprocalBackward (grad, x: Real) -> T, [f32 f16 bf16], Exact => of_one(Reciprocal, grad, x);
    /// 0.
    sign_backward: SignBackward (grad, x: Real) -> T, [f32 f16 bf16 constant], Exact => of_one(Sign, grad, x);
    /// `grad cos(x)`.
    sin_backward: SinBackward (grad, x: Real) -> T, [f32 f16 bf16 angle], Ulp(4.0) => of_one(Sin, grad, x);
    /// `-grad sin(x)`.
    cos_backward: CosBackward (grad, x: Real) -> T, [f32 f16 bf16 angle], Ulp(4.0) => of_one(Cos, grad, x);
    /// 0.
    floor_backward: FloorBackward (grad, x: Real) -> T, [f32 f16 bf16 constant], Exact => of_one(Floor, grad, x);
    /// 0.
    ceil_backward: CeilBackward (grad, x: Real) -> T, [f32 f16 bf16 constant], Exact => of_one(Ceil, grad, x);
    /// 0.
    round_backward: RoundBackward (grad, x: Real) -> T, [f32 f16 bf16 constant], Exact => of_one(Round, grad, x);
    /// 0, whatever the decimals.
    round_decimals_backward: RoundDecimalsBackward (grad, x: Real) -> T, [f32 f16 bf16 constant], Exact => {
        of_one(RoundDecimals { decimals: Dual::constant(T::ZERO) }, grad, x)
    };
    /// 0.
    trunc_backward: TruncBackward (grad, x: Real) -> T, [f32 f16 bf16 constant], Exact => of_one(Trunc, grad, x);
    /// `grad 2 / sqrt(pi) e^(-x^2)`.
    erf_backward: ErfBackward (grad, x: Real) -> T, [f32 f16 bf16], Ulp(5.0) => of_one(Erf, grad, x);
    /// `grad / (1 + x)`.
    log1p_backward: Log1pBackward (grad, x: Real) -> T, [f32 f16 bf16], Exact => of_one(Log1p, grad, x);
    /// `grad e^x`.
    expm1_backward: Expm1Backward (grad, x: Real) -> T, [f32 f16 bf16], Ulp(3.0) => of_one(Expm1, grad, x);

    /// `x <= 0 ? 0 : grad`: 0 at 0, grad for NaN.
    relu_backward: ReluBackward (grad, x: Real) -> T, [f32 f16 bf16], Exact => of_one(Relu, grad, x);
    /// `grad (cdf(x) + x pdf(x))` of the normal distribution.
    gelu_backward: GeluBackward (grad, x: Real) -> T, [f32 f16 bf16], Cancels(6.0) => of_one(Gelu, grad, x);
    /// The gradient of `gelu(approximate='tanh')`; as in PyTorch NaN where `x^2` overflows.
    gelu_tanh_backward: GeluTanhBackward (grad, x: Real) -> T, [f32 f16 bf16], Cancels(6.0) => of_one(GeluTanh, grad, x);
    /// `grad s (1 + x (1 - s))` with `s = sigmoid(x)`.
    silu_backward: SiluBackward (grad, x: Real) -> T, [f32 f16 bf16], Cancels(6.0) => of_one(Silu, grad, x);
    /// `grad s (1 - s)` with `s = sigmoid(x)`.
    sigmoid_backward: SigmoidBackward (grad, x: Real) -> T, [f32 f16 bf16], Ulp(5.0) => of_one(Sigmoid, grad, x);
    /// `grad (1 - tanh(x)^2)`, as `grad 4 s (1 - s)` with `s = sigmoid(-2 |x|)`, which does not cancel.
    tanh_backward: TanhBackward (grad, x: Real) -> T, [f32 f16 bf16], Ulp(5.0) => of_one(Tanh, grad, x);
    /// `x > 0 ? grad : grad * negative_slope`: the slope at 0 and for NaN.
    leaky_relu_backward: LeakyReluBackward { negative_slope = 0.01 } (grad, x: Real) -> T, [f32 f16 bf16], Exact => {
        of_one(LeakyRelu { negative_slope: Dual::constant(negative_slope) }, grad, x)
    };
    /// `x <= 0 ? grad alpha e^x : grad`; grad for NaN. `alpha` may be negative.
    // By hand: of NaN the formula's own gradient is NaN.
    elu_backward: EluBackward { alpha = 1.0 } (grad, x: Real) -> T, [f32 f16 bf16], Ulp(3.0) => {
        let below = (grad * alpha).times_exp(x);
        if x <= T::ZERO { below } else { grad }
    };
    /// `x <= 0 ? grad s a e^x : grad s`, the constants those of `selu`.
    // By hand: as `elu_backward`.
    selu_backward: SeluBackward (grad, x: Real) -> T, [f32 f16 bf16], Ulp(3.0) => {
        let (a, s) = (1.673_263_242_354_377_2, 1.050_700_987_355_480_5);
        let below = (grad * T::constant(a * s)).times_exp(x);
        if x <= T::ZERO { below } else { grad * T::constant(s) }
    };
    /// `x <= -3 ? 0 : x < 3 ? grad (x / 3 + 1/2) : grad`.
    // By hand: the formula's product overflows, and `x + 3` is rounded.
    hardswish_backward: HardswishBackward (grad, x: Real) -> T, [f32 f16 bf16], Exact => {
        let three = T::constant(3.0);
        let inside = grad * (x / three + T::constant(0.5));
        if x <= -three { T::ZERO } else if x < three { inside } else { grad }
    };
    /// `-3 < x < 3 ? grad / 6 : 0`.
    // By hand: the formula's `x + 3` is rounded, and of NaN its own gradient is not 0.
    hardsigmoid_backward: HardsigmoidBackward (grad, x: Real) -> T, [f32 f16 bf16], Exact => {
        let three = T::constant(3.0);
        if (x > -three) & (x < three) { grad * T::constant(1.0 / 6.0) } else { T::ZERO }
    };
    /// `x <= min_val or x >= max_val ? 0 : grad`; grad for NaN.
    hardtanh_backward: HardtanhBackward { min_val = -1.0, max_val = 1.0 } (grad, x: Real) -> T, [f32 f16 bf16], Exact => {
        of_one(Hardtanh { min_val: Dual::constant(min_val), max_val: Dual::constant(max_val) }, grad, x)
    };
    /// `beta x > threshold ? grad : grad sigmoid(beta x)`.
    // By hand: the formula's own gradient multiplies and divides by `beta`.
    softplus_backward: SoftplusBackward { beta = 1.0, threshold = 20.0 } (grad, x: Real) -> T, [f32 f16 bf16], Ulp(5.0) => {
        let t = x * beta;
        t.if_above(threshold, grad, grad.times_sigmoid(t))
    };
    /// `grad (t + x s (1 - t^2))` with `t = tanh(ln(1 + e^x))` and `s = sigmoid(x)`.
    mish_backward: MishBackward (grad, x: Real) -> T, [f32 f16 bf16], Cancels(8.0) => of_one(Mish, grad, x);

    /// `grad` where x is finite, else `grad * 0`.
    // By hand: the formula's own gradient is 0 where this is `grad * 0`, NaN for an infinite `grad`.
    nan_to_num_backward: NanToNumBackward (grad, x: Real) -> T, [f32 f16 bf16], Exact => {
        grad * if x.is_nan() | x.is_infinite() { T::ZERO } else { T::ONE }
    };
    /// `min <= x <= max ? grad : 0`: grad at the bounds, 0 for NaN.
    clamp_backward: ClampBackward { min = f64::NEG_INFINITY, max = f64::INFINITY } (grad, x: Real) -> T, [f32 f16 bf16],
        Exact => of_one(Clamp { min: Dual::constant(min), max: Dual::constant(max) }, grad, x);
}
