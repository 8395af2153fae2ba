//! The inputs of an op: an input for every number `0..count`, the same on every machine.
//!
//! `benches/peers/torch_accuracy.py` makes the same ones, bit for bit.

use pointwise::DType;
use pointwise_core::Element;
use pointwise_testkit::judge::as_bytes;
use pointwise_testkit::with_element;

use super::Subject;

/// Values whose pairs and triples come before the random ones. They are a part of what was measured, as in the script,
/// whatever becomes of the testkit's special values.
pub const GRID: &[f32] = &[
    0.0,
    -0.0,
    1.0,
    -1.0,
    2.0,
    -2.0,
    0.5,
    -0.5,
    3.0,
    -3.0,
    0.1,
    -0.1,
    1.5,
    2.5,
    7.0,
    -7.0,
    10.0,
    100.0,
    -100.0,
    1e-45,
    -1e-45,
    1.1754944e-38,
    3.4028235e38,
    -3.4028235e38,
    f32::INFINITY,
    f32::NEG_INFINITY,
    f32::NAN,
    65504.0,
    57344.0,
    448.0,
    1e5,
    1e20,
    -1e20,
    0.99999994,
    1.0000001,
    16777216.0,
    16777217.0,
    2147483648.0,
    0.3,
    0.7,
    0.499,
    1e-7,
    33.0,
];

/// The factors of all codes of `x` in gradients of 16 bits: signs, magnitudes, ends of the ranges.
pub const GRADS: &[f32] = &[
    0.0,
    1.0,
    -1.0,
    0.7,
    -1.6,
    3.0,
    100.0,
    -0.01,
    1e-7,
    65504.0,
    1.1754944e-38,
    -3.3895314e38,
    f32::INFINITY,
    f32::NEG_INFINITY,
    f32::NAN,
    -0.0,
];

/// Codes of a 16-bit type.
const CODES: u64 = 1 << 16;

/// Up to this number of tuples, all are tried.
const FEW: u64 = 1 << 24;

/// The inputs of an op in an element type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inputs {
    /// For one operand of f32: every code, or one of every `step`.
    Codes {
        /// 1 for all 2^32.
        step: u64,
    },
    /// For small types: every code, or every pair or triple of codes.
    Tuples {
        /// Codes of each operand.
        codes: [u64; 4],
    },
    /// For the gradient of an op of one operand in 16 bits: every code of `x` with each of [`GRADS`], then random
    /// pairs.
    Grads {
        /// Random pairs.
        count: u64,
    },
    /// All tuples of [`GRID`], then random ones: random bit patterns and near-normal values by turns.
    Random {
        /// Operands.
        operands: u32,
        /// Random tuples.
        count: u64,
    },
}

impl Inputs {
    /// Returns the inputs for an element type: all tuples, or `random` of them if all would be too many.
    #[must_use]
    pub fn of(subject: Subject, dtype: DType, step: u64, random: u64) -> Self {
        let operands = subject.operands().len();
        if operands == 1 && dtype == DType::F32 {
            return Inputs::Codes { step };
        }
        let codes = std::array::from_fn(|k| match (k < operands).then(|| subject.operand_type(dtype, k)) {
            None => 1,
            Some(DType::Bool) => 2,
            Some(dtype) => 1 << (8 * dtype.size()),
        });
        let all = codes.iter().fold(1_u64, |all, &codes: &u64| all.saturating_mul(codes));
        if all <= FEW || dtype != DType::F32 && all <= random {
            return Inputs::Tuples { codes };
        }
        // In 16 bits 2^28 pairs are a sixteenth of all there are.
        let random = if dtype == DType::F32 { random } else { random.min(1 << 28) };
        if subject.is_backward() && dtype != DType::F32 {
            return Inputs::Grads { count: random };
        }
        // More operands cost more, and there are a quarter of them.
        Inputs::Random { operands: operands as u32, count: if operands == 2 { random } else { random / 4 } }
    }

    /// The number of inputs.
    #[must_use]
    pub fn count(self) -> u64 {
        match self {
            Inputs::Codes { step } => (1_u64 << 32).div_ceil(step),
            Inputs::Tuples { codes } => codes.iter().product(),
            Inputs::Grads { count } => GRADS.len() as u64 * CODES + count,
            Inputs::Random { operands, count } => (GRID.len() as u64).pow(operands) + count,
        }
    }

    /// True if no input is missing.
    #[must_use]
    pub fn is_all(self) -> bool {
        match self {
            Inputs::Codes { step } => step == 1,
            Inputs::Tuples { .. } => true,
            Inputs::Grads { .. } | Inputs::Random { .. } => false,
        }
    }

    /// Operand `k` of the inputs `start .. start + len`, as bytes.
    #[must_use]
    pub fn operand(self, dtype: DType, k: usize, start: u64, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len * dtype.size()];
        let slots = (start..).zip(bytes.chunks_exact_mut(dtype.size()));
        match self {
            Inputs::Codes { step } => {
                slots.for_each(|(i, slot)| slot.copy_from_slice(&((i * step) as u32).to_le_bytes()));
            }
            Inputs::Tuples { codes } => {
                let below: u64 = codes[k + 1..].iter().product();
                for (i, slot) in slots {
                    let code = i / below % codes[k];
                    slot.copy_from_slice(&code.to_le_bytes()[..slot.len()]);
                }
            }
            Inputs::Grads { .. } => {
                let grid = GRADS.len() as u64 * CODES;
                with_element!(dtype, E => for (i, slot) in slots {
                    if i >= grid {
                        draw::<E>(i - grid, k, slot);
                    } else if k == 0 {
                        put::<E>(GRADS[(i / CODES) as usize], slot);
                    } else {
                        slot.copy_from_slice(&i.to_le_bytes()[..slot.len()]);
                    }
                });
            }
            Inputs::Random { operands, .. } => {
                let side = GRID.len() as u64;
                let (grid, below) = (side.pow(operands), side.pow(operands - 1 - k as u32));
                with_element!(dtype, E => for (i, slot) in slots {
                    if i < grid {
                        put::<E>(GRID[(i / below % side) as usize], slot);
                    } else {
                        draw::<E>(i - grid, k, slot);
                    }
                });
            }
        }
        bytes
    }
}

/// A value as an element.
fn put<E: Element>(value: f32, slot: &mut [u8]) {
    slot.copy_from_slice(as_bytes(&E::from_f64(f64::from(value))));
}

/// Operand `k` of random tuple `i`: bit patterns and near-normal values by turns.
fn draw<E: Element>(i: u64, k: usize, slot: &mut [u8]) {
    let word = word(i, k);
    match E::DTYPE {
        DType::Bool => slot[0] = (word & 1) as u8,
        _ if i.is_multiple_of(2) => slot.copy_from_slice(&word.to_le_bytes()[..slot.len()]),
        _ => put::<E>(near_normal(word), slot),
    }
}

/// SplitMix64's increment.
const GAMMA: u64 = 0x9E37_79B9_7F4A_7C15;

/// SplitMix64's mixing (Steele, Lea, Flood, OOPSLA 2014).
fn mix(z: u64) -> u64 {
    let z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// The random word of operand `k` of tuple `i`.
fn word(i: u64, k: usize) -> u64 {
    mix((4 * i + k as u64 + 1).wrapping_mul(GAMMA))
}

/// A value of a distribution near the normal one of standard deviation 3.3, within -16 and 16: the sum of eight uniform
/// bytes, made continuous by 24 bits more. All steps but the last rounding are exact, on a GPU too.
fn near_normal(word: u64) -> f32 {
    let sum: i64 = word.to_le_bytes().into_iter().map(i64::from).sum();
    let fraction = (mix(word) >> 40) as i64;
    ((((sum - 1020) << 24) + fraction) as f64 * 2_f64.powi(-30)) as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_machine_draws_these() {
        let pairs = Inputs::Random { operands: 2, count: 4 };
        let grid = GRID.len() as u64;
        assert_eq!(pairs.count(), grid * grid + 4);
        let read = |k: usize, start: u64, len: usize| -> Vec<u32> {
            let bytes = pairs.operand(DType::F32, k, start, len);
            bytes.chunks_exact(4).map(|code| u32::from_le_bytes(code.try_into().unwrap())).collect()
        };
        // The grid's second row, then what torch_accuracy.py prints with --draw.
        assert_eq!(read(0, grid, 1), [GRID[1].to_bits()]);
        assert_eq!(read(1, grid, 1), [GRID[0].to_bits()]);
        assert_eq!(read(0, grid * grid, 4), DRAWN[0]);
        assert_eq!(read(1, grid * grid, 4), DRAWN[1]);
    }

    const DRAWN: [[u32; 4]; 2] =
        [[0x7b1d_cdaf, 0xc02c_d210, 0x41c9_8ac3, 0x3ff6_6a21], [0xa1b9_65f4, 0x3f96_01cf, 0x368c_b0a6, 0xc05a_805b]];

    #[test]
    fn tuples_are_all_there_are() {
        let pairs = Inputs::Tuples { codes: [256, 256, 1, 1] };
        assert_eq!(pairs.count(), 1 << 16);
        let (a, b) = (pairs.operand(DType::F8E4M3, 0, 0, 1 << 16), pairs.operand(DType::F8E4M3, 1, 0, 1 << 16));
        let mut seen: Vec<(u8, u8)> = a.into_iter().zip(b).collect();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), 1 << 16);
    }

    #[test]
    fn gradients_of_16_bits_have_every_code_of_x() {
        let pairs = Inputs::Grads { count: 3 };
        let all = GRADS.len() << 16;
        assert_eq!(pairs.count(), all as u64 + 3);
        let read = |k| pairs.operand(DType::BF16, k, 0, all);
        let (grads, x) = (read(0), read(1));
        let last = |bytes: &[u8]| u16::from_le_bytes([bytes[2 * all - 2], bytes[2 * all - 1]]);
        assert_eq!((last(&grads), last(&x)), (0x8000, 0xffff));
        assert_eq!(x[..4], [0, 0, 1, 0]);
        assert_eq!(grads[1 << 17..][..2], pointwise::bf16::ONE.to_le_bytes());
    }

    #[test]
    fn what_is_little_is_tried_whole() {
        let find = |name: &str| super::super::subjects().find(|subject| subject.info().name == name).unwrap();
        let of = |name, dtype, random| Inputs::of(find(name), dtype, 1, random);
        assert!(of("masked_fill", DType::F16, 1).is_all() && of("where", DType::F8E5M2, 1).is_all());
        assert!(of("mul_backward", DType::F16, 1 << 32) == Inputs::Random { operands: 3, count: 1 << 26 });
        assert!(of("exp_backward", DType::F16, 1 << 26) == Inputs::Grads { count: 1 << 26 });
        assert!(of("exp_backward", DType::F16, 1 << 32).is_all() && !of("exp_backward", DType::F32, 1 << 32).is_all());
        assert!(of("exp", DType::F32, 1) == Inputs::Codes { step: 1 });
    }

    #[test]
    fn near_normal_values_are_centred() {
        let values: Vec<f64> = (0..1 << 16).map(|i| f64::from(near_normal(word(i, 0)))).collect();
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let deviation = (values.iter().map(|x| x * x).sum::<f64>() / values.len() as f64).sqrt();
        assert!(mean.abs() < 0.05 && (deviation - 3.27).abs() < 0.05, "{mean} {deviation}");
    }
}
