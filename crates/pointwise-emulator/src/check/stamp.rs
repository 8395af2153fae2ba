//! Stamps: the thread that touched a byte and the time, in 64 bits.
//!
//! Only a barrier orders two threads: they are in different phases of the same block, or of the same warp between two
//! barriers of the block. Phases are counted up to a limit. Beyond it, threads of a block (or warp) count as ordered:
//! the checks miss races of kernels with very many barriers rather than invent them.

/// The thread and the time of an access. Zero means nobody.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp(pub(crate) u64);

const BLOCK_SHIFT: u32 = 36;
const PHASE_SHIFT: u32 = 22;
const WARP_PHASE_SHIFT: u32 = 12;
const THREAD_SHIFT: u32 = 2;
const LAST_PHASE: u64 = (1 << (BLOCK_SHIFT - PHASE_SHIFT)) - 1;
const LAST_WARP_PHASE: u64 = (1 << (PHASE_SHIFT - WARP_PHASE_SHIFT)) - 1;

// Values of the lowest two bits of a writer's stamp. Zero is a plain write.

/// An atomic operation. Two of them do not race.
pub(crate) const ATOMIC: u64 = 1;
/// A `cp.async` that its thread has not waited for.
pub(crate) const COPYING: u64 = 2;

// Values of the lowest two bits of a reader's stamp: one thread has read, several of a warp, several of a block, or
// several blocks.

const ONE: u64 = 0;
const WARP: u64 = 1;
const BLOCK: u64 = 2;
const MANY: u64 = 3;

impl Stamp {
    /// Returns the stamp of a thread. Grids of 2^28 blocks or more use stamps twice.
    pub(crate) fn new(block: u64, phase: u32, warp_phase: u32, thread: u32) -> Stamp {
        let block = block % ((1 << (64 - BLOCK_SHIFT)) - 1) + 1;
        Stamp(
            block << BLOCK_SHIFT
                | u64::from(phase).min(LAST_PHASE) << PHASE_SHIFT
                | u64::from(warp_phase).min(LAST_WARP_PHASE) << WARP_PHASE_SHIFT
                | u64::from(thread) << THREAD_SHIFT,
        )
    }

    /// Returns the stamp of another lane; `self` is the stamp of the warp's first lane.
    #[inline(always)]
    pub(crate) fn of_lane(self, lane: usize) -> Stamp {
        Stamp(self.0 | (lane as u64) << THREAD_SHIFT)
    }

    pub(crate) fn marked(self, mark: u64) -> Stamp {
        Stamp(self.0 | mark)
    }

    pub(crate) fn mark(self) -> u64 {
        self.0 & 3
    }

    /// Returns the number of the block, from 0.
    pub(crate) fn block(self) -> u64 {
        (self.0 >> BLOCK_SHIFT).wrapping_sub(1)
    }

    /// Returns the number of the thread in its block.
    pub(crate) fn thread(self) -> u32 {
        u32::try_from((self.0 >> THREAD_SHIFT) & 0x3ff).unwrap_or(0)
    }

    fn phase(self) -> u64 {
        (self.0 >> PHASE_SHIFT) & LAST_PHASE
    }

    fn warp_phase(self) -> u64 {
        (self.0 >> WARP_PHASE_SHIFT) & LAST_WARP_PHASE
    }

    pub(crate) fn is_nobody(self) -> bool {
        self.0 == 0
    }

    pub(crate) fn same_block(self, other: Stamp) -> bool {
        self.0 >> BLOCK_SHIFT == other.0 >> BLOCK_SHIFT
    }

    fn same_warp(self, other: Stamp) -> bool {
        self.same_block(other) && self.thread() / 32 == other.thread() / 32
    }

    /// True if a barrier of the block is between the two.
    fn block_ordered(self, other: Stamp) -> bool {
        self.same_block(other) && (self.phase() != other.phase() || self.phase() == LAST_PHASE)
    }

    /// True if a barrier is between the two, or both are the same thread.
    fn ordered(self, other: Stamp) -> bool {
        self.block_ordered(other)
            || (self.same_warp(other)
                && (self.thread() == other.thread()
                    || self.warp_phase() != other.warp_phase()
                    || self.warp_phase() == LAST_WARP_PHASE))
    }

    /// True if the access of `self` races with the write of `writer`.
    pub(crate) fn races_with_writer(self, writer: Stamp) -> bool {
        let both_atomic = self.mark() == ATOMIC && writer.mark() == ATOMIC;
        !(writer.is_nobody() || both_atomic || self.ordered(writer))
    }

    /// True if the write of `self` races with the reads of `readers`.
    pub(crate) fn races_with_readers(self, readers: Stamp) -> bool {
        match readers.mark() {
            _ if readers.is_nobody() => false,
            ONE => !self.ordered(readers),
            WARP => {
                let same_phase = self.warp_phase() == readers.warp_phase() && self.warp_phase() != LAST_WARP_PHASE;
                !self.block_ordered(readers) && (!self.same_warp(readers) || same_phase)
            }
            BLOCK => !self.block_ordered(readers),
            _ => true,
        }
    }

    /// Returns the stamp of the readers once `self` has read, too.
    pub(crate) fn joins(self, readers: Stamp) -> Stamp {
        if readers.is_nobody() || readers.0 == self.0 {
            return self;
        }
        if !self.same_block(readers) {
            return Stamp(self.0 | MANY);
        }
        if readers.mark() == MANY {
            return readers;
        }
        if self.phase() != readers.phase() {
            return self;
        }
        if readers.mark() == BLOCK {
            return readers;
        }
        if !self.same_warp(readers) {
            return Stamp(self.0 | BLOCK);
        }
        if self.warp_phase() != readers.warp_phase() {
            return self;
        }
        if readers.mark() == ONE && self.thread() == readers.thread() { readers } else { Stamp(self.0 | WARP) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stamp(block: u64, phase: u32, warp_phase: u32, thread: u32) -> Stamp {
        Stamp::new(block, phase, warp_phase, thread)
    }

    #[test]
    fn parts_come_back() {
        let stamp = stamp(77, 5, 3, 1023);
        assert_eq!((stamp.block(), stamp.thread(), stamp.phase(), stamp.warp_phase()), (77, 1023, 5, 3));
        assert_eq!(super::Stamp::new(0, 0, 0, 32).of_lane(31).thread(), 63);
    }

    #[test]
    fn barriers_order() {
        let me = stamp(1, 2, 3, 40);
        assert!(!me.races_with_writer(Stamp(0)) && !me.races_with_writer(me));
        assert!(!me.races_with_writer(stamp(1, 1, 3, 99)), "a barrier of the block");
        assert!(!me.races_with_writer(stamp(1, 2, 2, 41)), "a barrier of the warp");
        assert!(me.races_with_writer(stamp(1, 2, 2, 99)), "of another warp");
        assert!(me.races_with_writer(stamp(1, 2, 3, 41)));
        assert!(me.races_with_writer(stamp(2, 1, 3, 40)), "of another block");
        assert!(!me.marked(ATOMIC).races_with_writer(stamp(2, 1, 3, 40).marked(ATOMIC)));
        assert!(me.races_with_writer(stamp(2, 1, 3, 40).marked(ATOMIC)));
    }

    #[test]
    fn readers_add_up() {
        let (first, second) = (stamp(1, 2, 3, 40), stamp(1, 2, 3, 41));
        let both = second.joins(first);
        assert!(!first.races_with_readers(first) && first.races_with_readers(both) && second.races_with_readers(both));
        assert!(!stamp(1, 2, 4, 41).races_with_readers(both), "a barrier of the warp later");
        assert!(stamp(1, 2, 4, 99).races_with_readers(both));
        let block = stamp(1, 2, 0, 99).joins(both);
        assert!(stamp(1, 2, 9, 40).races_with_readers(block) && !stamp(1, 3, 0, 7).races_with_readers(block));
        let many = stamp(2, 0, 0, 0).joins(block);
        assert!(stamp(2, 0, 0, 0).races_with_readers(many) && stamp(1, 3, 0, 7).races_with_readers(many));
        assert_eq!(stamp(1, 3, 0, 7).joins(block), stamp(1, 3, 0, 7));
    }
}
