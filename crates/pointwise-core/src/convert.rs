//! Conversions between f32 and the 16- and 8-bit storage types, and from f64 in one rounding.
//!
//! Every function here works on the stored bits, is branch-free and is meant for inner loops: on the CPU the loops over
//! them vectorise (integer operations, one float addition, selects), on nvptx64 each is one or two instructions. All
//! roundings are to nearest, ties to even, except in the functions with `odd` in their names. Widening is exact. A NaN
//! stays a NaN; narrowing returns the canonical one (`0x7FFF` for the 16-bit types, `0x7F` for the 8-bit ones), as the
//! `cvt` instructions of the PTX ISA do.
//!
//! The `pack_*` and `unpack_*` functions convert two neighbouring elements in one register, the first in the lower
//! half. The GPU has packed instructions for them, so they cost half the issue slots.
//!
//! The 8-bit instructions need sm_89 or newer; the builder says so with `--cfg pointwise_fp8_cvt`.
//! Without it the device runs the integer code of the CPU.
//!
//! Formats: IEEE 754-2019 (binary16); bfloat16 is the upper half of binary32; Micikevicius et al.,
//! "FP8 Formats for Deep Learning", 2022 (arXiv 2209.05433).

use duplicate::duplicate_item;

use crate::dtype::DType;
#[cfg(target_arch = "nvptx64")]
use crate::maths::prim::ptx;

/// Exponent and mantissa of f32 infinity; above it lie the NaNs.
const F32_INF: u32 = 0x7F80_0000;
const SIGN: u32 = 0x8000_0000;
/// The bias of f32's exponent minus the 15 of f16 and e5m2, in place.
const REBIAS_15: u32 = (127 - 15) << 23;
/// The bias of f32's exponent minus the 7 of e4m3, in place.
const REBIAS_7: u32 = (127 - 7) << 23;

/// From this magnitude on e5m2 overflows to infinity: the tie between 57344 and 65536.
#[cfg(all(target_arch = "nvptx64", pointwise_fp8_cvt))]
const E5M2_OVERFLOW: f32 = 61440.0;

/// Drops the lowest `shift` bits of `abs`, rounding to nearest, ties to even.
#[inline(always)]
const fn round_shift(abs: u32, shift: u32) -> u32 {
    let half_less_one = (1 << (shift - 1)) - 1;
    (abs + half_less_one + ((abs >> shift) & 1)) >> shift
}

/// Rounds `abs` (the bits of a small non-negative f32) to a multiple of the last place of `magic`, a power of two above
/// it, and returns the factor. The float addition does the rounding.
#[inline(always)]
fn round_subnormal(abs: u32, magic: f32) -> u32 {
    (f32::from_bits(abs) + magic).to_bits().wrapping_sub(magic.to_bits())
}

#[inline(always)]
const fn select(condition: bool, yes: u32, no: u32) -> u32 {
    if condition { yes } else { no }
}

/// The integer form of every conversion. The CPU runs it, and the device where it has no instruction.
mod soft {
    #![cfg_attr(target_arch = "nvptx64", allow(dead_code))]
    use super::{F32_INF, REBIAS_7, REBIAS_15, SIGN, round_shift, round_subnormal, select};

    #[inline(always)]
    pub(super) fn f16_to_f32(bits: u16) -> f32 {
        let bits = bits as u32;
        let abs = (bits & 0x7FFF) << 13;
        let normal = abs + REBIAS_15 + select(abs >= 0x1F << 23, REBIAS_15, 0);
        // With the exponent of the smallest normal put in, a subnormal is off by exactly that normal.
        let smallest = f32::from_bits(REBIAS_15 + (1 << 23));
        let subnormal = (f32::from_bits(abs + REBIAS_15 + (1 << 23)) - smallest).to_bits();
        let abs = select(abs < 1 << 23, subnormal, normal);
        f32::from_bits(abs | ((bits & 0x8000) << 16))
    }

    #[inline(always)]
    pub(super) fn f32_to_f16(x: f32) -> u16 {
        let bits = x.to_bits();
        let abs = bits & !SIGN;
        let normal = round_shift(abs, 13).wrapping_sub(REBIAS_15 >> 13);
        let small = abs < REBIAS_15 + (1 << 23);
        let finite = select(small, round_subnormal(abs, 0.5), normal);
        let code = select(abs >= 0x4780_0000, 0x7C00, finite);
        select(abs > F32_INF, 0x7FFF, code | ((bits & SIGN) >> 16)) as u16
    }

    #[inline(always)]
    pub(super) fn bf16_to_f32(bits: u16) -> f32 {
        f32::from_bits((bits as u32) << 16)
    }

    #[inline(always)]
    pub(super) fn f32_to_bf16(x: f32) -> u16 {
        let bits = x.to_bits();
        // The sign bit only takes part in a carry for NaNs, which are replaced.
        let rounded = bits.wrapping_add(0x7FFF + ((bits >> 16) & 1)) >> 16;
        select(bits & !SIGN > F32_INF, 0x7FFF, rounded) as u16
    }

    #[inline(always)]
    pub(super) fn e4m3_to_f32(bits: u8) -> f32 {
        let bits = bits as u32;
        let abs = (bits & 0x7F) << 20;
        let smallest = f32::from_bits(REBIAS_7 + (1 << 23));
        let subnormal = (f32::from_bits(abs + REBIAS_7 + (1 << 23)) - smallest).to_bits();
        let finite = select(abs < 1 << 23, subnormal, abs + REBIAS_7);
        let abs = select(abs == 0x7F << 20, 0x7FC0_0000, finite);
        f32::from_bits(abs | ((bits & 0x80) << 24))
    }

    #[inline(always)]
    pub(super) fn f32_to_e4m3(x: f32) -> u8 {
        let bits = x.to_bits();
        let abs = bits & !SIGN;
        let normal = round_shift(abs, 20).wrapping_sub(REBIAS_7 >> 20);
        let small = abs < REBIAS_7 + (1 << 23);
        let code = select(small, round_subnormal(abs, 16384.0), normal);
        let code = select(code > 0x7E, 0x7E, code);
        select(abs > F32_INF, 0x7F, code | ((bits & SIGN) >> 24)) as u8
    }

    /// e5m2 is the upper half of f16.
    #[inline(always)]
    pub(super) fn e5m2_to_f32(bits: u8) -> f32 {
        super::f16_to_f32((bits as u16) << 8)
    }

    #[inline(always)]
    pub(super) fn f32_to_e5m2(x: f32) -> u8 {
        let bits = x.to_bits();
        let abs = bits & !SIGN;
        let normal = round_shift(abs, 21).wrapping_sub(REBIAS_15 >> 21);
        let small = abs < REBIAS_15 + (1 << 23);
        let code = select(small, round_subnormal(abs, 128.0), normal);
        let code = select(code > 0x7C, 0x7C, code);
        select(abs > F32_INF, 0x7F, code | ((bits & SIGN) >> 24)) as u8
    }
}

/// Widens an f16, given by its bits. Exact.
#[inline(always)]
pub fn f16_to_f32(bits: u16) -> f32 {
    #[cfg(target_arch = "nvptx64")]
    return ptx!("cvt.f32.f16 {}, {};" => reg32, bits => reg16);
    #[cfg(not(target_arch = "nvptx64"))]
    soft::f16_to_f32(bits)
}

/// Rounds to f16 and returns its bits. Overflow (abs(x) >= 65520) gives infinity.
#[inline(always)]
pub fn f32_to_f16(x: f32) -> u16 {
    #[cfg(target_arch = "nvptx64")]
    return ptx!("cvt.rn.f16.f32 {}, {};" => reg16, x => reg32);
    #[cfg(not(target_arch = "nvptx64"))]
    soft::f32_to_f16(x)
}

/// Widens a bf16, given by its bits. Exact.
#[inline(always)]
pub fn bf16_to_f32(bits: u16) -> f32 {
    soft::bf16_to_f32(bits)
}

/// Rounds to bf16 and returns its bits. Overflow gives infinity.
#[inline(always)]
pub fn f32_to_bf16(x: f32) -> u16 {
    #[cfg(target_arch = "nvptx64")]
    return ptx!("cvt.rn.bf16.f32 {}, {};" => reg16, x => reg32);
    #[cfg(not(target_arch = "nvptx64"))]
    soft::f32_to_bf16(x)
}

/// Returns an f32 rounded to a type of floats; as it is for others.
#[inline(always)]
#[must_use]
pub fn rounded(value: f32, dtype: DType) -> f32 {
    match dtype {
        // On a GPU the conversion of two is faster than that of one.
        DType::F16 => unpack_f16x2(pack_f16x2(value, 0.0)).0,
        DType::BF16 => unpack_bf16x2(pack_bf16x2(value, 0.0)).0,
        DType::F8E4M3 => e4m3_to_f32(f32_to_e4m3(value)),
        DType::F8E5M2 => e5m2_to_f32(f32_to_e5m2(value)),
        _ => value,
    }
}

/// Widens an e4m3fn, given by its bits. Exact.
#[inline(always)]
pub fn e4m3_to_f32(bits: u8) -> f32 {
    #[cfg(all(target_arch = "nvptx64", pointwise_fp8_cvt))]
    return unpack_e4m3x2(bits as u16).0;
    #[cfg(not(all(target_arch = "nvptx64", pointwise_fp8_cvt)))]
    soft::e4m3_to_f32(bits)
}

/// Rounds to e4m3fn and returns its bits. Saturates: a number that rounds above 448 becomes 448, infinity too. NaN
/// becomes `0x7F`.
#[inline(always)]
pub fn f32_to_e4m3(x: f32) -> u8 {
    #[cfg(all(target_arch = "nvptx64", pointwise_fp8_cvt))]
    return pack_e4m3x2(x, 0.0) as u8;
    #[cfg(not(all(target_arch = "nvptx64", pointwise_fp8_cvt)))]
    soft::f32_to_e4m3(x)
}

/// Widens an e5m2, given by its bits. Exact.
#[inline(always)]
pub fn e5m2_to_f32(bits: u8) -> f32 {
    soft::e5m2_to_f32(bits)
}

/// Rounds to e5m2 and returns its bits. Does not saturate: abs(x) >= 61440 becomes infinity. NaN
/// becomes `0x7F`.
#[inline(always)]
pub fn f32_to_e5m2(x: f32) -> u8 {
    #[cfg(all(target_arch = "nvptx64", pointwise_fp8_cvt))]
    return pack_e5m2x2(x, 0.0) as u8;
    #[cfg(not(all(target_arch = "nvptx64", pointwise_fp8_cvt)))]
    soft::f32_to_e5m2(x)
}

/// Widens two f16: (lower half, upper half).
#[inline(always)]
pub fn unpack_f16x2(bits: u32) -> (f32, f32) {
    #[cfg(target_arch = "nvptx64")]
    {
        let (lo, hi): (f32, f32);
        // SAFETY: conversions between registers. The conversion of an upper half needs no shift before it, which LLVM
        // would write.
        unsafe {
            core::arch::asm!(
                "{{ .reg .b16 l, h; mov.b32 {{l, h}}, {bits}; cvt.f32.f16 {lo}, l; cvt.f32.f16 {hi}, h; }}",
                bits = in(reg32) bits, lo = out(reg32) lo, hi = out(reg32) hi, options(pure, nomem, nostack)
            );
        }
        (lo, hi)
    }
    #[cfg(not(target_arch = "nvptx64"))]
    (f16_to_f32(bits as u16), f16_to_f32((bits >> 16) as u16))
}

/// Rounds two values to f16, `lo` into the lower half.
#[inline(always)]
pub fn pack_f16x2(lo: f32, hi: f32) -> u32 {
    #[cfg(target_arch = "nvptx64")]
    return ptx!("cvt.rn.f16x2.f32 {}, {}, {};" => reg32, hi => reg32, lo => reg32);
    #[cfg(not(target_arch = "nvptx64"))]
    {
        soft::f32_to_f16(lo) as u32 | ((soft::f32_to_f16(hi) as u32) << 16)
    }
}

/// Widens two bf16: (lower half, upper half).
#[inline(always)]
pub fn unpack_bf16x2(bits: u32) -> (f32, f32) {
    (f32::from_bits(bits << 16), f32::from_bits(bits & 0xFFFF_0000))
}

/// Rounds two values to bf16, `lo` into the lower half.
#[inline(always)]
pub fn pack_bf16x2(lo: f32, hi: f32) -> u32 {
    #[cfg(target_arch = "nvptx64")]
    return ptx!("cvt.rn.bf16x2.f32 {}, {}, {};" => reg32, hi => reg32, lo => reg32);
    #[cfg(not(target_arch = "nvptx64"))]
    {
        soft::f32_to_bf16(lo) as u32 | ((soft::f32_to_bf16(hi) as u32) << 16)
    }
}

/// Widens two e4m3fn: (lower byte, upper byte).
#[inline(always)]
pub fn unpack_e4m3x2(bits: u16) -> (f32, f32) {
    #[cfg(all(target_arch = "nvptx64", pointwise_fp8_cvt))]
    return unpack_f16x2(ptx!("cvt.rn.f16x2.e4m3x2 {}, {};" => reg32, bits => reg16));
    #[cfg(not(all(target_arch = "nvptx64", pointwise_fp8_cvt)))]
    {
        (soft::e4m3_to_f32(bits as u8), soft::e4m3_to_f32((bits >> 8) as u8))
    }
}

/// Rounds two values to e4m3fn (saturating, as [`f32_to_e4m3`]), `lo` into the lower byte.
#[inline(always)]
pub fn pack_e4m3x2(lo: f32, hi: f32) -> u16 {
    #[cfg(all(target_arch = "nvptx64", pointwise_fp8_cvt))]
    return ptx!("cvt.rn.satfinite.e4m3x2.f32 {}, {}, {};" => reg16, hi => reg32, lo => reg32);
    #[cfg(not(all(target_arch = "nvptx64", pointwise_fp8_cvt)))]
    {
        soft::f32_to_e4m3(lo) as u16 | ((soft::f32_to_e4m3(hi) as u16) << 8)
    }
}

/// Rounds two values to e5m2 (overflow to infinity, as [`f32_to_e5m2`]), `lo` into the lower byte.
#[inline(always)]
pub fn pack_e5m2x2(lo: f32, hi: f32) -> u16 {
    #[cfg(all(target_arch = "nvptx64", pointwise_fp8_cvt))]
    {
        let packed = pack_saturated_e5m2x2(lo, hi);
        // The instruction saturates to 0x7B; infinity is the next code.
        let carry_lo = (f32::from_bits(lo.to_bits() & !SIGN) >= E5M2_OVERFLOW) as u16;
        let carry_hi = (f32::from_bits(hi.to_bits() & !SIGN) >= E5M2_OVERFLOW) as u16;
        packed + carry_lo + (carry_hi << 8)
    }
    #[cfg(not(all(target_arch = "nvptx64", pointwise_fp8_cvt)))]
    {
        soft::f32_to_e5m2(lo) as u16 | ((soft::f32_to_e5m2(hi) as u16) << 8)
    }
}

/// Like [`pack_e5m2x2`], but an overflow may give the largest number, 0x7B, instead of infinity.
#[inline(always)]
pub fn pack_saturated_e5m2x2(lo: f32, hi: f32) -> u16 {
    #[cfg(all(target_arch = "nvptx64", pointwise_fp8_cvt))]
    return ptx!("cvt.rn.satfinite.e5m2x2.f32 {}, {}, {};" => reg16, hi => reg32, lo => reg32);
    #[cfg(not(all(target_arch = "nvptx64", pointwise_fp8_cvt)))]
    pack_e5m2x2(lo, hi)
}

/// Rounds to f32 "to odd": an inexact result becomes the neighbour of `x` whose last bit is set.
///
/// Such a value keeps enough to be rounded once more, to any format with at least two bits less, as
/// if `x` itself had been rounded: Boldo and Melquiond, "Emulation of a FMA and correctly rounded
/// sums", IEEE Transactions on Computers 57, 2008.
#[inline(always)]
pub fn f64_to_f32_odd(x: f64) -> f32 {
    let nearest = x as f32;
    let bits = nearest.to_bits();
    let back = nearest as f64;
    let toward_x = if back.abs() > x.abs() { bits.wrapping_sub(1) } else { bits.wrapping_add(1) };
    // A NaN equals nothing; it must not be moved.
    let keep = back == x || x.is_nan() || bits & 1 == 1;
    f32::from_bits(if keep { bits } else { toward_x })
}

/// Rounds to f16 in one rounding and returns its bits.
#[inline(always)]
pub fn f64_to_f16(x: f64) -> u16 {
    f32_to_f16(f64_to_f32_odd(x))
}

/// Rounds to bf16 in one rounding and returns its bits.
#[inline(always)]
pub fn f64_to_bf16(x: f64) -> u16 {
    f32_to_bf16(f64_to_f32_odd(x))
}

/// Rounds to e4m3fn (saturating) in one rounding and returns its bits.
#[inline(always)]
pub fn f64_to_e4m3(x: f64) -> u8 {
    f32_to_e4m3(f64_to_f32_odd(x))
}

/// Rounds to e5m2 (overflow to infinity) in one rounding and returns its bits.
#[inline(always)]
pub fn f64_to_e5m2(x: f64) -> u8 {
    f32_to_e5m2(f64_to_f32_odd(x))
}

/// Rounds to f32 "to odd", before another rounding: see [`f64_to_f32_odd`].
#[duplicate_item(name int; [i32_to_f32_odd] [i32]; [i64_to_f32_odd] [i64])]
#[inline(always)]
#[allow(clippy::unnecessary_cast)] // of 32 bits
pub fn name(x: int) -> f32 {
    let magnitude = x.unsigned_abs();
    // The upper 24 bits; the last one is set if any bit below is.
    let shift = (int::BITS - 24).saturating_sub(magnitude.leading_zeros());
    let kept = magnitude >> shift;
    let odd = kept as u32 | (kept << shift != magnitude) as u32;
    let sign = (x >> (int::BITS - 1)) as u32 & SIGN;
    // Both factors and their product are exact.
    odd as f32 * f32::from_bits(sign | ((127 + shift) << 23))
}
