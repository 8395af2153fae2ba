//! Loops over the lanes of a warp, written so that they become vector code.

use super::{ALL, LANES};

/// The values of one register.
pub(super) type Words = [u32; LANES];
pub(super) type Longs = [u64; LANES];

#[inline(always)]
pub(super) fn map1<A: Copy, R: Copy + Default>(a: &[A; LANES], op: impl Fn(A) -> R) -> [R; LANES] {
    let mut out = [R::default(); LANES];
    for lane in 0..LANES {
        out[lane] = op(a[lane]);
    }
    out
}

#[inline(always)]
pub(super) fn map2<A: Copy, B: Copy, R: Copy + Default>(
    a: &[A; LANES],
    b: &[B; LANES],
    op: impl Fn(A, B) -> R,
) -> [R; LANES] {
    let mut out = [R::default(); LANES];
    for lane in 0..LANES {
        out[lane] = op(a[lane], b[lane]);
    }
    out
}

#[inline(always)]
pub(super) fn map3<A: Copy, B: Copy, C: Copy, R: Copy + Default>(
    a: &[A; LANES],
    b: &[B; LANES],
    c: &[C; LANES],
    op: impl Fn(A, B, C) -> R,
) -> [R; LANES] {
    let mut out = [R::default(); LANES];
    for lane in 0..LANES {
        out[lane] = op(a[lane], b[lane], c[lane]);
    }
    out
}

/// Returns the lanes whose values meet a condition.
#[inline(always)]
pub(super) fn mask2<A: Copy>(a: &[A; LANES], b: &[A; LANES], holds: impl Fn(A, A) -> bool) -> u32 {
    let mut mask = 0;
    for lane in 0..LANES {
        mask |= u32::from(holds(a[lane], b[lane])) << lane;
    }
    mask
}

/// Puts the lanes of `mask` into a register.
#[inline(always)]
pub(super) fn put<T: Copy>(to: &mut [T; LANES], from: &[T; LANES], mask: u32) {
    if mask == ALL {
        *to = *from;
    } else {
        for lane in 0..LANES {
            if mask >> lane & 1 == 1 {
                to[lane] = from[lane];
            }
        }
    }
}

/// Returns the lanes of a mask, the lowest first.
#[inline(always)]
pub(super) fn lanes(mask: u32) -> impl Iterator<Item = usize> {
    let mut rest = mask;
    std::iter::from_fn(move || {
        let lane = (rest != 0).then(|| rest.trailing_zeros() as usize);
        rest &= rest.wrapping_sub(1);
        lane
    })
}
