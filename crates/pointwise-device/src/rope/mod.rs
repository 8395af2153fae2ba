//! Kernels of the rotary embedding of q and k, in one launch: three templates.
//!
//! Of [`rope`] a block computes the cosines and sines of its tokens once, in shared memory,
//! for all of its heads. A thread owns both halves of its pairs, so that in place works without a race. All loads of a
//! chunk of heads are in flight before the first store, those of the first chunk before the cosines; none takes the
//! read-only path. The lanes that do not rotate are copied, times the scale, by threads of their own.
//!
//! Of [`solo()`] each thread has its own cosines and sines, in registers: nothing waits for a barrier. Its parameters
//! are few and its offsets have 32 bits, as most of a short call is the way to its first load.
//!
//! Of [`whole()`] likewise, by tables of the tensors' type, for heads all of whose lanes rotate. It has an entry for
//! each kind of pairs and positions, and the host works out what it can: no call has less to do before its first load.

mod angles;
mod heads;
mod position;
mod shared;
mod solo;
mod source;
mod whole;

use pointwise_core::rope::{CHUNK, INTERLEAVED_IN, INTERLEAVED_OUT, NEIGHBOURS, Place, RopeElement, TABLE};
pub use pointwise_core::rope::{RopeWalk, Solo, Whole};
pub use solo::solo;
pub use source::{Angles, Exact, Hf, Source, Strides, Tables};
pub use whole::whole;

use crate::packed::{Packed, unroll};
use crate::thread;
use heads::Heads;

/// Rotates the tokens and heads that fall to this block, by vectors of `V` elements.
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
    // The compiler must not see what it knows already: it would write all of the above once for each kind of thread.
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

/// Where the two vectors of a thread's pairs are in a head, by the flag that says how they pair.
#[inline(always)]
fn runs<const V: usize>(walk: &RopeWalk, lane: u32, interleaved: u32) -> (usize, usize) {
    let (pair, interleaved) = (lane * V as u32, walk.flags & interleaved != 0);
    // See `pair_of`.
    let follow = interleaved && (V == 1 || walk.flags & NEIGHBOURS != NEIGHBOURS);
    let near = walk.rotated_at + if follow { 2 * pair } else { pair };
    (near as usize, (near + if follow { V as u32 } else { walk.half }) as usize)
}

/// Exports the entries: every template, source, element type and strategy of `rope_entries!`.
#[macro_export]
#[cfg_attr(target_arch = "nvptx64", allow_internal_unstable(asm_experimental_arch))]
macro_rules! export_rope {
    () => {
        // Cosines, then sines: `TABLE` f32 each.
        #[cfg(not(pointwise_inherits = "plain"))]
        core::arch::global_asm!(".shared .align 16 .b8 pointwise_rope[8192];");
        #[cfg(not(pointwise_inherits = "plain"))]
        const _: () = {
            $crate::rope_entries! { ($crate::__rope_entry) () }
        };
    };
}

#[doc(hidden)]
#[macro_export]
#[allow_internal_unstable(abi_gpu_kernel)]
macro_rules! __rope_entry {
    (rope $source:ident $type:ident $strategy:ident, ()) => {
        $crate::__rope_entry! { @entry rope $source $type $strategy, rope [$crate::__rope_source!($source)] [],
            [qx: *const E, qy: *mut E, kx: *const E, ky: *mut E, ids: *const u8, starts: *const u8, first: *const u8,
                second: *const u8, walk: $crate::rope::RopeWalk],
            [qx, qy, kx, ky, ids, starts, first, second, &walk] }
    };
    (rope_solo $source:ident $type:ident $strategy:ident, ()) => {
        $crate::__rope_entry! { @entry rope_solo $source $type $strategy, solo [$crate::__rope_source!($source)] [],
            [qx: *const E, qy: *mut E, kx: *const E, ky: *mut E, ids: *const u8, first: *const u8, second: *const u8,
                walk: $crate::rope::Solo],
            [qx, qy, kx, ky, ids, first, second, &walk] }
    };
    (rope_whole $source:ident $type:ident $strategy:ident, ()) => {
        $crate::__rope_entry! { @whole rope_whole $source $type $strategy, [false, false] }
    };
    (rope_whole_ids $source:ident $type:ident $strategy:ident, ()) => {
        $crate::__rope_entry! { @whole rope_whole_ids $source $type $strategy, [false, true] }
    };
    (rope_whole_pairs $source:ident $type:ident $strategy:ident, ()) => {
        $crate::__rope_entry! { @whole rope_whole_pairs $source $type $strategy, [true, false] }
    };
    (@whole $template:ident $source:ident $type:ident $strategy:ident, $flags:tt) => {
        $crate::__rope_entry! { @entry $template $source $type $strategy, whole [] $flags,
            [qx: *const E, qy: *mut E, first: *const u8, second: *const u8, walk: $crate::rope::Whole, ids: *const u8,
                kx: *const E, ky: *mut E],
            [qx, qy, first, second, &walk, ids, kx, ky] }
    };
    (@entry $template:ident $source:ident $type:ident $strategy:ident, $function:ident [$($of:ty)?]
        [$($flag:literal),*], [$($param:ident: $of_param:ty),*], [$($argument:expr),*]) => {
        const _: () = {
            type E = $crate::element::ty::$type;
            $crate::__bind! { $template $source $type $strategy {
                $crate::row::of_symbol($crate::symbol!($template, $source, $type, $strategy))
            } }

            /// # Safety
            /// That of the template in `pointwise_device::rope`; the host checks it before the launch.
            #[unsafe(export_name = $crate::symbol!($template, $source, $type, $strategy))]
            unsafe extern "gpu-kernel" fn entry($($param: $of_param),*) {
                // SAFETY: this entry's own contract.
                unsafe {
                    $crate::rope::$function::<E, $($of,)? { $crate::__rope_vector!($strategy) } $(, $flag)*>(
                        $($argument),*
                    )
                }
            }
        };
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __rope_source {
    (hf) => { $crate::rope::Hf };
    (exact) => { $crate::rope::Exact };
    (angles) => { $crate::rope::Angles };
    (tables) => { $crate::rope::Tables<f32> };
    (own_tables) => { $crate::rope::Tables<E> };
}

/// Elements of a vector of type `E`: 16 bytes, 8 bytes, or one.
#[doc(hidden)]
#[macro_export]
macro_rules! __rope_vector {
    (register_copy) => {
        16 / size_of::<E>()
    };
    (explicit_parallel) => {
        8 / size_of::<E>()
    };
    (direct) => {
        1
    };
}
