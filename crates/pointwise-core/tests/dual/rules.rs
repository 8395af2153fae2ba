//! Every differentiable op of the family: its formula, and its hand-written gradients.

use pointwise_core::OpData;
use pointwise_core::family::{
    backward, binary, channel, channel_gradients, gated, gated_gradients, gradients, powers, ternary, unary,
};
use pointwise_core::op::TableOp;
use pointwise_core::{BinaryOp, Coarse, Dual, OpInfo, Real, Stepped, TernaryOp, UnaryOp};

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
    /// The row of its gradients.
    pub(crate) row: OpInfo,
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
    ($($name:ident, $row:ty, $trait:ident::apply($op:expr; $($x:ident),+), |$grad:ident| $hand:expr;)*) => {
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
                let y = $trait::apply($op, $($x),+);
                [y.gradient(0), y.gradient(1), y.gradient(2)]
            })*
        }

        mod value {
            use super::*;
            $(pub(super) fn $name<T: Real>([$($x),+, ..]: Three<T>) -> T {
                $trait::apply($op, $($x),+)
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
                row: <$row>::INFO,
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
    exp, backward::ExpBackward, UnaryOp::apply(unary::Exp; x), |grad| [grad * x.exp()];
    log, backward::LogBackward, UnaryOp::apply(unary::Log; x), |grad| [grad / x];
    sqrt, backward::SqrtBackward, UnaryOp::apply(unary::Sqrt; x), |grad| [grad.over_twice_sqrt(x)];
    rsqrt, backward::RsqrtBackward, UnaryOp::apply(unary::Rsqrt; x), |grad| {
        let y = x.rsqrt();
        [grad * c(-0.5) * y * y * y]
    };
    abs, backward::AbsBackward, UnaryOp::apply(unary::Abs; x), |grad| {
        [grad * if x > T::ZERO { T::ONE } else if x < T::ZERO { -T::ONE } else { T::ZERO }]
    };
    neg, backward::NegBackward, UnaryOp::apply(unary::Neg; x), |grad| [-grad];
    reciprocal, backward::ReciprocalBackward, UnaryOp::apply(unary::Reciprocal; x), |grad| {
        let y = T::ONE / x;
        [-grad * y * y]
    };
    sign, backward::SignBackward, UnaryOp::apply(unary::Sign; x), |grad| [T::ZERO];
    sin, backward::SinBackward, UnaryOp::apply(unary::Sin; x), |grad| [grad * x.cos()];
    cos, backward::CosBackward, UnaryOp::apply(unary::Cos; x), |grad| [grad * -x.sin()];
    floor, backward::FloorBackward, UnaryOp::apply(unary::Floor; x), |grad| [T::ZERO];
    ceil, backward::CeilBackward, UnaryOp::apply(unary::Ceil; x), |grad| [T::ZERO];
    round, backward::RoundBackward, UnaryOp::apply(unary::Round; x), |grad| [T::ZERO];
    round_decimals, backward::RoundDecimalsBackward,
        UnaryOp::apply(unary::RoundDecimals { decimals: c(1.0) }; x), |grad| [T::ZERO];
    trunc, backward::TruncBackward, UnaryOp::apply(unary::Trunc; x), |grad| [T::ZERO];
    erf, backward::ErfBackward, UnaryOp::apply(unary::Erf; x), |grad| {
        [grad * (exp_neg_square(x) * c(std::f64::consts::FRAC_2_SQRT_PI))]
    };
    log1p, backward::Log1pBackward, UnaryOp::apply(unary::Log1p; x), |grad| [grad / (x + T::ONE)];
    expm1, backward::Expm1Backward, UnaryOp::apply(unary::Expm1; x), |grad| [grad * x.exp()];
    relu, backward::ReluBackward, UnaryOp::apply(unary::Relu; x), |grad| {
        [if x <= T::ZERO { T::ZERO } else { grad }]
    };
    gelu, backward::GeluBackward, UnaryOp::apply(unary::Gelu; x), |grad| [grad * gelu_forms(x).1];
    gelu_tanh, backward::GeluTanhBackward, UnaryOp::apply(unary::GeluTanh; x), |grad| [grad * gelu_tanh_forms(x).1];
    silu, backward::SiluBackward, UnaryOp::apply(unary::Silu; x), |grad| [grad * silu_forms(x).1];
    sigmoid, backward::SigmoidBackward, UnaryOp::apply(unary::Sigmoid; x), |grad| {
        let s = (-x.abs()).sigmoid();
        [grad * (s * (T::ONE - s))]
    };
    tanh, backward::TanhBackward, UnaryOp::apply(unary::Tanh; x), |grad| {
        let s = (x.abs() * c(-2.0)).sigmoid();
        [grad * (c::<T>(4.0) * s * (T::ONE - s))]
    };
    leaky_relu, backward::LeakyReluBackward<f32>,
        UnaryOp::apply(unary::LeakyRelu { negative_slope: c(0.01) }; x), |grad| {
            [if x > T::ZERO { grad } else { grad * c(0.01) }]
        };
    elu, backward::EluBackward<f32>, UnaryOp::apply(unary::Elu { alpha: c(1.5) }; x), |grad| {
        let below = (grad * c(1.5)).times_exp(x);
        [if x <= T::ZERO { below } else { grad }]
    };
    selu, backward::SeluBackward, UnaryOp::apply(unary::Selu; x), |grad| {
        let (a, s) = (1.673_263_242_354_377_2, 1.050_700_987_355_480_5);
        let below = (grad * c(a * s)).times_exp(x);
        [if x <= T::ZERO { below } else { grad * c(s) }]
    };
    hardswish, backward::HardswishBackward, UnaryOp::apply(unary::Hardswish; x), |grad| {
        let three = c(3.0);
        let inside = grad * (x / three + c(0.5));
        [if x <= -three { T::ZERO } else if x < three { inside } else { grad }]
    };
    hardsigmoid, backward::HardsigmoidBackward, UnaryOp::apply(unary::Hardsigmoid; x), |grad| {
        let three: T = c(3.0);
        [if (x > -three) & (x < three) { grad * c(1.0 / 6.0) } else { T::ZERO }]
    };
    hardtanh, backward::HardtanhBackward<f32>,
        UnaryOp::apply(unary::Hardtanh { min_val: c(-1.0), max_val: c(1.0) }; x), |grad| {
            [if (x <= c(-1.0)) | (x >= c(1.0)) { T::ZERO } else { grad }]
        };
    softplus, backward::SoftplusBackward<f32>,
        UnaryOp::apply(unary::Softplus { beta: c(1.0), threshold: c(20.0) }; x), |grad| {
            [x.if_above(c(20.0), grad, grad.times_sigmoid(x))]
        };
    mish, backward::MishBackward, UnaryOp::apply(unary::Mish; x), |grad| [grad * x.mish_derivative()];
    nan_to_num, backward::NanToNumBackward,
        UnaryOp::apply(unary::NanToNum { nan: c(0.0), posinf: c(1.0), neginf: c(-1.0) }; x), |grad| {
            [grad * if x.is_nan() | x.is_infinite() { T::ZERO } else { T::ONE }]
        };
    clamp, backward::ClampBackward<f32>, UnaryOp::apply(unary::Clamp { min: c(-1.5), max: c(2.0) }; x), |grad| {
        [if (x >= c(-1.5)) & (x <= c(2.0)) { grad } else { T::ZERO }]
    };
    add, gradients::AddBackward<f32>, BinaryOp::apply(binary::Add { alpha: c(1.25) }; a, b), |grad| {
        [grad, grad * c(1.25)]
    };
    sub, gradients::SubBackward<f32>, BinaryOp::apply(binary::Sub { alpha: c(1.25) }; a, b), |grad| {
        [grad, -grad * c(1.25)]
    };
    mul, gradients::MulBackward, BinaryOp::apply(binary::Mul; a, b), |grad| [grad * b, grad * a];
    div, gradients::DivBackward, BinaryOp::apply(binary::Div; a, b), |grad| [grad / b, -grad * (a / b / b)];
    div_trunc, gradients::DivTruncBackward, BinaryOp::apply(binary::DivTrunc; a, b), |grad| [T::ZERO, T::ZERO];
    floor_divide, gradients::FloorDivideBackward, BinaryOp::apply(binary::FloorDivide; a, b), |grad| {
        [T::ZERO, T::ZERO]
    };
    remainder, gradients::RemainderBackward, BinaryOp::apply(binary::Remainder; a, b), |grad| {
        [grad, -grad * a.floor_divide(b)]
    };
    pow, gradients::PowBackward, BinaryOp::apply(binary::Pow; a, b), |grad| {
        let (base, exponent) = a.pow_gradients(b);
        [if b == T::ZERO { T::ZERO } else { grad * base }, grad * exponent]
    };
    maximum, gradients::MaximumBackward, BinaryOp::apply(binary::Maximum; a, b), |grad| {
        let share = if a == b { grad * c(0.5) } else { grad };
        [if a < b { T::ZERO } else { share }, if a > b { T::ZERO } else { share }]
    };
    minimum, gradients::MinimumBackward, BinaryOp::apply(binary::Minimum; a, b), |grad| {
        let share = if a == b { grad * c(0.5) } else { grad };
        [if a > b { T::ZERO } else { share }, if a < b { T::ZERO } else { share }]
    };
    lerp, gradients::LerpBackward, TernaryOp::apply(ternary::Lerp; a, b, weight), |grad| {
        [grad * (T::ONE - weight), grad * weight, grad * (b - a)]
    };
    clamp_tensor, gradients::ClampTensorBackward, TernaryOp::apply(ternary::ClampTensor; x, min, max), |grad| {
        let below = (x < min) & (min < max);
        let above = (x > max) | (max < min);
        [
            if (x >= min) & (x <= max) { grad } else { T::ZERO },
            if below { grad } else { T::ZERO },
            if above { grad } else { T::ZERO },
        ]
    };
    prelu, channel_gradients::PreluBackward, BinaryOp::apply(channel::Prelu; x, weight), |grad| {
        if x > T::ZERO { [grad, T::ZERO] } else { [weight * grad, x * grad] }
    };
    silu_and_mul, gated_gradients::SiluAndMulBackward, BinaryOp::apply(gated::SiluAndMul; gate, value), |grad| {
        let (activation, slope) = silu_forms(gate);
        [grad * value * slope, grad * activation]
    };
    gelu_and_mul, gated_gradients::GeluAndMulBackward, BinaryOp::apply(gated::GeluAndMul; gate, value), |grad| {
        let (activation, slope) = gelu_forms(gate);
        [grad * value * slope, grad * activation]
    };
    gelu_tanh_and_mul, gated_gradients::GeluTanhAndMulBackward,
        BinaryOp::apply(gated::GeluTanhAndMul; gate, value), |grad| {
            let (activation, slope) = gelu_tanh_forms(gate);
            [grad * value * slope, grad * activation]
        };
}

/// `x^3`, whose gradient has no row of its own.
pub(crate) fn cube(x: f64) -> [f64; 2] {
    let y = UnaryOp::apply(powers::Cube, Dual::<f64, 1>::variable(x, 0, 1.0));
    [y.value(), y.gradient(0)]
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
