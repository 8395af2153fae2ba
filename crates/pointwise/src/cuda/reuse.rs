//! Small blocks that were dropped, kept for the next tensors of their size: a call that allocates its result asks the
//! driver for nothing but the launch.
//!
//! A block is kept only if all work on it is queued on the device's own stream: the next owner's work follows there.

use std::sync::Mutex;

use super::sys::DevicePointer;

/// Larger blocks are not kept: a kernel that fills one takes the device longer than the driver takes to allocate it.
const MOST_BYTES: usize = 2 << 20;
/// So many blocks are kept, at most 64 MiB.
const MOST_BLOCKS: usize = 32;

/// True if a block of so many bytes may be kept.
pub(super) const fn is_kept(bytes: usize) -> bool {
    bytes <= MOST_BYTES
}

/// The blocks of a device.
#[derive(Debug)]
pub(super) struct Reuse {
    /// The newest last.
    kept: Mutex<Vec<Kept>>,
    most_blocks: usize,
}

impl Default for Reuse {
    fn default() -> Self {
        Reuse { kept: Mutex::default(), most_blocks: MOST_BLOCKS }
    }
}

#[derive(Debug)]
struct Kept {
    bytes: usize,
    address: DevicePointer,
}

impl Reuse {
    /// Keeps nothing.
    pub(super) fn none() -> Reuse {
        Reuse { kept: Mutex::default(), most_blocks: 0 }
    }

    /// The block of exactly `bytes` bytes that was kept last. None, too, while another thread is here: nobody waits.
    ///
    /// Not a larger one, so that memory checkers see every access behind a tensor's end.
    pub(super) fn take(&self, bytes: usize) -> Option<DevicePointer> {
        let mut kept = self.kept.try_lock().ok()?;
        let newest = kept.iter().rposition(|block| block.bytes == bytes)?;
        Some(kept.remove(newest).address)
    }

    /// Keeps a block. If there is no room for all, returns the oldest, or this one.
    pub(super) fn keep(&self, bytes: usize, address: DevicePointer) -> Option<DevicePointer> {
        if !is_kept(bytes) || self.most_blocks == 0 {
            return Some(address);
        }
        let Ok(mut kept) = self.kept.try_lock() else { return Some(address) };
        let oldest = (kept.len() == self.most_blocks).then(|| kept.remove(0).address);
        kept.push(Kept { bytes, address });
        oldest
    }

    /// Returns all blocks, and keeps none.
    pub(super) fn empty(&self) -> Vec<DevicePointer> {
        let mut kept = self.kept.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        kept.drain(..).map(|block| block.address).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_serves_its_own_size_once() {
        let reuse = Reuse::default();
        assert_eq!(reuse.keep(1024, 16), None);
        assert_eq!(reuse.keep(1024, 32), None);
        assert_eq!(reuse.keep(2048, 48), None);
        assert_eq!([1023, 1025].map(|bytes| reuse.take(bytes)), [None; 2]);
        assert_eq!([1024; 3].map(|bytes| reuse.take(bytes)), [Some(32), Some(16), None]);
        assert_eq!(reuse.empty(), [48]);
        assert_eq!(reuse.take(2048), None);
    }

    #[test]
    fn the_oldest_goes_and_a_large_one_never_comes() {
        let reuse = Reuse::default();
        assert_eq!([MOST_BYTES, MOST_BYTES + 1].map(|bytes| reuse.keep(bytes, 7)), [None, Some(7)]);
        for address in 1..MOST_BLOCKS as u64 {
            assert_eq!(reuse.keep(8, 100 + address), None);
        }
        assert_eq!((reuse.keep(8, 200), reuse.keep(8, 201)), (Some(7), Some(101)));
        assert_eq!(reuse.empty().len(), MOST_BLOCKS);
    }

    #[test]
    fn nobody_waits() {
        let reuse = Reuse::default();
        reuse.keep(8, 16);
        let held = reuse.kept.lock().unwrap();
        assert_eq!((reuse.take(8), reuse.keep(8, 32)), (None, Some(32)));
        drop(held);
        assert_eq!(reuse.take(8), Some(16));
    }
}
