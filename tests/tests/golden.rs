//! The golden files, PyTorch's results, against the public functions, on the devices of `tests::cases`: a GPU, or the CPU
//! and the emulator. `POINTWISE_GOLDEN` names a folder with other files than those compiled in.
//!
//! An exact op must give PyTorch's bits (all NaN are one). For other ops, gradients and the ops of `BY_F64`, each element
//! must be PyTorch's, or within the op's bound of the f64 result, or as near to it as PyTorch's.

use libtest_mimic::{Arguments, Failed};
use pointwise::{
    DType, Device, Number, Operand, Tensor,
    info::{Accuracy, OpInfo, op},
    kernel::SinusoidalLayout,
    kernels, ops,
};
use pointwise_core::Element;
use pointwise_core::op::MAX_PARAMS;
use pointwise_testkit::{judge, with_element};
use tests::cases::Cases;
use tests::golden::{self, Case, Data, Input};

/// Exact ops that PyTorch rounds more often than once, by the start of the case's name.
const BY_F64: &[&str] = &[
    // The quotient to the element type, before it is cut.
    "div_trunc/f16",
    "div_trunc/bf16",
    // Every step of the formula to the element type, where f16 also overflows.
    "round_decimals/f16",
    "round_decimals/bf16",
    // A number becomes its reciprocal first.
    "div/f32/number",
    "div/f16/number",
    "div/bf16/number",
    "div/u8/number",
    "div/i32/number",
    "div_trunc/f32/number",
];

/// Ops whose CPU kernels in PyTorch round otherwise than its CUDA kernels, or give zeros of the other sign: where the
/// file was made on a CPU there are no tests of them.
const CUDA_ALONE: &[&str] = &[
    "relu",
    "add",
    "sub",
    "maximum",
    "minimum",
    "remainder",
    "lerp",
    // These give NaN or 0 for NaN, where the CUDA kernels give the gradient.
    "elu_backward",
    "selu_backward",
    "hardswish_backward",
    "hardtanh_backward",
];

/// The bound of gradients: their formulas round at each step, and PyTorch's have other steps.
const STEPS: Accuracy = Accuracy::Ulp(3.0);

fn main() {
    let arguments = Arguments::from_args();
    let groups = golden::groups().unwrap_or_else(|error| {
        eprintln!("error: {error}");
        std::process::exit(2);
    });
    let mut trials = Vec::new();
    for mut cases in Cases::of_devices() {
        let device = cases.device;
        for (name, group) in &groups {
            let mut ops: Vec<&str> = group.cases.iter().map(|case| case.op.as_str()).collect();
            ops.sort_unstable();
            ops.dedup();
            for op in ops {
                // A conversion runs on no device.
                if op == "to" && !device.is_cpu() {
                    continue;
                }
                let of_op: Vec<Case> = group.cases.iter().filter(|case| case.op == op).cloned().collect();
                let dtypes: Vec<DType> = of_op.iter().flat_map(|case| &case.outputs).map(|data| data.dtype).collect();
                let maker = group.device.clone();
                if maker == "cpu" && CUDA_ALONE.contains(&op) && *name != "promotion" {
                    continue;
                }
                let test = move || check_all(&device, &of_op, &maker);
                cases.add(&dtypes, format!("{name}::{op}"), test);
            }
        }
        trials.extend(cases.into_trials());
    }
    libtest_mimic::run(&arguments, trials).exit();
}

fn check_all(device: &Device, cases: &[Case], maker: &str) -> Result<(), Failed> {
    let failures: Vec<String> =
        cases.iter().filter_map(|case| check(device, case).err().map(|why| format!("{}: {why}", case.name))).collect();
    if failures.is_empty() {
        return Ok(());
    }
    Err(format!("{} of {} cases made on {maker}:\n{}", failures.len(), cases.len(), failures.join("\n")).into())
}

fn check(device: &Device, case: &Case) -> Result<(), String> {
    if case.op == "to" {
        return conversion(case);
    }
    let (results, accuracy) = run(device, case)?;
    let is_by_f64 = BY_F64.iter().any(|start| case.name.starts_with(start));
    let accuracy = if is_by_f64 { Accuracy::Ulp(0.5) } else { accuracy };
    if results.len() != case.outputs.len() {
        return Err(format!("{} results, PyTorch has {}", results.len(), case.outputs.len()));
    }
    let is_cancelling = matches!(accuracy, Accuracy::Cancels(_));
    for ((result, theirs), exact) in results.iter().zip(&case.outputs).zip(&case.exact) {
        if (result.dtype(), result.shape().dims()) != (theirs.dtype, theirs.shape.as_slice()) {
            let (dtype, shape) = (result.dtype(), result.shape());
            return Err(format!("{dtype} of shape {shape}, PyTorch gives {} {:?}", theirs.dtype, theirs.shape));
        }
        let bytes = result.to_bytes().map_err(|error| error.to_string())?;
        let n = theirs.bytes.len() / theirs.dtype.size();
        let factors = if is_cancelling { factors(case, n)? } else { vec![0.0; n] };
        compare(accuracy, theirs, exact.as_deref(), &bytes, &factors)
            .map_err(|(at, why)| format!("element {at} of {}: {why}", inputs_at(case, at, n)))?;
    }
    Ok(())
}

/// Returns the magnitudes of the factors of a case's derivatives: the gradient, and for a gated op the other half.
fn factors(case: &Case, n: usize) -> Result<Vec<f64>, String> {
    let wide = |input: &Input| match input {
        Input::Tensor(data) => Ok(data.bytes.chunks_exact(data.dtype.size()).map(|x| value(data.dtype, x)).collect()),
        _ => Err("a gradient of a number".to_owned()),
    };
    let [grad, x, ..] = case.inputs.as_slice() else { return Err("no gradient".to_owned()) };
    let (grad, x): (Vec<f64>, Vec<f64>) = (wide(grad)?, wide(x)?);
    if grad.len() == n {
        return Ok(grad.iter().map(|grad| grad.abs()).collect());
    }
    let cols = case.outputs[0].shape.last().copied().unwrap_or(0);
    let factor = |i: usize| {
        let (row, col) = (i / cols, i % cols);
        let other = if col < cols / 2 { x[i + cols / 2] } else { 1.0 };
        (grad[row * (cols / 2) + col % (cols / 2)] * other).abs()
    };
    Ok((0..n).map(factor).collect())
}

/// An element in f64.
fn value(dtype: DType, bytes: &[u8]) -> f64 {
    with_element!(dtype, E => judge::from_bytes::<E>(bytes).to_f64())
}

/// Compares a result; the first element that is wrong, and why.
fn compare(
    accuracy: Accuracy,
    theirs: &Data,
    exact: Option<&[f64]>,
    bytes: &[u8],
    factors: &[f64],
) -> Result<(), (usize, String)> {
    let dtype = theirs.dtype;
    let size = dtype.size();
    for (i, (ours, theirs)) in bytes.chunks_exact(size).zip(theirs.bytes.chunks_exact(size)).enumerate() {
        if judge::same_bits(dtype, ours, theirs).is_none() {
            continue;
        }
        let (Some(exact), true) = (exact, accuracy != Accuracy::Exact) else {
            return Err((i, format!("{:e}, PyTorch has {:e}", value(dtype, ours), value(dtype, theirs))));
        };
        let error = |bytes| judge::distance(dtype, exact[i], bytes);
        // Half an ULP and the error of the f64 result.
        let allowed = (f64::from(accuracy.bound(dtype)) + 1e-6).max(error(theirs));
        let slack = accuracy.slack(dtype) * factors[i];
        let is_slack = slack.is_finite() && (value(dtype, ours) - exact[i]).abs() <= slack;
        if error(ours) > allowed && !is_slack {
            let (a, b) = (value(dtype, ours), value(dtype, theirs));
            let text = format!("{a:e}, PyTorch has {b:e}, exact is {:e}", exact[i]);
            return Err((i, format!("{text}: {:.3} ULP, at most {allowed:.3}", error(ours))));
        }
    }
    Ok(())
}

/// The operands of an element, where they are all of the result's length.
fn inputs_at(case: &Case, at: usize, n: usize) -> String {
    let show = |input: &Input| match input {
        Input::Tensor(data) if data.bytes.len() == n * data.dtype.size() => {
            let bytes = &data.bytes[at * data.dtype.size()..][..data.dtype.size()];
            format!("{:e}", value(data.dtype, bytes))
        }
        Input::Tensor(data) => format!("{} {:?}", data.dtype, data.shape),
        Input::Number(number) => number.to_string(),
        Input::Missing => "nothing".to_owned(),
    };
    case.inputs.iter().map(show).collect::<Vec<_>>().join(", ")
}

/// Calls the op of a case; its bound.
fn run(device: &Device, case: &Case) -> Result<(Vec<Tensor>, Accuracy), String> {
    let mut tensors = Vec::new();
    for input in &case.inputs {
        tensors.push(match input {
            Input::Tensor(data) => Some(
                Tensor::from_bytes(device, data.dtype, &data.bytes, data.shape.as_slice())
                    .map_err(|error| error.to_string())?,
            ),
            _ => None,
        });
    }
    let operands: Vec<Option<Operand<'_>>> = case
        .inputs
        .iter()
        .zip(&tensors)
        .map(|(input, tensor)| match (input, tensor) {
            (Input::Number(number), _) => Some(Operand::Number(*number)),
            (_, tensor) => tensor.as_ref().map(Operand::from),
        })
        .collect();
    let (results, accuracy) = match case.op.strip_suffix("_backward") {
        Some(forward) => gradients(case, forward, &operands)?,
        None => {
            let (result, accuracy) = call(device, case, &operands)?;
            (result.map(|result| vec![result]), accuracy)
        }
    };
    Ok((results.map_err(|error| error.to_string())?, accuracy))
}

/// The gradients of `forward` for its operands, from the result's gradient and them.
fn gradients(
    case: &Case,
    forward: &str,
    operands: &[Option<Operand<'_>>],
) -> Result<(pointwise::Result<Vec<Tensor>>, Accuracy), String> {
    let one = |result: pointwise::Result<Tensor>| result.map(|result| vec![result]);
    if let ("masked_fill", &[Some(Operand::View(grad)), _, Some(Operand::View(mask)), _]) = (forward, operands) {
        return Ok((one(ops::masked_fill_backward(grad, mask)), Accuracy::Exact));
    }
    let accuracy = |info: &OpInfo| if info.accuracy == Accuracy::Exact { STEPS } else { info.accuracy };
    let def = op(&case.op).ok_or("no such op")?;
    let params = params(&def.info, case)?;
    // Not every argument of the op is one of its gradients.
    let names = op(forward).ok_or("no such op")?.info.arguments();
    let operand = |name: &&str| {
        let at = names.iter().position(|forward| forward == name).map_or(0, |at| at + 1);
        operands.get(at).copied().flatten().ok_or_else(|| format!("no {name}"))
    };
    let needed = def.info.arguments().iter().map(operand).collect::<Result<Vec<_>, _>>()?;
    Ok((def.kernel(&params).run(&needed), accuracy(&def.info)))
}

fn call(
    device: &Device,
    case: &Case,
    operands: &[Option<Operand<'_>>],
) -> Result<(pointwise::Result<Tensor>, Accuracy), String> {
    let size = |name: &str| match case.params.iter().find(|(param, _)| param == name) {
        Some((_, Number::Int(size))) => usize::try_from(*size).map_err(|error| error.to_string()),
        _ => Err(format!("no {name}")),
    };
    let dtype = case.outputs[0].dtype;
    match (case.op.as_str(), operands) {
        ("alibi", []) => {
            let (kernel, length) = (kernels::alibi(), size("seq_len")?);
            return Ok((kernel.run(device, dtype, [size("num_heads")?, length, length]), kernel.def().info.accuracy));
        }
        ("sinusoidal", []) => {
            let kernel = kernels::sinusoidal(SinusoidalLayout::Interleaved);
            return Ok((kernel.run(device, dtype, [size("seq_len")?, size("d_model")?]), kernel.def().info.accuracy));
        }
        ("masked_fill", &[Some(Operand::View(x)), Some(Operand::View(mask)), Some(value)]) => {
            return Ok((ops::masked_fill(x, mask, value), Accuracy::Exact));
        }
        ("clamp_bounds", &[Some(Operand::View(x)), min, max]) => return Ok((ops::clamp(x, min, max), Accuracy::Exact)),
        _ => {}
    }
    let def = op(&case.op).ok_or("no such op")?;
    let params = params(&def.info, case)?;
    let operands: Option<Vec<Operand<'_>>> = operands.iter().copied().collect();
    let results = def.kernel(&params).run(&operands.ok_or("an operand is left out")?);
    Ok((results.map(|mut results| results.swap_remove(0)), def.info.accuracy))
}

/// The parameters of a case, in the op's order.
fn params(info: &OpInfo, case: &Case) -> Result<[Number; MAX_PARAMS], String> {
    let mut set = [Number::Default; MAX_PARAMS];
    for (name, value) in &case.params {
        let at =
            info.params.iter().position(|param| param.name == name).ok_or_else(|| format!("no parameter {name}"))?;
        set[at] = *value;
    }
    Ok(set)
}

/// f8 to f32, and f32 to f8: to nearest. PyTorch makes what lies beyond the range of f8e4m3 NaN; here it saturates.
fn conversion(case: &Case) -> Result<(), String> {
    let [Input::Tensor(x)] = case.inputs.as_slice() else { return Err("takes one tensor".to_owned()) };
    let y = &case.outputs[0];
    with_element!(x.dtype, X => with_element!(y.dtype, Y => {
        for (i, (x, y)) in x.bytes.chunks_exact(size_of::<X>()).zip(y.bytes.chunks_exact(size_of::<Y>())).enumerate() {
            let value = judge::from_bytes::<X>(x).to_f64();
            let ours = <Y as Element>::from_f64(value).to_f64();
            let theirs = judge::from_bytes::<Y>(y).to_f64();
            let saturates = case.outputs[0].dtype == DType::F8E4M3 && value.abs() > 464.0;
            let right = if saturates { theirs.is_nan() && ours == 448_f64.copysign(value) } else {
                ours.to_bits() == theirs.to_bits() || ours.is_nan() && theirs.is_nan()
            };
            if !right {
                return Err(format!("element {i}: {value:e} becomes {ours:e}, PyTorch has {theirs:e}"));
            }
        }
    }));
    Ok(())
}
