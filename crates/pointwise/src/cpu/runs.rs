//! A call over all runs of a walk, in parallel.

use pointwise_core::op::Words;

use super::map::MapFn;
use super::operand::Source;
use super::parallel::split;
use crate::kernel::{Places, Walk};

/// A call on the CPU.
pub(crate) struct Run<'a> {
    /// The op.
    pub(crate) op: MapFn,
    /// The loop; tensor 0 is the result.
    pub(crate) walk: &'a Walk,
    /// First elements of the operands.
    pub(crate) operands: [*const u8; 3],
    /// Operands that came with the call.
    pub(crate) given: [Option<u64>; 3],
    /// The result's first element.
    pub(crate) y: *mut u8,
    /// Bytes of an element of each tensor.
    pub(crate) sizes: [usize; 4],
    /// Parameters.
    pub(crate) words: Words,
}

// SAFETY: the pointers are of memory that is borrowed for the call, of which each thread writes its own part.
unsafe impl Sync for Run<'_> {}

impl Run<'_> {
    /// Runs the op over the whole walk, in parallel.
    ///
    /// # Safety
    /// Every place of the walk is valid in its tensor, as [`MapFn`] asks.
    pub(crate) unsafe fn run(&self) {
        let this = self;
        split(this.walk.numel() as usize, |start, len| {
            // SAFETY: the caller's contract; parts are disjoint in y.
            unsafe { this.part(start, len) }
        });
    }

    /// Elements `start .. start + len` in the walk's order.
    ///
    /// # Safety
    /// As [`Run::run`].
    unsafe fn part(&self, start: usize, len: usize) {
        runs(self.walk, start, len, |first, step, n| {
            // SAFETY: the caller's contract.
            unsafe {
                let sources = std::array::from_fn(|k| Source {
                    pointer: self.operands[k].wrapping_offset(first[k + 1] as isize * self.sizes[k + 1] as isize),
                    step: step[k + 1] as isize,
                    word: self.given[k],
                });
                let y = self.y.offset(first[0] as isize * self.sizes[0] as isize);
                (self.op)(&sources, y, step[0] as isize, n, self.words);
            }
        });
    }
}

/// Calls `run` with the place of the first element, the step to the next and the number of elements, for each run along
/// the innermost dimension that has any of the elements `start .. start + len` in the walk's order.
pub(super) fn runs<const N: usize>(
    walk: &Walk<N>,
    start: usize,
    len: usize,
    mut run: impl FnMut(&Places<N>, &Places<N>, usize),
) {
    let (inner, step) = walk.inner();
    let outer = walk.dims().len().saturating_sub(1);
    let mut along = start % inner;
    // The row's index along each outer dimension, the last first, and its place in every tensor.
    let mut index = [0_usize; pointwise_core::launch::MAX_DIMS];
    let mut place = [0; N];
    let mut rest = start / inner;
    for (slot, (size, step)) in index.iter_mut().zip(walk.dims().take(outer).rev()) {
        *slot = rest % size;
        rest /= size;
        move_by(&mut place, step, *slot as i64);
    }
    let mut left = len;
    while left > 0 {
        let n = left.min(inner - along);
        let mut first = place;
        move_by(&mut first, &step, along as i64);
        run(&first, &step, n);
        (left, along) = (left - n, 0);
        for (slot, (size, step)) in index.iter_mut().zip(walk.dims().take(outer).rev()) {
            *slot += 1;
            move_by(&mut place, step, 1);
            if *slot < size {
                break;
            }
            move_by(&mut place, step, -(size as i64));
            *slot = 0;
        }
    }
}

fn move_by<const N: usize>(place: &mut Places<N>, step: &Places<N>, times: i64) {
    for (place, step) in place.iter_mut().zip(step) {
        *place += step * times;
    }
}
