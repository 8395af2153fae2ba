//! The random words and the indices of a block of elements.

use std::cell::Cell;

use pointwise_core::philox::{self, BLOCK as EACH};
use pointwise_core::{Draw, RandomWord};

use super::operand::BLOCK;

/// Philox blocks of a block of elements that need not begin with one.
const BLOCKS: usize = BLOCK / EACH + 1;

/// Returns the words of the first `len` elements. `ask` gets the upper half of each word and asks it all that the caller
/// will ask. If an answer needs more bits, the lower halves are computed, too; else the lower bits mean nothing.
#[inline(always)]
pub(super) fn drawn(draw: &Draw, len: usize, ask: impl Fn(usize, RandomWord<'_>)) -> [u32; BLOCK] {
    let asked = Cell::new(false);
    let mut words = halves(draw.first, |index| draw.blocks.upper_halves(index), philox::upper);
    for (i, &word) in words[..len].iter().enumerate() {
        ask(i, RandomWord::upper(word, &asked));
    }
    if asked.get() {
        let lower = halves(draw.first, |index| draw.blocks.given().lower_halves(index), philox::lower);
        for (word, lower) in words.iter_mut().zip(lower) {
            *word = philox::whole(*word, lower);
        }
    }
    words
}

/// Returns planes, rows and columns of the first `len` elements; zeros if none are `wanted`.
#[inline(always)]
pub(super) fn indices(draw: &Draw, len: usize, wanted: bool) -> [[u32; BLOCK]; 3] {
    let mut all = [[0; BLOCK]; 3];
    if !wanted {
        return all;
    }
    let [planes, rows, columns] = &mut all;
    let mut at = draw.index(0);
    for ((plane, row), column) in planes.iter_mut().zip(rows).zip(columns).take(len) {
        [*plane, *row, *column] = at;
        at = draw.next(at);
    }
    all
}

/// Returns half a word for each element from `first` on. `half` takes the first or the second half of a word.
#[inline(always)]
fn halves(first: u64, four: impl Fn(u64) -> [u32; EACH / 2], half: impl Fn(u32, bool) -> u32) -> [u32; BLOCK] {
    let (block, skip) = (first / EACH as u64, first as usize % EACH);
    // Word `k` of all blocks side by side, so that the loop over blocks is vector code.
    let mut words = [[0; BLOCKS]; EACH / 2];
    let [w0, w1, w2, w3] = &mut words;
    for (b, (((w0, w1), w2), w3)) in w0.iter_mut().zip(w1).zip(w2).zip(w3).enumerate() {
        [*w0, *w1, *w2, *w3] = four(block + b as u64);
    }
    let mut all = [0; BLOCKS * EACH];
    for (b, eight) in all.chunks_exact_mut(EACH).enumerate() {
        for (k, word) in eight.iter_mut().enumerate() {
            *word = half(words[k / 2][b], k % 2 != 0);
        }
    }
    std::array::from_fn(|i| all[i + skip])
}
