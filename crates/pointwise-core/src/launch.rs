//! Numbers that kernels and host must agree on.

/// Elements of a thread of `explicit_parallel`.
pub const NEIGHBOURS: usize = 4;
/// Entries of a table of all codes of an 8-bit type.
pub const CODES: usize = 256;
/// Threads of a block that looks codes up. Each block makes a table of its own.
pub const CODES_THREADS: u32 = 128;
/// 16-byte vectors of a thread that looks codes up.
pub const CODES_VECTORS: usize = 4;

/// Entries of a table of all pairs of bytes.
pub const PAIRS: usize = 1 << 16;
/// Threads of a block that looks pairs up. Each block has a table of its own, and three of them fit a multiprocessor.
pub const PAIRS_THREADS: u32 = 512;
/// The bits of the second byte that [`pair_slot`] mixes with the first.
pub const PAIRS_SHIFTED: u8 = 0b0111_1000;

/// The symbols of the kernels that look pairs up: along flat tensors, and along rows.
pub const LOOKUPS: [&str; 2] = ["binary_lookup_pairs_flat", "binary_lookup_pairs_rows"];

/// Where a table of pairs has the result of `a` and `b`.
///
/// Bits 2 to 6 say in which of the 32 banks of shared memory a byte lies. Of an 8-bit float they are exponent, which is
/// nearly the same in most numbers; the low bits of the other operand, which differ, are mixed in, so that the threads
/// of a warp seldom meet in a bank.
#[inline(always)]
#[must_use]
pub const fn pair_slot(a: u8, b: u8) -> u16 {
    (a as u16) << 8 | (b ^ (a << 3 & PAIRS_SHIFTED)) as u16
}

/// The most dimensions a strided kernel walks.
pub const MAX_DIMS: usize = 8;
/// The most dimensions that a kernel walks by vectors: real shapes, merged, have two or three.
pub const MAX_ROW_DIMS: usize = 4;
/// Dimensions besides the outermost, of kernels of single elements.
pub const SPLITS: usize = MAX_DIMS - 1;
/// The same, of kernels that walk by vectors: what they are given is half as long, and a launch waits for less.
pub const ROW_SPLITS: usize = MAX_ROW_DIMS - 1;
/// Items of one launch of a strided kernel stay below this: [`Divisor`] takes dividends of 31 bits.
pub const MAX_ITEMS: u64 = 1 << 31;
/// Elements of a thread of a strided kernel, along one dimension.
pub const GROUP: usize = 4;
/// What all steps of one launch of a strided kernel take a tensor away from its first element, up and down together,
/// stays below this: offsets have 32 bits.
pub const MAX_REACH: u64 = 1 << 31;

/// The most tensors of a kernel of single elements whose threads have groups of them ([`Groups`]). With more, a group
/// would not stay in registers: these have [`Steps`].
pub const GROUPED_TENSORS: usize = 4;

/// How a kernel reads an operand, two bits of its `mode` ([`how`]), if not a vector at a time: one element for a whole
/// vector, read once.
pub const ONCE: u32 = 1;
/// Not at all: it is the word that came with the call.
pub const NUMBER: u32 = 2;
/// A vector at a time, which is the first to leave the level-2 cache.
pub const PASSING: u32 = 3;

/// A bit of the `mode` of a strided kernel: it has vectors of results that lie one element after another, also where a row
/// ends. Items are elements, and operands that are one value along a row are [`ONCE`].
pub const ACROSS: u32 = 1 << 31;

/// How operand `k` is read, by a kernel's `mode`.
#[inline(always)]
#[must_use]
pub const fn how(mode: u32, k: u32) -> u32 {
    mode >> (2 * k) & 3
}

/// Division by a number known to the host alone, as a multiplication and a shift (Granlund and Montgomery 1994).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Divisor {
    /// What is divided by, from 2 to 2^31.
    pub size: u32,
    multiplier: u32,
    shift: u32,
}

impl Divisor {
    /// Of a size from 2 to 2^31.
    #[must_use]
    pub const fn new(size: u32) -> Divisor {
        // ceil(2^p / size) with p = 31 + ceil(log2 size) is below 2^32, and too large by less than 2^(p - 31) / size.
        let log = 32 - (size - 1).leading_zeros();
        let multiplier = (1_u64 << (31 + log)).div_ceil(size as u64) as u32;
        Divisor { size, multiplier, shift: log - 1 }
    }

    /// The fields, in order.
    #[must_use]
    pub const fn words(self) -> [u32; 3] {
        [self.size, self.multiplier, self.shift]
    }

    /// `(n / size, n % size)` for `n < 2^31`.
    #[inline(always)]
    #[must_use]
    pub const fn divide(self, n: u32) -> (u32, u32) {
        let quotient = ((n as u64 * self.multiplier as u64) >> 32) as u32 >> self.shift;
        (quotient, n.wrapping_sub(quotient.wrapping_mul(self.size)))
    }
}

/// How a kernel finds item `i` of `N` tensors, the result first, along up to `D` dimensions and one more: `i` is taken
/// apart into indices, innermost first, each of which moves every tensor by a stride of its own. Scalars only, for
/// kernels take no pointers in structs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Steps<const N: usize, const D: usize> {
    /// How many dimensions there are besides the outermost: one at least, so that kernels need not ask for it.
    pub splits: u32,
    /// Strides of the outermost dimension, in elements: see [`MAX_REACH`].
    pub outer: [i32; N],
    /// The dimensions besides the outermost. What calls of few dimensions need lies together, at the beginning: each
    /// line of a kernel's parameters is waited for.
    pub inner: [Dim<N>; D],
}

/// A dimension of [`Steps`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Dim<const N: usize> {
    /// Its size.
    pub size: Divisor,
    /// Its strides, in elements: see [`MAX_REACH`].
    pub strides: [i32; N],
}

/// How a strided kernel finds the [`GROUP`] elements of a thread: one dimension is divided in groups of so many, and an
/// item is a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Groups<const N: usize> {
    /// The place among [`Steps::inner`] of the dimension that is divided; one behind the last of them is the outermost.
    pub divided: u32,
    /// Strides from an element of a group to the next.
    pub apart: [i32; N],
    /// Element `k + 1` is there in the groups whose index along the dimension is below `ends[k]`. If `ends[0]` is 0, every
    /// group has one element.
    pub ends: [u32; GROUP - 1],
    /// The first element of each group.
    pub steps: Steps<N, SPLITS>,
}

#[cfg(test)]
mod tests {
    use super::{Divisor, PAIRS, pair_slot};

    #[test]
    fn each_pair_has_a_slot_of_its_own() {
        let mut seen = [false; PAIRS];
        for (a, b) in (0..=255).flat_map(|a| (0..=255).map(move |b| (a, b))) {
            assert!(!std::mem::replace(&mut seen[usize::from(pair_slot(a, b))], true), "{a} {b}");
        }
    }

    /// Of the numbers between 1/4 and 2 of both signs, as many as there are, every bank has about the same share.
    #[test]
    fn numbers_of_like_size_spread_over_the_banks() {
        for (least, past) in [(0x28_u8, 0x40_u8), (0x34, 0x40)] {
            let codes = || (least..past).flat_map(|code| [code, code | 0x80]);
            let mut banks = [0_usize; 32];
            codes().flat_map(|a| codes().map(move |b| (a, b))).for_each(|(a, b)| {
                banks[usize::from(pair_slot(a, b) >> 2) % 32] += 1;
            });
            let mean = banks.iter().sum::<usize>() / 32;
            assert!(banks.iter().all(|&count| count <= 2 * mean), "{banks:?}, {mean} on average");
        }
    }

    #[test]
    fn a_divisor_divides() {
        let last = (1_u64 << 31) - 1;
        let sizes = (2..300).chain([1000, 3136, 12_345, 65_535, 65_536, 65_537, 1 << 30, (1 << 31) - 1, 1 << 31]);
        for size in sizes {
            let divisor = Divisor::new(size as u32);
            let edges = (0..40).flat_map(|k| [k, last - k]).chain((1..60).flat_map(|k| {
                let multiple = (last / size) * k / 59 * size;
                [multiple.saturating_sub(1), multiple, (multiple + 1).min(last)]
            }));
            for n in edges {
                assert_eq!(divisor.divide(n as u32), ((n / size) as u32, (n % size) as u32), "{n} / {size}");
            }
        }
    }
}
