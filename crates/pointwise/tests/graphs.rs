//! Graphs own the memory that they use. On an emulated device, which checks every access, with copies and fills, which
//! need no kernels.
#![cfg(feature = "emulator")]

use std::panic::AssertUnwindSafe;

use pointwise::{DType, Device, Error, ErrorKind, Result, Stream, Tensor};

const N: usize = 1000;

#[test]
fn tensors_of_a_graph_are_written_and_read_beside_it() {
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
