//! Arithmetic on pairs of f16 or bf16.
//!
//! A result is computed exactly, or as an f64 whose last bit is set if something was cut off. It is then rounded once.

use super::{NAN_16, narrow, single};
use crate::program::{Relation, Two};

/// The type of both halves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Half {
    F16,
    Bf16,
}

impl Half {
    /// Returns a half as f32.
    #[inline(always)]
    pub(crate) fn widen(self, half: u32) -> u32 {
        match self {
            Half::F16 => narrow::f32_of_f16(half & 0xffff),
            Half::Bf16 => narrow::f32_of_bf16(half & 0xffff),
        }
    }

    #[inline(always)]
    fn value(self, half: u32) -> f64 {
        f64::from(single::f(self.widen(half)))
    }

    fn round(self, value: f64) -> u32 {
        narrow::half_of_f64(value, self == Half::Bf16)
    }
}

/// Applies a function to both halves of two words.
#[inline(always)]
fn pairwise(a: u32, b: u32, op: impl Fn(u32, u32) -> u32) -> u32 {
    op(a & 0xffff, b & 0xffff) | (op(a >> 16, b >> 16) << 16)
}

/// Computes an operation on two pairs.
pub(crate) fn two(op: Two, a: u32, b: u32) -> u32 {
    use Half::{Bf16, F16};
    match op {
        Two::AddF16x2 => pairwise(a, b, |x, y| add(F16, x, y)),
        Two::SubF16x2 => pairwise(a, b, |x, y| add(F16, x, y ^ 0x8000)),
        Two::MulF16x2 => pairwise(a, b, |x, y| F16.round(F16.value(x) * F16.value(y))),
        Two::MinF16x2 => pairwise(a, b, |x, y| choose(F16, x, y, single::min)),
        Two::MaxF16x2 => pairwise(a, b, |x, y| choose(F16, x, y, single::max)),
        Two::MinNanF16x2 => pairwise(a, b, |x, y| choose(F16, x, y, single::min_nan)),
        Two::MaxNanF16x2 => pairwise(a, b, |x, y| choose(F16, x, y, single::max_nan)),
        Two::AddBf16x2 => pairwise(a, b, |x, y| add(Bf16, x, y)),
        Two::SubBf16x2 => pairwise(a, b, |x, y| add(Bf16, x, y ^ 0x8000)),
        Two::MulBf16x2 => pairwise(a, b, |x, y| Bf16.round(Bf16.value(x) * Bf16.value(y))),
        Two::MinBf16x2 => pairwise(a, b, |x, y| choose(Bf16, x, y, single::min)),
        Two::MaxBf16x2 => pairwise(a, b, |x, y| choose(Bf16, x, y, single::max)),
        Two::MinNanBf16x2 => pairwise(a, b, |x, y| choose(Bf16, x, y, single::min_nan)),
        _ => pairwise(a, b, |x, y| choose(Bf16, x, y, single::max_nan)),
    }
}

/// Computes `a * b + c` of three pairs, rounded once.
pub(crate) fn fma(half: Half, a: u32, b: u32, c: u32) -> u32 {
    let one = |a: u32, b: u32, c: u32| half.round(odd_sum(half.value(a) * half.value(b), half.value(c)));
    one(a & 0xffff, b & 0xffff, c & 0xffff) | (one(a >> 16, b >> 16, c >> 16) << 16)
}

fn add(half: Half, x: u32, y: u32) -> u32 {
    half.round(odd_sum(half.value(x), half.value(y)))
}

/// Returns a sum cut off towards zero, with its last bit set if it is not exact. Rounding it again gives the same as
/// rounding the exact sum.
fn odd_sum(x: f64, y: f64) -> f64 {
    let (sum, rest) = single::two_sum(x, y);
    if rest == 0.0 {
        return sum;
    }
    let towards_zero = if (rest < 0.0) == (sum < 0.0) { sum.to_bits() } else { sum.to_bits() - 1 };
    f64::from_bits(towards_zero | 1)
}

fn choose(half: Half, x: u32, y: u32, op: impl Fn(u32, u32) -> u32) -> u32 {
    let chosen = op(half.widen(x), half.widen(y));
    match half {
        _ if chosen == super::NAN => NAN_16,
        Half::F16 => narrow::f16_of_f32(chosen),
        Half::Bf16 => chosen >> 16,
    }
}

/// Returns all ones in each half whose numbers meet the relation.
#[inline(always)]
pub(crate) fn compare(half: Half, relation: Relation, a: u32, b: u32) -> u32 {
    pairwise(a, b, |x, y| {
        let holds = single_compare(relation, half.widen(x), half.widen(y));
        if holds { 0xffff } else { 0 }
    })
}

/// True if two f32 meet a relation.
#[inline(always)]
pub(crate) fn single_compare(relation: Relation, a: u32, b: u32) -> bool {
    let (x, y) = (single::f(a), single::f(b));
    let unordered = x.is_nan() | y.is_nan();
    match relation {
        Relation::Eq => x == y,
        Relation::Ne => !unordered & (x != y),
        Relation::Lt => x < y,
        Relation::Le => x <= y,
        Relation::Gt => x > y,
        Relation::Ge => x >= y,
        Relation::Equ => unordered | (x == y),
        Relation::Neu => x != y,
        Relation::Ltu => unordered | (x < y),
        Relation::Leu => unordered | (x <= y),
        Relation::Gtu => unordered | (x > y),
        Relation::Geu => unordered | (x >= y),
        Relation::Num => !unordered,
        Relation::Nan => unordered,
    }
}

#[cfg(test)]
mod tests {
    use half::{bf16, f16};

    use super::*;

    fn samples() -> Vec<u32> {
        let mut samples: Vec<u32> = (0..=0xffff).step_by(97).collect();
        samples.extend([0, 0x8000, 1, 0x8001, 0x3c00, 0xbc00, 0x7bff, 0xfbff, 0x7c00, 0xfc00, 0x7e00, 0x7f80, 0x03ff]);
        samples
    }

    #[test]
    fn pairs_agree_with_exact_arithmetic() {
        let f = |bits: u32| f16::from_bits(u16::try_from(bits).unwrap());
        let b = |bits: u32| bf16::from_bits(u16::try_from(bits).unwrap());
        for &x in &samples() {
            for &y in &samples() {
                // A sum or product of two f16 rounds the same from f32: 24 bits are twice 11 and two more.
                let sum = f16::from_f32(f(x).to_f32() + f(y).to_f32());
                let product = f16::from_f32(f(x).to_f32() * f(y).to_f32());
                for (got, want) in
                    [(two(Two::AddF16x2, x, y) & 0xffff, sum), (two(Two::MulF16x2, x, y) & 0xffff, product)]
                {
                    let want = if want.is_nan() { NAN_16 } else { u32::from(want.to_bits()) };
                    assert_eq!(got, want, "{x:x} {y:x}");
                }
                let sum = bf16::from_f32(b(x).to_f32() + b(y).to_f32());
                let want = if sum.is_nan() { NAN_16 } else { u32::from(sum.to_bits()) };
                assert_eq!(two(Two::AddBf16x2, x << 16, y << 16) >> 16, want, "{x:x} {y:x}");
            }
        }
    }

    #[test]
    fn fused_rounds_once() {
        // 1.0009765625 squared is 1.00195407867...; less 1.001953125 leaves 2^-20 exactly.
        let (a, c) = (0x3c01, 0xbc02);
        assert_eq!(fma(Half::F16, a, a, c), u32::from(f16::from_f32(2.0_f32.powi(-20)).to_bits()));
        // A product far below the addend decides a tie.
        let (tiny, one) = (0x0001, 0x3c00);
        let half_ulp = u32::from(f16::from_f32(2.0_f32.powi(-11)).to_bits());
        assert_eq!(fma(Half::F16, half_ulp, one, one), 0x3c00);
        assert_eq!(fma(Half::F16, tiny, tiny, one), 0x3c00);
        assert_eq!(fma(Half::Bf16, 0x3f81, 0x3f81, 0x4b80), 0x4b80);
    }

    #[test]
    fn chosen_and_compared() {
        let nan = 0x7e01;
        assert_eq!(two(Two::MinF16x2, nan, 0x3c00) & 0xffff, 0x3c00);
        assert_eq!(two(Two::MinNanF16x2, nan, 0x3c00) & 0xffff, NAN_16);
        assert_eq!(two(Two::MaxF16x2, 0x8000_3c00, 0x0000_4000), 0x0000_4000);
        assert_eq!(compare(Half::F16, Relation::Gt, 0x4000_3c00, 0x3c00_3c00), 0xffff_0000);
        assert_eq!(compare(Half::F16, Relation::Neu, nan, nan), 0x0000_ffff);
    }
}
