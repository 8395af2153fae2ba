//! Philox4x32-10, the counter-based generator of Salmon, Moraes, Dror and Shaw, "Parallel Random Numbers: As Easy as
//! 1, 2, 3" (SC 2011).
//!
//! Counter-based: the random word of an element is a function of seed, offset and the element's index, so it does not
//! matter which thread computes it, in which order, or on which device.

const MULTIPLIERS: [u32; 2] = [0xD251_1F53, 0xCD9E_8D57];
const WEYL: [u32; 2] = [0x9E37_79B9, 0xBB67_AE85];
const ROUNDS: usize = 10;

/// Words of one block.
pub const BLOCK: usize = 4;

/// The block of a counter under a key.
#[inline(always)]
pub const fn philox4x32_10(counter: [u32; 4], key: [u32; 2]) -> [u32; 4] {
    let [mut c0, mut c1, mut c2, mut c3] = counter;
    let [mut k0, mut k1] = key;
    let mut round = 0;
    while round < ROUNDS {
        let a = MULTIPLIERS[0] as u64 * c0 as u64;
        let b = MULTIPLIERS[1] as u64 * c2 as u64;
        c0 = (b >> 32) as u32 ^ c1 ^ k0;
        c1 = b as u32;
        c2 = (a >> 32) as u32 ^ c3 ^ k1;
        c3 = a as u32;
        k0 = k0.wrapping_add(WEYL[0]);
        k1 = k1.wrapping_add(WEYL[1]);
        round += 1;
    }
    [c0, c1, c2, c3]
}

/// How many of the 2^32 random words keep their element at dropout probability `p`: those below the result, which are
/// the `w` with `w / 2^32 < 1 - p`. None where `p` is 1, above, or NaN; all where it is 0 or below.
#[inline(always)]
pub const fn words_kept(p: f64) -> u64 {
    // 1 - p is exact or rounded by 2^-54; the product is exact. Conversions saturate.
    let bound = (1.0 - p) * 4_294_967_296.0;
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
pub struct Draw {
    /// The place of the call.
    pub place: Philox,
    /// The index, in the call, of the first element at hand.
    pub first: u64,
}

impl Draw {
    /// Of an op that draws nothing.
    pub const NONE: Draw = Draw { place: Philox::new(0), first: 0 };
}

/// A place in the random sequence of a seed.
///
/// A call on `n` elements takes the blocks `offset .. offset + ceil(n / 4)`, four words each: element `i` has word
/// `i % 4` of block `offset + i / 4`. The same seed and offset give the same mask again, which is how a backward pass
/// repeats it. For a fresh mask go on to [`Philox::after`] the call, or take another seed.
///
/// ```
/// use pointwise_core::Philox;
///
/// let first = Philox::new(42);
/// let second = first.after(1_000);
/// assert_eq!((second.seed, second.offset), (42, 250));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Philox {
    /// The key.
    pub seed: u64,
    /// The block of the first element.
    pub offset: u64,
}

impl Philox {
    /// The start of a seed's sequence.
    #[inline(always)]
    pub const fn new(seed: u64) -> Philox {
        Philox { seed, offset: 0 }
    }

    /// The same seed at another offset, in blocks of four words.
    #[inline(always)]
    pub const fn at(self, offset: u64) -> Philox {
        Philox { offset, ..self }
    }

    /// Behind what a call on `n` elements takes: the first place whose words that call did not use. Wraps after 2^64
    /// blocks.
    #[inline(always)]
    pub const fn after(self, n: u64) -> Philox {
        self.at(self.offset.wrapping_add(n.div_ceil(BLOCK as u64)))
    }

    /// The words of elements `4 index ..= 4 index + 3`.
    #[inline(always)]
    pub const fn block(self, index: u64) -> [u32; BLOCK] {
        let counter = self.offset.wrapping_add(index);
        philox4x32_10([counter as u32, (counter >> 32) as u32, 0, 0], [self.seed as u32, (self.seed >> 32) as u32])
    }

    /// The word of element `i`.
    #[inline(always)]
    pub const fn word(self, i: u64) -> u32 {
        let [a, b, c, d] = self.block(i / BLOCK as u64);
        let low = if i & 1 == 0 { a } else { b };
        let high = if i & 1 == 0 { c } else { d };
        if i & 2 == 0 { low } else { high }
    }
}
