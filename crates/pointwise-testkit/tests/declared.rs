//! `check_op` refuses wrong ops, and accepts right ones that look wrong. There are no kernels: all run on the CPU.
#![forbid(unsafe_code)]

use pointwise::kernel::OpDef;
use pointwise::prelude::*;
use pointwise_testkit::check_op;

/// Checks that an op is refused, in these words.
fn refused(def: &'static OpDef, words: &[&str]) {
    let what = check_op(def, &[Device::cpu()]).expect_err(def.info.name).to_string();
    for word in words {
        assert!(what.contains(word), "{} without {word:?}: {what}", def.info.name);
    }
}

fn accepted(def: &'static OpDef) {
    check_op(def, &[Device::cpu()]).unwrap();
}

/// NaN from 89 on, where `e^x` overflows.
#[op(floats, ulp = 8, grad_ulp = 32)]
fn naive_sigmoid<T: Real>(x: T) -> T {
    x.exp() / (T::ONE + x.exp())
}

/// The same of one of two operands.
#[op(f32, ulp = 8, grad = none)]
fn naive_gate<T: Real>(gate: T, value: T) -> T {
    value * (gate.exp() / (T::ONE + gate.exp()))
}

/// Right but for parameters that are not the default.
#[op(f32, ulp = 256, grad = none)]
fn steep<T: Real>(x: T, #[param(default = 80.0)] a: T) -> T {
    let e = (x.tanh() * a).exp();
    e / (T::ONE + e)
}

/// More than 8 ULP off: the rounding of the sigmoid's argument.
#[op(f32, ulp = 8, gated, grad = none)]
fn sharp_gate<T: Real>(gate: T, value: T) -> T {
    gate * (gate * T::constant(5.1)).sigmoid() * value
}

#[op(f32, ulp = 2, grad = twice_the_gradient)]
fn cube<T: Real>(x: T) -> T {
    x * x * x
}

fn twice_the_gradient<T: Real>(grad: T, x: T) -> T {
    T::constant(6.0) * grad * x * x
}

/// Its derivative is `2 x`; the derivative of the constant is lost.
#[op(f32, ulp = 2)]
fn square<T: Real>(x: T) -> T {
    x * T::constant(x.to_f64())
}

/// It has two operands; the slope by the second is lost.
#[op(f32, ulp = 4, results(sum, product))]
fn sum_and_product<T: Real>(a: T, b: T, keep: bool) -> (T, T) {
    let b = if keep { b } else { T::constant(b.to_f64()) };
    (a + b, a * b)
}

#[test]
fn an_overflow_is_refused() {
    refused(NaiveSigmoid::def(), &["naive_sigmoid", "is NaN, not 1e0", "which f32 does not hold"]);
    refused(NaiveGate::def(), &["the whole range", "is NaN", "which f32 does not hold"]);
}

#[test]
fn other_parameters_are_tried() {
    refused(Steep::<f64>::def(), &["is NaN, not 1e0", "(with a = 120.0)"]);
}

#[test]
fn a_bound_counts_of_several_operands() {
    refused(SharpGate::def(), &["ULP of f32, of which 8 are allowed"]);
}

#[test]
fn gradients_are_slopes() {
    let why = "the formula's slope there is";
    refused(Cube::def(), &["grad_x of cube", why, "`grad = ..`"]);
    refused(Square::def(), &["grad_x of square", why, "`to_f64`"]);
    refused(SumAndProduct::def(), &["grad_b of sum_and_product", why]);
}

/// If operand and noise cancel, the bound counts from their size.
#[op(floats, ulp = 8, grad_ulp = 8)]
fn gumbel<T: Real>(x: T, bits: RandomWord) -> T {
    let u = T::uniform(bits).maximum(T::constant(1.0 / 33_554_432.0));
    x - (-u.ln()).ln()
}

/// Terms that cancel behind a function, and a derivative with a zero.
#[op(f32, f16, bf16, ulp = 256, grad_ulp = 256)]
fn gelu_of_difference<T: Real>(a: T, b: T, #[param(default = 1.5)] scale: T) -> T {
    (a * scale - b).gelu()
}

/// Steps that overflow where operands are huge, and integers that wrap.
#[op(floats, ints, ulp = 2)]
fn cross<T: Num>(a: T, b: T) -> T {
    a * b - a
}

/// The nearest of a grid of whole numbers, where the rounding of the quotient decides now and then.
#[op(f32, ulp = 4)]
fn quantised<T: Real>(x: T, #[param(default = 0.1)] scale: T) -> T {
    (x / scale).round_ties_even() * scale
}

/// A value that is only moved, of any type.
#[op(floats, ints, bool, exact)]
fn chosen<T: Value>(x: T, other: T, keep: bool) -> T {
    if keep { x } else { other }
}

/// A derivative of one's own, at kinks too.
#[op(f32, exact, grad = ramp_gradient)]
fn ramp<T: Real>(x: T, #[param(default = 0.0)] at: T) -> T {
    (x - at).maximum(T::ZERO)
}

fn ramp_gradient<T: Real>(grad: T, x: T, at: T) -> T {
    if x >= at { grad } else { T::ZERO }
}

#[test]
fn right_ops_are_accepted() {
    for def in [
        Gumbel::def(),
        GeluOfDifference::<f64>::def(),
        Cross::def(),
        Quantised::<f64>::def(),
        Chosen::def(),
        Ramp::<f64>::def(),
    ] {
        accepted(def);
    }
}
