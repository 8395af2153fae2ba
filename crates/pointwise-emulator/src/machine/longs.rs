//! Operations on longs.

use super::lanes::{Longs, Words, map1, map2, map3};
use crate::{
    numerics::{convert, double, integer},
    program::{OneLong, ShiftLong, ThreeLong, TwoLong},
};

/// Applies a function of f64.
#[inline(always)]
fn doubles(a: &Longs, op: impl Fn(f64) -> f64) -> Longs {
    map1(a, |a| op(f64::from_bits(a)).to_bits())
}

#[inline(always)]
fn doubles2(a: &Longs, b: &Longs, op: impl Fn(f64, f64) -> f64) -> Longs {
    map2(a, b, |a, b| op(f64::from_bits(a), f64::from_bits(b)).to_bits())
}

#[inline(always)]
pub(super) fn one(op: OneLong, a: &Longs) -> Longs {
    match op {
        OneLong::Move => *a,
        OneLong::AbsS64 => map1(a, |a| (a as i64).unsigned_abs()),
        OneLong::Signed8 => map1(a, |a| i64::from(a as i8) as u64),
        OneLong::Signed16 => map1(a, |a| i64::from(a as i16) as u64),
        OneLong::Signed32 => map1(a, |a| i64::from(a as i32) as u64),
        OneLong::Unsigned8 => map1(a, |a| a & 0xff),
        OneLong::Unsigned16 => map1(a, |a| a & 0xffff),
        OneLong::Unsigned32 => map1(a, |a| a & 0xffff_ffff),
        OneLong::Brev => map1(a, u64::reverse_bits),
        OneLong::DSqrt => doubles(a, f64::sqrt),
        OneLong::DRcp => doubles(a, |a| 1.0 / a),
        OneLong::DNearest => doubles(a, f64::round_ties_even),
        OneLong::DFloor => doubles(a, f64::floor),
        OneLong::DCeil => doubles(a, f64::ceil),
        OneLong::DTrunc => doubles(a, f64::trunc),
        OneLong::F64OfS64 => map1(a, |a| (a as i64 as f64).to_bits()),
        OneLong::F64OfU64 => map1(a, |a| (a as f64).to_bits()),
        OneLong::S64OfF64 => map1(a, |a| convert::s64_of_f64(f64::from_bits(a))),
        OneLong::U64OfF64 => map1(a, |a| convert::u64_of_f64(f64::from_bits(a))),
    }
}

#[inline(always)]
pub(super) fn two(op: TwoLong, a: &Longs, b: &Longs) -> Longs {
    match op {
        TwoLong::Add => map2(a, b, u64::wrapping_add),
        TwoLong::Sub => map2(a, b, u64::wrapping_sub),
        TwoLong::Mul => map2(a, b, u64::wrapping_mul),
        TwoLong::MulHiU => map2(a, b, integer::mul_hi_u_long),
        TwoLong::MulHiS => map2(a, b, integer::mul_hi_s_long),
        TwoLong::DivU => map2(a, b, integer::div_u_long),
        TwoLong::DivS => map2(a, b, integer::div_s_long),
        TwoLong::RemU => map2(a, b, integer::rem_u_long),
        TwoLong::RemS => map2(a, b, integer::rem_s_long),
        TwoLong::MinU => map2(a, b, Ord::min),
        TwoLong::MinS => map2(a, b, |a, b| (a as i64).min(b as i64) as u64),
        TwoLong::MaxU => map2(a, b, Ord::max),
        TwoLong::MaxS => map2(a, b, |a, b| (a as i64).max(b as i64) as u64),
        TwoLong::And => map2(a, b, |a, b| a & b),
        TwoLong::Or => map2(a, b, |a, b| a | b),
        TwoLong::Xor => map2(a, b, |a, b| a ^ b),
        TwoLong::DAdd => doubles2(a, b, |a, b| a + b),
        TwoLong::DSub => doubles2(a, b, |a, b| a - b),
        TwoLong::DMul => doubles2(a, b, |a, b| a * b),
        TwoLong::DDiv => doubles2(a, b, |a, b| a / b),
        TwoLong::DMin => doubles2(a, b, double::min),
        TwoLong::DMax => doubles2(a, b, double::max),
        TwoLong::DCopysign => doubles2(a, b, |sign, magnitude| magnitude.copysign(sign)),
    }
}

#[inline(always)]
pub(super) fn three(op: ThreeLong, a: &Longs, b: &Longs, c: &Longs) -> Longs {
    match op {
        ThreeLong::Mad => map3(a, b, c, |a, b, c| a.wrapping_mul(b).wrapping_add(c)),
        ThreeLong::DFma => {
            map3(a, b, c, |a, b, c| f64::from_bits(a).mul_add(f64::from_bits(b), f64::from_bits(c)).to_bits())
        }
    }
}

#[inline(always)]
pub(super) fn shift(op: ShiftLong, a: &Longs, b: &Words, c: &Words) -> Longs {
    match op {
        ShiftLong::Shl => map2(a, b, integer::shl_long),
        ShiftLong::ShrU => map2(a, b, integer::shr_u_long),
        ShiftLong::ShrS => map2(a, b, integer::shr_s_long),
        ShiftLong::BfeU => map3(a, b, c, integer::bfe_u_long),
        ShiftLong::BfeS => map3(a, b, c, integer::bfe_s_long),
    }
}
