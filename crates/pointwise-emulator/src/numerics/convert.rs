//! Conversions between integers and floating point numbers.
//!
//! A number that an integer type cannot hold becomes its nearest value. NaN becomes 0 if both types have at most 32
//! bits, else the lowest signed number (the middle of an unsigned range).

use super::single::f;

#[inline(always)]
pub(crate) fn s32_of_f32(a: u32) -> u32 {
    (f(a) as i32) as u32
}

#[inline(always)]
pub(crate) fn u32_of_f32(a: u32) -> u32 {
    f(a) as u32
}

#[inline(always)]
pub(crate) fn s16_of_f32(a: u32) -> u32 {
    (f(a) as i32).clamp(-0x8000, 0x7fff) as u32 & 0xffff
}

#[inline(always)]
pub(crate) fn u16_of_f32(a: u32) -> u32 {
    (f(a) as i32).clamp(0, 0xffff) as u32
}

#[inline(always)]
pub(crate) fn s8_of_f32(a: u32) -> u32 {
    (f(a) as i32).clamp(-0x80, 0x7f) as u32
}

#[inline(always)]
pub(crate) fn u8_of_f32(a: u32) -> u32 {
    (f(a) as i32).clamp(0, 0xff) as u32
}

#[inline(always)]
pub(crate) fn s64_of_f64(x: f64) -> u64 {
    if x.is_nan() { 1 << 63 } else { (x as i64) as u64 }
}

#[inline(always)]
pub(crate) fn u64_of_f64(x: f64) -> u64 {
    if x.is_nan() { 1 << 63 } else { x as u64 }
}

#[inline(always)]
pub(crate) fn s32_of_f64(x: f64) -> u32 {
    if x.is_nan() { 1 << 31 } else { (x as i32) as u32 }
}

#[inline(always)]
pub(crate) fn u32_of_f64(x: f64) -> u32 {
    if x.is_nan() { 1 << 31 } else { x as u32 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numerics::NAN;

    #[test]
    fn saturation_and_nan() {
        let b = f32::to_bits;
        assert_eq!(
            [s32_of_f32(b(3e9)), s32_of_f32(b(-3e9)), s32_of_f32(b(-1.9))],
            [0x7fff_ffff, 0x8000_0000, u32::MAX]
        );
        assert_eq!([u32_of_f32(b(5e9)), u32_of_f32(b(-1.0)), u32_of_f32(NAN)], [u32::MAX, 0, 0]);
        assert_eq!(
            [s16_of_f32(b(4e4)), s16_of_f32(b(-4e4)), s16_of_f32(b(-1.0)), s16_of_f32(NAN)],
            [0x7fff, 0x8000, 0xffff, 0]
        );
        assert_eq!([u16_of_f32(b(7e4)), u8_of_f32(b(300.0)), u8_of_f32(b(-3.0))], [0xffff, 0xff, 0]);
        assert_eq!(s8_of_f32(b(-300.0)), 0xffff_ff80);
        assert_eq!([s64_of_f64(f64::NAN), u64_of_f64(f64::NAN)], [1 << 63; 2]);
        assert_eq!([s64_of_f64(1e30), u64_of_f64(-1.0), u64_of_f64(1e30)], [i64::MAX as u64, 0, u64::MAX]);
        assert_eq!([s32_of_f64(f64::NAN), u32_of_f64(f64::NAN), s32_of_f64(-2.5)], [1 << 31, 1 << 31, (-2_i32) as u32]);
    }
}
