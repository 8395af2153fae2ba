//! Rotary position embedding: the rotation, the two ways to an angle, and what kernels and host must agree on.

use crate::element::Element;
use crate::maths;
use crate::num::{Coarse, Num};

/// `(x1 cos - x2 sin, x2 cos + x1 sin)`: the products are rounded, then their sum, as HF's code in f32 does it.
#[inline(always)]
pub fn rotate<T: Num>(x1: T, x2: T, cos: T, sin: T) -> (T, T) {
    (x1 * cos - x2 * sin, x2 * cos + x1 * sin)
}

/// Sine and cosine of the f32 product `position · inv_freq`, as models were trained (`precision=hf`).
#[inline(always)]
pub fn sincos_hf(position: i64, inv_freq: f32) -> (f32, f32) {
    maths::sincos(position as f32 * inv_freq)
}

/// Sine and cosine of `position` times a frequency in units of 2^-64 turns (`precision=exact`): within 2e-7 at every
/// position, as the product modulo a turn is exact.
#[inline(always)]
pub fn sincos_exact(position: i64, turns: u64) -> (f32, f32) {
    // Two's complement makes this right for negative positions too.
    let turned = (position as u64).wrapping_mul(turns);
    // The nearest quarter turn goes in integers, so that the conversion to f32 rounds an eighth of a turn at most.
    let quarter = turned.wrapping_add(1 << 61) >> 62;
    let rest = turned.wrapping_sub(quarter << 62) as i64;
    // sin(pi x) with x = 2 rest / 2^64, of which the upper 32 bits are enough for an error of 2^-32.
    let (sin, cos) = maths::sincospi((rest >> 31) as i32 as f32 * f32::from_bits((127 - 32) << 23));
    let (sin, cos) = if quarter & 1 != 0 { (cos, -sin) } else { (sin, cos) };
    if quarter & 2 != 0 { (-sin, -cos) } else { (sin, cos) }
}

/// The element types that RoPE takes: their maths runs in f32.
pub trait RopeElement: Element {
    /// A widened element as f32.
    fn to_f32(value: Self::Compute) -> f32;
    /// A result in the compute type, not yet rounded.
    fn from_f32(value: f32) -> Self::Compute;
}

impl RopeElement for f32 {
    #[inline(always)]
    fn to_f32(value: f32) -> f32 {
        value
    }
    #[inline(always)]
    fn from_f32(value: f32) -> f32 {
        value
    }
}

macro_rules! coarse {
    ($($t:ty)*) => { $(
        impl RopeElement for $t {
            #[inline(always)]
            fn to_f32(value: Coarse) -> f32 {
                value.0
            }
            #[inline(always)]
            fn from_f32(value: f32) -> Coarse {
                Coarse(value)
            }
        }
    )* };
}
coarse!(half::f16 half::bf16);

/// Heads whose loads a thread has in flight at once.
pub const CHUNK: u32 = 4;

/// Input pairs are neighbours (GPT-J), not half the rotated lanes apart (NeoX).
pub const INTERLEAVED_IN: u32 = 1;
/// As [`INTERLEAVED_IN`], of the output.
pub const INTERLEAVED_OUT: u32 = 2;
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

/// Division of an index by a number known to the host alone, as a multiplication and a shift (Granlund and Montgomery
/// 1994). Unlike [`crate::launch::Divisor`] it divides by 1 too, which heads and tokens often number.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Count {
    /// What is divided by, from 1 to 2^31.
    pub size: u32,
    multiplier: u32,
    shift: u32,
}

impl Count {
    /// Of a number up to 2^31; 0 counts as 1.
    #[must_use]
    pub const fn new(size: u32) -> Count {
        let size = if size == 0 { 1 } else { size };
        // ceil(2^shift / size) with shift = 31 + ceil(log2 size) is below 2^32, and too large by less than one part in
        // 2^31.
        let shift = 31 + 32 - (size - 1).leading_zeros();
        Count { size, multiplier: (1_u64 << shift).div_ceil(size as u64) as u32, shift }
    }

    /// `(n / size, n % size)` for `n < 2^31`.
    #[inline(always)]
    #[must_use]
    pub const fn divide(self, n: u32) -> (u32, u32) {
        let quotient = ((n as u64 * self.multiplier as u64) >> self.shift) as u32;
        (quotient, n.wrapping_sub(quotient.wrapping_mul(self.size)))
    }
}

impl Default for Count {
    fn default() -> Count {
        Count::new(1)
    }
}

/// One tensor of a launch, q or k. Strides are in elements, of batch, token and head.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Side {
    /// Heads; 0 where the tensor is absent.
    pub heads: u32,
    /// Threads that share the heads of a lane: thread `g` takes heads `g`, `g + groups`, ...
    pub groups: u32,
    /// Strides of the input.
    pub input: [i64; 3],
    /// Strides of the output.
    pub output: [i64; 3],
    /// Multiplies every lane.
    pub scale: f32,
}

/// What a launch does, but for the addresses: kernels take no pointers in structs.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Walk {
    /// The first tensor.
    pub q: Side,
    /// The second tensor.
    pub k: Side,
    /// Batch entries times tokens of each.
    pub tokens: u32,
    /// Tokens of a batch entry.
    pub seq: Count,
    /// Threads for the lanes of a head: those for pairs, then those for the lanes that pass through.
    pub lanes: Count,
    /// The tokens, or the groups of both tensors: what neighbouring threads take, after the lanes.
    pub inner: Count,
    /// Threads for pairs.
    pub pair_lanes: u32,
    /// The first rotated lane.
    pub rotated_at: u32,
    /// Half the rotated lanes.
    pub half: u32,
    /// The first lane that passes through.
    pub rest_at: u32,
    /// The flags of this module.
    pub flags: u32,
    /// Sequences of [`SEQUENCES`].
    pub sequences: u32,
    /// Multiplies cosine and sine.
    pub factor: f32,
    /// 1, or -1 for the backward pass.
    pub sin_sign: f32,
    /// Strides of the positions: of batch and token.
    pub ids: [i64; 2],
    /// Added to every position.
    pub offset: i64,
    /// Rows of the table; a position outside of it leaves the token unrotated. `i64::MAX` without a table.
    pub rows: i64,
    /// Strides of the first table, in elements: of batch and row.
    pub first: [i64; 2],
    /// Strides of the second table.
    pub second: [i64; 2],
}

/// Calls a macro, its path in parentheses, for each angle source, element type and strategy that has a kernel:
/// `visitor! { source type strategy, args }`. The only place where they are listed.
#[macro_export]
macro_rules! rope_entries {
    ($visitor:tt $args:tt) => {
        $crate::rope_entries! { @types $visitor $args hf f32 f16 bf16 }
        $crate::rope_entries! { @types $visitor $args exact f32 f16 bf16 }
        $crate::rope_entries! { @types $visitor $args angles f32 f16 bf16 }
        $crate::rope_entries! { @types $visitor $args tables f32 f16 bf16 }
        $crate::rope_entries! { @types $visitor $args own_tables f16 bf16 }
    };
    (@types $visitor:tt $args:tt $source:ident $($type:ident)*) => { $(
        $crate::rope_entries! { @strategies $visitor $args $source $type direct explicit_parallel register_copy }
    )* };
    (@strategies $visitor:tt $args:tt $source:ident $type:ident $($strategy:ident)*) => { $(
        $crate::rope_entries! { @call $visitor $args $source $type $strategy }
    )* };
    (@call ($($visitor:tt)*) $args:tt $source:ident $type:ident $strategy:ident) => {
        $($visitor)*! { $source $type $strategy, $args }
    };
}

/// The symbol of every RoPE kernel, for build scripts to check that all were made.
#[cfg(not(target_arch = "nvptx64"))]
#[must_use]
pub fn symbols() -> std::vec::Vec<&'static str> {
    let mut symbols = std::vec::Vec::new();
    macro_rules! push {
        ($source:ident $type:ident $strategy:ident, ($list:ident)) => {
            $list.push(crate::symbol!(rope, $source, $type, $strategy));
        };
    }
    crate::rope_entries! { (push) (symbols) }
    symbols
}

#[cfg(test)]
mod tests {
    use super::Count;

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
