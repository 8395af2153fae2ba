//! Masks of dropout: Philox4x32-10 in the text of a kernel, as `pointwise_core::philox` has it.
//!
//! A block of Philox has a half of the words of eight elements. A thread makes both blocks, of upper and of lower halves, for up to
//! eight of its lanes at once.

use std::fmt::Write as _;

use pointwise_core::Blocks;
use pointwise_core::philox::{BLOCK, MULTIPLIERS, ROUNDS, WEYL};

use super::Writer;

/// The bytes of `Blocks` where the address of a place in memory and the keys begin. The offset comes first.
const ADDRESS: usize = 8;
const KEYS: usize = 16;
const _: () = assert!(size_of::<Blocks>() == KEYS + 8 * ROUNDS);
/// The bits of a word that its upper half gives; the lower one gives the others.
const UPPER_BITS: u32 = 0xFFFE_0001;

/// Registers of a place to draw from.
pub(super) struct Place {
    /// The offset of the first block, in 64 bits.
    offset: String,
    /// The keys of each round.
    keys: Vec<[String; 2]>,
}

impl Writer<'_> {
    /// Reads the places to draw from.
    pub(super) fn places(&mut self) {
        for draw in 0..self.program.graph.draws {
            let offset = self.temporary(64);
            let mut keys: Vec<[String; 2]> = Vec::with_capacity(ROUNDS);
            if self.variant.placed.get(draw) == Some(&true) {
                let [address, seed] = std::array::from_fn(|_| self.temporary(64));
                let first: [String; 2] = std::array::from_fn(|_| self.temporary(32));
                line!(self, "ld.param.u64 {address}, [place{draw}+{ADDRESS}];");
                line!(self, "ld.global.u64 {seed}, [{address}];");
                line!(self, "ld.global.u64 {offset}, [{address}+8];");
                line!(self, "mov.b64 {{{}, {}}}, {seed};", first[0], first[1]);
                keys.push(first);
                for round in 1..ROUNDS {
                    let next: [String; 2] = std::array::from_fn(|_| self.temporary(32));
                    for ((next, before), step) in next.iter().zip(&keys[round - 1]).zip(WEYL) {
                        line!(self, "add.u32 {next}, {before}, {step};");
                    }
                    keys.push(next);
                }
            } else {
                line!(self, "ld.param.u64 {offset}, [place{draw}];");
                for round in 0..ROUNDS {
                    let own: [String; 2] = std::array::from_fn(|_| self.temporary(32));
                    for (k, key) in own.iter().enumerate() {
                        line!(self, "ld.param.u32 {key}, [place{draw}+{}];", KEYS + 8 * round + 4 * k);
                    }
                    keys.push(own);
                }
            }
            self.places.push(Place { offset, keys });
        }
    }

    /// Computes a mask for a lane and those behind it that share its blocks. They are complete with the first of them.
    pub(super) fn dropout_mask(&mut self, value: usize, draw: usize, limit: usize, lane: usize) {
        let lanes = self.variant.lanes;
        let together = lanes.min(BLOCK);
        if !lane.is_multiple_of(together) {
            return;
        }
        let behind = self.apart(lane / lanes * lanes) + lane % lanes;
        let [index, counter, limit_register] = std::array::from_fn(|_| self.temporary(64));
        line!(self, "add.u64 {index}, {}, {behind};", self.index.clone());
        line!(self, "shr.u64 {counter}, {index}, 3;");
        line!(self, "add.u64 {counter}, {counter}, {};", self.places[draw].offset.clone());
        let [upper, lower] = [0, 1].map(|part| self.block(draw, &counter, part));
        line!(self, "ld.param.u64 {limit_register}, [w{limit}];");
        let at = self.temporary(32);
        line!(self, "cvt.u32.u64 {at}, {index};");
        for i in 0..together {
            let [above, below] = [&upper, &lower].map(|block| self.half(block, &at, i, together));
            let [first, second, kept] = std::array::from_fn(|_| self.temporary(32));
            let word = self.temporary(64);
            line!(self, "shf.l.wrap.b32 {first}, {above}, {above}, 1;");
            line!(self, "and.b32 {first}, {first}, {UPPER_BITS};");
            line!(self, "shr.u32 {second}, {below}, 15;");
            line!(self, "and.b32 {second}, {second}, {};", !UPPER_BITS);
            line!(self, "or.b32 {kept}, {first}, {second};");
            line!(self, "cvt.u64.u32 {word}, {kept};");
            let predicate = self.predicate();
            line!(self, "setp.lt.u64 {predicate}, {word}, {limit_register};");
            line!(self, "selp.b32 {}, 1, 0, {predicate};", self.at(value, lane + i));
        }
    }

    /// Returns the four words of a block.
    fn block(&mut self, draw: usize, counter: &str, part: u32) -> [String; 4] {
        let mut c: [String; 4] = std::array::from_fn(|_| self.temporary(32));
        line!(self, "mov.b64 {{{}, {}}}, {counter};", c[0], c[1]);
        // The sequence, and upper or lower halves.
        line!(self, "mov.b32 {}, 0;", c[2]);
        line!(self, "mov.b32 {}, {part};", c[3]);
        for round in 0..ROUNDS {
            let keys = self.places[draw].keys[round].clone();
            let [a, b] = [(0, 0), (1, 2)].map(|(k, from)| {
                let product = self.temporary(64);
                let words: [String; 2] = std::array::from_fn(|_| self.temporary(32));
                line!(self, "mul.wide.u32 {product}, {}, {};", c[from], MULTIPLIERS[k]);
                line!(self, "mov.b64 {{{}, {}}}, {product};", words[0], words[1]);
                words
            });
            let [first, third]: [String; 2] = std::array::from_fn(|_| self.temporary(32));
            for (to, [high, mixed], key) in [(&first, [&b[1], &c[1]], &keys[0]), (&third, [&a[1], &c[3]], &keys[1])] {
                line!(self, "xor.b32 {to}, {high}, {mixed};");
                line!(self, "xor.b32 {to}, {to}, {key};");
            }
            let ([a, _], [b, _]) = (a, b);
            c = [first, b, third, a];
        }
        c
    }

    /// Returns a register whose upper 16 bits are the half of element `i` of those that share a block. The first of them is at an index
    /// that is a multiple of their number.
    fn half(&mut self, block: &[String; 4], index: &str, i: usize, together: usize) -> String {
        let two = match together {
            BLOCK => block[i / 2].clone(),
            4 => self.selected([&block[i / 2], &block[i / 2 + 2]], index, 4),
            _ => {
                let even = self.selected([&block[0], &block[2]], index, 4);
                let odd = self.selected([&block[1], &block[3]], index, 4);
                self.selected([&even, &odd], index, 2)
            }
        };
        let first = self.temporary(32);
        line!(self, "shl.b32 {first}, {two}, 16;");
        match together {
            // The bits below mean nothing, but for the upper half: its lowest bit is the word's.
            1 => self.selected([&first, &two], index, 1),
            _ if i.is_multiple_of(2) => first,
            _ => two,
        }
    }

    /// Returns the first register where a bit of the index is 0, else the second.
    fn selected(&mut self, [zero, one]: [&str; 2], index: &str, bit: u32) -> String {
        let (masked, selected, predicate) = (self.temporary(32), self.temporary(32), self.predicate());
        line!(self, "and.b32 {masked}, {index}, {bit};");
        line!(self, "setp.eq.u32 {predicate}, {masked}, 0;");
        line!(self, "selp.b32 {selected}, {zero}, {one}, {predicate};");
        selected
    }
}
