//! Loads and stores of global memory, and loads of parameters.

use std::sync::atomic::Ordering::Relaxed;

use super::{
    ALL, Found, LANES,
    block::Block,
    checks::{check_read, check_wait, check_write, note},
    lanes::{Longs, lanes, map1},
    reach::{Reach, Spread, addresses, is_contiguous, misplaced},
    registers::Registers,
    warp::{Warp, undefined},
};
use crate::{
    fault::{Problem, Touch},
    memory::view::Region,
    program::Access,
};

/// Loads from global memory.
#[inline(always)]
pub(super) fn load(
    warp: &mut Warp,
    block: &mut Block<'_>,
    access: &Access,
    pc: u32,
    mask: u32,
) -> Result<(), Box<Found>> {
    let addresses = addresses(&warp.registers, access, block.setup.checks, pc, mask)?;
    let reach = Reach { access, addresses: &addresses, mask, pc };
    let spread = Spread::of(&addresses);
    let bytes = reach.bytes();
    let view = &block.setup.view;
    let region = if spread.bits & (bytes - 1) == 0 {
        view.find(spread.low, spread.high.saturating_add(bytes), &mut block.hints[pc as usize])
    } else {
        None
    };
    let Some(region) = region else {
        if let Some(found) = misplaced(block, &reach, Touch::Read) {
            return Err(found);
        }
        // The lanes are in several allocations.
        for lane in lanes(mask) {
            load(warp, block, access, pc, 1 << lane)?;
        }
        return Ok(());
    };
    let contiguous = is_contiguous(&addresses, bytes, mask);
    if block.setup.checks {
        check_read(warp, block, &reach, region, contiguous)?;
    }
    let words = &region.allocation.words[..];
    let count = usize::from(access.count);
    if access.size == 4 && !access.long {
        for component in 0..count {
            let mut value = [0; LANES];
            if contiguous {
                let (first, _) = reach.place(region, 0);
                let words = &words[first / 4..first / 4 + LANES * count];
                for (value, group) in value.iter_mut().zip(words.chunks_exact(count)) {
                    *value = group[component].load(Relaxed);
                }
            } else {
                for (lane, value) in value.iter_mut().enumerate() {
                    *value = words[reach.place(region, lane).0 / 4 + component].load(Relaxed);
                }
            }
            warp.registers.set_word(access.registers[component], &value, ALL, mask);
        }
        return Ok(());
    }
    for component in 0..count {
        let mut value = [0; LANES];
        for (lane, value) in value.iter_mut().enumerate() {
            let at = reach.place(region, lane).0 + component * usize::from(access.size);
            let word = words[at / 4].load(Relaxed);
            *value = if access.size == 8 {
                u64::from(word) | u64::from(words[at / 4 + 1].load(Relaxed)) << 32
            } else {
                u64::from(word >> (8 * (at % 4)))
            };
        }
        set(&mut warp.registers, access, component, &value, mask);
    }
    Ok(())
}

/// Puts loaded elements into a register, extended to its size. Bits above the element are ignored.
#[inline(always)]
pub(super) fn set(registers: &mut Registers, access: &Access, component: usize, value: &Longs, mask: u32) {
    let above = 64 - 8 * u32::from(access.size);
    let extended = if access.signed {
        map1(value, |value| ((value << above) as i64 >> above) as u64)
    } else {
        map1(value, |value| value << above >> above)
    };
    let slot = access.registers[component];
    if access.long {
        registers.set_long(slot, &extended, ALL, mask);
    } else {
        let keep = if access.half { 0xffff } else { u32::MAX };
        registers.set_word(slot, &map1(&extended, |value| value as u32 & keep), ALL, mask);
    }
}

/// Returns the elements of a store, and the lanes that have a value.
#[inline(always)]
pub(super) fn stored(registers: &Registers, access: &Access, component: usize) -> (Longs, u32) {
    let slot = access.registers[component];
    if access.long {
        let (value, defined) = registers.long(slot);
        (*value, defined)
    } else {
        let (value, defined) = registers.word(slot);
        (map1(value, u64::from), defined)
    }
}

/// Fails if a stored register has no value.
#[inline(always)]
pub(super) fn check_stored(registers: &Registers, access: &Access, pc: u32, mask: u32) -> Result<(), Box<Found>> {
    let mut defined = ALL;
    for &slot in &access.registers[..usize::from(access.count)] {
        defined &= if access.long { registers.long(slot).1 } else { registers.word(slot).1 };
    }
    if defined & mask == mask { Ok(()) } else { Err(undefined(pc, mask & !defined, "what it stores")) }
}

/// Stores to global memory.
#[inline(always)]
pub(super) fn store(
    warp: &mut Warp,
    block: &mut Block<'_>,
    access: &Access,
    pc: u32,
    mask: u32,
) -> Result<(), Box<Found>> {
    let checks = block.setup.checks;
    let addresses = addresses(&warp.registers, access, checks, pc, mask)?;
    let reach = Reach { access, addresses: &addresses, mask, pc };
    let spread = Spread::of(&addresses);
    let bytes = reach.bytes();
    let view = &block.setup.view;
    let region = if spread.bits & (bytes - 1) == 0 {
        view.find(spread.low, spread.high.saturating_add(bytes), &mut block.hints[pc as usize])
    } else {
        None
    };
    let Some(region) = region else {
        if let Some(found) = misplaced(block, &reach, Touch::Write) {
            return Err(found);
        }
        for lane in lanes(mask) {
            store(warp, block, access, pc, 1 << lane)?;
        }
        return Ok(());
    };
    let contiguous = is_contiguous(&addresses, bytes, mask);
    if checks {
        check_stored(&warp.registers, access, pc, mask)?;
        check_write(warp, block, &reach, region, contiguous)?;
    }
    put(&warp.registers, &reach, region, contiguous);
    Ok(())
}

/// Writes the elements of a store.
#[inline(always)]
fn put(registers: &Registers, reach: &Reach<'_>, region: &Region, contiguous: bool) {
    let access = reach.access;
    let allocation = &*region.allocation;
    let count = usize::from(access.count);
    let (first, _) = reach.place(region, 0);
    if access.size == 4 && !access.long && contiguous {
        let words = &allocation.words[first / 4..first / 4 + LANES * count];
        for component in 0..count {
            let (value, _) = registers.word(access.registers[component]);
            for (value, group) in value.iter().zip(words.chunks_exact(count)) {
                group[component].store(*value, Relaxed);
            }
        }
        return;
    }
    for component in 0..count {
        let (value, _) = stored(registers, access, component);
        let size = usize::from(access.size);
        if size < 4 && count == 1 && contiguous && first.is_multiple_of(4) {
            // Neighbours fill whole words.
            let each = 4 / size;
            let keep = u64::MAX >> (64 - 8 * size);
            for (word, values) in allocation.words[first / 4..].iter().zip(value.chunks_exact(each)) {
                let whole = values.iter().rev().fold(0, |whole, value| whole << (8 * size) | value & keep);
                word.store(whole as u32, Relaxed);
            }
            continue;
        }
        for lane in lanes(reach.mask) {
            let at = reach.place(region, lane).0 + component * size;
            let value = value[lane];
            match size {
                8 => {
                    allocation.words[at / 4].store(value as u32, Relaxed);
                    allocation.words[at / 4 + 1].store((value >> 32) as u32, Relaxed);
                }
                4 => allocation.words[at / 4].store(value as u32, Relaxed),
                _ => {
                    let shift = 8 * (at as u32 % 4);
                    let keep = u32::MAX >> (32 - 8 * size);
                    allocation.merge(at / 4, keep << shift, (value as u32 & keep) << shift);
                }
            }
        }
    }
}

/// Loads a parameter from an offset that the text gives.
pub(super) fn load_parameter(
    registers: &mut Registers,
    arguments: &[u8],
    access: &Access,
    at: u32,
    known: u32,
    mask: u32,
) {
    let size = usize::from(access.size);
    for component in 0..usize::from(access.count) {
        let at = at as usize + component * size;
        let mut bytes = [0; 8];
        // The decoder has checked that it is inside of the parameters.
        if let Some(argument) = arguments.get(at..at + size) {
            bytes[..size].copy_from_slice(argument);
        }
        set(registers, access, component, &[u64::from_le_bytes(bytes); LANES], mask & known);
    }
}

/// [`load`], not inlined: for callers that rarely run.
pub(super) fn load_plain(
    warp: &mut Warp,
    block: &mut Block<'_>,
    access: &Access,
    pc: u32,
    mask: u32,
) -> Result<(), Box<Found>> {
    load(warp, block, access, pc, mask)
}

/// [`store`], not inlined: for callers that rarely run.
pub(super) fn store_plain(
    warp: &mut Warp,
    block: &mut Block<'_>,
    access: &Access,
    pc: u32,
    mask: u32,
) -> Result<(), Box<Found>> {
    store(warp, block, access, pc, mask)
}

/// Checks the address of an atomic operation of one lane. Returns its region and its offset there.
pub(super) fn locate_atomic<'l>(
    warp: &Warp,
    block: &mut Block<'l>,
    access: &Access,
    addresses: &Longs,
    lane: usize,
    pc: u32,
) -> Result<(&'l Region, usize), Box<Found>> {
    let reach = Reach { access, addresses, mask: 1 << lane, pc };
    if let Some(found) = misplaced(block, &reach, Touch::Atomic) {
        return Err(found);
    }
    let setup = block.setup;
    let address = addresses[lane];
    let region = setup.view.find(address, address + reach.bytes(), &mut block.hints[pc as usize]);
    // `misplaced` has checked that there is one.
    let Some(region) = region else {
        let problem = |bytes, address, place| Problem::Outside { touch: Touch::Atomic, bytes, address, place };
        return Err(reach.fail(block, lane, problem));
    };
    let (from, to) = reach.place(region, lane);
    if setup.checks {
        if reach.mask & !warp.waited != 0 {
            check_wait(block, &reach, region, warp.waited, Touch::Atomic)?;
        }
        if !region.allocation.is_written(from, to) {
            return Err(reach.fail(block, lane, |bytes, address, place| Problem::Unwritten { bytes, address, place }));
        }
        if !region.may_write(address, address + reach.bytes()) {
            return Err(reach.fail(block, lane, |bytes, address, place| Problem::NotAResult { bytes, address, place }));
        }
        region.note_read();
        region.note_write();
        note(warp, block, &reach, region, Touch::Atomic)?;
    }
    Ok((region, from))
}

/// Returns the words that `cp.async` reads in one lane: `length` bytes, then zeros.
pub(super) fn read_bytes(
    warp: &Warp,
    block: &mut Block<'_>,
    access: &Access,
    addresses: &Longs,
    lane: usize,
    length: usize,
    pc: u32,
) -> Result<[u32; 4], Box<Found>> {
    let mut data = [0; 4];
    // The address is aligned to the whole copy, even if less is read.
    let whole = Reach { access, addresses, mask: 1 << lane, pc };
    if !addresses[lane].is_multiple_of(whole.bytes()) {
        let problem = |bytes, address, place| Problem::Misaligned { touch: Touch::Read, bytes, address, place };
        return Err(whole.fail(block, lane, problem));
    }
    for at in 0..length {
        let byte = Access { size: 1, count: 1, offset: 0, ..*access };
        let mut one = *addresses;
        one[lane] += at as u64;
        let reach = Reach { access: &byte, addresses: &one, mask: 1 << lane, pc };
        let setup = block.setup;
        let Some(region) = setup.view.find(one[lane], one[lane] + 1, &mut block.hints[pc as usize]) else {
            let problem = |bytes, address, place| Problem::Outside { touch: Touch::Read, bytes, address, place };
            return Err(whole.fail(block, lane, problem));
        };
        if setup.checks {
            check_read(warp, block, &reach, region, false)?;
        }
        let (place, _) = reach.place(region, lane);
        let value = region.allocation.words[place / 4].load(Relaxed) >> (8 * (place % 4)) & 0xff;
        data[at / 4] |= value << (8 * (at % 4));
    }
    Ok(data)
}
