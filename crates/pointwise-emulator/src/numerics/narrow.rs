//! Conversions between f32 and the types of 16 and 8 bits.
//!
//! They have no branches, so that loops over lanes become vector code.

use super::{NAN, NAN_16, single::f};

#[inline(always)]
pub(crate) fn f32_of_f16(half: u32) -> u32 {
    let shifted = (half & 0x7fff) << 13;
    let exponent = shifted & 0x0f80_0000;
    // Subnormals and zero: put the mantissa under an exponent, and subtract that power of two.
    let small = (f(shifted + (113 << 23)) - f(113 << 23)).to_bits();
    let large = shifted + ((127 - 15) << 23) + if exponent == 0x0f80_0000 { (128 - 16) << 23 } else { 0 };
    let value = if exponent == 0 { small } else { large };
    if value > 0x7f80_0000 { NAN } else { value | ((half & 0x8000) << 16) }
}

#[inline(always)]
pub(crate) fn f32_of_bf16(half: u32) -> u32 {
    let value = half << 16;
    if value & 0x7fff_ffff > 0x7f80_0000 { NAN } else { value }
}

/// Rounds to the nearest even number of a type with fewer bits.
///
/// `bias` is its exponent bias, `mantissa` the bits of its mantissa. The result has no sign, and is wrong if it
/// overflows.
#[inline(always)]
fn narrow(magnitude: u32, bias: u32, mantissa: u32) -> u32 {
    let cut = 23 - mantissa;
    // Below the smallest normal, add a number whose last bit is the type's smallest subnormal: the FPU rounds.
    let anchor = (127 - bias + 1 + cut) << 23;
    let small = (f(magnitude) + f(anchor)).to_bits().wrapping_sub(anchor);
    let odd = (magnitude >> cut) & 1;
    let rounded = magnitude.wrapping_add((1 << (cut - 1)) - 1 + odd);
    let large = rounded.wrapping_sub((127 - bias) << 23) >> cut;
    if magnitude < (127 - bias + 1) << 23 { small } else { large }
}

#[inline(always)]
pub(crate) fn f16_of_f32(bits: u32) -> u32 {
    let magnitude = bits & 0x7fff_ffff;
    let rounded = narrow(magnitude, 15, 10);
    // 65520 is the first number that rounds to infinity.
    let finite = if magnitude >= 0x477f_f000 { 0x7c00 } else { rounded };
    if magnitude > 0x7f80_0000 { NAN_16 } else { finite | ((bits >> 16) & 0x8000) }
}

#[inline(always)]
pub(crate) fn bf16_of_f32(bits: u32) -> u32 {
    let rounded = bits.wrapping_add(0x7fff + ((bits >> 16) & 1)) >> 16;
    if bits & 0x7fff_ffff > 0x7f80_0000 { NAN_16 } else { rounded }
}

/// A float of 8 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fp8 {
    E4m3,
    E5m2,
}

/// The format of a float of 8 bits.
struct Format {
    /// The bias of the exponent.
    bias: u32,
    /// The bits of the mantissa.
    mantissa: u32,
    /// The largest number, and its byte.
    largest: (f32, u32),
    /// The last byte that is no NaN.
    last: u32,
}

impl Fp8 {
    /// Reads a name of PTX.
    pub(crate) fn of(name: &str) -> Option<Fp8> {
        match name {
            "e4m3" => Some(Fp8::E4m3),
            "e5m2" => Some(Fp8::E5m2),
            _ => None,
        }
    }

    #[inline(always)]
    fn format(self) -> Format {
        match self {
            Fp8::E4m3 => Format { bias: 7, mantissa: 3, largest: (448.0, 0x7e), last: 0x7e },
            Fp8::E5m2 => Format { bias: 15, mantissa: 2, largest: (57344.0, 0x7b), last: 0x7c },
        }
    }

    /// `.satfinite`: what is too large becomes the largest number.
    #[inline(always)]
    pub(crate) fn of_f32(self, bits: u32) -> u32 {
        let Format { bias, mantissa, largest: (largest, byte), .. } = self.format();
        let magnitude = bits & 0x7fff_ffff;
        let rounded = narrow(magnitude, bias, mantissa);
        let finite = if magnitude >= largest.to_bits() { byte } else { rounded };
        if magnitude > 0x7f80_0000 { 0x7f } else { finite | ((bits >> 24) & 0x80) }
    }

    #[inline(always)]
    pub(crate) fn to_f16(self, byte: u32) -> u32 {
        let Format { bias, mantissa, last, .. } = self.format();
        // The byte's exponent and mantissa as an f32 that is too small by a power of two. Infinity is above all f16.
        let value = f((byte & 0x7f) << (23 - mantissa)) * f((127 + 127 - bias) << 23);
        let half = f16_of_f32(value.to_bits());
        if byte & 0x7f > last { NAN_16 } else { half | ((byte & 0x80) << 8) }
    }
}

/// Rounds an f64 to f16 or bf16. The last bit of the f64 is set if something smaller was cut off.
pub(crate) fn half_of_f64(value: f64, bf16: bool) -> u32 {
    // Cut to f32 first, again with the last bit set if something is cut off. Its 24 bits are at least two more than the
    // result's, so the second rounding is right.
    let nearest = value as f32;
    let back = f64::from(nearest);
    let single = if value.is_nan() || back == value {
        nearest.to_bits()
    } else {
        let bits = nearest.to_bits();
        let towards_zero = if back.abs() > value.abs() { bits - 1 } else { bits };
        towards_zero | 1
    };
    if bf16 { bf16_of_f32(single) } else { f16_of_f32(single) }
}

#[cfg(test)]
mod tests {
    use half::{bf16, f16};

    use super::*;

    #[test]
    fn every_half_widens() {
        for bits in 0..=u16::MAX {
            let (ours, theirs) = (f32_of_f16(u32::from(bits)), f16::from_bits(bits));
            if theirs.is_nan() {
                assert_eq!(ours, NAN);
            } else {
                assert_eq!(ours, theirs.to_f32().to_bits(), "f16 {bits:x}");
                assert_eq!(f16_of_f32(ours), u32::from(bits));
            }
            let (ours, theirs) = (f32_of_bf16(u32::from(bits)), bf16::from_bits(bits));
            if theirs.is_nan() {
                assert_eq!(ours, NAN);
            } else {
                assert_eq!(ours, theirs.to_f32().to_bits(), "bf16 {bits:x}");
                assert_eq!(bf16_of_f32(ours), u32::from(bits));
            }
        }
    }

    /// Returns f32 values at and beside every value of a small type, and every middle between two.
    fn around(values: impl Iterator<Item = f32>) -> impl Iterator<Item = f32> {
        let mut values: Vec<f32> = values.filter(|value| value.is_finite() && *value >= 0.0).collect();
        values.sort_by(f32::total_cmp);
        values.dedup();
        let middles: Vec<f32> = values.windows(2).map(|pair| pair[0] + (pair[1] - pair[0]) / 2.0).collect();
        let largest = values[values.len() - 1];
        values.extend(middles);
        values.extend([largest * 1.01, largest * 1.04, largest * 1.2, largest * 4.0, f32::INFINITY, f32::MAX]);
        values.into_iter().flat_map(|value| {
            [value.next_down().max(0.0), value, value.next_up()].into_iter().flat_map(|value| [value, -value])
        })
    }

    #[test]
    fn singles_narrow_around_every_half() {
        for value in around((0..=u16::MAX).map(|bits| f16::from_bits(bits).to_f32())) {
            assert_eq!(f16_of_f32(value.to_bits()), u32::from(f16::from_f32(value).to_bits()), "{value:e}");
            assert_eq!(half_of_f64(f64::from(value), false), u32::from(f16::from_f32(value).to_bits()));
        }
        for value in around((0..=u16::MAX).map(|bits| bf16::from_bits(bits).to_f32())) {
            assert_eq!(bf16_of_f32(value.to_bits()), u32::from(bf16::from_f32(value).to_bits()), "{value:e}");
            assert_eq!(half_of_f64(f64::from(value), true), u32::from(bf16::from_f32(value).to_bits()));
        }
        assert_eq!([f16_of_f32(0xffc0_0000), bf16_of_f32(0xffc0_0000)], [NAN_16; 2]);
    }

    #[test]
    fn doubles_round_once() {
        // A little above the middle between two halves: rounding to f32 first would give the middle.
        let middle = 1.0 + 2.0_f64.powi(-11);
        assert_eq!(half_of_f64(middle, false), 0x3c00);
        assert_eq!(half_of_f64(middle + 2.0_f64.powi(-40), false), 0x3c01);
        assert_eq!(half_of_f64(-(middle + 2.0_f64.powi(-40)), false), 0xbc01);
        assert_eq!(half_of_f64(f64::NAN, false), NAN_16);
        assert_eq!(half_of_f64(1e300, true), 0x7f80);
    }

    /// Returns the value of a byte, by the definition of its type.
    fn byte_value(byte: u32, bias: i32, mantissa: u32) -> f64 {
        let fraction = f64::from(byte & ((1 << mantissa) - 1)) / f64::from(1 << mantissa);
        let exponent = i32::try_from((byte & 0x7f) >> mantissa).unwrap();
        let magnitude = if exponent == 0 {
            fraction * 2.0_f64.powi(1 - bias)
        } else {
            (1.0 + fraction) * 2.0_f64.powi(exponent - bias)
        };
        if byte & 0x80 == 0 { magnitude } else { -magnitude }
    }

    #[test]
    fn every_byte_widens() {
        for byte in 0..256 {
            let (e4m3, e5m2) = (Fp8::E4m3.to_f16(byte), Fp8::E5m2.to_f16(byte));
            if byte & 0x7f == 0x7f {
                assert_eq!(e4m3, NAN_16);
            } else {
                assert_eq!(f64::from(f(f32_of_f16(e4m3))), byte_value(byte, 7, 3), "{byte:x}");
                assert_eq!(e4m3 >> 15, byte >> 7, "{byte:x}");
            }
            match byte & 0x7f {
                0x7c => assert_eq!(e5m2, byte << 8),
                0x7d..=0x7f => assert_eq!(e5m2, NAN_16),
                _ => {
                    assert_eq!(f64::from(f(f32_of_f16(e5m2))), byte_value(byte, 15, 2));
                    assert_eq!(e5m2 >> 15, byte >> 7, "{byte:x}");
                }
            }
        }
    }

    /// Returns the byte with the nearest value: the even one of two, and the largest if the value is too large.
    fn nearest_byte(value: f32, bias: i32, mantissa: u32, largest: u32) -> u32 {
        let distance = |byte: u32| (byte_value(byte, bias, mantissa) - f64::from(value.abs())).abs();
        let best = (0..=largest).min_by(|&a, &b| distance(a).total_cmp(&distance(b)).then((a & 1).cmp(&(b & 1))));
        best.unwrap() | (value.to_bits() >> 24 & 0x80)
    }

    #[test]
    fn singles_narrow_around_every_byte() {
        for value in around((0..0x7f).map(|byte| byte_value(byte, 7, 3) as f32)) {
            assert_eq!(
                Fp8::E4m3.of_f32(value.to_bits()),
                nearest_byte(value.clamp(-1e6, 1e6), 7, 3, 0x7e),
                "{value:e}"
            );
        }
        for value in around((0..0x7c).map(|byte| byte_value(byte, 15, 2) as f32)) {
            assert_eq!(
                Fp8::E5m2.of_f32(value.to_bits()),
                nearest_byte(value.clamp(-1e6, 1e6), 15, 2, 0x7b),
                "{value:e}"
            );
        }
        assert_eq!([Fp8::E4m3.of_f32(0xffc0_0000), Fp8::E5m2.of_f32(NAN)], [0x7f; 2]);
    }
}
