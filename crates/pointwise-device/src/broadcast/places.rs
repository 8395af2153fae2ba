//! Where items lie: offsets of their elements in each tensor.

use pointwise_core::launch::{GROUP, Groups, ONCE, SPLITS, Steps};

use crate::packed::unroll;

/// Offsets of element `i` of tensors that all lie alike, but for operands that are one value.
#[inline(always)]
pub(crate) fn alike(i: u64, mode: u32) -> [i64; 4] {
    let of = |k: u32| if mode & (ONCE << k) != 0 { 0 } else { i as i64 };
    [i as i64, of(0), of(1), of(2)]
}

/// Element `i` of those that lie before and behind whole vectors, `head` of them before.
#[inline(always)]
pub(crate) fn single<const V: usize>(i: u32, head: u32, vectors: u32) -> u64 {
    if i < head { i as u64 } else { i as u64 + vectors as u64 * V as u64 }
}

/// Offsets of the elements of a group in `N` tensors, zeros behind them. Every index is a constant, so that nothing
/// goes to local memory.
#[inline(always)]
pub(super) fn group_places<const N: usize>(groups: &Groups<N>, item: u32) -> [[i64; 4]; GROUP] {
    let steps = &groups.steps;
    let (mut rest, mut first, mut along) = (item, [0_i32; 4], 0);
    'dims: {
        unroll!(at most 8: d < SPLITS => {
            // Few have more: those of them leave at the first question.
            if d > 0 && d as u32 >= steps.splits {
                break 'dims;
            }
            let (next, index) = steps.inner[d].size.divide(rest);
            unroll!(at most 4: k < N => { first[k] += index as i32 * steps.inner[d].strides[k]; });
            if groups.divided == d as u32 {
                along = index;
            }
            rest = next;
        });
    }
    unroll!(at most 4: k < N => { first[k] += rest as i32 * steps.outer[k]; });
    if groups.divided == steps.splits {
        along = rest;
    }
    let mut at = [first; GROUP];
    unroll!(at most 4: i < GROUP => {
        let further = if i > 0 && along < groups.ends[i - 1] { i as i32 } else { 0 };
        unroll!(at most 4: k < N => { at[i][k] += further * groups.apart[k]; });
    });
    at.map(|at| at.map(i64::from))
}

/// Offsets of an item in `N` tensors, zeros behind them. Every index is a constant, so that nothing goes to local
/// memory.
#[inline(always)]
pub(crate) fn place<const N: usize, const D: usize, const T: usize>(steps: &Steps<N, D>, item: u32) -> [i64; T] {
    let mut at = [0_i32; T];
    let mut rest = item;
    unroll!(at most 8: d < D => {
        if d == 0 || (d as u32) < steps.splits {
            let (next, index) = steps.inner[d].size.divide(rest);
            unroll!(at most 8: k < N => { at[k] += index as i32 * steps.inner[d].strides[k]; });
            rest = next;
        }
    });
    unroll!(at most 8: k < N => { at[k] += rest as i32 * steps.outer[k]; });
    at.map(i64::from)
}
