//! `atom` and `red`: one lane after the other.
//!
//! In global memory, operations of 32 bits use the CPU's atomic operations. Operations of 64 bits change two words:
//! they are atomic only among themselves.

use std::sync::{PoisonError, atomic::Ordering::Relaxed};

use super::{
    Found, LANES,
    block::Block,
    global::{self, check_stored, set, stored},
    lanes::lanes,
    reach::{Reach, addresses, stamp},
    shared::{self, in_window, windowed},
    warp::Warp,
};
use crate::{
    check::stamp::ATOMIC,
    fault::Touch,
    numerics::single,
    program::{Access, AtomicOperation, Slot, Space},
};

/// The operands of an atomic operation.
pub(super) struct Atomic<'a> {
    pub(super) op: AtomicOperation,
    pub(super) access: &'a Access,
    pub(super) value: Slot,
    /// The number that `cas` compares with.
    pub(super) second: Slot,
}

/// Runs an atomic operation.
pub(super) fn run(
    warp: &mut Warp,
    block: &mut Block<'_>,
    atomic: Atomic<'_>,
    pc: u32,
    mask: u32,
) -> Result<(), Box<Found>> {
    let access = atomic.access;
    let checks = block.setup.checks;
    let all = addresses(&warp.registers, access, checks, pc, mask)?;
    let operand = |slot| Access { registers: [slot; 4], ..*access };
    let (value, second) = (operand(atomic.value), operand(atomic.second));
    if checks {
        check_stored(&warp.registers, &value, pc, mask)?;
        check_stored(&warp.registers, &second, pc, mask)?;
    }
    let (values, _) = stored(&warp.registers, &value, 0);
    let (seconds, _) = stored(&warp.registers, &second, 0);
    let window = match access.space {
        Space::Shared => mask,
        Space::Generic => in_window(&all, mask),
        _ => 0,
    };
    let long = access.size == 8;
    let size = usize::from(access.size);
    let mut before = [0; LANES];
    if window != 0 {
        let inside = if access.space == Space::Shared { all } else { windowed(&all, window) };
        let reach = Reach { access, addresses: &inside, mask: window, pc };
        let places = shared::places(block, &reach, Touch::Atomic)?;
        if checks {
            let me = stamp(warp, block).marked(ATOMIC);
            shared::note(block, &reach, &places, me, Touch::Atomic)?;
        }
        for lane in lanes(window) {
            before[lane] = block.shared.read(places[lane], size);
            let after = combine(atomic.op, long, before[lane], values[lane], seconds[lane]);
            block.shared.write(places[lane], size, after);
        }
    }
    for lane in lanes(mask & !window) {
        let (region, at) = global::locate_atomic(warp, block, access, &all, lane, pc)?;
        let words = &region.allocation.words;
        let change = |now| combine(atomic.op, long, now, values[lane], seconds[lane]);
        before[lane] = if long {
            let _alone = block.setup.atomics.lock().unwrap_or_else(PoisonError::into_inner);
            let (low, high) = (words[at / 4].load(Relaxed), words[at / 4 + 1].load(Relaxed));
            let now = u64::from(low) | u64::from(high) << 32;
            let [low, high] = halves(change(now));
            words[at / 4].store(low, Relaxed);
            words[at / 4 + 1].store(high, Relaxed);
            now
        } else {
            let [now, _] = halves(u64::from(update(&words[at / 4], |now| halves(change(u64::from(now)))[0])));
            u64::from(now)
        };
    }
    set(&mut warp.registers, access, 0, &before, mask);
    Ok(())
}

fn update(word: &std::sync::atomic::AtomicU32, change: impl Fn(u32) -> u32) -> u32 {
    word.fetch_update(Relaxed, Relaxed, |now| Some(change(now))).unwrap_or_else(|now| now)
}

fn halves(value: u64) -> [u32; 2] {
    [value as u32, (value >> 32) as u32]
}

/// Returns the new value in memory.
fn combine(op: AtomicOperation, long: bool, now: u64, value: u64, compare: u64) -> u64 {
    let signed = |value: u64| if long { value as i64 } else { i64::from(value as u32 as i32) };
    let (now, value, compare) =
        if long { (now, value, compare) } else { (now & 0xffff_ffff, value & 0xffff_ffff, compare & 0xffff_ffff) };
    match op {
        AtomicOperation::Add => now.wrapping_add(value),
        AtomicOperation::AddF32 => u64::from(single::add(now as u32, value as u32)),
        AtomicOperation::MinU => now.min(value),
        AtomicOperation::MaxU => now.max(value),
        AtomicOperation::MinS => signed(now).min(signed(value)) as u64,
        AtomicOperation::MaxS => signed(now).max(signed(value)) as u64,
        AtomicOperation::And => now & value,
        AtomicOperation::Or => now | value,
        AtomicOperation::Xor => now ^ value,
        AtomicOperation::Exchange => value,
        AtomicOperation::CompareSwap => {
            if now == compare {
                value
            } else {
                now
            }
        }
    }
}
