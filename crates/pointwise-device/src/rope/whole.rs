//! The template for heads all of whose lanes rotate.

use pointwise_core::rope::{NEIGHBOURS, RopeElement, Whole, WholePlace};

use super::angles::{self, Source};
use super::heads::{Words, rotated};
use crate::packed::Packed;
use crate::{memory, thread};

/// Rotates the tokens and heads that fall to this block, by two vectors of `V` elements a thread and head. Those of both
/// heads of a thread are under way at once, and what its angles need.
///
/// # Safety
/// The tensors have the elements that `walk` reaches, aligned for vectors of `V`; outputs are disjoint from inputs, or
/// the very same; positions and tables are as `walk` describes them, and aligned for loads of `V / 2` entries, or of
/// `V` unless pairs are neighbours; pairs are halves, or neighbours before and after.
#[inline(always)]
#[allow(clippy::too_many_arguments)]
pub unsafe fn whole<E: Packed + RopeElement, S: Source, const V: usize>(
    qx: *const E,
    qy: *mut E,
    kx: *const E,
    ky: *mut E,
    ids: *const u8,
    first: *const u8,
    second: *const u8,
    walk: &Whole,
) {
    let block = [thread::block_idx_x(), thread::block_idx_y(), thread::block_idx_z()];
    let thread = [thread::thread_idx_x(), thread::thread_idx_y(), thread::thread_idx_z()];
    let WholePlace { works, is_k, token, head, lane } = walk.place(block, thread::grid_dim_y(), thread);
    if !works {
        return;
    }
    let (batch, row) = walk.seq.divide(token);
    // First of all, as others wait for it.
    // SAFETY: the caller's contract.
    let given = unsafe { angles::own_given(ids, walk.flags, &walk.angles, (batch, row)) };
    let (side, (x, y)) = if is_k { (&walk.k, (kx, ky)) } else { (&walk.q, (qx, qy)) };
    // No branch from here to the last load: the assembler would move no parameter's load across, and each is waited for.
    let at = |[tokens, heads]: [u32; 2]| (token * tokens + head * heads + walk.start + lane) as usize;
    let x = x.cast::<[E; V]>().wrapping_add(at(side.input));
    let mut y = y.cast::<[E; V]>().wrapping_add(at(side.output));
    let apart = walk.lanes as usize;
    // SAFETY: the lanes are inside the head; the caller's contract.
    unsafe {
        let load = |x: *const [E; V]| -> (Words, Words) {
            let far = x.wrapping_add(apart);
            (memory::load_here(x.cast(), V * size_of::<E>()), memory::load_here(far.cast(), V * size_of::<E>()))
        };
        let (mut vectors, mut left) = (load(x), side.share);
        let next = if left > 1 { load(x.wrapping_add(side.second[0] as usize)) } else { Default::default() };
        let position = angles::own_position(given, walk.flags, &walk.angles, row);
        let tables = [first, second];
        let (cos, sin) = angles::own::<S, V>(tables, walk.flags, &walk.angles, side.scale, (batch, position), lane);
        // One copy of the rotation.
        loop {
            thread::no_unrolling();
            let (near, far) = if walk.flags & NEIGHBOURS == 0 {
                rotated::<E, V>(vectors, &cos, &sin, 0)
            } else {
                rotated::<E, V>(vectors, &cos, &sin, NEIGHBOURS)
            };
            memory::store(y.cast(), near, V * size_of::<E>());
            memory::store(y.wrapping_add(apart).cast(), far, V * size_of::<E>());
            left -= 1;
            if left == 0 {
                return;
            }
            y = y.wrapping_add(side.second[1] as usize);
            vectors = next;
        }
    }
}
