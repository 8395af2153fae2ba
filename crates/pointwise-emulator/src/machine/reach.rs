//! The memory that the lanes of a warp reach with one instruction.

use super::{
    ALL, Found, LANES,
    block::Block,
    lanes::{Longs, lanes, map1},
    registers::Registers,
    warp::{Warp, found, undefined},
};
use crate::{
    check::stamp::Stamp,
    fault::{Problem, Touch},
    memory::view::Region,
    program::Access,
};

/// Returns the addresses of an access. Lanes that take no part get the address of a lane that does.
#[inline(always)]
pub(super) fn addresses(
    registers: &Registers,
    access: &Access,
    checks: bool,
    pc: u32,
    mask: u32,
) -> Result<Longs, Box<Found>> {
    let (mut addresses, defined) = if access.wide {
        let (base, defined) = registers.long(access.address);
        (map1(base, |base| base.wrapping_add_signed(access.offset)), defined)
    } else {
        let (base, defined) = registers.word(access.address);
        let offset = access.offset as u32;
        (map1(base, |base| u64::from(base.wrapping_add(offset))), defined)
    };
    if checks && defined & mask != mask {
        return Err(undefined(pc, mask & !defined, "its address"));
    }
    if mask != ALL {
        let first = addresses[mask.trailing_zeros() as usize & 31];
        for (lane, address) in addresses.iter_mut().enumerate() {
            if mask >> lane & 1 == 0 {
                *address = first;
            }
        }
    }
    Ok(addresses)
}

/// The lowest and highest address of an access, and their bits.
pub(super) struct Spread {
    pub(super) low: u64,
    pub(super) high: u64,
    /// The bits that are set in any address.
    pub(super) bits: u64,
}

impl Spread {
    #[inline(always)]
    pub(super) fn of(addresses: &Longs) -> Spread {
        let mut spread = Spread { low: u64::MAX, high: 0, bits: 0 };
        for &address in addresses {
            spread.low = spread.low.min(address);
            spread.high = spread.high.max(address);
            spread.bits |= address;
        }
        spread
    }
}

/// True if all lanes take part, and each begins where the lane before it ends.
#[inline(always)]
pub(super) fn is_contiguous(addresses: &Longs, bytes: u64, mask: u32) -> bool {
    let mut same = true;
    for lane in 0..LANES {
        same &= addresses[lane] == addresses[0].wrapping_add(lane as u64 * bytes);
    }
    same && mask == ALL
}

/// One access of a warp to one region.
pub(super) struct Reach<'a> {
    pub(super) access: &'a Access,
    pub(super) addresses: &'a Longs,
    pub(super) mask: u32,
    pub(super) pc: u32,
}

impl Reach<'_> {
    #[inline(always)]
    pub(super) fn bytes(&self) -> u64 {
        u64::from(self.access.bytes())
    }

    /// Returns the offsets in a region where the bytes of a lane begin and end.
    #[inline(always)]
    pub(super) fn place(&self, region: &Region, lane: usize) -> (usize, usize) {
        let from = (self.addresses[lane] - region.start) as usize;
        (from, from + self.bytes() as usize)
    }

    /// Returns the first lane that `wrong` accepts.
    pub(super) fn first(&self, mut wrong: impl FnMut(usize) -> bool) -> Option<usize> {
        lanes(self.mask).find(|&lane| wrong(lane))
    }

    #[cold]
    pub(super) fn fail(
        &self,
        block: &Block<'_>,
        lane: usize,
        problem: impl FnOnce(u32, u64, String) -> Problem,
    ) -> Box<Found> {
        let address = self.addresses[lane];
        found(self.pc, 1 << lane, problem(self.access.bytes(), address, block.place(address)))
    }
}

/// Returns the stamp of a warp's first lane.
#[inline(always)]
pub(super) fn stamp(warp: &Warp, block: &Block<'_>) -> Stamp {
    Stamp::new(block.number, block.phase, warp.phase, warp.index * 32)
}

/// Returns the finding for addresses that are misaligned or in no allocation; `None` if they are in several.
#[cold]
pub(super) fn misplaced(block: &Block<'_>, reach: &Reach<'_>, touch: Touch) -> Option<Box<Found>> {
    let bytes = reach.bytes();
    for lane in lanes(reach.mask) {
        let address = reach.addresses[lane];
        if !address.is_multiple_of(bytes) {
            return Some(reach.fail(block, lane, |bytes, address, place| Problem::Misaligned {
                touch,
                bytes,
                address,
                place,
            }));
        }
        if block.setup.view.find(address, address.saturating_add(bytes), &mut 0).is_none() {
            return Some(reach.fail(block, lane, |bytes, address, place| Problem::Outside {
                touch,
                bytes,
                address,
                place,
            }));
        }
    }
    None
}
