//! Operations on words.

use super::{
    LANES,
    lanes::{Words, map1, map2, map3},
};
use crate::{
    numerics::{convert, halves, integer, narrow, single},
    program::{One, Relation, Three, Two},
};

#[inline(always)]
pub(super) fn one(op: One, a: &Words) -> Words {
    match op {
        One::Move => *a,
        One::Popc => map1(a, u32::count_ones),
        One::Clz => map1(a, u32::leading_zeros),
        One::Brev => map1(a, u32::reverse_bits),
        One::Signed8 => map1(a, integer::signed8),
        One::Signed16 => map1(a, integer::signed16),
        One::Unsigned8 => map1(a, |a| a & 0xff),
        One::Unsigned16 => map1(a, |a| a & 0xffff),
        One::Signed8To16 => map1(a, |a| integer::signed8(a) & 0xffff),
        One::AbsS32 => map1(a, |a| (a as i32).unsigned_abs()),
        One::AbsS16 => map1(a, |a| (integer::signed16(a) as i32).unsigned_abs()),
        One::Flush => map1(a, single::flush),
        One::F32OfS32 => map1(a, |a| (a as i32 as f32).to_bits()),
        One::F32OfU32 => map1(a, |a| (a as f32).to_bits()),
        One::Nearest => map1(a, |a| single::canonical(single::f(a).round_ties_even())),
        One::Floor => map1(a, |a| single::canonical(single::f(a).floor())),
        One::Ceil => map1(a, |a| single::canonical(single::f(a).ceil())),
        One::Trunc => map1(a, |a| single::canonical(single::f(a).trunc())),
        One::F32OfF16 => map1(a, narrow::f32_of_f16),
        One::F32OfBf16 => map1(a, narrow::f32_of_bf16),
        One::F16OfF32 => map1(a, narrow::f16_of_f32),
        One::Bf16OfF32 => map1(a, narrow::bf16_of_f32),
        One::F16x2OfFp8x2(of) => map1(a, |a| of.to_f16(a & 0xff) | of.to_f16(a >> 8 & 0xff) << 16),
        One::Fp8x2OfF16x2(to) => map1(a, |a| {
            let byte = |half| to.of_f32(narrow::f32_of_f16(half));
            byte(a & 0xffff) | byte(a >> 16) << 8
        }),
        One::S32OfF32 => map1(a, convert::s32_of_f32),
        One::U32OfF32 => map1(a, convert::u32_of_f32),
        One::S16OfF32 => map1(a, convert::s16_of_f32),
        One::U16OfF32 => map1(a, convert::u16_of_f32),
        One::S8OfF32 => map1(a, convert::s8_of_f32),
        One::U8OfF32 => map1(a, convert::u8_of_f32),
        One::Sqrt => map1(a, single::sqrt),
        One::Rcp => map1(a, |a| single::div(1.0_f32.to_bits(), a)),
    }
}

#[inline(always)]
pub(super) fn two(op: Two, a: &Words, b: &Words) -> Words {
    let signed16 = |a| integer::signed16(a) as i32;
    match op {
        Two::Add => map2(a, b, u32::wrapping_add),
        Two::Sub => map2(a, b, u32::wrapping_sub),
        Two::Mul => map2(a, b, u32::wrapping_mul),
        Two::MulHiU => map2(a, b, integer::mul_hi_u),
        Two::MulHiS => map2(a, b, integer::mul_hi_s),
        Two::DivU => map2(a, b, integer::div_u),
        Two::DivS => map2(a, b, integer::div_s),
        Two::RemU => map2(a, b, integer::rem_u),
        Two::RemS => map2(a, b, integer::rem_s),
        Two::MinU => map2(a, b, Ord::min),
        Two::MinS => map2(a, b, |a, b| (a as i32).min(b as i32) as u32),
        Two::MaxU => map2(a, b, Ord::max),
        Two::MaxS => map2(a, b, |a, b| (a as i32).max(b as i32) as u32),
        Two::And => map2(a, b, |a, b| a & b),
        Two::Or => map2(a, b, |a, b| a | b),
        Two::Xor => map2(a, b, |a, b| a ^ b),
        Two::Shl => map2(a, b, integer::shl),
        Two::ShrU => map2(a, b, integer::shr_u),
        Two::ShrS => map2(a, b, integer::shr_s),
        Two::Add16 => map2(a, b, |a, b| a.wrapping_add(b) & 0xffff),
        Two::Sub16 => map2(a, b, |a, b| a.wrapping_sub(b) & 0xffff),
        Two::Mul16 => map2(a, b, |a, b| a.wrapping_mul(b) & 0xffff),
        Two::MulHiU16 => map2(a, b, |a, b| a.wrapping_mul(b) >> 16),
        Two::MulHiS16 => map2(a, b, |a, b| (signed16(a) * signed16(b)) as u32 >> 16),
        Two::MulWideS16 => map2(a, b, |a, b| (signed16(a) * signed16(b)) as u32),
        Two::DivU16 => map2(a, b, |a, b| integer::div_u(a, b) & 0xffff),
        Two::DivS16 => map2(a, b, |a, b| integer::div_s(integer::signed16(a), integer::signed16(b)) & 0xffff),
        Two::RemU16 => map2(a, b, |a, b| integer::rem_u(a, b) & 0xffff),
        Two::RemS16 => map2(a, b, |a, b| integer::rem_s(integer::signed16(a), integer::signed16(b)) & 0xffff),
        Two::MinS16 => map2(a, b, |a, b| if signed16(a) < signed16(b) { a } else { b }),
        Two::MaxS16 => map2(a, b, |a, b| if signed16(a) > signed16(b) { a } else { b }),
        Two::Shl16 => map2(a, b, |a, b| integer::shl(a, b) & 0xffff),
        Two::ShrS16 => map2(a, b, |a, b| integer::shr_s(integer::signed16(a), b) & 0xffff),
        Two::FAdd => map2(a, b, single::add),
        Two::FSub => map2(a, b, single::sub),
        Two::FMul => map2(a, b, single::mul),
        Two::FDiv => map2(a, b, single::div),
        Two::FMin => map2(a, b, single::min),
        Two::FMax => map2(a, b, single::max),
        Two::FMinNan => map2(a, b, single::min_nan),
        Two::FMaxNan => map2(a, b, single::max_nan),
        Two::Copysign => map2(a, b, single::copysign),
        Two::F16x2OfF32 => map2(a, b, |a, b| narrow::f16_of_f32(a) << 16 | narrow::f16_of_f32(b)),
        Two::Bf16x2OfF32 => map2(a, b, |a, b| narrow::bf16_of_f32(a) << 16 | narrow::bf16_of_f32(b)),
        Two::Fp8x2OfF32(to) => map2(a, b, |a, b| to.of_f32(a) << 8 | to.of_f32(b)),
        Two::Pack16 => map2(a, b, |a, b| a & 0xffff | b << 16),
        Two::AddF16x2
        | Two::SubF16x2
        | Two::MulF16x2
        | Two::MinF16x2
        | Two::MaxF16x2
        | Two::MinNanF16x2
        | Two::MaxNanF16x2
        | Two::AddBf16x2
        | Two::SubBf16x2
        | Two::MulBf16x2
        | Two::MinBf16x2
        | Two::MaxBf16x2
        | Two::MinNanBf16x2
        | Two::MaxNanBf16x2 => map2(a, b, |a, b| halves::two(op, a, b)),
    }
}

/// Puts the low `e` bits of `a` into `b` at position `c`.
#[inline(always)]
pub(super) fn insert(a: &Words, b: &Words, c: &Words, e: &Words) -> Words {
    let mut out = [0; LANES];
    for lane in 0..LANES {
        out[lane] = integer::bfi(a[lane], b[lane], c[lane], e[lane]);
    }
    out
}

#[inline(always)]
pub(super) fn three(op: Three, a: &Words, b: &Words, c: &Words) -> Words {
    match op {
        Three::Mad => map3(a, b, c, |a, b, c| a.wrapping_mul(b).wrapping_add(c)),
        Three::Mad16 => map3(a, b, c, |a, b, c| a.wrapping_mul(b).wrapping_add(c) & 0xffff),
        Three::Fma => map3(a, b, c, single::fma),
        Three::FmaF16x2 => map3(a, b, c, |a, b, c| halves::fma(halves::Half::F16, a, b, c)),
        Three::FmaBf16x2 => map3(a, b, c, |a, b, c| halves::fma(halves::Half::Bf16, a, b, c)),
        Three::Prmt => map3(a, b, c, integer::prmt),
        Three::BfeU => map3(a, b, c, integer::bfe_u),
        Three::BfeS => map3(a, b, c, integer::bfe_s),
        Three::ShfLeftWrap => map3(a, b, c, |a, b, c| integer::shf_left(a, b, c & 31)),
        Three::ShfLeftClamp => map3(a, b, c, |a, b, c| integer::shf_left(a, b, c.min(32))),
        Three::ShfRightWrap => map3(a, b, c, |a, b, c| integer::shf_right(a, b, c & 31)),
        Three::ShfRightClamp => map3(a, b, c, |a, b, c| integer::shf_right(a, b, c.min(32))),
        Three::Lop3(table) => map3(a, b, c, |a, b, c| integer::lop3(a, b, c, table)),
    }
}

/// Compares pairs of halves.
#[inline(always)]
pub(super) fn compare_halves(bf16: bool, relation: Relation, a: &Words, b: &Words) -> Words {
    let half = if bf16 { halves::Half::Bf16 } else { halves::Half::F16 };
    map2(a, b, |a, b| halves::compare(half, relation, a, b))
}
