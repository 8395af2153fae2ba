//! Graphs own the memory that they use. On an emulated device, which checks every access, with copies and fills, which
//! need no kernels.
#![cfg(feature = "emulator")]

use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

use pointwise::{DType, Device, Error, ErrorKind, Result, Stream, Tensor};

const N: usize = 1000;

/// Held by each test: while one captures the device's own stream, calls of the others would be refused.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

#[test]
fn tensors_of_a_graph_are_written_and_read_beside_it() {
    let _alone = alone();
    let device = Device::emulated().unwrap();
    let own = device.stream();
    let mut x = Tensor::full(&device, 1.0_f32, [N]).unwrap();
    let mut y = Tensor::zeros(&device, DType::F32, [N]).unwrap();
    let mut graph = own.capture(|_| y.copy_from(&x)).unwrap();
    assert_eq!(y.to_vec::<f32>().unwrap(), [0.0; N], "nothing has run");
    for value in [2.0_f32, 3.0] {
        // The graph's share of the memory is no clone's.
        x.copy_from_slice(&[value; N]).unwrap();
        graph.launch(&own).unwrap();
        assert_eq!(y.to_vec::<f32>().unwrap(), [value; N]);
    }
    // On another stream, and into a clone.
    let stream = Stream::new(&device).unwrap();
    let clone = y.clone();
    x.copy_from_slice(&[4.0_f32; N]).unwrap();
    drop(y);
    graph.launch(&stream).unwrap();
    assert_eq!(clone.to_vec::<f32>().unwrap(), [4.0; N]);
}

#[test]
fn a_graph_outlives_its_tensors() {
    let _alone = alone();
    let device = Device::emulated().unwrap();
    let (own, stream) = (device.stream(), Stream::new(&device).unwrap());
    let mut x = Tensor::full(&device, 1.0_f32, [N]).unwrap();
    let y = Tensor::full(&device, 2.0_f32, [N]).unwrap();
    // The device's own stream joins the capture of another one, and leaves it.
    let mut graph = stream
        .capture(|stream| {
            own.wait_for(stream)?;
            x.copy_from(&y)?;
            stream.wait_for(&own)
        })
        .unwrap();
    assert!(!own.is_capturing().unwrap());
    drop((x, y));
    // If the graph's memory were free, these tensors would get it.
    let others = [5.0_f32, 6.0].map(|value| Tensor::full(&device, value, [N]).unwrap());
    graph.launch(&stream).unwrap();
    stream.synchronize().unwrap();
    let middle = |other: Tensor| other.narrow(0, N / 2, 1)?.item::<f32>();
    assert_eq!(others.map(|other| middle(other).unwrap()), [5.0, 6.0]);
    drop(graph);
    let mut z = Tensor::full(&device, 7.0_f32, [N]).unwrap();
    z.set_zero().unwrap();
    assert_eq!(z.to_vec::<f32>().unwrap(), [0.0; N], "the own stream is not captured any more");
}

#[test]
fn a_capture_ends_whatever_happens_within() {
    let _alone = alone();
    let device = Device::emulated().unwrap();
    let stream = Stream::new(&device).unwrap();
    let failed: Result<_> = stream.capture(|_| Err(ErrorKind::RankTooHigh { rank: 9 }.into()));
    assert_eq!(failed.map(drop).unwrap_err(), Error::from(ErrorKind::RankTooHigh { rank: 9 }));
    assert!(!stream.is_capturing().unwrap());
    let panicked = std::panic::catch_unwind(AssertUnwindSafe(|| stream.capture(|_| panic!("within")).map(drop)));
    assert!(panicked.is_err() && !stream.is_capturing().unwrap());
    assert!(stream.capture(|stream| stream.capture(|_| Ok(())).map(drop)).is_err(), "one within another");
    assert!(!stream.is_capturing().unwrap());
}

/// Work that another thread queues on a captured stream is refused: it is neither recorded nor lost.
#[test]
fn work_of_other_threads_is_not_recorded() {
    let _alone = alone();
    let device = Device::emulated().unwrap();
    let (own, apart) = (device.stream(), Stream::new(&device).unwrap());
    let x = Tensor::full(&device, 1.0_f32, [N]).unwrap();
    let mut y = Tensor::zeros(&device, DType::F32, [N]).unwrap();
    let mut z = Tensor::full(&device, 5.0_f32, [N]).unwrap();
    let mut other = apart.capture(|_| Ok(())).unwrap();
    let mut graph = own
        .capture(|_| {
            thread::scope(|scope| {
                scope.spawn(|| {
                    for result in [
                        z.set_zero(),
                        z.copy_from(&x),
                        other.launch(&own),
                        own.wait_for(&apart),
                        apart.wait_for(&own),
                        own.capture(|_| Ok(())).map(drop),
                        Tensor::zeros(&device, DType::F32, [N]).map(drop),
                    ] {
                        let error = result.unwrap_err();
                        assert_eq!(*error.kind(), ErrorKind::StreamCaptured { device });
                        assert!(error.to_string().contains("call again after the capture"), "{error}");
                    }
                    // A call that waits only for work from before the capture goes on.
                    assert_eq!(z.to_vec::<f32>().unwrap(), [5.0; N]);
                    own.synchronize().unwrap();
                });
            });
            y.copy_from(&x)
        })
        .unwrap();
    graph.launch(&own).unwrap();
    assert_eq!((y.to_vec::<f32>().unwrap(), z.to_vec::<f32>().unwrap()), (vec![1.0; N], vec![5.0; N]));
    z.set_zero().unwrap();
    assert_eq!(z.to_vec::<f32>().unwrap(), [0.0; N]);
}

/// A call that returns `Ok` has run, and a graph has the memory of all that it does, whenever a capture begins.
#[test]
fn captures_begin_beside_the_calls_of_another_thread() {
    let _alone = alone();
    let device = Device::emulated().unwrap();
    let own = device.stream();
    let x = Tensor::full(&device, 1.0_f32, [N]).unwrap();
    let mut y = Tensor::zeros(&device, DType::F32, [N]).unwrap();
    let is_done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !is_done.load(Ordering::Relaxed) {
                let copied = Tensor::full(&device, 2.0_f32, [N]).and_then(|from| {
                    let mut to = Tensor::zeros(&device, DType::F32, [N])?;
                    to.copy_from(&from)?;
                    to.to_vec::<f32>()
                });
                assert!(copied.is_err() || copied.unwrap() == [2.0; N]);
            }
        });
        let launched = (0..2000).try_for_each(|_| own.capture(|_| y.copy_from(&x))?.launch(&own));
        is_done.store(true, Ordering::Relaxed);
        launched.unwrap();
    });
    assert_eq!(y.to_vec::<f32>().unwrap(), [1.0; N]);
}

/// The driver may spoil a capture on whose thread memory is allocated: that is refused before, for every stream and device.
#[test]
fn a_thread_that_captures_allocates_nothing() {
    let _alone = alone();
    let device = Device::emulated().unwrap();
    let stream = Stream::new(&device).unwrap();
    let mut results = Vec::new();
    let graph = stream.capture(|_| {
        for device in [device, Device::emulated_as(80)?] {
            results.push(Tensor::zeros(&device, DType::F32, [N]).map(drop));
            results.push(Tensor::from_slice(&device, &[1.0_f32], [1]).map(drop));
        }
        // Other threads may.
        thread::scope(|scope| scope.spawn(|| Tensor::zeros(&device, DType::F32, [N]).map(drop)).join().unwrap())
    });
    assert!(graph.is_ok());
    for result in results {
        let error = result.unwrap_err().to_string();
        assert!(error.contains("before the capture"), "{error}");
    }
}
