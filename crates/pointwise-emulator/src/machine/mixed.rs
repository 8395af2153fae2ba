//! Operations between words, longs and predicates.

use super::lanes::{Longs, Words, map1, map2, map3, mask2};
use crate::{
    numerics::{
        convert,
        halves::{Half, single_compare},
        integer, narrow, single,
    },
    program::{Compared, Logic, Narrow, Relation, Widen},
};

#[inline(always)]
pub(super) fn widen(op: Widen, a: &Words, b: &Words) -> Longs {
    match op {
        Widen::U32 => map1(a, u64::from),
        Widen::S32 => map1(a, |a| i64::from(a as i32) as u64),
        Widen::S16 => map1(a, |a| i64::from(integer::signed16(a) as i32) as u64),
        Widen::S8 => map1(a, |a| i64::from(integer::signed8(a) as i32) as u64),
        Widen::MulU => map2(a, b, |a, b| u64::from(a) * u64::from(b)),
        Widen::MulS => map2(a, b, integer::mul_wide_s),
        Widen::Pack => map2(a, b, |a, b| u64::from(a) | u64::from(b) << 32),
        Widen::F64OfF32 => map1(a, |a| f64::from(single::f(a)).to_bits()),
        Widen::F64OfS32 => map1(a, |a| f64::from(a as i32).to_bits()),
        Widen::F64OfU32 => map1(a, |a| f64::from(a).to_bits()),
        Widen::S64OfF32 => map1(a, |a| convert::s64_of_f64(f64::from(single::f(a)))),
        Widen::U64OfF32 => map1(a, |a| convert::u64_of_f64(f64::from(single::f(a)))),
    }
}

#[inline(always)]
pub(super) fn mad_wide(signed: bool, a: &Words, b: &Words, c: &Longs) -> Longs {
    if signed {
        map3(a, b, c, |a, b, c| integer::mul_wide_s(a, b).wrapping_add(c))
    } else {
        map3(a, b, c, |a, b, c| (u64::from(a) * u64::from(b)).wrapping_add(c))
    }
}

#[inline(always)]
pub(super) fn narrow(op: Narrow, a: &Longs) -> Words {
    match op {
        Narrow::Low => map1(a, |a| a as u32),
        Narrow::High => map1(a, |a| (a >> 32) as u32),
        Narrow::Low16 => map1(a, |a| a as u32 & 0xffff),
        Narrow::Signed8To16 => map1(a, |a| integer::signed8(a as u32) & 0xffff),
        Narrow::Signed8 => map1(a, |a| integer::signed8(a as u32)),
        Narrow::Signed16 => map1(a, |a| integer::signed16(a as u32)),
        Narrow::Unsigned8 => map1(a, |a| a as u32 & 0xff),
        Narrow::Quarter(at) => map1(a, |a| (a >> (16 * (at & 3))) as u32 & 0xffff),
        Narrow::Popc => map1(a, u64::count_ones),
        Narrow::Clz => map1(a, u64::leading_zeros),
        Narrow::F32OfS64 => map1(a, |a| (a as i64 as f32).to_bits()),
        Narrow::F32OfU64 => map1(a, |a| (a as f32).to_bits()),
        Narrow::F32OfF64 => map1(a, |a| single::canonical(f64::from_bits(a) as f32)),
        Narrow::F16OfF64 => map1(a, |a| narrow::half_of_f64(f64::from_bits(a), false)),
        Narrow::Bf16OfF64 => map1(a, |a| narrow::half_of_f64(f64::from_bits(a), true)),
        Narrow::S32OfF64 => map1(a, |a| convert::s32_of_f64(f64::from_bits(a))),
        Narrow::U32OfF64 => map1(a, |a| convert::u32_of_f64(f64::from_bits(a))),
    }
}

/// Returns the lanes whose integers meet a relation.
#[inline(always)]
fn ordered<T: Copy + Ord, A: Copy>(relation: Relation, a: &[A; 32], b: &[A; 32], value: impl Fn(A) -> T) -> u32 {
    match relation {
        Relation::Eq => mask2(a, b, |a, b| value(a) == value(b)),
        Relation::Lt => mask2(a, b, |a, b| value(a) < value(b)),
        Relation::Le => mask2(a, b, |a, b| value(a) <= value(b)),
        Relation::Gt => mask2(a, b, |a, b| value(a) > value(b)),
        Relation::Ge => mask2(a, b, |a, b| value(a) >= value(b)),
        _ => mask2(a, b, |a, b| value(a) != value(b)),
    }
}

/// Returns the lanes whose f32 meet a relation.
#[inline(always)]
fn singles(relation: Relation, a: &Words, b: &Words) -> u32 {
    // One loop for each relation, so that no loop has a choice in it.
    macro_rules! each {
        ($($relation:ident)*) => {
            match relation { $(Relation::$relation => mask2(a, b, |a, b| single_compare(Relation::$relation, a, b)),)* }
        };
    }
    each!(Eq Ne Lt Le Gt Ge Equ Neu Ltu Leu Gtu Geu Num Nan)
}

/// Returns the lanes whose words meet a relation.
#[inline(always)]
pub(super) fn compare(of: Compared, relation: Relation, a: &Words, b: &Words) -> u32 {
    match of {
        Compared::S32 => ordered(relation, a, b, |a| a as i32),
        Compared::S16 => ordered(relation, a, b, |a| integer::signed16(a) as i32),
        Compared::F32 => singles(relation, a, b),
        Compared::F32Flushed => singles(relation, &map1(a, single::flush), &map1(b, single::flush)),
        Compared::F16 => singles(relation, &map1(a, |a| Half::F16.widen(a)), &map1(b, |b| Half::F16.widen(b))),
        Compared::Bf16 => singles(relation, &map1(a, |a| Half::Bf16.widen(a)), &map1(b, |b| Half::Bf16.widen(b))),
        _ => ordered(relation, a, b, |a| a),
    }
}

/// Returns the lanes whose longs meet a relation.
#[inline(always)]
pub(super) fn compare_long(of: Compared, relation: Relation, a: &Longs, b: &Longs) -> u32 {
    match of {
        Compared::S64 => ordered(relation, a, b, |a| a as i64),
        Compared::F64 => mask2(a, b, |a, b| double_compare(relation, f64::from_bits(a), f64::from_bits(b))),
        _ => ordered(relation, a, b, |a| a),
    }
}

#[inline(always)]
fn double_compare(relation: Relation, x: f64, y: f64) -> bool {
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

#[inline(always)]
pub(super) fn logic(op: Logic, a: u32, b: u32) -> u32 {
    match op {
        Logic::And => a & b,
        Logic::Or => a | b,
        Logic::Xor => a ^ b,
    }
}

/// Chooses lane by lane.
#[inline(always)]
pub(super) fn select<T: Copy + Default>(a: &[T; 32], b: &[T; 32], choice: u32) -> [T; 32] {
    let mut out = [T::default(); 32];
    for lane in 0..32 {
        out[lane] = if choice >> lane & 1 == 1 { a[lane] } else { b[lane] };
    }
    out
}

/// Returns the lanes where the result of an operation on predicates has a value: both operands have one, or one operand
/// decides alone.
#[inline(always)]
pub(super) fn known(op: Logic, a: u32, a_defined: u32, b: u32, b_defined: u32) -> u32 {
    let both = a_defined & b_defined;
    match op {
        Logic::And => both | (a_defined & !a) | (b_defined & !b),
        Logic::Or => both | (a_defined & a) | (b_defined & b),
        Logic::Xor => both,
    }
}
