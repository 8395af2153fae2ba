//! One call over all cores.

use rayon::iter::{IntoParallelIterator, ParallelIterator};

/// Elements of a task: large enough that handing it out costs nothing, small enough to spread a medium tensor.
const TASK: usize = 1 << 15;

/// Calls `run(start, len)` for runs that cover `0..n`, in parallel where there is more than one.
pub(crate) fn split(n: usize, run: impl Fn(usize, usize) + Sync) {
    if n <= TASK {
        if n > 0 {
            run(0, n);
        }
        return;
    }
    (0..n.div_ceil(TASK)).into_par_iter().for_each(|task| {
        let start = task * TASK;
        run(start, TASK.min(n - start));
    });
}
