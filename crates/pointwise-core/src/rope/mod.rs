//! Rotary position embedding: the rotation, the two ways to an angle, and the flags and structs that kernels and host
//! share.

mod full_head;
mod per_block;
mod per_thread;

pub use full_head::{FullHead, FullHeadPlace, FullHeadSide};
pub use per_block::{Place, RopeWalk, Side, Tile};
pub use per_thread::{PerThread, PerThreadPlace, PerThreadSide};

use duplicate::duplicate_item;

use crate::element::Element;
use crate::maths::{self, prim::fma};
use crate::num::Coarse;

/// Returns `(x1 cos - x2 sin, x2 cos + x1 sin)` of elements `E` as f32. In f32 the products are rounded, then their sum, as
/// in HF's code. In 16 bits one product goes into the sum unrounded: one instruction instead of two.
#[inline(always)]
pub fn rotate<E: RopeElement>(x1: f32, x2: f32, cos: f32, sin: f32) -> (f32, f32) {
    if size_of::<E>() < 4 {
        (fma(x1, cos, -(x2 * sin)), fma(x2, cos, x1 * sin))
    } else {
        (x1 * cos - x2 * sin, x2 * cos + x1 * sin)
    }
}

/// Returns sine and cosine of the f32 product `position · inv_freq`, as models were trained (`precision=hf`).
#[inline(always)]
pub fn sincos_hf(position: i64, inv_freq: f32) -> (f32, f32) {
    maths::sincos_tight(position as f32 * inv_freq)
}

/// Returns sine and cosine of `position` times a frequency in units of 2^-64 turns (`precision=exact`): within 2e-7 at
/// every position, as the product modulo a turn is exact.
#[inline(always)]
pub fn sincos_exact(position: i64, turns: u64) -> (f32, f32) {
    // Two's complement makes this right for negative positions too.
    let turned = (position as u64).wrapping_mul(turns);
    // The nearest quarter turn goes in integers, so that the conversion to f32 rounds an eighth of a turn at most.
    let quarter = turned.wrapping_add(1 << 61) >> 62;
    let rest = turned.wrapping_sub(quarter << 62) as i64;
    // sin(pi x) with x = 2 rest / 2^64. The upper 32 bits of x are enough for an error of 2^-32.
    let (sin, cos) = maths::sincospi((rest >> 31) as i32 as f32 * f32::from_bits((127 - 32) << 23));
    let (sin, cos) = if quarter & 1 != 0 { (cos, -sin) } else { (sin, cos) };
    if quarter & 2 != 0 { (-sin, -cos) } else { (sin, cos) }
}

/// The element types that RoPE takes: their maths runs in f32.
pub trait RopeElement: Element {
    /// Returns a widened element as f32.
    fn to_f32(value: Self::Compute) -> f32;
    /// Returns a result in the compute type, not yet rounded.
    fn from_f32(value: f32) -> Self::Compute;
}

#[duplicate_item(
    Type           to         from;
    [f32]          [value]    [value];
    [crate::f16]   [value.0]  [Coarse(value)];
    [crate::bf16]  [value.0]  [Coarse(value)];
)]
impl RopeElement for Type {
    #[inline(always)]
    fn to_f32(value: Self::Compute) -> f32 {
        to
    }
    #[inline(always)]
    fn from_f32(value: f32) -> Self::Compute {
        from
    }
}

/// The heads whose loads a thread has in flight at once.
pub const CHUNK: u32 = 4;

/// Input pairs are neighbours (GPT-J), not half the rotated lanes apart (NeoX).
pub const INTERLEAVED_IN: u32 = 1;
/// Output pairs are neighbours, likewise.
pub const INTERLEAVED_OUT: u32 = 2;
/// Pairs are neighbours before and after.
pub const NEIGHBOURS: u32 = INTERLEAVED_IN | INTERLEAVED_OUT;
/// Neighbouring threads take neighbouring tokens, not neighbouring heads.
pub const TOKENS_INNER: u32 = 4;
/// Positions are 64-bit integers, not 32-bit ones.
pub const WIDE_IDS: u32 = 8;
/// A position for each token.
pub const IDS: u32 = 16;
/// An offset for each batch entry, added to the row.
pub const BATCH_OFFSETS: u32 = 32;
/// Sequences one after another, by their cumulative lengths.
pub const SEQUENCES: u32 = 64;
/// Three positions for each token. Each pair takes one of them, by [`RopeWalk::sections`]; with [`IDS`].
pub const AXES: u32 = 128;
/// Pairs take the positions of [`AXES`] in turn, not section by section.
pub const AXES_IN_TURN: u32 = 256;
/// No factor multiplies cosines and sines; for [`PerThread`] and [`FullHead`].
pub const PLAIN: u32 = 512;

/// The cosines, and as many sines, that a block of threads can hold.
pub const TABLE: u32 = 1024;

/// Returns the number of a pair in its head, for a thread's slot. A thread has the slots `lane vector` and up: the
/// pairs of two vectors of `vector` elements. If pairs are neighbours, these vectors lie `half` lanes apart, and
/// neighbouring threads load neighbouring vectors.
#[inline(always)]
#[must_use]
pub const fn pair_of(slot: u32, vector: u32, half: u32, flags: u32) -> u32 {
    if vector == 1 || flags & NEIGHBOURS != NEIGHBOURS {
        return slot;
    }
    let (lane, i) = (slot / vector, slot % vector);
    let far = i >= vector / 2;
    lane * (vector / 2) + i % (vector / 2) + if far { half / 2 } else { 0 }
}

/// Returns the index of the position that a pair takes of a token's three (time, height, width).
#[inline(always)]
#[must_use]
pub const fn axis(pair: u32, [time, height, width]: [u32; 3], in_turn: bool) -> u32 {
    if in_turn {
        // Height and width take turns as far as they reach; the other pairs are time's.
        let (third, axis) = (pair / 3, pair % 3);
        let reach = if axis == 1 { height } else { width };
        if third < reach { axis } else { 0 }
    } else {
        (pair >= time) as u32 + (pair >= time + height) as u32
    }
}

/// Division of an index by a number that only the host knows, as a multiplication and a shift (Granlund and Montgomery
/// 1994). Unlike [`crate::launch::Divisor`] it divides by 1, too: often there is one head or token.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Count {
    /// The divisor, from 1 to 2^31.
    pub size: u32,
    multiplier: u32,
    shift: u32,
}

impl Count {
    /// Returns the division by a number up to 2^31; 0 counts as 1.
    #[must_use]
    pub const fn new(size: u32) -> Count {
        let size = if size == 0 { 1 } else { size };
        // ceil(2^(31 + shift) / size) with shift = ceil(log2 size) is below 2^32, and too large by less than one part
        // in 2^31.
        let shift = 32 - (size - 1).leading_zeros();
        Count { size, multiplier: (1_u64 << (31 + shift)).div_ceil(size as u64) as u32, shift }
    }

    /// Returns one of two, number by number: a GPU's compiler would build a whole struct from 64-bit halves.
    #[inline(always)]
    fn either(first: bool, one: &Count, other: &Count) -> Count {
        let pick = |one: u32, other: u32| if first { one } else { other };
        Count {
            size: pick(one.size, other.size),
            multiplier: pick(one.multiplier, other.multiplier),
            shift: pick(one.shift, other.shift),
        }
    }

    /// Returns `(n / size, n % size)` for `n < 2^31`.
    #[inline(always)]
    #[must_use]
    pub fn divide(self, n: u32) -> (u32, u32) {
        // The upper half of a product of 32 bits, and a shift of 32 bits: a GPU has instructions for both.
        let quotient = maths::prim::upper_half(2 * n, self.multiplier) >> (self.shift & 31);
        (quotient, n.wrapping_sub(quotient.wrapping_mul(self.size)))
    }
}

impl Default for Count {
    fn default() -> Count {
        Count::new(1)
    }
}

/// The parameters of a thread that finds its own angles. Offsets have 32 bits.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct OwnAngles {
    /// The distance from a thread's first pair to the next thread's, and from the first pair of its first vector to the
    /// first of its second.
    pub pairs: [u32; 2],
    /// Strides of the first and the second table, in elements: of batch and row.
    pub tables: [[u32; 2]; 2],
    /// Rows of the table; a position outside of it leaves the token unrotated.
    pub rows: i64,
    /// Added to every position.
    pub offset: i64,
    /// Strides of the positions: of batch and token.
    pub ids: [u32; 2],
    /// Multiplies cosine and sine, unless [`PLAIN`].
    pub factor: f32,
    /// 1, or -1 for the backward pass.
    pub sin_sign: f32,
}

#[cfg(test)]
mod tests {
    use super::{Count, INTERLEAVED_IN, NEIGHBOURS, pair_of};

    /// If pairs are neighbours, the slots of a thread are the pairs of its two vectors, in order; else nothing changes.
    #[test]
    fn slots_are_pairs_of_vectors() {
        for (half, vector) in [(32, 8), (40, 8), (64, 4), (4, 4), (6, 2), (2, 2)] {
            for lane in 0..half / vector {
                for i in 0..vector {
                    let slot = lane * vector + i;
                    // The lane of a pair's first element, in the first vector or in the one `half` lanes on.
                    let far = if i < vector / 2 { 0 } else { half };
                    let element = far + lane * vector + 2 * (i % (vector / 2));
                    assert_eq!(2 * pair_of(slot, vector, half, NEIGHBOURS), element, "{half} {vector}, slot {slot}");
                    assert_eq!(pair_of(slot, vector, half, INTERLEAVED_IN), slot);
                }
            }
        }
        assert_eq!(
            (0..7).map(|slot| pair_of(slot, 1, 7, NEIGHBOURS)).collect::<std::vec::Vec<_>>(),
            [0, 1, 2, 3, 4, 5, 6]
        );
    }

    #[test]
    fn a_count_divides() {
        let last = (1_u64 << 31) - 1;
        let sizes = (1..300).chain([1000, 12_345, 65_535, 65_536, 65_537, 1 << 30, (1 << 31) - 1, 1 << 31]);
        for size in sizes {
            let count = Count::new(size as u32);
            let edges = (0..40).flat_map(|k| [k, last - k]).chain((1..60).flat_map(|k| {
                let multiple = (last / size) * k / 59 * size;
                [multiple.saturating_sub(1), multiple, (multiple + 1).min(last)]
            }));
            for n in edges {
                assert_eq!(count.divide(n as u32), ((n / size) as u32, (n % size) as u32), "{n} / {size}");
            }
        }
    }
}
