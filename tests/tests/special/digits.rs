//! `round_decimals` by other digits than none, against PyTorch's formula.

use pointwise::{DType, Device, Tensor, ops};
use pointwise_core::Element;
use pointwise_testkit::{inputs, judge, with_element};

use crate::{Outcome, differs};

/// `rint(x 10^d) / 10^d`, or `rint(x / 10^-d) 10^-d` for negative digits: each step in f32, then rounded to the type.
fn formula(x: f64, digits: i32) -> f64 {
    let scale: f32 = format!("1e{}", digits.abs()).parse().expect("a power of ten");
    let x = x as f32;
    let y = if digits < 0 { (x / scale).round_ties_even() * scale } else { (x * scale).round_ties_even() / scale };
    f64::from(y)
}

/// Every code of 8 and 16 bits, and f32 of all magnitudes.
pub(crate) fn digits(device: &Device, dtype: DType) -> Outcome {
    let n = if dtype == DType::F32 { 70_001 } else { 1 << (8 * dtype.size()) };
    let bytes = match dtype.size() {
        4 => inputs::mixed(dtype, n, 11),
        2 => (0..=u16::MAX).flat_map(u16::to_ne_bytes).collect(),
        _ => (0..=u8::MAX).collect(),
    };
    let x = Tensor::from_bytes(device, dtype, &bytes, [n])?;
    for digits in [1, 2, 3, 5, 7, 10, 11, 23, 38, -1, -2, -3, -10, -38] {
        let got = ops::round_decimals(&x, digits)?.to_bytes()?;
        let mut expected = Vec::with_capacity(got.len());
        with_element!(dtype, E => {
            for x in bytes.chunks_exact(dtype.size()) {
                let y = E::from_f64(formula(judge::from_bytes::<E>(x).to_f64(), digits));
                expected.extend_from_slice(judge::as_bytes(&y));
            }
        });
        if let Some(at) = differs(dtype, &got, &expected) {
            return Err(format!("{digits} digits: element {at} is wrong").into());
        }
    }
    Ok(())
}
