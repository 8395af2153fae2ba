//! The tour's part of the ops beside the tables: what they must give.

use pointwise::{DType, Device, Philox, SinusoidalLayout, Tensor, kernels, ops};
use pointwise_core::family::generator::alibi_slope;
use pointwise_core::family::random::last_kept;

use crate::check::{self, Elements};
use crate::error::{Error, Result};
use crate::special::Special;
use crate::tour::{Case, Samples, guarded};

/// Probability and place of dropout.
const P: f64 = 0.25;
const PLACE: Philox = Philox { seed: 42, offset: 3 };
/// Heads and length of ALiBi's bias: no power of two, no whole vectors.
const ALIBI: [usize; 2] = [6, 67];
/// Length and columns of the sinusoidal encoding.
const SINUSOIDAL: [usize; 2] = [131, 66];

/// Runs an op on a type; an encoding makes elements of that type.
///
/// # Errors
/// Those of the device.
pub(crate) fn case(op: &Special, samples: &Samples) -> Result<Case> {
    let (dtype, device) = (samples.dtype, samples.one.tensor.device());
    let (x, mask) = (&samples.three[0], &samples.conditions);
    let operand = &samples.one;
    let run = || -> Result<Tensor> {
        Ok(match op.name {
            "masked_fill" => ops::masked_fill(&x.tensor, &mask.tensor, 1)?,
            "dropout" => kernels::dropout(P).run(&operand.tensor, PLACE)?,
            "alibi" => ops::alibi(device, dtype, ALIBI[0], ALIBI[1])?,
            "sinusoidal" => sinusoidal(device, dtype)?,
            other => return Err(Error::Failed(format!("the tour does not know {other}"))),
        })
    };
    guarded(run, device, dtype, |y, got| {
        let index = Elements::Whole((0..got.len() as i64).collect());
        let index = [("index", &index)];
        // Integers, which f64 does not all have: `masked_fill` alone takes them.
        if let (Elements::Whole(got), Elements::Whole(x), Elements::Whole(mask)) = (got, &x.elements, &mask.elements) {
            let wanted: Vec<i64> = x.iter().zip(mask).map(|(&x, &mask)| if mask != 0 { 1 } else { x }).collect();
            return Ok(check::compare_whole(got, &wanted, &index));
        }
        let exact: Vec<f64> = match op.name {
            "masked_fill" => {
                let fill = |i| if mask.elements.number(i) != 0.0 { 1.0 } else { x.elements.number(i) };
                (0..x.elements.len()).map(fill).collect()
            }
            "dropout" => (0..operand.elements.len()).map(|i| dropped(operand.elements.number(i), i)).collect(),
            "alibi" => alibi_bias(),
            _ => encoding(),
        };
        Ok(check::compare(y.dtype(), op.accuracy(), got, &exact, &index))
    })
}

fn sinusoidal(device: &Device, dtype: DType) -> Result<Tensor> {
    let [len, columns] = SINUSOIDAL;
    Ok(ops::sinusoidal(device, dtype, len, columns, SinusoidalLayout::Interleaved)?)
}

/// Element `i` of dropout: kept by its random word, and scaled in f32.
fn dropped(x: f64, i: usize) -> f64 {
    let is_kept = PLACE.word(i as u64) <= last_kept(P);
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
