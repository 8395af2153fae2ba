//! Conversion between element types: the expected results, and calls on views of all kinds.

use pointwise::{DType, Device, Strategy, Tensor, kernels};
use pointwise_core::Element;
use pointwise_testkit::{Random, inputs, judge, with_element};

type Outcome = std::result::Result<(), String>;

/// An element's value.
#[derive(Clone, Copy, Debug)]
enum Exact {
    Float(f64),
    Whole(i128),
}

fn exact(dtype: DType, bytes: &[u8]) -> Exact {
    if dtype.is_float() {
        return Exact::Float(with_element!(dtype, E => judge::from_bytes::<E>(bytes).to_f64()));
    }
    let mut wide = [if dtype != DType::U8 && bytes[bytes.len() - 1] > 127 { 0xFF } else { 0 }; 8];
    wide[..bytes.len()].copy_from_slice(bytes);
    Exact::Whole(i128::from(i64::from_le_bytes(wide)))
}

/// A whole number rounded to `digits` significant bits, ties to even.
fn rounded(value: i128, digits: u32) -> f64 {
    let magnitude = value.unsigned_abs();
    let shift = (128 - magnitude.leading_zeros()).saturating_sub(digits);
    let (kept, half) = (magnitude >> shift, if shift == 0 { 0 } else { 1 << (shift - 1) });
    let rest = magnitude - (kept << shift);
    let up = rest > half || rest == half && shift > 0 && kept & 1 == 1;
    let result = ((kept + u128::from(up)) << shift) as f64;
    if value < 0 { -result } else { result }
}

/// The bytes of one element of type `from` as one of type `to`, from the definition.
#[must_use]
pub fn expected(from: DType, to: DType, bytes: &[u8]) -> Vec<u8> {
    if from == to {
        return bytes.to_vec();
    }
    let value = exact(from, bytes);
    let ends = |bits: u32| (-(1_i128 << (bits - 1)), (1_i128 << (bits - 1)) - 1);
    let whole = |(low, high): (i128, i128)| match value {
        Exact::Whole(value) => value,
        Exact::Float(value) if value.is_nan() => 0,
        // Every f32 cut to a whole number fits i128, or `as` leaves it at the far end.
        Exact::Float(value) => (value.trunc() as i128).clamp(low, high),
    };
    let float = |digits: u32| match value {
        Exact::Whole(value) => rounded(value, digits),
        Exact::Float(value) => value,
    };
    fn element<E: Element>(value: f64) -> Vec<u8> {
        let element = E::from_f64(value);
        // SAFETY: an element type is a plain number without padding.
        unsafe { std::slice::from_raw_parts((&raw const element).cast::<u8>(), size_of::<E>()) }.to_vec()
    }
    use pointwise_core::element::ty;
    match to {
        DType::F32 => element::<ty::f32>(float(24)),
        DType::F16 => element::<ty::f16>(float(11)),
        DType::BF16 => element::<ty::bf16>(float(8)),
        DType::F8E4M3 => element::<ty::f8e4m3>(float(4)),
        DType::F8E5M2 => element::<ty::f8e5m2>(float(3)),
        DType::Bool => vec![u8::from(match value {
            Exact::Whole(value) => value != 0,
            Exact::Float(value) => value != 0.0,
        })],
        // A float goes through i64, whose low bits are kept.
        DType::U8 => vec![whole(ends(64)) as u8],
        _ => whole(ends(8 * to.size() as u32)).to_le_bytes()[..to.size()].to_vec(),
    }
}

/// Elements to convert: all codes of 8 and 16 bits; of others ends, neighbours of powers of two, ties of every float
/// type between values of all magnitudes.
#[must_use]
pub fn operands(dtype: DType) -> Vec<u8> {
    if dtype.size() <= 2 {
        return inputs::codes(dtype, 0, 0);
    }
    let mut bytes = inputs::mixed(dtype, 1 << 12, 2);
    let mut push = |value: i128, step: f32| match dtype {
        DType::F32 => {
            for value in [value as f32, value as f32 + step, (value as f32).next_up(), (value as f32).next_down()] {
                bytes.extend(value.to_le_bytes());
                bytes.extend((-value).to_le_bytes());
            }
        }
        _ => {
            for value in [value - 1, value, value + 1, -value - 1, -value, -value + 1] {
                bytes.extend(&(value as i64).to_le_bytes()[..dtype.size()]);
            }
        }
    };
    let mut random = Random::new(7);
    for exponent in 0..64 {
        push(1 << exponent, 0.5);
        // Ties: half a unit behind the last of 3, 4, 8, 11 and 24 bits.
        for digits in [3, 4, 8, 11, 24] {
            let odd = (random.next_u64() % (1 << digits)) as i128 | (1 << digits) | 1;
            push(if exponent > digits { odd << (exponent - digits) >> 1 } else { odd }, 0.25);
        }
    }
    if dtype == DType::F32 {
        let small = (-160..30).flat_map(|exponent| [1.0, 1.25, 1.5, 1.75, 1.0625, 1.1875].map(|m| (m, exponent)));
        for (mantissa, exponent) in small {
            let value = (f64::from(mantissa as f32) * 2_f64.powi(exponent)) as f32;
            [value, -value].iter().for_each(|value| bytes.extend(value.to_le_bytes()));
        }
    }
    bytes
}

fn convert(dtypes: (DType, DType), bytes: &[u8]) -> Vec<u8> {
    bytes.chunks_exact(dtypes.0.size()).flat_map(|element| expected(dtypes.0, dtypes.1, element)).collect()
}

fn compare(to: DType, got: &[u8], wanted: &[u8], what: impl Fn() -> String) -> Outcome {
    match judge::same_bits(to, got, wanted) {
        None => Ok(()),
        Some(at) => {
            let part = |bytes: &[u8]| format!("{:02x?}", bytes.get(at * to.size()..(at + 1) * to.size()));
            Err(format!("{}: element {at} is {}, not {}", what(), part(got), part(wanted)))
        }
    }
}

/// Converts all of [`operands`], then parts at several alignments and views of other strides on both sides.
///
/// # Errors
/// The first wrong element, in words; the errors of the library.
pub fn check(device: &Device, from: DType, to: DType, strategy: Strategy) -> Outcome {
    let say = |error: pointwise::Error| error.to_string();
    let kernel = kernels::to_dtype().strategy(strategy);
    let bytes = operands(from);
    let n = bytes.len() / from.size();
    let x = Tensor::from_bytes(device, from, &bytes, [n]).map_err(say)?;
    let y = kernel.run(&x, to).map_err(say)?;
    let wanted = convert((from, to), &bytes);
    compare(to, &y.to_bytes().map_err(say)?, &wanted, || format!("{from} to {to}"))?;

    // Sizes and alignments, with a guard of ones around the result.
    let total = 1100;
    let bytes = inputs::mixed(from, total, 4);
    let wanted = convert((from, to), &bytes);
    let x = Tensor::from_bytes(device, from, &bytes, [total]).map_err(say)?;
    for n in [0, 1, 2, 3, 7, 15, 16, 17, 31, 33, 255, 1025] {
        for (x_at, y_at) in [(0, 0), (1, 1), (3, 3), (5, 5), (2, 10), (1, 0), (0, 3)] {
            let mut y = Tensor::from_bytes(device, to, &vec![1; total * to.size()], [total]).map_err(say)?;
            let into = y.view_mut().map_err(say)?.narrow(0, y_at, n).map_err(say)?;
            kernel.run_into(x.view().narrow(0, x_at, n).map_err(say)?, into).map_err(say)?;
            let got = y.to_bytes().map_err(say)?;
            let what = || format!("{from} to {to}, size {n}, offsets {x_at} and {y_at}");
            let (start, end) = (y_at * to.size(), (y_at + n) * to.size());
            compare(to, &got[start..end], &wanted[x_at * to.size()..(x_at + n) * to.size()], what)?;
            if got[..start].iter().chain(&got[end..]).any(|&byte| byte != 1) {
                return Err(format!("{}: wrote outside of the output", what()));
            }
        }
    }

    // Views: every second column of a turned matrix, and a column repeated, into a new tensor and into a turned one.
    let (rows, cols) = (33, 20);
    let x = Tensor::from_bytes(device, from, &bytes[..rows * cols * from.size()], [rows, cols]).map_err(say)?;
    let turned = x.view().transpose(0, 1).and_then(|view| view.step(0, 2)).map_err(say)?;
    let column = x.view().narrow(1, 3, 1).and_then(|view| view.expand([rows, 7])).map_err(say)?;
    for view in [turned, column] {
        let wanted = convert((from, to), &view.to_bytes().map_err(say)?);
        let y = kernel.run(view, to).map_err(say)?;
        compare(to, &y.to_bytes().map_err(say)?, &wanted, || format!("{from} to {to}, {view:?}"))?;
        let shape = [view.shape()[1], view.shape()[0]];
        let mut y = Tensor::zeros(device, to, shape).map_err(say)?;
        kernel.run_into(view, y.view_mut().map_err(say)?.transpose(0, 1).map_err(say)?).map_err(say)?;
        let got = y.view().transpose(0, 1).and_then(|y| y.to_bytes()).map_err(say)?;
        compare(to, &got, &wanted, || format!("{from} to {to}, {view:?} into a turned one"))?;
    }
    Ok(())
}
