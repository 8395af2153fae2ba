//! Instructions that change registers and nothing else.

use duplicate::duplicate_item;

use super::{
    LANES,
    lanes::{Longs, Words},
    longs, mixed,
    registers::Registers,
    special, words,
};
use crate::{
    numerics::{FloatMode, approx::Function},
    program::{
        Compared, FloatOperation, Logic, Narrow, One, OneLong, Relation, ShiftLong, Slot, TRUE, Three, ThreeLong, Two,
        TwoLong, Widen,
    },
    settings::Approx,
};

/// The registers of a warp, as one instruction changes them.
///
/// A result has a value in the lanes where all operands have one.
pub(super) struct Compute<'a> {
    pub(super) registers: &'a mut Registers,
    /// The lanes that execute the instruction.
    pub(super) mask: u32,
    /// The lanes where its guard has a value.
    pub(super) known: u32,
}

#[duplicate_item(
    read    choose        Values  register set;
    [words] [select]      [Words] [word]   [set_word];
    [longs] [select_long] [Longs] [long]   [set_long];
)]
impl Compute<'_> {
    /// Reads registers. Returns also the lanes where all have a value.
    #[inline(always)]
    fn read<const N: usize>(&self, slots: [Slot; N]) -> ([&Values; N], u32) {
        let defined = slots.iter().fold(self.known, |defined, &slot| defined & self.registers.register(slot).1);
        (slots.map(|slot| self.registers.register(slot).0), defined)
    }

    #[inline(always)]
    fn set(&mut self, d: Slot, value: &Values, defined: u32) {
        self.registers.set(d, value, defined, self.mask);
    }

    /// Chooses between two registers, lane by lane.
    #[inline(always)]
    pub(super) fn choose(&mut self, d: Slot, [a, b]: [Slot; 2], p: Slot) {
        let ((a, a_defined), (b, b_defined)) = (self.registers.register(a), self.registers.register(b));
        let (choice, p_defined) = self.registers.predicate(p);
        let value = mixed::select(a, b, choice);
        self.set(d, &value, (a_defined & choice | b_defined & !choice) & p_defined & self.known);
    }
}

// A closure would not be compiled for the CPU features of its caller: each function calls its operation by name.
impl Compute<'_> {
    #[inline(always)]
    pub(super) fn one(&mut self, op: One, d: Slot, a: Slot) {
        let ([a], defined) = self.words([a]);
        let value = words::one(op, a);
        self.set_word(d, &value, defined);
    }

    #[inline(always)]
    pub(super) fn two(&mut self, op: Two, d: Slot, [a, b]: [Slot; 2]) {
        let ([a, b], defined) = self.words([a, b]);
        let value = words::two(op, a, b);
        self.set_word(d, &value, defined);
    }

    #[inline(always)]
    pub(super) fn three(&mut self, op: Three, d: Slot, [a, b, c]: [Slot; 3]) {
        let ([a, b, c], defined) = self.words([a, b, c]);
        let value = words::three(op, a, b, c);
        self.set_word(d, &value, defined);
    }

    #[inline(always)]
    pub(super) fn insert(&mut self, d: Slot, [a, b, c, e]: [Slot; 4]) {
        let ([a, b, c, e], defined) = self.words([a, b, c, e]);
        let value = words::insert(a, b, c, e);
        self.set_word(d, &value, defined);
    }

    #[inline(always)]
    pub(super) fn float(&mut self, op: FloatOperation, mode: FloatMode, d: Slot, [a, b, c]: [Slot; 3]) {
        let ([a, b, c], defined) = self.words([a, b, c]);
        let value = special::float(op, mode, a, b, c);
        self.set_word(d, &value, defined);
    }

    #[inline(always)]
    pub(super) fn approximate(&mut self, function: Function, flush: bool, approx: Approx, d: Slot, [a, b]: [Slot; 2]) {
        let ([a, b], defined) = self.words([a, b]);
        let value = special::approximate(function, flush, approx, a, b, self.mask);
        self.set_word(d, &value, defined);
    }

    #[inline(always)]
    pub(super) fn one_long(&mut self, op: OneLong, d: Slot, a: Slot) {
        let ([a], defined) = self.longs([a]);
        let value = longs::one(op, a);
        self.set_long(d, &value, defined);
    }

    #[inline(always)]
    pub(super) fn two_long(&mut self, op: TwoLong, d: Slot, [a, b]: [Slot; 2]) {
        let ([a, b], defined) = self.longs([a, b]);
        let value = longs::two(op, a, b);
        self.set_long(d, &value, defined);
    }

    #[inline(always)]
    pub(super) fn three_long(&mut self, op: ThreeLong, d: Slot, [a, b, c]: [Slot; 3]) {
        let ([a, b, c], defined) = self.longs([a, b, c]);
        let value = longs::three(op, a, b, c);
        self.set_long(d, &value, defined);
    }

    #[inline(always)]
    pub(super) fn shift_long(&mut self, op: ShiftLong, d: Slot, a: Slot, [b, c]: [Slot; 2]) {
        let (([a], a_defined), ([b, c], defined)) = (self.longs([a]), self.words([b, c]));
        let value = longs::shift(op, a, b, c);
        self.set_long(d, &value, a_defined & defined);
    }

    #[inline(always)]
    pub(super) fn widen(&mut self, op: Widen, d: Slot, [a, b]: [Slot; 2]) {
        let ([a, b], defined) = self.words([a, b]);
        let value = mixed::widen(op, a, b);
        self.set_long(d, &value, defined);
    }

    #[inline(always)]
    pub(super) fn mad_wide(&mut self, signed: bool, d: Slot, [a, b]: [Slot; 2], c: Slot) {
        let (([a, b], defined), ([c], c_defined)) = (self.words([a, b]), self.longs([c]));
        let value = mixed::mad_wide(signed, a, b, c);
        self.set_long(d, &value, defined & c_defined);
    }

    #[inline(always)]
    pub(super) fn narrow(&mut self, op: Narrow, d: Slot, a: Slot) {
        let ([a], defined) = self.longs([a]);
        let value = mixed::narrow(op, a);
        self.set_word(d, &value, defined);
    }

    /// Compares two values. The answer goes to `p` and, unless `q` is [`TRUE`], its opposite to `q`.
    #[inline(always)]
    pub(super) fn compare(
        &mut self,
        of: Compared,
        relation: Relation,
        [p, q]: [Slot; 2],
        slots: [Slot; 2],
        with: Option<(Logic, Slot, bool)>,
    ) {
        let (holds, mut defined) = if of.is_long() {
            let ([a, b], defined) = self.longs(slots);
            (mixed::compare_long(of, relation, a, b), defined)
        } else {
            let ([a, b], defined) = self.words(slots);
            (mixed::compare(of, relation, a, b), defined)
        };
        let (mut yes, mut no) = (holds, !holds);
        if let Some((op, c, negate)) = with {
            let (c, c_defined) = self.registers.predicate(c);
            let c = if negate { !c } else { c };
            (yes, no) = (mixed::logic(op, yes, c), mixed::logic(op, no, c));
            defined &= c_defined;
        }
        self.registers.set_predicate(p, yes, defined, self.mask);
        if q != TRUE {
            self.registers.set_predicate(q, no, defined, self.mask);
        }
    }

    /// Compares both halves of words.
    #[inline(always)]
    pub(super) fn compare_halves(&mut self, bf16: bool, relation: Relation, d: Slot, [a, b]: [Slot; 2]) {
        let ([a, b], defined) = self.words([a, b]);
        let value = words::compare_halves(bf16, relation, a, b);
        self.set_word(d, &value, defined);
    }

    /// Makes a word of a predicate: `yes` or zero.
    #[inline(always)]
    pub(super) fn word_of_predicate(&mut self, d: Slot, p: Slot, yes: u32) {
        let (choice, defined) = self.registers.predicate(p);
        let value = mixed::select(&[yes; LANES], &[0; LANES], choice);
        self.set_word(d, &value, defined & self.known);
    }

    #[inline(always)]
    pub(super) fn predicate_two(&mut self, op: Logic, p: Slot, [a, b]: [Slot; 2]) {
        let ((a, a_defined), (b, b_defined)) = (self.registers.predicate(a), self.registers.predicate(b));
        let defined = mixed::known(op, a, a_defined, b, b_defined) & self.known;
        self.registers.set_predicate(p, mixed::logic(op, a, b), defined, self.mask);
    }

    #[inline(always)]
    pub(super) fn predicate_move(&mut self, p: Slot, a: Slot, negate: bool) {
        let (a, defined) = self.registers.predicate(a);
        self.registers.set_predicate(p, if negate { !a } else { a }, defined & self.known, self.mask);
    }
}
