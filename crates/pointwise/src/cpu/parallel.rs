//! One call over all cores: the pool that runs it, or the program's own threads.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};

use rayon::ThreadPool;

use crate::error::{ErrorKind, Result};

/// Elements of a task: large enough that handing it out costs nothing, small enough to spread a medium tensor.
pub(crate) const TASK: usize = 1 << 15;

/// The program's threads. CPU calls run on them once [`set_executor`] was called.
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
    /// calling thread does. `work` does not panic: where a formula does, the calling thread goes on with that panic.
    fn run(&self, tasks: usize, work: &(dyn Fn() + Sync));
}

static EXECUTOR: OnceLock<&'static dyn Executor> = OnceLock::new();

/// Lets CPU calls run on the program's own threads from now on, for as long as the process lives.
///
/// Without it they run on one thread for each processor, or on `RAYON_NUM_THREADS` threads: the calling thread, and a pool
/// that the first large call makes. A process that was made by `fork` makes its own. A call from a thread of a
/// rayon pool runs on that pool.
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

/// Calls `run` with each of `0..count`, in parallel. Goes on with a panic of one of them.
pub(crate) fn tasks(count: usize, run: impl Fn(usize) + Sync) {
    if count <= 1 {
        return (0..count).for_each(run);
    }
    let (next, panic) = (AtomicUsize::new(0), Mutex::new(None));
    // Whatever the executor does, each task is done once. It is shown no panic: it could keep it, and the call would return
    // with results that nobody wrote.
    let work = || {
        while let Some(task) = Some(next.fetch_add(1, Ordering::Relaxed)).filter(|&task| task < count) {
            if let Err(cause) = catch_unwind(AssertUnwindSafe(|| run(task))) {
                next.store(count, Ordering::Relaxed);
                panic.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(cause);
            }
        }
    };
    match EXECUTOR.get() {
        Some(executor) => executor.run(count, &work),
        None => share(count, &work),
    }
    work();
    if let Some(cause) = panic.into_inner().unwrap_or_else(PoisonError::into_inner) {
        resume_unwind(cause);
    }
}

/// Does `work` on the calling thread and on threads of a pool, as many as the pool has together. The calling thread begins
/// at once and waits for none that has not begun: to wake a thread may take longer than the call.
fn share(count: usize, work: &(dyn Fn() + Sync)) {
    type Work = Option<&'static (dyn Fn() + Sync)>;
    /// Takes the work back, also where the calling thread panics: waits for those who do it.
    struct Lent<'a>(&'a RwLock<Work>);
    impl Drop for Lent<'_> {
        fn drop(&mut self) {
            *self.0.write().unwrap_or_else(PoisonError::into_inner) = None;
        }
    }
    // SAFETY: who calls it holds the lock meanwhile, and it is gone from there before this function returns.
    let work = unsafe { std::mem::transmute::<&(dyn Fn() + Sync), &'static (dyn Fn() + Sync)>(work) };
    let shared = Arc::new(RwLock::new(Some(work)));
    let lent = Lent(&shared);
    let help = || {
        let shared = Arc::clone(&shared);
        move || {
            if let Some(work) = *shared.read().unwrap_or_else(PoisonError::into_inner) {
                work();
            }
        }
    };
    if rayon::current_thread_index().is_some() {
        (1..rayon::current_num_threads().min(count)).for_each(|_| rayon::spawn(help()));
    } else if let Some(pool) = pool() {
        (1..pool.current_num_threads().min(count)).for_each(|_| pool.spawn(help()));
    }
    work();
    drop(lent);
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
pub(crate) struct Shared(pub(crate) *mut u8);

// SAFETY: what is behind the pointer is shared by contract of those who make one.
unsafe impl Sync for Shared {}

impl Shared {
    /// # Safety
    /// `bytes` stays inside the allocation.
    pub(crate) unsafe fn at(&self, bytes: usize) -> *mut u8 {
        // SAFETY: the caller's contract.
        unsafe { self.0.add(bytes) }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;
    use std::thread;
    use std::time::{Duration, Instant};

    use super::*;

    /// As often as each of the tasks was done.
    fn done(count: usize, run: impl Fn(usize) + Sync) -> Vec<usize> {
        let done: Vec<AtomicUsize> = (0..count).map(|_| AtomicUsize::new(0)).collect();
        tasks(count, |task| {
            done[task].fetch_add(1, Ordering::Relaxed);
            run(task);
        });
        done.into_iter().map(AtomicUsize::into_inner).collect()
    }

    #[test]
    fn each_task_is_done_once_and_a_panic_goes_on() {
        let caller = thread::current().id();
        let all = || {
            for count in [0, 1, 2, 7, 1000] {
                assert_eq!(done(count, |_| ()), vec![1; count]);
            }
            for at in [0, 3, 6] {
                let cause = catch_unwind(|| tasks(7, |task| assert!(task != at, "task {task}"))).unwrap_err();
                assert_eq!(cause.downcast_ref::<String>(), Some(&format!("task {at}")));
            }
        };
        all();
        let has_begun = AtomicBool::new(false);
        let wait = |_| {
            let start = Instant::now();
            if thread::current().id() == caller {
                has_begun.store(true, Ordering::Relaxed);
            }
            while !has_begun.load(Ordering::Relaxed) {
                assert!(start.elapsed() < Duration::from_secs(60), "the calling thread takes no part");
                thread::yield_now();
            }
        };
        assert_eq!(done(1000, wait), [1; 1000]);
        for threads in [1, 3] {
            rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(all);
        }
    }
}
