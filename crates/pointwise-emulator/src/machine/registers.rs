//! The registers of a warp.

use super::{
    ALL, LANES,
    lanes::{Longs, Words, put},
};
use crate::program::{Program, Slot, TRUE};

/// The registers of a warp, and the lanes where each has a value.
#[derive(Debug)]
pub(super) struct Registers {
    pub(super) words: Vec<Words>,
    pub(super) longs: Vec<Longs>,
    pub(super) predicates: Vec<u32>,
    pub(super) words_defined: Vec<u32>,
    pub(super) longs_defined: Vec<u32>,
    pub(super) predicates_defined: Vec<u32>,
}

impl Registers {
    pub(super) fn new(program: &Program) -> Registers {
        let mut registers = Registers {
            words: vec![[0; LANES]; program.words],
            longs: vec![[0; LANES]; program.longs],
            predicates: vec![0; program.predicates],
            words_defined: vec![0; program.words],
            longs_defined: vec![0; program.longs],
            predicates_defined: vec![0; program.predicates],
        };
        for &(slot, number) in &program.word_numbers {
            registers.words[usize::from(slot)] = [number; LANES];
        }
        for &(slot, number) in &program.long_numbers {
            registers.longs[usize::from(slot)] = [number; LANES];
        }
        registers.predicates[usize::from(TRUE)] = ALL;
        registers
    }

    /// Forgets all values but numbers.
    pub(super) fn reset(&mut self, program: &Program) {
        self.words_defined.fill(0);
        self.longs_defined.fill(0);
        self.predicates_defined.fill(0);
        for &(slot, _) in &program.word_numbers {
            self.words_defined[usize::from(slot)] = ALL;
        }
        for &(slot, _) in &program.long_numbers {
            self.longs_defined[usize::from(slot)] = ALL;
        }
        self.predicates_defined[usize::from(TRUE)] = ALL;
    }

    #[inline(always)]
    pub(super) fn set_word(&mut self, slot: Slot, value: &Words, defined: u32, mask: u32) {
        let slot = usize::from(slot);
        put(&mut self.words[slot], value, mask);
        self.words_defined[slot] = self.words_defined[slot] & !mask | defined & mask;
    }

    #[inline(always)]
    pub(super) fn set_long(&mut self, slot: Slot, value: &Longs, defined: u32, mask: u32) {
        let slot = usize::from(slot);
        put(&mut self.longs[slot], value, mask);
        self.longs_defined[slot] = self.longs_defined[slot] & !mask | defined & mask;
    }

    /// Takes a register's value away from lanes.
    pub(super) fn forget(&mut self, slot: Slot, long: bool, mask: u32) {
        let defined = if long { &mut self.longs_defined } else { &mut self.words_defined };
        defined[usize::from(slot)] &= !mask;
    }

    #[inline(always)]
    pub(super) fn set_predicate(&mut self, slot: Slot, value: u32, defined: u32, mask: u32) {
        let slot = usize::from(slot);
        self.predicates[slot] = self.predicates[slot] & !mask | value & mask;
        self.predicates_defined[slot] = self.predicates_defined[slot] & !mask | defined & mask;
    }

    #[inline(always)]
    pub(super) fn word(&self, slot: Slot) -> (&Words, u32) {
        (&self.words[usize::from(slot)], self.words_defined[usize::from(slot)])
    }

    #[inline(always)]
    pub(super) fn long(&self, slot: Slot) -> (&Longs, u32) {
        (&self.longs[usize::from(slot)], self.longs_defined[usize::from(slot)])
    }

    #[inline(always)]
    pub(super) fn predicate(&self, slot: Slot) -> (u32, u32) {
        (self.predicates[usize::from(slot)], self.predicates_defined[usize::from(slot)])
    }
}
