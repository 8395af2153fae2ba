//! Computes cosines and sines from positions: into shared memory, for the tokens of a block, or into a thread's
//! registers.

use pointwise_core::rope::{NEIGHBOURS, OwnAngles, PLAIN, RopeWalk, TABLE, pair_of};

use super::position::position;
use super::shared;
use super::source::{Pairs, Source};
use crate::packed::unroll;
use crate::thread;

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
    walk: &RopeWalk,
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

/// Returns cosines and sines of the pairs of a thread's two vectors, times `scale`, for a thread that finds its own.
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

/// Returns the pairs of a thread that finds its own angles.
#[inline(always)]
fn own_pairs(flags: u32, angles: &OwnAngles, lane: u32) -> Pairs {
    Pairs { near: lane * angles.pairs[0], apart: angles.pairs[1], joined: flags & NEIGHBOURS == 0 }
}
