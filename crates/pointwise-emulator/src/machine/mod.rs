//! Executes programs: 32 lanes at a time, warp by warp, blocks on the threads of rayon.
//!
//! `launch` checks a launch and hands its blocks to threads, `block` runs the warps of a block from barrier to barrier,
//! `execute` is the loop over the instructions of a `warp`, on its `registers`. The instructions are in `words` (32
//! bits), `longs` (64 bits), `mixed` (both, and predicates), `special` (approximate functions), `together` (shuffles,
//! votes) and, for memory, `global`, `shared`, `atomics` and `copies`; these reach memory by `reach` and `checks`.

mod atomics;
mod block;
mod checks;
mod compute;
mod copies;
mod execute;
mod global;
mod lanes;
pub(crate) mod launch;
mod longs;
mod mixed;
mod reach;
mod registers;
mod shared;
mod special;
mod together;
mod warp;
mod words;

/// Threads of a warp.
pub(crate) const LANES: usize = 32;

/// All lanes.
pub(crate) const ALL: u32 = u32::MAX;

/// A mistake of an instruction, and the lane that makes it.
#[derive(Debug)]
pub(crate) struct Found {
    /// Number of the instruction.
    pub(crate) pc: u32,
    pub(crate) lane: u32,
    pub(crate) problem: crate::fault::Problem,
}
