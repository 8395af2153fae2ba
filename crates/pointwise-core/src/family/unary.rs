//! Every op of one operand.
//!
//! Formulas and special values: PyTorch's (`torch.*`, `torch.nn.functional.*`). A name is PyTorch's, but for
//! `gelu_tanh`, which is `gelu(approximate='tanh')`.

pointwise_macros::table! { unary_family Unary;
    /// `e^x`.
    exp: Exp (x: Real) -> T, [floats int_to_float], Ulp(1.0) => x.exp();
    /// Natural logarithm; `-inf` at 0, NaN below.
    log: Log (x: Real) -> T, [floats int_to_float], Ulp(1.0) => x.ln();
    /// Square root; -0 stays -0.
    sqrt: Sqrt (x: Real) -> T, [floats int_to_float], Ulp(0.5) => x.sqrt();
    /// `1 / sqrt(x)`; infinite with the sign of x at 0.
    rsqrt: Rsqrt (x: Real) -> T, [floats int_to_float], Ulp(2.0) => x.rsqrt();
    /// Magnitude; the smallest signed integer wraps to itself.
    abs: Abs (x: Num) -> T, [floats ints bool clears_sign], Exact => x.abs();
    /// `-x`; integers wrap.
    neg: Neg (x: Num) -> T, [floats ints flips_sign], Exact => -x;
    /// `1 / x`.
    reciprocal: Reciprocal (x: Real) -> T, [floats int_to_float], Ulp(0.5) => x.recip();
    /// -1, 0 or 1; 0 for NaN and -0.
    sign: Sign (x: Num) -> T, [floats ints bool], Exact => if x > T::ZERO { T::ONE } else if x < T::ZERO { -T::ONE } else { T::ZERO };
    /// Sine of x radians, the argument reduced exactly whatever its size.
    sin: Sin (x: Real) -> T, [floats int_to_float angle], Ulp(2.0) => x.sin();
    /// Cosine of x radians, the argument reduced exactly whatever its size.
    cos: Cos (x: Real) -> T, [floats int_to_float angle], Ulp(2.0) => x.cos();
    /// Towards minus infinity; integers unchanged.
    floor: Floor (x: Num) -> T, [floats ints], Exact => x.floor();
    /// Towards plus infinity; integers unchanged.
    ceil: Ceil (x: Num) -> T, [floats ints], Exact => x.ceil();
    /// To nearest, ties to even; integers unchanged.
    round: Round (x: Num) -> T, [floats ints], Exact => x.round_ties_even();
    /// `torch.round(x, decimals=d)`: at `decimals` digits behind the point (before it where negative), as
    /// `rint(x 10^decimals) / 10^decimals` in f32; integers unchanged.
    round_decimals: RoundDecimals { decimals = 0.0 } (x: Num) -> T, [floats ints copies_ints whole_parameter], Exact => x.round_decimals(decimals);
    /// Towards zero; integers unchanged.
    trunc: Trunc (x: Num) -> T, [floats ints], Exact => x.trunc();
    /// Error function.
    erf: Erf (x: Real) -> T, [floats int_to_float], Ulp(2.0) => x.erf();
    /// `ln(1 + x)`, accurate near 0.
    log1p: Log1p (x: Real) -> T, [floats int_to_float], Ulp(1.0) => x.ln_1p();
    /// `e^x - 1`, accurate near 0.
    expm1: Expm1 (x: Real) -> T, [floats int_to_float], Ulp(1.0) => x.exp_m1();

    /// `max(x, 0)`; NaN stays NaN.
    relu: Relu (x: Num) -> T, [floats ints], Exact => x.relu();
    /// `x (1 + erf(x / sqrt 2)) / 2` (Hendrycks and Gimpel 2016), accurate in the negative tail.
    gelu: Gelu (x: Real) -> T, [floats], Ulp(3.0) => x.gelu();
    /// `x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) / 2`: `gelu(approximate='tanh')`.
    gelu_tanh: GeluTanh (x: Real) -> T, [floats], Ulp(3.0) => x.gelu_tanh();
    /// `x / (1 + e^-x)`.
    silu: Silu (x: Real) -> T, [floats], Ulp(3.0) => x.silu();
    /// `1 / (1 + e^-x)`.
    sigmoid: Sigmoid (x: Real) -> T, [floats int_to_float], Ulp(3.0) => x.sigmoid();
    /// Hyperbolic tangent.
    tanh: Tanh (x: Real) -> T, [floats int_to_float], Ulp(2.0) => x.tanh();
    /// `x > 0 ? x : x * negative_slope`.
    leaky_relu: LeakyRelu { negative_slope = 0.01 } (x: Real) -> T, [floats], Ulp(0.5) => if x > T::ZERO { x } else { x * negative_slope };
    /// `x > 0 ? x : alpha (e^x - 1)`.
    elu: Elu { alpha = 1.0 } (x: Real) -> T, [floats], Ulp(3.0) => x.if_above(T::ZERO, x, alpha * x.exp_m1_negative());
    /// `s (x > 0 ? x : a (e^x - 1))` with the constants of Klambauer et al. 2017.
    selu: Selu (x: Real) -> T, [floats], Ulp(3.0) => {
        let (a, s) = (1.673_263_242_354_377_2, 1.050_700_987_355_480_5);
        x.if_above(T::ZERO, T::constant(s) * x, T::constant(a * s) * x.exp_m1_negative())
    };
    /// `x min(max(x + 3, 0), 6) / 6`, multiplied in PyTorch's order: infinite above 5.7e37 in f32.
    hardswish: Hardswish (x: Real) -> T, [floats], Ulp(3.0) => {
        let gate = (x + T::constant(3.0)).hardtanh(T::ZERO, T::constant(6.0));
        (x * gate).in_range() * T::constant(1.0 / 6.0)
    };
    /// `min(max(x + 3, 0), 6) / 6`.
    hardsigmoid: Hardsigmoid (x: Real) -> T, [floats], Ulp(3.0) => {
        (x + T::constant(3.0)).hardtanh(T::ZERO, T::constant(6.0)) * T::constant(1.0 / 6.0)
    };
    /// `min(max(x, min_val), max_val)`; NaN stays NaN.
    hardtanh: Hardtanh { min_val = -1.0, max_val = 1.0 } (x: Num) -> T, [floats ints], Exact => x.hardtanh(min_val, max_val);
    /// `beta x > threshold ? x : ln(1 + e^(beta x)) / beta`. The bound is for a `beta` that is a power of two: with
    /// another the rounding of `beta x` is added, as in PyTorch.
    softplus: Softplus { beta = 1.0, threshold = 20.0 } (x: Real) -> T, [floats], Ulp(3.0) => {
        let t = x * beta;
        t.if_above(threshold, x, t.softplus() * beta.recip())
    };
    /// `x tanh(ln(1 + e^x))` (Misra 2019).
    mish: Mish (x: Real) -> T, [floats], Ulp(3.0) => x.mish();

    /// `x == 0`; false for NaN.
    logical_not: LogicalNot (x: Value) -> bool, [floats ints bool truths], Exact => !x.truth();
    /// Every bit flipped; bool: not.
    bitwise_not: BitwiseNot (x: Bits) -> T, [ints bool], Exact => !x;
    /// Whether x is NaN; false for integers and bool.
    isnan: IsNan (x: Value) -> bool, [floats ints bool], Exact => x.is_nan();
    /// Whether x is infinite; false for integers, bool and f8e4m3.
    isinf: IsInf (x: Value) -> bool, [floats ints bool], Exact => x.is_infinite();
    /// Neither NaN nor infinite.
    isfinite: IsFinite (x: Value) -> bool, [floats ints bool], Exact => !x.is_nan() & !x.is_infinite();
    /// NaN and the infinities replaced; by default with 0 and the largest and lowest finite value of the element type.
    nan_to_num: NanToNum { nan = 0.0, posinf = f64::MAX, neginf = f64::MIN } (x: Value) -> T, [floats ints bool copies_ints], Exact => {
        let infinity = if x > T::ZERO { posinf } else { neginf };
        if x.is_nan() { nan } else if x.is_infinite() { infinity } else { x }
    };
    /// `min(max(x, min), max)`: `max` where `min > max`; NaN in x or in a bound gives NaN, in a bound given alone, too, where PyTorch's CPU returns x. A side left out is open.
    clamp: Clamp { min = f64::NEG_INFINITY, max = f64::INFINITY } (x: Num) -> T, [floats ints], Exact => x.clamp(min, max);
}
