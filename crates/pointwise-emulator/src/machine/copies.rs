//! `cp.async`: copies from global to shared memory. The thread waits for them later.
//!
//! The bytes are there at once, but an access to them before the thread has waited is a fault.

use super::{
    Found, LANES,
    block::Block,
    global,
    lanes::lanes,
    reach::{Reach, addresses, stamp},
    shared,
    warp::{Warp, undefined},
};
use crate::{
    check::stamp::COPYING,
    fault::Touch,
    program::{Access, NOWHERE, Slot, Space},
};

/// A copy that its thread has not waited for.
#[derive(Clone, Copy, Debug)]
struct Pending {
    lane: usize,
    /// The groups that the lane had completed before.
    group: u32,
    at: usize,
    bytes: usize,
}

/// The copies of a warp.
#[derive(Debug, Default)]
pub(super) struct Copies {
    pending: Vec<Pending>,
    /// The number of groups that each lane has completed.
    groups: [u32; LANES],
}

impl Copies {
    pub(super) fn clear(&mut self) {
        self.pending.clear();
        self.groups = [0; LANES];
    }

    /// Completes a group in some lanes.
    pub(super) fn commit(&mut self, mask: u32) {
        for lane in lanes(mask) {
            self.groups[lane] += 1;
        }
    }
}

/// The operands of `cp.async`.
pub(super) struct Copy<'a> {
    /// The target in shared memory.
    pub(super) access: &'a Access,
    pub(super) from: Slot,
    pub(super) from_offset: i64,
    /// The number of bytes that are read. The others are zero.
    pub(super) source: Slot,
}

/// Begins a copy.
pub(super) fn start(
    warp: &mut Warp,
    block: &mut Block<'_>,
    copy: Copy<'_>,
    pc: u32,
    mask: u32,
) -> Result<(), Box<Found>> {
    let checks = block.setup.checks;
    let targets = addresses(&warp.registers, copy.access, checks, pc, mask)?;
    let target = Reach { access: copy.access, addresses: &targets, mask, pc };
    let places = shared::places(block, &target, Touch::Write)?;
    let source =
        Access { space: Space::Global, address: copy.from, wide: true, offset: copy.from_offset, ..*copy.access };
    let sources = addresses(&warp.registers, &source, checks, pc, mask)?;
    let bytes = copy.access.bytes() as usize;
    let mut lengths = [bytes; LANES];
    if copy.source != NOWHERE {
        let (length, defined) = warp.registers.word(copy.source);
        if checks && defined & mask != mask {
            return Err(undefined(pc, mask & !defined, "how many bytes it reads"));
        }
        for lane in 0..LANES {
            lengths[lane] = lengths[lane].min(length[lane] as usize);
        }
    }
    let me = stamp(warp, block);
    for lane in lanes(mask) {
        let data = global::read_bytes(warp, block, &source, &sources, lane, lengths[lane], pc)?;
        if checks {
            let one = Reach { mask: 1 << lane, ..target };
            shared::note(block, &one, &places, me, Touch::Write)?;
            for at in places[lane]..places[lane] + bytes {
                block.shared.set_writer(at, me.of_lane(lane).marked(COPYING));
            }
            let group = warp.copies.groups[lane];
            warp.copies.pending.push(Pending { lane, group, at: places[lane], bytes });
        }
        for (at, word) in (places[lane]..).step_by(4).zip(data).take(bytes / 4) {
            block.shared.write(at, 4, u64::from(word));
        }
    }
    Ok(())
}

/// Waits for all groups but the latest `groups`.
pub(super) fn wait(warp: &mut Warp, block: &mut Block<'_>, groups: u32, mask: u32) {
    let me = stamp(warp, block);
    let completed = warp.copies.groups;
    warp.copies.pending.retain(|copy| {
        let arrived = mask >> copy.lane & 1 == 1 && copy.group + groups < completed[copy.lane];
        if arrived {
            for at in copy.at..copy.at + copy.bytes {
                block.shared.set_writer(at, me.of_lane(copy.lane));
            }
        }
        !arrived
    });
}
