//! Softmax and its like, over each row: the last dimension.

use pointwise::__family::*;

/// `e^(scale x - m) / sum(e^(scale x - m))`, `m` the largest `scale x`. A row of minus infinities alone gives NaN. Source:
/// `torch.softmax` with `dim=-1`.
#[op(f32, f16, bf16, ulp = 64, grad_ulp = 64)]
pub fn softmax<T: Real>(x: T, row: Row<T>, #[param(default = 1.0)] scale: T) -> T {
    let x = x * scale;
    let e = row.exp_negative(x - row.max(x).detach());
    e * (T::ONE / row.sum(e))
}

/// [`softmax()`] of the elements where `mask` is false; 0 elsewhere. A row without such elements gives NaN. Source:
/// `torch._masked_softmax`.
#[op(f32, f16, bf16, ulp = 64, grad_ulp = 64)]
pub fn masked_softmax<T: Real>(x: T, mask: bool, row: Row<T>, #[param(default = 1.0)] scale: T) -> T {
    let x = if mask { T::constant(f64::NEG_INFINITY) } else { x * scale };
    let e = row.exp_negative(x - row.max(x).detach());
    e * (T::ONE / row.sum(e))
}

/// `scale x - m - ln(sum(e^(scale x - m)))`, `m` the largest `scale x`. Source: `torch.log_softmax` with `dim=-1`.
#[op(f32, f16, bf16, ulp = 8, grad_ulp = 16)]
pub fn log_softmax<T: Real>(x: T, row: Row<T>, #[param(default = 1.0)] scale: T) -> T {
    let x = x * scale;
    let d = x - row.max(x).detach();
    d - row.sum(row.exp_negative(d)).ln()
}

/// `ln(sum(e^x))`, one for each row: `m + ln(sum(e^(x - m)))`, `m` the largest, or `m` if that is infinite. Source:
/// `torch.logsumexp` with `dim=-1`.
#[op(f32, f16, bf16, ulp = 8, grad_ulp = 16)]
pub fn logsumexp<T: Real>(x: T, row: Row<T>) -> PerRow<T> {
    let largest = row.max(x).detach();
    let total = row.sum(row.exp_negative(x - largest));
    PerRow(if largest.is_infinite() { largest } else { total.ln() + largest })
}

/// [`softmax()`] of `scale x + bias`: `bias` is a mask of zeros and minus infinities, or a position bias, and broadcasts. A row of
/// minus infinities alone gives NaN. Source: the attention of `torch.nn.functional.scaled_dot_product_attention` with
/// `attn_mask`.
#[op(f32, f16, bf16, ulp = 64, grad_ulp = 64)]
pub fn biased_softmax<T: Real>(x: T, bias: T, row: Row<T>, #[param(default = 1.0)] scale: T) -> T {
    let x = scale.mul_add(x, bias);
    let e = row.exp_negative(x - row.max(x).detach());
    e * (T::ONE / row.sum(e))
}

/// [`softmax()`] of a row's elements up to its position, `positions`; 0 behind it: attention to the keys that are not later than
/// the query, whose place among them the position is. A row with a position below 0 gives NaN. A row has up to 2^24 elements.
/// Source: the attention of `torch.nn.functional.scaled_dot_product_attention` with `is_causal`, where the position of row `i`
/// is `i`.
#[op(f32, f16, bf16, ulp = 64, grad_ulp = 64, __hints(few_registers))]
pub fn causal_softmax<T: Real>(
    x: T,
    #[stored(i64)] positions: PerRow<T>,
    row: Row<T>,
    #[param(default = 1.0)] scale: T,
) -> T {
    let x = if row.index() > positions.0 { T::constant(f64::NEG_INFINITY) } else { x * scale };
    let e = row.exp_negative(x - row.max(x).detach());
    e * (T::ONE / row.sum(e))
}

/// The cross entropy of each row of logits and its label, a class from 0 on: `logsumexp(x) - x[label]`. With a smoothing `s` the
/// target is `1 - s` of the label and `s` of all classes alike. The loss and the gradient are 0 where the label is
/// `ignore_index`; a label that names no class gives NaN. A row has up to 2^24 classes. For the gradient the row's largest logit
/// is kept, and the sum of `e^(x - largest)`. Source: `torch.nn.functional.cross_entropy` with `reduction="none"`.
#[op(
    f32, f16, bf16, ulp = 64, grad_ulp = 64,
    results(loss, largest: f32, total: f32),
    saves(x, labels, ignore_index, label_smoothing, largest, total),
    grad = cross_entropy_gradient
)]
pub fn cross_entropy<T: Real>(
    x: T,
    #[stored(i64)] labels: PerRow<T>,
    row: Row<T>,
    #[param(default = -100)] ignore_index: i64,
    #[param(default = 0.0, probability)] label_smoothing: T,
) -> (PerRow<T>, PerRow<T>, PerRow<T>) {
    let label = labels.0;
    let weight = weight_of_class(row.index(), label, row.len(), label_smoothing);
    let largest = row.max(x);
    // A class of minus infinity and of no weight has no part, where the product is NaN.
    let own = row.sum(if weight == T::ZERO { T::ZERO } else { weight * x });
    let total = row.sum(row.exp_negative(x - largest));
    // The difference first: it is 0 where the label's class is the largest, and the loss is small.
    let loss = if label >= T::ZERO && label < row.len() { total.ln() + (largest - own) } else { T::constant(f64::NAN) };
    let loss = if label == T::whole(ignore_index) { T::ZERO } else { loss };
    (PerRow(loss), PerRow(largest), PerRow(total))
}

/// Returns the part of a class in the target of a row of `len` classes.
#[inline(always)]
fn weight_of_class<T: Real>(class: T, label: T, len: T, smoothing: T) -> T {
    let smooth = smoothing / len;
    if class == label { T::ONE - smoothing + smooth } else { smooth }
}

/// Returns the gradient of [`cross_entropy()`]: the probability of a class less its part in the target.
#[allow(clippy::too_many_arguments)]
#[inline(always)]
fn cross_entropy_gradient<T: Real>(
    grad: PerRow<T>,
    x: T,
    labels: PerRow<T>,
    place: Place<T>,
    ignore_index: i64,
    label_smoothing: T,
    largest: PerRow<T>,
    total: PerRow<T>,
) -> T {
    let label = labels.0;
    let weight = weight_of_class(place.index(), label, place.len(), label_smoothing);
    let probability = (x - largest.0).exp() * (T::ONE / total.0);
    let slope = if label >= T::ZERO && label < place.len() { probability - weight } else { T::constant(f64::NAN) };
    if label == T::whole(ignore_index) { T::ZERO } else { grad.0 * slope }
}
