//! The position of a token: from a list, its sequence or batch entry, or its row alone.

use pointwise_core::rope::{AXES, AXES_IN_TURN, BATCH_OFFSETS, IDS, OwnAngles, RopeWalk, SEQUENCES, WIDE_IDS, axis};

use crate::memory;

/// Returns the position of a pair of a token, and true if the tables have it.
///
/// # Safety
/// The positions are as `walk` describes them.
#[inline(always)]
pub(super) unsafe fn position(
    ids: *const u8,
    starts: *const u8,
    walk: &RopeWalk,
    [batch, row]: [i64; 2],
    token: u32,
    pair: u32,
) -> (i64, bool) {
    // SAFETY: the caller's contract.
    let read = |list: *const u8, i: i64| unsafe { given(list, i, walk.flags) };
    let (mut position, mut known) = (walk.offset + row, true);
    if walk.flags & SEQUENCES != 0 {
        // The last sequence that begins at or before the token.
        let (mut low, mut high) = (0, i64::from(walk.sequences));
        while low + 1 < high {
            let middle = (low + high) / 2;
            if read(starts, middle) <= i64::from(token) { low = middle } else { high = middle }
        }
        let start = read(starts, low);
        // A token before the first or after the last is padding.
        known = start <= i64::from(token) && i64::from(token) < read(starts, i64::from(walk.sequences));
        let offset = if walk.flags & BATCH_OFFSETS != 0 { read(ids, low * walk.ids[0]) } else { 0 };
        position = walk.offset + offset + (i64::from(token) - start);
    } else if walk.flags & (IDS | BATCH_OFFSETS) != 0 {
        let mut at = batch * walk.ids[0] + row * walk.ids[1];
        if walk.flags & AXES != 0 {
            at += i64::from(axis(pair, walk.sections, walk.flags & AXES_IN_TURN != 0)) * walk.axis;
        }
        let given = read(ids, at);
        position = walk.offset + given + if walk.flags & IDS != 0 { 0 } else { row };
    }
    (position, known && (position as u64) < walk.rows as u64 || known && walk.rows == i64::MAX)
}

/// Reads an integer of a list of positions.
///
/// # Safety
/// The list has it.
#[inline(always)]
unsafe fn given(list: *const u8, at: i64, flags: u32) -> i64 {
    // SAFETY: the caller's contract.
    unsafe {
        if flags & WIDE_IDS != 0 {
            memory::load(list.cast::<i64>().offset(at as isize).cast(), 8)[0] as i64
        } else {
            i64::from(memory::load(list.cast::<i32>().offset(at as isize).cast(), 4)[0] as i32)
        }
    }
}

/// A token's entry in a list of positions: 64 bits, or the lower 32; without a list, zeros.
#[derive(Clone, Copy)]
pub(super) struct Given(pub(super) [u32; 2]);

/// Reads the list of positions for a token, given by its batch entry and its row, for a thread that finds its own
/// angles. It does not use the entry, so that nothing waits for it yet. Without a list there is no load.
///
/// # Safety
/// The positions are as `angles` describes them.
#[inline(always)]
pub(super) unsafe fn own_given(ids: *const u8, flags: u32, angles: &OwnAngles, (batch, row): (u32, u32)) -> Given {
    if flags & (IDS | BATCH_OFFSETS) == 0 {
        return Given([0, 0]);
    }
    let at = (batch * angles.ids[0] + row * angles.ids[1]) as usize;
    // SAFETY: the caller's contract.
    let [word, _] = unsafe {
        if flags & WIDE_IDS != 0 {
            memory::load_here(ids.cast::<u64>().wrapping_add(at).cast(), 8)
        } else {
            memory::load_here(ids.cast::<u32>().wrapping_add(at).cast(), 4)
        }
    };
    Given([word as u32, (word >> 32) as u32])
}

impl Given {
    /// Returns the number that was read with these flags.
    #[inline(always)]
    pub(super) fn number(self, flags: u32) -> i64 {
        let Given([low, high]) = self;
        let sign = (low as i32 >> 31) as u32;
        (u64::from(if flags & WIDE_IDS != 0 { high } else { sign }) << 32 | u64::from(low)) as i64
    }
}

/// Returns the position of a token, from its entry by [`own_given`].
#[inline(always)]
pub(super) fn own_position(given: Given, flags: u32, angles: &OwnAngles, row: u32) -> i64 {
    angles.offset + given.number(flags) + i64::from(if flags & IDS != 0 { 0 } else { row })
}
