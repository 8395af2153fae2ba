//! Threads that find their own cosines and sines, of heads all of whose lanes rotate.

use pointwise_core::DType;
use pointwise_core::rope::{BATCH_OFFSETS, IDS, PLAIN, RUNS_INNER, Side, TOKENS_INNER, Walk, Whole, WholeSide};

use super::{
    MOST_THREADS, OWN_ENOUGH, OWN_THREADS, Plan, Planned, Settings, Source, Template, is_on_the_fly, is_plain,
    lanes_of_a_head, may_be_own, offsets, own_angles, own_vector, table_offsets,
};

/// CUDA's limit on the second dimension of a grid, and on the third.
const MOST_ROWS: u32 = 65_535;
/// CUDA's limit on the third dimension of a block.
const MOST_TOKENS: u32 = 64;

/// The plan of a call that has heads all of whose lanes rotate, in tensors of two dimensions above them, if no other
/// template is asked for: the faster one then, as it has less to work out (`docs/tuning.md`).
pub(super) fn plan(settings: &Settings, call: &Planned<'_>, walk: &Walk) -> Option<Plan> {
    if !may_be_own(settings, call, walk) || walk.rest_lanes > 0 {
        return None;
    }
    let walk = merged(walk)?;
    let (strategy, vector) = own_vector(settings, call, &walk)?;
    let share = match settings.heads_per_thread {
        Some(share) if share > 2 => return None,
        Some(share) => share,
        None => heads_per_thread(call, &walk),
    };
    let most = settings.threads.unwrap_or(OWN_THREADS).min(MOST_THREADS);
    let (mut whole, blocks, threads) = whole(most, vector, share, is_on_the_fly(call.source), &walk)?;
    if !is_on_the_fly(call.source) {
        whole.angles.tables = table_offsets(&walk)?;
    }
    Some(Plan { strategy, blocks, threads, template: Template::Whole(whole) })
}

/// One where angles come from tables of the tensors' type, in the order of the tokens, and heads lie together: 1 to 3 %
/// faster than two then (H200). Else two, which share what a thread works out or waits for, but where there would not be
/// threads enough.
fn heads_per_thread(call: &Planned<'_>, walk: &Walk) -> u32 {
    let is_of_the_type = call.source == Source::OwnTables || call.source == Source::Tables && call.dtype == DType::F32;
    if is_of_the_type && walk.flags & (IDS | BATCH_OFFSETS | TOKENS_INNER) == 0 {
        return 1;
    }
    let threads = lanes_of_a_head(call, walk).saturating_mul(u64::from((walk.q.heads + walk.k.heads).div_ceil(2)));
    if threads >= u64::from(call.multiprocessors) * OWN_ENOUGH { 2 } else { 1 }
}

/// The walk with the batch merged into tokens or heads, where its strides allow.
fn merged(walk: &Walk) -> Option<Walk> {
    let batch = walk.tokens / walk.seq.size;
    let sides = [walk.q, walk.k].into_iter().filter(|side| side.heads > 0);
    let strides = || sides.clone().flat_map(|side| [(side.heads, side.input), (side.heads, side.output)]);
    let is_multiple = |size: u32, stride: i64, of: i64| stride.checked_mul(i64::from(size)) == Some(of);
    if batch <= 1 || strides().all(|(_, [batch, token, _])| is_multiple(walk.seq.size, token, batch)) {
        return Some(*walk);
    }
    let apart = [walk.ids[0], walk.first[0], walk.second[0]];
    if apart != [0; 3] || !strides().all(|(heads, [batch, _, head])| is_multiple(heads, head, batch)) {
        return None;
    }
    let mut merged = Walk { tokens: walk.seq.size, ..*walk };
    for side in [&mut merged.q, &mut merged.k] {
        side.heads = side.heads.checked_mul(batch)?;
    }
    Some(merged)
}

/// What blocks of at most `most` threads do, how many there are, and the threads of each. None where a head's lanes are
/// more than the threads, offsets have more than 32 bits, or a thread cannot have `share` heads. The walk counts elements.
/// The tables' strides are left out.
fn whole(most: u32, vector: u32, share: u32, on_the_fly: bool, walk: &Walk) -> Option<(Whole, [u32; 3], [u32; 3])> {
    let lanes = walk.half / vector;
    let slots = most / lanes;
    let all = u64::from(walk.tokens) * (u64::from(walk.q.heads) + u64::from(walk.k.heads));
    if slots == 0 || all == 0 || all >= 1 << 30 {
        return None;
    }
    let sides = [side(&walk.q, vector, share, walk)?, side(&walk.k, vector, share, walk)?];
    let heads = sides.map(|side| side.heads);
    let inner = walk.flags & TOKENS_INNER != 0;
    let most_tokens = MOST_TOKENS.min(walk.tokens);
    let [tile_heads, tile_tokens] = if inner {
        let tokens = slots.min(most_tokens);
        [(slots / tokens).min(heads[0].max(heads[1])), tokens]
    } else {
        let tile = |tile_heads: u32| [tile_heads, (slots / tile_heads).min(most_tokens)];
        let candidates = (1..=slots.min(heads[0].max(heads[1]))).map(tile);
        candidates.max_by_key(|[heads_, tokens]| (used([*heads_, *tokens], lanes, heads, walk.tokens), *heads_))?
    };
    let [q_blocks, k_blocks] = heads.map(|heads| heads.div_ceil(tile_heads));
    let (head_blocks, runs) = (q_blocks.checked_add(k_blocks)?, walk.tokens.div_ceil(tile_tokens));
    // Blocks one after another along the memory; but where they share a table's rows, along the heads.
    let runs_inner = inner && on_the_fly;
    let [columns, rows] = if runs_inner { [runs, head_blocks] } else { [head_blocks, runs] };
    let layers = rows.div_ceil(MOST_ROWS);
    if columns >= 1 << 31 || layers > MOST_ROWS {
        return None;
    }
    let blocks = [columns, rows.div_ceil(layers), layers];
    let mut flags = walk.flags & !TOKENS_INNER;
    flags |= if runs_inner { RUNS_INNER } else { 0 } | if is_plain(walk) { PLAIN } else { 0 };
    let whole = Whole {
        lanes,
        tile_heads,
        tile_tokens,
        q_blocks,
        flags,
        tokens: walk.tokens,
        start: walk.rotated_at / vector,
        q: sides[0],
        seq: walk.seq,
        angles: own_angles(vector, walk)?,
        k: sides[1],
    };
    Some((whole, blocks, [lanes, tile_heads, tile_tokens]))
}

/// How many of the threads of all warps have work, of 1,024, if blocks have so many heads and tokens.
fn used([tile_heads, tile_tokens]: [u32; 2], lanes: u32, heads: [u32; 2], tokens: u32) -> u64 {
    let blocks = heads.map(|heads| u64::from(heads.div_ceil(tile_heads))).iter().sum::<u64>()
        * u64::from(tokens.div_ceil(tile_tokens));
    let warps = (lanes * tile_heads * tile_tokens).div_ceil(32);
    let work = u64::from(heads[0] + heads[1]) * u64::from(tokens) * u64::from(lanes);
    work * 32 / (blocks * u64::from(warps)).max(1)
}

/// A tensor whose strides count vectors, of threads of up to `share` heads; None where an offset into it has more than 32
/// bits.
fn side(side: &Side, vector: u32, share: u32, walk: &Walk) -> Option<WholeSide> {
    let share = if share > 1 && side.heads.is_multiple_of(2) { 2 } else { 1 };
    let strides = |[_, token, head]: [i64; 3]| {
        offsets([walk.tokens, side.heads], [token, head], vector, walk.rotated_at + 2 * walk.half)
    };
    let (input, output) = (strides(side.input)?, strides(side.output)?);
    // A thread's heads are neighbours: what its block reads of a token is one piece of memory.
    let apart = |[token, head]: [u32; 2]| [token, head.wrapping_mul(share)];
    Some(WholeSide {
        heads: side.heads / share,
        input: apart(input),
        output: apart(output),
        second: [input[1], output[1]],
        share,
        scale: side.scale,
    })
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use pointwise_core::rope::{Count, TOKENS_INNER, Walk};

    use super::super::tests::{SHAPES, side};
    use super::{MOST_ROWS, merged, whole};

    /// Each vector of a token and head has one thread.
    #[test]
    fn whole_covers_all() {
        for (tokens, q, k, half, _, vector) in SHAPES.into_iter().filter(|shape| shape.5 > 1) {
            for most in [32, 64, 96, 128, 256, 512] {
                for (share, flags, on_the_fly) in
                    [(1, 0, true), (2, 0, false), (1, TOKENS_INNER, true), (2, TOKENS_INNER, false)]
                {
                    let (q_side, k_side) = (side(q, 1), side(k, 1));
                    let walk =
                        Walk { q: q_side, k: k_side, tokens, seq: Count::new(tokens), half, flags, ..Walk::default() };
                    let what = format!("{tokens} {q} {k} {half} {vector}, {most}, {share}, {flags}");
                    let Some((whole, blocks, threads)) = whole(most, vector, share, on_the_fly, &walk) else {
                        assert!(half / vector > most, "{what}: no plan");
                        continue;
                    };
                    assert!(threads.iter().product::<u32>() <= most, "{what}: {threads:?}");
                    let mut seen = HashSet::new();
                    let each = |[a, b]: [u32; 2]| (0..a).flat_map(move |x| (0..b).map(move |y| [x, y]));
                    let rows = blocks[1];
                    assert_eq!(blocks[2], 1, "{what}");
                    for block in each([blocks[0], rows]).map(|[x, y]| [x, y, 0]) {
                        for [lane, head] in each([threads[0], threads[1]]) {
                            for place in (0..threads[2]).map(|token| whole.place(block, rows, [lane, head, token])) {
                                if !place.works {
                                    continue;
                                }
                                let side = if place.is_k { &whole.k } else { &whole.q };
                                for head in (0..side.share).map(|n| place.head * side.share + n) {
                                    let vector = (place.is_k, place.token, head, place.lane);
                                    assert!(seen.insert(vector), "{what}: {vector:?} twice");
                                    assert!(head < if place.is_k { k } else { q }, "{what}: {vector:?}");
                                    assert!(
                                        place.token < tokens && place.lane < half / vector_of(&whole, half),
                                        "{what}"
                                    );
                                }
                            }
                        }
                    }
                    assert_eq!(seen.len() as u32, tokens * (q + k) * half / vector, "{what}");
                }
            }
        }
    }

    fn vector_of(whole: &pointwise_core::rope::Whole, half: u32) -> u32 {
        half / whole.lanes
    }

    /// A grid's second dimension has an end, which blocks of tokens pass: they stay in the order of the memory.
    #[test]
    fn many_tokens_take_several_layers() {
        let (tokens, half, vector) = (200_001, 64, 8);
        let walk = Walk { q: side(32, 1), tokens, seq: Count::new(tokens), half, ..Walk::default() };
        let (whole, [columns, rows, layers], threads) = whole(128, vector, 2, true, &walk).unwrap();
        assert_eq!((columns, layers, threads), (1, 4, [8, 16, 1]));
        assert!(rows <= MOST_ROWS && rows * layers >= tokens);
        let token = |y, z| whole.place([0, y, z], rows, [0; 3]).token;
        assert_eq!([token(0, 0), token(rows - 1, 0), token(0, 1), token(7, 3)], [0, rows - 1, rows, 3 * rows + 7]);
        assert!(!whole.place([0, rows - 1, layers - 1], rows, [0; 3]).works);
    }

    #[test]
    fn the_batch_goes_where_its_strides_allow() {
        let of = |strides: [i64; 3], ids: i64| {
            let mut q = side(4, 1);
            (q.input, q.output) = (strides, strides);
            let walk = Walk { q, tokens: 2 * 6, seq: Count::new(6), ids: [ids, 1], ..Walk::default() };
            merged(&walk).map(|walk| (walk.tokens, walk.q.heads))
        };
        // BSHD, BHSD, SBHD of heads of 8 lanes; then a batch that is neither's.
        assert_eq!(of([6 * 32, 32, 8], 6), Some((12, 4)));
        assert_eq!(of([4 * 48, 8, 48], 0), Some((6, 8)));
        assert_eq!(of([32, 64, 8], 0), Some((6, 8)));
        assert_eq!(of([4 * 48, 8, 48], 6), None);
        assert_eq!(of([1000, 32, 8], 0), None);
    }
}
