//! Checks accesses to global memory that are in bounds.

use std::sync::atomic::Ordering::Relaxed;

use super::{
    Found, LANES,
    block::Block,
    lanes::lanes,
    reach::{Reach, stamp},
    warp::{Warp, found},
};
use crate::{
    check::shadow::Other,
    fault::{Earlier, Problem, Touch},
    memory::view::Region,
};

#[cold]
pub(super) fn race(block: &Block<'_>, pc: u32, lane: usize, touch: Touch, address: u64, other: Other) -> Box<Found> {
    let place = block.place(address);
    let who = block.setup.who(other.stamp, block.number);
    found(pc, 1 << lane, Problem::Race { touch, address, other: who, other_touch: other.touch, place })
}

/// Fails if lanes that have not waited touch memory of an earlier launch.
pub(super) fn check_wait(
    block: &Block<'_>,
    reach: &Reach<'_>,
    region: &Region,
    waited: u32,
    touch: Touch,
) -> Result<(), Box<Found>> {
    let early = Reach { mask: reach.mask & !waited, ..*reach };
    let allocation = &region.allocation;
    let wrote = early.first(|lane| {
        let (from, to) = early.place(region, lane);
        allocation.is_launched(from, to)
    });
    let read = (touch != Touch::Read && allocation.read_by_launch.load(Relaxed)).then(|| early.mask.trailing_zeros());
    let (lane, earlier) = match (wrote, read) {
        (Some(lane), _) => (lane, Earlier::Wrote),
        (None, Some(lane)) => (lane as usize & 31, Earlier::Read),
        (None, None) => return Ok(()),
    };
    let problem = |bytes, address, place| Problem::BeforeWait { touch, bytes, address, earlier, place };
    Err(early.fail(block, lane, problem))
}

/// Checks a read of global memory that is in bounds, and notes it.
#[inline(always)]
pub(super) fn check_read(
    warp: &Warp,
    block: &Block<'_>,
    reach: &Reach<'_>,
    region: &Region,
    contiguous: bool,
) -> Result<(), Box<Found>> {
    let allocation = &*region.allocation;
    if reach.mask & !warp.waited != 0 {
        check_wait(block, reach, region, warp.waited, Touch::Read)?;
    }
    region.note_read();
    let (first, _) = reach.place(region, 0);
    let whole = contiguous && allocation.is_written(first, first + LANES * reach.bytes() as usize);
    if !whole {
        let unwritten = reach.first(|lane| {
            let (from, to) = reach.place(region, lane);
            !allocation.is_written(from, to)
        });
        if let Some(lane) = unwritten {
            return Err(reach.fail(block, lane, |bytes, address, place| Problem::Unwritten { bytes, address, place }));
        }
    }
    if !region.writable.is_empty() {
        note(warp, block, reach, region, Touch::Read)?;
    }
    Ok(())
}

/// Checks a write of global memory that is in bounds, and notes it.
#[inline(always)]
pub(super) fn check_write(
    warp: &Warp,
    block: &Block<'_>,
    reach: &Reach<'_>,
    region: &Region,
    contiguous: bool,
) -> Result<(), Box<Found>> {
    let allocation = &*region.allocation;
    if reach.mask & !warp.waited != 0 {
        check_wait(block, reach, region, warp.waited, Touch::Write)?;
    }
    region.note_write();
    let bytes = reach.bytes();
    let first = reach.addresses[0];
    if !(contiguous && region.may_write(first, first + LANES as u64 * bytes)) {
        let outside = reach.first(|lane| {
            let address = reach.addresses[lane];
            !region.may_write(address, address + bytes)
        });
        if let Some(lane) = outside {
            return Err(reach.fail(block, lane, |bytes, address, place| Problem::NotAResult { bytes, address, place }));
        }
    }
    note(warp, block, reach, region, Touch::Write)?;
    if contiguous {
        let (from, _) = reach.place(region, 0);
        allocation.mark_written(from, from + LANES * bytes as usize);
    } else {
        for lane in lanes(reach.mask) {
            let (from, to) = reach.place(region, lane);
            allocation.mark_written(from, to);
        }
    }
    Ok(())
}

/// Notes the thread that touches each byte, and finds races.
#[inline(always)]
pub(super) fn note(
    warp: &Warp,
    block: &Block<'_>,
    reach: &Reach<'_>,
    region: &Region,
    touch: Touch,
) -> Result<(), Box<Found>> {
    let me = stamp(warp, block);
    let me = if touch == Touch::Atomic { me.marked(crate::check::stamp::ATOMIC) } else { me };
    let bytes = reach.bytes();
    for lane in lanes(reach.mask) {
        let start = reach.addresses[lane];
        let mut address = start;
        let end = start + bytes;
        let me = me.of_lane(lane);
        while address < end {
            let Some(shadow) = region.shadow(address) else {
                address += 1;
                continue;
            };
            let word = address.is_multiple_of(4) && end - address >= 4;
            let other = match (touch, word) {
                (Touch::Read, true) => shadow.read_word(address, me),
                (Touch::Read, false) => shadow.read_byte(address, me),
                (_, true) => shadow.write_word(address, me),
                (_, false) => shadow.write_byte(address, me),
            };
            if let Some(other) = other {
                return Err(race(block, reach.pc, lane, touch, address, other));
            }
            address += if word { 4 } else { 1 };
        }
    }
    Ok(())
}
