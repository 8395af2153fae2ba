//! Threads that find their own cosines and sines in tables of the tensors' type, of heads all of whose lanes rotate.

use pointwise_core::DType;
use pointwise_core::rope::{BATCH_OFFSETS, IDS, PLAIN, Side, TOKENS_INNER, Walk, Whole, WholeSide};

use super::{
    MOST_THREADS, OWN_THREADS, Plan, Planned, Settings, Source, Template, is_plain, may_be_own, offsets, own_angles,
    own_vector, table_offsets,
};

/// CUDA's limit on the second dimension of a grid, and on the third.
const MOST_ROWS: u32 = 65_535;
/// CUDA's limit on the third dimension of a block.
const MOST_TOKENS: u32 = 64;

/// The plan of a call by tables of the tensors' type, of heads all of whose lanes rotate, in tensors of two dimensions above
/// them, if no other template is asked for. Calls of few tokens are 10 % faster by it, large ones 2 to 3 %; by other
/// sources, given positions, or where heads lie far apart, it gains nothing (H200, `docs/tuning.md`).
pub(super) fn plan(settings: &Settings, call: &Planned<'_>, walk: &Walk) -> Option<Plan> {
    let is_of_the_type = call.source == Source::OwnTables || call.source == Source::Tables && call.dtype == DType::F32;
    // The first row is read even where no position is in the table.
    let is_regular = walk.rest_lanes == 0 && walk.rows > 0 && walk.flags & (IDS | BATCH_OFFSETS | TOKENS_INNER) == 0;
    let is_asked_for = settings.heads_per_thread.is_none_or(|heads| heads == 1);
    if !(is_of_the_type && is_regular && is_asked_for && may_be_own(settings, walk)) {
        return None;
    }
    let walk = merged(walk)?;
    let (strategy, vector) = own_vector(settings, call, &walk)?;
    let most = settings.threads.unwrap_or(OWN_THREADS).min(MOST_THREADS);
    let (mut whole, blocks, threads) = whole(most, vector, &walk)?;
    whole.angles.tables = table_offsets(&walk)?;
    Some(Plan { strategy, blocks, threads, template: Template::Whole(whole) })
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
/// more than the threads, or offsets have more than 32 bits. The walk counts elements. The tables' strides are left out.
fn whole(most: u32, vector: u32, walk: &Walk) -> Option<(Whole, [u32; 3], [u32; 3])> {
    let lanes = walk.half / vector;
    let slots = most / lanes;
    let all = u64::from(walk.tokens) * (u64::from(walk.q.heads) + u64::from(walk.k.heads));
    if slots == 0 || all == 0 || all >= 1 << 30 {
        return None;
    }
    let heads = [walk.q.heads, walk.k.heads];
    let most_tokens = MOST_TOKENS.min(walk.tokens);
    // As few idle threads as can be, and as many heads, which lie together.
    let tile = |tile_heads: u32| [tile_heads, (slots / tile_heads).min(most_tokens)];
    let candidates = (1..=slots.min(heads[0].max(heads[1]))).map(tile);
    let [tile_heads, tile_tokens] =
        candidates.max_by_key(|[heads_, tokens]| (used([*heads_, *tokens], lanes, heads, walk.tokens), *heads_))?;
    let [q_blocks, k_blocks] = heads.map(|heads| heads.div_ceil(tile_heads));
    let runs = walk.tokens.div_ceil(tile_tokens);
    let layers = runs.div_ceil(MOST_ROWS);
    let blocks = [q_blocks + k_blocks, runs.div_ceil(layers), layers];
    let whole = Whole {
        lanes,
        tile_heads,
        tile_tokens,
        q_blocks,
        flags: walk.flags | if is_plain(walk) { PLAIN } else { 0 },
        tokens: walk.tokens,
        start: walk.rotated_at / vector,
        q: side(&walk.q, vector, walk)?,
        seq: walk.seq,
        angles: own_angles(vector, walk)?,
        k: side(&walk.k, vector, walk)?,
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

/// A tensor whose strides count vectors; None where an offset into it has more than 32 bits.
fn side(side: &Side, vector: u32, walk: &Walk) -> Option<WholeSide> {
    let dims = [walk.tokens, side.heads];
    let strides = |[_, token, head]: [i64; 3]| offsets(dims, [token, head], vector, walk.rotated_at + 2 * walk.half);
    Some(WholeSide { heads: side.heads, input: strides(side.input)?, output: strides(side.output)?, scale: side.scale })
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use pointwise_core::rope::{Count, Walk};

    use super::super::tests::{SHAPES, side};
    use super::{MOST_ROWS, merged, whole};

    fn walk(tokens: u32, q: u32, k: u32, half: u32) -> Walk {
        Walk { q: side(q, 1), k: side(k, 1), tokens, seq: Count::new(tokens), half, ..Walk::default() }
    }

    /// Each vector of a token and head has one thread.
    #[test]
    fn whole_covers_all() {
        for (tokens, q, k, half, _, vector) in SHAPES.into_iter().filter(|shape| shape.5 > 1) {
            for most in [32, 64, 96, 128, 256, 512] {
                let what = format!("{tokens} {q} {k} {half} {vector}, {most}");
                let Some((whole, [columns, rows, layers], threads)) = whole(most, vector, &walk(tokens, q, k, half))
                else {
                    assert!(half / vector > most, "{what}: no plan");
                    continue;
                };
                assert!(threads.iter().product::<u32>() <= most && layers == 1, "{what}: {threads:?} {layers}");
                let mut seen = HashSet::new();
                let each = |[a, b]: [u32; 2]| (0..a).flat_map(move |x| (0..b).map(move |y| [x, y]));
                for [x, y] in each([columns, rows]) {
                    for [lane, head] in each([threads[0], threads[1]]) {
                        let places = (0..threads[2]).map(|token| whole.place([x, y, 0], rows, [lane, head, token]));
                        for place in places.filter(|place| place.works) {
                            let heads = if place.is_k { k } else { q };
                            assert!(place.head < heads && place.lane < half / vector, "{what}: {place:?}");
                            let vector = (place.is_k, place.token, place.head, place.lane);
                            assert!(seen.insert(vector), "{what}: {vector:?} twice");
                        }
                    }
                }
                assert_eq!(seen.len() as u32, tokens * (q + k) * half / vector, "{what}");
            }
        }
    }

    /// A grid's second dimension has an end, which blocks of tokens pass: they stay in the order of the memory.
    #[test]
    fn many_tokens_take_several_layers() {
        let tokens = 200_001;
        let (whole, [columns, rows, layers], threads) = whole(128, 8, &walk(tokens, 32, 0, 64)).unwrap();
        assert_eq!((columns, layers, threads), (2, 4, [8, 16, 1]));
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
