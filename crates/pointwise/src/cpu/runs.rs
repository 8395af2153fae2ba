//! The runs of a walk: elements along its innermost dimension.

use crate::kernel::{Places, Walk};

/// Calls `run` with the place of the first element, the step to the next and the number of elements, for each run along
/// the innermost dimension that has any of the elements `start .. start + len` in the walk's order.
pub(crate) fn runs<const N: usize>(
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
