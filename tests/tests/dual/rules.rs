//! Every differentiable op of the family: its formula, and its hand-written gradients.

use pointwise::ops;
use pointwise_core::{Coarse, Dual, OpInfo, Real, Stepped};

/// Up to three operands or gradients.
pub(crate) type Three<T> = [T; 3];

/// Gradients at a compute type, of `grad` and the operands.
pub(crate) type Gradients<T> = fn(T, Three<T>) -> Three<T>;

/// The gradients of an op in one of two ways.
pub(crate) struct Way {
    pub(crate) f64: Gradients<f64>,
    pub(crate) f32: Gradients<f32>,
    pub(crate) half: Gradients<Coarse>,
    pub(crate) stepped: Gradients<Stepped>,
}

/// An op.
pub(crate) struct Rule {
    pub(crate) name: &'static str,
    pub(crate) operands: usize,
    /// The data of its gradients.
    pub(crate) info: OpInfo,
    /// The op itself.
    pub(crate) value: fn(Three<f64>) -> f64,
    /// The op with operands that have no tangents.
    pub(crate) constant: fn(Three<f64>) -> f64,
    pub(crate) by_hand: Way,
    pub(crate) derived: Way,
}

/// A parameter.
fn c<T: Real>(value: f64) -> T {
    T::constant(value)
}

fn padded<T: Real, const N: usize>(gradients: [T; N]) -> Three<T> {
    let at = |k: usize| gradients.get(k).copied().unwrap_or(T::ZERO);
    [at(0), at(1), at(2)]
}

macro_rules! rules {
    ($($name:ident, $backward:ident, $op:ident($($x:ident),+ $(; $($p:expr),+)?), |$grad:ident| $hand:expr;)*) => {
        mod by_hand {
            use super::*;
            $(#[allow(unused_variables)]
            pub(super) fn $name<T: Real>($grad: T, [$($x),+, ..]: rules!(@array T $($x)+)) -> Three<T> {
                padded($hand)
            })*
        }

        mod derived {
            use super::*;
            $(pub(super) fn $name<T: Real>(grad: T, x: Three<T>) -> Three<T> {
                let mut k = 0;
                $(let $x = Dual::<T, 3>::variable(x[k], k, grad); k += 1;)+
                assert!(k <= 3);
                let y = ops::$op::formula($($x),+ $($(, c($p))+)?);
                [y.gradient(0), y.gradient(1), y.gradient(2)]
            })*
        }

        mod value {
            use super::*;
            $(pub(super) fn $name<T: Real>([$($x),+, ..]: Three<T>) -> T {
                ops::$op::formula($($x),+ $($(, c($p))+)?)
            })*
        }

        mod constant {
            use super::*;
            $(pub(super) fn $name(x: Three<f64>) -> f64 {
                value::$name(x.map(Dual::<f64, 3>::constant)).value()
            })*
        }

        /// Returns the rules of all ops.
        pub(crate) fn all() -> Vec<Rule> {
            vec![$(Rule {
                name: stringify!($name),
                operands: [$(stringify!($x)),+].len(),
                info: ops::$backward::def().info,
                value: value::$name,
                constant: constant::$name,
                by_hand: rules!(@way by_hand::$name),
                derived: rules!(@way derived::$name),
            }),*]
        }
    };
    (@array $t:ident $($x:ident)+) => { Three<$t> };
    (@way $($f:ident)::+) => { Way { f64: $($f)::+, f32: $($f)::+, half: $($f)::+, stepped: $($f)::+ } };
}

rules! {
    exp, ExpBackward, Exp(x), |grad| [grad * x.exp()];
    log, LogBackward, Log(x), |grad| [grad / x];
    sqrt, SqrtBackward, Sqrt(x), |grad| [grad.over_twice_sqrt(x)];
    rsqrt, RsqrtBackward, Rsqrt(x), |grad| {
        let y = x.rsqrt();
        [grad * c(-0.5) * y * y * y]
    };
    abs, AbsBackward, Abs(x), |grad| {
        [grad * if x > T::ZERO { T::ONE } else if x < T::ZERO { -T::ONE } else { T::ZERO }]
    };
    neg, NegBackward, Neg(x), |grad| [-grad];
    reciprocal, ReciprocalBackward, Reciprocal(x), |grad| {
        let y = T::ONE / x;
        [-grad * y * y]
    };
    sign, SignBackward, Sign(x), |grad| [T::ZERO];
    sin, SinBackward, Sin(x), |grad| [grad * x.cos()];
    cos, CosBackward, Cos(x), |grad| [grad * -x.sin()];
    floor, FloorBackward, Floor(x), |grad| [T::ZERO];
    ceil, CeilBackward, Ceil(x), |grad| [T::ZERO];
    round, RoundBackward, Round(x), |grad| [T::ZERO];
    round_decimals, RoundDecimalsBackward, RoundDecimals(x; 1.0), |grad| [T::ZERO];
    trunc, TruncBackward, Trunc(x), |grad| [T::ZERO];
    erf, ErfBackward, Erf(x), |grad| {
        [grad * (exp_neg_square(x) * c(std::f64::consts::FRAC_2_SQRT_PI))]
    };
    log1p, Log1pBackward, Log1p(x), |grad| [grad / (x + T::ONE)];
    expm1, Expm1Backward, Expm1(x), |grad| [grad * x.exp()];
    relu, ReluBackward, Relu(x), |grad| {
        [if x <= T::ZERO { T::ZERO } else { grad }]
    };
    gelu, GeluBackward, Gelu(x), |grad| [grad * gelu_forms(x).1];
    gelu_tanh, GeluTanhBackward, GeluTanh(x), |grad| [grad * gelu_tanh_forms(x).1];
    silu, SiluBackward, Silu(x), |grad| [grad * silu_forms(x).1];
    sigmoid, SigmoidBackward, Sigmoid(x), |grad| {
        let s = (-x.abs()).sigmoid();
        [grad * (s * (T::ONE - s))]
    };
    tanh, TanhBackward, Tanh(x), |grad| {
        let s = (x.abs() * c(-2.0)).sigmoid();
        [grad * (c::<T>(4.0) * s * (T::ONE - s))]
    };
    leaky_relu, LeakyReluBackward, LeakyRelu(x; 0.01), |grad| {
            [if x > T::ZERO { grad } else { grad * c(0.01) }]
        };
    elu, EluBackward, Elu(x; 1.5), |grad| {
        let below = (grad * c(1.5)).times_exp(x);
        [if x <= T::ZERO { below } else { grad }]
    };
    selu, SeluBackward, Selu(x), |grad| {
        let (a, s) = (1.673_263_242_354_377_2, 1.050_700_987_355_480_5);
        let below = (grad * c(a * s)).times_exp(x);
        [if x <= T::ZERO { below } else { grad * c(s) }]
    };
    hardswish, HardswishBackward, Hardswish(x), |grad| {
        let three = c(3.0);
        let inside = grad * (x / three + c(0.5));
        [if x <= -three { T::ZERO } else if x < three { inside } else { grad }]
    };
    hardsigmoid, HardsigmoidBackward, Hardsigmoid(x), |grad| {
        let three: T = c(3.0);
        [if (x > -three) & (x < three) { grad * c(1.0 / 6.0) } else { T::ZERO }]
    };
    hardtanh, HardtanhBackward, Hardtanh(x; -1.0, 1.0), |grad| {
            [if (x <= c(-1.0)) | (x >= c(1.0)) { T::ZERO } else { grad }]
        };
    softplus, SoftplusBackward, Softplus(x; 1.0, 20.0), |grad| {
            [x.if_above(c(20.0), grad, grad.times_sigmoid(x))]
        };
    mish, MishBackward, Mish(x), |grad| [grad * x.mish_derivative()];
    nan_to_num, NanToNumBackward, NanToNum(x; 0.0, 1.0, -1.0), |grad| {
            [grad * if x.is_nan() | x.is_infinite() { T::ZERO } else { T::ONE }]
        };
    clamp, ClampBackward, Clamp(x; -1.5, 2.0), |grad| {
        [if (x >= c(-1.5)) & (x <= c(2.0)) { grad } else { T::ZERO }]
    };
    add, AddBackward, Add(a, b; 1.25), |grad| {
        [grad, grad * c(1.25)]
    };
    sub, SubBackward, Sub(a, b; 1.25), |grad| {
        [grad, -grad * c(1.25)]
    };
    mul, MulBackward, Mul(a, b), |grad| [grad * b, grad * a];
    div, DivBackward, Div(a, b), |grad| [grad / b, -grad * (a / b / b)];
    div_trunc, DivTruncBackward, DivTrunc(a, b), |grad| [T::ZERO, T::ZERO];
    floor_divide, FloorDivideBackward, FloorDivide(a, b), |grad| {
        [T::ZERO, T::ZERO]
    };
    remainder, RemainderBackward, Remainder(a, b), |grad| {
        [grad, -grad * a.floor_divide(b)]
    };
    pow, PowBackward, Pow(a, b), |grad| {
        let (base, exponent) = a.pow_gradients(b);
        [if b == T::ZERO { T::ZERO } else { grad * base }, grad * exponent]
    };
    maximum, MaximumBackward, Maximum(a, b), |grad| {
        let share = if a == b { grad * c(0.5) } else { grad };
        [if a < b { T::ZERO } else { share }, if a > b { T::ZERO } else { share }]
    };
    minimum, MinimumBackward, Minimum(a, b), |grad| {
        let share = if a == b { grad * c(0.5) } else { grad };
        [if a > b { T::ZERO } else { share }, if a < b { T::ZERO } else { share }]
    };
    lerp, LerpBackward, Lerp(a, b, weight), |grad| {
        [grad * (T::ONE - weight), grad * weight, grad * (b - a)]
    };
    clamp_tensor, ClampTensorBackward, ClampTensor(x, min, max), |grad| {
        let below = (x < min) & (min < max);
        let above = (x > max) | (max < min);
        [
            if (x >= min) & (x <= max) { grad } else { T::ZERO },
            if below { grad } else { T::ZERO },
            if above { grad } else { T::ZERO },
        ]
    };
    prelu, PreluBackward, Prelu(x, weight), |grad| {
        if x > T::ZERO { [grad, T::ZERO] } else { [weight * grad, x * grad] }
    };
    silu_and_mul, SiluAndMulBackward, SiluAndMul(gate, value), |grad| {
        let (activation, slope) = silu_forms(gate);
        [grad * value * slope, grad * activation]
    };
    gelu_and_mul, GeluAndMulBackward, GeluAndMul(gate, value), |grad| {
        let (activation, slope) = gelu_forms(gate);
        [grad * value * slope, grad * activation]
    };
    gelu_tanh_and_mul, GeluTanhAndMulBackward, GeluTanhAndMul(gate, value), |grad| {
            let (activation, slope) = gelu_tanh_forms(gate);
            [grad * value * slope, grad * activation]
        };
}

fn sigmoids<T: Real>(x: T) -> (T, T) {
    let small = (-x.abs()).sigmoid();
    let large = T::ONE - small;
    if x > T::ZERO { (large, small) } else { (small, large) }
}

fn exp_neg_square<T: Real>(x: T) -> T {
    let a = x.abs().minimum(c(32.0));
    let square = a * a;
    let lost = a.mul_add(a, -square);
    let e = (-square).exp();
    e.mul_add(-lost, e)
}

fn silu_forms<T: Real>(x: T) -> (T, T) {
    let (s, rest) = sigmoids(x);
    (x * s, s * x.mul_add(rest, T::ONE))
}

fn gelu_forms<T: Real>(x: T) -> (T, T) {
    let cdf = x.normal_cdf();
    (x * cdf, x.mul_add(x.normal_density(), cdf))
}

fn gelu_tanh_forms<T: Real>(x: T) -> (T, T) {
    let (root, cubic) = (1.595_769_121_605_731, 0.044_715);
    let square = x * x;
    let t = x * square.mul_add(c(root * cubic), c(root));
    let slope = square.mul_add(c(3.0 * root * cubic), c(root));
    let (s, rest) = sigmoids(t);
    (x * s, (x * (s * rest)).mul_add(slope, s))
}
