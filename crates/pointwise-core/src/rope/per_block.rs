//! The parameters of the kernel whose blocks share cosines and sines, and of the CPU's loops.

use super::{Count, TOKENS_INNER};

/// One tensor of a launch, q or k. Strides are in elements, of batch, token and head.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Side {
    /// Heads; 0 if the tensor is absent.
    pub heads: u32,
    /// Groups of heads, with a thread each for every lane. Group `g` has heads `g`, `g + groups`, ...
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

/// The work of a block of threads: some tokens, some groups of heads, some lanes. Its threads for pairs come first,
/// then its threads for lanes that pass through. Each kind counts lanes, then tokens and groups.
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
    /// Pairs of a token that the block's threads rotate.
    pub pairs: u32,
    /// Threads that compute a token's cosines and sines: thread `t` computes pair `t`, `t + sharers`, ... With
    /// [`AXES`](super::AXES) there are as many as pairs.
    pub sharers: Count,
    /// The groups, or with [`TOKENS_INNER`] the tokens: neighbouring threads take them, after the lanes.
    pub inner: Count,
    /// Blocks for the groups and lanes of a token, or with [`TOKENS_INNER`] for all tokens: neighbouring blocks take
    /// them.
    pub blocks: Count,
    /// Blocks for the lanes of a token and group.
    pub lane_blocks: Count,
}

/// The parameters of a launch without the addresses: kernels take no pointers in structs.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct RopeWalk {
    /// The first tensor.
    pub q: Side,
    /// The second tensor.
    pub k: Side,
    /// Batch entries times tokens of each.
    pub tokens: u32,
    /// Tokens of a batch entry.
    pub seq: Count,
    /// The work of a block. The CPU has no blocks.
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
    /// Sequences of [`SEQUENCES`](super::SEQUENCES).
    pub sequences: u32,
    /// Multiplies cosine and sine.
    pub factor: f32,
    /// 1, or -1 for the backward pass.
    pub sin_sign: f32,
    /// Strides of the positions: of batch and token.
    pub ids: [i64; 2],
    /// Stride of the positions from axis to axis, with [`AXES`](super::AXES).
    pub axis: i64,
    /// Pairs of each axis, with [`AXES`](super::AXES).
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

/// The work of a thread.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// True if it has anything to load and store.
    pub works: bool,
    /// True if its lanes rotate, false if they pass through.
    pub rotates: bool,
    /// Its token.
    pub token: u32,
    /// Its group of heads: q's, then k's.
    pub group: u32,
    /// Its number among the threads for a head's pairs, or for its lanes that pass through.
    pub lane: u32,
    /// The first token of its block.
    pub first_token: u32,
    /// The first pair of its block, in vectors.
    pub first_lane: u32,
}

impl RopeWalk {
    /// Returns the work of a thread of a block.
    #[inline(always)]
    #[must_use]
    pub fn place(&self, block: u32, thread: u32) -> Place {
        let tile = &self.tile;
        // The tokens, groups of heads and lanes of the block.
        let tokens_inner = self.flags & TOKENS_INNER != 0;
        let (far, near) = tile.blocks.divide(block);
        let (part, run) = if tokens_inner { (far, near) } else { (near, far) };
        let (group_block, lane_block) = tile.lane_blocks.divide(part);
        let first_token = run * tile.tokens;
        // The ones of the thread.
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
