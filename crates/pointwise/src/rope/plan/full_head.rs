//! Plans of threads that find their own cosines and sines in tables of the tensors' type, for heads whose lanes all
//! rotate.

use pointwise_core::DType;
use pointwise_core::rope::{
    BATCH_OFFSETS, Count, FullHead, FullHeadSide, IDS, NEIGHBOURS, PLAIN, RopeWalk, Side, TOKENS_INNER, WIDE_IDS,
};

use super::{
    MOST_THREADS, OWN_THREADS, Planned, RopePlan, Settings, Source, Template, is_plain, may_be_own, offsets,
    table_offsets, widest_vector,
};

/// CUDA's limit on the second dimension of a grid, and on the third.
const MOST_ROWS: u32 = 65_535;
/// CUDA's limit on the third dimension of a block.
const MOST_TOKENS: u32 = 64;

/// The kernel's parameters, its kind, and the offsets of the addresses it gets.
#[derive(Debug, Clone, Copy)]
pub(in crate::rope) struct FullHeadPlan {
    pub(in crate::rope) walk: FullHead,
    pub(in crate::rope) kind: FullHeadKind,
    /// Bytes in front of the first lane that rotates, in each head.
    pub(in crate::rope) lanes_before: usize,
    /// Bytes in front of the first position's row, in each table.
    pub(in crate::rope) rows_before: [usize; 2],
}

/// The pairs and positions of a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::rope) enum FullHeadKind {
    /// Pairs are half the lanes apart; positions are the tokens' numbers.
    Plain,
    /// Likewise, with given positions.
    Ids,
    /// Pairs are neighbours.
    Pairs,
}

/// Plans a call by tables of the tensors' type, for heads whose lanes all rotate; `None` for other calls, and if
/// another template is asked for. Calls of few tokens are 10 % faster by it, large ones 2 to 3 %. By other sources, or
/// if heads lie far apart, it gains nothing (H200, `docs/notebook/rope.md`).
pub(super) fn plan(settings: &Settings, call: &Planned<'_>, walk: &RopeWalk) -> Option<RopePlan> {
    let is_of_the_type = call.source == Source::OwnTables || call.source == Source::Tables && call.dtype == DType::F32;
    let is_regular = walk.rest_lanes == 0 && walk.flags & (BATCH_OFFSETS | TOKENS_INNER) == 0;
    let is_asked_for = settings.heads_per_thread.is_none_or(|heads| heads == 1);
    if !(is_of_the_type && is_regular && is_asked_for && may_be_own(settings, walk)) {
        return None;
    }
    let kind = match (walk.flags & IDS != 0, walk.flags & NEIGHBOURS != 0) {
        (false, false) => FullHeadKind::Plain,
        (true, false) => FullHeadKind::Ids,
        (false, true) => FullHeadKind::Pairs,
        (true, true) => return None,
    };
    // A table without a number of rows has one for each token.
    let rows = if walk.rows == i64::MAX { i64::from(walk.seq.size) } else { walk.rows };
    let row = if kind == FullHeadKind::Ids { 0 } else { walk.offset };
    // The kernel reads the first row even if no given position is in the table.
    let last = if kind == FullHeadKind::Ids { 0 } else { walk.offset.checked_add(i64::from(walk.seq.size) - 1)? };
    if row < 0 || last >= rows {
        return None;
    }
    let walk = merged(walk)?;
    let (strategy, vector) = widest_vector(settings.strategy, call, &walk)?;
    let most = settings.threads.unwrap_or(OWN_THREADS).min(MOST_THREADS);
    let (mut full_head, blocks, threads) = full_head(most, vector, &walk)?;
    let size = call.dtype.size();
    let before = |[_, stride]: [i64; 2]| usize::try_from(row.checked_mul(stride)?).ok()?.checked_mul(size);
    let rows_before = [before(walk.first)?, before(walk.second)?];
    full_head.tables = table_offsets(&walk)?;
    let plan = FullHeadPlan { walk: full_head, kind, lanes_before: walk.rotated_at as usize * size, rows_before };
    Some(RopePlan { strategy, blocks, threads, template: Template::FullHead(plan) })
}

/// Merges the batch into tokens, if positions are given, or else into heads, where strides allow. A batch that is left
/// is the grid's third dimension.
fn merged(walk: &RopeWalk) -> Option<RopeWalk> {
    let (batch, seq) = (walk.tokens / walk.seq.size, walk.seq.size);
    let sides = [walk.q, walk.k].into_iter().filter(|side| side.heads > 0);
    let strides = || sides.clone().flat_map(|side| [(side.heads, side.input), (side.heads, side.output)]);
    let is_multiple = |size: u32, stride: i64, of: i64| stride.checked_mul(i64::from(size)) == Some(of);
    let is_one_table = [walk.first[0], walk.second[0]] == [0; 2];
    if batch > 1 && is_one_table {
        if walk.flags & IDS != 0 {
            let [apart, step] = walk.ids;
            if is_multiple(seq, step, apart) && strides().all(|(_, [batch, token, _])| is_multiple(seq, token, batch)) {
                return Some(RopeWalk { seq: Count::new(walk.tokens), ..*walk });
            }
        } else if strides().all(|(heads, [batch, _, head])| is_multiple(heads, head, batch)) {
            let mut merged = RopeWalk { tokens: seq, ..*walk };
            for side in [&mut merged.q, &mut merged.k] {
                side.heads = side.heads.checked_mul(batch)?;
            }
            return Some(merged);
        }
    }
    Some(*walk)
}

/// Returns the kernel's parameters for blocks of at most `most` threads, the number of blocks, and the threads of each.
/// `None` if a head's lanes are more than the threads, offsets have more than 32 bits, or batch entries or their tokens
/// are too many for a grid. The walk counts elements. The tables' strides are left out.
fn full_head(most: u32, vector: u32, walk: &RopeWalk) -> Option<(FullHead, [u32; 3], [u32; 3])> {
    let lanes = walk.half / vector;
    let slots = most / lanes;
    let (batch, tokens) = (walk.tokens / walk.seq.size, walk.seq.size);
    let all = u64::from(walk.tokens) * (u64::from(walk.q.heads) + u64::from(walk.k.heads));
    if slots == 0 || all == 0 || all >= 1 << 30 {
        return None;
    }
    let heads = [walk.q.heads, walk.k.heads];
    let most_tokens = MOST_TOKENS.min(tokens);
    // The fewest idle threads, to an eighth, then the most heads, which lie together. Heads of 80 lanes in 16 bits, of
    // 5 threads each, took 12 % longer in blocks of 25 tokens of one head (H200, `docs/notebook/rope.md`).
    let tile = |tile_heads: u32| [tile_heads, (slots / tile_heads).min(most_tokens)];
    let candidates = (1..=slots.min(heads[0].max(heads[1]))).map(tile);
    let [tile_heads, tile_tokens] =
        candidates.max_by_key(|[heads_, tokens_]| (used([*heads_, *tokens_], lanes, heads, tokens), *heads_))?;
    let [q_blocks, k_blocks] = heads.map(|heads| heads.div_ceil(tile_heads));
    let runs = tokens.div_ceil(tile_tokens);
    let layers = runs.div_ceil(MOST_ROWS);
    if layers.max(batch) > MOST_ROWS || layers > 1 && batch > 1 {
        return None;
    }
    let rows = runs.div_ceil(layers);
    let is_wide = walk.flags & WIDE_IDS != 0;
    let ids = walk.ids.map(|stride| stride.saturating_mul(if is_wide { 2 } else { 1 }));
    let full_head = FullHead {
        tokens,
        layer: if layers > 1 { rows * tile_tokens } else { 0 },
        q_blocks,
        q: side(&walk.q, vector, walk)?,
        flags: walk.flags | if is_plain(walk) { PLAIN } else { 0 },
        ids: offsets([batch, tokens], ids, 1, 1)?,
        factor: walk.factor,
        offset: walk.offset,
        rows: walk.rows,
        sin_sign: walk.sin_sign,
        k: side(&walk.k, vector, walk)?,
        scales: [walk.q.scale, walk.k.scale],
        ..FullHead::default()
    };
    Some((full_head, [q_blocks + k_blocks, rows, layers.max(batch)], [lanes, tile_heads, tile_tokens]))
}

/// The share of threads of all warps that have work, in eighths, if blocks have these heads and tokens.
fn used([tile_heads, tile_tokens]: [u32; 2], lanes: u32, heads: [u32; 2], tokens: u32) -> u64 {
    let blocks = heads.map(|heads| u64::from(heads.div_ceil(tile_heads))).iter().sum::<u64>()
        * u64::from(tokens.div_ceil(tile_tokens));
    let warps = (lanes * tile_heads * tile_tokens).div_ceil(32);
    let work = u64::from(heads[0] + heads[1]) * u64::from(tokens) * u64::from(lanes);
    work / (blocks * u64::from(warps) * 4).max(1)
}

/// A tensor with strides in vectors; `None` if an offset into it has more than 32 bits.
fn side(side: &Side, vector: u32, walk: &RopeWalk) -> Option<FullHeadSide> {
    // With one batch entry `offsets` gives 0: layers have no stride.
    let dims = [walk.tokens / walk.seq.size, walk.seq.size, side.heads];
    let strides = |strides: [i64; 3]| offsets(dims, strides, vector, walk.rotated_at + 2 * walk.half);
    Some(FullHeadSide { heads: side.heads, input: strides(side.input)?, output: strides(side.output)? })
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use pointwise_core::DType;
    use pointwise_core::rope::{Count, IDS, RopeWalk, WIDE_IDS};

    use super::super::tests::{SHAPES, side};
    use super::super::{Planned, Pointers, Settings, Source};
    use super::{MOST_ROWS, full_head, merged, plan};

    fn walk(batch: u32, seq: u32, q: u32, k: u32, half: u32) -> RopeWalk {
        RopeWalk {
            q: side(q, 1),
            k: side(k, 1),
            tokens: batch * seq,
            seq: Count::new(seq),
            half,
            ..RopeWalk::default()
        }
    }

    /// Each vector of a token and head has one thread.
    #[test]
    fn full_head_covers_all() {
        for (seq, q, k, half, _, vector) in SHAPES.into_iter().filter(|shape| shape.5 > 1) {
            for (most, batch) in [(32, 1), (64, 3), (96, 1), (128, 2), (256, 1), (512, 1)] {
                let what = format!("{batch} {seq} {q} {k} {half} {vector}, {most}");
                let Some((full_head, blocks, threads)) = full_head(most, vector, &walk(batch, seq, q, k, half)) else {
                    assert!(half / vector > most, "{what}: no plan");
                    continue;
                };
                assert!(threads.iter().product::<u32>() <= most && threads[0] == half / vector, "{what}: {threads:?}");
                let mut seen = HashSet::new();
                let each = |[a, b, c]: [u32; 3]| {
                    (0..a).flat_map(move |x| (0..b).flat_map(move |y| (0..c).map(move |z| [x, y, z])))
                };
                for block in each(blocks) {
                    let places = each(threads).map(|thread| (thread, full_head.place(block, threads, thread)));
                    for ([lane, ..], place) in places.filter(|(_, place)| place.works) {
                        let heads = if place.is_k { k } else { q };
                        assert!(place.head < heads && place.token < seq, "{what}: {place:?}");
                        let vector = (place.is_k, block[2], place.token, place.head, lane);
                        assert!(seen.insert(vector), "{what}: {vector:?} twice");
                    }
                }
                assert_eq!(seen.len() as u32, batch * seq * (q + k) * half / vector, "{what}");
            }
        }
    }

    #[test]
    fn blocks_have_heads_that_lie_together() {
        let threads = |lanes: u32, vector| full_head(128, vector, &walk(1, 4096, 32, 0, lanes / 2)).unwrap().2;
        assert_eq!(
            [64, 80, 96, 112, 128].map(|lanes| threads(lanes, 8)),
            [[4, 32, 1], [5, 8, 3], [6, 16, 1], [7, 18, 1], [8, 16, 1]]
        );
        assert_eq!([64, 80, 96, 128].map(|lanes| threads(lanes, 4)), [[8, 16, 1], [10, 4, 3], [12, 8, 1], [16, 8, 1]]);
    }

    /// If a grid's second dimension has no room for all blocks of tokens, they go on in layers, in the order of the
    /// memory. There is no plan then for several batch entries, which need the third dimension.
    #[test]
    fn many_tokens_take_several_layers() {
        let tokens = 200_001;
        let (one, [columns, rows, layers], threads) = full_head(128, 8, &walk(1, tokens, 32, 0, 64)).unwrap();
        assert_eq!((columns, layers, threads), (2, 4, [8, 16, 1]));
        assert!(rows <= MOST_ROWS && rows * layers >= tokens);
        let token = |y, z| one.place([0, y, z], threads, [0; 3]).token;
        assert_eq!([token(0, 0), token(rows - 1, 0), token(0, 1), token(7, 3)], [0, rows - 1, rows, 3 * rows + 7]);
        assert!(!one.place([0, rows - 1, layers - 1], threads, [0; 3]).works);
        assert!(full_head(128, 8, &walk(2, tokens, 32, 0, 64)).is_none());
        assert!(full_head(128, 8, &walk(MOST_ROWS + 1, 1, 1, 0, 64)).is_none());
    }

    /// The kernel does not check for a missing row, so the plan does.
    #[test]
    fn rows_are_those_of_the_table() {
        let (from, to) = (std::ptr::null(), std::ptr::null_mut());
        let [ids, starts, first, second] = [from; 4];
        let pointers = &Pointers { qx: from, qy: to, kx: from, ky: to, ids, starts, first, second };
        let (dtype, source) = (DType::BF16, Source::OwnTables);
        let call = Planned { multiprocessors: 132, l2_bytes: 60 << 20, dtype, source, pointers };
        let is_served = |offset, rows, flags| {
            let tables = [0, 64];
            let walk = RopeWalk { offset, rows, first: tables, second: tables, flags, ..walk(1, 16, 4, 4, 64) };
            plan(&Settings::default(), &call, &walk).is_some()
        };
        assert_eq!([15, 16, i64::MAX].map(|rows| is_served(0, rows, 0)), [false, true, true]);
        assert_eq!([19, 20].map(|rows| is_served(4, rows, 0)), [false, true]);
        assert!(!is_served(-1, 16, 0));
        // The kernel checks given positions, but needs at least one row.
        assert_eq!([0, 1].map(|rows| is_served(-1, rows, IDS)), [false, true]);
    }

    #[test]
    fn positions_of_64_bits_are_two_words_apart() {
        let ids = |flags| full_head(128, 8, &RopeWalk { ids: [6, 1], flags, ..walk(2, 6, 4, 0, 64) }).unwrap().0.ids;
        assert_eq!([IDS, IDS | WIDE_IDS].map(ids), [[6, 1], [12, 2]]);
    }

    #[test]
    fn the_batch_goes_where_its_strides_allow() {
        let of = |strides: [i64; 3], flags: u32, ids: i64, table: i64| {
            let mut q = side(4, 1);
            (q.input, q.output) = (strides, strides);
            let (seq, first) = (Count::new(6), [table, 8]);
            let walk = RopeWalk { q, tokens: 2 * 6, seq, ids: [ids, 1], first, flags, ..RopeWalk::default() };
            let merged = merged(&walk).unwrap();
            (merged.tokens, merged.seq.size, merged.q.heads)
        };
        // BSHD, BHSD, SBHD of heads of 8 lanes, without positions and with them; then a batch with gaps.
        let [bshd, bhsd, sbhd] = [[6 * 32, 32, 8], [4 * 48, 8, 48], [32, 64, 8]];
        assert_eq!(of(bshd, 0, 0, 0), (12, 6, 4));
        assert_eq!(of(bhsd, 0, 0, 0), (6, 6, 8));
        assert_eq!(of(sbhd, 0, 0, 0), (6, 6, 8));
        assert_eq!(of(bshd, IDS, 6, 0), (12, 12, 4));
        assert_eq!(of(bshd, IDS, 7, 0), (12, 6, 4));
        assert_eq!(of(sbhd, IDS, 6, 0), (12, 6, 4));
        assert_eq!(of(sbhd, 0, 0, 48), (12, 6, 4));
        assert_eq!(of([1000, 32, 8], 0, 0, 0), (12, 6, 4));
    }
}
