//! Shuffles and votes: values that the lanes of a warp share.

use super::{ALL, LANES, lanes::lanes, registers::Registers};
use crate::program::{NOWHERE, Shuffle, Slot, Vote};

/// The operands of a shuffle.
pub(super) struct Shuffled {
    pub(super) op: Shuffle,
    pub(super) d: Slot,
    /// The predicate for "the value comes from a lane of the segment", or `NOWHERE`.
    pub(super) p: Slot,
    pub(super) a: Slot,
    pub(super) b: Slot,
    pub(super) c: Slot,
}

/// Gives every lane the value of another lane.
///
/// The result is undefined if the other lane takes no part.
pub(super) fn shuffle(registers: &mut Registers, shuffled: Shuffled, mask: u32) {
    let ((a, a_defined), (b, b_defined), (c, c_defined)) =
        (registers.word(shuffled.a), registers.word(shuffled.b), registers.word(shuffled.c));
    let (mut value, mut defined, mut inside) = ([0; LANES], 0, 0);
    for lane in lanes(mask) {
        let (segment, clamp) = (c[lane] >> 8 & 31, c[lane] & 31);
        let me = u32::try_from(lane).unwrap_or(0);
        let by = b[lane] & 31;
        let last = me & segment | clamp & !segment;
        let first = me & segment;
        let (from, in_range) = match shuffled.op {
            Shuffle::Up => (me.wrapping_sub(by), me.wrapping_sub(by).cast_signed() >= last.cast_signed()),
            Shuffle::Down => (me + by, me + by <= last),
            Shuffle::Butterfly => (me ^ by, me ^ by <= last),
            Shuffle::Index => (first | by & !segment, (first | by & !segment) <= last),
        };
        let from = if in_range { from as usize & 31 } else { lane };
        value[lane] = a[from];
        let there = mask >> from & 1 == 1;
        if there && a_defined >> from & 1 == 1 {
            defined |= 1 << lane;
        }
        inside |= u32::from(in_range) << lane;
    }
    let known = b_defined & c_defined;
    registers.set_word(shuffled.d, &value, defined & known, mask);
    if shuffled.p != NOWHERE {
        registers.set_predicate(shuffled.p, inside, known, mask);
    }
}

/// Asks all lanes for a predicate, and gives each the answer.
pub(super) fn vote(registers: &mut Registers, op: Vote, d: Slot, p: Slot, a: Slot, negate: bool, mask: u32) {
    let (holds, _) = registers.predicate(a);
    let holds = if negate { !holds } else { holds } & mask;
    let answer = match op {
        Vote::Ballot => {
            registers.set_word(d, &[holds; LANES], ALL, mask);
            return;
        }
        Vote::All => holds == mask,
        Vote::Any => holds != 0,
        Vote::Uniform => holds == 0 || holds == mask,
    };
    registers.set_predicate(p, if answer { ALL } else { 0 }, ALL, mask);
}
