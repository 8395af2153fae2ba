//! The places of items: offsets of their elements in each tensor.

use pointwise_core::launch::{GROUP, Groups, ONCE, SPLITS, Steps, how};

use crate::packed::unroll;

/// Offsets of the tensors' elements: the results', then the operands'.
#[derive(Clone, Copy)]
pub(crate) struct Places<const N: usize, const R: usize> {
    pub(crate) results: [i64; R],
    pub(crate) operands: [i64; N],
}

impl<const N: usize, const R: usize> Places<N, R> {
    /// Returns the places of element `i` in tensors that all lie alike, except operands that are one value by `mode`.
    #[inline(always)]
    pub(crate) fn alike(i: u64, mode: u32) -> Self {
        let mut at = Places { results: [i as i64; R], operands: [0; N] };
        unroll!(at most 12: k < N => { at.operands[k] = if how(mode, k as u32) == ONCE { 0 } else { i as i64 }; });
        at
    }

    /// Returns the places by the offsets in `T` tensors.
    #[inline(always)]
    fn of<const T: usize>(offsets: &[i32; T]) -> Self {
        const { assert!(T == N + R) }
        let mut at = Places { results: [0; R], operands: [0; N] };
        unroll!(at most 8: k < R => { at.results[k] = offsets[k] as i64; });
        unroll!(at most 12: k < N => { at.operands[k] = offsets[R + k] as i64; });
        at
    }
}

/// Returns the index of the `i`-th element outside of whole vectors: `head` of them are before the vectors, the others
/// behind.
#[inline(always)]
pub(super) fn single<const V: usize>(i: u32, head: u32, vectors: u32) -> u64 {
    if i < head { i as u64 } else { i as u64 + vectors as u64 * V as u64 }
}

/// Returns the offsets of the elements of a group. Every index is a constant, so that nothing goes to local memory.
#[inline(always)]
pub(super) fn group_places<const N: usize, const R: usize, const T: usize>(
    groups: &Groups<T>,
    item: u32,
) -> [Places<N, R>; GROUP] {
    let steps = &groups.steps;
    let (mut rest, mut first, mut along) = (item, [0_i32; T], 0);
    'dims: {
        unroll!(at most 8: d < SPLITS => {
            // Few launches have more dimensions: the others leave at the first check.
            if d > 0 && d as u32 >= steps.splits {
                break 'dims;
            }
            let (next, index) = steps.inner[d].size.divide(rest);
            unroll!(at most 4: k < T => { first[k] += index as i32 * steps.inner[d].strides[k]; });
            if groups.divided == d as u32 {
                along = index;
            }
            rest = next;
        });
    }
    unroll!(at most 4: k < T => { first[k] += rest as i32 * steps.outer[k]; });
    if groups.divided == steps.splits {
        along = rest;
    }
    let mut at = [first; GROUP];
    unroll!(at most 4: i < GROUP => {
        let further = if i > 0 && along < groups.ends[i - 1] { i as i32 } else { 0 };
        unroll!(at most 4: k < T => { at[i][k] += further * groups.apart[k]; });
    });
    [Places::of(&at[0]), Places::of(&at[1]), Places::of(&at[2]), Places::of(&at[3])]
}

/// Returns the offsets of an item. Every index is a constant, so that nothing goes to local memory.
#[inline(always)]
pub(crate) fn place<const N: usize, const R: usize, const T: usize, const D: usize>(
    steps: &Steps<T, D>,
    item: u32,
) -> Places<N, R> {
    let mut at = [0_i32; T];
    let mut rest = item;
    unroll!(at most 8: d < D => {
        if d == 0 || (d as u32) < steps.splits {
            let (next, index) = steps.inner[d].size.divide(rest);
            unroll!(at most 20: k < T => { at[k] += index as i32 * steps.inner[d].strides[k]; });
            rest = next;
        }
    });
    unroll!(at most 20: k < T => { at[k] += rest as i32 * steps.outer[k]; });
    Places::of(&at)
}
