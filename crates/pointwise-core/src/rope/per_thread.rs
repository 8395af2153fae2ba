//! The parameters of the kernel whose threads each find their own cosines and sines, for any heads.

use super::{Count, OwnAngles, TOKENS_INNER};

/// One tensor of a launch of [`PerThread`]. Strides are in vectors, of batch, token and head.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct PerThreadSide {
    /// The divisor of the block's number. The quotient counts runs of tokens, the rest parts of the groups. With
    /// [`TOKENS_INNER`] the rest counts the runs of a layer, the quotient parts of the groups.
    pub parts: Count,
    /// Strides of the input.
    pub input: [u32; 3],
    /// Strides of the output.
    pub output: [u32; 3],
    /// Heads; 0 if the tensor is absent.
    pub heads: u32,
    /// Groups of heads: group `g` has heads `g`, `g + groups`, ...
    pub groups: u32,
    /// From one head of a thread to its next, in input and output.
    pub step: [u32; 2],
    /// Multiplies every lane.
    pub scale: f32,
}

/// The parameters of a launch whose threads each find their own cosines and sines, without the addresses. A thread has
/// two vectors of a token's heads: of lanes that rotate, or of lanes that pass through. Blocks of threads take slots,
/// each a token and a group of q's or of k's heads; the threads for pairs come first. A grid's layers follow one
/// another along the tokens.
///
/// Offsets have 32 bits, in vectors. The fields that most launches need come first: a small launch waits for each line
/// of its parameters.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct PerThread {
    /// Threads of a block for pairs, and all its threads that have work.
    pub threads: [u32; 2],
    /// Threads for the pairs of a slot.
    pub pair_lanes: Count,
    /// Threads for the lanes of a slot that pass through.
    pub rest_lanes: Count,
    /// The first lane that passes through, in vectors.
    pub rest_at: u32,
    /// Vectors of such lanes. If their number is odd, one thread has no second vector.
    pub rest: u32,
    /// Blocks of q; the blocks of k follow. A block knows its tensor before its threads know anything.
    pub q_blocks: u32,
    /// The flags of this module; without [`SEQUENCES`](super::SEQUENCES) and
    /// [`AXES`](super::AXES).
    pub flags: u32,
    /// The low bits of a slot's number that count tokens.
    pub token_bits: u32,
    /// A mask of the other bits of a slot's number. The bits in the mask are added to `block_slots` times the block's
    /// number before its division, the others to the group's number.
    pub slot_mask: u32,
    /// See [`PerThread::slot_mask`].
    pub block_slots: u32,
    /// Groups from one block to the next, with tokens inner; else 1.
    pub part_groups: u32,
    /// Batch entries times tokens of each.
    pub tokens: u32,
    /// Tokens of a batch entry.
    pub seq: Count,
    /// The first rotated lane, in vectors. A thread's two vectors are as far apart as a slot has threads for pairs.
    pub rotated_at: u32,
    /// The way to a thread's angles.
    pub angles: OwnAngles,
    /// The first tensor.
    pub q: PerThreadSide,
    /// The second tensor.
    pub k: PerThreadSide,
}

/// The work of a thread of the kernel of [`PerThread`].
#[derive(Clone, Copy, Debug)]
pub struct PerThreadPlace {
    /// True if it has anything to load and store.
    pub works: bool,
    /// True if its lanes rotate, false if they pass through.
    pub rotates: bool,
    /// True if its heads are k's.
    pub is_k: bool,
    /// Its token.
    pub token: u32,
    /// Its group of heads.
    pub group: u32,
    /// Its number among the threads for a head's pairs, or for its lanes that pass through.
    pub lane: u32,
    /// Vectors from its first one to its second.
    pub apart: u32,
}

impl PerThread {
    /// Returns the work of a thread of a block.
    #[inline(always)]
    #[must_use]
    pub fn place(&self, [block, layer]: [u32; 2], thread: u32) -> PerThreadPlace {
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
        let is_inner = self.flags & TOKENS_INNER != 0;
        let (run, part) = if is_inner { (near + layer * parts.size, far) } else { (far, near) };
        let token = (run << token_bits) + (slot & !(u32::MAX << token_bits));
        let group = part * self.part_groups + (slot_group & !self.slot_mask);
        let works = thread < threads && token < self.tokens && group < groups;
        PerThreadPlace { works, rotates, is_k, token, group, lane, apart: lanes.size }
    }
}
