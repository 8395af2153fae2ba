//! Plans of blocks whose threads share cosines and sines: they serve every call.

use pointwise_core::rope::{AXES, CHUNK, Count, RopeWalk, TABLE, TOKENS_INNER, Tile};

use super::{MOST_THREADS, Planned, RopePlan, Settings, Template, group, vectors_fit};
use crate::Strategy;
use crate::error::{ErrorKind, Result};

/// The most threads of a block, unless the user gives another number: a multiprocessor has registers for four such
/// blocks, but only for two of 256.
const THREADS: u32 = 160;
/// Tokens of a block whose heads lie far apart: their rows are one piece of memory.
const INNER_TOKENS: u32 = 8;

/// Plans a call whose walk counts elements: from here on it counts vectors.
pub(super) fn plan(settings: &Settings, call: &Planned<'_>, walk: &mut RopeWalk) -> Result<RopePlan> {
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
    Ok(RopePlan { strategy, blocks: [blocks, 1, 1], threads: [threads, 1, 1], template: Template::PerBlock })
}

/// Heads of a thread: as many as it loads at once, because finding its place costs as much as rotating three. Twice as
/// many if most threads only copy lanes, fewer if multiprocessors would be without work.
fn heads_per_thread(multiprocessors: u32, walk: &RopeWalk) -> u32 {
    let lanes = u64::from(walk.tokens) * u64::from(walk.pair_lanes + walk.rest_lanes);
    let enough = u64::from(multiprocessors) * 256;
    let threads = |share: u32| {
        let groups = walk.q.heads.div_ceil(share) + walk.k.heads.div_ceil(share);
        lanes.saturating_mul(u64::from(groups))
    };
    let most = if walk.rest_lanes > walk.pair_lanes { 2 * CHUNK } else { CHUNK };
    [most, CHUNK, CHUNK / 2].into_iter().find(|share| threads(*share) >= enough).unwrap_or(1)
}

/// Sets the work of a block of at most `most` threads. Returns the number of blocks and the threads of each.
fn tile(most: u32, vector: u32, walk: &mut RopeWalk) -> (u64, u32) {
    // If a head has more lanes than a block has threads, or more pairs than its table, blocks share them.
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

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use pointwise_core::rope::{AXES, CHUNK, RopeWalk, TABLE, TOKENS_INNER};

    use super::super::tests::{SHAPES, side};
    use super::tile;

    /// Every token, group and lane has one thread, and a block's table has room.
    #[test]
    fn blocks_cover_all() {
        for (tokens, q, k, half, rest, vector) in SHAPES {
            for most in [32, 64, 96, 128, 256, 320, 512, 1024] {
                for (share, flags) in [(1, 0), (CHUNK, AXES), (8, 0), (1, TOKENS_INNER), (CHUNK, TOKENS_INNER)] {
                    let (pair_lanes, rest_lanes) = (half / vector, rest / vector);
                    let mut walk = RopeWalk {
                        q: side(q, share),
                        k: side(k, share),
                        tokens,
                        pair_lanes,
                        rest_lanes,
                        half,
                        flags,
                        ..RopeWalk::default()
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
