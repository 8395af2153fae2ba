//! candle's functions by the names of ops: for the tests here, and for `examples/candle-model`.

use candle_core::{D, Result, Tensor};
use candle_nn::ops as nn;

/// A function of candle's.
pub(crate) type Function = fn(&[Tensor]) -> Result<Tensor>;

/// candle's functions by the names of ops, with the operands that they take.
pub(crate) const FUNCTIONS: &[(&str, usize, Function)] = &[
    ("exp", 1, |x| x[0].exp()),
    ("log", 1, |x| x[0].log()),
    ("sqrt", 1, |x| x[0].sqrt()),
    ("rsqrt", 1, |x| x[0].sqrt()?.recip()),
    ("abs", 1, |x| x[0].abs()),
    ("neg", 1, |x| x[0].neg()),
    ("reciprocal", 1, |x| x[0].recip()),
    ("sign", 1, |x| x[0].sign()),
    ("sin", 1, |x| x[0].sin()),
    ("cos", 1, |x| x[0].cos()),
    ("tanh", 1, |x| x[0].tanh()),
    ("floor", 1, |x| x[0].floor()),
    ("ceil", 1, |x| x[0].ceil()),
    ("erf", 1, |x| x[0].erf()),
    ("relu", 1, |x| x[0].relu()),
    ("gelu", 1, |x| x[0].gelu_erf()),
    ("gelu_tanh", 1, |x| x[0].gelu()),
    ("silu", 1, |x| x[0].silu()),
    ("sigmoid", 1, |x| nn::sigmoid(&x[0])),
    ("hardsigmoid", 1, |x| nn::hard_sigmoid(&x[0])),
    ("leaky_relu", 1, |x| nn::leaky_relu(&x[0], 0.01)),
    ("elu", 1, |x| x[0].elu(1.0)),
    ("selu", 1, |x| nn::selu(&x[0], 1.673_263_2, 1.050_701)),
    ("mish", 1, |x| nn::mish(&x[0])),
    ("add", 2, |x| x[0].broadcast_add(&x[1])),
    ("sub", 2, |x| x[0].broadcast_sub(&x[1])),
    ("mul", 2, |x| x[0].broadcast_mul(&x[1])),
    ("div", 2, |x| x[0].broadcast_div(&x[1])),
    ("pow", 2, |x| x[0].broadcast_pow(&x[1])),
    ("maximum", 2, |x| x[0].broadcast_maximum(&x[1])),
    ("minimum", 2, |x| x[0].broadcast_minimum(&x[1])),
    ("eq", 2, |x| x[0].broadcast_eq(&x[1])),
    ("ne", 2, |x| x[0].broadcast_ne(&x[1])),
    ("gt", 2, |x| x[0].broadcast_gt(&x[1])),
    ("ge", 2, |x| x[0].broadcast_ge(&x[1])),
    ("lt", 2, |x| x[0].broadcast_lt(&x[1])),
    ("le", 2, |x| x[0].broadcast_le(&x[1])),
    ("silu_and_mul", 1, |x| nn::swiglu(&x[0])),
    ("softmax", 1, |x| nn::softmax(&x[0], D::Minus1)),
    ("log_softmax", 1, |x| nn::log_softmax(&x[0], D::Minus1)),
    ("logsumexp", 1, |x| x[0].log_sum_exp(D::Minus1)),
    ("sum", 1, |x| x[0].sum(D::Minus1)),
    ("mean", 1, |x| x[0].mean(D::Minus1)),
    ("amax", 1, |x| x[0].max(D::Minus1)),
    ("amin", 1, |x| x[0].min(D::Minus1)),
    ("var", 1, |x| x[0].var(D::Minus1)),
];
