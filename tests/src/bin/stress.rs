//! Threads that use one or two devices at once, in the ways that could hurt each other: tensors dropped while streams
//! work on them, blocks that the next tensor takes, conversions, streams dropped while they work, captures beside copies
//! to the host, graphs that are launched, copies from device to device. Two threads more share one stream, which one of
//! them captures again and again. Every result is checked.
//!
//! `stress [--seconds N] [--threads N] [--seed N]`, on the GPUs, at most two of them; on the emulator where there is
//! none. The exit code is 1 if a result is wrong or a call fails.

use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use pointwise::{DType, Device, ErrorKind, Result, Stream, Tensor, kernels, ops};
use pointwise_testkit::Random;

/// The things of a thread: devices, and two streams of the first device, which it works on.
struct Place<'a> {
    devices: &'a [Device],
    streams: [Stream; 2],
    random: Random,
}

type Scenario = fn(&mut Place<'_>, usize, f32) -> Result<bool>;

const SCENARIOS: [(&str, Scenario); 8] = [
    ("operand_dropped_while_read", operand_dropped_while_read),
    ("blocks_taken_again", blocks_taken_again),
    ("converted_operands", converted_operands),
    ("results_dropped_unread", results_dropped_unread),
    ("stream_dropped_while_it_works", stream_dropped_while_it_works),
    ("drops_within_a_capture", drops_within_a_capture),
    ("graph_launched_and_read", graph_launched_and_read),
    ("copied_across", copied_across),
];

/// Elements: of blocks that are kept for others when they are dropped, and of some that are not.
const SIZES: [usize; 8] = [1, 1000, 4096, 100_000, 262_144, 524_288, 700_000, 1 << 22];

fn main() -> ExitCode {
    match run() {
        Ok(0) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

fn run() -> std::result::Result<u64, Box<dyn std::error::Error>> {
    let (mut seconds, mut threads, mut seed) = (20, 8, 1);
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let value = arguments.next().ok_or_else(|| format!("{argument} needs a value"))?;
        match argument.as_str() {
            "--seconds" => seconds = value.parse()?,
            "--threads" => threads = value.parse()?,
            "--seed" => seed = value.parse()?,
            _ => return Err(format!("no such argument: {argument}").into()),
        }
    }
    let mut devices = Vec::new();
    for ordinal in 0..Device::cuda_count().min(2) {
        devices.push(Device::cuda(ordinal)?);
    }
    if devices.is_empty() {
        devices = vec![Device::emulated()?, Device::emulated_as(80)?];
    }
    println!("{devices:?}, {threads} threads, {seconds} s, seed {seed}");
    let faults = AtomicU64::new(0);
    let rounds = [const { AtomicU64::new(0) }; SCENARIOS.len()];
    let end = Instant::now() + Duration::from_secs(seconds);
    let (captured, called) = ([const { AtomicU64::new(0) }; 2], [const { AtomicU64::new(0) }; 2]);
    std::thread::scope(|scope| {
        let tell = |what: String| {
            if faults.fetch_add(1, Ordering::Relaxed) < 20 {
                println!("the shared stream: {what}");
            }
        };
        let (device, captured, called) = (devices[0], &captured, &called);
        scope.spawn(move || {
            while Instant::now() < end {
                let shared = Stream::new(&device).and_then(|stream| share_a_stream(&device, &stream, captured, called));
                match shared {
                    Ok(true) => {}
                    Ok(false) => tell("a wrong result".to_owned()),
                    Err(error) => tell(error.to_string()),
                }
            }
        });
        for thread in 0..threads {
            let (devices, faults, rounds) = (&devices, &faults, &rounds);
            scope.spawn(move || {
                let tell = |what: String| {
                    if faults.fetch_add(1, Ordering::Relaxed) < 20 {
                        println!("thread {thread}: {what}");
                    }
                };
                // Half of the threads on each device, if there are two.
                let mut devices = devices.clone();
                let by = thread as usize % devices.len();
                devices.rotate_left(by);
                let mut random = Random::new(seed * 1000 + thread);
                while Instant::now() < end {
                    let which = random.next_u64() as usize % SCENARIOS.len();
                    let (name, scenario) = SCENARIOS[which];
                    let result = streams(&devices[0]).and_then(|streams| {
                        let mut place = Place { devices: &devices, streams, random: random.clone() };
                        let n = SIZES[place.random.next_u64() as usize % SIZES.len()];
                        let value = (place.random.next_u64() % 1000) as f32 + 1.0;
                        let right = scenario(&mut place, n, value)?;
                        if !right {
                            tell(format!("{name}, {n} elements: a wrong result"));
                        }
                        Ok(())
                    });
                    if let Err(error) = result {
                        tell(format!("{name}: {error}"));
                    }
                    rounds[which].fetch_add(1, Ordering::Relaxed);
                    random.next_u64();
                }
            });
        }
    });
    for ((name, _), count) in SCENARIOS.iter().zip(&rounds) {
        println!("{name}: {} rounds", count.load(Ordering::Relaxed));
    }
    let count = |counts: &[AtomicU64; 2]| counts.each_ref().map(|count| count.load(Ordering::Relaxed));
    println!("the shared stream: {:?} graphs launched and refused, {:?} calls", count(&captured), count(&called));
    for device in &devices {
        println!("{device}: bytes free and in all: {:?}", device.memory()?);
    }
    let faults = faults.load(Ordering::Relaxed);
    println!("{faults} faults");
    Ok(faults)
}

fn streams(device: &Device) -> Result<[Stream; 2]> {
    Ok([Stream::new(device)?, Stream::new(device)?])
}

fn all_are(y: &Tensor, value: f32) -> Result<bool> {
    Ok(y.to_vec::<f32>()?.iter().all(|&element| element == value))
}

/// An operand dropped while another stream works on it; what is allocated next must not be its memory.
fn operand_dropped_while_read(place: &mut Place<'_>, n: usize, value: f32) -> Result<bool> {
    let (device, stream) = (&place.devices[0], &place.streams[0]);
    let x = Tensor::full(device, value, [n])?;
    let mut y = Tensor::empty(device, DType::F32, [n])?;
    for _ in 0..place.random.next_u64() % 20 {
        kernels::sin().on(stream).run_into(&x, &mut y)?;
    }
    kernels::neg().on(stream).run_into(&x, &mut y)?;
    drop(x);
    let other = Tensor::full(device, -1.0_f32, [n])?;
    Ok(all_are(&y, -value)? && all_are(&other, -1.0)?)
}

/// Blocks that are dropped and taken again, on the device's own stream.
fn blocks_taken_again(place: &mut Place<'_>, n: usize, value: f32) -> Result<bool> {
    let device = &place.devices[0];
    let y = ops::neg(&Tensor::full(device, value, [n])?)?;
    let z = Tensor::full(device, 7.0_f32, [n])?;
    let sum = ops::add(&y, &z)?;
    drop((y, z));
    let zeros = Tensor::zeros(device, DType::F32, [n])?;
    Ok(all_are(&sum, 7.0 - value)? && all_are(&zeros, 0.0)?)
}

/// Operands that are converted to tensors of the call.
fn converted_operands(place: &mut Place<'_>, n: usize, value: f32) -> Result<bool> {
    let (device, stream) = (&place.devices[0], &place.streams[0]);
    let x = Tensor::full(device, value as i32, [n])?;
    let y = Tensor::full(device, 0.5_f32, [n])?;
    let sum = kernels::add(1).on(stream).run(&x, &y)?;
    drop((x, y));
    let _other = Tensor::full(device, 3_i32, [n])?;
    all_are(&sum, value + 0.5)
}

/// Results that are dropped unread, whose blocks the next tensors take.
fn results_dropped_unread(place: &mut Place<'_>, n: usize, value: f32) -> Result<bool> {
    let (device, [first, second]) = (&place.devices[0], &place.streams);
    let x = Tensor::full(device, value, [n])?;
    for stream in [first, second, first] {
        drop(kernels::exp().on(stream).run(&x)?);
    }
    all_are(&ops::mul(&Tensor::full(device, value, [n])?, 2)?, 2.0 * value)
}

/// A stream and its operand dropped while it works.
fn stream_dropped_while_it_works(place: &mut Place<'_>, n: usize, value: f32) -> Result<bool> {
    let device = &place.devices[0];
    let stream = Stream::new(device)?;
    let x = Tensor::full(device, value, [n])?;
    let mut y = Tensor::empty(device, DType::F32, [n])?;
    kernels::relu().on(&stream).run_into(&x, &mut y)?;
    drop((stream, x));
    let _other = Tensor::full(device, -1.0_f32, [n])?;
    all_are(&y, value)
}

/// Tensors dropped within a capture whose graph is not launched.
fn drops_within_a_capture(place: &mut Place<'_>, n: usize, value: f32) -> Result<bool> {
    let (device, stream) = (&place.devices[0], &place.streams[0]);
    let x = Tensor::full(device, value, [n])?;
    let mut y = Tensor::empty(device, DType::F32, [n])?;
    kernels::relu().on(stream).run_into(&x, &mut y)?;
    let mut within = Vec::new();
    let graph = stream.capture(|stream| {
        kernels::neg().on(stream).run_into(&x, &mut y)?;
        // Read and dropped within: neither waits for the capture nor ends it.
        within = x.to_vec::<f32>()?;
        drop(x);
        Ok(())
    })?;
    drop(graph);
    Ok(within.iter().all(|&element| element == value) && all_are(&y, value)?)
}

/// A graph launched on the other stream than it was captured on, its result read without a wait.
fn graph_launched_and_read(place: &mut Place<'_>, n: usize, value: f32) -> Result<bool> {
    let (device, [first, second]) = (&place.devices[0], &place.streams);
    let x = Tensor::full(device, value, [n])?;
    let mut y = Tensor::zeros(device, DType::F32, [n])?;
    let mut graph = first.capture(|first| kernels::add(1).on(first).run_inplace(&mut y, &x))?;
    // The graph has its memory.
    drop(x);
    let launches = place.random.next_u64() % 10 + 1;
    for _ in 0..launches {
        graph.launch(second)?;
    }
    all_are(&y, value * launches as f32)
}

/// A result copied to the other device while the stream that makes it works.
fn copied_across(place: &mut Place<'_>, n: usize, value: f32) -> Result<bool> {
    let (stream, other) = (&place.streams[0], &place.devices[place.devices.len() - 1]);
    let x = Tensor::full(&place.devices[0], value, [n])?;
    let y = kernels::neg().on(stream).run(&x)?;
    drop(x);
    all_are(&y.to_device(other)?, -value)
}

/// This thread captures a stream and launches the graphs, while another calls kernels on it, whose tensors come and go.
/// If a capture refuses a call of either thread, its second count grows, and the thread tries again.
fn share_a_stream(
    device: &Device,
    stream: &Stream,
    captured: &[AtomicU64; 2],
    called: &[AtomicU64; 2],
) -> Result<bool> {
    const ROUNDS: usize = 50;
    const N: usize = 4096;
    let is_done = AtomicBool::new(false);
    let once = |counts: &[AtomicU64; 2], result: Result<bool>| match result {
        Ok(right) => {
            counts[0].fetch_add(1, Ordering::Relaxed);
            Ok(right)
        }
        Err(error) if matches!(error.kind(), ErrorKind::StreamCaptured { .. }) => {
            counts[1].fetch_add(1, Ordering::Relaxed);
            Ok(true)
        }
        Err(error) => Err(error),
    };
    std::thread::scope(|scope| {
        let caller = scope.spawn(|| -> Result<bool> {
            let mut right = true;
            while !is_done.load(Ordering::Relaxed) {
                right &= once(
                    called,
                    (|| {
                        let x = Tensor::full(device, 2.0_f32, [N])?;
                        let mut y = Tensor::empty(device, DType::F32, [N])?;
                        kernels::neg().on(stream).run_into(&x, &mut y)?;
                        all_are(&y, -2.0)
                    })(),
                )?;
            }
            Ok(right)
        });
        let capture = || -> Result<bool> {
            let x = Tensor::full(device, 3.0_f32, [N])?;
            let mut y = Tensor::zeros(device, DType::F32, [N])?;
            let mut right = true;
            for _ in 0..ROUNDS {
                right &= once(
                    captured,
                    (|| {
                        let mut graph = stream.capture(|stream| kernels::neg().on(stream).run_into(&x, &mut y))?;
                        std::thread::yield_now();
                        graph.launch(stream)?;
                        all_are(&y, -3.0)
                    })(),
                )?;
            }
            Ok(right)
        };
        let right = capture();
        is_done.store(true, Ordering::Relaxed);
        let called = caller.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        Ok(right? && called)
    })
}
