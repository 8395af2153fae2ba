//! Rotary embedding against an f64 oracle and HF's golden values, on the devices of `tests::cases`: a GPU, or the CPU
//! and the emulator; where kernels run also bit for bit against the CPU.
//!
//! `cargo test -p tests --test rope`; `--ignored` adds what needs tens of GiB of GPU memory.

mod calls;
mod designs;
mod gradients;
mod logical;
mod models;
mod oracle;
mod positions;

use calls::{beyond_31_bits, graph_capture, kernels_alike, mistakes, nothing_to_do};
use designs::{golden_outputs, source_designs, users_rule};
use gradients::{folded_softmax_scale, there_and_back};
use libtest_mimic::{Arguments, Failed};
use logical::MODELS;
use models::{every_way, large, odd_tables, strides};
use pointwise::{DType, Device};
use positions::{axes, many_given, positions};
use tests::cases::Cases;

type Outcome = Result<(), Failed>;

fn main() {
    let arguments = Arguments::from_args();
    let mut trials = Vec::new();
    for mut cases in Cases::of_devices() {
        // No type of its kernels is fp8.
        if cases.takes(&[DType::F32]) {
            add(&mut cases);
        }
        trials.extend(cases.into_trials());
    }
    libtest_mimic::run(&arguments, trials).exit();
}

/// The cases of one device.
fn add(cases: &mut Cases) {
    let device = cases.device;
    for dtype in [DType::F32, DType::F16, DType::BF16] {
        for model in MODELS {
            let run = move || every_way(&device, model, dtype);
            cases.add(&[dtype], format!("models::{}::{dtype}", model.name), run);
        }
        let mut of_type = |name: &str, run: fn(&Device, DType) -> Outcome| {
            cases.add(&[dtype], format!("{name}::{dtype}"), move || run(&device, dtype));
        };
        of_type("strides", strides);
        of_type("odd_tables", odd_tables);
        of_type("positions", positions);
        of_type("axes", axes);
        of_type("large", large);
        of_type("kernels_alike", kernels_alike);
        if !device.is_cpu() && dtype != DType::F32 {
            of_type("many_given", many_given);
        }
    }
    let mut whole = |name: &str, run: fn(&Device) -> Outcome| cases.add(&[DType::F32], name, move || run(&device));
    whole("golden_outputs", golden_outputs);
    whole("source_designs", source_designs);
    whole("there_and_back", there_and_back);
    whole("folded_softmax_scale", folded_softmax_scale);
    whole("users_rule", users_rule);
    whole("mistakes", mistakes);
    whole("nothing_to_do", nothing_to_do);
    if !device.is_cpu() {
        whole("graph_capture", graph_capture);
    }
    cases.add_large("beyond_2_to_31", move || beyond_31_bits(&device));
}
