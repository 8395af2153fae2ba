//! The parameters of the kernel that rotates all lanes of regular heads by tables.

/// One tensor of a launch of [`FullHead`]. Strides are in vectors, of the grid's third dimension, of token and of head.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct FullHeadSide {
    /// Heads; 0 if the tensor is absent.
    pub heads: u32,
    /// Strides of the input.
    pub input: [u32; 3],
    /// Strides of the output.
    pub output: [u32; 3],
}

/// The parameters of a launch for heads whose lanes all rotate by tables. Each token takes the row of its number or of
/// a given position. A thread has two vectors of one head of a token, as far apart as the block has lanes.
///
/// The three dimensions of a block are a head's lanes, some heads and some tokens. A grid is blocks of heads, times
/// blocks of tokens, times batch entries. If one batch entry has more blocks of tokens than the second dimension can
/// have, the third one counts layers of them. So a thread knows its place without a division. The fields that most
/// launches need come first, behind their pointers: a small launch waits for each line of its parameters.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct FullHead {
    /// Tokens of a batch entry.
    pub tokens: u32,
    /// Tokens of a layer; 0 if the grid's third dimension counts batch entries.
    pub layer: u32,
    /// Blocks of q's heads; the blocks of k's heads follow.
    pub q_blocks: u32,
    /// The first tensor.
    pub q: FullHeadSide,
    /// Strides of the first and the second table, in elements: of the grid's third dimension and of row.
    pub tables: [[u32; 2]; 2],
    /// The flags of this module for a factor of sines and for the width of positions.
    pub flags: u32,
    /// Strides of the positions that are given, in words of 32 bits: of the grid's third dimension and of token.
    pub ids: [u32; 2],
    /// Multiplies cosine and sine, unless [`PLAIN`](super::PLAIN).
    pub factor: f32,
    /// Added to the positions that are given.
    pub offset: i64,
    /// Rows of the table; a given position outside of it leaves the token unrotated.
    pub rows: i64,
    /// 1, or -1 for the backward pass.
    pub sin_sign: f32,
    /// The second tensor.
    pub k: FullHeadSide,
    /// Multiply every lane of q, and of k.
    pub scales: [f32; 2],
}

/// The work of a thread of the kernel of [`FullHead`].
#[derive(Clone, Copy, Debug)]
pub struct FullHeadPlace {
    /// True if it has anything to load and store.
    pub works: bool,
    /// True if its head is k's.
    pub is_k: bool,
    /// Its token, in its batch entry.
    pub token: u32,
    /// Its head.
    pub head: u32,
}

impl FullHead {
    /// Returns the work of a thread: of block `[head_block, y, z]`, in blocks of so many lanes, heads and tokens.
    #[inline(always)]
    #[must_use]
    pub fn place(&self, [head_block, y, z]: [u32; 3], [_, heads, tokens]: [u32; 3], thread: [u32; 3]) -> FullHeadPlace {
        let is_k = head_block >= self.q_blocks;
        let (all, head_block) =
            if is_k { (self.k.heads, head_block - self.q_blocks) } else { (self.q.heads, head_block) };
        let (token, head) = (y * tokens + thread[2] + z * self.layer, head_block * heads + thread[1]);
        FullHeadPlace { works: token < self.tokens && head < all, is_k, token, head }
    }
}
