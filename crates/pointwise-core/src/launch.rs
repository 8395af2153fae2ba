//! The numbers and structs that kernels and host must agree on.

/// The elements of a thread of `explicit_parallel`.
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

/// Returns the place of the result of `a` and `b` in a table of pairs.
///
/// Bits 2 to 6 choose one of the 32 banks of shared memory. In an 8-bit float they are exponent, which is nearly the
/// same in most numbers. So the low bits of the other operand, which differ, are mixed in: the threads of a warp seldom
/// meet in a bank.
#[inline(always)]
#[must_use]
pub const fn pair_slot(a: u8, b: u8) -> u16 {
    (a as u16) << 8 | (b ^ (a << 3 & PAIRS_SHIFTED)) as u16
}

/// The most dimensions a strided kernel walks.
pub const MAX_DIMS: usize = 8;
/// The most dimensions that a kernel walks by vectors: real shapes, merged, have two or three.
pub const MAX_ROW_DIMS: usize = 4;
/// The dimensions besides the outermost in kernels of single elements.
pub const SPLITS: usize = MAX_DIMS - 1;
/// The same in kernels that walk by vectors: their parameters are half as long, and a launch waits for less.
pub const ROW_SPLITS: usize = MAX_ROW_DIMS - 1;
/// Items of one launch of a strided kernel stay below this: [`Divisor`] takes dividends of 31 bits.
pub const MAX_ITEMS: u64 = 1 << 31;
/// The elements of a thread of a strided kernel, along one dimension.
pub const GROUP: usize = 4;
/// The offsets of one launch of a strided kernel span fewer elements than this: they have 32 bits.
pub const MAX_REACH: u64 = 1 << 31;

/// The most tensors of a kernel whose threads have groups of single elements ([`Groups`]). With more tensors a group
/// would not stay in registers: those kernels have [`Steps`].
pub const GROUPED_TENSORS: usize = 4;

/// Two bits of a kernel's `mode` ([`how`]): it reads one element for a whole vector, once. With zeros it reads a vector
/// at a time.
pub const ONCE: u32 = 1;
/// It reads nothing: the operand is the word that came with the call.
pub const NUMBER: u32 = 2;
/// It reads a vector at a time, which leaves the level-2 cache first.
pub const PASSING: u32 = 3;

/// A bit of the `mode` of a strided kernel: its vectors of results lie one element after another, also across the ends
/// of rows. Items are elements, and an operand with one value along a row is [`ONCE`].
pub const ACROSS: u32 = 1 << 31;

/// Returns operand `k`'s two bits of a kernel's `mode`.
#[inline(always)]
#[must_use]
pub const fn how(mode: u32, k: u32) -> u32 {
    mode >> (2 * k) & 3
}

/// Division by a number that only the host knows, as a multiplication and a shift (Granlund and Montgomery 1994).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Divisor {
    /// The divisor, from 2 to 2^31.
    pub size: u32,
    multiplier: u32,
    shift: u32,
}

impl Divisor {
    /// Returns the division by a size from 2 to 2^31.
    #[must_use]
    pub const fn new(size: u32) -> Divisor {
        // ceil(2^p / size) with p = 31 + ceil(log2 size) is below 2^32, and too large by less than 2^(p - 31) / size.
        let log = 32 - (size - 1).leading_zeros();
        let multiplier = (1_u64 << (31 + log)).div_ceil(size as u64) as u32;
        Divisor { size, multiplier, shift: log - 1 }
    }

    /// Returns the fields, in order.
    #[must_use]
    pub const fn words(self) -> [u32; 3] {
        [self.size, self.multiplier, self.shift]
    }

    /// Returns `(n / size, n % size)` for `n < 2^31`.
    #[inline(always)]
    #[must_use]
    pub const fn divide(self, n: u32) -> (u32, u32) {
        let quotient = ((n as u64 * self.multiplier as u64) >> 32) as u32 >> self.shift;
        (quotient, n.wrapping_sub(quotient.wrapping_mul(self.size)))
    }
}

/// The steps to item `i` of `N` tensors, the result first, along up to `D` dimensions and one more. A kernel splits `i`
/// into indices, innermost first; each index moves every tensor by a stride of its own. Scalars only, as kernels take
/// no pointers in structs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Steps<const N: usize, const D: usize> {
    /// The number of dimensions besides the outermost: at least one, so that kernels need not check.
    pub splits: u32,
    /// Strides of the outermost dimension, in elements: see [`MAX_REACH`].
    pub outer: [i32; N],
    /// The dimensions besides the outermost. The fields that calls of few dimensions need lie together, at the
    /// beginning: a kernel waits for each line of its parameters.
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

/// The way to the [`GROUP`] elements of a strided kernel's thread: one dimension is divided into groups of so many, and
/// an item is a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Groups<const N: usize> {
    /// The index in [`Steps::inner`] of the dimension that is divided; one behind the last is the outermost.
    pub divided: u32,
    /// The strides from an element of a group to the next.
    pub apart: [i32; N],
    /// Element `k + 1` exists in the groups whose index along the dimension is below `ends[k]`. If `ends[0]` is 0, every
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

    /// No bank has more than twice its share of the numbers between 1/4 and 2 of both signs.
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
