//! Philox4x32-10, the counter-based generator of Salmon, Moraes, Dror and Shaw, "Parallel Random Numbers: As Easy as
//! 1, 2, 3" (SC 2011).
//!
//! Counter-based: the random word of an element is a function of seed, offset and the element's index, so it does not
//! matter which thread computes it, in which order, or on which device.

use core::cell::Cell;

use crate::maths::prim::wide_product;

const MULTIPLIERS: [u32; 2] = [0xD251_1F53, 0xCD9E_8D57];
const WEYL: [u32; 2] = [0x9E37_79B9, 0xBB67_AE85];
const ROUNDS: usize = 10;

/// Elements that a block of four words serves: 16 bits each.
pub const BLOCK: usize = 8;

/// Elements of a thread of a kernel with random words, whose vectors are of `lanes`: two vectors, which are whole
/// blocks, or one of 16 elements.
#[must_use]
pub const fn elements(lanes: usize) -> usize {
    if lanes < 2 * BLOCK { 2 * lanes } else { lanes }
}

/// The counter's last word: of the blocks of upper halves, and of those of lower ones.
const UPPER: u32 = 0;
const LOWER: u32 = 1;
/// What an upper half alone says of a word: its first 15 bits.
const UPPER_BITS: u32 = 0xFFFE_0000;

/// The block of a counter under a key.
#[inline(always)]
pub fn philox4x32_10(counter: [u32; 4], key: [u32; 2]) -> [u32; 4] {
    rounds(counter, &Keys::new(key))
}

/// The ten keys of a seed. A kernel is given them with the call: each is then an operand in constant memory, where a
/// sum for each round would cost as much as the round's products.
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

/// How many words there are.
const WORDS: f64 = 4_294_967_296.0;

/// How many of the 2^32 random words keep their element at dropout probability `p`: those below the result, which are
/// the `w` with `w / 2^32 < 1 - p`. None where `p` is 1, above, or NaN; all 2^32 where it is 0 or below.
#[inline(always)]
pub const fn words_kept(p: f64) -> u64 {
    // 1 - p is exact or rounded by 2^-54; the product is exact. Conversions saturate.
    let bound = (1.0 - p) * WORDS;
    let bound = if bound > WORDS { WORDS } else { bound };
    let floor = bound as u64;
    if (floor as f64) < bound { floor + 1 } else { floor }
}

/// A random word as a number, uniform over the multiples of 2^-24 from 0 up to, but not including, 1: each is an f32.
#[inline(always)]
pub const fn uniform(bits: u32) -> f32 {
    (bits >> 8) as f32 * (1.0 / 16_777_216.0)
}

/// What an element of a call draws from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Draw {
    /// The place of the call.
    pub blocks: Blocks,
    /// The index, in the call, of the first element at hand.
    pub first: u64,
}

impl Draw {
    /// Of an op that draws nothing.
    pub const NONE: Draw = Draw { blocks: Philox::new(0).blocks(), first: 0 };
}

/// A place in the random sequence of a seed, whose round keys are worked out: what kernels take. Or the address of a
/// place that they read themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Blocks {
    offset: u64,
    address: u64,
    keys: Keys,
}

impl Blocks {
    /// A place that kernels read: seed and offset, two `u64` one after another.
    ///
    /// # Safety
    /// The address is that of memory which every kernel that is given the result may read, and aligned to a `u64`.
    #[allow(unsafe_code)] // a contract for what kernels do
    #[must_use]
    pub const unsafe fn in_memory(address: u64) -> Blocks {
        Blocks { address, ..Philox::new(0).blocks() }
    }

    /// The address of the place that counts instead of [`Blocks::given`]; 0 where there is none. A kernel may read it.
    #[inline(always)]
    #[must_use]
    pub const fn address(&self) -> u64 {
        self.address
    }

    /// The place that came with the call.
    #[inline(always)]
    #[must_use]
    pub const fn given(&self) -> Philox {
        let [low, high] = self.keys.0[0];
        Philox { seed: low as u64 | (high as u64) << 32, offset: self.offset }
    }

    /// [`Philox::upper_halves`] of the place that came with the call.
    #[inline(always)]
    pub fn upper_halves(&self, index: u64) -> [u32; 4] {
        rounds(self.given().counter(index, UPPER), &self.keys)
    }
}

/// Of two upper halves, side by side, the first or the second where a word has it: 15 bits at the top and one at the
/// bottom. Those between mean nothing.
#[inline(always)]
pub const fn upper(two: u32, second: bool) -> u32 {
    two.rotate_left(if second { 1 } else { 17 })
}

/// Of two lower halves the first or the second, in the upper 16 bits; those below mean nothing.
#[inline(always)]
pub const fn lower(two: u32, second: bool) -> u32 {
    if second { two } else { two << 16 }
}

/// The word of what [`upper`] and [`lower`] give.
#[inline(always)]
pub const fn whole(upper: u32, lower: u32) -> u32 {
    upper & (UPPER_BITS | 1) | lower >> 15 & !(UPPER_BITS | 1)
}

/// The random word of an element: 32 bits, uniform over all `u32`.
///
/// Most decisions need but the upper half: a comparison with a threshold, unless the threshold begins with the same 15
/// bits. So a kernel makes the upper halves, eight elements a block, and lets the formula say whether it needs more.
#[derive(Clone, Copy, Debug)]
pub struct RandomWord<'a> {
    word: u32,
    /// Where only the upper half's bits are known: set when that does not answer a question.
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
    /// A word of which the upper 15 bits are known. `asked` becomes true where an answer depends on the others: it is
    /// then void.
    #[inline(always)]
    pub const fn upper(word: u32, asked: &'a Cell<bool>) -> Self {
        RandomWord { word, asked: Some(asked) }
    }

    /// All 32 bits.
    #[inline(always)]
    pub fn bits(self) -> u32 {
        if let Some(asked) = self.asked {
            asked.set(true);
        }
        self.word
    }

    /// Whether the word is at most `last`.
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
/// Philox block is an offset in 64 bits, then 0, then 0 or 1. Its 128 bits are eight halves, the lowest first: element
/// `i` of the call takes half `i % 8` of block `(offset + i / 8, 0)` above the same half of block `(offset + i / 8, 1)`,
/// rotated left by one bit, as its word. No two elements share a bit. The rotation leaves the upper half's highest bit
/// out of a comparison, where kernels, which compare two halves at a time, have the borrow of a difference.
///
/// The same seed and offset give the same mask again, which is how a backward pass repeats it. For a fresh mask go on
/// to [`Philox::after`] the call, or take another seed.
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
    /// The start of a seed's sequence.
    #[inline(always)]
    pub const fn new(seed: u64) -> Philox {
        Philox { seed, offset: 0 }
    }

    /// The same seed at another offset, in blocks of eight elements.
    #[inline(always)]
    pub const fn at(self, offset: u64) -> Philox {
        Philox { offset, ..self }
    }

    /// Behind what a call on `n` elements takes: the first place whose words that call did not use. Wraps after 2^64
    /// offsets.
    #[inline(always)]
    pub const fn after(self, n: u64) -> Philox {
        self.at(self.offset.wrapping_add(n.div_ceil(BLOCK as u64)))
    }

    /// The place with its round keys.
    #[inline(always)]
    pub const fn blocks(self) -> Blocks {
        Blocks { offset: self.offset, address: 0, keys: self.keys() }
    }

    #[inline(always)]
    const fn keys(self) -> Keys {
        Keys::new([self.seed as u32, (self.seed >> 32) as u32])
    }

    #[inline(always)]
    const fn counter(self, index: u64, part: u32) -> [u32; 4] {
        let counter = self.offset.wrapping_add(index);
        [counter as u32, (counter >> 32) as u32, 0, part]
    }

    /// The upper halves of the words of elements `8 index ..= 8 index + 7`, two a word, the first in the lower 16 bits.
    #[inline(always)]
    pub fn upper_halves(self, index: u64) -> [u32; 4] {
        rounds(self.counter(index, UPPER), &self.keys())
    }

    /// The lower halves, as [`Philox::upper_halves`] has the upper ones.
    #[inline(always)]
    pub fn lower_halves(self, index: u64) -> [u32; 4] {
        rounds(self.counter(index, LOWER), &self.keys())
    }

    /// The word of element `i`.
    #[inline(always)]
    pub fn word(self, i: u64) -> u32 {
        let (index, lane) = (i / BLOCK as u64, i as usize % BLOCK);
        let (two, second) = (lane / 2, lane % 2 != 0);
        whole(upper(self.upper_halves(index)[two], second), lower(self.lower_halves(index)[two], second))
    }
}
