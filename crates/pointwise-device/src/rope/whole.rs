//! The template for heads all of whose lanes rotate, by tables of the tensors' type.

use pointwise_core::rope::{NEIGHBOURS, RopeElement, Whole, WholePlace};

use super::angles::{self, Source};
use super::heads::rotated;
use crate::packed::Packed;
use crate::{memory, thread};

/// Rotates the tokens and heads that fall to this block, by two vectors of `V` elements a thread. They are under way at
/// once, with the entries of its tables. No positions are given, so that `_ids` is not read.
///
/// # Safety
/// The tensors have the elements that `walk` reaches, aligned for vectors of `V`; outputs are disjoint from inputs, or
/// the very same; tables are as `walk` describes them, and aligned for loads of `V` entries, or of `V / 2` where pairs are
/// neighbours; pairs are halves, or neighbours before and after.
#[inline(always)]
#[allow(clippy::too_many_arguments)]
pub unsafe fn whole<E: Packed + RopeElement, S: Source, const V: usize>(
    qx: *const E,
    qy: *mut E,
    kx: *const E,
    ky: *mut E,
    _ids: *const u8,
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
    let (side, (x, y)) = if is_k { (&walk.k, (kx, ky)) } else { (&walk.q, (qx, qy)) };
    // No branch from here to the last load: the assembler would move no parameter's load across, and each is waited for.
    let at = |[tokens, heads]: [u32; 2]| (token * tokens + head * heads + walk.start + lane) as usize;
    let x = x.cast::<[E; V]>().wrapping_add(at(side.input));
    let y = y.cast::<[E; V]>().wrapping_add(at(side.output));
    let (apart, bytes) = (walk.lanes as usize, V * size_of::<E>());
    // SAFETY: the lanes are inside the head; the caller's contract.
    unsafe {
        let vectors = (memory::load_here(x.cast(), bytes), memory::load_here(x.wrapping_add(apart).cast(), bytes));
        let place = (batch, walk.angles.offset + i64::from(row));
        let (cos, sin) = angles::own_read::<S, V>([first, second], walk.flags, &walk.angles, side.scale, place, lane);
        let (near, far) = if walk.flags & NEIGHBOURS == 0 {
            rotated::<E, V>(vectors, &cos, &sin, 0)
        } else {
            rotated::<E, V>(vectors, &cos, &sin, NEIGHBOURS)
        };
        memory::store(y.cast(), near, bytes);
        memory::store(y.wrapping_add(apart).cast(), far, bytes);
    }
}
