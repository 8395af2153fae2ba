//! Kernels of ops of one operand that lies like the result, `y[i] = op(x[i])`: by vectors, and by a table. Single elements
//! are those of [`crate::formula`].
//!
//! `x` and `y` may be the same address: a thread loads all its inputs before its first store, and no load takes the
//! read-only path. The host guarantees that they are otherwise disjoint.

use pointwise_core::maths::{SMALL_ANGLE, assume_small_angle};
use pointwise_core::{Element, Store, TableOp, UnaryOp, Value};

use crate::memory;
use crate::packed::{self, Packed, unroll};
use crate::thread;
use pointwise_core::launch::{PASSING, STREAM_UNARY, TABLE_LEN, TABLE_THREADS, TABLE_VECTORS};

/// The storage type of what `O` makes of an `E`.
type Out<O, E> = <<O as UnaryOp<<E as Element>::Compute>>::Output as Store<E>>::Storage;

/// A thread has `per_thread` vectors of `V` elements by 16-byte accesses, a block's width apart, by twos that are
/// loaded together where results are narrow, else the next one on its way while the last is worked on; the `head` elements before
/// the first aligned one and those after the last whole vector are done one by one by the first threads of the grid.
/// Where results are narrower than operands, [`STREAM_UNARY`] in `per_thread` has the operands pass through the level-2
/// cache.
///
/// # Safety
/// `x` and `y` are aligned to their elements and valid for `n` of them, and equal or disjoint; `head <= n`, and `x + head` and `y + head` are aligned to their vectors; `per_thread` is not 0 apart
/// from that bit; a block has `2 V` threads and more.
#[inline(always)]
pub unsafe fn register_copy<E, O, const V: usize>(
    x: *const E,
    y: *mut Out<O, E>,
    n: u64,
    head: u32,
    per_thread: u32,
    op: O,
) where
    E: Packed,
    O: TableOp + UnaryOp<E::Compute, Output: Store<E, Storage: Packed>>,
{
    // Fits: for 2^32 vectors, which are 64 GiB, and more the host takes another strategy.
    let vectors = ((n - head as u64) / V as u64) as u32;
    // Asked here, so that the first block, too, ends where others do if there are none: what follows there is code that
    // would have to be fetched for it.
    let singles = thread::asked_here(thread::block_idx_x() == 0 && vectors as u64 * V as u64 != n);
    let narrows = const { size_of::<Out<O, E>>() < size_of::<E>() };
    let how = if narrows && per_thread & STREAM_UNARY != 0 { PASSING } else { 0 };
    let per_thread = if narrows { per_thread & !STREAM_UNARY } else { per_thread };
    let width = thread::block_dim_x();
    let first = thread::block_idx_x() * (width * per_thread) + thread::thread_idx_x();
    // SAFETY: each vector lies inside the body, each single element outside of it; the caller's contract.
    unsafe {
        let source = x.add(head as usize).cast::<[E; V]>();
        let target = y.add(head as usize).cast::<[Out<O, E>; V]>();
        let load = |i: u32| {
            let vector = source.add(i as usize).cast();
            if narrows {
                memory::load_as(vector, V * size_of::<E>(), size_of::<E>(), how).vector
            } else {
                memory::load(vector, V * size_of::<E>())
            }
        };
        let finish = |i: u32, bits: [u64; 2]| {
            let inputs = packed::unpack::<E, V>(bits);
            if const { is_of_an_angle::<E, O>() } {
                let mut small = true;
                unroll!(k < V => { small &= angle(inputs[k]).abs() <= SMALL_ANGLE; });
                if !small {
                    // One by one, which is one copy of the long path, not one for each lane: each would cost the driver
                    // milliseconds to compile. Nothing of the vector is stored yet, also if y is x.
                    let (source, target) = (source.add(i as usize).cast::<E>(), target.add(i as usize).cast());
                    let mut one = 0;
                    while one < V as u64 {
                        thread::no_unrolling();
                        element(source, target, one, op);
                        one += 1;
                    }
                    return;
                }
                unroll!(k < V => { assume_small_angle(angle(inputs[k])); });
            }
            let mut results = [<Out<O, E> as Element>::Compute::ZERO; V];
            unroll!(k < V => { results[k] = op.apply(inputs[k]).lane(); });
            packed::store::<Out<O, E>, V>(target.add(i as usize).cast(), results);
        };
        let (mut at, mut left) = (first, per_thread);
        // Threads of narrow results often have two.
        if const { V <= 4 && size_of::<Out<O, E>>() < size_of::<E>() } {
            while left > 1 && at + width < vectors {
                thread::no_unrolling();
                let (near, far) = (load(at), load(at + width));
                finish(at, near);
                finish(at + width, far);
                at += 2 * width;
                left -= 2;
            }
            while left > 0 && at < vectors {
                thread::no_unrolling();
                finish(at, load(at));
                at += width;
                left -= 1;
            }
        } else if at < vectors {
            let mut bits = load(at);
            loop {
                left -= 1;
                let next = at + width;
                let more = left > 0 && next < vectors;
                let coming = if more { load(next) } else { bits };
                finish(at, bits);
                if !more {
                    break;
                }
                (at, bits) = (next, coming);
            }
        }
        if singles {
            let t = thread::thread_idx_x() as u64;
            let single = if t < head as u64 { t } else { t + vectors as u64 * V as u64 };
            if single < n {
                element(x, y, single, op);
            }
        }
    }
}

/// Whether the formula is of a float's sine or cosine.
const fn is_of_an_angle<E, O>() -> bool
where
    E: Element,
    O: TableOp,
{
    E::DTYPE.is_float() && O::INFO.properties.angle
}

/// The number in a float's compute type.
#[inline(always)]
fn angle<T: Value>(x: T) -> f32 {
    f32::from_bits(x.to_word() as u32)
}

/// 8-bit to 8-bit by a table of all 256 results in shared memory, filled by each block; a thread [`TABLE_VECTORS`]
/// vectors of 16 bytes.
///
/// # Safety
/// As [`register_copy`]. The launch has [`TABLE_THREADS`] threads a block, and the module declares `pointwise_table`.
#[inline(always)]
pub unsafe fn table<E, O>(x: *const E, y: *mut Out<O, E>, n: u64, head: u32, _per_thread: u32, op: O)
where
    E: Packed,
    O: UnaryOp<E::Compute, Output: Store<E, Storage: Packed>>,
{
    // The fill and the barrier come first, reached by every thread.
    let mut code = thread::thread_idx_x() * (TABLE_LEN as u32 / TABLE_THREADS);
    for _ in 0..TABLE_LEN as u32 / TABLE_THREADS {
        let [input, ..] = E::unpack(code as u64);
        shared::write(code, pack_one::<Out<O, E>>(op.apply(input).lane()));
        code += 1;
    }
    thread::sync_threads();

    let body = n - head as u64;
    let vectors = body / 16;
    let first =
        thread::block_idx_x() as u64 * (TABLE_THREADS as usize * TABLE_VECTORS) as u64 + thread::thread_idx_x() as u64;
    // SAFETY: every access is inside the n elements; the caller's contract.
    unsafe {
        let (xb, yb) = (x.cast::<u8>().add(head as usize), y.cast::<u8>().add(head as usize));
        let at = |k: usize| first + (k * TABLE_THREADS as usize) as u64;
        let load = |k| memory::load(xb.add(at(k) as usize * 16), 16);
        let store = |k, words: [u64; 2]| memory::store(yb.add(at(k) as usize * 16), words.map(look_up), 16);
        if at(TABLE_VECTORS - 1) < vectors {
            // All loads are in flight before the first look-up. Named, not an array, which would go to local memory.
            let (w0, w1, w2, w3) = (load(0), load(1), load(2), load(3));
            store(0, w0);
            store(1, w1);
            store(2, w2);
            store(3, w3);
        } else {
            for k in 0..TABLE_VECTORS {
                if at(k) < vectors {
                    store(k, load(k));
                }
            }
        }

        // The block behind the last whole one also takes the head and the rest, at most 15 elements each.
        let block = thread::block_idx_x() as u64;
        if block == vectors / (TABLE_THREADS as u64 * TABLE_VECTORS as u64) {
            let t = thread::thread_idx_x() as u64;
            let byte = |i: u64| {
                let [code, _] = memory::load(x.cast::<u8>().add(i as usize), 1);
                memory::store(y.cast::<u8>().add(i as usize), [shared::read(code as u32) as u64, 0], 1);
            };
            if t < head as u64 {
                byte(t);
            }
            let last = head as u64 + vectors * 16 + t;
            if last < n {
                byte(last);
            }
        }
    }
}

/// Eight table look-ups, byte by byte.
#[inline(always)]
fn look_up(word: u64) -> u64 {
    let mut out = 0;
    unroll!(at most 8: i < 8 => { out |= (shared::read((word >> (8 * i)) as u32 & 0xFF) as u64) << (8 * i); });
    out
}

#[inline(always)]
fn pack_one<E: Packed>(value: E::Compute) -> u32 {
    let mut lanes = [E::Compute::ZERO; 8];
    lanes[0] = value;
    E::pack(lanes) as u32 & 0xFF
}

/// # Safety
/// `x` and `y` are valid at `i`.
#[inline(always)]
unsafe fn element<E, O>(x: *const E, y: *mut Out<O, E>, i: u64, op: O)
where
    E: Packed,
    O: UnaryOp<E::Compute, Output: Store<E, Storage: Packed>>,
{
    // SAFETY: the caller's contract.
    unsafe { store(y.add(i as usize), op.apply(load(x.add(i as usize))).lane()) }
}

/// # Safety
/// `p` is valid for reading.
#[inline(always)]
unsafe fn load<E: Packed>(p: *const E) -> E::Compute {
    // SAFETY: the caller's contract.
    let [lane] = unsafe { packed::load::<E, 1>(p) };
    lane
}

/// # Safety
/// `p` is valid for writing.
#[inline(always)]
unsafe fn store<E: Packed>(p: *mut E, value: E::Compute) {
    // SAFETY: the caller's contract.
    unsafe { packed::store::<E, 1>(p, [value]) }
}

/// The table in shared memory. There is one a module, declared by `kernel_crate!`.
mod shared {
    use core::arch::asm;

    #[inline(always)]
    pub(super) fn write(index: u32, byte: u32) {
        // SAFETY: the caller keeps index below the 256 bytes of the table.
        unsafe {
            asm!("{{ .reg .u32 a; mov.u32 a, pointwise_table; add.u32 a, a, {i}; st.shared.u8 [a], {v}; }}",
                i = in(reg32) index, v = in(reg32) byte, options(nostack));
        }
    }

    #[inline(always)]
    pub(super) fn read(index: u32) -> u32 {
        let v: u32;
        // SAFETY: index is a byte. Not `pure`: it must stay behind the barrier.
        unsafe {
            asm!("{{ .reg .u32 a; mov.u32 a, pointwise_table; add.u32 a, a, {i}; ld.shared.u8 {v}, [a]; }}",
                i = in(reg32) index, v = out(reg32) v, options(nostack));
        }
        v
    }
}
