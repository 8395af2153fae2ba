//! Loads and stores of shared memory, and of generic addresses.
//!
//! A block runs on one host thread, so its shared memory needs no atomics. Every byte has a stamp of its last writer
//! and one of its readers. Stamps of earlier blocks are ignored, so nothing is cleared between blocks.

use super::{
    Found, LANES,
    block::Block,
    global::{self, check_stored, set, stored},
    lanes::{Longs, lanes, map1},
    reach::{Reach, addresses, stamp},
    warp::{Warp, found},
};
use crate::{
    check::{
        shadow::Other,
        stamp::{COPYING, Stamp},
    },
    decode::{SHARED_BASE, SHARED_WINDOW},
    fault::{Problem, Touch},
    program::{Access, Space},
};

/// The shared memory of a block.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) words: Vec<u32>,
    pub(super) bytes: u32,
    writers: Vec<Stamp>,
    readers: Vec<Stamp>,
}

impl Shared {
    pub(super) fn new(bytes: u32, checks: bool) -> Shared {
        let stamps = if checks { bytes as usize } else { 0 };
        Shared {
            words: vec![0; (bytes as usize).div_ceil(4)],
            bytes,
            writers: vec![Stamp(0); stamps],
            readers: vec![Stamp(0); stamps],
        }
    }

    /// Reads an element of 1 to 8 bytes. The bits above it have no meaning.
    #[inline(always)]
    pub(super) fn read(&self, at: usize, size: usize) -> u64 {
        let word = self.words[at / 4];
        if size == 8 {
            u64::from(word) | u64::from(self.words[at / 4 + 1]) << 32
        } else {
            u64::from(word >> (8 * (at % 4)))
        }
    }

    #[inline(always)]
    pub(super) fn write(&mut self, at: usize, size: usize, value: u64) {
        if size == 8 {
            self.words[at / 4] = value as u32;
            self.words[at / 4 + 1] = (value >> 32) as u32;
        } else if size == 4 {
            self.words[at / 4] = value as u32;
        } else {
            let shift = 8 * (at % 4);
            let keep = u32::MAX >> (32 - 8 * size) << shift;
            let word = &mut self.words[at / 4];
            *word = *word & !keep | (value as u32) << shift & keep;
        }
    }

    /// Returns the stamp of the last writer of a byte in this block.
    fn writer(&self, at: usize, me: Stamp) -> Stamp {
        let writer = self.writers[at];
        if writer.same_block(me) { writer } else { Stamp(0) }
    }

    fn readers(&self, at: usize, me: Stamp) -> Stamp {
        let readers = self.readers[at];
        if readers.same_block(me) { readers } else { Stamp(0) }
    }

    pub(super) fn set_writer(&mut self, at: usize, stamp: Stamp) {
        self.writers[at] = stamp;
    }
}

/// A mistake with a byte of shared memory.
enum Wrong {
    Unwritten,
    Copying(Stamp),
    Race(Other),
}

impl Shared {
    /// Notes that a thread reads a byte.
    #[inline(always)]
    fn note_read(&mut self, at: usize, me: Stamp) -> Result<(), Wrong> {
        let writer = self.writer(at, me);
        if writer.is_nobody() {
            return Err(Wrong::Unwritten);
        }
        if writer.mark() == COPYING {
            return Err(Wrong::Copying(writer));
        }
        if me.races_with_writer(writer) {
            return Err(Wrong::Race(Other { stamp: writer, touch: Touch::Write }));
        }
        self.readers[at] = me.joins(self.readers(at, me));
        Ok(())
    }

    /// Notes that a thread writes a byte.
    #[inline(always)]
    fn note_write(&mut self, at: usize, me: Stamp) -> Result<(), Wrong> {
        let writer = self.writer(at, me);
        if writer.mark() == COPYING && !writer.is_nobody() {
            return Err(Wrong::Copying(writer));
        }
        if me.races_with_writer(writer) {
            return Err(Wrong::Race(Other { stamp: writer, touch: Touch::Write }));
        }
        let readers = self.readers(at, me);
        if me.races_with_readers(readers) {
            return Err(Wrong::Race(Other { stamp: readers, touch: Touch::Read }));
        }
        self.writers[at] = me;
        Ok(())
    }
}

/// Checks addresses of shared memory. Returns them as offsets in the block's shared memory.
#[inline(always)]
pub(super) fn places(block: &Block<'_>, reach: &Reach<'_>, touch: Touch) -> Result<[usize; LANES], Box<Found>> {
    let bytes = u64::from(reach.access.bytes());
    let end = u64::from(SHARED_BASE) + u64::from(block.shared.bytes);
    let mut wrong = false;
    for &address in reach.addresses {
        wrong |= address < u64::from(SHARED_BASE) || address.saturating_add(bytes) > end || address & (bytes - 1) != 0;
    }
    if wrong {
        return Err(misplaced(block, reach, touch, end));
    }
    Ok(map1(reach.addresses, |address| (address - u64::from(SHARED_BASE)) as usize))
}

#[cold]
fn misplaced(block: &Block<'_>, reach: &Reach<'_>, touch: Touch, end: u64) -> Box<Found> {
    let bytes = reach.access.bytes();
    let size = block.shared.bytes;
    for lane in lanes(reach.mask) {
        let address = reach.addresses[lane];
        let place = if address < u64::from(SHARED_BASE) {
            format!("before the {size} bytes of shared memory, which begin at {SHARED_BASE:#x}")
        } else if address.saturating_add(u64::from(bytes)) > end {
            format!("beyond the {size} bytes of shared memory, which end at {end:#x}")
        } else {
            let place = format!("{} bytes in shared memory", address - u64::from(SHARED_BASE));
            if address.is_multiple_of(u64::from(bytes)) {
                continue;
            }
            return found(reach.pc, 1 << lane, Problem::Misaligned { touch, bytes, address, place });
        };
        return found(reach.pc, 1 << lane, Problem::Outside { touch, bytes, address, place });
    }
    // Not reached: some lane is wrong.
    found(reach.pc, reach.mask, Problem::Outside { touch, bytes, address: reach.addresses[0], place: String::new() })
}

/// Notes the thread that touches each byte, and finds races and copies that have not arrived. Returns the lanes that
/// read bytes that nobody has written: their value is undefined, which is no fault until it matters.
#[inline(always)]
pub(super) fn note(
    block: &mut Block<'_>,
    reach: &Reach<'_>,
    places: &[usize; LANES],
    me: Stamp,
    touch: Touch,
) -> Result<u32, Box<Found>> {
    let bytes = reach.access.bytes() as usize;
    let mut undefined = 0;
    for lane in lanes(reach.mask) {
        let me = me.of_lane(lane);
        for at in places[lane]..places[lane] + bytes {
            let noted = match touch {
                Touch::Read => block.shared.note_read(at, me),
                Touch::Write => block.shared.note_write(at, me),
                // An unwritten byte cannot be changed.
                Touch::Atomic => block.shared.note_atomic(at, me),
            };
            match (noted, touch) {
                (Ok(()), _) => {}
                (Err(Wrong::Unwritten), Touch::Read) => undefined |= 1 << lane,
                (Err(wrong), _) => return Err(fail(block, reach, lane, at, touch, &wrong)),
            }
        }
    }
    Ok(undefined)
}

impl Shared {
    fn note_atomic(&mut self, at: usize, me: Stamp) -> Result<(), Wrong> {
        if self.writer(at, me).is_nobody() {
            return Err(Wrong::Unwritten);
        }
        self.note_write(at, me)
    }
}

#[cold]
fn fail(block: &Block<'_>, reach: &Reach<'_>, lane: usize, at: usize, touch: Touch, wrong: &Wrong) -> Box<Found> {
    let bytes = reach.access.bytes();
    let address = reach.addresses[lane];
    let who = |stamp| block.setup.who(stamp, block.number);
    let problem = match *wrong {
        Wrong::Unwritten => Problem::Unwritten {
            bytes,
            address,
            place: format!("{} bytes in shared memory", address - u64::from(SHARED_BASE)),
        },
        Wrong::Copying(stamp) => Problem::BeforeCopied { touch, bytes, address, other: who(stamp) },
        Wrong::Race(other) => Problem::Race {
            touch,
            address: at as u64 + u64::from(SHARED_BASE),
            other: who(other.stamp),
            other_touch: other.touch,
            place: format!("{at} bytes in shared memory"),
        },
    };
    found(reach.pc, 1 << lane, problem)
}

/// Loads from shared memory.
pub(super) fn load(
    warp: &mut Warp,
    block: &mut Block<'_>,
    access: &Access,
    pc: u32,
    mask: u32,
) -> Result<(), Box<Found>> {
    let addresses = addresses(&warp.registers, access, block.setup.checks, pc, mask)?;
    load_at(warp, block, &Reach { access, addresses: &addresses, mask, pc })
}

fn load_at(warp: &mut Warp, block: &mut Block<'_>, reach: &Reach<'_>) -> Result<(), Box<Found>> {
    let places = places(block, reach, Touch::Read)?;
    let mut undefined = 0;
    if block.setup.checks {
        let me = stamp(warp, block);
        undefined = note(block, reach, &places, me, Touch::Read)?;
    }
    let size = usize::from(reach.access.size);
    for component in 0..usize::from(reach.access.count) {
        let value = map1(&places, |place| block.shared.read(place + component * size, size));
        set(&mut warp.registers, reach.access, component, &value, reach.mask);
        if undefined != 0 {
            warp.registers.forget(reach.access.registers[component], reach.access.long, undefined);
        }
    }
    Ok(())
}

/// Stores to shared memory.
pub(super) fn store(
    warp: &mut Warp,
    block: &mut Block<'_>,
    access: &Access,
    pc: u32,
    mask: u32,
) -> Result<(), Box<Found>> {
    let addresses = addresses(&warp.registers, access, block.setup.checks, pc, mask)?;
    store_at(warp, block, &Reach { access, addresses: &addresses, mask, pc })
}

fn store_at(warp: &mut Warp, block: &mut Block<'_>, reach: &Reach<'_>) -> Result<(), Box<Found>> {
    let places = places(block, reach, Touch::Write)?;
    if block.setup.checks {
        check_stored(&warp.registers, reach.access, reach.pc, reach.mask)?;
        let me = stamp(warp, block);
        note(block, reach, &places, me, Touch::Write)?;
    }
    let size = usize::from(reach.access.size);
    for component in 0..usize::from(reach.access.count) {
        let (value, _) = stored(&warp.registers, reach.access, component);
        for lane in lanes(reach.mask) {
            block.shared.write(places[lane] + component * size, size, value[lane]);
        }
    }
    Ok(())
}

/// Returns the lanes of a generic access whose addresses are in the shared window.
pub(super) fn in_window(addresses: &Longs, mask: u32) -> u32 {
    lanes(mask).filter(|&lane| addresses[lane] >= SHARED_WINDOW).fold(0, |window, lane| window | 1 << lane)
}

/// Turns generic addresses into shared ones. Lanes outside of `mask` get the address of its first lane.
pub(super) fn windowed(addresses: &Longs, mask: u32) -> Longs {
    let first = addresses[mask.trailing_zeros() as usize & 31];
    let mut places = [0; LANES];
    for lane in 0..LANES {
        let address = if mask >> lane & 1 == 1 { addresses[lane] } else { first };
        places[lane] = address.wrapping_sub(SHARED_WINDOW);
    }
    places
}

/// Loads from generic addresses, or from parameters by an address in a register.
pub(super) fn load_generic(
    warp: &mut Warp,
    block: &mut Block<'_>,
    access: &Access,
    pc: u32,
    mask: u32,
) -> Result<(), Box<Found>> {
    let addresses = addresses(&warp.registers, access, block.setup.checks, pc, mask)?;
    if access.space == Space::Parameter {
        return load_parameter(warp, block, &Reach { access, addresses: &addresses, mask, pc });
    }
    let window = in_window(&addresses, mask);
    if window != 0 {
        let addresses = windowed(&addresses, window);
        load_at(warp, block, &Reach { access, addresses: &addresses, mask: window, pc })?;
    }
    if mask != window { global::load_plain(warp, block, access, pc, mask & !window) } else { Ok(()) }
}

/// Stores to generic addresses.
pub(super) fn store_generic(
    warp: &mut Warp,
    block: &mut Block<'_>,
    access: &Access,
    pc: u32,
    mask: u32,
) -> Result<(), Box<Found>> {
    let addresses = addresses(&warp.registers, access, block.setup.checks, pc, mask)?;
    let window = in_window(&addresses, mask);
    if window != 0 {
        let addresses = windowed(&addresses, window);
        store_at(warp, block, &Reach { access, addresses: &addresses, mask: window, pc })?;
    }
    if mask != window { global::store_plain(warp, block, access, pc, mask & !window) } else { Ok(()) }
}

/// Loads parameters from addresses in registers.
fn load_parameter(warp: &mut Warp, block: &Block<'_>, reach: &Reach<'_>) -> Result<(), Box<Found>> {
    let access = reach.access;
    let arguments = block.setup.arguments;
    let bytes = access.bytes();
    for lane in lanes(reach.mask) {
        let address = reach.addresses[lane];
        let at = address.checked_sub(crate::decode::PARAMETER_BASE).and_then(|at| usize::try_from(at).ok());
        let inside = at.is_some_and(|at| at.checked_add(bytes as usize).is_some_and(|to| to <= arguments.len()));
        let touch = Touch::Read;
        if !inside {
            let place = format!("outside of the {} bytes of parameters", arguments.len());
            return Err(found(reach.pc, 1 << lane, Problem::Outside { touch, bytes, address, place }));
        }
        if !address.is_multiple_of(u64::from(bytes)) {
            let place = "in the parameters".to_owned();
            return Err(found(reach.pc, 1 << lane, Problem::Misaligned { touch, bytes, address, place }));
        }
    }
    let size = usize::from(access.size);
    for component in 0..usize::from(access.count) {
        let value = map1(reach.addresses, |address| {
            let at = usize::try_from(address - crate::decode::PARAMETER_BASE).unwrap_or(0) + component * size;
            let mut bytes = [0; 8];
            bytes[..size].copy_from_slice(&arguments[at..at + size]);
            u64::from_le_bytes(bytes)
        });
        set(&mut warp.registers, access, component, &value, reach.mask);
    }
    Ok(())
}
