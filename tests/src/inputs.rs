//! Inputs: every code of the small types, and for the others special values among values of all magnitudes.

use pointwise::DType;

/// A stream of well-mixed 64-bit numbers (SplitMix64: Steele, Lea, Flood, OOPSLA 2014).
#[derive(Clone, Debug)]
pub struct Random(pub u64);

impl Random {
    /// The next number.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }
}

/// f32 values that formulas treat apart: ends of the range, zeros, steps of the activations, edges of fast paths.
const SPECIAL: &[f32] = &[
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    -0.5,
    1.5,
    2.5,
    -2.5,
    3.0,
    -3.0,
    6.0,
    20.0,
    20.000002,
    -20.0,
    88.72284,
    88.72285,
    -87.33655,
    -103.97208,
    -104.0,
    1e-45,
    -1e-45,
    1.1754944e-38,
    -1.1754942e-38,
    3.4028235e38,
    -3.4028235e38,
    f32::INFINITY,
    f32::NEG_INFINITY,
    f32::NAN,
    -f32::NAN,
    std::f32::consts::PI,
    std::f32::consts::FRAC_PI_2,
    710.0,
    1e5,
    1e10,
    8388608.5,
    1e-3,
    -1e-3,
    0.25,
    -0.25,
    5.75,
    -5.75,
    13.2,
    -13.2,
    -0.99999994,
    4.0,
    -4.0,
    16777217.0,
];

/// Every code of an 8- or 16-bit type, in order, as bytes.
///
/// # Panics
/// For wider types.
#[must_use]
pub fn every_code(dtype: DType) -> Vec<u8> {
    match (dtype, dtype.size()) {
        (DType::Bool, _) => vec![0, 1],
        (_, 1) => (0..=u8::MAX).collect(),
        (_, 2) => (0..=u16::MAX).flat_map(u16::to_le_bytes).collect(),
        _ => panic!("{dtype} has too many codes"),
    }
}

/// `n` elements of a type as bytes: its special values first, then codes of all magnitudes, half of them between
/// -16 and 16 for f32.
#[must_use]
pub fn mixed(dtype: DType, n: usize, seed: u64) -> Vec<u8> {
    let mut random = Random(seed);
    let mut bytes = Vec::with_capacity(n * dtype.size());
    for i in 0..n {
        let code = random.next_u64();
        match dtype {
            DType::F32 => {
                let x = match SPECIAL.get(i) {
                    Some(&x) if seed.is_multiple_of(2) => x,
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
    let extremes: &[i64] = &[i64::MIN, i64::MAX, 0, -1, 1];
    if matches!(dtype, DType::I32 | DType::I64) {
        for (&extreme, slot) in extremes.iter().zip(bytes.chunks_exact_mut(dtype.size())) {
            // The upper half of i64's extremes are i32's.
            let code = if dtype == DType::I32 && extreme.unsigned_abs() > 1 { extreme >> 32 } else { extreme };
            slot.copy_from_slice(&code.to_le_bytes()[..dtype.size()]);
        }
    }
    bytes
}
