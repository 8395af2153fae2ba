//! The tour's part for `masked_fill`, dropout and the position encodings, with their expected results.

use pointwise::{DType, Device, Philox, Tensor, kernel::SinusoidalLayout, kernels, ops};
use pointwise_core::Element;
use pointwise_core::family::generator::alibi_slope;
use pointwise_core::family::random::last_kept;
use pointwise_testkit::{judge, with_element};

use crate::error::{Error, Result};
use crate::registry::Op;
use crate::samples::{Samples, numbers};
use crate::verdict::{Case, Verdict, guarded};

/// Probability and place of dropout.
const P: f64 = 0.25;
const RNG: Philox = Philox { seed: 42, offset: 3 };
/// Heads and length of ALiBi's bias: no power of two, no whole vectors.
const ALIBI: [usize; 2] = [6, 67];
/// Length and columns of the sinusoidal encoding.
const SINUSOIDAL: [usize; 2] = [131, 66];

/// Runs an op on a type; an encoding makes elements of that type.
///
/// # Errors
/// The errors of the device.
pub(crate) fn case(op: Op, samples: &Samples) -> Result<Case> {
    let (dtype, device) = (samples.dtype, samples.one.tensor.device());
    let (x, mask) = (&samples.three[0], &samples.conditions);
    let operand = &samples.one;
    let run = || -> Result<Vec<Tensor>> {
        Ok(vec![match op.info().name {
            "masked_fill" => ops::masked_fill(&x.tensor, &mask.tensor, 1)?,
            "dropout" => kernels::dropout(P).run(&operand.tensor, RNG)?,
            "alibi" => ops::alibi(device, dtype, ALIBI[0], ALIBI[1])?,
            "sinusoidal" => sinusoidal(device, dtype)?,
            other => return Err(Error::Failed(format!("the tour does not know {other}"))),
        }])
    };
    guarded(run, device, dtype, |got| {
        let exact = match op.info().name {
            "masked_fill" => return Ok(filled(dtype, &x.bytes, &mask.bytes, got)),
            "dropout" => {
                let x = numbers(dtype, &operand.bytes).into_iter().enumerate();
                x.map(|(i, x)| dropped(x, i)).collect()
            }
            "alibi" => alibi_bias(),
            _ => encoding(),
        };
        Ok(Verdict::of(&judge::compare(dtype, got, exact), op.info().accuracy, dtype))
    })
}

/// Judges the elements of `masked_fill` with 1: elements of `x` keep their bits.
fn filled(dtype: DType, x: &[u8], mask: &[u8], got: &[u8]) -> Verdict {
    let one = with_element!(dtype, E => judge::as_bytes(&<E as Element>::from_f64(1.0)).to_vec());
    let pairs = x.chunks_exact(dtype.size()).zip(mask);
    let wanted: Vec<u8> = pairs.flat_map(|(x, &mask)| if mask != 0 { one.clone() } else { x.to_vec() }).collect();
    let wrong = |at| Verdict::broken(format!("element {at} is neither the operand's nor the value"));
    judge::same_bits(dtype, got, &wanted).map_or_else(Verdict::default, wrong)
}

fn sinusoidal(device: &Device, dtype: DType) -> Result<Tensor> {
    let [len, columns] = SINUSOIDAL;
    Ok(ops::sinusoidal(device, dtype, len, columns, SinusoidalLayout::Interleaved)?)
}

/// Element `i` of dropout: kept by its random word, and scaled in f32.
fn dropped(x: f64, i: usize) -> f64 {
    let is_kept = RNG.word(i as u64) <= last_kept(P as f32);
    if is_kept { f64::from(x as f32 * (1.0 / (1.0 - P)) as f32) } else { 0.0 }
}

/// The distance is a whole number, so that its zero has no sign.
fn alibi_bias() -> Vec<f64> {
    let [heads, len] = ALIBI;
    let head = |h: usize| alibi_slope(heads as u32, h as u32).unwrap_or(f64::NAN);
    let row = |h: usize, i: usize| (0..len).map(move |j| head(h) * -(i.abs_diff(j) as i64) as f64);
    (0..heads).flat_map(|h| (0..len).flat_map(move |i| row(h, i))).collect()
}

fn encoding() -> Vec<f64> {
    let [len, columns] = SINUSOIDAL;
    let angle = |p: usize, c: usize| p as f64 * 10000.0_f64.powf(-((c & !1) as f64) / columns as f64);
    let value = |p: usize, c: usize| if c.is_multiple_of(2) { angle(p, c).sin() } else { angle(p, c).cos() };
    (0..len).flat_map(|p| (0..columns).map(move |c| value(p, c))).collect()
}
