//! Cosines and sines: from positions to shared memory, for the tokens of a block, or to the registers of a thread.

use pointwise_core::maths;
use pointwise_core::rope::{
    AXES, AXES_IN_TURN, BATCH_OFFSETS, IDS, NEIGHBOURS, OwnAngles, PLAIN, RopeElement, SEQUENCES, TABLE, WIDE_IDS,
    Walk, axis, pair_of, sincos_exact, sincos_hf,
};

use super::heads::Words;
use crate::packed::{self, Packed, unroll};
use crate::{memory, thread};

/// Where cosines and sines come from.
pub trait Source {
    /// Whether a table has them, which a position can be outside of.
    const TABLE: bool;

    /// Cosine and sine of a pair at a position or row; `strides` are those of the tables, of batch and row.
    ///
    /// # Safety
    /// The tables have the row, with more than `pair` entries.
    unsafe fn cos_sin(tables: [*const u8; 2], strides: Strides, batch: i64, position: i64, pair: u32) -> (f32, f32);

    /// What `V` pairs need of memory before the position is known.
    ///
    /// # Safety
    /// The list has them, aligned as [`Pairs`] says.
    #[inline(always)]
    unsafe fn early<const V: usize>(_: [*const u8; 2], _: Pairs) -> [Words; 4] {
        [[0; 2]; 4]
    }

    /// Cosines and sines of those pairs. Offsets into the tables have 32 bits.
    ///
    /// # Safety
    /// As [`Source::cos_sin`], of all the pairs, aligned as [`Pairs`] says.
    unsafe fn late<const V: usize>(
        early: [Words; 4],
        tables: [*const u8; 2],
        strides: [[u32; 2]; 2],
        batch: u32,
        position: i64,
        pairs: Pairs,
    ) -> ([f32; V], [f32; V]);
}

/// The strides of two tables, each of batch and row, in elements.
pub type Strides = [[i64; 2]; 2];

/// The pairs of a thread: half of them from `near` on, the others `apart` from those. Where they are `joined` all
/// follow each other, aligned for a load of all; else for loads of half.
#[derive(Clone, Copy)]
pub struct Pairs {
    near: u32,
    apart: u32,
    joined: bool,
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
    const TABLE: bool = false;

    #[inline(always)]
    unsafe fn cos_sin([list, _]: [*const u8; 2], _: Strides, _: i64, position: i64, pair: u32) -> (f32, f32) {
        // SAFETY: the caller's contract.
        let inv_freq = unsafe { entry::<f32>(list, i64::from(pair)) };
        let (sin, cos) = sincos_hf(position, inv_freq);
        (cos, sin)
    }

    #[inline(always)]
    unsafe fn early<const V: usize>([list, _]: [*const u8; 2], pairs: Pairs) -> [Words; 4] {
        // SAFETY: the caller's contract.
        let [near, far] = unsafe { runs::<f32, V>(list, 0, pairs) };
        [near, far, [0; 2], [0; 2]]
    }

    #[inline(always)]
    unsafe fn late<const V: usize>(
        [near, far, ..]: [Words; 4],
        _: [*const u8; 2],
        _: [[u32; 2]; 2],
        _: u32,
        position: i64,
        _: Pairs,
    ) -> ([f32; V], [f32; V]) {
        let mut angles = spread::<f32, V>([near, far]);
        let position = position as f32;
        unroll!(i < V => { angles[i] *= position; });
        cosines_sines(&angles)
    }
}

impl Source for Exact {
    const TABLE: bool = false;

    #[inline(always)]
    unsafe fn cos_sin([list, _]: [*const u8; 2], _: Strides, _: i64, position: i64, pair: u32) -> (f32, f32) {
        // SAFETY: the caller's contract.
        let [turns, _] = unsafe { memory::load(list.cast::<u64>().add(pair as usize).cast(), 8) };
        let (sin, cos) = sincos_exact(position, turns);
        (cos, sin)
    }

    #[inline(always)]
    unsafe fn early<const V: usize>([list, _]: [*const u8; 2], pairs: Pairs) -> [Words; 4] {
        let mut words = [[0; 2]; 4];
        // Of each run, two entries a word pair, or one.
        let (each, parts) = if V > 2 { (2, V / 4) } else { (1, 1) };
        unroll!(at most 4: n < 2 * parts => {
            let at = (pairs.near + (n / parts) as u32 * pairs.apart) as usize + n % parts * each;
            // SAFETY: the caller's contract.
            words[n] = unsafe { memory::load(list.cast::<u64>().add(at).cast(), 8 * each) };
        });
        words
    }

    #[inline(always)]
    unsafe fn late<const V: usize>(
        turns: [Words; 4],
        _: [*const u8; 2],
        _: [[u32; 2]; 2],
        _: u32,
        position: i64,
        _: Pairs,
    ) -> ([f32; V], [f32; V]) {
        let (mut cos, mut sin) = ([0.0; V], [0.0; V]);
        let each = if V > 2 { 2 } else { 1 };
        unroll!(at most 8: i < V => { (sin[i], cos[i]) = sincos_exact(position, turns[i / each][i % each]); });
        (cos, sin)
    }
}

impl Source for Angles {
    const TABLE: bool = true;

    #[inline(always)]
    unsafe fn cos_sin([table, _]: [*const u8; 2], strides: Strides, batch: i64, row: i64, pair: u32) -> (f32, f32) {
        // SAFETY: the caller's contract.
        let angle = unsafe { entry::<f32>(table, at(strides[0], batch, row) + i64::from(pair)) };
        let (sin, cos) = maths::sincos_tight(angle);
        (cos, sin)
    }

    #[inline(always)]
    unsafe fn late<const V: usize>(
        _: [Words; 4],
        [table, _]: [*const u8; 2],
        strides: [[u32; 2]; 2],
        batch: u32,
        row: i64,
        pairs: Pairs,
    ) -> ([f32; V], [f32; V]) {
        // SAFETY: the caller's contract.
        let angles = unsafe { runs::<f32, V>(table, near(strides[0], batch, row), pairs) };
        cosines_sines(&spread::<f32, V>(angles))
    }
}

impl<T: Packed + RopeElement> Source for Tables<T> {
    const TABLE: bool = true;

    #[inline(always)]
    unsafe fn cos_sin([cos, sin]: [*const u8; 2], strides: Strides, batch: i64, row: i64, pair: u32) -> (f32, f32) {
        let pair = i64::from(pair);
        // SAFETY: the caller's contract.
        unsafe {
            let cos = entry::<T>(cos, at(strides[0], batch, row) + pair);
            (cos, entry::<T>(sin, at(strides[1], batch, row) + pair))
        }
    }

    #[inline(always)]
    unsafe fn late<const V: usize>(
        _: [Words; 4],
        [cos, sin]: [*const u8; 2],
        strides: [[u32; 2]; 2],
        batch: u32,
        row: i64,
        pairs: Pairs,
    ) -> ([f32; V], [f32; V]) {
        // SAFETY: the caller's contract.
        unsafe {
            let cos = runs::<T, V>(cos, near(strides[0], batch, row), pairs);
            let sin = runs::<T, V>(sin, near(strides[1], batch, row), pairs);
            (spread::<T, V>(cos), spread::<T, V>(sin))
        }
    }
}

/// Where a row of a table begins.
#[inline(always)]
fn at([batch_stride, row_stride]: [i64; 2], batch: i64, row: i64) -> i64 {
    batch * batch_stride + row * row_stride
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

/// Where a row of a table begins, of one whose offsets have 32 bits. The row has been checked.
#[inline(always)]
fn near([batch_stride, row_stride]: [u32; 2], batch: u32, row: i64) -> u32 {
    batch * batch_stride + row as u32 * row_stride
}

/// The entries of a thread's pairs, of the row that begins at `row`: half of them in each part.
///
/// # Safety
/// The table has them, aligned as [`Pairs`] says.
#[inline(always)]
unsafe fn runs<T, const V: usize>(table: *const u8, row: u32, pairs: Pairs) -> [Words; 2] {
    let near = table.cast::<T>().wrapping_add((row + pairs.near) as usize);
    let far = near.wrapping_add(pairs.apart as usize);
    let bytes = V / 2 * size_of::<T>();
    // SAFETY: the caller's contract.
    unsafe {
        match bytes {
            4 | 8 => memory::load_halves(near.cast(), far.cast(), bytes, pairs.joined).map(|half| [half, 0]),
            _ => [memory::load(near.cast(), bytes), memory::load(far.cast(), bytes)],
        }
    }
}

/// What [`runs`] loaded, as f32.
#[inline(always)]
fn spread<T: Packed + RopeElement, const V: usize>(runs: [Words; 2]) -> [f32; V] {
    let per_word = 8 / size_of::<T>();
    let words = [[T::unpack(runs[0][0]), T::unpack(runs[0][1])], [T::unpack(runs[1][0]), T::unpack(runs[1][1])]];
    let mut entries = [0.0; V];
    unroll!(at most 8: i < V => {
        let j = i % (V / 2);
        entries[i] = T::to_f32(words[i / (V / 2)][j / per_word][j % per_word]);
    });
    entries
}

/// Cosines and sines of a thread's angles. Those near zero overlap; the others are rare, and their long reduction stands
/// here once.
#[inline(always)]
fn cosines_sines<const V: usize>(angles: &[f32; V]) -> ([f32; V], [f32; V]) {
    let (mut cos, mut sin, mut far) = ([0.0; V], [0.0; V], false);
    unroll!(i < V => {
        (sin[i], cos[i]) = maths::sincos_tight_near(angles[i]);
        far |= maths::is_far(angles[i]);
    });
    if far {
        // The compiler must not know how often: it would write the body as many times.
        let (mut n, end) = (0, thread::opaque(V as u32));
        while n < end {
            let mut angle = 0.0;
            unroll!(i < V => { angle = if n == i as u32 { angles[i] } else { angle }; });
            if maths::is_far(angle) {
                let (s, c) = maths::sincos_tight_far(angle);
                unroll!(i < V => {
                    sin[i] = if n == i as u32 { s } else { sin[i] };
                    cos[i] = if n == i as u32 { c } else { cos[i] };
                });
            }
            n += 1;
        }
    }
    (cos, sin)
}

/// Fills shared memory with the cosines and sines of the block's tokens from `first_token` on, and pairs from
/// `first_pair` on: the block's threads share the work.
///
/// # Safety
/// Positions and tables are as `walk` describes them, and a block has at most [`TABLE`] pairs.
#[inline(always)]
pub(super) unsafe fn fill<S: Source, const V: usize>(
    ids: *const u8,
    starts: *const u8,
    tables: [*const u8; 2],
    walk: &Walk,
    first_token: u32,
    first_pair: u32,
) {
    let tile = &walk.tile;
    let threads = tile.tokens * tile.sharers.size;
    let strides = [walk.first, walk.second];
    let pair_at = |pair: u32| pair_of(first_pair + pair, V as u32, walk.half, walk.flags);
    let mut n = thread::thread_idx_x();
    while n < threads {
        let (at, sharer) = tile.sharers.divide(n);
        let token = first_token + at;
        if token < walk.tokens {
            let (batch, row) = walk.seq.divide(token);
            let (batch, row) = (i64::from(batch), i64::from(row));
            // SAFETY: the caller's contract.
            let (position, known) = unsafe { position(ids, starts, walk, [batch, row], token, pair_at(sharer)) };
            let mut pair = sharer;
            while pair < tile.pairs && first_pair + pair < walk.half {
                // Where no table has the position, the token is not rotated.
                let (mut cos, mut sin) = (1.0, 0.0);
                if known {
                    // SAFETY: as above.
                    (cos, sin) = unsafe { S::cos_sin(tables, strides, batch, position, pair_at(pair)) };
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
    // SAFETY: the caller's contract.
    let read = |list: *const u8, i: i64| unsafe { given(list, i, walk.flags) };
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

/// An integer of a list of positions.
///
/// # Safety
/// The list has it.
#[inline(always)]
unsafe fn given(list: *const u8, at: i64, flags: u32) -> i64 {
    // SAFETY: the caller's contract.
    unsafe {
        if flags & WIDE_IDS != 0 {
            memory::load(list.cast::<i64>().offset(at as isize).cast(), 8)[0] as i64
        } else {
            i64::from(memory::load(list.cast::<i32>().offset(at as isize).cast(), 4)[0] as i32)
        }
    }
}

/// What a list of positions has for a token: 64 bits, or the lower 32 of them, or, without a list, zeros.
#[derive(Clone, Copy)]
pub(super) struct Given(pub(super) [u32; 2]);

/// What the list of positions has for a token, given by its batch entry and its row, for a thread that finds its own
/// angles. It is not looked at here, so that nothing waits for it yet; and without a list no load is there to wait for.
///
/// # Safety
/// The positions are as `angles` describes them.
#[inline(always)]
pub(super) unsafe fn own_given(ids: *const u8, flags: u32, angles: &OwnAngles, (batch, row): (u32, u32)) -> Given {
    if flags & (IDS | BATCH_OFFSETS) == 0 {
        return Given([0, 0]);
    }
    let at = (batch * angles.ids[0] + row * angles.ids[1]) as usize;
    // SAFETY: the caller's contract.
    let [word, _] = unsafe {
        if flags & WIDE_IDS != 0 {
            memory::load_here(ids.cast::<u64>().wrapping_add(at).cast(), 8)
        } else {
            memory::load_here(ids.cast::<u32>().wrapping_add(at).cast(), 4)
        }
    };
    Given([word as u32, (word >> 32) as u32])
}

impl Given {
    /// The number that was read, by the flags that it was read with.
    #[inline(always)]
    pub(super) fn number(self, flags: u32) -> i64 {
        let Given([low, high]) = self;
        let sign = (low as i32 >> 31) as u32;
        (u64::from(if flags & WIDE_IDS != 0 { high } else { sign }) << 32 | u64::from(low)) as i64
    }
}

/// The position of a token, with what [`own_given`] read for it.
#[inline(always)]
pub(super) fn own_position(given: Given, flags: u32, angles: &OwnAngles, row: u32) -> i64 {
    angles.offset + given.number(flags) + i64::from(if flags & IDS != 0 { 0 } else { row })
}

/// Cosines and sines of the pairs of a thread's two vectors, for a thread that finds its own, times `scale`.
///
/// # Safety
/// The tables are as `angles` describes them, aligned for loads of `V / 2` entries, or of `V` unless pairs are
/// neighbours.
#[inline(always)]
pub(super) unsafe fn own<S: Source, const V: usize>(
    tables: [*const u8; 2],
    flags: u32,
    angles: &OwnAngles,
    scale: f32,
    (batch, position): (u32, i64),
    lane: u32,
) -> ([f32; V], [f32; V]) {
    let pairs = own_pairs(flags, angles, lane);
    // SAFETY: the caller's contract.
    let early = unsafe { S::early::<V>(tables, pairs) };
    // Where no table has the position, the token is not rotated.
    let (mut cos, mut sin) = ([1.0; V], [0.0; V]);
    let known = !S::TABLE || (position as u64) < angles.rows as u64;
    if known {
        // SAFETY: as above.
        (cos, sin) = unsafe { S::late::<V>(early, tables, angles.tables, batch, position, pairs) };
    }
    if flags & PLAIN == 0 {
        let factors = if known { [angles.factor, angles.factor * angles.sin_sign] } else { [1.0; 2] };
        unroll!(i < V => {
            cos[i] = cos[i] * factors[0] * scale;
            sin[i] = sin[i] * factors[1] * scale;
        });
    }
    (cos, sin)
}

/// The pairs of a thread that finds its own angles.
#[inline(always)]
fn own_pairs(flags: u32, angles: &OwnAngles, lane: u32) -> Pairs {
    Pairs { near: lane * angles.pairs[0], apart: angles.pairs[1], joined: flags & NEIGHBOURS == 0 }
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
