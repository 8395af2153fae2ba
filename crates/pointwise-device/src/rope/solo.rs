//! The template whose threads find their own cosines and sines.

use pointwise_core::rope::{NEIGHBOURS, RopeElement, Solo, SoloPlace, pair_of};

use super::angles::{self, Source};
use super::heads::{Heads, rotated, scaled};
use crate::packed::{Packed, unroll};
use crate::thread;

/// Heads that are loaded at once, while those before them are rotated and stored.
const AHEAD: usize = 2;

/// Rotates the tokens and heads that fall to this block, by two vectors of `V` elements a thread and head.
///
/// # Safety
/// The tensors have the elements that `walk` reaches, aligned for vectors of `V`; outputs are disjoint from inputs, or
/// the very same; positions and tables are as `walk` describes them, and aligned for loads of `V / 2` entries; pairs are
/// halves, or neighbours before and after.
#[inline(always)]
#[allow(clippy::too_many_arguments)]
pub unsafe fn solo<E: Packed + RopeElement, S: Source, const V: usize>(
    qx: *const E,
    qy: *mut E,
    kx: *const E,
    ky: *mut E,
    ids: *const u8,
    first: *const u8,
    second: *const u8,
    walk: &Solo,
) {
    let SoloPlace { works, rotates, is_k, token, group, lane } =
        walk.place(thread::block_idx_x(), thread::thread_idx_x());
    if !works {
        return;
    }
    let (batch, row) = walk.seq.divide(token);
    let (x, y) = if is_k { (kx, ky) } else { (qx, qy) };
    let side = if is_k { walk.k } else { walk.q };
    let mut heads = Heads::<E, V>::new(x, y, side, [batch, row, group]);

    let slot = lane * V as u32;
    let [half, rest_apart] = walk.apart;
    let (start, apart) = if rotates { (walk.start[0], half) } else { (walk.start[1], rest_apart) };
    // The vectors that pass through may be odd in number.
    let both = rotates || slot + apart < walk.rest;
    let at = ((start + slot) as usize, (start + slot + apart) as usize);
    // SAFETY: the lanes are inside the head; the caller's contract.
    let mut chunk = unsafe { heads.load::<AHEAD>(0, at, both) };
    let (mut cos, mut sin) = ([1.0; V], [0.0; V]);
    if rotates {
        let pairs = [0, V as u32 / 2].map(|i| pair_of(slot + i, V as u32, half, walk.flags));
        // SAFETY: the pairs are the head's; the caller's contract.
        (cos, sin) = unsafe { angles::solo::<S, V>(ids, [first, second], walk, [batch, row], pairs) };
        unroll!(i < V => {
            cos[i] *= heads.scale;
            sin[i] *= heads.scale;
        });
    }
    loop {
        let more = heads.has(AHEAD);
        let mut next = [([0; 2], [0; 2]); AHEAD];
        if more {
            // SAFETY: as above.
            next = unsafe { heads.load::<AHEAD>(AHEAD, at, both) };
        }
        unroll!(at most 4: j < AHEAD => {
            if heads.has(j) {
                let (near, far) = if !rotates {
                    (scaled::<E, V>(chunk[j].0, heads.scale), scaled::<E, V>(chunk[j].1, heads.scale))
                } else if walk.flags & NEIGHBOURS == 0 {
                    rotated::<E, V>(chunk[j], &cos, &sin, 0)
                } else {
                    rotated::<E, V>(chunk[j], &cos, &sin, NEIGHBOURS)
                };
                // SAFETY: as above.
                unsafe { heads.store(j, at, near, far, both) };
            }
        });
        if !more {
            return;
        }
        heads.advance(AHEAD);
        chunk = next;
    }
}
