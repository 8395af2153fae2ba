//! One call over all cores.

use rayon::iter::{IntoParallelIterator, ParallelIterator};

/// Elements of a task: large enough that handing it out costs nothing, small enough to spread a medium tensor.
pub(super) const TASK: usize = 1 << 15;

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

/// A pointer that several threads use, each its own part.
pub(super) struct Shared(pub(super) *mut u8);

// SAFETY: what is behind the pointer is shared by contract of those who make one.
unsafe impl Sync for Shared {}

impl Shared {
    pub(super) fn is_null(&self) -> bool {
        self.0.is_null()
    }

    /// # Safety
    /// `bytes` stays inside the allocation.
    pub(super) unsafe fn at(&self, bytes: usize) -> *mut u8 {
        // SAFETY: the caller's contract.
        unsafe { self.0.add(bytes) }
    }
}
