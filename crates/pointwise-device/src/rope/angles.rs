//! The cosines and sines of a block's tokens: from positions to shared memory.

use pointwise_core::maths;
use pointwise_core::rope::{
    AXES, AXES_IN_TURN, BATCH_OFFSETS, IDS, RopeElement, SEQUENCES, TABLE, WIDE_IDS, Walk, axis, sincos_exact,
    sincos_hf,
};

use crate::packed::{self, Packed};
use crate::{memory, thread};

/// Where cosines and sines come from.
pub trait Source {
    /// Cosine and sine of a pair at a position or row.
    ///
    /// # Safety
    /// The tables have the row, with more than `pair` entries.
    unsafe fn cos_sin(
        first: *const u8,
        second: *const u8,
        walk: &Walk,
        batch: i64,
        position: i64,
        pair: u32,
    ) -> (f32, f32);
}

/// The f32 product of position and `inv_freq`.
pub struct Hf;
/// 64-bit turns.
pub struct Exact;
/// A table of angles.
pub struct Angles;
/// Tables of cosines and sines with elements of type `T`.
pub struct Tables<T>(core::marker::PhantomData<T>);

impl Source for Hf {
    #[inline(always)]
    unsafe fn cos_sin(first: *const u8, _: *const u8, _: &Walk, _: i64, position: i64, pair: u32) -> (f32, f32) {
        // SAFETY: the caller's contract.
        let inv_freq = unsafe { entry::<f32>(first, i64::from(pair)) };
        let (sin, cos) = sincos_hf(position, inv_freq);
        (cos, sin)
    }
}

impl Source for Exact {
    #[inline(always)]
    unsafe fn cos_sin(first: *const u8, _: *const u8, _: &Walk, _: i64, position: i64, pair: u32) -> (f32, f32) {
        // SAFETY: the caller's contract.
        let [turns, _] = unsafe { memory::load(first.cast::<u64>().add(pair as usize).cast(), 8) };
        let (sin, cos) = sincos_exact(position, turns);
        (cos, sin)
    }
}

impl Source for Angles {
    #[inline(always)]
    unsafe fn cos_sin(first: *const u8, _: *const u8, walk: &Walk, batch: i64, row: i64, pair: u32) -> (f32, f32) {
        // SAFETY: the caller's contract.
        let angle = unsafe { entry::<f32>(first, at(walk.first, batch, row, pair)) };
        let (sin, cos) = maths::sincos_tight(angle);
        (cos, sin)
    }
}

impl<T: Packed + RopeElement> Source for Tables<T> {
    #[inline(always)]
    unsafe fn cos_sin(first: *const u8, second: *const u8, walk: &Walk, batch: i64, row: i64, pair: u32) -> (f32, f32) {
        // SAFETY: the caller's contract.
        unsafe {
            let cos = entry::<T>(first, at(walk.first, batch, row, pair));
            (cos, entry::<T>(second, at(walk.second, batch, row, pair)))
        }
    }
}

/// Where an entry of a table is.
#[inline(always)]
fn at([batch_stride, row_stride]: [i64; 2], batch: i64, row: i64, pair: u32) -> i64 {
    batch * batch_stride + row * row_stride + i64::from(pair)
}

/// An entry of a table.
///
/// # Safety
/// The table has it.
#[inline(always)]
unsafe fn entry<T: Packed + RopeElement>(table: *const u8, at: i64) -> f32 {
    // SAFETY: the caller's contract.
    let [entry] = unsafe { packed::load::<T, 1>(table.cast::<T>().offset(at as isize)) };
    T::to_f32(entry)
}

/// Fills shared memory with the cosines and sines of the block's tokens from `first_token` on, and pairs from
/// `first_pair` on: the block's threads share the work.
///
/// # Safety
/// Positions and tables are as `walk` describes them, and a block has at most [`TABLE`] pairs.
#[inline(always)]
pub(super) unsafe fn fill<S: Source>(
    ids: *const u8,
    starts: *const u8,
    first: *const u8,
    second: *const u8,
    walk: &Walk,
    first_token: u32,
    first_pair: u32,
) {
    let tile = &walk.tile;
    let threads = tile.tokens * tile.sharers.size;
    let mut n = thread::thread_idx_x();
    while n < threads {
        let (at, sharer) = tile.sharers.divide(n);
        let token = first_token + at;
        if token < walk.tokens {
            let (batch, row) = walk.seq.divide(token);
            let (batch, row) = (i64::from(batch), i64::from(row));
            // SAFETY: the caller's contract.
            let (position, known) = unsafe { position(ids, starts, walk, [batch, row], token, first_pair + sharer) };
            let mut pair = sharer;
            while pair < tile.pairs && first_pair + pair < walk.half {
                // Where no table has the position, the token is not rotated.
                let (mut cos, mut sin) = (1.0, 0.0);
                if known {
                    // SAFETY: as above.
                    (cos, sin) = unsafe { S::cos_sin(first, second, walk, batch, position, first_pair + pair) };
                    (cos, sin) = (cos * walk.factor, sin * walk.factor * walk.sin_sign);
                }
                let entry = at * tile.pairs + pair;
                shared::write(entry, cos);
                shared::write(TABLE + entry, sin);
                pair += tile.sharers.size;
            }
        }
        n += thread::block_dim_x();
    }
}

/// The position of a pair of a token, and whether it has one that the tables know.
///
/// # Safety
/// The positions are as `walk` describes them.
#[inline(always)]
unsafe fn position(
    ids: *const u8,
    starts: *const u8,
    walk: &Walk,
    [batch, row]: [i64; 2],
    token: u32,
    pair: u32,
) -> (i64, bool) {
    let wide = walk.flags & WIDE_IDS != 0;
    let read = |list: *const u8, i: i64| {
        // SAFETY: the caller's contract.
        unsafe {
            if wide {
                memory::load(list.cast::<i64>().offset(i as isize).cast(), 8)[0] as i64
            } else {
                i64::from(memory::load(list.cast::<i32>().offset(i as isize).cast(), 4)[0] as i32)
            }
        }
    };
    let (mut position, mut known) = (walk.offset + row, true);
    if walk.flags & SEQUENCES != 0 {
        // The last sequence that begins at or before the token.
        let (mut low, mut high) = (0, i64::from(walk.sequences));
        while low + 1 < high {
            let middle = (low + high) / 2;
            if read(starts, middle) <= i64::from(token) { low = middle } else { high = middle }
        }
        let start = read(starts, low);
        // A token before the first or after the last is padding.
        known = start <= i64::from(token) && i64::from(token) < read(starts, i64::from(walk.sequences));
        let offset = if walk.flags & BATCH_OFFSETS != 0 { read(ids, low * walk.ids[0]) } else { 0 };
        position = walk.offset + offset + (i64::from(token) - start);
    } else if walk.flags & (IDS | BATCH_OFFSETS) != 0 {
        let mut at = batch * walk.ids[0] + row * walk.ids[1];
        if walk.flags & AXES != 0 {
            at += i64::from(axis(pair, walk.sections, walk.flags & AXES_IN_TURN != 0)) * walk.axis;
        }
        let given = read(ids, at);
        position = walk.offset + given + if walk.flags & IDS != 0 { 0 } else { row };
    }
    (position, known && (position as u64) < walk.rows as u64 || known && walk.rows == i64::MAX)
}

/// The table in shared memory. There is one a module, declared by `export_rope!`.
pub(super) mod shared {
    use core::arch::asm;

    use crate::packed::unroll;

    #[inline(always)]
    pub(in super::super) fn write(index: u32, value: f32) {
        // SAFETY: the caller keeps index inside the table.
        unsafe {
            asm!("{{ .reg .u32 a; mov.u32 a, pointwise_rope; add.u32 a, a, {i}; st.shared.f32 [a], {v}; }}",
                i = in(reg32) 4 * index, v = in(reg32) value, options(nostack));
        }
    }

    /// `V` entries from an index on that is a multiple of `V`.
    #[inline(always)]
    pub(in super::super) fn read<const V: usize>(index: u32) -> [f32; V] {
        let mut entries = [0.0; V];
        // SAFETY: the caller keeps them inside the table. Not `pure`: they must stay behind the barrier.
        unsafe {
            if V % 4 == 0 {
                unroll!(part < V / 4 => {
                    let (a, b, c, d): (f32, f32, f32, f32);
                    asm!("{{ .reg .u32 a; mov.u32 a, pointwise_rope; add.u32 a, a, {i};",
                        "ld.shared.v4.f32 {{{a}, {b}, {c}, {d}}}, [a]; }}",
                        i = in(reg32) 4 * index + 16 * part as u32, a = out(reg32) a, b = out(reg32) b,
                        c = out(reg32) c, d = out(reg32) d, options(nostack));
                    entries[4 * part] = a;
                    entries[4 * part + 1] = b;
                    entries[4 * part + 2] = c;
                    entries[4 * part + 3] = d;
                });
            } else {
                unroll!(i < V => {
                    let entry: f32;
                    asm!("{{ .reg .u32 a; mov.u32 a, pointwise_rope; add.u32 a, a, {i}; ld.shared.f32 {v}, [a]; }}",
                        i = in(reg32) 4 * (index + i as u32), v = out(reg32) entry, options(nostack));
                    entries[i] = entry;
                });
            }
        }
        entries
    }
}
