//! Every op on a device: its error and candle's, against the formula in f64; its gradients; its time and candle's.
//!
//! `cargo run --release --bin candle-ops [--features cuda -- --cuda] [--times]`
#![forbid(unsafe_code)]

#[path = "../../../../crates/pointwise-candle/tests/all/candle_functions.rs"]
mod candle_functions;

use candle_core::{DType, Device, Result, Tensor, Var};
use candle_functions::{FUNCTIONS, Function};
use candle_model::{device, has, in_turns};
use candle_nn::{ops as nn, rotary_emb};
use every_form::ops as forms;
use pointwise::info;
use pointwise::kernel::OpDef;
use pointwise::rope::RopeConfig;
use pointwise_candle::{Arg, Op, Rope, args, op, ops};

/// The rows and their length where errors are measured.
const ROWS: usize = 16;
const LEN: usize = 4096;
const TYPES: [DType; 3] = [DType::F32, DType::F16, DType::BF16];

/// candle's fused ops.
const FUSED: &[(&str, usize, Function)] = &[
    ("softmax", 1, |x| nn::softmax_last_dim(&x[0])),
    ("rms_norm", 2, |x| nn::rms_norm(&x[0], &x[1], 1e-6)),
    ("layer_norm", 3, |x| nn::layer_norm(&x[0], &x[1], &x[2], 1e-5)),
];

fn main() -> Result<()> {
    let device = device()?;
    errors(&device)?;
    let checked = parity(&device)?;
    println!("\n{checked} calls agree with the CPU's; their gradients, too");
    mismatch(&device)?;
    if has("--times") {
        times(&device)?;
    }
    Ok(())
}

/// Returns candle's functions, the fused ones instead of their steps.
fn functions() -> Vec<(&'static str, usize, Function)> {
    let is_fused = |name: &str| FUSED.iter().any(|(fused, ..)| *fused == name);
    let steps = FUNCTIONS.iter().filter(|(name, ..)| !is_fused(name));
    steps.chain(FUSED).copied().collect()
}

/// Returns numbers from `low` to `high`, the same for a seed.
fn numbers(count: usize, seed: u64, low: f32, high: f32) -> Vec<f32> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f32 / (1_u64 << 24) as f32
    };
    (0..count).map(|_| low + (high - low) * next()).collect()
}

/// Returns operand `k` of an op: rows, or a row of weights.
fn operand(name: &str, k: usize, rows: usize, len: usize, dtype: DType, device: &Device) -> Result<Tensor> {
    let low = if matches!(name, "log" | "sqrt" | "rsqrt" | "reciprocal" | "pow" | "div") { 0.25 } else { -8.0 };
    let is_weight = info::op(name).is_some_and(|def| def.info.is_weight(k));
    let shape = if is_weight { vec![len] } else { vec![rows, len] };
    let count = shape.iter().product();
    Tensor::from_vec(numbers(count, 1 + k as u64, low, 8.0), shape, &Device::Cpu)?.to_dtype(dtype)?.to_device(device)
}

fn values(x: &Tensor) -> Result<Vec<f64>> {
    let x = x.to_device(&Device::Cpu)?;
    // candle's conversion of f8e4m3 to f64 does not end.
    let x = if x.dtype() == DType::F8E4M3 { x.to_dtype(DType::F32)? } else { x };
    x.to_dtype(DType::F64)?.flatten_all()?.to_vec1()
}

/// Returns the exact results of an op's first result.
fn exact(def: &'static OpDef, operands: &[Tensor], dtype: DType) -> Result<Vec<f64>> {
    let named = |error: pointwise::Error| candle_core::Error::wrap(error);
    let of: pointwise::DType = dtype.as_str().parse().map_err(candle_core::Error::wrap)?;
    let x: Vec<Vec<f64>> = operands.iter().map(values).collect::<Result<_>>()?;
    if let Some(oracle) = def.row_oracle(of, &[]).map_err(named)? {
        let row = |x: &'_ [f64], row: usize| if x.len() == LEN { 0..LEN } else { row * LEN..(row + 1) * LEN };
        let mut all = Vec::new();
        for at in 0..ROWS {
            let slices: Vec<&[f64]> = x.iter().map(|x| &x[row(x, at)]).collect();
            all.extend(oracle.at(&slices, LEN)[0].iter().map(|y| y.value));
        }
        return Ok(all);
    }
    let Some(oracle) = def.double(&[]).map_err(named)? else { return Ok(Vec::new()) };
    let count = x[0].len();
    if def.takes_halves() {
        let half = LEN / 2;
        let at = |k: usize| k / half * LEN + k % half;
        return Ok((0..count / 2).map(|k| oracle.of(&[x[0][at(k)], x[0][at(k) + half]])).collect());
    }
    Ok((0..count).map(|at| oracle.of(&x.iter().map(|x| x[at]).collect::<Vec<_>>())).collect())
}

/// Returns the largest error in units in the last place of the exact result's type.
fn largest_error(got: &Tensor, exact: &[f64], dtype: DType) -> Result<f64> {
    let (bits, least) = match dtype {
        DType::F32 => (23, -126),
        DType::F16 => (10, -14),
        _ => (7, -126),
    };
    let largest = match dtype {
        DType::F16 => 65_520.0, // what rounds to infinity
        _ => f64::from(f32::MAX),
    };
    let error = |(got, exact): (&f64, &f64)| {
        if exact.abs() >= largest {
            return if got.is_infinite() { 0.0 } else { f64::INFINITY };
        }
        let exponent = exact.abs().log2().floor().max(f64::from(least));
        (got - exact).abs() / 2.0_f64.powf(exponent - f64::from(bits))
    };
    Ok(values(got)?.iter().zip(exact).map(error).fold(0.0, f64::max))
}

fn errors(device: &Device) -> Result<()> {
    println!("Largest error in ULP, numbers from -8 (or 0.25) to 8, {device:?}: candle, pointwise");
    println!("{:<16}{:>12}{:>8}{:>12}{:>8}{:>12}{:>8}", "", "f32", "", "f16", "", "bf16", "");
    for (name, count, function) in functions() {
        let Some(def) = info::op(name) else { continue };
        // Bits, and results near 0 that are differences of larger numbers: see the table of means.
        if def.info.bool_results() != 0 || name == "layer_norm" {
            continue;
        }
        let mut line = format!("{name:<16}");
        for dtype in TYPES {
            let x: Vec<Tensor> =
                (0..count).map(|k| operand(name, k, ROWS, LEN, dtype, device)).collect::<Result<_>>()?;
            let args: Vec<Arg> = x.iter().map(Arg::from).collect();
            let exact = exact(def, &x, dtype)?;
            let ours = largest_error(&Op::from(def).run_one(&args)?, &exact, dtype)?;
            let theirs = match function(&x) {
                Ok(y) => format!("{:.2}", largest_error(&y, &exact, dtype)?),
                Err(_) => "none".to_owned(),
            };
            line += &format!("{theirs:>12}{ours:>8.2}");
        }
        println!("{line}");
    }
    large_mean(device)
}

/// A norm of numbers far from 0, whose squares cancel.
fn large_mean(device: &Device) -> Result<()> {
    let x = operand("x", 0, ROWS, LEN, DType::F32, device)?;
    let (weight, bias) = (Tensor::ones(LEN, DType::F32, device)?, Tensor::zeros(LEN, DType::F32, device)?);
    println!("\nlayer_norm of numbers around a mean, largest absolute error: candle, pointwise");
    for mean in [0.0, 100.0, 1e4] {
        let x = (&x + mean)?;
        let Some(def) = info::op("layer_norm") else { continue };
        let all = [x.clone(), weight.clone(), bias.clone()];
        let exact = exact(def, &all, DType::F32)?;
        let off = |y: &Tensor| -> Result<f64> {
            Ok(values(y)?.iter().zip(&exact).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max))
        };
        let theirs = off(&nn::layer_norm(&x, &weight, &bias, 1e-5)?)?;
        let ours = off(&Op::from(def).run_one(&args![&x, &weight, &bias])?)?;
        println!("{mean:<16}{theirs:>12.1e}{ours:>12.1e}");
    }
    Ok(())
}

/// Returns ops of a package's own: of several results, of several types, on rows.
fn own() -> [&'static OpDef; 12] {
    [
        forms::SwishGate::<f64>::def(),
        forms::Affine::def(),
        forms::SquaredRelu::<f64>::def(),
        forms::KeepWhere::def(),
        forms::ComplexProducts::def(),
        forms::mixed::DequantiseNf4::def(),
        forms::mixed::DequantiseFp4::def(),
        forms::mixed::NormaliseImage::def(),
        forms::mixed::Sgd::<f64>::def(),
        forms::mixed::NormByF32::def(),
        forms::mixed::Picked::def(),
        forms::rows::Quantised::def(),
    ]
}

/// Compares every op of the registry, and those of a package's own, in every type, and its gradients, with the CPU's results.
fn parity(device: &Device) -> Result<usize> {
    let mut calls = 0;
    let types = [DType::F32, DType::F16, DType::BF16, DType::F8E4M3, DType::U8, DType::I16, DType::I32, DType::I64];
    for def in ops().chain(own()) {
        let info = &def.info;
        for dtype in types {
            if !info.types.iter().any(|of| of.name() == dtype.as_str()) {
                continue;
            }
            for lies in 0..3 {
                // Rows and their length as the op sees them: contiguous, transposed, sliced.
                let (rows, len) = [(66, 130), (130, 66), (66, 128)][lies];
                let operand = |k: usize| -> Result<Tensor> {
                    let (of, low, high) = match info.fixed_operand(k) {
                        Some(pointwise::DType::Bool) => (DType::U8, 0.0, 2.0),
                        Some(pointwise::DType::I64) => (DType::I64, 0.0, 66.0),
                        Some(pointwise::DType::U8) => (DType::U8, 0.0, 255.0),
                        Some(fixed) => (fixed.name().parse().map_err(candle_core::Error::wrap)?, 0.25, 3.0),
                        None => (dtype, 0.25, 3.0),
                    };
                    let shape = match () {
                        _ if info.is_channel(k) => vec![len],
                        _ if info.is_row_operand(k) => vec![rows],
                        _ => vec![66, 130],
                    };
                    let count = shape.iter().product();
                    let x = Tensor::from_vec(numbers(count, 9 + k as u64, low, high), shape, &Device::Cpu)?;
                    x.to_dtype(of)
                };
                let laid = |x: &Tensor| match (lies, x.rank()) {
                    (1, 2) => x.t(),
                    (2, 2) => x.narrow(1, 2, 128),
                    _ => Ok(x.clone()),
                };
                let host: Vec<Tensor> = (0..info.operands.len()).map(operand).collect::<Result<_>>()?;
                let results = |device: &Device| -> Result<Vec<Tensor>> {
                    let grads =
                        def.backward.is_some_and(|def| def.info.types.iter().any(|of| of.name() == dtype.as_str()));
                    let mut vars = Vec::new();
                    let mut args = Vec::new();
                    for (k, x) in host.iter().enumerate() {
                        let x = x.to_device(device)?;
                        if grads && info.operand_has_gradient(k) {
                            let var = Var::from_tensor(&x)?;
                            args.push(Arg::from(laid(&var)?));
                            vars.push(var);
                        } else {
                            args.push(Arg::from(laid(&x)?));
                        }
                    }
                    let mut all = Op::from(def).of_type(dtype)?.run(&args)?;
                    if grads {
                        let mut loss = Tensor::zeros((), DType::F32, device)?;
                        for (_, y) in all.iter().enumerate().filter(|(k, _)| info.result_has_gradient(*k)) {
                            loss = (loss + y.to_dtype(DType::F32)?.sum_all()?)?;
                        }
                        let grads = loss.backward()?;
                        for var in &vars {
                            all.push(grads.get(var).cloned().ok_or_else(|| candle_core::Error::msg("no gradient"))?);
                        }
                    }
                    Ok(all)
                };
                let what = |error: candle_core::Error| error.context(format!("{} of {dtype:?}", info.name));
                let (host_results, device_results) =
                    (results(&Device::Cpu).map_err(what)?, results(device).map_err(what)?);
                for (k, (a, b)) in host_results.iter().zip(&device_results).enumerate() {
                    let share = match dtype {
                        DType::F32 => 1e-4,
                        DType::F16 => 4e-3,
                        DType::BF16 => 3e-2,
                        _ => 0.0,
                    };
                    for (at, (a, b)) in values(a)?.iter().zip(&values(b)?).enumerate() {
                        let same = a == b || a.is_nan() && b.is_nan();
                        if !same && (a - b).abs() > share * a.abs().max(1.0) {
                            let (name, dtype) = (info.name, dtype.as_str());
                            candle_core::bail!(
                                "{name} of {dtype}, layout {lies}, result {k}, element {at}: CPU {a}, device {b}"
                            );
                        }
                    }
                }
                calls += 1;
            }
        }
    }
    Ok(calls)
}

/// Operands on two devices are an error.
fn mismatch(device: &Device) -> Result<()> {
    if device.is_cpu() {
        return Ok(());
    }
    let (a, b) = (Tensor::ones(4, DType::F32, device)?, Tensor::ones(4, DType::F32, &Device::Cpu)?);
    for operands in [args![&a, &b], args![&b, &a]] {
        match op("add")?.run_one(&operands) {
            Ok(_) => candle_core::bail!("operands on two devices gave a result"),
            Err(error) => println!("operands on two devices: {}", error.to_string().lines().next().unwrap_or_default()),
        }
    }
    Ok(())
}

fn times(device: &Device) -> Result<()> {
    let rows = if device.is_cpu() { 1 << 9 } else { 1 << 12 };
    println!("\nus a call of {} elements (rows of {LEN}): candle, pointwise, ratio", rows * LEN);
    let mut slower = Vec::new();
    let mut row = |name: &str, cells: Vec<(DType, f64, f64)>| {
        let mut line = format!("{name:<16}");
        for (dtype, theirs, ours) in cells {
            line += &format!("  {:>5}{theirs:>10.1}{ours:>10.1}{:>7.2}", dtype.as_str(), theirs / ours);
            if theirs < ours {
                slower.push(format!("{name} {}", dtype.as_str()));
            }
        }
        println!("{line}");
    };
    for (name, count, function) in functions() {
        let mut cells = Vec::new();
        for dtype in TYPES {
            let x: Vec<Tensor> =
                (0..count).map(|k| operand(name, k, rows, LEN, dtype, device)).collect::<Result<_>>()?;
            let args: Vec<Arg> = x.iter().map(Arg::from).collect();
            if function(&x).is_err() {
                continue;
            }
            let op = op(name)?;
            let (theirs, ours) = in_turns(device, 5, || function(&x).map(drop), || op.run_one(&args).map(drop))?;
            cells.push((dtype, theirs * 1e6, ours * 1e6));
        }
        row(name, cells);
    }
    let mut cells = Vec::new();
    for dtype in TYPES {
        // Batch 1, 32 heads of 128.
        let len = rows;
        let q = operand("q", 0, 32 * len, 128, dtype, device)?.reshape((1, 32, len, 128))?;
        let config = RopeConfig::default_rope(128, 10_000.0);
        let rope = Rope::new(&config, len as u64, device)?;
        let angles = operand("angles", 1, len, 64, DType::F32, device)?;
        let (cos, sin) = (angles.cos()?.to_dtype(dtype)?, angles.sin()?.to_dtype(dtype)?);
        let (theirs, ours) =
            in_turns(device, 5, || rotary_emb::rope(&q, &cos, &sin).map(drop), || rope.apply_one(&q, 0).map(drop))?;
        cells.push((dtype, theirs * 1e6, ours * 1e6));
    }
    row("rope", cells);
    println!("slower than candle: {}", if slower.is_empty() { "none".to_owned() } else { slower.join(", ") });

    println!("\nhost: us a call of 64 elements, queued: candle, pointwise");
    let x = operand("x", 0, 1, 64, DType::F32, device)?;
    let (weight, silu, norm) = (operand("x", 1, 1, 64, DType::F32, device)?.squeeze(0)?, op("silu")?, op("rms_norm")?);
    let add = op("add")?;
    let calls = 1000;
    let pairs = [
        ("silu", in_turns(device, calls, || x.silu().map(drop), || silu.run_one(&args![&x]).map(drop))?),
        ("add", in_turns(device, calls, || x.add(&x).map(drop), || add.run_one(&args![&x, &x]).map(drop))?),
        (
            "rms_norm",
            in_turns(
                device,
                calls,
                || nn::rms_norm(&x, &weight, 1e-6).map(drop),
                || norm.run_one(&args![&x, &weight]).map(drop),
            )?,
        ),
    ];
    for (name, (theirs, ours)) in pairs {
        println!("{name:<16}{:>10.2}{:>10.2}", theirs * 1e6, ours * 1e6);
    }
    Ok(())
}
