//! One call over all cores: the pool that runs it, or the program's own threads.

use std::ptr::null_mut;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

use rayon::ThreadPool;
use rayon::iter::{IntoParallelIterator, ParallelIterator};

use crate::error::{ErrorKind, Result};

/// Elements of a task: large enough that handing it out costs nothing, small enough to spread a medium tensor.
pub(super) const TASK: usize = 1 << 15;

/// The program's threads, on which CPU calls run once [`set_executor`] was called.
///
/// ```
/// use pointwise::parallel::{Executor, set_executor};
/// use pointwise::{Device, Tensor, ops};
///
/// /// Two threads for each call.
/// struct Pair;
///
/// impl Executor for Pair {
///     fn run(&self, _tasks: usize, work: &(dyn Fn() + Sync)) {
///         std::thread::scope(|scope| {
///             scope.spawn(work);
///             work();
///         });
///     }
/// }
///
/// set_executor(&Pair)?;
/// let y = ops::neg(&Tensor::full(&Device::cpu(), 1.0_f32, [1 << 20])?)?;
/// assert_eq!(y.as_slice::<f32>()?[1 << 19], -1.0);
/// # Ok::<(), pointwise::Error>(())
/// ```
pub trait Executor: Sync {
    /// Calls `work` on as many threads as it likes and returns. A call of `work` does one task after another until none
    /// is left: more calls than `tasks`, which is at least 2, have nothing to do. What is left when this returns, the
    /// calling thread does.
    fn run(&self, tasks: usize, work: &(dyn Fn() + Sync));
}

static EXECUTOR: OnceLock<&'static dyn Executor> = OnceLock::new();

/// Lets CPU calls run on the program's own threads from now on, for as long as the process lives.
///
/// Without it they run on a pool of one thread for each processor, or of `RAYON_NUM_THREADS` threads, which the first
/// large call makes. A process that was made by `fork` makes its own. A call from a thread of a rayon pool runs on that
/// pool.
///
/// # Errors
/// [`ErrorKind::Unsupported`] if it was called before.
pub fn set_executor(executor: &'static dyn Executor) -> Result<()> {
    EXECUTOR.set(executor).map_err(|_| {
        let advice = "a process has one for good: let that one decide whose threads it uses".to_owned();
        ErrorKind::Unsupported { what: "a second executor".to_owned(), advice }.into()
    })
}

/// Calls `run(start, len)` for runs that cover `0..n`, in parallel where there is more than one.
pub(crate) fn split(n: usize, run: impl Fn(usize, usize) + Sync) {
    tasks(n.div_ceil(TASK), |task| {
        let start = task * TASK;
        run(start, TASK.min(n - start));
    });
}

/// Calls `run` with each of `0..count`, in parallel.
pub(super) fn tasks(count: usize, run: impl Fn(usize) + Sync) {
    if count <= 1 {
        return (0..count).for_each(run);
    }
    if let Some(executor) = EXECUTOR.get() {
        let next = AtomicUsize::new(0);
        // Whatever the executor does, each task is done once.
        let work =
            || (0..).map_while(|_| Some(next.fetch_add(1, Ordering::Relaxed)).filter(|&i| i < count)).for_each(&run);
        executor.run(count, &work);
        return work();
    }
    let parallel = || (0..count).into_par_iter().for_each(&run);
    match pool() {
        _ if rayon::current_thread_index().is_some() => parallel(),
        Some(pool) => pool.install(parallel),
        None => (0..count).for_each(run),
    }
}

/// This process's pool; none if the system gives it no threads.
fn pool() -> Option<&'static ThreadPool> {
    struct Pool {
        process: u32,
        threads: ThreadPool,
    }
    static POOL: AtomicPtr<Pool> = AtomicPtr::new(null_mut());
    let process = std::process::id();
    // The threads of a process are not in those that it forks: a pool of before would never answer. No lock, which
    // could have been held at the fork.
    let mut found = POOL.load(Ordering::Acquire);
    loop {
        // SAFETY: null, or a pool that was leaked below.
        if let Some(pool) = unsafe { found.as_ref() }
            && pool.process == process
        {
            return Some(&pool.threads);
        }
        let threads = rayon::ThreadPoolBuilder::new().build().ok()?;
        let made = Box::into_raw(Box::new(Pool { process, threads }));
        match POOL.compare_exchange(found, made, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => found = made,
            Err(other) => {
                // SAFETY: it was made above, and nobody else has seen it.
                drop(unsafe { Box::from_raw(made) });
                found = other;
            }
        }
    }
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
