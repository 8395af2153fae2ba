//! The random words and the indices of a block of elements.

use std::cell::Cell;

use pointwise_core::philox::{self, BLOCK as EACH, MAX_RANDOM_WORDS};
use pointwise_core::{Draw, Each, Philox, RandomWord};

use super::level::{Loop, at_best};
use super::operand::BLOCK;

/// Philox blocks of a block of elements that need not begin with one.
const BLOCKS: usize = BLOCK / EACH + 1;

/// The words of the elements of a block.
type Words = [[u32; BLOCK]; MAX_RANDOM_WORDS];

/// Returns the words of the first `len` elements, for an op with the words of `random`. `ask` gets the upper half of each
/// element's own words and asks it all that the caller will ask. If an answer needs more bits, the lower halves are computed,
/// too; else the lower bits mean nothing.
#[inline(always)]
pub(crate) fn drawn(
    random: &[Each],
    draw: &Draw,
    len: usize,
    ask: impl Fn(usize, [RandomWord<'_>; MAX_RANDOM_WORDS]),
) -> Words {
    let asked = [const { Cell::new(false) }; MAX_RANDOM_WORDS];
    let mut words = [[0; BLOCK]; MAX_RANDOM_WORDS];
    for (k, (words, each)) in words.iter_mut().zip(random).enumerate() {
        *words = match each {
            Each::Element => halves(draw.first, |index| draw.blocks.upper_halves(k as u32, index), philox::upper),
            _ => shared(draw, k, len),
        };
    }
    let given = |i: usize| {
        std::array::from_fn(|k| match random.get(k) {
            Some(Each::Element) => RandomWord::upper(words[k][i], &asked[k]),
            _ => words[k][i].into(),
        })
    };
    (0..len).for_each(|i| ask(i, given(i)));
    for (k, words) in words.iter_mut().enumerate() {
        if asked[k].get() {
            let place = draw.blocks.given();
            let lower = halves(draw.first, |index| place.lower_halves(k as u32, index), philox::lower);
            for (word, lower) in words.iter_mut().zip(lower) {
                *word = philox::whole(*word, lower);
            }
        }
    }
    words
}

/// Returns word `k` of the first `len` elements, which share it with their neighbours.
fn shared(draw: &Draw, k: usize, len: usize) -> [u32; BLOCK] {
    let place = draw.blocks.given();
    let (mut all, mut i) = ([0; BLOCK], 0);
    while i < len {
        let group = draw.group(k, i as u64);
        let left = ((group + 1) * draw.shared[k] - draw.first - i as u64).min((len - i) as u64) as usize;
        all[i..i + left].fill(place.word_of(k as u32, group));
        i += left;
    }
    all
}

/// Writes for `n` elements from `first` on if dropout keeps them: 1 if the element's word is below `limit`, else 0.
///
/// # Safety
/// `mask` is valid for writing `n` bytes.
pub(crate) unsafe fn dropout_mask(place: Philox, first: u64, limit: u64, mask: *mut u8, n: usize) {
    match limit.checked_sub(1).map(u32::try_from) {
        // SAFETY: the caller's contract.
        Some(Ok(last)) => unsafe { at_best(Mask { place, first, last, mask, n }) },
        // No word is below 0, and all are below 2^32.
        // SAFETY: as above.
        known => unsafe { mask.write_bytes(u8::from(known.is_some()), n) },
    }
}

/// The loop of [`dropout_mask`]. `last` is the largest word that keeps an element.
struct Mask {
    place: Philox,
    first: u64,
    last: u32,
    mask: *mut u8,
    n: usize,
}

/// # Safety
/// The contract of [`dropout_mask`] holds.
impl Loop for Mask {
    #[inline(always)]
    unsafe fn run<const LEVEL: u8>(self) {
        let Mask { place, first, last, mask, n } = self;
        for done in (0..n).step_by(BLOCK) {
            let len = BLOCK.min(n - done);
            let draw = Draw { blocks: place.blocks(), first: first + done as u64, ..Draw::NONE };
            let [words, _] = drawn(&[Each::Element], &draw, len, |_, [word, _]| _ = word.is_at_most(last));
            for (i, word) in words[..len].iter().enumerate() {
                // SAFETY: done + i < n; the caller's contract.
                unsafe { mask.add(done + i).write(u8::from(*word <= last)) };
            }
        }
    }
}

/// Returns planes, rows and columns of the first `len` elements; zeros if none are `wanted`.
#[inline(always)]
pub(crate) fn indices(draw: &Draw, len: usize, wanted: bool) -> [[u32; BLOCK]; 3] {
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
