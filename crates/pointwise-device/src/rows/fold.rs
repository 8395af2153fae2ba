//! The sum of the chunks of gradients of weights.

use pointwise_core::Logic;
use pointwise_core::rows::{FOLD_COLUMNS, FOLD_GROUPS, FOLD_IN_WARP, MAX_THREADS, RowData, WARP};

use super::elements::store;
use super::reduce::{Shared, WARPS, exchanged};
use super::sums::load_sums;
use crate::packed::{Packed, unroll};
use crate::thread;

/// Adds the chunks of each gradient of a weight, by blocks of [`MAX_THREADS`]: [`FOLD_COLUMNS`] columns of [`FOLD_GROUPS`]
/// groups.
///
/// # Safety
/// `sums` is valid for reading, for each gradient of a weight, `chunks` rows of `len` elements in f32. Their results are valid for
/// writing `len` elements. The module declares `pointwise_rows`.
#[inline(always)]
pub unsafe fn fold<E, O, const R: usize>(results: [*mut u8; R], sums: *const u8, chunks: u32, len: u32)
where
    E: Packed,
    O: RowData,
{
    thread::at_most_registers::<128>();
    const _: () = assert!(FOLD_COLUMNS * FOLD_GROUPS == MAX_THREADS && FOLD_GROUPS / FOLD_IN_WARP == WARPS);
    let thread = thread::thread_idx_x();
    let (lane, group) = (thread % FOLD_COLUMNS, thread / FOLD_COLUMNS);
    let column = thread::block_idx_x() * FOLD_COLUMNS + lane;
    let (row, shared) = (len as usize * 4, Shared::new());
    unroll!(at most 8: k < R => {
        if const { O::INFO }.is_weight_result(k) {
            let weight = (const { O::INFO }.weight_results & ((1 << k) - 1)).count_ones();
            if weight > 0 {
                thread::sync_threads();
            }
            let mut sum = 0.0;
            if column < len {
                let mut chunk = group;
                let first = weight as u64 * chunks as u64 + group as u64;
                let mut at = sums.wrapping_add(first as usize * row).wrapping_add(4 * column as usize);
                while chunk < chunks {
                    thread::no_unrolling();
                    let mut parts = [0.0; 4];
                    // Four are under way together. Zeros in the place of chunks that are not there change no sum.
                    unroll!(at most 4: i < 4 => {
                        let is_there = chunk + i as u32 * FOLD_GROUPS < chunks;
                        // SAFETY: the caller's contract.
                        [parts[i]] = unsafe { load_sums::<1>(at.wrapping_add(i * FOLD_GROUPS as usize * row), is_there) };
                    });
                    unroll!(at most 4: i < 4 => { sum += parts[i]; });
                    chunk += 4 * FOLD_GROUPS;
                    at = at.wrapping_add(4 * FOLD_GROUPS as usize * row);
                }
            }
            unroll!(at most 4: step < FOLD_IN_WARP.ilog2() as usize => { sum += exchanged(sum, WARP >> (step + 1)); });
            if thread % WARP < FOLD_COLUMNS {
                shared.put(thread / WARP * FOLD_COLUMNS, sum);
            }
            thread::sync_threads();
            if thread < FOLD_COLUMNS && column < len {
                let mut parts = [0.0; WARPS as usize];
                unroll!(warp < WARPS as usize => {
                    parts[warp] = shared.get(warp as u32 * FOLD_COLUMNS);
                });
                unroll!(at most 4: step < WARPS.ilog2() as usize => {
                    let half = WARPS as usize >> (step + 1);
                    unroll!(if at most 8: i < half => { parts[i] += parts[i + half]; });
                });
                // SAFETY: the caller's contract.
                unsafe { store::<E, O, 1>(k, results[k], column as i64, [parts[0]], [Logic(false)]) };
            }
        }
    });
}
