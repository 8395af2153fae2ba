//! The template with threads that find their own cosines and sines.

use core::marker::PhantomData;

use pointwise_core::rope::{NEIGHBOURS, PerThread, PerThreadPlace, RopeElement};

use super::heads::{Words, rotated, scaled};
use super::source::Source;
use super::{angles, position};
use crate::packed::Packed;
use crate::{memory, thread};

/// Rotates the tokens and heads of this block, by two vectors of `V` elements for each thread and head. Two heads are
/// loaded ahead: the next but one while the last is rotated.
///
/// # Safety
/// The tensors have the elements that `walk` reaches, aligned for vectors of `V`; outputs are disjoint from inputs, or
/// the very same; positions and tables are as `walk` describes them, and aligned for loads of `V / 2` entries, or of
/// `V` unless pairs are neighbours; pairs are halves, or neighbours before and after.
#[inline(always)]
#[allow(clippy::too_many_arguments)]
pub unsafe fn per_thread<E: Packed + RopeElement, S: Source, const V: usize>(
    qx: *const E,
    qy: *mut E,
    kx: *const E,
    ky: *mut E,
    ids: *const u8,
    first: *const u8,
    second: *const u8,
    walk: &PerThread,
) {
    let PerThreadPlace { works, rotates, is_k, token, group, lane, apart } =
        walk.place([thread::block_idx_x(), thread::block_idx_y()], thread::thread_idx_x());
    if !works {
        return;
    }
    let place = walk.seq.divide(token);
    // This load comes first, as others wait for it.
    // SAFETY: the caller's contract.
    let given = unsafe { position::own_given(ids, walk.flags, &walk.angles, place) };
    let (x, y) = if is_k { (kx, ky) } else { (qx, qy) };
    let side = if is_k { &walk.k } else { &walk.q };
    let (start, both) = if rotates { (walk.rotated_at, true) } else { (walk.rest_at, lane + apart < walk.rest) };
    let (batch, row) = place;
    let at = |[batch_stride, row_stride, head]: [u32; 3]| {
        bytes::<E, V>(batch * batch_stride + row * row_stride + group * head + start + lane)
    };
    let mut heads = Heads::<E, V> {
        x: x.cast::<u8>().wrapping_add(at(side.input)),
        y: y.cast::<u8>().wrapping_add(at(side.output)),
        // Number by number, or the strides go through memory.
        step: [side.step[0], side.step[1]],
        apart,
        both,
        left: side.heads - group,
        groups: side.groups,
        of: PhantomData,
    };
    // SAFETY: the lanes are inside the head; the caller's contract.
    unsafe {
        let mut near = heads.load(0);
        let mut far = if heads.has(1) { heads.load(1) } else { Default::default() };
        // One flow for both kinds of threads: after a branch no instruction can be one for the whole warp.
        let (mut cos, mut sin) = ([thread::anything(); V], [thread::anything(); V]);
        if rotates {
            let position = position::own_position(given, walk.flags, &walk.angles, row);
            (cos, sin) =
                angles::own::<S, V>([first, second], walk.flags, &walk.angles, side.scale, (batch, position), lane);
        }
        let turn = |heads: &Heads<E, V>, n: u32, (near, far): (Words, Words)| {
            let (a, b) = if !rotates {
                (scaled::<E, V>(near, side.scale), scaled::<E, V>(far, side.scale))
            } else if walk.flags & NEIGHBOURS == 0 {
                rotated::<E, V>((near, far), &cos, &sin, 0)
            } else {
                rotated::<E, V>((near, far), &cos, &sin, NEIGHBOURS)
            };
            heads.store(n, a, b);
        };
        loop {
            turn(&heads, 0, near);
            if !heads.has(1) {
                return;
            }
            let more = heads.has(2);
            if more {
                near = heads.load(2);
            }
            turn(&heads, 1, far);
            if !more {
                return;
            }
            if heads.has(3) {
                far = heads.load(3);
            }
            heads.advance();
        }
    }
}

/// Returns the bytes of so many vectors.
#[inline(always)]
fn bytes<E, const V: usize>(vectors: u32) -> usize {
    vectors as usize * (V * size_of::<E>())
}

/// The heads that are left to a thread, and the addresses of its vectors in the first one.
struct Heads<E, const V: usize> {
    x: *const u8,
    y: *mut u8,
    /// The distance from one head to the next, in vectors of input and output.
    step: [u32; 2],
    /// The distance from a head's first vector to its second, in vectors, if it has `both`.
    apart: u32,
    both: bool,
    /// The heads of the tensor from the first one on. Each `groups`th of them is the thread's.
    left: u32,
    groups: u32,
    of: PhantomData<E>,
}

impl<E: Packed, const V: usize> Heads<E, V> {
    /// True if the thread has a head `n` places on.
    #[inline(always)]
    fn has(&self, n: u32) -> bool {
        n * self.groups < self.left
    }

    /// Loads the vectors of the head `n` places on.
    ///
    /// # Safety
    /// The kernel's, and the thread has that head.
    #[inline(always)]
    unsafe fn load(&self, n: u32) -> (Words, Words) {
        let x = self.x.wrapping_add(n as usize * bytes::<E, V>(self.step[0]));
        let one = bytes::<E, V>(1);
        // SAFETY: the caller's contract.
        unsafe {
            let near = memory::load(x, one);
            let far = if self.both { memory::load(x.wrapping_add(bytes::<E, V>(self.apart)), one) } else { [0; 2] };
            (near, far)
        }
    }

    /// Stores the vectors of the head `n` places on.
    ///
    /// # Safety
    /// The kernel's, and the thread has that head.
    #[inline(always)]
    unsafe fn store(&self, n: u32, near: Words, far: Words) {
        let y = self.y.wrapping_add(n as usize * bytes::<E, V>(self.step[1]));
        let one = bytes::<E, V>(1);
        // SAFETY: the caller's contract.
        unsafe {
            memory::store(y, near, one);
            if self.both {
                memory::store(y.wrapping_add(bytes::<E, V>(self.apart)), far, one);
            }
        }
    }

    /// Moves on by two heads.
    #[inline(always)]
    fn advance(&mut self) {
        self.x = self.x.wrapping_add(2 * bytes::<E, V>(self.step[0]));
        self.y = self.y.wrapping_add(2 * bytes::<E, V>(self.step[1]));
        self.left -= 2 * self.groups;
    }
}
