//! Operands: numbers near zero, and the whole range of a type.

use pointwise::DType;
use pointwise::info::OpInfo;
use pointwise_core::Element;

use crate::{inputs, judge, with_element};

/// Elements of each part of [`whole_range`].
const PART: usize = 1 << 10;
/// Elements of the part where all operands are of the whole range.
const ALL: usize = 1 << 12;
/// Elements of the only operand, of types whose codes are too many.
const ONE: usize = 1 << 14;

/// Operands of the whole range of their types, as bytes: infinities, NaN, the largest and the smallest numbers among
/// them. If there are several operands, each takes the whole range in turn while the others are near zero; then all do.
pub(super) fn whole_range(info: &OpInfo, dtype: DType) -> Vec<Vec<u8>> {
    let dtypes: Vec<DType> = (0..info.operands.len()).map(|k| info.operand_type(k, dtype)).collect();
    if let [one] = *dtypes {
        return vec![inputs::codes(one, ONE, 2)];
    }
    let all = inputs::tuples(&dtypes, ALL, 2);
    let mut parts = vec![Vec::new(); dtypes.len()];
    for turn in 0..dtypes.len() {
        let bytes = strange(dtypes[turn]);
        let n = bytes.len() / dtypes[turn].size();
        for (k, part) in parts.iter_mut().enumerate() {
            if k == turn {
                part.extend_from_slice(&bytes);
            } else {
                let near: Vec<f64> = (0..n).map(|i| sample(i, 97 * turn + k)).collect();
                part.extend(encode(dtypes[k], &near).0);
            }
        }
    }
    for ((part, all), dtype) in parts.iter_mut().zip(all).zip(&dtypes) {
        part.extend_from_slice(&all[..all.len().min(4 * ALL * dtype.size())]);
    }
    parts
}

/// Special values, and others of all magnitudes; every code of 8 bits.
fn strange(dtype: DType) -> Vec<u8> {
    if dtype.size() == 1 {
        return inputs::codes(dtype, 0, 0).into_iter().cycle().take(256).collect();
    }
    [inputs::special(dtype), inputs::mixed(dtype, PART, 3)].concat()
}

/// Numbers between -4 and 4, some of them special.
pub(super) fn sample(i: usize, seed: usize) -> f64 {
    let hash = ((i * 64 + seed) as u32).wrapping_mul(0x9E37_79B9) ^ 0x5bd1_e995;
    match hash % 13 {
        0 => 0.0,
        1 => 1.0,
        2 => -3.0,
        _ => f64::from(hash.wrapping_mul(0x85eb_ca6b) >> 8) / f64::from(1 << 21) - 4.0,
    }
}

/// The numbers as elements, and what these are.
pub(super) fn encode(dtype: DType, numbers: &[f64]) -> (Vec<u8>, Vec<f64>) {
    let kept = |x: f64| match dtype {
        DType::I8 | DType::U8 => x.abs(),
        DType::Bool => x.max(0.0),
        _ => x,
    };
    let bytes: Vec<u8> = with_element!(dtype, E => {
        numbers.iter().flat_map(|&x| judge::as_bytes(&<E as Element>::from_f64(kept(x))).to_vec()).collect()
    });
    let values = decode(dtype, &bytes);
    (bytes, values)
}

/// Returns an operand's values as the formula has them: whole numbers of a fixed type are the nearest f32.
pub(super) fn computed(info: &OpInfo, k: usize, mut values: Vec<f64>) -> Vec<f64> {
    if info.stored_operand(k).is_some() {
        values.iter_mut().for_each(|value| *value = f64::from(*value as f32));
    }
    values
}

/// Returns the values of elements.
pub(super) fn decode(dtype: DType, bytes: &[u8]) -> Vec<f64> {
    with_element!(dtype, E => {
        bytes.chunks_exact(size_of::<E>()).map(|bytes| judge::from_bytes::<E>(bytes).to_f64()).collect()
    })
}
