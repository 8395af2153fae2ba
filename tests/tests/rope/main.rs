//! Rotary embedding against an f64 oracle and HF's golden values, on the device of `POINTWISE_DEVICE` (`auto`, `cpu`,
//! `cuda`, `cuda:N`); on a GPU also bit for bit against the CPU.
//!
//! `cargo test -p tests --test rope`; `--ignored` adds what needs tens of GiB of GPU memory.

mod calls;
mod designs;
mod gradients;
mod logical;
mod models;
mod oracle;
mod positions;

use calls::{beyond_31_bits, graph_capture, mistakes, nothing_to_do};
use designs::{golden_outputs, source_designs, users_rule};
use gradients::{folded_softmax_scale, there_and_back};
use libtest_mimic::{Arguments, Failed, Trial};
use logical::MODELS;
use models::{every_way, large, odd_tables, strides};
use pointwise::{DType, Device};
use positions::{axes, many_given, positions};

type Outcome = Result<(), Failed>;

fn main() {
    let arguments = Arguments::from_args();
    let device = tests::device();
    let mut trials = Vec::new();
    for model in MODELS {
        for dtype in [DType::F32, DType::F16, DType::BF16] {
            let run = move || every_way(&device, model, dtype);
            trials.push(Trial::test(format!("models::{}::{dtype}", model.name), run));
        }
    }
    for dtype in [DType::F32, DType::F16, DType::BF16] {
        trials.push(Trial::test(format!("strides::{dtype}"), move || strides(&device, dtype)));
        trials.push(Trial::test(format!("odd_tables::{dtype}"), move || odd_tables(&device, dtype)));
        trials.push(Trial::test(format!("positions::{dtype}"), move || positions(&device, dtype)));
        trials.push(Trial::test(format!("axes::{dtype}"), move || axes(&device, dtype)));
        trials.push(Trial::test(format!("large::{dtype}"), move || large(&device, dtype)));
    }
    let mut add = |name: &str, run: fn(&Device) -> Outcome| {
        trials.push(Trial::test(name, move || run(&device)));
    };
    add("golden_outputs", golden_outputs);
    add("source_designs", source_designs);
    add("there_and_back", there_and_back);
    add("folded_softmax_scale", folded_softmax_scale);
    add("users_rule", users_rule);
    add("mistakes", mistakes);
    add("nothing_to_do", nothing_to_do);
    if device.is_cuda() {
        add("graph_capture", graph_capture);
        for dtype in [DType::F16, DType::BF16] {
            trials.push(Trial::test(format!("many_given::{dtype}"), move || many_given(&device, dtype)));
        }
        trials.push(Trial::test("beyond_2_to_31", move || beyond_31_bits(&device)).with_ignored_flag(true));
    }
    libtest_mimic::run(&arguments, trials).exit();
}
