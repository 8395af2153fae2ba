//! What the kernel is told that rotates all lanes of regular heads by tables.

use super::{Count, OwnAngles};

/// One tensor of a launch of [`Whole`]. Strides are in vectors, of token and head.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct WholeSide {
    /// Heads; 0 where the tensor is absent.
    pub heads: u32,
    /// Strides of the input.
    pub input: [u32; 2],
    /// Strides of the output.
    pub output: [u32; 2],
    /// Multiplies every lane.
    pub scale: f32,
}

/// What a launch of the kernel does for tensors that have two dimensions above a head's lanes, all of which rotate: tokens,
/// each at the position of its number, and heads, which lie closer together. One of them may have the batch merged into
/// it. A thread has two vectors of one head of a token.
///
/// A block has threads for a head's lanes, times those for some heads, times those for some tokens, in its three
/// dimensions, and grids are blocks of heads times blocks of tokens (see [`Whole::place`]), so that a thread knows its
/// place without a division. What most launches need stands first: a small launch waits for each line of its parameters.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Whole {
    /// Threads of a head's lanes, the block's first dimension. A thread's two vectors are as far apart.
    pub lanes: u32,
    /// Heads of a block, its second dimension.
    pub tile_heads: u32,
    /// Tokens of a block, its third dimension.
    pub tile_tokens: u32,
    /// Blocks of q's heads; those of k's follow.
    pub q_blocks: u32,
    /// The flags of this module that say how lanes pair, and whether nothing multiplies sines.
    pub flags: u32,
    /// Tokens, all batch entries together where the batch is merged into them.
    pub tokens: u32,
    /// The first lane that rotates, in vectors.
    pub start: u32,
    /// The first tensor.
    pub q: WholeSide,
    /// What the token's number is divided by: the quotient is that of its batch entry, the rest the token's in it.
    pub seq: Count,
    /// Where a thread finds its angles; no positions are given.
    pub angles: OwnAngles,
    /// The second tensor.
    pub k: WholeSide,
}

/// What a thread of the kernel of [`Whole`] does.
#[derive(Clone, Copy, Debug)]
pub struct WholePlace {
    /// Whether it has anything to load and store.
    pub works: bool,
    /// Whether its head is k's.
    pub is_k: bool,
    /// Its token.
    pub token: u32,
    /// Its head.
    pub head: u32,
    /// Its first vector of a head's lanes that rotate, and the number of its pairs.
    pub lane: u32,
}

impl Whole {
    /// What a thread of a block does, both by their indices, in a grid of so many `rows`: its third dimension continues the
    /// second, which has an end.
    #[inline(always)]
    #[must_use]
    pub fn place(&self, [head_block, y, z]: [u32; 3], rows: u32, [lane, head, token]: [u32; 3]) -> WholePlace {
        let is_k = head_block >= self.q_blocks;
        let (heads, head_block) =
            if is_k { (self.k.heads, head_block - self.q_blocks) } else { (self.q.heads, head_block) };
        let (token, head) = ((y + z * rows) * self.tile_tokens + token, head_block * self.tile_heads + head);
        WholePlace { works: token < self.tokens && head < heads, is_k, token, head, lane }
    }
}
