//! Every op of the registry captured in a CUDA graph and replayed on other inputs, one named case each
//! (`cuda_0::gelu::bf16`), against the CPU; calls that depend on each other, in one stream and several; results that are
//! allocated and dropped by several threads; all ops from eight threads on streams of their own, which all use each
//! kernel for the first time at once; and operands on several devices. On the devices of `tests::cases`: a GPU, or the
//! CPU and the emulator.

mod cases {
    pub(crate) mod check;
    pub(crate) mod ops;
}

use std::sync::Barrier;

use cases::check::{Expected, poison};
use cases::ops::{self, Case};
use libtest_mimic::{Arguments, Failed, Trial};
use pointwise::rope::{RopeAngles, RopeConfig, RopeFrequencies, RopeKernel, RopePairs, RopePrecision};
use pointwise::{DType, Device, ErrorKind, Philox, Stream, Tensor, kernels};
use tests::cases::Cases;
use tests::lookup;
use tests::order::{self, Way};
use tests::temporaries;

type Outcome = Result<(), Failed>;

/// Set for the process that runs [`race`] and nothing else: only in a new process has no kernel been used.
const RACE: &str = "POINTWISE_GRAPHS_RACE";
const THREADS: usize = 8;

fn main() {
    let arguments = Arguments::from_args();
    if std::env::var_os(RACE).is_some() {
        let raced = Device::parse(&std::env::var("POINTWISE_DEVICE").unwrap_or_default())
            .map_err(Failed::from)
            .and_then(|device| race(&device));
        if let Err(error) = raced {
            eprintln!("{}", error.message().unwrap_or("failed"));
            std::process::exit(1);
        }
        return;
    }
    let mut trials = vec![Trial::test("inputs_tell_replays_apart", inputs_differ)];
    for mut cases in Cases::of_devices() {
        add(&mut cases);
        trials.extend(cases.into_trials());
    }
    libtest_mimic::run(&arguments, trials).exit();
}

/// The cases of one device.
fn add(cases: &mut Cases) {
    let device = cases.device;
    let all = [DType::F32];
    cases.add(&all, "temporaries::of_threads", move || temporaries::check(&device));
    if device.is_cpu() {
        cases.add(&all, "order::own", move || order::check(&device, Way::Own));
        return;
    }
    for case in ops::all() {
        cases.add(&case.types(), case.name.clone(), move || replay(&device, &case));
    }
    if device.is_cuda() {
        // So many elements that a table is the default.
        for (op, dtype) in lookup::OPS {
            cases.add(&all, format!("{op}::{dtype}::table"), move || lookup::check_captured(&device, op, dtype));
        }
        // The emulator has no legacy stream.
        cases.add(&all, "order::legacy", move || order::check(&device, Way::Legacy));
    }
    for way in [Way::Own, Way::One, Way::Two, Way::Graph] {
        let name = format!("order::{way:?}").to_lowercase();
        cases.add(&all, name, move || order::check(&device, way));
    }
    cases.add(&all, "capture::conversions_are_refused", move || captured_conversions(&device));
    cases.add(&all, "capture::dropout_of_a_view", move || captured_dropout_of_a_view(&device));
    cases.add(&all, "threads_and_streams::first_use", move || first_use(&device));
    cases.add(&all, "devices::and_the_cpu", move || mixed(&device, &Device::cpu()));
    if device.is_emulated() {
        cases.add(&all, "devices::two", move || mixed(&device, &Device::emulated_as(80)?));
    } else if Device::cuda_count() > 1 {
        cases.add(&all, "devices::two", move || {
            mixed(&device, &Device::cuda(usize::from(device.ordinal() == Some(0)))?)
        });
    }
}

/// The two sets of inputs give different results on the CPU, poison is no result, and a result is one of its own:
/// without this a replay of old inputs, or none at all, would pass. Predicates may be false for all inputs, and the
/// gradients of steps are 0.
fn inputs_differ() -> Outcome {
    for case in ops::all() {
        let results = [0, 1].map(|set| Expected::run(&case, set));
        let [first, second] = results;
        let (first, second) = (first?, second?);
        let name = &case.name;
        Expected::new(&case, 0)?.check(&first).map_err(|error| format!("{name} against itself: {error}"))?;
        let is_zero = |y: &Tensor| y.to_bytes().is_ok_and(|bytes| bytes.iter().all(|&byte| byte == 0));
        if first.iter().any(|y| y.dtype() == DType::Bool) || first.iter().all(is_zero) {
            continue;
        }
        if !case.inputs.is_empty() && Expected::new(&case, 0)?.check(&second).is_ok() {
            return Err(format!("{name}: both sets of inputs give the same").into());
        }
        let mut poisoned = first;
        for output in &mut poisoned {
            output.copy_from_bytes(&poison(output))?;
        }
        if Expected::new(&case, 0)?.check(&poisoned).is_ok() {
            return Err(format!("{name}: poison passes").into());
        }
    }
    Ok(())
}

/// Captured on the first inputs, replayed on the second and on the first again. The capture is also the kernel's first
/// use, unless another case has used it.
fn replay(device: &Device, case: &Case) -> Outcome {
    let expected = [Expected::new(case, 0)?, Expected::new(case, 1)?];
    let stream = Stream::new(device)?;
    let run = (case.prepare)(device, Some(&stream))?;
    let (mut inputs, mut outputs) = (case.inputs(device, 0)?, case.outputs(device)?);
    let mut graph = stream.capture(|_| run(&inputs, &mut outputs))?;
    for set in [1, 0] {
        for (tensor, input) in inputs.iter_mut().zip(&case.inputs) {
            tensor.copy_from_bytes(&input.sets[set])?;
        }
        for output in &mut outputs {
            output.copy_from_bytes(&poison(output))?;
        }
        graph.launch(&stream)?;
        stream.synchronize()?;
        expected[set].check(&outputs).map_err(|error| format!("inputs {set}: {error}"))?;
    }
    Ok(())
}

/// [`race`] in new processes, each with another order of the ops.
fn first_use(device: &Device) -> Outcome {
    for round in 0..3 {
        let this = std::env::current_exe()?;
        let output = std::process::Command::new(this)
            .env("POINTWISE_DEVICE", device.to_string())
            .env(RACE, round.to_string())
            .output()?;
        if !output.status.success() {
            let text = String::from_utf8_lossy(&output.stderr).into_owned();
            return Err(format!("round {round}: {}: {text}", output.status).into());
        }
    }
    Ok(())
}

/// Each op in one element type, by all threads at once, each with tensors and a stream of its own.
fn race(device: &Device) -> Outcome {
    let mut cases = ops::one_type_each();
    let turn: usize = std::env::var(RACE).ok().and_then(|round| round.parse().ok()).unwrap_or(0);
    let by = turn * cases.len() / 3;
    cases.rotate_left(by);
    let expected = cases.iter().map(|case| Expected::new(case, 0)).collect::<Result<Vec<_>, _>>()?;
    let start = Barrier::new(THREADS);
    let thread = |number: usize| -> Outcome {
        let stream = Stream::new(device)?;
        // All meet here, so that nobody waits for one that has failed before.
        start.wait();
        // One half goes the other way round: other kernels are used for the first time side by side.
        let mut order: Vec<usize> = (0..cases.len()).collect();
        if number % 4 == 3 {
            order.reverse();
        }
        for index in order {
            let case = &cases[index];
            let (inputs, mut outputs) = (case.inputs(device, 0)?, case.outputs(device)?);
            (case.prepare)(device, Some(&stream))?(&inputs, &mut outputs)?;
            stream.synchronize()?;
            let checked = expected[index].check(&outputs);
            checked.map_err(|error| format!("thread {number}, {}: {error}", case.name))?;
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS).map(|number| scope.spawn(move || thread(number))).collect();
        threads.into_iter().try_for_each(|thread| thread.join().unwrap_or_else(|_| Err("a thread panicked".into())))
    })
}

/// Dropout of elements in another order copies them to the result first, and so makes no tensor.
fn captured_dropout_of_a_view(device: &Device) -> pointwise::Result<()> {
    let stream = Stream::new(device)?;
    let x = Tensor::from_slice(device, &[1.0_f32, 2.0, 3.0, 4.0, 5.0, 6.0], [2, 3])?;
    let (turned, mut y) = (x.view().transpose(0, 1)?, Tensor::full(device, 7.0_f32, [3, 2])?);
    let mut mask = Tensor::full(device, false, [3, 2])?;
    let kernel = kernels::dropout(0.5);
    let mut graph = stream
        .capture(|stream| kernel.clone().on(stream).run_with_mask_into(turned, &mut y, &mut mask, Philox::new(1)))?;
    graph.launch(&stream)?;
    stream.synchronize()?;
    let (expected, kept) = kernel.run_with_mask(&turned.to_tensor()?, Philox::new(1))?;
    assert_eq!((y.to_vec::<f32>()?, mask.to_vec::<bool>()?), (expected.to_vec::<f32>()?, kept.to_vec::<bool>()?));
    Ok(())
}

/// Calls that convert an operand, or the result, make a tensor on the way, and the driver spoils a capture on whose
/// thread memory is allocated: they are refused before that, and the capture goes on.
fn captured_conversions(device: &Device) -> pointwise::Result<()> {
    let stream = Stream::new(device)?;
    let (ints, floats) = (Tensor::full(device, 2_i32, [2, 3])?, Tensor::full(device, 0.5_f32, [2, 3])?);
    let (mut y, mut bytes) = (Tensor::full(device, 7.0_f32, [2, 3])?, Tensor::full(device, 7_i8, [2, 3])?);
    let mut refused = Vec::new();
    let graph = stream.capture(|stream| {
        refused.extend([
            ("unary", kernels::exp().on(stream).run_into(&ints, &mut y)),
            ("binary", kernels::add(1.0).on(stream).run_into(&floats, &ints, &mut y)),
            ("in place", kernels::add(1).on(stream).run_inplace(&mut bytes, &ints)),
        ]);
        Ok(())
    });
    for (name, result) in refused {
        match result {
            Err(error) => {
                let error = error.to_string();
                assert!(error.contains("captured"), "{name}: {error}");
            }
            Ok(()) => panic!("{name}: no error"),
        }
    }
    drop(graph?);
    assert_eq!((y.to_vec::<f32>()?, bytes.to_vec::<i8>()?), (vec![7.0; 6], vec![7; 6]));
    Ok(())
}

/// A tensor or a stream of another device is a typed error of every kernel object, and nothing is written.
fn mixed(device: &Device, other: &Device) -> Outcome {
    let here = Tensor::full(device, 1.0_f32, [2, 4])?;
    let there = Tensor::full(other, 1.0_f32, [2, 4])?;
    let mut y = Tensor::full(device, 7.0_f32, [2, 4])?;
    let mut away = Tensor::full(other, 7.0_f32, [2, 4])?;
    let mut mask = Tensor::full(other, true, [2, 4])?;
    let stream = Stream::new(other)?;
    let place = Philox::new(1);
    let halves = Tensor::full(device, 1.0_f32, [2, 8])?;
    let refused = |what: &str, result: pointwise::Result<()>| -> Outcome {
        match result {
            Err(error) if matches!(error.kind(), ErrorKind::DeviceMismatch { .. } | ErrorKind::StreamDevice { .. }) => {
                Ok(())
            }
            Err(error) => Err(format!("{what}: another error: {error}").into()),
            Ok(()) => Err(format!("{what}: no error").into()),
        }
    };
    refused("unary", kernels::relu().run_into(&here, &mut away))?;
    refused("unary, stream", kernels::relu().on(&stream).run_into(&here, &mut y))?;
    refused("binary", kernels::add(1.0).run_into(&here, &there, &mut y))?;
    refused("binary, result", kernels::add(1.0).run_into(&here, &here, &mut away))?;
    refused("binary in place", kernels::add(1.0).run_inplace(&mut y, &there))?;
    refused("binary, stream", kernels::add(1.0).on(&stream).run_into(&here, &here, &mut y))?;
    refused("channel", kernels::prelu().run_into(&here, there.view().narrow(0, 0, 1)?.reshape([4])?, &mut y))?;
    refused("gated", kernels::silu_and_mul().run_into(&halves, &mut away))?;
    refused("ternary", kernels::lerp().run_into(&here, &here, &there, &mut y))?;
    refused("select", kernels::where_cond().run_into(&mask, &here, &here, &mut y))?;
    refused("dropout", kernels::dropout(0.5).run_into(&here, &mut away, place))?;
    refused("dropout, mask", kernels::dropout(0.5).run_with_mask_into(&here, &mut y, &mut mask, place))?;
    refused("dropout, stream", kernels::dropout(0.5).on(&stream).run_into(&here, &mut y, place))?;
    let mut bias = Tensor::full(device, 7.0_f32, [1, 4, 4])?;
    refused("generator, stream", kernels::alibi().on(&stream).run_into(&mut bias))?;
    let q = Tensor::full(device, 1.0_f32, [1, 2, 1, 4])?;
    let mut rotated = Tensor::full(device, 7.0_f32, [1, 2, 1, 4])?;
    let frequencies = RopeFrequencies::new(other, &RopeConfig::default_rope(4, 1e4).frequencies(0)?)?;
    let kernel = RopeKernel::new(RopeAngles::Frequencies(&frequencies, RopePrecision::Hf), RopePairs::Half);
    refused("rope", kernel.run_into(&q, None, &mut rotated, None))?;
    for tensor in [&y, &away, &bias, &rotated] {
        assert!(tensor.to_vec::<f32>()?.iter().all(|&value| value == 7.0), "something was written");
    }
    // The next call is none the worse for it.
    kernels::relu().run_into(&here, &mut y)?;
    assert_eq!(y.to_vec::<f32>()?, [1.0; 8]);
    assert_eq!(y.dtype(), DType::F32);
    Ok(())
}
