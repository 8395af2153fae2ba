//! The gradients of the ops of one operand: `(grad, x) -> grad * f'(x)`.
//!
//! What comes out at kinks, boundaries and NaN is what PyTorch's autograd has. Element types are f32, f16 and bf16: an
//! fp8 tensor holds gradients only together with a scale of its own, which is not an elementwise result.
//!
//! A bound is that of the formula with every step in f32, as PyTorch computes it; where two terms of a sum cancel it is
//! [`Accuracy::Cancels`](crate::Accuracy::Cancels).

use super::derivatives;

crate::backward_ops! { backward_family;
    /// `grad e^x`.
    exp_backward: ExpBackward (grad, x: Real) -> T, [f32 f16 bf16], Ulp(3.0) => grad * x.exp();
    /// `grad / x`.
    log_backward: LogBackward (grad, x: Real) -> T, [f32 f16 bf16], Exact => grad / x;
    /// `grad / (2 sqrt(x))`.
    sqrt_backward: SqrtBackward (grad, x: Real) -> T, [f32 f16 bf16], Exact => grad.over_twice_sqrt(x);
    /// `-grad / (2 x sqrt(x))`.
    rsqrt_backward: RsqrtBackward (grad, x: Real) -> T, [f32 f16 bf16], Ulp(9.0) => {
        let y = x.rsqrt();
        grad * T::constant(-0.5) * y * y * y
    };
    /// `grad sign(x)`: 0 at 0.
    abs_backward: AbsBackward (grad, x: Real) -> T, [f32 f16 bf16], Exact => {
        grad * if x > T::ZERO { T::ONE } else if x < T::ZERO { -T::ONE } else { T::ZERO }
    };
    /// `-grad`.
    neg_backward: NegBackward (grad, x: Real) -> T, [f32 f16 bf16], Exact => -grad;
    /// `-grad / x^2`.
    reciprocal_backward: ReciprocalBackward (grad, x: Real) -> T, [f32 f16 bf16], Exact => {
        let y = T::ONE / x;
        -grad * y * y
    };
    /// 0.
    sign_backward: SignBackward (grad, x: Real) -> T, [f32 f16 bf16 constant], Exact => T::ZERO;
    /// `grad cos(x)`.
    sin_backward: SinBackward (grad, x: Real) -> T, [f32 f16 bf16 angle], Ulp(4.0) => grad * x.cos();
    /// `-grad sin(x)`.
    cos_backward: CosBackward (grad, x: Real) -> T, [f32 f16 bf16 angle], Ulp(4.0) => grad * -x.sin();
    /// 0.
    floor_backward: FloorBackward (grad, x: Real) -> T, [f32 f16 bf16 constant], Exact => T::ZERO;
    /// 0.
    ceil_backward: CeilBackward (grad, x: Real) -> T, [f32 f16 bf16 constant], Exact => T::ZERO;
    /// 0.
    round_backward: RoundBackward (grad, x: Real) -> T, [f32 f16 bf16 constant], Exact => T::ZERO;
    /// 0, whatever the decimals.
    round_decimals_backward: RoundDecimalsBackward (grad, x: Real) -> T, [f32 f16 bf16 constant], Exact => T::ZERO;
    /// 0.
    trunc_backward: TruncBackward (grad, x: Real) -> T, [f32 f16 bf16 constant], Exact => T::ZERO;
    /// `grad 2 / sqrt(pi) e^(-x^2)`.
    erf_backward: ErfBackward (grad, x: Real) -> T, [f32 f16 bf16], Ulp(5.0) => {
        grad * (derivatives::exp_neg_square(x) * T::constant(core::f64::consts::FRAC_2_SQRT_PI))
    };
    /// `grad / (1 + x)`.
    log1p_backward: Log1pBackward (grad, x: Real) -> T, [f32 f16 bf16], Exact => grad / (x + T::ONE);
    /// `grad e^x`.
    expm1_backward: Expm1Backward (grad, x: Real) -> T, [f32 f16 bf16], Ulp(3.0) => grad * x.exp();

    /// `x <= 0 ? 0 : grad`: 0 at 0, grad for NaN.
    relu_backward: ReluBackward (grad, x: Real) -> T, [f32 f16 bf16], Exact => if x <= T::ZERO { T::ZERO } else { grad };
    /// `grad (cdf(x) + x pdf(x))` of the normal distribution.
    gelu_backward: GeluBackward (grad, x: Real) -> T, [f32 f16 bf16], Cancels(6.0) => grad * derivatives::gelu(x).1;
    /// The gradient of `gelu(approximate='tanh')`; as in PyTorch NaN where `x^2` overflows.
    gelu_tanh_backward: GeluTanhBackward (grad, x: Real) -> T, [f32 f16 bf16], Cancels(6.0) => {
        grad * derivatives::gelu_tanh(x).1
    };
    /// `grad s (1 + x (1 - s))` with `s = sigmoid(x)`.
    silu_backward: SiluBackward (grad, x: Real) -> T, [f32 f16 bf16], Cancels(6.0) => grad * derivatives::silu(x).1;
    /// `grad s (1 - s)` with `s = sigmoid(x)`.
    sigmoid_backward: SigmoidBackward (grad, x: Real) -> T, [f32 f16 bf16], Ulp(5.0) => {
        let s = (-x.abs()).sigmoid();
        grad * (s * (T::ONE - s))
    };
    /// `grad (1 - tanh(x)^2)`, as `grad 4 s (1 - s)` with `s = sigmoid(-2 |x|)`, which does not cancel.
    tanh_backward: TanhBackward (grad, x: Real) -> T, [f32 f16 bf16], Ulp(5.0) => {
        let s = (x.abs() * T::constant(-2.0)).sigmoid();
        grad * (T::constant(4.0) * s * (T::ONE - s))
    };
    /// `x > 0 ? grad : grad * negative_slope`: the slope at 0 and for NaN.
    leaky_relu_backward: LeakyReluBackward { negative_slope = 0.01 } (grad, x: Real) -> T, [f32 f16 bf16], Exact => {
        if x > T::ZERO { grad } else { grad * negative_slope }
    };
    /// `x <= 0 ? grad alpha e^x : grad`; grad for NaN. `alpha` may be negative.
    elu_backward: EluBackward { alpha = 1.0 } (grad, x: Real) -> T, [f32 f16 bf16], Ulp(3.0) => {
        let below = (grad * alpha).times_exp(x);
        if x <= T::ZERO { below } else { grad }
    };
    /// `x <= 0 ? grad s a e^x : grad s`, the constants those of `selu`.
    selu_backward: SeluBackward (grad, x: Real) -> T, [f32 f16 bf16], Ulp(3.0) => {
        let (a, s) = (1.673_263_242_354_377_2, 1.050_700_987_355_480_5);
        let below = (grad * T::constant(a * s)).times_exp(x);
        if x <= T::ZERO { below } else { grad * T::constant(s) }
    };
    /// `x <= -3 ? 0 : x < 3 ? grad (x / 3 + 1/2) : grad`.
    hardswish_backward: HardswishBackward (grad, x: Real) -> T, [f32 f16 bf16], Exact => {
        let three = T::constant(3.0);
        let inside = grad * (x / three + T::constant(0.5));
        if x <= -three { T::ZERO } else if x < three { inside } else { grad }
    };
    /// `-3 < x < 3 ? grad / 6 : 0`.
    hardsigmoid_backward: HardsigmoidBackward (grad, x: Real) -> T, [f32 f16 bf16], Exact => {
        let three = T::constant(3.0);
        if (x > -three) & (x < three) { grad * T::constant(1.0 / 6.0) } else { T::ZERO }
    };
    /// `x <= min_val or x >= max_val ? 0 : grad`; grad for NaN.
    hardtanh_backward: HardtanhBackward { min_val = -1.0, max_val = 1.0 } (grad, x: Real) -> T, [f32 f16 bf16], Exact => {
        if (x <= min_val) | (x >= max_val) { T::ZERO } else { grad }
    };
    /// `beta x > threshold ? grad : grad sigmoid(beta x)`.
    softplus_backward: SoftplusBackward { beta = 1.0, threshold = 20.0 } (grad, x: Real) -> T, [f32 f16 bf16], Ulp(5.0) => {
        let t = x * beta;
        t.if_above(threshold, grad, grad.times_sigmoid(t))
    };
    /// `grad (t + x s (1 - t^2))` with `t = tanh(ln(1 + e^x))` and `s = sigmoid(x)`.
    mish_backward: MishBackward (grad, x: Real) -> T, [f32 f16 bf16], Cancels(8.0) => grad * x.mish_derivative();

    /// `grad` where x is finite, else `grad * 0`.
    nan_to_num_backward: NanToNumBackward (grad, x: Real) -> T, [f32 f16 bf16], Exact => {
        grad * if x.is_nan() | x.is_infinite() { T::ZERO } else { T::ONE }
    };
    /// `min <= x <= max ? grad : 0`: grad at the bounds, 0 for NaN.
    clamp_backward: ClampBackward { min = f64::NEG_INFINITY, max = f64::INFINITY } (grad, x: Real) -> T, [f32 f16 bf16],
        Exact => if (x >= min) & (x <= max) { grad } else { T::ZERO };
}
