//! Dropout, the position encodings, rounding by digits, tensors of one value and the tuner, one named case each, on the
//! devices of `tests::cases`: a GPU, or the CPU and the emulator.
//!
//! Dropout is compared, bit for bit, with its definition applied to one element at a time; the encodings with f64. Where
//! kernels run every strategy is a case, and the encodings must have the CPU's bits, too.

mod digits;
mod dropout;
mod encodings;
mod full;
mod large;
mod places;
mod tuner;

use digits::digits;
use dropout::{beyond_32_bits, dropout, dropout_errors, independence, settings, statistics, thresholds, views};
use encodings::{alibi, encoding_errors, into_views, sinusoidal, slopes};
use full::full;
use large::{columns_of_large_rows, vectors_in_turn, views_of_2_to_32};
use libtest_mimic::{Arguments, Failed};
use places::{as_given, on_the_cpu, place_errors, replays};
use pointwise::{DType, Device, Philox, Strategy, Stream, Tensor, kernel::SinusoidalLayout, kernels, ops};
use pointwise_testkit::inputs;
use tests::cases::Cases;
use tuner::{edited_files_and_conversions, nothing_to_measure, tune, tune_other_kinds};

const FLOATS: [DType; 5] = [DType::F32, DType::F16, DType::BF16, DType::F8E4M3, DType::F8E5M2];
const GUARD: u8 = 0xA5;
const LAYOUTS: [(&str, SinusoidalLayout); 2] =
    [("interleaved", SinusoidalLayout::Interleaved), ("halves", SinusoidalLayout::Halves)];

type Outcome = Result<(), Failed>;

fn main() {
    let arguments = Arguments::from_args();
    let mut trials = Vec::new();
    for mut cases in Cases::of_devices() {
        add(&mut cases);
        trials.extend(cases.into_trials());
    }
    libtest_mimic::run(&arguments, trials).exit();
}

/// The cases of one device.
fn add(cases: &mut Cases) {
    let device = cases.device;
    let mut whole = |name: &str, run: fn(&Device) -> Outcome| cases.add(&[DType::F32], name, move || run(&device));
    whole("dropout::views", views);
    whole("dropout::errors", dropout_errors);
    whole("places::errors", place_errors);
    whole("encodings::errors", encoding_errors);
    whole("encodings::into_views", into_views);
    whole("alibi::slopes", |_| slopes());
    whole("full", full);
    whole("tuner::nothing_to_measure", nothing_to_measure);
    if !device.is_emulated() {
        // Properties of the random bits, which are the same on every device, on many of them.
        whole("dropout::statistics", statistics);
        whole("dropout::independence", independence);
    }
    if !device.is_cpu() {
        whole("graph_and_stream", graph_and_stream);
        whole("vectors_in_turn", vectors_in_turn);
        whole("columns_of_large_rows", columns_of_large_rows);
        whole("places::replays", replays);
    }
    if device.is_cpu() {
        whole("places::on_the_cpu", |_| on_the_cpu());
    }
    if device.is_cuda() {
        // A tuner measures.
        whole("tuner::other_kinds", tune_other_kinds);
        whole("tuner::edited_files_and_conversions", edited_files_and_conversions);
        for (dtype, n) in [(DType::F32, 1000), (DType::BF16, 1 << 20), (DType::F8E4M3, 1 << 22)] {
            cases.add(&[dtype], format!("tuner::{dtype}::{n}"), move || tune(&device, dtype, n));
        }
    }
    let strategies: Vec<(&str, Strategy)> = if device.is_cpu() {
        vec![("cpu", Strategy::Auto)]
    } else {
        Strategy::ALL.into_iter().filter(|s| *s != Strategy::Table).map(|s| (s.name(), s)).collect()
    };
    for dtype in FLOATS {
        cases.add(&[dtype], format!("digits::{dtype}"), move || digits(&device, dtype));
        cases.add(&[dtype], format!("dropout::{dtype}::settings"), move || settings(&device, dtype));
        for &(name, strategy) in &strategies {
            if strategy != Strategy::Direct {
                cases.add(&[dtype], format!("dropout::{dtype}::{name}"), move || dropout(&device, dtype, strategy));
                let test = move || thresholds(&device, dtype, strategy);
                cases.add(&[dtype], format!("dropout::{dtype}::thresholds::{name}"), test);
                cases.add(&[dtype], format!("places::{dtype}::{name}"), move || as_given(&device, dtype, strategy));
            }
            if strategy == Strategy::ExplicitParallel {
                continue;
            }
            for causal in [false, true] {
                let kind = if causal { "causal" } else { "symmetric" };
                let test = move || alibi(&device, dtype, strategy, causal);
                cases.add(&[dtype], format!("alibi::{dtype}::{kind}::{name}"), test);
            }
            for (kind, layout) in LAYOUTS {
                let test = move || sinusoidal(&device, dtype, strategy, layout);
                cases.add(&[dtype], format!("sinusoidal::{dtype}::{kind}::{name}"), test);
            }
        }
    }
    cases.add_large("views_of_2_to_32", move || views_of_2_to_32(&device));
    for &(name, strategy) in &strategies {
        cases.add_large(format!("dropout::beyond_2_to_32::{name}"), move || beyond_32_bits(&device, strategy));
    }
}

/// The first element that differs; all NaN are one.
fn differs(dtype: DType, a: &[u8], b: &[u8]) -> Option<usize> {
    pointwise_testkit::judge::same_bits(dtype, a, b)
}

fn same_on_the_cpu(y: &Tensor, cpu: &Tensor, what: &str) -> Outcome {
    match differs(y.dtype(), &y.to_bytes()?, &cpu.to_bytes()?) {
        None => Ok(()),
        Some(at) => Err(format!("{what}: element {at} differs from the CPU's").into()),
    }
}

/// Every `_into` call in one graph on a stream of its own, replayed into poisoned tensors.
fn graph_and_stream(device: &Device) -> Outcome {
    let stream = Stream::new(device)?;
    let place = Philox::new(8);
    let x = Tensor::from_bytes(device, DType::BF16, &inputs::mixed(DType::BF16, 5000, 3), [5000])?;
    let mut y = Tensor::zeros(device, DType::BF16, [5000])?;
    let mut z = Tensor::zeros(device, DType::BF16, [5000])?;
    let mut mask = Tensor::zeros(device, DType::Bool, [5000])?;
    let mut copy = Tensor::zeros(device, DType::BF16, [5000])?;
    let mut bias = Tensor::zeros(device, DType::F16, [4, 64, 64])?;
    let mut table = Tensor::zeros(device, DType::F32, [100, 64])?;
    let kernel = kernels::dropout(0.3).on(&stream);
    let mut run = || -> pointwise::Result<()> {
        kernel.run_into(&x, &mut y, place)?;
        kernel.run_with_mask_into(&x, &mut z, &mut mask, place)?;
        kernels::dropout(0.0).on(&stream).run_into(&x, &mut copy, place)?;
        kernels::alibi_causal().on(&stream).run_into(&mut bias)?;
        kernels::sinusoidal(SinusoidalLayout::Halves).on(&stream).run_into(&mut table)
    };
    // Loads the kernels, which a capture may not.
    run()?;
    stream.synchronize()?;
    let mut graph = stream.capture(|_| run())?;
    for tensor in [&mut y, &mut z, &mut copy, &mut bias, &mut table] {
        let poison = vec![GUARD; tensor.byte_len()];
        tensor.copy_from_bytes(&poison)?;
    }
    graph.launch(&stream)?;
    stream.synchronize()?;
    let cpu = Device::cpu();
    let (expected, kept) = ops::dropout_with_mask(&x.to_device(&cpu)?, 0.3, place)?;
    same_on_the_cpu(&y, &expected, "dropout")?;
    same_on_the_cpu(&z, &expected, "dropout with a mask")?;
    same_on_the_cpu(&mask, &kept, "the mask")?;
    assert_eq!(copy.to_bytes()?, x.to_bytes()?);
    same_on_the_cpu(&bias, &ops::alibi_causal(&cpu, DType::F16, 4, 64)?, "alibi")?;
    same_on_the_cpu(&table, &ops::sinusoidal(&cpu, DType::F32, 100, 64, SinusoidalLayout::Halves)?, "sinusoidal")
}
