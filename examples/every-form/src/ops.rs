//! The ops, one of each form.

use pointwise::formulas;
use pointwise::prelude::*;

pub mod groups;
pub mod mixed;
pub mod noise;
pub mod rows;

/// A gated activation: `gate sigmoid(alpha gate) (value + 1)`, of the halves of one tensor, or of two tensors. Its error is
/// that of the sigmoid's argument, whose last place is 60 ULP of a sigmoid near -88.
#[op(floats, ulp = 128, grad_ulp = 128, gated)]
pub fn swish_gate<T: Real>(gate: T, value: T, #[param(default = 1.702)] alpha: T) -> T {
    gate * (alpha * gate).sigmoid() * (value + T::ONE)
}

/// The end of a normalisation: a scale and a shift for each channel.
#[op(f32, f16, bf16, ulp = 2, grad_ulp = 8)]
pub fn affine<T: Real>(x: T, #[channel] scale: T, #[channel] shift: T) -> T {
    x.mul_add(scale, shift)
}

/// A mask to add to attention's scores: 0 for the last `window` tokens, `fill` for those before and after.
#[op(floats, exact)]
pub fn sliding_window<T: Real>(
    row: Index,
    column: Index,
    #[param(default = 4)] window: i64,
    #[param(default = -128.0)] fill: T,
) -> T {
    let back = i64::from(row) - i64::from(column);
    if back >= 0 && back < window { T::ZERO } else { fill }
}

/// Attention's scores with ALiBi's bias (Press, Smith and Lewis 2022), and -inf for positions to come. `slope` is an operand of
/// the shape (heads, 1, 1).
#[op(f32, f16, bf16, ulp = 2, grad_ulp = 2)]
pub fn causal_scores<T: Real>(score: T, slope: T, row: Index, column: Index) -> T {
    let back = row as i32 - column as i32;
    if back >= 0 { slope.mul_add(T::constant(f64::from(-back)), score) } else { T::constant(f64::NEG_INFINITY) }
}

/// A sigmoid whose gradient reads the result, `grad y (1 - y)`, so that the operand need not be kept.
#[op(floats, ulp = 4, grad_ulp = 8, saves(y), grad = logistic_slope)]
pub fn logistic<T: Real>(x: T) -> T {
    x.sigmoid()
}

fn logistic_slope<T: Real>(grad: T, y: T) -> T {
    grad * y * (T::ONE - y)
}

/// A gated unit that calls two ops of the family by their functions.
#[op(floats, ulp = 8, grad_ulp = 16)]
pub fn leaky_gate<T: Real>(x: T, gate: T, #[param(default = 0.01)] slope: T) -> T {
    formulas::leaky_relu(x, slope) * formulas::hardsigmoid(gate)
}

/// The op of a struct of one's own.
#[derive(Clone, Copy, Debug)]
pub struct SquaredRelu<T> {
    /// The slope of the square.
    pub slope: T,
}

/// `slope max(x, 0)^2` (So et al. 2021).
#[op(floats, ulp = 2, params(slope = 1.0))]
impl<T: Real> UnaryOp<T> for SquaredRelu<T> {
    type Output = T;
    fn apply(self, x: T) -> T {
        let r = x.relu();
        self.slope * (r * r)
    }
}

/// Elements that are kept where a condition holds, of any type.
#[op(floats, ints, bool, exact)]
pub fn keep_where<T: Value>(x: T, other: T, keep: bool) -> (T, bool) {
    (if keep { x } else { other }, keep)
}

/// The two codes of four bits in a byte: the lower one, and the upper one.
#[op(u8, i8, results(low, high))]
pub fn nibbles<T: Bits>(x: T) -> (T, T) {
    (x & T::whole(15), x.shr(4) & T::whole(15))
}

/// The products `a b` and `c d` of complex numbers: eight operands, four results.
#[op(f32, f16, bf16, ulp = 4, grad_ulp = 16, results(ab_re, ab_im, cd_re, cd_im))]
pub fn complex_products<T: Real>(
    a_re: T,
    a_im: T,
    b_re: T,
    b_im: T,
    c_re: T,
    c_im: T,
    d_re: T,
    d_im: T,
) -> (T, T, T, T) {
    let product = |a: (T, T), b: (T, T)| (a.0.mul_add(b.0, -(a.1 * b.1)), a.0.mul_add(b.1, a.1 * b.0));
    let (ab_re, ab_im) = product((a_re, a_im), (b_re, b_im));
    let (cd_re, cd_im) = product((c_re, c_im), (d_re, d_im));
    (ab_re, ab_im, cd_re, cd_im)
}

/// A step of AdamW (Loshchilov and Hutter 2019) as `torch.optim.AdamW` takes it: parameters and both moments in one pass.
/// `correction1` is `1 - beta1^t`, `correction2` the root of `1 - beta2^t`.
#[op(f32, ulp = 8, grad = none, results(param, exp_avg, exp_avg_sq))]
#[allow(clippy::too_many_arguments)]
pub fn adamw<T: Real>(
    param: T,
    grad: T,
    exp_avg: T,
    exp_avg_sq: T,
    #[param(default = 1e-3)] lr: T,
    #[param(default = 0.9)] beta1: T,
    #[param(default = 0.999)] beta2: T,
    #[param(default = 1e-8)] eps: T,
    #[param(default = 0.01)] weight_decay: T,
    #[param(default = 1.0)] correction1: T,
    #[param(default = 1.0)] correction2: T,
) -> (T, T, T) {
    let exp_avg = beta1.mul_add(exp_avg, (T::ONE - beta1) * grad);
    let exp_avg_sq = beta2.mul_add(exp_avg_sq.abs(), (T::ONE - beta2) * (grad * grad));
    let step = (exp_avg / correction1) / (exp_avg_sq.sqrt() / correction2 + eps);
    ((-lr).mul_add(step, param * (T::ONE - lr * weight_decay)), exp_avg, exp_avg_sq)
}
