//! Each family of instructions, against Rust's own arithmetic.

#![allow(
    clippy::precedence,
    clippy::manual_checked_ops,
    clippy::double_comparisons,
    clippy::neg_cmp_op_on_partial_ord,
    clippy::nonminimal_bool,
    reason = "references are written as the ISA defines the instruction"
)]

mod common;

use common::{long, operands, results, single, word};
use half::{bf16, f16};

/// The value of the low 16 bits.
fn s16(a: u32) -> i32 {
    i32::from(a as u16 as i16)
}

#[test]
fn words() {
    word("add.s32 %r20, %r10, %r11;", |a, b, _| a.wrapping_add(b));
    word("add.s32 %r20, %r10, -3;", |a, _, _| a.wrapping_sub(3));
    word("sub.s32 %r20, %r10, %r11;", |a, b, _| a.wrapping_sub(b));
    word("mul.lo.s32 %r20, %r10, %r11;", |a, b, _| a.wrapping_mul(b));
    word("mul.hi.u32 %r20, %r10, %r11;", |a, b, _| ((u64::from(a) * u64::from(b)) >> 32) as u32);
    word("mul.hi.s32 %r20, %r10, %r11;", |a, b, _| ((i64::from(a as i32) * i64::from(b as i32)) >> 32) as u32);
    word("mad.lo.s32 %r20, %r10, %r11, %r12;", |a, b, c| a.wrapping_mul(b).wrapping_add(c));
    word("mad.hi.u32 %r20, %r10, %r11, %r12;", |a, b, c| {
        (((u64::from(a) * u64::from(b)) >> 32) as u32).wrapping_add(c)
    });
    word("div.u32 %r20, %r10, %r11;", |a, b, _| if b == 0 { u32::MAX } else { a / b });
    word("rem.u32 %r20, %r10, %r11;", |a, b, _| if b == 0 { u32::MAX } else { a % b });
    word(
        "div.s32 %r20, %r10, %r11;",
        |a, b, _| {
            if b == 0 { u32::MAX } else { (a as i32).wrapping_div(b as i32) as u32 }
        },
    );
    word(
        "rem.s32 %r20, %r10, %r11;",
        |a, b, _| {
            if b == 0 { u32::MAX } else { (a as i32).wrapping_rem(b as i32) as u32 }
        },
    );
    word("min.s32 %r20, %r10, %r11;", |a, b, _| (a as i32).min(b as i32) as u32);
    word("max.u32 %r20, %r10, %r11;", |a, b, _| a.max(b));
    word("abs.s32 %r20, %r10;", |a, _, _| (a as i32).wrapping_abs() as u32);
    word("neg.s32 %r20, %r10;", |a, _, _| a.wrapping_neg());
    word("not.b32 %r20, %r10;", |a, _, _| !a);
    word("and.b32 %r20, %r10, %r11; or.b32 %r20, %r20, %r12; xor.b32 %r20, %r20, 255;", |a, b, c| (a & b | c) ^ 255);
}

#[test]
fn bits() {
    word("shl.b32 %r20, %r10, %r11;", |a, b, _| a.checked_shl(b).unwrap_or(0));
    word("shr.u32 %r20, %r10, %r11;", |a, b, _| a.checked_shr(b).unwrap_or(0));
    word("shr.s32 %r20, %r10, %r11;", |a, b, _| ((a as i32) >> b.min(31)) as u32);
    word("shf.l.wrap.b32 %r20, %r10, %r11, %r12;", |a, b, c| {
        ((((u64::from(b) << 32) | u64::from(a)) << (c % 32)) >> 32) as u32
    });
    word("shf.r.clamp.b32 %r20, %r10, %r11, %r12;", |a, b, c| {
        (((u64::from(b) << 32) | u64::from(a)) >> c.min(32)) as u32
    });
    word("popc.b32 %r20, %r10;", |a, _, _| a.count_ones());
    word("clz.b32 %r20, %r10;", |a, _, _| a.leading_zeros());
    word("brev.b32 %r20, %r10;", |a, _, _| a.reverse_bits());
    word("bfe.u32 %r20, %r10, 4, 8;", |a, _, _| a >> 4 & 0xff);
    word("bfe.s32 %r20, %r10, 28, 9;", |a, _, _| ((a as i32) >> 28) as u32);
    word("bfi.b32 %r20, %r10, %r11, 8, 4;", |a, b, _| b & !0xf00 | (a & 15) << 8);
    word("prmt.b32 %r20, %r10, %r11, 0x5410;", |a, b, _| a & 0xffff | b << 16);
    word("lop3.b32 %r20, %r10, %r11, %r12, 0xE8;", |a, b, c| a & b | b & c | a & c);
    word("mov.b32 {%rs1, %rs2}, %r10; mov.b32 %r20, {%rs2, %rs1};", |a, _, _| a.rotate_left(16));
    word("mov.b32 {_, %rs2}, %r10; cvt.u32.u16 %r20, %rs2;", |a, _, _| a >> 16);
    word("mov.b64 {%r20, %r21}, %rd10; xor.b32 %r20, %r20, %r21;", |a, b, _| a ^ b);
    long("mov.b64 {%rs1, %rs2, %rs3, %rs4}, %rd10; mov.b64 %rd20, {%rs4, %rs3, %rs2, %rs1};", |x, _, _| {
        x.rotate_left(32) << 16 & 0xffff_0000_ffff_0000 | x.rotate_left(32) >> 16 & 0x0000_ffff_0000_ffff
    });
}

#[test]
fn halfwords() {
    let low = |body: &str, reference: &dyn Fn(u32, u32) -> u32| {
        word(&format!("{body} cvt.u32.u16 %r20, %rs1;"), |a, b, _| reference(a & 0xffff, b & 0xffff) & 0xffff);
    };
    low("add.s16 %rs1, %rs10, %rs11;", &|a, b| a.wrapping_add(b));
    low("sub.s16 %rs1, %rs10, %rs11;", &|a, b| a.wrapping_sub(b));
    low("mul.lo.s16 %rs1, %rs10, %rs11;", &|a, b| a.wrapping_mul(b));
    low("mul.hi.s16 %rs1, %rs10, %rs11;", &|a, b| (s16(a) * s16(b)) as u32 >> 16);
    low("mad.lo.s16 %rs1, %rs10, %rs11, %rs10;", &|a, b| a.wrapping_mul(b).wrapping_add(a));
    low("div.u16 %rs1, %rs10, %rs11;", &|a, b| a.checked_div(b).unwrap_or(0xffff));
    low("rem.u16 %rs1, %rs10, %rs11;", &|a, b| a.checked_rem(b).unwrap_or(0xffff));
    low("div.s16 %rs1, %rs10, %rs11;", &|a, b| if b == 0 { 0xffff } else { (s16(a) / s16(b)) as u32 });
    low("rem.s16 %rs1, %rs10, %rs11;", &|a, b| if b == 0 { 0xffff } else { (s16(a) % s16(b)) as u32 });
    low("min.s16 %rs1, %rs10, %rs11;", &|a, b| s16(a).min(s16(b)) as u32);
    low("max.s16 %rs1, %rs10, -5;", &|a, _| s16(a).max(-5) as u32);
    low("max.u16 %rs1, %rs10, %rs11;", &|a, b| a.max(b));
    low("abs.s16 %rs1, %rs10;", &|a, _| s16(a).unsigned_abs());
    low("neg.s16 %rs1, %rs10;", &|a, _| a.wrapping_neg());
    low("not.b16 %rs1, %rs10;", &|a, _| !a);
    low("shl.b16 %rs1, %rs10, 3;", &|a, _| a << 3);
    low("shr.u16 %rs1, %rs10, 3;", &|a, _| a >> 3);
    low("shr.s16 %rs1, %rs10, 20;", &|a, _| (s16(a) >> 15) as u32);
    low("setp.lt.s16 %p1, %rs10, %rs11; selp.b16 %rs1, 7, -1, %p1;", &|a, b| {
        if s16(a) < s16(b) { 7 } else { 0xffff }
    });
    word("mul.wide.u16 %r20, %rs10, %rs11;", |a, b, _| (a & 0xffff) * (b & 0xffff));
    word("mul.wide.s16 %r20, %rs10, %rs11;", |a, b, _| (s16(a) * s16(b)) as u32);
}

#[test]
fn longs() {
    long("add.s64 %rd20, %rd10, %rd11;", |x, y, _| x.wrapping_add(y));
    long("sub.s64 %rd20, %rd10, -7;", |x, _, _| x.wrapping_add(7));
    long("mul.lo.s64 %rd20, %rd10, %rd11;", |x, y, _| x.wrapping_mul(y));
    long("mad.lo.s64 %rd20, %rd10, 12, %rd11;", |x, y, _| x.wrapping_mul(12).wrapping_add(y));
    long("mul.hi.u64 %rd20, %rd10, %rd11;", |x, y, _| ((u128::from(x) * u128::from(y)) >> 64) as u64);
    long("mul.hi.s64 %rd20, %rd10, %rd11;", |x, y, _| ((i128::from(x as i64) * i128::from(y as i64)) >> 64) as u64);
    long(
        "div.s64 %rd20, %rd10, %rd11;",
        |x, y, _| {
            if y == 0 { u64::MAX } else { (x as i64).wrapping_div(y as i64) as u64 }
        },
    );
    long("rem.u64 %rd20, %rd10, %rd11;", |x, y, _| x.checked_rem(y).unwrap_or(u64::MAX));
    long("min.s64 %rd20, %rd10, %rd11;", |x, y, _| (x as i64).min(y as i64) as u64);
    long("max.u64 %rd20, %rd10, %rd11;", |x, y, _| x.max(y));
    long("abs.s64 %rd20, %rd10;", |x, _, _| (x as i64).wrapping_abs() as u64);
    long("neg.s64 %rd20, %rd10; not.b64 %rd20, %rd20;", |x, _, _| x.wrapping_sub(1));
    long("shl.b64 %rd20, %rd10, %r12;", |x, _, c| x.checked_shl(c).unwrap_or(0));
    long("shr.s64 %rd20, %rd10, 70;", |x, _, _| ((x as i64) >> 63) as u64);
    long("bfe.s64 %rd20, %rd10, 8, 16;", |x, _, _| i64::from((x >> 8) as i16) as u64);
    long("mul.wide.u32 %rd20, %r10, %r11;", |x, _, _| (x & 0xffff_ffff) * (x >> 32));
    long("mul.wide.s32 %rd20, %r10, 24;", |x, _, _| (i64::from(x as i32) * 24) as u64);
    long("mad.wide.s32 %rd20, %r10, %r11, %rd11;", |x, y, _| {
        (i64::from(x as i32) * i64::from((x >> 32) as i32)).wrapping_add(y as i64) as u64
    });
    long(
        "setp.lt.s64 %p1, %rd10, %rd11; selp.b64 %rd20, %rd10, 5, %p1;",
        |x, y, _| {
            if (x as i64) < y as i64 { x } else { 5 }
        },
    );
    word("popc.b64 %r20, %rd10;", |a, b, _| a.count_ones() + b.count_ones());
    word("clz.b64 %r20, %rd10;", |a, b, _| (u64::from(a) | u64::from(b) << 32).leading_zeros());
}

#[test]
fn singles() {
    single("add.rn.f32 %r20, %r10, %r11;", |a, b, _| a + b);
    single("sub.f32 %r20, %r10, %r11;", |a, b, _| a - b);
    single("mul.rn.f32 %r20, %r10, 0f3F000000;", |a, _, _| a * 0.5);
    single("fma.rn.f32 %r20, %r10, %r11, %r12;", f32::mul_add);
    single("div.rn.f32 %r20, %r10, %r11;", |a, b, _| a / b);
    single("rcp.rn.f32 %r20, %r10;", |a, _, _| 1.0 / a);
    single("sqrt.rn.f32 %r20, %r10;", |a, _, _| a.sqrt());
    single("min.NaN.f32 %r20, %r10, %r11;", |a, b, _| match (a.is_nan() || b.is_nan(), a.total_cmp(&b).is_lt()) {
        (true, _) => f32::NAN,
        (false, true) => a,
        (false, false) => b,
    });
    word("neg.f32 %r20, %r10;", |a, _, _| a ^ 0x8000_0000);
    word("abs.f32 %r20, %r10;", |a, _, _| a & 0x7fff_ffff);
    word("copysign.f32 %r20, %r10, %r11;", |a, b, _| a & 0x8000_0000 | b & 0x7fff_ffff);
    single("mul.ftz.f32 %r20, %r10, %r11;", |a, b, _| flush(flush(a) * flush(b)));
    single(
        "add.sat.f32 %r20, %r10, %r11;",
        |a, b, _| if (a + b).is_nan() { 0.0 } else { (a + b).clamp(0.0, 1.0) + 0.0 },
    );
    single("fma.rm.f32 %r20, %r10, %r11, %r12;", |a, b, c| {
        let nearest = a.mul_add(b, c);
        // The sum in f64 and its error tell if the nearest f32 is above the exact sum.
        let exact = f64::from(a).mul_add(f64::from(b), f64::from(c));
        let (product, addend) = (f64::from(a) * f64::from(b), f64::from(c));
        let part = exact - product;
        let rest = (product - (exact - part)) + (addend - part);
        if !exact.is_finite() {
            return nearest;
        }
        if exact == 0.0 {
            // An exact zero of operands of different signs is negative here.
            let same = product == 0.0 && product.is_sign_negative() == addend.is_sign_negative();
            return if same { nearest } else { -0.0 };
        }
        let above = f64::from(nearest) > exact || (f64::from(nearest) == exact && rest < 0.0);
        let lower = if above { nearest.next_down() } else { nearest };
        if lower == 0.0 { 0.0_f32.copysign(exact as f32) } else { lower }
    });
    single("rcp.approx.ftz.f32 %r20, %r10;", |a, _, _| flush(1.0 / flush(a)));
    single("ex2.approx.ftz.f32 %r20, %r10;", |a, _, _| flush(f64::from(flush(a)).exp2() as f32));
    single("lg2.approx.f32 %r20, %r10;", |a, _, _| f64::from(a).log2() as f32);
    single("rsqrt.approx.f32 %r20, %r10;", |a, _, _| (1.0 / f64::from(a).sqrt()) as f32);
    single("div.full.ftz.f32 %r20, %r10, %r11;", |a, b, _| flush(flush(a) / flush(b)));
    single("tanh.approx.f32 %r20, %r10;", |a, _, _| f64::from(a).tanh() as f32);
}

fn flush(a: f32) -> f32 {
    if a.is_subnormal() { 0.0_f32.copysign(a) } else { a }
}

#[test]
fn doubles() {
    let double = |body: &str, reference: &dyn Fn(f64, f64) -> f64| {
        for ([a, b, c], (_, got)) in operands().into_iter().zip(results(body)) {
            let x = f64::from_bits(u64::from(a) | u64::from(b) << 32);
            let y = f64::from_bits(u64::from(c) | u64::from(a) << 32);
            let (got, want) = (f64::from_bits(got), reference(x, y));
            assert!(
                got.to_bits() == want.to_bits() || got.is_nan() && want.is_nan(),
                "{body} of {x}, {y}: {got}, not {want}"
            );
        }
    };
    double("add.rn.f64 %rd20, %rd10, %rd11;", &|x, y| x + y);
    double("sub.rn.f64 %rd20, %rd10, %rd11;", &|x, y| x - y);
    double("mul.rn.f64 %rd20, %rd10, 0d4000000000000000;", &|x, _| x * 2.0);
    double("fma.rn.f64 %rd20, %rd10, %rd11, %rd10;", &|x, y| x.mul_add(y, x));
    double("div.rn.f64 %rd20, %rd10, %rd11;", &|x, y| x / y);
    double("sqrt.rn.f64 %rd20, %rd10;", &|x, _| x.sqrt());
    double("neg.f64 %rd20, %rd10; abs.f64 %rd20, %rd20;", &|x, _| x.abs());
    double("cvt.rni.f64.f64 %rd20, %rd10;", &|x, _| x.round_ties_even());
    double("cvt.f64.f32 %rd20, %r10;", &|x, _| f64::from(f32::from_bits(x.to_bits() as u32)));
    double("cvt.rn.f64.u32 %rd20, %r10;", &|x, _| f64::from(x.to_bits() as u32));
    double("cvt.rn.f64.s64 %rd20, %rd10;", &|x, _| x.to_bits() as i64 as f64);
}

#[test]
fn comparisons() {
    let holds = |comparison: &str, reference: &dyn Fn(f32, f32) -> bool| {
        word(
            &format!("setp.{comparison} %p1|%p2, %r10, %r11; selp.u32 %r20, 1, 0, %p1; @%p2 add.u32 %r20, %r20, 2;"),
            |a, b, _| {
                if reference(f32::from_bits(a), f32::from_bits(b)) { 1 } else { 2 }
            },
        );
    };
    holds("eq.f32", &|a, b| a == b);
    holds("ne.f32", &|a, b| a < b || a > b);
    holds("neu.f32", &|a, b| a != b);
    holds("lt.f32", &|a, b| a < b);
    holds("ltu.f32", &|a, b| !(a >= b));
    holds("geu.f32", &|a, b| !(a < b));
    holds("gtu.f32", &|a, b| !(a <= b));
    holds("num.f32", &|a, b| !a.is_nan() && !b.is_nan());
    holds("nan.f32", &|a, b| a.is_nan() || b.is_nan());
    holds("lt.ftz.f32", &|a, b| flush(a) < flush(b));
    holds("lo.u32", &|a, b| a.to_bits() < b.to_bits());
    holds("le.s32", &|a, b| a.to_bits() as i32 <= b.to_bits() as i32);
    holds("hs.u32", &|a, b| a.to_bits() >= b.to_bits());
    word(
        "setp.gt.u32 %p1, %r10, 5; setp.lt.and.s32 %p2, %r11, %r12, !%p1; selp.b32 %r20, %r10, %r11, !%p2;",
        |a, b, c| {
            if (b as i32) < c as i32 && a <= 5 { b } else { a }
        },
    );
    word(
        "setp.ne.b32 %p1, %r10, %r11; not.pred %p2, %p1; xor.pred %p3, %p1, %p2; and.pred %p4, %p3, !%p1; selp.b32 %r20, 1, 0, %p4;",
        |a, b, _| u32::from(a == b),
    );
    word("mov.pred %p1, -1; mov.pred %p2, 0; or.pred %p3, %p2, !%p1; selp.b32 %r20, 1, 2, %p3;", |_, _, _| 2);
    word(
        "set.gt.u32.f32 %r20, %r10, %r11;",
        |a, b, _| if f32::from_bits(a) > f32::from_bits(b) { u32::MAX } else { 0 },
    );
    word("set.gt.u32.f16x2 %r20, %r10, %r11;", |a, b, _| {
        let greater = |a: u32, b: u32| f16::from_bits(a as u16) > f16::from_bits(b as u16);
        u32::from(greater(a, b)) * 0xffff | u32::from(greater(a >> 16, b >> 16)) * 0xffff_0000
    });
    word("setp.eq.f64 %p1, %rd10, %rd10; selp.b32 %r20, 1, 0, %p1;", |a, b, _| {
        u32::from(!f64::from_bits(u64::from(a) | u64::from(b) << 32).is_nan())
    });
}

#[test]
fn conversions_of_integers() {
    word("cvt.u16.u32 %rs1, %r10; cvt.u32.u16 %r20, %rs1;", |a, _, _| a & 0xffff);
    word("cvt.u16.u32 %rs1, %r10; cvt.s32.s16 %r20, %rs1;", |a, _, _| s16(a) as u32);
    word("cvt.s32.s16 %r20, %r10;", |a, _, _| s16(a) as u32);
    word("cvt.s32.s8 %r20, %r10;", |a, _, _| i32::from(a as i8) as u32);
    word("cvt.s8.s32 %rs1, %r10; cvt.u32.u16 %r20, %rs1;", |a, _, _| i32::from(a as i8) as u32 & 0xffff);
    word("cvt.s16.s8 %rs1, %rs10; cvt.u32.u16 %r20, %rs1;", |a, _, _| i32::from(a as i8) as u32 & 0xffff);
    word("cvt.s8.s64 %rs1, %rd10; cvt.u32.u16 %r20, %rs1;", |a, _, _| i32::from(a as i8) as u32 & 0xffff);
    word("cvt.u32.u64 %r20, %rd10;", |a, _, _| a);
    word("cvt.u16.u64 %rs1, %rd10; cvt.u32.u16 %r20, %rs1;", |a, _, _| a & 0xffff);
    word("cvt.u8.u32 %r20, %r10;", |a, _, _| a & 0xff);
    long("cvt.u64.u32 %rd20, %r10;", |x, _, _| x & 0xffff_ffff);
    long("cvt.s64.s32 %rd20, %r10;", |x, _, _| i64::from(x as i32) as u64);
    long("cvt.s64.s32 %rd20, %rd10;", |x, _, _| i64::from(x as i32) as u64);
    long("cvt.u64.u16 %rd20, %rs10;", |x, _, _| x & 0xffff);
    long("cvt.s64.s16 %rd20, %rd10;", |x, _, _| i64::from(x as i16) as u64);
    long("cvt.s64.s8 %rd20, %rs10;", |x, _, _| i64::from(x as i8) as u64);
}

#[test]
fn conversions_of_numbers() {
    single("cvt.rn.f32.s32 %r20, %r10;", |a, _, _| a.to_bits() as i32 as f32);
    single("cvt.rn.f32.u32 %r20, %r10;", |a, _, _| a.to_bits() as f32);
    single("cvt.rn.f32.s16 %r20, %rs10;", |a, _, _| s16(a.to_bits()) as f32);
    single("cvt.rn.f32.u16 %r20, %rs10;", |a, _, _| (a.to_bits() & 0xffff) as f32);
    word("cvt.rn.f32.s64 %r20, %rd10;", |a, b, _| ((u64::from(a) | u64::from(b) << 32) as i64 as f32).to_bits());
    word("cvt.rn.f32.u64 %r20, %rd10;", |a, b, _| ((u64::from(a) | u64::from(b) << 32) as f32).to_bits());
    single("cvt.rni.f32.f32 %r20, %r10;", |a, _, _| a.round_ties_even());
    single("cvt.rmi.f32.f32 %r20, %r10;", |a, _, _| a.floor());
    single("cvt.rpi.f32.f32 %r20, %r10;", |a, _, _| a.ceil());
    single("cvt.rzi.f32.f32 %r20, %r10;", |a, _, _| a.trunc());
    word("cvt.rzi.s32.f32 %r20, %r10;", |a, _, _| f32::from_bits(a) as i32 as u32);
    word("cvt.rpi.u32.f32 %r20, %r10;", |a, _, _| f32::from_bits(a).ceil() as u32);
    word("cvt.rzi.s16.f32 %rs1, %r10; cvt.s32.s16 %r20, %rs1;", |a, _, _| i32::from(f32::from_bits(a) as i16) as u32);
    long("cvt.rzi.s64.f32 %rd20, %r10;", |x, _, _| {
        let value = f32::from_bits(x as u32);
        if value.is_nan() { 1 << 63 } else { value as i64 as u64 }
    });
    long("cvt.rzi.u64.f64 %rd20, %rd10;", |x, _, _| {
        let value = f64::from_bits(x);
        if value.is_nan() { 1 << 63 } else { value as u64 }
    });
    word("cvt.rn.f32.f64 %r20, %rd10;", |a, b, _| {
        let value = f64::from_bits(u64::from(a) | u64::from(b) << 32) as f32;
        if value.is_nan() { 0x7fff_ffff } else { value.to_bits() }
    });
}

#[test]
fn conversions_of_halves() {
    let of_f16 = |value: f16| if value.is_nan() { 0x7fff } else { u32::from(value.to_bits()) };
    let of_bf16 = |value: bf16| if value.is_nan() { 0x7fff } else { u32::from(value.to_bits()) };
    single("cvt.f32.f16 %r20, %rs10;", |a, _, _| f16::from_bits(a.to_bits() as u16).to_f32());
    single("cvt.f32.bf16 %r20, %rs10;", |a, _, _| bf16::from_bits(a.to_bits() as u16).to_f32());
    word("cvt.rn.f16.f32 %rs1, %r10; cvt.u32.u16 %r20, %rs1;", |a, _, _| of_f16(f16::from_f32(f32::from_bits(a))));
    word("cvt.rn.bf16.f32 %rs1, %r10; cvt.u32.u16 %r20, %rs1;", |a, _, _| of_bf16(bf16::from_f32(f32::from_bits(a))));
    word("cvt.rn.f16x2.f32 %r20, %r10, %r11;", |a, b, _| {
        of_f16(f16::from_f32(f32::from_bits(a))) << 16 | of_f16(f16::from_f32(f32::from_bits(b)))
    });
    word("cvt.rn.bf16x2.f32 %r20, %r10, %r11;", |a, b, _| {
        of_bf16(bf16::from_f32(f32::from_bits(a))) << 16 | of_bf16(bf16::from_f32(f32::from_bits(b)))
    });
    // Bytes, there and back again: every byte but the NaNs is itself.
    for (name, infinities) in [("e4m3x2", 0), ("e5m2x2", 1)] {
        let body = format!(
            "cvt.rn.f16x2.{name} %r21, %rs10; cvt.rn.satfinite.{name}.f16x2 %rs1, %r21; cvt.u32.u16 %r20, %rs1;"
        );
        word(&body, |a, _, _| {
            let byte = |byte: u32| match byte & 0x7f {
                0x7c if infinities == 1 => byte - 1,
                0x7d..=0x7f if infinities == 1 => 0x7f,
                0x7f => 0x7f,
                _ => byte,
            };
            byte(a & 0xff) | byte(a >> 8 & 0xff) << 8
        });
        let body = format!(
            "cvt.rn.satfinite.{name}.f32 %rs1, %r10, 0f3F800000; cvt.rn.f16x2.{name} %r21, %rs1; and.b32 %r20, %r21, 0xffff;"
        );
        word(&body, |_, _, _| 0x3c00);
    }
}

#[test]
fn pairs() {
    let pair = |body: &str, reference: &dyn Fn(f16, f16) -> f32| {
        word(body, |a, b, _| {
            let one = |a: u32, b: u32| {
                let result = f16::from_f32(reference(f16::from_bits(a as u16), f16::from_bits(b as u16)));
                if result.is_nan() { 0x7fff } else { u32::from(result.to_bits()) }
            };
            one(a, b) | one(a >> 16, b >> 16) << 16
        });
    };
    pair("add.rn.f16x2 %r20, %r10, %r11;", &|a, b| a.to_f32() + b.to_f32());
    pair("sub.rn.f16x2 %r20, %r10, %r11;", &|a, b| a.to_f32() - b.to_f32());
    pair("mul.rn.f16x2 %r20, %r10, %r11;", &|a, b| a.to_f32() * b.to_f32());
    word("abs.f16x2 %r20, %r10;", |a, _, _| a & 0x7fff_7fff);
    word("neg.bf16x2 %r20, %r10;", |a, _, _| a ^ 0x8000_8000);
    word("add.rn.f16 %rs1, %rs10, %rs11; cvt.u32.u16 %r20, %rs1;", |a, b, _| {
        let sum = f16::from_f32(f16::from_bits(a as u16).to_f32() + f16::from_bits(b as u16).to_f32());
        if sum.is_nan() { 0x7fff } else { u32::from(sum.to_bits()) }
    });
}
