//! Philox4x32-10, the counter-based generator of Salmon, Moraes, Dror and Shaw, "Parallel Random Numbers: As Easy as
//! 1, 2, 3" (SC 2011).
//!
//! Counter-based: the random word of an element depends only on seed, offset and the element's index, not on the
//! thread, the order or the device that computes it.

use core::cell::Cell;

use crate::info::Each;
use crate::maths::prim::wide_product;

/// The factors of a round.
pub const MULTIPLIERS: [u32; 2] = [0xD251_1F53, 0xCD9E_8D57];
/// The steps of the keys from round to round.
pub const WEYL: [u32; 2] = [0x9E37_79B9, 0xBB67_AE85];
/// The rounds of a block.
pub const ROUNDS: usize = 10;

/// The elements that a block of four words serves, with 16 bits each.
pub const BLOCK: usize = 8;

/// Returns the elements of a thread in kernels that draw random words: two vectors, or one of 16 elements. `lanes` are
/// the elements of a vector.
#[must_use]
pub const fn elements(lanes: usize) -> usize {
    if lanes < 2 * BLOCK { 2 * lanes } else { lanes }
}

/// The counter's last word: for blocks of upper halves, and for blocks of lower halves.
const UPPER: u32 = 0;
const LOWER: u32 = 1;
/// The bits of a word that its upper half gives alone: the first 15.
const UPPER_BITS: u32 = 0xFFFE_0000;

/// Returns the block of a counter under a key.
#[inline(always)]
pub fn philox4x32_10(counter: [u32; 4], key: [u32; 2]) -> [u32; 4] {
    rounds(counter, &Keys::new(key))
}

/// The ten keys of a seed. A kernel gets them with the call, as operands in constant memory: a sum for each round would
/// cost as much as the round's products.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
struct Keys([[u32; 2]; ROUNDS]);

impl Keys {
    #[inline(always)]
    const fn new(key: [u32; 2]) -> Keys {
        let mut keys = [key; ROUNDS];
        let mut round = 1;
        while round < ROUNDS {
            let [k0, k1] = keys[round - 1];
            keys[round] = [k0.wrapping_add(WEYL[0]), k1.wrapping_add(WEYL[1])];
            round += 1;
        }
        Keys(keys)
    }
}

#[inline(always)]
fn rounds(counter: [u32; 4], keys: &Keys) -> [u32; 4] {
    let [mut c0, mut c1, mut c2, mut c3] = counter;
    let mut round = 0;
    while round < ROUNDS {
        let [k0, k1] = keys.0[round];
        let a = wide_product(MULTIPLIERS[0], c0);
        let b = wide_product(MULTIPLIERS[1], c2);
        [c0, c1, c2, c3] = [b[1] ^ c1 ^ k0, b[0], a[1] ^ c3 ^ k1, a[0]];
        round += 1;
    }
    [c0, c1, c2, c3]
}

/// The number of words.
const WORDS: f32 = 4_294_967_296.0;

/// Returns the largest random word that keeps its element at dropout probability `p`. Each word `w` with `w / 2^32 < 1 - p` does:
/// those up to `2^32 - 1 - floor(2^32 p)`. `None` if `p` is 1, above, or NaN: no word keeps.
#[inline(always)]
pub const fn last_kept(p: f32) -> Option<u32> {
    // A product with a power of two is exact. The conversion cuts and saturates.
    if p < 1.0 { Some(!((p * WORDS) as u32)) } else { None }
}

/// Turns a random word into a number, uniform over the multiples of 2^-24 from 0 up to, but not including, 1: each is
/// an f32.
#[inline(always)]
pub const fn uniform(bits: u32) -> f32 {
    (bits >> 8) as f32 * (1.0 / 16_777_216.0)
}

/// The most random words that a formula takes. Each comes from a sequence of its own.
pub const MAX_RANDOM_WORDS: usize = 2;

/// The place of an element: in the random sequence of a call, and in the rows of its result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Draw {
    /// The place of the call.
    pub blocks: Blocks,
    /// The index in the call of the first element at hand.
    pub first: u64,
    /// Rows of a plane, and columns of a row; at least 1.
    pub sizes: [u32; 2],
    /// The neighbours that share each word; at least 1.
    pub shared: [u64; MAX_RANDOM_WORDS],
}

impl Draw {
    /// For an op that knows nothing of its elements' places.
    pub const NONE: Draw =
        Draw { blocks: Philox::new(0).blocks(), first: 0, sizes: [1; 2], shared: [1; MAX_RANDOM_WORDS] };

    /// Returns the place of the first element of a result of this shape, whose formula takes the words of `random`.
    #[must_use]
    pub fn of(random: &[Each], shape: &[usize]) -> Draw {
        let size = |behind: usize| shape.iter().rev().nth(behind).map_or(1, |&size| size as u32);
        let behind = |dimensions: usize| {
            let sizes = shape.iter().skip(dimensions).map(|&size| size as u64);
            sizes.fold(1, u64::saturating_mul).max(1)
        };
        let mut shared = [1; MAX_RANDOM_WORDS];
        for (shared, each) in shared.iter_mut().zip(random) {
            *shared = match each {
                Each::Element => 1,
                Each::Sample => behind(1),
                Each::Channel => behind(2),
                Each::Row => behind(shape.len().saturating_sub(1)),
            };
        }
        Draw { sizes: [size(1), size(0)], shared, ..Draw::NONE }
    }

    /// Returns the number of word `k` of the element that is `i` behind the first.
    #[inline(always)]
    #[must_use]
    pub const fn group(&self, k: usize, i: u64) -> u64 {
        let shared = if k < MAX_RANDOM_WORDS { self.shared[k] } else { 1 };
        let at = self.first.wrapping_add(i);
        if (at | shared) >> 32 == 0 {
            let shared = if shared == 0 { 1 } else { shared as u32 };
            (at as u32 / shared) as u64
        } else {
            at / if shared == 0 { 1 } else { shared }
        }
    }

    /// Returns the words of the element that is `i` behind the first.
    #[must_use]
    pub fn words(&self, i: u64) -> [u32; MAX_RANDOM_WORDS] {
        core::array::from_fn(|k| self.blocks.given().word_of(k as u32, self.group(k, i)))
    }

    /// Returns plane, row and column of the element that is `i` behind the first.
    #[inline(always)]
    #[must_use]
    pub const fn index(&self, i: u64) -> [u32; 3] {
        let [rows, columns] = self.sizes;
        let (line, column) = divided(self.first.wrapping_add(i), columns);
        let (plane, row) = divided(line, rows);
        [plane as u32, row, column]
    }

    /// Returns plane, row and column of the next element.
    #[inline(always)]
    #[must_use]
    pub const fn next(&self, [plane, row, column]: [u32; 3]) -> [u32; 3] {
        let [rows, columns] = self.sizes;
        let (column, carry) = if column + 1 >= columns { (0, 1) } else { (column + 1, 0) };
        let row = row + carry;
        if row >= rows { [plane.wrapping_add(1), 0, column] } else { [plane, row, column] }
    }
}

/// Returns quotient and rest; the divisor counts as 1 if it is 0. Most numbers have 32 bits, whose division is short.
#[inline(always)]
const fn divided(number: u64, divisor: u32) -> (u64, u32) {
    let divisor = if divisor == 0 { 1 } else { divisor };
    if number >> 32 == 0 {
        let number = number as u32;
        ((number / divisor) as u64, number % divisor)
    } else {
        (number / divisor as u64, (number % divisor as u64) as u32)
    }
}

/// The place that kernels take: in the random sequence of a seed, with its round keys. Or the address of a place that
/// they read themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Blocks {
    offset: u64,
    address: u64,
    keys: Keys,
}

impl Blocks {
    /// Returns a place that kernels read: seed and offset, two `u64` one after another.
    ///
    /// # Safety
    /// The address is aligned to a `u64`, and every kernel that gets the result may read both `u64` there.
    #[allow(unsafe_code)] // a contract for what kernels do
    #[must_use]
    pub const unsafe fn in_memory(address: u64) -> Blocks {
        Blocks { address, ..Philox::new(0).blocks() }
    }

    /// Returns the address of the place that counts instead of [`Blocks::given`]; 0 if there is none. A kernel may read
    /// it.
    #[inline(always)]
    #[must_use]
    pub const fn address(&self) -> u64 {
        self.address
    }

    /// Returns the place that came with the call.
    #[inline(always)]
    #[must_use]
    pub const fn given(&self) -> Philox {
        let [low, high] = self.keys.0[0];
        Philox { seed: low as u64 | (high as u64) << 32, offset: self.offset }
    }

    /// [`Philox::upper_halves`] of the place that came with the call.
    #[inline(always)]
    pub fn upper_halves(&self, sequence: u32, index: u64) -> [u32; 4] {
        rounds(self.given().counter(sequence, index, UPPER), &self.keys)
    }

    /// [`Philox::upper_of`] the place that came with the call.
    #[inline(always)]
    pub fn upper_of(&self, sequence: u32, i: u64) -> u32 {
        upper(two_of(self.upper_halves(sequence, i / BLOCK as u64), i), i & 1 != 0)
    }
}

/// Takes the first or the second of two upper halves, side by side, to its places in a word: 15 bits at the top and one
/// at the bottom. The bits between mean nothing.
#[inline(always)]
pub const fn upper(two: u32, second: bool) -> u32 {
    two.rotate_left(if second { 1 } else { 17 })
}

/// Takes the first or the second of two lower halves to the upper 16 bits. The bits below mean nothing.
#[inline(always)]
pub const fn lower(two: u32, second: bool) -> u32 {
    if second { two } else { two << 16 }
}

/// Returns the word of a block that has the half of element `i`.
#[inline(always)]
const fn two_of([a, b, c, d]: [u32; BLOCK / 2], i: u64) -> u32 {
    // On a GPU an array with an index that is not known would be in memory.
    let [even, odd] = if i & 4 != 0 { [c, d] } else { [a, b] };
    if i & 2 != 0 { odd } else { even }
}

/// Joins the results of [`upper`] and [`lower`] to a word.
#[inline(always)]
pub const fn whole(upper: u32, lower: u32) -> u32 {
    upper & (UPPER_BITS | 1) | lower >> 15 & !(UPPER_BITS | 1)
}

/// The random word of an element: 32 bits, uniform over all `u32`.
///
/// Most decisions need only the upper half: a comparison with a threshold, unless the threshold begins with the same 15
/// bits. So a kernel makes the upper halves, eight elements a block, and the formula tells if it needs more.
#[derive(Clone, Copy, Debug)]
pub struct RandomWord<'a> {
    word: u32,
    /// If only the upper half's bits are known: set when they do not answer a question.
    asked: Option<&'a Cell<bool>>,
}

impl From<u32> for RandomWord<'_> {
    /// The whole word.
    #[inline(always)]
    fn from(word: u32) -> Self {
        RandomWord { word, asked: None }
    }
}

impl<'a> RandomWord<'a> {
    /// Returns a word whose upper 15 bits are known. `asked` becomes true if an answer depends on the other bits: the
    /// answer is then void.
    #[inline(always)]
    pub const fn upper(word: u32, asked: &'a Cell<bool>) -> Self {
        RandomWord { word, asked: Some(asked) }
    }

    /// Returns all 32 bits.
    #[inline(always)]
    pub fn bits(self) -> u32 {
        if let Some(asked) = self.asked {
            asked.set(true);
        }
        self.word
    }

    /// True if the word is at most `last`.
    #[inline(always)]
    pub fn is_at_most(self, last: u32) -> bool {
        if let Some(asked) = self.asked {
            asked.set(asked.get() | ((self.word ^ last) & UPPER_BITS == 0));
        }
        self.word <= last
    }
}

/// A place in the random sequence of a seed.
///
/// A call on `n` elements takes the offsets `offset .. offset + ceil(n / 8)`, eight elements each. The counter of a
/// Philox block is an offset in 64 bits, then the number of a sequence, then 0 or 1. Its 128 bits are eight halves, the
/// lowest first: element `i` of the call takes half `i % 8` of block `(offset + i / 8, 0, 0)` above the same half of block
/// `(offset + i / 8, 0, 1)`, rotated left by one bit, as its word. No two elements share a bit. The rotation keeps the upper
/// half's highest bit out of a comparison: kernels compare two halves at a time, and have the borrow of a difference there.
///
/// A formula's second word comes from sequence 1 in the same way. Where elements share a word, group `i` takes the word of
/// element `i`.
///
/// The same seed and offset give the same mask again: a backward pass repeats it so. For a fresh mask go on to
/// [`Philox::after`] the call, or take another seed.
///
/// ```
/// use pointwise_core::Philox;
///
/// let first = Philox::new(42);
/// let second = first.after(1_000);
/// assert_eq!((second.seed, second.offset), (42, 125));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Philox {
    /// The key.
    pub seed: u64,
    /// The offset of the first eight elements.
    pub offset: u64,
}

impl Philox {
    /// Returns the start of a seed's sequence.
    #[inline(always)]
    pub const fn new(seed: u64) -> Philox {
        Philox { seed, offset: 0 }
    }

    /// Returns the same seed at another offset, in blocks of eight elements.
    #[inline(always)]
    pub const fn at(self, offset: u64) -> Philox {
        Philox { offset, ..self }
    }

    /// Returns the place behind a call on `n` elements: the first one whose words that call did not use. Wraps after
    /// 2^64 offsets.
    #[inline(always)]
    pub const fn after(self, n: u64) -> Philox {
        self.at(self.offset.wrapping_add(n.div_ceil(BLOCK as u64)))
    }

    /// Returns the place with its round keys.
    #[inline(always)]
    pub const fn blocks(self) -> Blocks {
        Blocks { offset: self.offset, address: 0, keys: self.keys() }
    }

    #[inline(always)]
    const fn keys(self) -> Keys {
        Keys::new([self.seed as u32, (self.seed >> 32) as u32])
    }

    #[inline(always)]
    const fn counter(self, sequence: u32, index: u64, part: u32) -> [u32; 4] {
        let counter = self.offset.wrapping_add(index);
        [counter as u32, (counter >> 32) as u32, sequence, part]
    }

    /// Returns the upper halves of the words of elements `8 index ..= 8 index + 7` in a sequence, two a word, the first in
    /// the lower 16 bits.
    #[inline(always)]
    pub fn upper_halves(self, sequence: u32, index: u64) -> [u32; 4] {
        rounds(self.counter(sequence, index, UPPER), &self.keys())
    }

    /// Returns the lower halves of the same words, in the same order as [`Philox::upper_halves`].
    #[inline(always)]
    pub fn lower_halves(self, sequence: u32, index: u64) -> [u32; 4] {
        rounds(self.counter(sequence, index, LOWER), &self.keys())
    }

    /// Returns the word of element `i`.
    #[inline(always)]
    pub fn word(self, i: u64) -> u32 {
        self.word_of(0, i)
    }

    /// Returns the word of element or group `i` in a sequence: 0 for a formula's first word, 1 for its second.
    #[inline(always)]
    pub fn word_of(self, sequence: u32, i: u64) -> u32 {
        let two = two_of(self.lower_halves(sequence, i / BLOCK as u64), i);
        whole(self.upper_of(sequence, i), lower(two, i & 1 != 0))
    }

    /// Returns the upper half of [`Philox::word_of`]. The other bits mean nothing.
    #[inline(always)]
    pub fn upper_of(self, sequence: u32, i: u64) -> u32 {
        upper(two_of(self.upper_halves(sequence, i / BLOCK as u64), i), i & 1 != 0)
    }
}
