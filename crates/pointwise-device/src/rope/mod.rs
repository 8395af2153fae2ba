//! Kernels of the rotary embedding of q and k, in one launch: three templates.
//!
//! In [`rope`] a block computes the cosines and sines of its tokens once, in shared memory, for all of its heads. A
//! thread owns both halves of its pairs, so that in place works without a race. All loads of a chunk of heads are in
//! flight before the first store, and the loads of the first chunk before the cosines. No load takes the read-only
//! path. Threads of their own copy the lanes that do not rotate, times the scale.
//!
//! In [`per_thread()`] each thread has its own cosines and sines, in registers: nothing waits for a barrier. Its
//! parameters are few and its offsets have 32 bits, as most of a short call is the way to its first load.
//!
//! [`full_head()`] does so by tables of the tensors' type, for heads whose lanes all rotate. It has an entry for each
//! kind of pairs and positions, and the host computes as much as it can, so that a call has little to do before its
//! first load.

mod angles;
mod full_head;
mod heads;
mod per_thread;
mod position;
mod shared;
mod source;

pub use full_head::full_head;
pub use per_thread::per_thread;
use pointwise_core::rope::{CHUNK, INTERLEAVED_IN, INTERLEAVED_OUT, NEIGHBOURS, Place, RopeElement, TABLE};
pub use pointwise_core::rope::{FullHead, PerThread, RopeWalk};
pub use source::{Angles, Exact, Hf, Source, Strides, Tables};

use crate::packed::{Packed, unroll};
use crate::thread;
use heads::Heads;

/// Rotates the tokens and heads of this block, by vectors of `V` elements.
///
/// # Safety
/// The tensors have the elements that `walk` reaches, aligned for vectors of `V`; outputs are disjoint from inputs, or
/// the very same with the same pairing on both sides; positions and tables are as `walk` describes them; a block has at
/// most [`TABLE`] pairs, and the module declares `pointwise_rope`.
#[inline(always)]
#[allow(clippy::too_many_arguments)]
pub unsafe fn rope<E: Packed + RopeElement, S: Source, const V: usize>(
    qx: *const E,
    qy: *mut E,
    kx: *const E,
    ky: *mut E,
    ids: *const u8,
    starts: *const u8,
    first: *const u8,
    second: *const u8,
    walk: &RopeWalk,
) {
    let Place { works, rotates, token, group, lane, first_token, first_lane } =
        walk.place(thread::block_idx_x(), thread::thread_idx_x());
    let (batch, row) = walk.seq.divide(token);
    let is_k = group >= walk.q.groups;
    let (x, y) = if is_k { (kx, ky) } else { (qx, qy) };
    let mut side = if is_k { walk.k } else { walk.q };
    let head = if is_k { group - walk.q.groups } else { group };
    // A thread without work has no heads.
    side.heads = if works { side.heads } else { 0 };
    let mut heads = Heads::<E, V>::new(x, y, side, [batch, row, head]);

    let pass_at = (walk.rest_at + lane * V as u32) as usize;
    let from = if rotates { runs::<V>(walk, lane, INTERLEAVED_IN) } else { (pass_at, pass_at) };
    // SAFETY: the lanes are inside the head; the caller's contract.
    let chunk = unsafe { heads.load::<{ CHUNK as usize }>(0, from, rotates) };
    // SAFETY: the caller's contract.
    unsafe { angles::fill::<S, V>(ids, starts, [first, second], walk, first_token, first_lane * V as u32) };
    thread::sync_threads();
    // The value is hidden from the compiler, or it would write all of the above once for each kind of thread.
    if thread::opaque(rotates as u32) == 0 {
        // SAFETY: the lanes pass through; the caller's contract.
        return unsafe { heads.pass(chunk, pass_at) };
    }
    let at = (token - first_token) * walk.tile.pairs + (lane - first_lane) * V as u32;
    let (mut cos, mut sin) = (shared::read::<V>(at), shared::read::<V>(TABLE + at));
    unroll!(i < V => {
        cos[i] *= heads.scale;
        sin[i] *= heads.scale;
    });
    let to = runs::<V>(walk, lane, INTERLEAVED_OUT);
    // SAFETY: as above.
    unsafe {
        match walk.flags & NEIGHBOURS {
            0 => heads.turn(chunk, (from, to), &cos, &sin, 0),
            NEIGHBOURS => heads.turn(chunk, (from, to), &cos, &sin, NEIGHBOURS),
            _ => heads.turn(chunk, (from, to), &cos, &sin, walk.flags),
        }
    }
}

/// Returns the offsets in a head of the two vectors with a thread's pairs, by the flag for the kind of pairs.
#[inline(always)]
fn runs<const V: usize>(walk: &RopeWalk, lane: u32, interleaved: u32) -> (usize, usize) {
    let (pair, interleaved) = (lane * V as u32, walk.flags & interleaved != 0);
    // See `pair_of`.
    let follow = interleaved && (V == 1 || walk.flags & NEIGHBOURS != NEIGHBOURS);
    let near = walk.rotated_at + if follow { 2 * pair } else { pair };
    (near as usize, (near + if follow { V as u32 } else { walk.half }) as usize)
}
