//! `a > 0 ? a : a weight` of fp8, two elements at a time: the product of two numbers of 8 bits is one of f16, but for
//! those that overflow in either.

use core::arch::asm;

use pointwise_core::map::Map;
use pointwise_core::{DType, Element};

use super::operand::Loaded;
use crate::packed::{largest_e5m2, unroll, upper_bytes};

/// Whether [`leaky`] serves the op.
pub(super) const fn in_pairs<M: Map>() -> bool {
    cfg!(pointwise_fp8_cvt) && M::LEAKY && matches!(M::A::DTYPE, DType::F8E4M3 | DType::F8E5M2)
}

/// The results, unless an operand is a number, or a result of e5m2 may have to be infinite, where the conversion
/// saturates.
#[inline(always)]
pub(super) fn leaky<E: Element>(a: Loaded, weight: Loaded) -> Option<[u64; 2]> {
    if a.word || weight.word {
        return None;
    }
    let (a, weight) = (a.spread::<E>(), weight.spread::<E>());
    let is_e5m2 = matches!(E::DTYPE, DType::F8E5M2);
    let mut out = [0; 2];
    let mut largest = 0;
    unroll!(at most 4: i < 4 => {
        let word = |vector: [u64; 2]| (vector[i / 2] >> (32 * (i % 2))) as u32;
        let two = |second| narrow::<E>(lanes(wide::<E>(word(a), second), wide::<E>(word(weight), second)));
        let results = two(false) | two(true) << 16;
        largest |= largest_e5m2(results);
        out[i / 2] |= (results as u64) << (32 * (i % 2));
    });
    if is_e5m2 && largest & 0x8080_8080 != 0 { None } else { Some(out) }
}

/// Two bytes of a word, the first two or the others, as two f16.
#[inline(always)]
fn wide<E: Element>(word: u32, second: bool) -> u32 {
    if matches!(E::DTYPE, DType::F8E5M2) {
        return upper_bytes(word, second);
    }
    let out;
    // SAFETY: a conversion from a register to a register.
    unsafe {
        if second {
            asm!("{{ .reg .b16 l, h; mov.b32 {{l, h}}, {w}; cvt.rn.f16x2.e4m3x2 {o}, h; }}", o = out(reg32) out,
                w = in(reg32) word, options(pure, nomem, nostack));
        } else {
            asm!("{{ .reg .b16 l, h; mov.b32 {{l, h}}, {w}; cvt.rn.f16x2.e4m3x2 {o}, l; }}", o = out(reg32) out,
                w = in(reg32) word, options(pure, nomem, nostack));
        }
    }
    out
}

/// Two f16, rounded to bytes. Too large ones become the largest number.
#[inline(always)]
fn narrow<E: Element>(two: u32) -> u32 {
    let out: u16;
    // SAFETY: an instruction from registers to a register.
    unsafe {
        match E::DTYPE {
            DType::F8E5M2 => asm!("cvt.rn.satfinite.e5m2x2.f16x2 {o}, {t};", o = out(reg16) out, t = in(reg32) two,
                options(pure, nomem, nostack)),
            _ => asm!("cvt.rn.satfinite.e4m3x2.f16x2 {o}, {t};", o = out(reg16) out, t = in(reg32) two,
                options(pure, nomem, nostack)),
        }
    }
    out as u32
}

/// The formula of two lanes.
#[inline(always)]
fn lanes(x: u32, weight: u32) -> u32 {
    let y;
    // SAFETY: arithmetic on registers.
    unsafe {
        asm!(
            "{{ .reg .b32 product, above; mul.rn.f16x2 product, {x}, {w}; set.gt.u32.f16x2 above, {x}, {zero};",
            "lop3.b32 {y}, above, {x}, product, 0xCA; }}",
            x = in(reg32) x, w = in(reg32) weight, zero = in(reg32) 0, y = out(reg32) y, options(pure, nomem, nostack)
        );
    }
    y
}
