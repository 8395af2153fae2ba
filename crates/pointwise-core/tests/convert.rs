//! Conversions against `half`, against a slow model of the formats, and on double-rounding traps.

use half::{bf16, f16};
use pointwise_core::convert::*;

// The model: values by definition, rounding by search.
/// A format of at most 16 bits, described by its fields.
struct Format {
    exponent_bits: u32,
    mantissa_bits: u32,
    /// The code (without sign) of the largest finite value.
    max_code: u32,
    /// Overflow saturates and there is no infinity (e4m3fn).
    saturates: bool,
}

const F16: Format = Format { exponent_bits: 5, mantissa_bits: 10, max_code: 0x7BFF, saturates: false };
const BF16: Format = Format { exponent_bits: 8, mantissa_bits: 7, max_code: 0x7F7F, saturates: false };
const E4M3: Format = Format { exponent_bits: 4, mantissa_bits: 3, max_code: 0x7E, saturates: true };
const E5M2: Format = Format { exponent_bits: 5, mantissa_bits: 2, max_code: 0x7B, saturates: false };

impl Format {
    fn sign_bit(&self) -> u32 {
        1 << (self.exponent_bits + self.mantissa_bits)
    }

    /// Returns the number of codes, sign included.
    fn codes(&self) -> u32 {
        2 * self.sign_bit()
    }

    fn is_nan(&self, code: u32) -> bool {
        let first_nan = self.max_code + if self.saturates { 1 } else { 2 };
        code & (self.sign_bit() - 1) >= first_nan
    }

    /// Returns the value of a code that is not NaN.
    fn value(&self, code: u32) -> f64 {
        let abs = code & (self.sign_bit() - 1);
        let sign = if code & self.sign_bit() != 0 { -1.0 } else { 1.0 };
        if abs > self.max_code {
            return sign * f64::INFINITY;
        }
        sign * self.extended(abs)
    }

    /// Returns the value as if the exponent field had no upper end: after the largest value comes the next one.
    fn extended(&self, abs: u32) -> f64 {
        let bias = (1i32 << (self.exponent_bits - 1)) - 1;
        let exponent = (abs >> self.mantissa_bits) as i32;
        let mantissa = (abs & ((1 << self.mantissa_bits) - 1)) as f64;
        let scale = 2f64.powi(exponent.max(1) - bias - self.mantissa_bits as i32);
        let hidden = if exponent > 0 { (1u32 << self.mantissa_bits) as f64 } else { 0.0 };
        (hidden + mantissa) * scale
    }

    /// Returns the midpoint between a finite value and the next one away from zero.
    fn tie_above(&self, code: u32) -> f64 {
        let abs = code & (self.sign_bit() - 1);
        let sign = if code & self.sign_bit() != 0 { -1.0 } else { 1.0 };
        sign * (self.extended(abs) + self.extended(abs + 1)) / 2.0
    }

    /// Rounds to nearest, ties to even, by binary search over the codes. f64 holds every tie exactly.
    fn round(&self, x: f64) -> u32 {
        if x.is_nan() {
            return self.sign_bit() - 1;
        }
        let sign = if x.is_sign_negative() { self.sign_bit() } else { 0 };
        let abs = x.abs();
        // The largest code whose value does not exceed abs.
        let (mut low, mut high) = (0, self.max_code + 1);
        while high - low > 1 {
            let middle = (low + high) / 2;
            if self.extended(middle) <= abs { low = middle } else { high = middle }
        }
        let tie = self.tie_above(low);
        let up = abs > tie || (abs == tie && low % 2 == 1);
        let code = if up { low + 1 } else { low };
        sign | if self.saturates { code.min(self.max_code) } else { code }
    }
}

/// Compares codes; all NaN codes count as one.
fn same(format: &Format, got: u32, want: u32) -> bool {
    got == want || (format.is_nan(got) && format.is_nan(want))
}

#[test]
fn f16_all_codes_both_ways() {
    for bits in 0..=u16::MAX {
        let ours = f16_to_f32(bits);
        let theirs = f16::from_bits(bits).to_f32();
        assert!(ours.to_bits() == theirs.to_bits() || (ours.is_nan() && theirs.is_nan()), "{bits:#06x}");
        assert!(same(&F16, f32_to_f16(ours) as u32, bits as u32), "{bits:#06x}");
        assert!(same(&F16, f64_to_f16(ours as f64) as u32, bits as u32), "{bits:#06x}");
        assert!(F16.is_nan(bits as u32) || F16.value(bits as u32) == ours as f64, "{bits:#06x}");
    }
}

#[test]
fn bf16_all_codes_both_ways() {
    for bits in 0..=u16::MAX {
        let ours = bf16_to_f32(bits);
        let theirs = bf16::from_bits(bits).to_f32();
        assert!(ours.to_bits() == theirs.to_bits() || (ours.is_nan() && theirs.is_nan()), "{bits:#06x}");
        assert!(same(&BF16, f32_to_bf16(ours) as u32, bits as u32), "{bits:#06x}");
        assert!(same(&BF16, f64_to_bf16(ours as f64) as u32, bits as u32), "{bits:#06x}");
        assert!(BF16.is_nan(bits as u32) || BF16.value(bits as u32) == ours as f64, "{bits:#06x}");
    }
}

#[test]
fn f32_to_16_bit_strided() {
    // 2^24 patterns; an odd stride near 2^8 also varies the low bits.
    for i in 0..1u32 << 24 {
        let bits = i.wrapping_mul(257);
        let x = f32::from_bits(bits);
        let (h, b) = (f32_to_f16(x), f32_to_bf16(x));
        assert!(same(&F16, h as u32, F16.round(x as f64)), "{bits:#010x}: {h:#06x}");
        assert!(same(&BF16, b as u32, BF16.round(x as f64)), "{bits:#010x}: {b:#06x}");
    }
}

/// Checks the tie above every finite code, and the tie's two neighbours, in f32 and in f64.
fn ties(format: &Format, narrow: impl Fn(f32) -> u32, narrow_f64: impl Fn(f64) -> u32) {
    for code in 0..format.codes() {
        if format.is_nan(code) || !format.value(code).is_finite() {
            continue;
        }
        // Above the largest finite value the step is its binade's: the tie with overflow.
        let tie = format.tie_above(code);
        let x = tie as f32;
        assert_eq!(x as f64, tie, "a tie of {code:#x} is an f32");
        for y in [x, x.next_up(), x.next_down()] {
            let want = format.round(y as f64);
            assert!(same(format, narrow(y), want), "{y:e}: {:#x} for {want:#x}", narrow(y));
        }
        // Neighbours in f64 are a double-rounding trap: in f32 both become the tie itself.
        for y in [tie, tie.next_up(), tie.next_down(), tie * (1.0 + 1e-9), tie * (1.0 - 1e-9)] {
            let want = format.round(y);
            assert!(same(format, narrow_f64(y), want), "{y:e}: {:#x} for {want:#x}", narrow_f64(y));
        }
    }
}

#[test]
fn every_tie() {
    ties(&F16, |x| f32_to_f16(x) as u32, |x| f64_to_f16(x) as u32);
    ties(&BF16, |x| f32_to_bf16(x) as u32, |x| f64_to_bf16(x) as u32);
    ties(&E4M3, |x| f32_to_e4m3(x) as u32, |x| f64_to_e4m3(x) as u32);
    ties(&E5M2, |x| f32_to_e5m2(x) as u32, |x| f64_to_e5m2(x) as u32);
}

#[test]
fn f64_extremes() {
    let tiny = f64::from_bits(1);
    for x in [0.0, -0.0, tiny, -tiny, f64::MAX, f64::MIN, f64::INFINITY, f64::NEG_INFINITY, f64::NAN] {
        assert!(same(&F16, f64_to_f16(x) as u32, F16.round(x)), "{x:e}");
        assert!(same(&BF16, f64_to_bf16(x) as u32, BF16.round(x)), "{x:e}");
        assert!(same(&E4M3, f64_to_e4m3(x) as u32, E4M3.round(x)), "{x:e}");
        assert!(same(&E5M2, f64_to_e5m2(x) as u32, E5M2.round(x)), "{x:e}");
    }
    assert_eq!(f64_to_f32_odd(tiny).to_bits(), 1);
    assert_eq!(f64_to_f32_odd(-tiny).to_bits(), 0x8000_0001);
    assert_eq!(f64_to_f32_odd(f64::MAX), f32::MAX);
    assert_eq!(f64_to_f32_odd(1.0 + 1e-12).to_bits(), 1f32.to_bits() + 1);
    assert_eq!(f64_to_f32_odd(1.0 - 1e-12).to_bits(), 1f32.to_bits() - 1);
    assert!(f64_to_f32_odd(f64::NAN).is_nan());
}

#[test]
fn pairs_are_two_scalars() {
    for i in 0..1u32 << 20 {
        let word = i.wrapping_mul(0x9E37_79B1);
        let (a, b) = (f32::from_bits(word), f32::from_bits(word.rotate_left(13)));
        assert_eq!(pack_f16x2(a, b), f32_to_f16(a) as u32 | (f32_to_f16(b) as u32) << 16);
        assert_eq!(pack_bf16x2(a, b), f32_to_bf16(a) as u32 | (f32_to_bf16(b) as u32) << 16);
        assert_eq!(pack_e4m3x2(a, b), f32_to_e4m3(a) as u16 | (f32_to_e4m3(b) as u16) << 8);
        assert_eq!(pack_e5m2x2(a, b), f32_to_e5m2(a) as u16 | (f32_to_e5m2(b) as u16) << 8);
    }
    let bits = |(x, y): (f32, f32)| (x.to_bits(), y.to_bits());
    for i in 0..=u16::MAX {
        let word = i as u32 | (i.rotate_left(5) as u32) << 16;
        let (lo, hi) = (i, i.rotate_left(5));
        assert_eq!(bits(unpack_f16x2(word)), bits((f16_to_f32(lo), f16_to_f32(hi))));
        assert_eq!(bits(unpack_bf16x2(word)), bits((bf16_to_f32(lo), bf16_to_f32(hi))));
        let (lo, hi) = (i as u8, (i >> 8) as u8);
        assert_eq!(bits(unpack_e4m3x2(i)), bits((e4m3_to_f32(lo), e4m3_to_f32(hi))));
    }
}

#[test]
fn fp8_all_codes_both_ways_and_strided() {
    for bits in 0..=u8::MAX {
        let code = bits as u32;
        let (x, y) = (e4m3_to_f32(bits), e5m2_to_f32(bits));
        assert_eq!(x.is_nan(), E4M3.is_nan(code));
        assert_eq!(y.is_nan(), E5M2.is_nan(code));
        assert!(x.is_nan() || (x as f64).to_bits() == E4M3.value(code).to_bits(), "{bits:#04x}");
        assert!(y.is_nan() || (y as f64).to_bits() == E5M2.value(code).to_bits(), "{bits:#04x}");
        assert!(same(&E4M3, f32_to_e4m3(x) as u32, code) && same(&E4M3, f64_to_e4m3(x as f64) as u32, code));
        assert!(same(&E5M2, f32_to_e5m2(y) as u32, code) && same(&E5M2, f64_to_e5m2(y as f64) as u32, code));
    }
    for i in 0..1u32 << 22 {
        let x = f32::from_bits(i.wrapping_mul(1025));
        assert!(same(&E4M3, f32_to_e4m3(x) as u32, E4M3.round(x as f64)), "{x:e}");
        assert!(same(&E5M2, f32_to_e5m2(x) as u32, E5M2.round(x as f64)), "{x:e}");
    }
}
