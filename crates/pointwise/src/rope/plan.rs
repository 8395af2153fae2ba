//! How a call is launched: the template, the width of accesses, what a block does, which kernel.

use pointwise_core::DType;
use pointwise_core::rope::{
    AXES, CHUNK, Count, NEIGHBOURS, PLAIN, RUNS_INNER, SEQUENCES, Side, Solo, SoloSide, TABLE, TOKENS_INNER, Tile, Walk,
};

use super::options::TYPES;
use super::{Pointers, Source};
use crate::Strategy;
use crate::error::{ErrorKind, Result};
use crate::kernel::Entry;

/// What a user may ask for.
#[derive(Debug, Clone)]
pub(super) struct Settings {
    pub(super) strategy: Strategy,
    /// At most as many threads a block.
    pub(super) threads: Option<u32>,
    pub(super) heads_per_thread: Option<u32>,
    /// Whether the threads of a block share cosines and sines.
    pub(super) shared_angles: Option<bool>,
}

impl Default for Settings {
    fn default() -> Self {
        Settings { strategy: Strategy::Auto, threads: None, heads_per_thread: None, shared_angles: None }
    }
}

/// At most so many threads a block that shares its angles, where nothing else is asked for: the kernels' registers are
/// enough for four such blocks on a multiprocessor, but for two of 256.
const THREADS: u32 = 160;
/// As [`THREADS`], where threads find their own angles.
const SOLO_THREADS: u32 = 128;
/// More have not enough registers.
const MOST_THREADS: u32 = 512;
/// Tokens of a block whose heads lie far apart: their rows are one piece of memory.
const INNER_TOKENS: u32 = 8;
/// Threads a multiprocessor that find their own angles: fewer get less work each, so that there are as many.
const SOLO_ENOUGH: u64 = 256;
/// Tokens of a block where heads lie far apart and angles come from tables, at most: blocks of other heads read the same
/// rows then, before the next run's push them out of the caches. A head after another, 32,768 tokens of Llama 3 8B in bf16
/// took 231 us instead of 183 (H200, f32 tables).
const TABLE_TOKENS: u32 = 8;

/// A launch.
#[derive(Debug, Clone, Copy)]
pub(super) struct Plan {
    pub(super) strategy: Strategy,
    pub(super) blocks: u32,
    pub(super) threads: u32,
    /// What it does, if its threads find their own angles.
    pub(super) solo: Option<Solo>,
}

/// A call to plan.
pub(super) struct Planned<'a> {
    pub(super) multiprocessors: u32,
    pub(super) dtype: DType,
    pub(super) source: Source,
    pub(super) pointers: &'a Pointers,
}

/// Plans a call whose walk counts elements: from here on it counts vectors.
pub(super) fn plan(settings: &Settings, call: &Planned<'_>, walk: &mut Walk) -> Result<Plan> {
    let [_, token, head] = walk.q.input;
    if token < head {
        walk.flags |= TOKENS_INNER;
    }
    if let Some(plan) = plan_solo(settings, call, walk) {
        return Ok(plan);
    }
    let widest = 16 / call.dtype.size() as u32;
    let serves = |vector: u32| vectors_fit(vector, call, walk);
    let (strategy, vector) = match settings.strategy {
        Strategy::Direct => (Strategy::Direct, 1),
        Strategy::ExplicitParallel if serves(widest / 2) => (Strategy::ExplicitParallel, widest / 2),
        Strategy::ExplicitParallel => (Strategy::Direct, 1),
        _ if serves(widest) => (Strategy::RegisterCopy, widest),
        _ if serves(widest / 2) => (Strategy::ExplicitParallel, widest / 2),
        _ => (Strategy::Direct, 1),
    };
    walk.pair_lanes /= vector;
    walk.rest_lanes /= vector;
    let share = settings.heads_per_thread.unwrap_or_else(|| heads_per_thread(call.multiprocessors, walk));
    group(walk, share);
    let (blocks, threads) = tile(settings.threads.unwrap_or(THREADS).min(MOST_THREADS), vector, walk);
    let blocks =
        u32::try_from(blocks).ok().filter(|blocks| *blocks < 1 << 31).ok_or_else(|| ErrorKind::Unsupported {
            what: "a tensor of this many tokens".to_owned(),
            advice: "rotate parts of it".to_owned(),
        })?;
    Ok(Plan { strategy, blocks, threads, solo: None })
}

/// Gives each thread `share` heads.
fn group(walk: &mut Walk, share: u32) {
    for side in [&mut walk.q, &mut walk.k] {
        side.groups = side.heads.div_ceil(share);
        side.step = [side.input[2], side.output[2]].map(|stride| stride.saturating_mul(i64::from(side.groups)));
    }
}

/// The plan of a call whose threads find their own angles, where that can serve and no other is asked for: on an H200 it
/// was the faster one, or slower by less than 2 %, for all models, layouts and sizes (`docs/tuning.md`).
fn plan_solo(settings: &Settings, call: &Planned<'_>, walk: &Walk) -> Option<Plan> {
    let widest = 16 / call.dtype.size() as u32;
    let serves = |vector: u32| vectors_fit(vector, call, walk) && angles_fit(vector, call, walk);
    let pairing = walk.flags & NEIGHBOURS;
    let refused = walk.flags & (SEQUENCES | AXES) != 0 || !(pairing == 0 || pairing == NEIGHBOURS);
    if refused || settings.shared_angles == Some(true) {
        return None;
    }
    let heads = walk.q.heads + walk.k.heads;
    // Threads of the widest vectors and of one head: two vectors each.
    let lanes = u64::from((2 * walk.half + walk.rest_lanes).div_ceil(2 * widest)) * u64::from(walk.tokens);
    let work = lanes.saturating_mul(u64::from(heads));
    let enough = u64::from(call.multiprocessors) * SOLO_ENOUGH;
    let (strategy, vector) = match settings.strategy {
        Strategy::ExplicitParallel if serves(widest / 2) => (Strategy::ExplicitParallel, widest / 2),
        Strategy::Auto if work < enough && serves(widest / 2) => (Strategy::ExplicitParallel, widest / 2),
        Strategy::Auto | Strategy::RegisterCopy if serves(widest) => (Strategy::RegisterCopy, widest),
        Strategy::Auto | Strategy::RegisterCopy if serves(widest / 2) => (Strategy::ExplicitParallel, widest / 2),
        _ => return None,
    };
    let share = settings.heads_per_thread.unwrap_or_else(|| {
        let threads = |share: u32| lanes.saturating_mul(u64::from(heads.div_ceil(share)));
        if threads(2) >= enough { 2 } else { 1 }
    });
    let mut walk = *walk;
    group(&mut walk, share);
    let most = settings.threads.unwrap_or(SOLO_THREADS).min(MOST_THREADS);
    let on_the_fly = matches!(call.source, Source::Hf | Source::Exact);
    let tokens = if on_the_fly { u32::MAX } else { TABLE_TOKENS };
    let (mut solo, blocks, threads) = solo(most, tokens, vector, &walk)?;
    if !on_the_fly {
        solo.tables = table_offsets(&walk)?;
    }
    Some(Plan { strategy, blocks, threads, solo: Some(solo) })
}

/// What blocks of at most `most` threads do whose threads find their own angles, how many they are, and the threads of
/// each; of at most so many tokens where heads lie far apart. None where a token's lanes are more than the threads, or
/// offsets have more than 32 bits. The walk counts elements. The tables' strides are left out.
fn solo(most: u32, most_tokens: u32, vector: u32, walk: &Walk) -> Option<(Solo, u32, u32)> {
    let (pairs, rest) = (walk.half / vector, walk.rest_lanes / vector);
    let rest_threads = rest.div_ceil(2);
    let (lanes, groups) = (pairs + rest_threads, [walk.q.groups, walk.k.groups]);
    let all = u64::from(walk.tokens) * u64::from(groups[0] + groups[1]);
    let most_slots = most / lanes;
    if most_slots == 0 || all >= 1 << 30 {
        return None;
    }
    let threads = |slots: u32| (slots * lanes).next_multiple_of(32);
    let mut solo = Solo {
        pair_lanes: Count::new(pairs),
        rest_lanes: Count::new(rest_threads),
        tokens: walk.tokens,
        seq: walk.seq,
        flags: walk.flags,
        rotated_at: walk.rotated_at / vector,
        rest_at: walk.rest_at / vector,
        rest,
        pairs: if walk.flags & NEIGHBOURS == 0 { [vector, vector / 2] } else { [vector / 2, walk.half / 2] },
        factor: walk.factor,
        sin_sign: walk.sin_sign,
        ids: offsets([walk.tokens / walk.seq.size, walk.seq.size], walk.ids, 1, 0)?,
        offset: walk.offset,
        rows: walk.rows,
        q: solo_side(&walk.q, vector, walk)?,
        k: solo_side(&walk.k, vector, walk)?,
        ..Solo::default()
    };
    let scales = [walk.factor, walk.sin_sign, walk.q.scale, if walk.k.heads > 0 { walk.k.scale } else { 1.0 }];
    if scales == [1.0; 4] {
        solo.flags |= PLAIN;
    }
    let (slots, blocks);
    if walk.flags & TOKENS_INNER != 0 {
        // Tokens of a head lie together; those of more than one head where they are too few.
        solo.token_bits = most_tokens.min(most_slots).min(walk.tokens.next_power_of_two()).ilog2();
        let tokens = 1 << solo.token_bits;
        solo.part_groups = (most_slots / tokens).min(groups[0]).max(1);
        slots = tokens * solo.part_groups;
        let (runs, parts) = (walk.tokens.div_ceil(tokens), groups.map(|groups| groups.div_ceil(solo.part_groups)));
        blocks = parts.map(|parts| parts * runs);
        solo.block_slots = 1;
        // Blocks one after another along the memory; but where they share a table's rows, along the heads.
        let along = if most_tokens == u32::MAX && solo.part_groups == 1 {
            solo.flags |= RUNS_INNER;
            [runs; 2]
        } else {
            parts
        };
        (solo.q.parts, solo.k.parts) = (Count::new(along[0]), Count::new(along[1]));
    } else {
        let most_slots = u64::from(most_slots).min(u64::from(walk.tokens) * u64::from(groups[0])) as u32;
        // As few idle threads as can be.
        let used = |slots: u32| u64::from(slots * lanes) * 1024 / u64::from(threads(slots));
        slots = (most_slots / 2 + 1..=most_slots).max_by_key(|slots| used(*slots)).unwrap_or(1);
        blocks = groups.map(|groups| (walk.tokens * groups).div_ceil(slots));
        (solo.slot_mask, solo.block_slots, solo.part_groups) = (u32::MAX, slots, 1);
        (solo.q.parts, solo.k.parts) = (Count::new(groups[0]), Count::new(groups[1]));
    }
    solo.q_blocks = blocks[0];
    solo.threads = [slots * pairs, slots * lanes];
    Some((solo, blocks[0] + blocks[1], threads(slots)))
}

/// A tensor whose strides count vectors; None where an offset into it has more than 32 bits.
fn solo_side(side: &Side, vector: u32, walk: &Walk) -> Option<SoloSide> {
    let dims = [walk.tokens / walk.seq.size, walk.seq.size, side.heads];
    let lanes = (walk.rotated_at + 2 * walk.half).max(walk.rest_at + walk.rest_lanes);
    let strides = |strides| offsets(dims, strides, vector, lanes);
    let (input, output) = (strides(side.input)?, strides(side.output)?);
    // Beyond 32 bits only where no thread has another head.
    let step = [input[2], output[2]].map(|stride| stride.wrapping_mul(side.groups));
    Some(SoloSide {
        input,
        output,
        heads: side.heads,
        groups: side.groups,
        step,
        scale: side.scale,
        ..Default::default()
    })
}

/// Strides of the two tables.
fn table_offsets(walk: &Walk) -> Option<[[u32; 2]; 2]> {
    // Without a number of rows there is one for each token.
    let rows = if walk.rows == i64::MAX { walk.seq.size } else { u32::try_from(walk.rows).ok()? };
    let dims = [walk.tokens / walk.seq.size, rows];
    let strides = |strides| offsets(dims, strides, 1, walk.half);
    Some([strides(walk.first)?, strides(walk.second)?])
}

/// Strides in vectors; None where one is negative, or an offset, `last` elements into the last row, has more than 32
/// bits.
fn offsets<const N: usize>(dims: [u32; N], strides: [i64; N], vector: u32, last: u32) -> Option<[u32; N]> {
    let (mut narrow, mut farthest) = ([0; N], u64::from(last / vector));
    for ((dim, stride), narrow) in dims.into_iter().zip(strides).zip(&mut narrow) {
        // A stride that is never taken can be anything.
        if dim > 1 {
            let stride = u64::try_from(stride).ok()? / u64::from(vector);
            farthest = farthest.checked_add(stride.checked_mul(u64::from(dim - 1))?)?;
            *narrow = u32::try_from(stride).ok()?;
        }
    }
    (farthest <= u64::from(u32::MAX)).then_some(narrow)
}

/// Whether every load of a thread's angles is aligned: those of its two vectors by one where that is enough, unless
/// pairs are neighbours.
fn angles_fit(vector: u32, call: &Planned<'_>, walk: &Walk) -> bool {
    let size = match call.source {
        Source::Hf | Source::Angles | Source::Tables => 4,
        Source::Exact => 8,
        Source::OwnTables => call.dtype.size(),
    };
    let half = vector as usize / 2 * size;
    let joined = walk.flags & NEIGHBOURS == 0 && call.source != Source::Exact && half < 16;
    let (entries, bytes) = if joined { (vector, 2 * half) } else { (vector / 2, half.min(16)) };
    [call.pointers.first, call.pointers.second].iter().all(|table| table.addr().is_multiple_of(bytes))
        && [walk.first, walk.second].iter().flatten().all(|stride| stride % i64::from(entries) == 0)
}

/// Heads of a thread: as many as it loads at once, as finding its place costs as much as rotating three, and twice as many
/// where most threads only copy lanes; unless that leaves multiprocessors without work.
fn heads_per_thread(multiprocessors: u32, walk: &Walk) -> u32 {
    let lanes = u64::from(walk.tokens) * u64::from(walk.pair_lanes + walk.rest_lanes);
    let enough = u64::from(multiprocessors) * 256;
    let threads = |share: u32| {
        let groups = walk.q.heads.div_ceil(share) + walk.k.heads.div_ceil(share);
        lanes.saturating_mul(u64::from(groups))
    };
    let most = if walk.rest_lanes > walk.pair_lanes { 2 * CHUNK } else { CHUNK };
    [most, CHUNK, CHUNK / 2].into_iter().find(|share| threads(*share) >= enough).unwrap_or(1)
}

/// Sets what a block of at most `most` threads does; the blocks, and the threads of each.
fn tile(most: u32, vector: u32, walk: &mut Walk) -> (u64, u32) {
    // Where a head has more lanes than a block has threads, or more pairs than its table, blocks share them.
    let (pairs, rest) = (walk.pair_lanes, walk.rest_lanes);
    let mut lane_blocks = (pairs + rest).div_ceil(most).max((pairs * vector).div_ceil(TABLE));
    while pairs.div_ceil(lane_blocks) + rest.div_ceil(lane_blocks) > most {
        lane_blocks += 1;
    }
    let (pairs, rest) = (pairs.div_ceil(lane_blocks), rest.div_ceil(lane_blocks));
    let lanes = pairs + rest;
    let slots = most / lanes;
    let most_tokens = slots.min(TABLE / (pairs * vector)).min(walk.tokens);
    let inner = walk.flags & TOKENS_INNER != 0;
    let all = walk.q.groups + walk.k.groups;
    let at_once = if inner { slots / INNER_TOKENS.min(most_tokens) } else { slots };
    // Blocks alike: 18 groups are two times 9, not 16 and 2.
    let groups = all.div_ceil(all.div_ceil(at_once));
    let most_tokens = most_tokens.min(slots / groups);
    // As few idle threads as can be.
    let threads = |tokens: u32| (tokens * groups * lanes).next_multiple_of(32);
    let used = |tokens: u32| u64::from(tokens * groups * lanes) * 1024 / u64::from(threads(tokens));
    let tokens = (most_tokens / 2 + 1..=most_tokens).max_by_key(|tokens| used(*tokens)).unwrap_or(1);
    let token_blocks = walk.tokens.div_ceil(tokens);
    let parts = all.div_ceil(groups) * lane_blocks;
    // No more pairs of cosine and sine a thread than must be.
    let sharers = (pairs * vector).div_ceil((tokens * pairs * vector).div_ceil(threads(tokens)));
    walk.tile = Tile {
        tokens,
        groups,
        pair_lanes: Count::new(pairs),
        rest_lanes: Count::new(rest),
        pairs: pairs * vector,
        sharers: Count::new(if walk.flags & AXES != 0 { pairs * vector } else { sharers }),
        inner: Count::new(if inner { tokens } else { groups }),
        blocks: Count::new(if inner { token_blocks } else { parts }),
        lane_blocks: Count::new(lane_blocks),
    };
    (u64::from(token_blocks) * u64::from(parts), threads(tokens))
}

/// Whether every access of vectors of `vector` elements is aligned and whole.
fn vectors_fit(vector: u32, &Planned { dtype, pointers, .. }: &Planned<'_>, walk: &Walk) -> bool {
    let rest = walk.rest_lanes;
    let lanes = [walk.half, walk.rotated_at, rest, if rest > 0 { walk.rest_at } else { 0 }];
    let strides = [walk.q.input, walk.q.output, walk.k.input, walk.k.output];
    let bytes = vector as usize * dtype.size();
    let tensors = [pointers.qx, pointers.qy.cast_const(), pointers.kx, pointers.ky.cast_const()];
    lanes.iter().all(|lane| lane.is_multiple_of(vector))
        && strides.iter().flatten().all(|stride| stride % i64::from(vector) == 0)
        && tensors.iter().all(|tensor| tensor.addr().is_multiple_of(bytes))
}

/// The kernel of a plan, a source and an element type.
pub(super) fn entry(plan: &Plan, source: Source, dtype: DType) -> Option<&'static Entry> {
    macro_rules! is_solo {
        (rope) => {
            false
        };
        (rope_solo) => {
            true
        };
    }
    macro_rules! source {
        (hf) => {
            Source::Hf
        };
        (exact) => {
            Source::Exact
        };
        (angles) => {
            Source::Angles
        };
        (tables) => {
            Source::Tables
        };
        (own_tables) => {
            Source::OwnTables
        };
    }
    macro_rules! strategy {
        (direct) => {
            Strategy::Direct
        };
        (explicit_parallel) => {
            Strategy::ExplicitParallel
        };
        (register_copy) => {
            Strategy::RegisterCopy
        };
    }
    macro_rules! look {
        ($template:ident $source:ident $type:ident $strategy:ident, ($s:ident $d:ident $v:ident $solo:ident)) => {
            let of = <pointwise_core::element::ty::$type as pointwise_core::Element>::DTYPE;
            if $solo == is_solo!($template) && $s == source!($source) && $d == of && $v == strategy!($strategy) {
                static ENTRY: Entry = Entry::new(
                    pointwise_core::symbol!($template, $source, $type, $strategy),
                    crate::family::embedded(),
                );
                return Some(&ENTRY);
            }
        };
    }
    debug_assert!(TYPES.contains(&dtype));
    let (strategy, solo) = (plan.strategy, plan.solo.is_some());
    pointwise_core::rope_entries! { (look) (source dtype strategy solo) }
    None
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use pointwise_core::rope::{AXES, CHUNK, Count, Side, TABLE, TOKENS_INNER, Walk};

    use super::{TABLE_TOKENS, solo, tile};

    /// Tokens, heads of q and of k, lanes that rotate (half) and that do not, elements of a vector.
    const SHAPES: [(u32, u32, u32, u32, u32, u32); 11] = [
        (1, 32, 8, 64, 0, 8),
        (7, 64, 8, 64, 0, 4),
        (5, 128, 128, 32, 128, 8),
        (33, 3, 0, 48, 0, 4),
        (19, 1, 0, 32, 0, 8),
        (600, 1, 0, 64, 0, 8),
        (3, 71, 1, 32, 0, 1),
        (2, 5, 3, 2048, 64, 8),
        (2, 3, 2, 1500, 700, 1),
        (4, 2, 1, 1, 5, 1),
        (9, 5, 1, 16, 24, 8),
    ];

    fn side(heads: u32, share: u32) -> Side {
        Side { heads, groups: heads.div_ceil(share), ..Side::default() }
    }

    /// Of threads that find their own angles, too: each vector of a token and group has one.
    #[test]
    fn solo_covers_all() {
        for (tokens, q, k, half, rest_lanes, vector) in SHAPES.into_iter().filter(|shape| shape.5 > 1) {
            for most in [32, 64, 96, 128, 256, 512] {
                let ways = [
                    (1, 0, u32::MAX),
                    (CHUNK, 0, u32::MAX),
                    (1, TOKENS_INNER, TABLE_TOKENS),
                    (3, TOKENS_INNER, u32::MAX),
                    (2, TOKENS_INNER, 1),
                ];
                for (share, flags, tokens_at_once) in ways {
                    let walk = Walk {
                        q: side(q, share),
                        k: side(k, share),
                        tokens,
                        seq: Count::new(tokens),
                        rest_lanes,
                        half,
                        flags,
                        ..Walk::default()
                    };
                    let what = format!(
                        "{tokens} {q} {k} {half} {rest_lanes} {vector}, {most}, {share}, {flags}, {tokens_at_once}"
                    );
                    let lanes = half / vector + (rest_lanes / vector).div_ceil(2);
                    let Some((solo, blocks, threads)) = solo(most, tokens_at_once, vector, &walk) else {
                        assert!(lanes > most, "{what}: no plan");
                        continue;
                    };
                    assert!(threads <= most && threads % 32 == 0 && threads > 0, "{what}: {threads} threads");
                    let mut seen = HashSet::new();
                    for block in 0..blocks {
                        for place in (0..threads).map(|thread| solo.place(block, thread)).filter(|place| place.works) {
                            let groups = if place.is_k { walk.k.groups } else { walk.q.groups };
                            assert!(place.group < groups, "{what}: {place:?}");
                            for at in [place.lane, place.lane + place.apart] {
                                let last = if place.rotates { 2 * half } else { rest_lanes } / vector;
                                // The kernel's own rule for a second vector of lanes that pass through.
                                if at < last {
                                    let vector = (place.rotates, place.is_k, place.token, place.group, at);
                                    assert!(seen.insert(vector), "{what}: {vector:?} twice");
                                }
                            }
                        }
                    }
                    let groups = walk.q.groups + walk.k.groups;
                    assert_eq!(seen.len() as u32, tokens * groups * (2 * half + rest_lanes) / vector, "{what}");
                }
            }
        }
    }

    /// Every token, group and lane has one thread, and a block's table has room.
    #[test]
    fn blocks_cover_all() {
        for (tokens, q, k, half, rest, vector) in SHAPES {
            for most in [32, 64, 96, 128, 256, 320, 512, 1024] {
                for (share, flags) in [(1, 0), (CHUNK, AXES), (8, 0), (1, TOKENS_INNER), (CHUNK, TOKENS_INNER)] {
                    let (pair_lanes, rest_lanes) = (half / vector, rest / vector);
                    let mut walk = Walk {
                        q: side(q, share),
                        k: side(k, share),
                        tokens,
                        pair_lanes,
                        rest_lanes,
                        half,
                        flags,
                        ..Walk::default()
                    };
                    let (blocks, threads) = tile(most, vector, &mut walk);
                    let what = format!("{tokens} {q} {k} {half} {rest} {vector}, {most} threads, {share}, {flags}");
                    assert!(threads <= most && threads % 32 == 0 && threads > 0, "{what}: {threads} threads");
                    assert!(walk.tile.tokens * walk.tile.pairs <= TABLE, "{what}: {:?}", walk.tile);
                    let mut seen = HashSet::new();
                    for block in 0..blocks as u32 {
                        for place in (0..threads).map(|thread| walk.place(block, thread)).filter(|place| place.works) {
                            assert!(seen.insert((place.rotates, place.token, place.group, place.lane)), "{what}");
                            if place.rotates {
                                let (token, lane) = (place.token - place.first_token, place.lane - place.first_lane);
                                assert!(token < walk.tile.tokens && lane * vector < walk.tile.pairs, "{what}");
                            }
                        }
                    }
                    let groups = walk.q.groups + walk.k.groups;
                    assert_eq!(seen.len() as u32, tokens * groups * (pair_lanes + rest_lanes), "{what}");
                }
            }
        }
    }
}
