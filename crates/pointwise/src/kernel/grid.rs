//! The grids of kernels that plan their own: generators, dropout, tables of pairs.

use super::Strategy;
use crate::error::{ErrorKind, Result};

/// CUDA's limit on the x dimension of a grid.
const MAX_BLOCKS: u64 = (1 << 31) - 1;
/// Threads that are resident on a multiprocessor of sm_80, sm_90 or sm_100, of kernels with at most 32 registers.
pub(super) const RESIDENT: u64 = 2048;

/// The blocks of a grid for `n` elements.
///
/// # Errors
/// More than a grid can have.
pub(super) fn grid(blocks: u64, n: u64, strategy: Strategy, threads: u32) -> Result<u32> {
    if blocks > MAX_BLOCKS {
        return Err(ErrorKind::Unsupported {
            what: format!("{n} elements with strategy {strategy} and {threads} threads a block"),
            advice: "a grid has at most 2^31 - 1 blocks: take another strategy, more threads, or views of a part each"
                .to_owned(),
        }
        .into());
    }
    Ok(blocks as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grid_has_fewer_blocks_than_2_to_31() {
        let blocks = |blocks| grid(blocks, 1, Strategy::RegisterCopy, 256);
        assert_eq!(blocks(MAX_BLOCKS).unwrap(), (1 << 31) - 1);
        assert!(blocks(MAX_BLOCKS + 1).is_err());
    }
}
