//! Calls that allocate their results and drop the results of the call before. They use the same memory over and over,
//! in several threads, on the device's own stream and on others.

use std::thread;

use pointwise::{Device, Result, Stream, Tensor, kernel::BinaryKernel, kernels};

const THREADS: i32 = 4;
/// Elements: of blocks that are kept for others when they are dropped, and of one that is not.
const SIZES: [usize; 4] = [3, 300, 70_001, (1 << 20) + 5];
const ROUNDS: i32 = 100;
/// Rounds from one checked result to the next.
const LOOK: i32 = 10;

/// Checks that each thread's results come from its own calls.
///
/// # Errors
/// The fault, or the errors of the library, in words.
pub fn check(device: &Device) -> std::result::Result<(), String> {
    let of = |number: i32| {
        let found = SIZES.iter().map(|&n| Ok((n, sums(device, number, n)?))).collect::<Result<Vec<_>>>();
        found.map_err(|error| error.to_string())
    };
    let threads = thread::scope(|scope| {
        let started: Vec<_> = (0..THREADS).map(|number| scope.spawn(move || of(number))).collect();
        started.into_iter().map(|thread| thread.join()).collect::<Vec<_>>()
    });
    for (number, found) in threads.into_iter().enumerate() {
        for (n, sums) in found.map_err(|_| format!("thread {number} panicked"))?? {
            for (round, sum) in (LOOK..).step_by(LOOK as usize).zip(sums) {
                let expected = value(number as i32).wrapping_mul(round + 1);
                if let Some(i) = sum.iter().position(|&x| x != expected) {
                    return Err(format!(
                        "thread {number}, {n} elements, round {round}: {} at {i}, not {expected}",
                        sum[i]
                    ));
                }
            }
        }
    }
    Ok(())
}

/// The number that a thread adds up: no other thread's multiples equal its own.
fn value(number: i32) -> i32 {
    1_000_003 + number
}

/// A thread's sums after each [`LOOK`] rounds. Half of the threads have a stream of their own, if there are streams.
fn sums(device: &Device, number: i32, n: usize) -> Result<Vec<Vec<i32>>> {
    let stream = if number % 2 == 1 && !device.is_cpu() { Some(Stream::new(device)?) } else { None };
    let on = |kernel: BinaryKernel| match &stream {
        Some(stream) => kernel.on(stream),
        None => kernel,
    };
    let x = Tensor::full(device, value(number), [n])?;
    let (mut sum, mut seen) = (x.to_device(device)?, Vec::new());
    for round in 1..=ROUNDS {
        // Two results a round, which take each other's places.
        let twice = on(kernels::add(2)).run(&sum, &x)?;
        sum = on(kernels::sub(1)).run(&twice, &x)?;
        if round % LOOK == 0 {
            seen.push(sum.to_vec::<i32>()?);
        }
    }
    Ok(seen)
}
