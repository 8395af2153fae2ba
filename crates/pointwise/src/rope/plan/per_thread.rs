//! Plans of threads that find their own cosines and sines, for any heads.

use pointwise_core::rope::{CHUNK, Count, PLAIN, PerThread, PerThreadSide, RopeWalk, Side, TOKENS_INNER};

use super::{
    MOST_THREADS, OWN_THREADS, Planned, RopePlan, Settings, Source, Template, group, is_enough, is_on_the_fly,
    is_plain, may_be_own, offsets, own_angles, own_vector, reads_much, table_offsets,
};

/// If heads lie far apart, blocks follow one another along the tokens of a head. The table rows that one head reads
/// take at most the level-2 cache over this: the next head's blocks find them there, beside all other data. Llama 3 8B
/// in bf16 took 231 us with all 32,768 tokens of a head in turn, and 183 with fewer (H200, f32 tables).
const TABLE_SHARE: u64 = 12;
/// CUDA's limit on the y dimension of a grid.
const MOST_LAYERS: u32 = 65_535;

/// Plans a call whose threads find their own angles; `None` if that cannot serve or another template is asked for. On
/// an H200 it was faster, or less than 2 % slower, for all models, layouts and sizes, except for calls of
/// [`reads_much`] (`docs/notebook/rope.md`).
pub(super) fn plan(settings: &Settings, call: &Planned<'_>, walk: &RopeWalk) -> Option<RopePlan> {
    if !may_be_own(settings, walk) {
        return None;
    }
    let (strategy, vector) = own_vector(settings, call, walk)?;
    let share = settings.heads_per_thread.unwrap_or_else(|| {
        // With fewer tokens two heads a thread are faster, though there are enough threads: 512 of Llama 3 8B took 7.8
        // us, not 8.3.
        if reads_much(call, walk) && is_enough(call, walk, 4 * CHUNK) {
            CHUNK
        } else if is_enough(call, walk, 2) {
            2
        } else {
            1
        }
    });
    let mut walk = *walk;
    group(&mut walk, share);
    let most = settings.threads.unwrap_or(OWN_THREADS).min(MOST_THREADS);
    let (mut per_thread, [blocks, layers], threads) = per_thread(most, tokens_of_a_layer(call, &walk), vector, &walk)?;
    if !is_on_the_fly(call.source) {
        per_thread.angles.tables = table_offsets(&walk)?;
    }
    Some(RopePlan {
        strategy,
        blocks: [blocks, layers, 1],
        threads: [threads, 1, 1],
        template: Template::PerThread(per_thread),
    })
}

/// If heads lie far apart, the tokens of a head that follow one another before the next head's.
fn tokens_of_a_layer(call: &Planned<'_>, walk: &RopeWalk) -> u32 {
    let numbers = match call.source {
        Source::Hf | Source::Exact => return u32::MAX,
        Source::Angles => 4,
        Source::Tables => 8,
        Source::OwnTables => 2 * call.dtype.size() as u64,
    };
    let row = u64::from(walk.half.max(1)) * numbers;
    u32::try_from((call.l2_bytes / TABLE_SHARE / row).max(1)).unwrap_or(u32::MAX)
}

/// Returns the kernel's parameters for blocks of at most `most` threads, the grid's blocks and layers, and the threads
/// of a block. If heads lie far apart, a layer has about `most_tokens` at most. `None` if a token's lanes are more than
/// the threads, offsets have more than 32 bits, or tokens times heads are too many. The walk counts elements. The
/// tables' strides are left out.
fn per_thread(most: u32, most_tokens: u32, vector: u32, walk: &RopeWalk) -> Option<(PerThread, [u32; 2], u32)> {
    let (pairs, rest) = (walk.half / vector, walk.rest_lanes / vector);
    let rest_threads = rest.div_ceil(2);
    let (lanes, groups) = (pairs + rest_threads, [walk.q.groups, walk.k.groups]);
    let all = u64::from(walk.tokens) * u64::from(groups[0] + groups[1]);
    let most_slots = most / lanes;
    if most_slots == 0 || all >= 1 << 30 {
        return None;
    }
    let threads = |slots: u32| (slots * lanes).next_multiple_of(32);
    let mut per_thread = PerThread {
        pair_lanes: Count::new(pairs),
        rest_lanes: Count::new(rest_threads),
        tokens: walk.tokens,
        seq: walk.seq,
        flags: walk.flags,
        rotated_at: walk.rotated_at / vector,
        rest_at: walk.rest_at / vector,
        rest,
        angles: own_angles(vector, walk)?,
        q: per_thread_side(&walk.q, vector, walk)?,
        k: per_thread_side(&walk.k, vector, walk)?,
        ..PerThread::default()
    };
    if is_plain(walk) {
        per_thread.flags |= PLAIN;
    }
    let (slots, blocks);
    let mut layers = 1;
    if walk.flags & TOKENS_INNER != 0 {
        // A block takes tokens of one head, or of several heads if one head has too few.
        per_thread.token_bits = most_slots.min(walk.tokens.next_power_of_two()).ilog2();
        let tokens = 1 << per_thread.token_bits;
        per_thread.part_groups = (most_slots / tokens).min(groups[0]).max(1);
        slots = tokens * per_thread.part_groups;
        let (runs, parts) =
            (walk.tokens.div_ceil(tokens), groups.map(|groups| groups.div_ceil(per_thread.part_groups)));
        layers = runs.div_ceil((most_tokens / tokens).max(1)).min(MOST_LAYERS);
        let runs = runs.div_ceil(layers);
        blocks = parts.map(|parts| parts * runs);
        per_thread.block_slots = 1;
        (per_thread.q.parts, per_thread.k.parts) = (Count::new(runs), Count::new(runs));
    } else {
        let most_slots = u64::from(most_slots).min(u64::from(walk.tokens) * u64::from(groups[0])) as u32;
        // As few idle threads as can be.
        let used = |slots: u32| u64::from(slots * lanes) * 1024 / u64::from(threads(slots));
        slots = (most_slots / 2 + 1..=most_slots).max_by_key(|slots| used(*slots)).unwrap_or(1);
        blocks = groups.map(|groups| (walk.tokens * groups).div_ceil(slots));
        (per_thread.slot_mask, per_thread.block_slots, per_thread.part_groups) = (u32::MAX, slots, 1);
        (per_thread.q.parts, per_thread.k.parts) = (Count::new(groups[0]), Count::new(groups[1]));
    }
    per_thread.q_blocks = blocks[0];
    per_thread.threads = [slots * pairs, slots * lanes];
    Some((per_thread, [blocks[0] + blocks[1], layers], threads(slots)))
}

/// A tensor with strides in vectors; `None` if an offset into it has more than 32 bits.
fn per_thread_side(side: &Side, vector: u32, walk: &RopeWalk) -> Option<PerThreadSide> {
    let dims = [walk.tokens / walk.seq.size, walk.seq.size, side.heads];
    let lanes = (walk.rotated_at + 2 * walk.half).max(walk.rest_at + walk.rest_lanes);
    let strides = |strides| offsets(dims, strides, vector, lanes);
    let (input, output) = (strides(side.input)?, strides(side.output)?);
    // It wraps only if no thread has a second head.
    let step = [input[2], output[2]].map(|stride| stride.wrapping_mul(side.groups));
    Some(PerThreadSide {
        input,
        output,
        heads: side.heads,
        groups: side.groups,
        step,
        scale: side.scale,
        ..Default::default()
    })
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use pointwise_core::rope::{Count, RopeWalk, Side, TOKENS_INNER};

    use super::super::tests::{SHAPES, side};
    use super::{CHUNK, per_thread};

    /// If threads find their own angles, too, each vector of a token and group has one thread.
    #[test]
    fn per_thread_covers_all() {
        for (tokens, q, k, half, rest_lanes, vector) in SHAPES.into_iter().filter(|shape| shape.5 > 1) {
            for most in [32, 64, 96, 128, 256, 512] {
                let ways = [
                    (1, 0, u32::MAX),
                    (CHUNK, 0, u32::MAX),
                    (1, TOKENS_INNER, 8),
                    (3, TOKENS_INNER, u32::MAX),
                    (2, TOKENS_INNER, 1),
                ];
                for (share, flags, tokens_at_once) in ways {
                    let walk = RopeWalk {
                        q: side(q, share),
                        k: side(k, share),
                        tokens,
                        seq: Count::new(tokens),
                        rest_lanes,
                        half,
                        flags,
                        ..RopeWalk::default()
                    };
                    let what = format!(
                        "{tokens} {q} {k} {half} {rest_lanes} {vector}, {most}, {share}, {flags}, {tokens_at_once}"
                    );
                    let lanes = half / vector + (rest_lanes / vector).div_ceil(2);
                    let Some((per_thread, [blocks, layers], threads)) = per_thread(most, tokens_at_once, vector, &walk)
                    else {
                        assert!(lanes > most, "{what}: no plan");
                        continue;
                    };
                    assert!(threads <= most && threads % 32 == 0 && threads > 0, "{what}: {threads} threads");
                    let mut seen = HashSet::new();
                    for block in (0..layers).flat_map(|layer| (0..blocks).map(move |block| [block, layer])) {
                        for place in
                            (0..threads).map(|thread| per_thread.place(block, thread)).filter(|place| place.works)
                        {
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

    /// The last lane counts, wherever the lanes are in a head.
    #[test]
    fn per_thread_leaves_offsets_beyond_32_bits_to_others() {
        let reach = |stride: u32, [rotated_at, rest_at]: [u32; 2]| {
            let strides = [0, 8 * i64::from(stride), 0];
            let q = Side { input: strides, output: strides, ..side(1, 1) };
            let walk = RopeWalk {
                q,
                tokens: 2,
                seq: Count::new(2),
                half: 32,
                rest_lanes: 64,
                rotated_at,
                rest_at,
                ..RopeWalk::default()
            };
            per_thread(128, u32::MAX, 8, &walk).is_some()
        };
        for lanes in [[0, 64], [64, 0]] {
            assert_eq!([16, 15].map(|rest| reach(u32::MAX - rest, lanes)), [true, false], "{lanes:?}");
        }
        let many = |tokens| {
            let walk = RopeWalk { q: side(16, 1), tokens, seq: Count::new(tokens), half: 64, ..RopeWalk::default() };
            per_thread(128, u32::MAX, 8, &walk).is_some()
        };
        assert_eq!([(1 << 26) - 1, 1 << 26].map(many), [true, false]);
    }
}
