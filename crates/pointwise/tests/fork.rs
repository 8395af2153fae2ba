//! A process that was forked after large calls computes, too. A program of its own: `fork` takes the calling thread alone.
#![cfg(unix)]

use std::time::{Duration, Instant};

use pointwise::{DType, Device, Philox, Tensor, ops};

/// Elements of many tasks.
const LARGE: usize = 1 << 20;

/// One call of each loop that is spread over threads: op, fused pair, random op, generator.
fn computes() -> bool {
    let x = Tensor::full(&Device::cpu(), -2.0_f32, [LARGE]).unwrap();
    let added = ops::add(&x, &x).unwrap();
    let (kept, mask) = ops::dropout_with_mask(&x, 0.5, Philox::new(1)).unwrap();
    let alibi = ops::alibi(&Device::cpu(), DType::F32, 8, 1024).unwrap();
    let kept_as_said = kept.as_slice::<f32>().unwrap().iter().zip(mask.as_slice::<bool>().unwrap());
    added.as_slice::<f32>().unwrap().iter().all(|&y| y == -4.0)
        && kept_as_said.into_iter().all(|(&y, &mask)| y == if mask { -4.0 } else { 0.0 })
        && alibi.as_slice::<f32>().unwrap().len() == 8 << 20
}

/// Calls `inside` in a forked process, and says what it returned; `None` if it has not answered in a minute.
fn forked(inside: impl Fn() -> bool) -> Option<bool> {
    // SAFETY: the child calls nothing that the fork could have left locked but the allocator, which glibc prepares for
    // it, and leaves by `_exit`, so that no part of the test harness runs twice.
    let child = unsafe { libc::fork() };
    assert!(child >= 0, "fork failed");
    if child == 0 {
        let code = i32::from(!inside());
        // SAFETY: no precondition.
        unsafe { libc::_exit(code) };
    }
    let start = Instant::now();
    loop {
        let mut status = 0;
        // SAFETY: the pointer is to a live integer.
        let ended = unsafe { libc::waitpid(child, &mut status, libc::WNOHANG) };
        if ended == child {
            return Some(libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0);
        }
        if start.elapsed() > Duration::from_secs(60) {
            // SAFETY: the child is ours, and not waited for yet.
            unsafe { libc::kill(child, libc::SIGKILL) };
            // SAFETY: as above.
            unsafe { libc::waitpid(child, &mut status, 0) };
            return None;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_child_and_its_child_compute() {
    assert!(computes());
    assert_eq!(forked(|| computes() && computes() && forked(computes) == Some(true)), Some(true));
    assert!(computes(), "the parent goes on");
}
