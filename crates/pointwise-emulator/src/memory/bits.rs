//! One bit for each byte of an allocation.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// One bit a byte, all zero at first.
#[derive(Debug)]
pub(crate) struct Bits {
    chunks: Box<[AtomicU64]>,
}

impl Bits {
    pub(crate) fn new(bytes: usize) -> Bits {
        Bits { chunks: bytemuck::zeroed_slice_box(bytes.div_ceil(64)) }
    }

    /// Returns the chunks that a range of bytes touches, each with the mask of its bits.
    #[inline(always)]
    fn parts(from: usize, to: usize) -> impl Iterator<Item = (usize, u64)> {
        let last = to.saturating_sub(1) / 64;
        let first = if from < to { from / 64 } else { last + 1 };
        (first..=last).map(move |chunk| {
            let low = if chunk == from / 64 { u64::MAX << (from % 64) } else { u64::MAX };
            let high = if chunk == last { u64::MAX >> (63 - (to - 1) % 64) } else { u64::MAX };
            (chunk, low & high)
        })
    }

    #[inline(always)]
    pub(crate) fn set(&self, from: usize, to: usize) {
        for (chunk, mask) in Bits::parts(from, to) {
            let bits = &self.chunks[chunk];
            if mask == u64::MAX {
                bits.store(mask, Relaxed);
            } else if bits.load(Relaxed) & mask != mask {
                bits.fetch_or(mask, Relaxed);
            }
        }
    }

    pub(crate) fn clear(&self, from: usize, to: usize) {
        for (chunk, mask) in Bits::parts(from, to) {
            self.chunks[chunk].fetch_and(!mask, Relaxed);
        }
    }

    #[inline(always)]
    pub(crate) fn all(&self, from: usize, to: usize) -> bool {
        Bits::parts(from, to).all(|(chunk, mask)| self.chunks[chunk].load(Relaxed) & mask == mask)
    }

    #[inline(always)]
    pub(crate) fn any(&self, from: usize, to: usize) -> bool {
        Bits::parts(from, to).any(|(chunk, mask)| self.chunks[chunk].load(Relaxed) & mask != 0)
    }

    /// Copies the bits of a range, of this or of other memory.
    pub(crate) fn copy(&self, to: usize, source: &Bits, from: usize, bytes: usize) {
        if source.all(from, from + bytes) {
            return self.set(to, to + bytes);
        }
        let taken: Vec<bool> = (from..from + bytes).map(|at| source.any(at, at + 1)).collect();
        self.clear(to, to + bytes);
        for (at, set) in taken.into_iter().enumerate() {
            if set {
                self.set(to + at, to + at + 1);
            }
        }
    }

    /// Returns a copy of the chunks that hold a range.
    pub(crate) fn save(&self, from: usize, to: usize) -> Vec<u64> {
        Bits::parts(from, to).map(|(chunk, _)| self.chunks[chunk].load(Relaxed)).collect()
    }

    /// Puts back the bits of a range.
    pub(crate) fn restore(&self, from: usize, to: usize, saved: &[u64]) {
        for ((chunk, mask), saved) in Bits::parts(from, to).zip(saved) {
            let now = self.chunks[chunk].load(Relaxed);
            self.chunks[chunk].store((now & !mask) | (saved & mask), Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_over_chunks() {
        let bits = Bits::new(300);
        bits.set(60, 200);
        assert!(bits.all(60, 200) && !bits.all(59, 200) && !bits.all(60, 201));
        assert!(!bits.any(0, 60) && !bits.any(200, 300) && bits.any(199, 300));
        assert!(bits.all(10, 10) && !bits.any(70, 70));
        let saved = bits.save(50, 250);
        bits.clear(64, 128);
        assert!(!bits.any(64, 128) && bits.all(128, 200) && bits.all(60, 64));
        bits.restore(50, 250, &saved);
        assert!(bits.all(60, 200));
        let other = Bits::new(100);
        other.set(0, 100);
        other.copy(3, &bits, 50, 20);
        assert!(other.all(0, 3) && !other.any(3, 13) && other.all(13, 100));
    }
}
