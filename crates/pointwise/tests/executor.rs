//! CPU calls run on the program's threads, whatever these do. A program of its own: a process has one executor.

use std::panic::{self, AssertUnwindSafe};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, ThreadId};

use pointwise::parallel::{Executor, set_executor};
use pointwise::prelude::*;

/// Not for the GPU: panics below 0.
fn checked<T: Real>(x: T) -> T {
    assert!(x >= T::ZERO, "an element below 0");
    x
}

#[op(f32, exact, grad = none)]
fn at_least_zero<T: Real>(x: T) -> T {
    checked(x)
}

/// Calls `work` in one of several ways, and keeps who did.
#[derive(Default)]
struct Own {
    way: AtomicUsize,
    runs: AtomicUsize,
    tasks: AtomicUsize,
    threads: Mutex<Vec<ThreadId>>,
}

impl Executor for Own {
    fn run(&self, tasks: usize, work: &(dyn Fn() + Sync)) {
        self.runs.fetch_add(1, Ordering::Relaxed);
        self.tasks.store(tasks, Ordering::Relaxed);
        let noted = || {
            self.threads.lock().unwrap().push(thread::current().id());
            work();
        };
        match self.way.load(Ordering::Relaxed) {
            0 => {}
            1 => noted(),
            // Threads that outlive a panic of their work.
            3 => thread::scope(|scope| {
                for _ in 0..2 {
                    scope.spawn(|| panic::catch_unwind(AssertUnwindSafe(noted)));
                }
            }),
            // More calls than tasks, several on one thread.
            _ => thread::scope(|scope| {
                for _ in 0..3 {
                    scope.spawn(|| (0..50).for_each(|_| noted()));
                }
            }),
        }
    }
}

#[test]
fn every_task_is_done_once_on_the_threads_given() {
    static OWN: std::sync::LazyLock<Own> = std::sync::LazyLock::new(Own::default);
    let own: &'static Own = &OWN;
    set_executor(own).unwrap();
    let second = set_executor(own).unwrap_err();
    assert!(matches!(second.kind(), ErrorKind::Unsupported { .. }), "{second}");

    let device = Device::cpu();
    let n = 100_000; // four tasks of 2^15
    let data: Vec<i32> = (0..n).collect();
    for way in 0..3 {
        own.way.store(way, Ordering::Relaxed);
        own.threads.lock().unwrap().clear();
        let mut x = Tensor::from_slice(&device, &data, [n as usize]).unwrap();
        let runs = own.runs.load(Ordering::Relaxed);
        // In place, a task that ran twice would show.
        ops::add_inplace(&mut x, 1).unwrap();
        assert!(x.as_slice::<i32>().unwrap().iter().enumerate().all(|(i, &y)| y == i as i32 + 1), "way {way}");
        assert_eq!(own.runs.load(Ordering::Relaxed), runs + 1);
        assert_eq!(own.tasks.load(Ordering::Relaxed), 4);
        let mut threads = own.threads.lock().unwrap().clone();
        threads.sort_by_key(|id| format!("{id:?}"));
        threads.dedup();
        assert_eq!(threads.len(), [0, 1, 3][way]);
        let alibi = ops::alibi(&device, DType::F32, 4, 256).unwrap();
        assert!(alibi.as_slice::<f32>().unwrap().iter().all(|y| y.is_finite()));
    }
    // A small call is the calling thread's.
    let runs = own.runs.load(Ordering::Relaxed);
    ops::neg(&Tensor::full(&device, 1.0_f32, [64]).unwrap()).unwrap();
    assert_eq!(own.runs.load(Ordering::Relaxed), runs);
    // A panic is the caller's, whichever task it was in, and the executor serves the next call.
    own.way.store(3, Ordering::Relaxed);
    for at in [0, 40_000, 99_999] {
        let mut values = vec![1.0_f32; n as usize];
        values[at] = -1.0;
        let x = Tensor::from_slice(&device, &values, [n as usize]).unwrap();
        let cause = panic::catch_unwind(AssertUnwindSafe(|| at_least_zero(&x))).expect_err("no result was written");
        assert_eq!(cause.downcast_ref::<&str>(), Some(&"an element below 0"), "{at}");
        let y = at_least_zero(&ops::abs(&x).unwrap()).unwrap();
        assert!(y.as_slice::<f32>().unwrap().iter().all(|&y| y == 1.0), "{at}");
    }
}
