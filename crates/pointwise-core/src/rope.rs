//! Rotary position embedding: the rotation, the two ways to an angle, and what kernels and host must agree on.

use crate::element::Element;
use crate::maths;
use crate::num::{Coarse, Num};

/// `(x1 cos - x2 sin, x2 cos + x1 sin)`: the products are rounded, then their sum, as HF's code in f32 does it.
#[inline(always)]
pub fn rotate<T: Num>(x1: T, x2: T, cos: T, sin: T) -> (T, T) {
    (x1 * cos - x2 * sin, x2 * cos + x1 * sin)
}

/// Sine and cosine of the f32 product `position · inv_freq`, as models were trained (`precision=hf`).
#[inline(always)]
pub fn sincos_hf(position: i64, inv_freq: f32) -> (f32, f32) {
    maths::sincos_tight(position as f32 * inv_freq)
}

/// Sine and cosine of `position` times a frequency in units of 2^-64 turns (`precision=exact`): within 2e-7 at every
/// position, as the product modulo a turn is exact.
#[inline(always)]
pub fn sincos_exact(position: i64, turns: u64) -> (f32, f32) {
    // Two's complement makes this right for negative positions too.
    let turned = (position as u64).wrapping_mul(turns);
    // The nearest quarter turn goes in integers, so that the conversion to f32 rounds an eighth of a turn at most.
    let quarter = turned.wrapping_add(1 << 61) >> 62;
    let rest = turned.wrapping_sub(quarter << 62) as i64;
    // sin(pi x) with x = 2 rest / 2^64, of which the upper 32 bits are enough for an error of 2^-32.
    let (sin, cos) = maths::sincospi((rest >> 31) as i32 as f32 * f32::from_bits((127 - 32) << 23));
    let (sin, cos) = if quarter & 1 != 0 { (cos, -sin) } else { (sin, cos) };
    if quarter & 2 != 0 { (-sin, -cos) } else { (sin, cos) }
}

/// The element types that RoPE takes: their maths runs in f32.
pub trait RopeElement: Element {
    /// A widened element as f32.
    fn to_f32(value: Self::Compute) -> f32;
    /// A result in the compute type, not yet rounded.
    fn from_f32(value: f32) -> Self::Compute;
}

impl RopeElement for f32 {
    #[inline(always)]
    fn to_f32(value: f32) -> f32 {
        value
    }
    #[inline(always)]
    fn from_f32(value: f32) -> f32 {
        value
    }
}

macro_rules! coarse {
    ($($t:ty)*) => { $(
        impl RopeElement for $t {
            #[inline(always)]
            fn to_f32(value: Coarse) -> f32 {
                value.0
            }
            #[inline(always)]
            fn from_f32(value: f32) -> Coarse {
                Coarse(value)
            }
        }
    )* };
}
coarse!(crate::f16 crate::bf16);

/// Heads whose loads a thread has in flight at once.
pub const CHUNK: u32 = 4;

/// Input pairs are neighbours (GPT-J), not half the rotated lanes apart (NeoX).
pub const INTERLEAVED_IN: u32 = 1;
/// As [`INTERLEAVED_IN`], of the output.
pub const INTERLEAVED_OUT: u32 = 2;
/// Pairs are neighbours before and after.
pub const NEIGHBOURS: u32 = INTERLEAVED_IN | INTERLEAVED_OUT;
/// Neighbouring threads take neighbouring tokens, not neighbouring heads.
pub const TOKENS_INNER: u32 = 4;
/// Positions are 64-bit integers, not 32-bit ones.
pub const WIDE_IDS: u32 = 8;
/// A position for each token.
pub const IDS: u32 = 16;
/// An offset for each batch entry, added to the row.
pub const BATCH_OFFSETS: u32 = 32;
/// Sequences one after another, by their cumulative lengths.
pub const SEQUENCES: u32 = 64;
/// Three positions for each token, of which each pair takes one by [`Walk::sections`]; with [`IDS`].
pub const AXES: u32 = 128;
/// Pairs take the positions of [`AXES`] in turn, not section by section.
pub const AXES_IN_TURN: u32 = 256;
/// Of [`Solo`]: neighbouring blocks take neighbouring tokens.
pub const RUNS_INNER: u32 = 512;
/// Of [`Solo`]: nothing multiplies cosines and sines.
pub const PLAIN: u32 = 1024;

/// Cosines, and as many sines, that a block of threads can hold.
pub const TABLE: u32 = 1024;

/// The pair of number `slot` among a head's, where a thread has the pairs of two vectors of `vector` elements, those of
/// slots `lane vector` and up: where pairs are neighbours the vectors lie `half` lanes apart, so that the loads of
/// neighbouring threads do too.
#[inline(always)]
#[must_use]
pub const fn pair_of(slot: u32, vector: u32, half: u32, flags: u32) -> u32 {
    if vector == 1 || flags & NEIGHBOURS != NEIGHBOURS {
        return slot;
    }
    let (lane, i) = (slot / vector, slot % vector);
    let far = i >= vector / 2;
    lane * (vector / 2) + i % (vector / 2) + if far { half / 2 } else { 0 }
}

/// Which of the three positions of a token (time, height, width) a pair takes.
#[inline(always)]
#[must_use]
pub const fn axis(pair: u32, [time, height, width]: [u32; 3], in_turn: bool) -> u32 {
    if in_turn {
        // As far as height and width reach; the rest is time's.
        let (third, axis) = (pair / 3, pair % 3);
        let reach = if axis == 1 { height } else { width };
        if third < reach { axis } else { 0 }
    } else {
        (pair >= time) as u32 + (pair >= time + height) as u32
    }
}

/// Division of an index by a number known to the host alone, as a multiplication and a shift (Granlund and Montgomery
/// 1994). Unlike [`crate::launch::Divisor`] it divides by 1 too, which heads and tokens often number.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Count {
    /// What is divided by, from 1 to 2^31.
    pub size: u32,
    multiplier: u32,
    shift: u32,
}

impl Count {
    /// Of a number up to 2^31; 0 counts as 1.
    #[must_use]
    pub const fn new(size: u32) -> Count {
        let size = if size == 0 { 1 } else { size };
        // ceil(2^(31 + shift) / size) with shift = ceil(log2 size) is below 2^32, and too large by less than one part
        // in 2^31.
        let shift = 32 - (size - 1).leading_zeros();
        Count { size, multiplier: (1_u64 << (31 + shift)).div_ceil(size as u64) as u32, shift }
    }

    /// The one or the other, number by number: as a whole a GPU's compiler would put them together from 64-bit halves.
    #[inline(always)]
    fn either(first: bool, one: &Count, other: &Count) -> Count {
        let pick = |one: u32, other: u32| if first { one } else { other };
        Count {
            size: pick(one.size, other.size),
            multiplier: pick(one.multiplier, other.multiplier),
            shift: pick(one.shift, other.shift),
        }
    }

    /// `(n / size, n % size)` for `n < 2^31`.
    #[inline(always)]
    #[must_use]
    pub fn divide(self, n: u32) -> (u32, u32) {
        // The upper half of a product of 32 bits, and a shift of 32 bits: what a GPU has instructions for.
        let quotient = maths::prim::upper_half(2 * n, self.multiplier) >> (self.shift & 31);
        (quotient, n.wrapping_sub(quotient.wrapping_mul(self.size)))
    }
}

impl Default for Count {
    fn default() -> Count {
        Count::new(1)
    }
}

/// One tensor of a launch, q or k. Strides are in elements, of batch, token and head.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Side {
    /// Heads; 0 where the tensor is absent.
    pub heads: u32,
    /// Groups of heads, a thread each for every lane: group `g` has heads `g`, `g + groups`, ...
    pub groups: u32,
    /// Strides of the input.
    pub input: [i64; 3],
    /// Strides of the output.
    pub output: [i64; 3],
    /// From one head of a thread to its next, in input and output.
    pub step: [i64; 2],
    /// Multiplies every lane.
    pub scale: f32,
}

/// What a block of threads does: some tokens, some groups of heads, some lanes. Its threads for pairs come first, then
/// those for the lanes that pass through; each kind counts lanes, then tokens and groups.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Tile {
    /// Tokens.
    pub tokens: u32,
    /// Groups of heads.
    pub groups: u32,
    /// Threads for pairs, of a token and group.
    pub pair_lanes: Count,
    /// Threads for lanes that pass through, of a token and group.
    pub rest_lanes: Count,
    /// Pairs of a token: those of its threads for pairs.
    pub pairs: u32,
    /// Threads that compute a token's cosines and sines: thread `t` those of pair `t`, `t + sharers`, ...; with
    /// [`AXES`] as many as pairs.
    pub sharers: Count,
    /// The groups, or with [`TOKENS_INNER`] the tokens: what neighbouring threads take, after the lanes.
    pub inner: Count,
    /// Blocks for the groups and lanes of a token, or with [`TOKENS_INNER`] for all tokens: what neighbouring blocks
    /// take.
    pub blocks: Count,
    /// Blocks for the lanes of a token and group.
    pub lane_blocks: Count,
}

/// What a launch does, but for the addresses: kernels take no pointers in structs.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Walk {
    /// The first tensor.
    pub q: Side,
    /// The second tensor.
    pub k: Side,
    /// Batch entries times tokens of each.
    pub tokens: u32,
    /// Tokens of a batch entry.
    pub seq: Count,
    /// What a block does. The CPU has no blocks.
    pub tile: Tile,
    /// Threads for the pairs of a head.
    pub pair_lanes: u32,
    /// Threads for the lanes of a head that pass through.
    pub rest_lanes: u32,
    /// The first rotated lane.
    pub rotated_at: u32,
    /// Half the rotated lanes.
    pub half: u32,
    /// The first lane that passes through.
    pub rest_at: u32,
    /// The flags of this module.
    pub flags: u32,
    /// Sequences of [`SEQUENCES`].
    pub sequences: u32,
    /// Multiplies cosine and sine.
    pub factor: f32,
    /// 1, or -1 for the backward pass.
    pub sin_sign: f32,
    /// Strides of the positions: of batch and token.
    pub ids: [i64; 2],
    /// Stride of the positions from axis to axis, with [`AXES`].
    pub axis: i64,
    /// Pairs of each axis, with [`AXES`].
    pub sections: [u32; 3],
    /// Added to every position.
    pub offset: i64,
    /// Rows of the table; a position outside of it leaves the token unrotated. `i64::MAX` without a table.
    pub rows: i64,
    /// Strides of the first table, in elements: of batch and row.
    pub first: [i64; 2],
    /// Strides of the second table.
    pub second: [i64; 2],
}

/// One tensor of a launch of [`Solo`]. Strides are in vectors, of batch, token and head.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct SoloSide {
    /// What the block's number is divided by. The quotient counts runs of tokens, the rest parts of the groups, or with
    /// [`RUNS_INNER`] the reverse.
    pub parts: Count,
    /// Strides of the input.
    pub input: [u32; 3],
    /// Strides of the output.
    pub output: [u32; 3],
    /// Heads; 0 where the tensor is absent.
    pub heads: u32,
    /// Groups of heads: group `g` has heads `g`, `g + groups`, ...
    pub groups: u32,
    /// From one head of a thread to its next, in input and output.
    pub step: [u32; 2],
    /// Multiplies every lane.
    pub scale: f32,
}

/// What a launch of the kernel does whose threads each find their own cosines and sines, but for the addresses. A
/// thread has two vectors of a token's heads: of lanes that rotate, or of lanes that pass through. Blocks of threads
/// take slots, each a token and a group of q's or of k's heads; the threads for pairs come first.
///
/// Offsets have 32 bits, in vectors, and what most launches need stands first: a small launch waits for each line of
/// its parameters.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Solo {
    /// Threads of a block for pairs, and all that have work.
    pub threads: [u32; 2],
    /// Threads for the pairs of a slot.
    pub pair_lanes: Count,
    /// Threads for the lanes of a slot that pass through.
    pub rest_lanes: Count,
    /// The first lane that passes through, in vectors.
    pub rest_at: u32,
    /// Vectors of such lanes. Where they are odd in number, one thread has no second.
    pub rest: u32,
    /// Blocks of q; those of k follow. Which it is, a block knows before its threads know anything.
    pub q_blocks: u32,
    /// The flags of this module; without [`SEQUENCES`] and [`AXES`].
    pub flags: u32,
    /// Of a block's slots the number is `slot`: its lowest so many bits are a token's,
    pub token_bits: u32,
    /// the others are added, where this mask has bits, to `block_slots` times the block's number before it is divided,
    /// else to the group's number.
    pub slot_mask: u32,
    /// See [`Solo::slot_mask`].
    pub block_slots: u32,
    /// Groups from one block to the next, with tokens inner; else 1.
    pub part_groups: u32,
    /// Batch entries times tokens of each.
    pub tokens: u32,
    /// Tokens of a batch entry.
    pub seq: Count,
    /// The first rotated lane, in vectors. A thread's two are as far apart as it has fellows for the same slot.
    pub rotated_at: u32,
    /// From a thread's first pair to the next thread's, and from the first pair of its first vector to that of its
    /// second.
    pub pairs: [u32; 2],
    /// Strides of the first and the second table, in elements: of batch and row.
    pub tables: [[u32; 2]; 2],
    /// Rows of the table; a position outside of it leaves the token unrotated.
    pub rows: i64,
    /// Added to every position.
    pub offset: i64,
    /// Strides of the positions: of batch and token.
    pub ids: [u32; 2],
    /// Multiplies cosine and sine, unless [`PLAIN`].
    pub factor: f32,
    /// 1, or -1 for the backward pass.
    pub sin_sign: f32,
    /// The first tensor.
    pub q: SoloSide,
    /// The second tensor.
    pub k: SoloSide,
}

/// What a thread of the kernel of [`Solo`] does.
#[derive(Clone, Copy, Debug)]
pub struct SoloPlace {
    /// Whether it has anything to load and store.
    pub works: bool,
    /// Whether its lanes rotate, or pass through.
    pub rotates: bool,
    /// Whether its heads are k's.
    pub is_k: bool,
    /// Its token.
    pub token: u32,
    /// Its group of heads.
    pub group: u32,
    /// Its number among the threads for a head's pairs, or among those for the lanes that pass through.
    pub lane: u32,
    /// Vectors from its first one to its second.
    pub apart: u32,
}

impl Solo {
    /// What a thread of a block does.
    #[inline(always)]
    #[must_use]
    pub fn place(&self, block: u32, thread: u32) -> SoloPlace {
        let [pair_threads, threads] = self.threads;
        let is_k = block >= self.q_blocks;
        let (parts, groups, block) = match is_k {
            true => (self.k.parts, self.k.groups, block - self.q_blocks),
            false => (self.q.parts, self.q.groups, block),
        };
        let rotates = thread < pair_threads;
        let lanes = Count::either(rotates, &self.pair_lanes, &self.rest_lanes);
        let n = if rotates { thread } else { thread.wrapping_sub(pair_threads) };
        let (slot, lane) = lanes.divide(n);
        let (token_bits, slot_group) = (self.token_bits & 31, slot >> (self.token_bits & 31));
        let (far, near) = parts.divide(block * self.block_slots + (slot_group & self.slot_mask));
        let (run, part) = if self.flags & RUNS_INNER != 0 { (near, far) } else { (far, near) };
        let token = (run << token_bits) + (slot & !(u32::MAX << token_bits));
        let group = part * self.part_groups + (slot_group & !self.slot_mask);
        let works = thread < threads && token < self.tokens && group < groups;
        SoloPlace { works, rotates, is_k, token, group, lane, apart: lanes.size }
    }
}

/// What a thread does.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// Whether it has anything to load and store.
    pub works: bool,
    /// Whether its lanes rotate, or pass through.
    pub rotates: bool,
    /// Its token.
    pub token: u32,
    /// Its group of heads: q's, then k's.
    pub group: u32,
    /// Its number among the threads for a head's pairs, or among those for the lanes that pass through.
    pub lane: u32,
    /// The first token of its block.
    pub first_token: u32,
    /// The first pair of its block, in vectors.
    pub first_lane: u32,
}

impl Walk {
    /// What a thread of a block does.
    #[inline(always)]
    #[must_use]
    pub fn place(&self, block: u32, thread: u32) -> Place {
        let tile = &self.tile;
        // Which tokens, groups of heads and lanes are the block's.
        let tokens_inner = self.flags & TOKENS_INNER != 0;
        let (far, near) = tile.blocks.divide(block);
        let (part, run) = if tokens_inner { (far, near) } else { (near, far) };
        let (group_block, lane_block) = tile.lane_blocks.divide(part);
        let first_token = run * tile.tokens;
        // Which are the thread's.
        let pair_threads = tile.tokens * tile.groups * tile.pair_lanes.size;
        let rotates = thread < pair_threads;
        let (lanes, n) =
            if rotates { (tile.pair_lanes, thread) } else { (tile.rest_lanes, thread.wrapping_sub(pair_threads)) };
        let (slot, lane) = lanes.divide(n);
        let first_lane = lane_block * lanes.size;
        let (far, near) = tile.inner.divide(slot);
        let (token, group) = if tokens_inner { (near, far) } else { (far, near) };
        let inside = token < tile.tokens && group < tile.groups;
        let (token, group, lane) = (first_token + token, group_block * tile.groups + group, first_lane + lane);
        let works = inside
            && token < self.tokens
            && group < self.q.groups + self.k.groups
            && lane < if rotates { self.pair_lanes } else { self.rest_lanes };
        Place { works, rotates, token, group, lane, first_token, first_lane: lane_block * tile.pair_lanes.size }
    }
}

/// Calls a macro, its path in parentheses, for each template, angle source, element type and strategy that has a
/// kernel: `visitor! { template source type strategy, args }`. The template is `rope`, whose blocks share cosines and
/// sines, or `rope_solo`, whose threads find their own. The only place where they are listed.
#[macro_export]
macro_rules! rope_entries {
    ($visitor:tt $args:tt) => {
        $crate::rope_entries! { @types $visitor $args hf f32 f16 bf16 }
        $crate::rope_entries! { @types $visitor $args exact f32 f16 bf16 }
        $crate::rope_entries! { @types $visitor $args angles f32 f16 bf16 }
        $crate::rope_entries! { @types $visitor $args tables f32 f16 bf16 }
        $crate::rope_entries! { @types $visitor $args own_tables f16 bf16 }
    };
    (@types $visitor:tt $args:tt $source:ident $($type:ident)*) => { $(
        $crate::rope_entries! { @strategies $visitor $args rope $source $type direct explicit_parallel register_copy }
        $crate::rope_entries! { @strategies $visitor $args rope_solo $source $type explicit_parallel register_copy }
    )* };
    (@strategies $visitor:tt $args:tt $template:ident $source:ident $type:ident $($strategy:ident)*) => { $(
        $crate::rope_entries! { @call $visitor $args $template $source $type $strategy }
    )* };
    (@call ($($visitor:tt)*) $args:tt $template:ident $source:ident $type:ident $strategy:ident) => {
        $($visitor)*! { $template $source $type $strategy, $args }
    };
}

/// The symbol of every RoPE kernel, for build scripts to check that all were made.
#[cfg(not(target_arch = "nvptx64"))]
#[must_use]
pub fn symbols() -> std::vec::Vec<&'static str> {
    let mut symbols = std::vec::Vec::new();
    macro_rules! push {
        ($template:ident $source:ident $type:ident $strategy:ident, ($list:ident)) => {
            $list.push(crate::symbol!($template, $source, $type, $strategy));
        };
    }
    crate::rope_entries! { (push) (symbols) }
    symbols
}

#[cfg(test)]
mod tests {
    use super::{Count, INTERLEAVED_IN, NEIGHBOURS, pair_of};

    /// Where pairs are neighbours the slots of a thread are the pairs of its two vectors, in order; else nothing
    /// changes.
    #[test]
    fn slots_are_pairs_of_vectors() {
        for (half, vector) in [(32, 8), (40, 8), (64, 4), (4, 4), (6, 2), (2, 2)] {
            for lane in 0..half / vector {
                for i in 0..vector {
                    let slot = lane * vector + i;
                    // The lane of a pair's first element, in the first vector or in the one `half` lanes on.
                    let far = if i < vector / 2 { 0 } else { half };
                    let element = far + lane * vector + 2 * (i % (vector / 2));
                    assert_eq!(2 * pair_of(slot, vector, half, NEIGHBOURS), element, "{half} {vector}, slot {slot}");
                    assert_eq!(pair_of(slot, vector, half, INTERLEAVED_IN), slot);
                }
            }
        }
        assert_eq!(
            (0..7).map(|slot| pair_of(slot, 1, 7, NEIGHBOURS)).collect::<std::vec::Vec<_>>(),
            [0, 1, 2, 3, 4, 5, 6]
        );
    }

    #[test]
    fn a_count_divides() {
        let last = (1_u64 << 31) - 1;
        let sizes = (1..300).chain([1000, 12_345, 65_535, 65_536, 65_537, 1 << 30, (1 << 31) - 1, 1 << 31]);
        for size in sizes {
            let count = Count::new(size as u32);
            let edges = (0..40).flat_map(|k| [k, last - k]).chain((1..60).flat_map(|k| {
                let multiple = (last / size) * k / 59 * size;
                [multiple.saturating_sub(1), multiple, (multiple + 1).min(last)]
            }));
            for n in edges {
                assert_eq!(count.divide(n as u32), ((n / size) as u32, (n % size) as u32), "{n} / {size}");
            }
        }
    }
}
