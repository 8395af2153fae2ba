//! CPU calls on torch's threads, as many as `torch.set_num_threads` says.

use std::ffi::c_void;
use std::sync::OnceLock;

use pointwise::parallel::{Executor, set_executor};

use crate::abi::Api;

/// `torch_parallel_for`: calls a function with parts of a range, on torch's threads and the calling one.
type ParallelFor = unsafe extern "C-unwind" fn(i64, i64, i64, Part, *mut c_void) -> i32;
type Part = unsafe extern "C-unwind" fn(i64, i64, *mut c_void);

struct Torch {
    parallel_for: ParallelFor,
    process: u32,
}

impl Executor for Torch {
    fn run(&self, tasks: usize, mut work: &(dyn Fn() + Sync)) {
        // A process that was forked has none of the threads, and OpenMP would wait for them: the calling thread does all.
        if std::process::id() != self.process {
            return;
        }
        let context = (&raw mut work).cast();
        // SAFETY: torch calls `part` with this context until the function returns. Its failure leaves tasks undone, which
        // the calling thread does.
        unsafe { (self.parallel_for)(0, tasks as i64, 1, part, context) };
    }
}

/// # Safety
/// `context` comes from [`Torch::run`], and its `work` does not panic.
unsafe extern "C-unwind" fn part(_: i64, _: i64, context: *mut c_void) {
    // SAFETY: the caller's promise.
    let work = unsafe { &*context.cast::<&(dyn Fn() + Sync)>() };
    work();
}

/// Lets CPU calls run on torch's threads from now on. A program that has an executor of its own keeps it.
pub(crate) fn use_torchs(api: &Api) -> Result<(), String> {
    static TORCH: OnceLock<Torch> = OnceLock::new();
    let address = api.address("torch_parallel_for").ok_or("torch has no torch_parallel_for: torch 2.10 is needed")?;
    // SAFETY: the address is of a function of this type, as torch's shim.h has it.
    let parallel_for = unsafe { std::mem::transmute::<usize, ParallelFor>(address) };
    let torch = TORCH.get_or_init(|| Torch { parallel_for, process: std::process::id() });
    // Each list of kernels comes here: only the first call can succeed.
    let _ = set_executor(torch);
    Ok(())
}
