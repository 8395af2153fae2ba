//! Faults that are planted in kernels, one named case each: the emulator finds each, or a test of the kernel fails. What
//! passes is no fault, and stands with its reason in `EQUIVALENT`.

use libtest_mimic::{Arguments, Failed, Trial};
use pointwise::{Class, DType, Device, Philox, Strategy, Tensor, kernels};
use pointwise_testkit::{gradients, map};
use tests::{convert, matrix, planted};

/// Kernels, and what is run with each.
type Run = fn(&Device) -> Result<(), Failed>;
const KERNELS: &[(&str, Run)] = &[
    ("unary_silu_f32_register_copy", |device| unary(device, "silu", DType::F32, Strategy::RegisterCopy)),
    ("unary_relu_f16_explicit_parallel", |device| unary(device, "relu", DType::F16, Strategy::ExplicitParallel)),
    ("unary_gelu_bf16_direct", |device| unary(device, "gelu", DType::BF16, Strategy::Direct)),
    ("unary_exp_f8e4m3_table", |device| unary(device, "exp", DType::F8E4M3, Strategy::Table)),
    ("binary_add_f32_flat", |device| several(device, "add", DType::F32, Class::Flat, Strategy::Auto)),
    ("binary_mul_f16_rows", |device| several(device, "mul", DType::F16, Class::Rows, Strategy::Auto)),
    ("binary_sub_i32_strided", |device| several(device, "sub", DType::I32, Class::Strided, Strategy::Direct)),
    ("binary_pow_f32_flat", |device| several(device, "pow", DType::F32, Class::Flat, Strategy::Auto)),
    ("binary_lookup_pairs_flat", |device| several(device, "pow", DType::F8E4M3, Class::Flat, Strategy::Table)),
    ("ternary_lerp_f32_rows", |device| several(device, "lerp", DType::F32, Class::Rows, Strategy::Auto)),
    ("gradients_mul_backward_f32_flat", |device| {
        let def = gradients::all().find(|def| def.info.name == "mul_backward").ok_or("no such op")?;
        matrix::gradient_case(device, def, DType::F32, Class::Flat)
    }),
    ("convert_f32_f16_flat", |device| Ok(convert::check(device, DType::F32, DType::F16, Strategy::RegisterCopy)?)),
    ("random_dropout_f32_register_copy", dropout),
];

/// Faults that change nothing, with the reason.
const EQUIVALENT: &[(&str, &str)] = &[];

fn main() {
    let arguments = Arguments::from_args();
    if pointwise::embedded().is_empty() {
        eprintln!("no kernels are embedded to plant faults in: {}", pointwise::embedded().note());
        libtest_mimic::run(&arguments, Vec::new()).exit();
    }
    let mut trials = vec![Trial::test("there_are_enough", there_are_enough)];
    for &(symbol, run) in KERNELS {
        trials.push(Trial::test(format!("{symbol}::without_a_fault"), move || run(&Device::emulated()?)));
        for fault in pointwise::embedded().ptx(symbol, 90).iter().flat_map(|ptx| planted::all(ptx)) {
            let name = format!("{symbol}::{}", fault.name);
            let case = name.clone();
            trials.push(Trial::test(name, move || is_found(&case, symbol, &fault, run)));
        }
    }
    libtest_mimic::run(&arguments, trials).exit();
}

fn there_are_enough() -> Result<(), Failed> {
    let mut count = 0;
    for (symbol, _) in KERNELS {
        let ptx = pointwise::embedded().ptx(symbol, 90).ok_or_else(|| format!("no kernel {symbol}"))?;
        count += planted::all(&ptx).len();
    }
    if count < 100 { Err(format!("{count} faults").into()) } else { Ok(()) }
}

/// The fault is found, or is known to be none.
fn is_found(case: &str, symbol: &str, fault: &planted::Planted, run: Run) -> Result<(), Failed> {
    let device = Device::emulated()?;
    let outcome = pointwise::__with_kernel(&fault.ptx, symbol, || run(&device))?;
    let reason = EQUIVALENT.iter().find(|(name, _)| *name == case).map(|(_, reason)| reason);
    match (outcome, reason) {
        (Err(_), None) | (Ok(()), Some(_)) => Ok(()),
        (Ok(()), None) => Err(format!("nobody finds it: `{}` was changed", fault.before).into()),
        (Err(why), Some(reason)) => {
            let why = why.message().unwrap_or_default().to_owned();
            Err(format!("it is found ({why}), though it is said to change nothing ({reason})").into())
        }
    }
}

fn unary(device: &Device, op: &str, dtype: DType, strategy: Strategy) -> Result<(), Failed> {
    let def = tests::unary().find(|def| def.info.name == op).ok_or("no such op")?;
    matrix::unary(device, def, dtype, strategy)
}

fn several(device: &Device, op: &str, dtype: DType, class: Class, strategy: Strategy) -> Result<(), Failed> {
    let def = map::all().find(|def| def.info.name == op).ok_or("no such op")?;
    matrix::map_case(device, def, dtype, class, strategy)
}

/// Dropout on sizes that end within a vector, with the CPU's bits.
fn dropout(device: &Device) -> Result<(), Failed> {
    for n in [1, 7, 64, 1025, 4099] {
        let values: Vec<f32> = (0..n).map(|i| i as f32 + 1.0).collect();
        let mut results = Vec::new();
        for device in [device, &Device::cpu()] {
            let x = Tensor::from_slice(device, &values, [n])?;
            let kernel = kernels::dropout(0.3).strategy(Strategy::RegisterCopy);
            results.push(kernel.run(&x, Philox::new(5))?.to_vec::<f32>()?);
        }
        if results[0] != results[1] {
            return Err(format!("{n} elements: not the CPU's bits").into());
        }
    }
    Ok(())
}
