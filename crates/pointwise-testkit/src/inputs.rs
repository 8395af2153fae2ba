//! Inputs as bytes: special values, every code of the small types, and values of all magnitudes, the same for a seed on
//! every machine.

use pointwise::DType;
use pointwise_core::Element;

use crate::{Random, judge, with_element};

/// Magnitudes that formulas treat apart: zero and the ends of each type's range, halves between whole numbers, steps of
/// the activations, edges of fast paths and of types. [`special`] has the negative of each, too.
pub const SPECIAL: &[f32] = &[
    0.0,
    1.0,
    2.0,
    0.5,
    3.0,
    f32::INFINITY,
    f32::NAN,
    f32::MAX,
    f32::from_bits(1),
    f32::MIN_POSITIVE,
    1.1754942e-38,
    f32::EPSILON,
    1e-7,
    1e-3,
    0.1,
    0.25,
    0.3,
    0.499,
    0.7,
    0.99999994,
    1.0000001,
    1.5,
    std::f32::consts::FRAC_PI_2,
    2.5,
    std::f32::consts::PI,
    4.0,
    5.75,
    6.0,
    7.0,
    10.0,
    13.2,
    20.0,
    20.000002,
    33.0,
    87.33655,
    88.72284,
    88.72285,
    100.0,
    103.97208,
    104.0,
    448.0,
    710.0,
    57344.0,
    65504.0,
    1e5,
    8388608.5,
    16777216.0,
    2147483648.0,
    1e10,
    1e20,
];

/// Whole numbers where types end or formulas turn.
pub const INTEGERS: &[i64] = &[
    i64::MIN,
    i64::MAX,
    i32::MIN as i64,
    i32::MAX as i64,
    0,
    -1,
    1,
    2,
    -2,
    3,
    -3,
    7,
    -7,
    10,
    127,
    128,
    -128,
    -129,
    255,
    256,
    32767,
    -32768,
    65535,
];

/// So many of [`INTEGERS`] come first in [`mixed`] i32 and i64, whatever the seed.
const EXTREMES: usize = 7;

/// The special values of a type; none of bool.
#[must_use]
pub fn special(dtype: DType) -> Vec<u8> {
    if dtype.is_float() {
        let all = SPECIAL.iter().flat_map(|&x| [x, -x]);
        return with_element!(dtype, E => all.flat_map(|x| judge::as_bytes(&<E as Element>::from_f64(x.into())).to_vec()).collect());
    }
    if dtype == DType::Bool {
        return Vec::new();
    }
    let mut codes: Vec<&[u8]> = Vec::new();
    let wide: Vec<[u8; 8]> = INTEGERS.iter().map(|x| x.to_le_bytes()).collect();
    for code in &wide {
        // Several are the same in a narrow type.
        let code = &code[..dtype.size()];
        if !codes.contains(&code) {
            codes.push(code);
        }
    }
    codes.concat()
}

/// Every code of an 8- or 16-bit type, in order; of a wider type, which has too many, `n` [`mixed`] values.
#[must_use]
pub fn codes(dtype: DType, n: usize, seed: u64) -> Vec<u8> {
    match (dtype, dtype.size()) {
        (DType::Bool, _) => vec![0, 1],
        (_, 1) => (0..=u8::MAX).collect(),
        (_, 2) => (0..=u16::MAX).flat_map(u16::to_le_bytes).collect(),
        _ => mixed(dtype, n, seed),
    }
}

/// `n` elements: of f32 and of wide integers the special values first where the seed is even, then codes of all
/// magnitudes; half of f32 lie between -16 and 16.
#[must_use]
pub fn mixed(dtype: DType, n: usize, seed: u64) -> Vec<u8> {
    let mut random = Random::new(seed);
    let mut bytes = Vec::with_capacity(n * dtype.size());
    for i in 0..n {
        let code = random.next_u64();
        match dtype {
            DType::F32 => {
                let x = match i {
                    _ if i % 2 == 0 => f32::from_bits(code as u32),
                    _ => (code >> 40) as f32 / (1 << 19) as f32 - 16.0,
                };
                bytes.extend(x.to_le_bytes());
            }
            DType::Bool => bytes.push((code & 1) as u8),
            // Small numbers among all: a shift of up to the whole width.
            DType::I32 => bytes.extend(((code as i32) >> (code >> 59)).to_le_bytes()),
            DType::I64 => bytes.extend(((code.rotate_left(7) as i64) >> (code >> 58)).to_le_bytes()),
            _ => bytes.extend(&code.to_le_bytes()[..dtype.size()]),
        }
    }
    let special = match dtype {
        DType::F32 | DType::I32 | DType::I64 => special(dtype),
        _ => return bytes,
    };
    let first = match dtype {
        _ if seed.is_multiple_of(2) => special.len(),
        DType::F32 => 0,
        _ => special.len().min(EXTREMES * dtype.size()),
    };
    let len = first.min(bytes.len());
    bytes[..len].copy_from_slice(&special[..len]);
    bytes
}

/// Values of one type, the special ones first, and how many of those there are: every code of 8 bits, else special ones
/// and `n` more.
fn pool(dtype: DType, n: usize, seed: u64) -> (Vec<u8>, usize) {
    if dtype.size() == 1 {
        let all = codes(dtype, 0, seed);
        let len = all.len();
        return (all, len);
    }
    let mut all = special(dtype);
    let len = all.len() / dtype.size();
    all.extend(mixed(dtype, n, seed));
    (all, len)
}

/// Other values than the special ones that [`tuples`] chooses from.
const OTHERS: usize = 1 << 14;

/// Operands that go together, elements of types `dtypes`: of two as wide as each other all pairs of 8-bit codes, of other types
/// all pairs of special values and 2^14 random pairs; else `choices` random ones, of special values alone in every
/// second.
#[must_use]
pub fn tuples(dtypes: &[DType], choices: usize, seed: u64) -> Vec<Vec<u8>> {
    let pools: Vec<(Vec<u8>, usize)> =
        dtypes.iter().zip((seed..).step_by(2)).map(|(&dtype, seed)| pool(dtype, OTHERS, seed)).collect();
    let mut out = vec![Vec::new(); dtypes.len()];
    let mut push = |indices: &[usize]| {
        for (k, &index) in indices.iter().enumerate() {
            let at = index * dtypes[k].size();
            out[k].extend_from_slice(&pools[k].0[at..at + dtypes[k].size()]);
        }
    };
    let mut random = Random::new(seed);
    match dtypes {
        [a, b] if a.size() == b.size() => {
            let special = [0, 1].map(|k: usize| pools[k].1);
            for first in 0..special[0] {
                (0..special[1]).for_each(|second| push(&[first, second]));
            }
            if a.size() > 1 {
                (0..OTHERS).for_each(|i| push(&[special[0] + i, special[1] + random.below(OTHERS)]));
            }
        }
        _ => {
            for i in 0..choices {
                let len = |k: usize| {
                    let (all, special) = &pools[k];
                    if i % 2 == 0 { *special } else { all.len() / dtypes[k].size() }
                };
                let indices: Vec<usize> = (0..dtypes.len()).map(|k| random.below(len(k))).collect();
                push(&indices);
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_elements_of_every_type() {
        for dtype in DType::ALL {
            for bytes in [special(dtype), codes(dtype, 100, 1), mixed(dtype, 100, 2)] {
                assert_eq!(bytes.len() % dtype.size(), 0, "{dtype}");
            }
            assert_eq!(mixed(dtype, 3, 2).len(), 3 * dtype.size());
        }
        assert_eq!(codes(DType::I64, 7, 0).len(), 56);
        assert_eq!(special(DType::I8).len(), [0, -1, 1, 2, -2, 3, -3, 7, -7, 10, 127, -128].len());
    }

    #[test]
    fn special_values_come_first() {
        assert_eq!(mixed(DType::F32, 1000, 2)[..8 * SPECIAL.len()], special(DType::F32));
        assert_ne!(mixed(DType::F32, 1000, 1)[..16], special(DType::F32)[..16]);
        assert_eq!(mixed(DType::I64, 9, 1)[..8], i64::MIN.to_le_bytes());
        assert_eq!(special(DType::I32)[..8], [0, 0, 0, 0, 255, 255, 255, 255], "i64's ends, wrapped");
        assert!(special(DType::I32).as_chunks::<4>().0.contains(&i32::MIN.to_le_bytes()));
    }

    #[test]
    fn tuples_are_of_one_length() {
        let lengths = |dtypes: &[DType]| tuples(dtypes, 50, 1).iter().map(Vec::len).collect::<Vec<_>>();
        assert_eq!(lengths(&[DType::F8E4M3; 2]), [65_536; 2]);
        assert_eq!(lengths(&[DType::F32; 2]), [4 * ((2 * SPECIAL.len()).pow(2) + OTHERS); 2]);
        assert_eq!(lengths(&[DType::Bool, DType::I16, DType::I16]), [50, 100, 100]);
        assert_eq!(lengths(&[]), [0_usize; 0]);
    }
}
