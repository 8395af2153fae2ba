//! Every op in every element type by every class of kernel, one named case each (`cuda_0::silu::bf16::flat`), on the
//! devices of `tests::cases`: a GPU, or the CPU and the emulator. On the CPU a case is the executor's.
//!
//! An op has a case for each class (`add::bf16::rows`): all codes or 65,537 values of one operand, all pairs of 8-bit codes
//! or special and mixed values of several, against the formula or models, in place, and views of all kinds; those that
//! have tables another by them (`pow::f8e4m3::table_rows`), and some one of so many elements that it is the default
//! (`table_large`). Ops of one operand run sizes from 0 up at several alignments, with guard bytes around the result
//! (`silu::bf16::sizes_register_copy`). Every conversion between element types is a case
//! (`to_dtype::f32::bf16::register_copy`), and so are ops of every pair of them (`promoted::i32::f16`); copies of views of
//! each type are `to_tensor::f16`. Numbers as operands are `div::f16::numbers`. `POINTWISE_MATRIX=quick` takes fewer sizes,
//! for a memory checker.

use libtest_mimic::Arguments;
use pointwise::{DType, Strategy, kernel::Class};
use tests::cases::Cases;
use tests::{convert, copies, lookup, matrix, numbers, promote};

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
    for def in tests::all() {
        let name = |dtype, kind: &str| format!("{}::{dtype}::{kind}", def.info.name);
        for &dtype in def.info.types {
            for class in Class::ALL {
                let strategy = if class == Class::Strided { Strategy::ExplicitParallel } else { Strategy::Auto };
                let run = move |strategy| move || matrix::class(&device, def, dtype, class, strategy);
                cases.add(&[dtype], name(dtype, class.name()), run(strategy));
                // The same kernel with one element a thread: of one type, for time.
                if !device.is_cpu() && class == Class::Strided && dtype == def.info.types[0] {
                    cases.add(&[dtype], name(dtype, "direct"), run(Strategy::Direct));
                }
                // A table of codes is for flat tensors, one of pairs for rows, too.
                let has_table = class == Class::Flat || class == Class::Rows && !def.info.is_unary();
                if !device.is_cpu() && has_table && Strategy::Table.serves(&def.info, dtype) {
                    cases.add(&[dtype], name(dtype, &format!("table_{class}")), run(Strategy::Table));
                }
            }
            if numbers::checks(&device, def, dtype) {
                cases.add(&[dtype], name(dtype, "numbers"), move || numbers::check(&device, def, dtype));
            }
            if def.info.is_unary() {
                for strategy in Strategy::ALL.into_iter().filter(|s| s.serves(&def.info, dtype)) {
                    let run = move || matrix::sizes(&device, def, dtype, strategy);
                    if !device.is_cpu() || strategy == Strategy::RegisterCopy {
                        cases.add(&[dtype], name(dtype, &format!("sizes_{strategy}")), run);
                    }
                }
            }
        }
    }
    let strategies: &[Strategy] =
        if device.is_cpu() { &[Strategy::Auto] } else { &[Strategy::RegisterCopy, Strategy::ExplicitParallel] };
    for (a, b) in DType::ALL.into_iter().flat_map(|a| DType::ALL.map(|b| (a, b))) {
        for &strategy in strategies {
            let case = move || convert::check(&device, a, b, strategy);
            cases.add(&[a, b], format!("to_dtype::{a}::{b}::{strategy}"), case);
        }
        cases.add(&[a, b], format!("promoted::{a}::{b}"), move || promote::check(&device, a, b));
    }
    // So many elements that a table is the default.
    if !device.is_emulated() {
        for (op, dtype) in lookup::OPS {
            cases.add(&[dtype], format!("{op}::{dtype}::table_large"), move || lookup::check(&device, op, dtype));
        }
    }
    for dtype in DType::ALL {
        cases.add(&[dtype], format!("to_tensor::{dtype}"), move || copies::check(&device, dtype));
    }
    for class in Class::ALL {
        cases.add_large(format!("beyond_2_to_32::u8::{class}"), move || matrix::map_beyond_32_bits(&device, class));
    }
    for strategy in Strategy::ALL {
        cases.add_large(format!("beyond_2_to_32::f8e4m3::{strategy}"), move || {
            matrix::beyond_32_bits(&device, strategy)
        });
    }
}
