//! What an op is run on: an input for every number `0..count`, the same on every machine.
//!
//! `benches/peers/torch_accuracy.py` makes the same ones, bit for bit.

use pointwise::DType;
use pointwise_core::Element;

use super::Subject;
use crate::judge::as_bytes;
use crate::{map, with_element};

/// Values whose pairs and triples come before the random ones.
pub const GRID: &[f32] = map::SPECIAL;

/// The inputs of an op in an element type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inputs {
    /// Of one operand of f32: every so many codes.
    Codes {
        /// 1 for all 2^32.
        step: u64,
    },
    /// Of small types: every code, or every pair or triple of codes.
    Tuples {
        /// Codes of each operand.
        codes: [u64; 3],
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
    /// What there is to try in an element type; `random` tuples where all would be too many.
    #[must_use]
    pub fn of(subject: Subject, dtype: DType, step: u64, random: u64) -> Self {
        let operands = subject.info().operands.len();
        if operands == 1 && dtype == DType::F32 {
            return Inputs::Codes { step };
        }
        if operands == 1 || dtype.size() == 1 {
            let codes = |k| match subject.operand_type(dtype, k) {
                DType::Bool => 2,
                dtype => 1 << (8 * dtype.size()),
            };
            return Inputs::Tuples { codes: std::array::from_fn(|k| if k < operands { codes(k) } else { 1 }) };
        }
        // Three operands cost more, and there are a quarter of them.
        Inputs::Random { operands: operands as u32, count: if operands == 2 { random } else { random / 4 } }
    }

    /// How many there are.
    #[must_use]
    pub fn count(self) -> u64 {
        match self {
            Inputs::Codes { step } => (1_u64 << 32).div_ceil(step),
            Inputs::Tuples { codes } => codes.iter().product(),
            Inputs::Random { operands, count } => (GRID.len() as u64).pow(operands) + count,
        }
    }

    /// Whether no input is missing.
    #[must_use]
    pub fn is_all(self) -> bool {
        match self {
            Inputs::Codes { step } => step == 1,
            Inputs::Tuples { .. } => true,
            Inputs::Random { .. } => false,
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
            Inputs::Random { operands, .. } => {
                let side = GRID.len() as u64;
                let (grid, below) = (side.pow(operands), side.pow(operands - 1 - k as u32));
                with_element!(dtype, E => for (i, slot) in slots {
                    let put = |slot: &mut [u8], value: f32| {
                        slot.copy_from_slice(as_bytes(&<E as Element>::from_f64(f64::from(value))));
                    };
                    if i < grid {
                        put(slot, GRID[(i / below % side) as usize]);
                        continue;
                    }
                    let word = word(i - grid, k);
                    match dtype {
                        DType::Bool => slot[0] = (word & 1) as u8,
                        _ if (i - grid).is_multiple_of(2) => slot.copy_from_slice(&word.to_le_bytes()[..slot.len()]),
                        _ => put(slot, near_normal(word)),
                    }
                });
            }
        }
        bytes
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
        let pairs = Inputs::Tuples { codes: [256, 256, 1] };
        assert_eq!(pairs.count(), 1 << 16);
        let (a, b) = (pairs.operand(DType::F8E4M3, 0, 0, 1 << 16), pairs.operand(DType::F8E4M3, 1, 0, 1 << 16));
        let mut seen: Vec<(u8, u8)> = a.into_iter().zip(b).collect();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), 1 << 16);
    }

    #[test]
    fn near_normal_values_are_centred() {
        let values: Vec<f64> = (0..1 << 16).map(|i| f64::from(near_normal(word(i, 0)))).collect();
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let deviation = (values.iter().map(|x| x * x).sum::<f64>() / values.len() as f64).sqrt();
        assert!(mean.abs() < 0.05 && (deviation - 3.27).abs() < 0.05, "{mean} {deviation}");
    }
}
