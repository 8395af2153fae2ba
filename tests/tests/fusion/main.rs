//! Fused kernels: every op by itself against its formula, random expressions step by step, rows, layouts, errors; on the CPU and
//! a GPU or the emulator.

mod dropout;
mod norms;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Failed, Trial};
use pointwise::fusion::{Expr, Fused, Graph, Lazy, Reduction, Value, eval_all};
use pointwise::kernel::OpDef;
use pointwise::{DType, Device, Strategy, Stream, Tensor, TensorView, TensorViewMut, info, ops};
use pointwise_testkit::fusion::RandomGraph;
use pointwise_testkit::{Op, Random, judge};

type Outcome = Result<(), Failed>;
/// A test on a device.
type Edge = fn(&Device) -> Outcome;

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let devices: &'static [Device] = match Device::for_tests(pointwise::embed::embedded()) {
        Ok(devices) => devices.leak(),
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    };
    let mut trials: Vec<Trial> = Vec::new();
    for def in tests::all().filter(|def| !def.info.is_random()) {
        for &dtype in def.info.types.iter().filter(|dtype| is_fused(**dtype)) {
            let each = move || devices.iter().try_for_each(|device| alone(def, dtype, device));
            trials.push(Trial::test(format!("{}::{dtype}", def.info.name), each));
        }
    }
    let is_exhaustive = std::env::var("POINTWISE_EXHAUSTIVE").as_deref() == Ok("1");
    // From another seed on they are others.
    let seeds = if is_exhaustive { MANY_SEEDS } else { SEEDS };
    let first = std::env::var("POINTWISE_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(0);
    for seed in (first..).take(seeds) {
        trials.push(Trial::test(format!("random::{seed}"), move || random(seed, devices)));
    }
    let edges: [(&str, Edge); 17] = [
        ("bounds", bounds),
        ("gradients", gradients),
        ("second_gradients", second_gradients),
        ("layouts", layouts),
        ("rows", rows),
        ("conversions", conversions),
        ("casts", casts),
        ("several", several),
        ("in_place", in_place),
        ("side_by_side", side_by_side),
        ("empty", empty),
        ("numbers", numbers),
        ("norms", norms::norms),
        ("dropout", dropout::alone),
        ("dropout_of_rows", dropout::of_rows),
        ("dropout_of_views", dropout::of_views),
        ("dropout_gradient", dropout::gradient),
    ];
    for (name, edge) in edges {
        let each = move || devices.iter().try_for_each(edge);
        trials.push(Trial::test(format!("edges::{name}"), each));
    }
    if is_exhaustive {
        trials.push(Trial::test("edges::unloading", move || devices.iter().try_for_each(unloading)));
    }
    // There is no instruction for 8-bit floats.
    trials.push(Trial::test("edges::casts_by_integers", || match Device::emulated_as(80) {
        Ok(device) => casts(&device),
        Err(_) => Ok(()),
    }));
    trials.push(Trial::test("edges::same_bits", move || same_bits(devices)));
    trials.push(Trial::test("edges::errors", errors));
    trials.push(Trial::test("edges::dropout_errors", dropout::errors));
    trials.push(Trial::test("edges::methods", methods));
    libtest_mimic::run(&arguments, trials).exit_code()
}

/// Random graphs: each seed is eight. `POINTWISE_EXHAUSTIVE=1` tries many, `POINTWISE_SEED` is the first.
const SEEDS: usize = 24;
const MANY_SEEDS: usize = 200;

fn is_fused(dtype: DType) -> bool {
    !matches!(dtype, DType::F8E4M3 | DType::F8E5M2)
}

/// The kernel of one op, with its defaults.
fn of_op(def: &'static OpDef, dtype: DType) -> pointwise::Result<Fused<'static>> {
    let mut graph = Graph::new();
    let mut args = Vec::new();
    for k in 0..def.info.operands.len() {
        args.push(graph.operand(def.info.operand_type(k, dtype), false)?);
    }
    let results = graph.op(def, &args, &[])?;
    graph.fuse(&results)
}

/// An op as a fused kernel keeps its bound, and is the op, bit for bit, where the op is exact.
fn alone(def: &'static OpDef, dtype: DType, device: &Device) -> Outcome {
    let (op, fused) = (Op::from(def), of_op(def, dtype)?);
    // The emulator takes longer than a processor.
    let most = if device.is_cpu() { usize::MAX } else { 4099 };
    let mut operands = op.operands(dtype, 5);
    for (k, bytes) in operands.iter_mut().enumerate() {
        let size = def.info.operand_type(k, dtype).size();
        let count = bytes.len() / size;
        let step = count.div_ceil(most).max(1);
        *bytes = bytes.chunks_exact(size).step_by(step).flatten().copied().collect();
    }
    let mut tensors = Vec::new();
    for (k, bytes) in operands.iter().enumerate() {
        let own = def.info.operand_type(k, dtype);
        tensors.push(Tensor::from_bytes(device, own, bytes, [bytes.len() / own.size()])?);
    }
    let views: Vec<TensorView<'_>> = tensors.iter().map(Tensor::view).collect();
    let mut results = Vec::new();
    for y in fused.run(&views)? {
        results.push(y.to_bytes()?);
    }
    if def.info.properties.moves && dtype.is_float() {
        // A NaN of 16 bits is converted to f32 and back, and need not keep its bits.
        let wanted = op.run(&Device::cpu(), dtype, &[], Strategy::Auto, &operands)?;
        let different = judge::same_bits(dtype, &wanted[0], &results[0]);
        return different.map_or(Ok(()), |at| Err(format!("{} of {dtype}: element {at}", def.info.name).into()));
    }
    for report in op.judge(dtype, &[], &operands, &results)? {
        // Fewer codes than all do not have the share of right results that all have.
        let accuracy = pointwise_testkit::calls::accuracy(&def.info);
        if !report.keeps(accuracy, def.info.result_type(0, dtype), false) {
            return Err(format!("{} of {dtype} on {device}: {report}", def.info.name).into());
        }
    }
    Ok(())
}

/// Eight graphs of random steps.
fn random(seed: u64, devices: &[Device]) -> Outcome {
    let dtype = [DType::F32, DType::BF16, DType::F16][(seed % 3) as usize];
    let mut random = Random::new(0xF05E_0000 + seed);
    (0..8).try_for_each(|_| Ok(RandomGraph::new(dtype, &mut random)?.check(devices)?))
}

fn tensor(device: &Device, dtype: DType, shape: &[usize], seed: u64) -> pointwise::Result<Tensor> {
    let n = shape.iter().product();
    let mut random = Random::new(seed);
    let values: Vec<f32> = (0..n).map(|_| random.normal() as f32).collect();
    Tensor::from_slice(&Device::cpu(), &values, shape)?.view().to_dtype(dtype)?.to_device(device)
}

/// Returns an error if tensors differ in a bit.
fn same(what: &str, a: &Tensor, b: &Tensor) -> Outcome {
    if a.shape() != b.shape() || a.dtype() != b.dtype() {
        return Err(format!("{what}: {} {} and {} {}", a.dtype(), a.shape(), b.dtype(), b.shape()).into());
    }
    match judge::same_bits(a.dtype(), &a.to_bytes()?, &b.to_bytes()?) {
        None => Ok(()),
        Some(at) => Err(format!("{what}: element {at} differs").into()),
    }
}

/// Operands of all layouts: what is computed one by one is the same.
fn layouts(device: &Device) -> Outcome {
    for dtype in [DType::F32, DType::BF16, DType::F16] {
        for [rows, columns] in [[6, 64], [5, 33], [1, 8], [3, 1], [1, 1], [300, 16]] {
            let x = tensor(device, dtype, &[rows, columns], 1)?;
            let wide = tensor(device, dtype, &[rows, 2 * columns], 2)?;
            let turned = tensor(device, dtype, &[columns, rows], 3)?;
            let row = tensor(device, dtype, &[columns], 4)?;
            let column = tensor(device, dtype, &[rows, 1], 5)?;
            let one = tensor(device, dtype, &[], 6)?;
            let shifted = tensor(device, dtype, &[rows * columns + 1], 7)?;
            let others: [TensorView<'_>; 6] = [
                wide.narrow(1, columns, columns)?,
                turned.transpose(0, 1)?,
                row.view(),
                column.view(),
                one.view(),
                shifted.narrow(0, 1, rows * columns)?.reshape([rows, columns])?,
            ];
            for (k, other) in others.iter().enumerate() {
                let got = Expr::maximum(&x.lazy(), *other).add(&x).eval()?;
                let rounded = ops::add(&ops::maximum(&x, other)?, &x)?;
                same(&format!("{dtype} [{rows}, {columns}] beside layout {k} on {device}"), &got, &rounded)?;
            }
        }
    }
    let cube = tensor(device, DType::F32, &[4, 6, 8], 8)?;
    let turned = cube.permute(&[2, 0, 1])?;
    let side = tensor(device, DType::F32, &[8, 1, 6], 9)?;
    let got = (turned.lazy() * &side).eval()?;
    same("a cube", &got, &ops::mul(turned, &side)?)
}

/// Norms and softmax of ops and reductions, against f64.
fn rows(device: &Device) -> Outcome {
    for dtype in [DType::F32, DType::BF16] {
        for len in [1, 5, 32, 257, 512, 1024, 4096, 4104, 9000, 16_384] {
            let x = tensor(device, dtype, &[3, len], 11)?;
            let weight = tensor(device, dtype, &[len], 12)?;
            let lazy = x.lazy();
            let norm = (&lazy * ((&lazy * &lazy).row_mean() + 1e-6).rsqrt() * &weight).eval()?;
            let shifted = (&lazy - lazy.row_max()).exp();
            let sums = shifted.row_sum();
            let softmax = (&shifted / &sums).eval()?;
            let all = eval_all([&lazy.row_sum(), &lazy.row_min()])?;
            let number = |t: &Tensor| -> pointwise::Result<Vec<f64>> {
                let t = t.view().to_dtype(DType::F32)?.to_device(&Device::cpu())?;
                Ok(t.to_vec::<f32>()?.into_iter().map(f64::from).collect())
            };
            let (x, w) = (number(&x)?, number(&weight)?);
            let (norm, softmax) = (number(&norm)?, number(&softmax)?);
            let (sum, min) = (number(&all[0])?, number(&all[1])?);
            let bound = if dtype == DType::F32 { 4e-6 } else { 4.1e-3 };
            for r in 0..3 {
                let row = &x[r * len..(r + 1) * len];
                let mean = row.iter().map(|x| x * x).sum::<f64>() / len as f64;
                let most = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                let total: f64 = row.iter().map(|x| (x - most).exp()).sum();
                let near = |what: &str, got: f64, wanted: f64, scale: f64| -> Outcome {
                    if (got - wanted).abs() <= bound * scale {
                        return Ok(());
                    }
                    Err(format!("{what} of {dtype}, {len} on {device}: {got}, {wanted}").into())
                };
                for i in 0..len {
                    let wanted = row[i] / (mean + 1e-6).sqrt() * w[i];
                    near("rms_norm", norm[r * len + i], wanted, wanted.abs())?;
                    let wanted = (row[i] - most).exp() / total;
                    near("softmax", softmax[r * len + i], wanted, wanted)?;
                }
                near("sum", sum[r], row.iter().sum(), row.iter().map(|x| x.abs()).sum())?;
                if min[r] != row.iter().copied().fold(f64::INFINITY, f64::min) {
                    return Err(format!("min of {len}").into());
                }
            }
        }
    }
    Ok(())
}

/// Sums of f32 by exact ops have the same bits on every device.
fn same_bits(devices: &[Device]) -> Outcome {
    for len in [3, 40, 1000, 1024, 4096, 5000] {
        let mut results: Vec<Tensor> = Vec::new();
        for device in devices {
            let x = tensor(device, DType::F32, &[4, len], 21)?;
            let lazy = x.lazy();
            let y = (&lazy / ((&lazy * &lazy).row_mean() + 1e-6).sqrt()).eval()?;
            results.push(y.to_device(&Device::cpu())?);
        }
        for (device, result) in devices.iter().zip(&results).skip(1) {
            same(&format!("rows of {len} on {device}"), result, &results[0])?;
        }
    }
    Ok(())
}

/// Types that meet, conversions, and rounding in between.
fn conversions(device: &Device) -> Outcome {
    let ints = Tensor::from_slice(device, &[1_i32, -2, 3, 300], [4])?;
    let bytes = Tensor::from_slice(device, &[1_u8, 2, 255, 0], [4])?;
    let wide = Tensor::from_slice(device, &[1_i64 << 40, -5, 0, 7], [4])?;
    let halves = tensor(device, DType::F16, &[4], 31)?;
    let floats = tensor(device, DType::F32, &[4], 32)?;
    let mask = ops::gt(&floats, 0.0)?;
    let pairs: [(&str, Expr<'_>, Tensor); 8] = [
        ("i32 + f16", ints.lazy() + &halves, ops::add(&ints, &halves)?),
        ("f16 + f32", halves.lazy() + &floats, ops::add(&halves, &floats)?),
        ("u8 + i32", bytes.lazy() + &ints, ops::add(&bytes, &ints)?),
        ("i64 * i32", wide.lazy() * &ints, ops::mul(&wide, &ints)?),
        ("exp(i32)", ints.lazy().exp(), ops::exp(&ints)?),
        ("f16 / i64", halves.lazy() / &wide, ops::div(&halves, &wide)?),
        ("where", mask.lazy().where_cond(&floats, &ints), ops::where_cond(&mask, &floats, &ints)?),
        ("to bf16", floats.lazy().to_dtype(DType::BF16), floats.view().to_dtype(DType::BF16)?),
    ];
    for (what, expr, wanted) in pairs {
        same(&format!("{what} on {device}"), &expr.eval()?, &wanted)?;
    }
    let x = tensor(device, DType::BF16, &[64], 33)?;
    let product = x.lazy() * &x;
    let rounded = ops::add(&ops::mul(&x, &x)?, &x)?;
    same("stored", &(product.stored() + &x).eval()?, &rounded)?;
    if judge::same_bits(DType::BF16, &(product + &x).eval()?.to_bytes()?, &rounded.to_bytes()?).is_none() {
        return Err("a value that is not stored was rounded".into());
    }
    Ok(())
}

/// Conversions between all types are those of tensors: of numbers in the range and beyond it, of all codes of 8 bits, as vectors and
/// as single elements. A chain stores 8 bits, and another reads them.
fn casts(device: &Device) -> Outcome {
    let mut values = vec![
        f32::NAN,
        f32::INFINITY,
        f32::NEG_INFINITY,
        0.0,
        -0.0,
        448.0,
        464.0,
        464.1,
        61_439.0,
        61_440.0,
        3e9,
        -3e9,
        1e20,
    ];
    values.extend((-300..300).map(|k| k as f32 / 2.0));
    values.extend((0..128_u32).map(|k| f32::from_bits((k << 20) | 0x3800_0000 | (k * 4099))));
    values.extend((0..8).map(|k| k as f32 * 2.0_f32.powi(-11)));
    let floats = Tensor::from_slice(&Device::cpu(), &values, [values.len()])?;
    let wide: Vec<i64> = (-140..140).map(|k| k * 251).chain([1 << 31, -(1 << 40), i64::MAX, i64::MIN]).collect();
    let whole = Tensor::from_slice(&Device::cpu(), &wide, [wide.len()])?;
    let codes: Vec<u8> = (0..=255).collect();
    for from in DType::ALL {
        let x = match from {
            DType::F8E4M3 | DType::F8E5M2 => Tensor::from_bytes(&Device::cpu(), from, &codes, [codes.len()])?,
            _ if from.is_float() => floats.view().to_dtype(from)?,
            _ => whole.view().to_dtype(from)?,
        };
        let x = x.to_device(device)?;
        for to in DType::ALL.into_iter().filter(|to| *to != from) {
            for skipped in [0, 1] {
                let x = x.narrow(0, skipped, x.numel() - skipped)?;
                // A whole number of 64 bits goes to f32 first, as in PyTorch.
                let by = if from == DType::I64 && to.is_float() { DType::F32 } else { from };
                let wanted = x.to_dtype(by)?.view().to_dtype(to)?;
                same(&format!("{from} to {to} on {device}"), &x.lazy().to_dtype(to).eval()?, &wanted)?;
                // A step that reads it.
                let back = x.lazy().to_dtype(to).to_dtype(DType::F32) + 1.0;
                let wanted = ops::add(&wanted.view().to_dtype(DType::F32)?, 1.0)?;
                same(&format!("{from} to {to} and back on {device}"), &back.eval()?, &wanted)?;
            }
        }
    }
    let x = tensor(device, DType::BF16, &[3, 40], 35)?;
    let scaled = ops::mul(&x.view().to_dtype(DType::F32)?, 3.0)?;
    for to in [DType::I8, DType::F8E4M3, DType::F8E5M2] {
        let stored = (x.lazy().to_dtype(DType::F32) * 3.0).to_dtype(to).eval()?;
        same("stored", &stored, &scaled.view().to_dtype(to)?)?;
        let read = stored.lazy().to_dtype(DType::BF16) * &x;
        same("read", &read.eval()?, &ops::mul(&stored.view().to_dtype(DType::BF16)?, &x)?)?;
    }
    // Within the bound that is composed.
    let mut graph = Graph::new();
    let x = graph.operand(DType::F32, false)?;
    let y = add(&mut graph, "silu", &[x])?;
    let eight = graph.to_dtype(y, DType::F8E4M3)?;
    let stored = graph.to_dtype(eight, DType::F32)?;
    let y = add(&mut graph, "exp", &[stored])?;
    let whole = graph.to_dtype(x, DType::I8)?;
    let whole = graph.to_dtype(whole, DType::F32)?;
    let z = add(&mut graph, "exp", &[whole])?;
    for report in graph.fuse(&[y, z, eight])?.check(&[tensor(device, DType::F32, &[400], 36)?.view()])? {
        if report.beyond > 0 || report.elements != 400 {
            return Err(format!("casts on {device}: {report:?}").into());
        }
    }
    Ok(())
}

/// Several results, of elements and rows, of different types.
fn several(device: &Device) -> Outcome {
    let [x, y] = [41, 42].map(|seed| tensor(device, DType::F32, &[5, 24], seed)).map(|it| it.map_err(Failed::from));
    let (x, y) = (x?, y?);
    let sum = x.lazy() + &y;
    let mean = sum.row_mean();
    let all = eval_all([&sum, &(&sum - &mean), &mean, &sum.gt(&mean)])?;
    same("sum", &all[0], &ops::add(&x, &y)?)?;
    same("centred", &all[1], &ops::sub(&all[0], &all[2])?)?;
    same("above", &all[3], &ops::gt(&all[0], &all[2])?)?;
    if all[2].shape().dims() != [5, 1] {
        return Err(format!("the mean has the shape {}", all[2].shape()).into());
    }
    Ok(())
}

/// A result may be an operand's memory.
fn in_place(device: &Device) -> Outcome {
    for n in [4096, 1001] {
        let (mut x, y) = (tensor(device, DType::F32, &[n], 51)?, tensor(device, DType::F32, &[n], 52)?);
        let wanted = ops::mul(&ops::add(&x, &y)?, &y)?;
        let mut graph = Graph::new();
        let (a, b) = (graph.operand(DType::F32, false)?, graph.operand(DType::F32, false)?);
        let def = |name: &str| info::op(name).ok_or("no such op");
        let sum = graph.op(def("add")?, &[a, b], &[])?[0];
        let product = graph.op(def("mul")?, &[sum, b], &[])?[0];
        let fused = graph.fuse(&[product])?;
        let pointer = x.device_ptr();
        // SAFETY: the view is of the tensor that is written; both are whole.
        let own = x.copy()?;
        fused.run_into(&[own.view(), y.view()], &mut [x.view_mut()?])?;
        same("written", &x, &wanted)?;
        if x.device_ptr() != pointer {
            return Err("the result moved".into());
        }
    }
    // A result may be an operand itself: a copy.
    let mut graph = Graph::new();
    let a = graph.operand(DType::F32, false)?;
    let double = add(&mut graph, "add", &[a, a])?;
    let fused = graph.fuse(&[double, a])?;
    let (own, wanted) = (tensor(device, DType::F32, &[1001], 53)?, tensor(device, DType::F32, &[1001], 53)?);
    let results = fused.run(&[own.view()])?;
    same("a copy of the operand", &results[1], &wanted)?;
    same("beside its double", &results[0], &ops::add(&wanted, &wanted)?)
}

/// Results may be parts of one buffer: a row of one beside a row of the other.
fn side_by_side(device: &Device) -> Outcome {
    for (rows, len) in [(8, 64), (5, 24), (3, 7)] {
        let (x, y) = (tensor(device, DType::F32, &[rows, len], 61)?, tensor(device, DType::F32, &[rows, len], 62)?);
        let whole = Tensor::zeros(device, DType::F32, [rows, 2 * len])?;
        let mut graph = Graph::new();
        let (a, b) = (graph.operand(DType::F32, false)?, graph.operand(DType::F32, false)?);
        let (sum, product) = (add(&mut graph, "add", &[a, b])?, add(&mut graph, "mul", &[a, b])?);
        let fused = graph.fuse(&[sum, product])?;
        let part = |start: usize| {
            let at = whole.device_ptr() + (start * size_of::<f32>()) as u64;
            let strides = [2 * len as i64, 1];
            // SAFETY: an address within `whole`, which nothing else reads or writes meanwhile.
            unsafe {
                match device.is_cpu() {
                    true => TensorViewMut::from_raw_parts(
                        device,
                        std::ptr::with_exposed_provenance_mut::<u8>(at as usize),
                        DType::F32,
                        [rows, len],
                        &strides,
                    ),
                    false => TensorViewMut::from_raw_parts(device, at, DType::F32, [rows, len], &strides),
                }
            }
        };
        fused.run_into(&[x.view(), y.view()], &mut [part(0)?, part(len)?])?;
        same("the first part", &whole.narrow(1, 0, len)?.to_tensor()?, &ops::add(&x, &y)?)?;
        same("the second part", &whole.narrow(1, len, len)?.to_tensor()?, &ops::mul(&x, &y)?)?;
        if fused.run_into(&[x.view(), y.view()], &mut [part(0)?, part(len / 2)?]).is_ok() {
            return Err("results that share elements: no error".into());
        }
    }
    Ok(())
}

/// Tensors without elements; rows without elements have the sum 0.
fn empty(device: &Device) -> Outcome {
    let none = Tensor::zeros(device, DType::F32, [0, 4])?;
    let y = (none.lazy() + 1.0).eval()?;
    let sums = Tensor::zeros(device, DType::F32, [3, 0])?.lazy().row_sum().eval()?;
    if y.shape().dims() != [0, 4] || sums.to_vec::<f32>()? != [0.0; 3] {
        return Err("of nothing".into());
    }
    Ok(())
}

/// Graphs that differ in numbers alone are one structure; numbers and parameters reach the kernel.
fn numbers(device: &Device) -> Outcome {
    let x = tensor(device, DType::F32, &[100], 61)?;
    for (a, b) in [(1.5, 0.1), (-2.0, 3.0), (0.0, 1e-3)] {
        let got = (x.lazy() * a).elu(b).eval()?;
        same("elu", &got, &ops::elu(&ops::mul(&x, a)?, b)?)?;
    }
    let ints = Tensor::from_slice(device, &[3_i64, -4], [2])?;
    let got = (ints.lazy() * (1_i64 << 40)).eval()?;
    if got.to_vec::<i64>()? != [3 << 40, -4 << 40] {
        return Err("a large integer".into());
    }
    Ok(())
}

/// Chains, rows and their gradients keep the bound that is composed of their ops' bounds. It is no wider than it must be: a fault of some
/// ULP is beyond.
fn bounds(device: &Device) -> Outcome {
    for dtype in [DType::F32, DType::BF16, DType::F16] {
        let mut graph = Graph::new();
        let (x, w) = (graph.operand(dtype, false)?, graph.operand(dtype, false)?);
        let gated = add(&mut graph, "silu", &[x])?;
        let product = add(&mut graph, "mul", &[gated, w])?;
        let y = add(&mut graph, "tanh", &[product])?;
        let square = add(&mut graph, "mul", &[x, x])?;
        let mean = graph.reduce(Reduction::Mean, square)?;
        let norm = add(&mut graph, "rsqrt", &[mean])?;
        let scaled = add(&mut graph, "mul", &[x, norm])?;
        let above = add(&mut graph, "gt", &[x, w])?;
        let fused = graph.fuse(&[y, scaled, above])?;
        let [x, w] = [91, 92].map(|seed| tensor(device, dtype, &[5, 1000], seed));
        let (x, w) = (x?, w?);
        let reports = fused.check(&[x.view(), w.view()])?;
        for (k, report) in reports.iter().enumerate() {
            let is_wide = k < 2 && !(0.02..=1.0).contains(&report.largest_share);
            if report.beyond > 0 || report.elements != 5000 || is_wide {
                return Err(format!("result {k} of {dtype} on {device}: {report:?}").into());
            }
        }
        let grads = [93, 94].map(|seed| tensor(device, dtype, &[5, 1000], seed));
        let [a, b] = grads;
        for (k, report) in fused.backward()?.check(&[a?.view(), b?.view(), x.view(), w.view()])?.iter().enumerate() {
            if report.beyond > 0 {
                return Err(format!("gradient {k} of {dtype} on {device}: {report:?}").into());
            }
        }
    }
    Ok(())
}

/// The kernel of a formula, by a function of a graph and its operands.
fn fused_of(
    count: usize,
    make: impl Fn(&mut Graph, &[Value]) -> pointwise::Result<Value>,
) -> pointwise::Result<Fused<'static>> {
    let mut graph = Graph::new();
    let mut operands = Vec::new();
    for _ in 0..count {
        operands.push(graph.operand(DType::F32, false)?);
    }
    let y = make(&mut graph, &operands)?;
    graph.fuse(&[y])
}

/// Adds an op of the family.
fn add(graph: &mut Graph, name: &str, args: &[Value]) -> pointwise::Result<Value> {
    let def = info::op(name).unwrap_or_else(|| panic!("no op {name}"));
    Ok(graph.op(def, args, &[])?[0])
}

/// More kernels than stay loaded: each computes, those of before do again, and one that a graph has captured stays.
fn unloading(device: &Device) -> Outcome {
    const KERNELS: usize = 4096 + 64;
    if device.is_cpu() {
        return Ok(());
    }
    let chain = |k: usize| {
        fused_of(1, |graph, x| {
            (0..usize::BITS - KERNELS.leading_zeros())
                .try_fold(x[0], |y, bit| add(graph, if k >> bit & 1 == 1 { "neg" } else { "abs" }, &[y]))
        })
    };
    let x = Tensor::from_slice(device, &[-7.0_f32, -1.0, 0.5, 2.0], [4])?;
    let on_cpu = Tensor::from_slice(&Device::cpu(), &[-7.0_f32, -1.0, 0.5, 2.0], [4])?;
    let wanted = |k: usize| chain(k)?.run(&[on_cpu.view()])?[0].to_vec::<f32>();
    let mut captured = Tensor::zeros(device, DType::F32, [4])?;
    chain(0)?.run_into(&[x.view()], &mut [captured.view_mut()?])?;
    let stream = Stream::new(device)?;
    stream.wait_for(&device.stream())?;
    let mut graph =
        stream.capture(|stream| chain(0)?.on_stream(stream).run_into(&[x.view()], &mut [captured.view_mut()?]))?;
    for k in (0..KERNELS).chain(0..64) {
        if chain(k)?.run(&[x.view()])?[0].to_vec::<f32>()? != wanted(k)? {
            return Err(format!("kernel {k} on {device}").into());
        }
    }
    captured.copy_from_slice(&[-1.0_f32; 4])?;
    graph.launch(&stream)?;
    if captured.to_vec::<f32>()? != wanted(0)? {
        return Err(format!("the captured kernel on {device}").into());
    }
    Ok(())
}

/// Gradients of chains and rows, against central differences and against the family's.
fn gradients(device: &Device) -> Outcome {
    let (rows, len) = (3, 40);
    let chain = fused_of(3, |graph, x| {
        let gated = add(graph, "silu", &[x[0]])?;
        let half = graph.number(0.5);
        let scaled = add(graph, "mul", &[gated, half])?;
        let product = add(graph, "mul", &[scaled, x[1]])?;
        let bound = add(graph, "tanh", &[product])?;
        add(graph, "add", &[bound, x[2]])
    })?;
    let norm = fused_of(2, |graph, x| {
        let square = add(graph, "mul", &[x[0], x[0]])?;
        let mean = graph.reduce(Reduction::Mean, square)?;
        let eps = graph.number(1e-6);
        let shifted = add(graph, "add", &[mean, eps])?;
        let rstd = add(graph, "rsqrt", &[shifted])?;
        let y = add(graph, "mul", &[x[0], rstd])?;
        add(graph, "mul", &[y, x[1]])
    })?;
    let softmax = fused_of(1, |graph, x| {
        let most = graph.reduce(Reduction::Max, x[0])?;
        let centred = add(graph, "sub", &[x[0], most])?;
        let e = add(graph, "exp", &[centred])?;
        let sum = graph.reduce(Reduction::Sum, e)?;
        add(graph, "div", &[e, sum])
    })?;
    for (what, fused, count) in [("chain", &chain, 3), ("norm", &norm, 2), ("softmax", &softmax, 1)] {
        let mut given = Vec::new();
        for k in 0..=count {
            given.push(tensor(device, DType::F32, &[rows, len], 70 + k)?);
        }
        let views: Vec<TensorView<'_>> = given.iter().map(Tensor::view).collect();
        let gradients = fused.backward()?.run(&views)?;
        let [grad, operands @ ..] = &given[..] else { return Err("no operands".into()) };
        let weights = grad.to_vec::<f32>()?;
        // The sum of the results, weighted by the gradient, where one element is moved.
        let value = |k: usize, at: usize, by: f32| -> Result<f64, Failed> {
            let mut moved = Vec::new();
            for (i, operand) in operands.iter().enumerate() {
                let mut values = operand.to_vec::<f32>()?;
                if i == k {
                    values[at] += by;
                }
                moved.push(Tensor::from_slice(device, &values, [rows, len])?);
            }
            let views: Vec<TensorView<'_>> = moved.iter().map(Tensor::view).collect();
            let y = fused.run(&views)?[0].to_vec::<f32>()?;
            Ok(y.iter().zip(&weights).map(|(y, w)| f64::from(*y) * f64::from(*w)).sum())
        };
        for (k, gradient) in gradients.iter().enumerate() {
            let gradient = gradient.to_vec::<f32>()?;
            for at in [0, 17, len + 5, rows * len - 1] {
                let slope = (value(k, at, 0.01)? - value(k, at, -0.01)?) / 0.02;
                let got = f64::from(gradient[at]);
                if (slope - got).abs() > 2e-3 * slope.abs().max(1.0) {
                    return Err(format!("{what}, operand {k}, element {at} on {device}: {got}, {slope}").into());
                }
            }
        }
    }
    let [x, weight, grad] = [80, 81, 82].map(|seed| tensor(device, DType::F32, &[rows, len], seed));
    let (x, weight, grad) = (x?, weight?, grad?);
    let own = norm.backward()?.run(&[grad.view(), x.view(), weight.view()])?;
    let (of_x, of_weight) = ops::rms_norm_backward(&grad, &x, &weight, 1e-6, 0.0, false)?;
    for (what, own, wanted) in [("x", &own[0], of_x), ("weight", &own[1], of_weight)] {
        for (a, b) in own.to_vec::<f32>()?.iter().zip(wanted.to_vec::<f32>()?) {
            if (a - b).abs() > 1e-5 * b.abs().max(1.0) {
                return Err(format!("the gradient of {what}: {a}, {b}").into());
            }
        }
    }
    Ok(())
}

/// The gradient of a mean's gradient, which is `grad / len`.
fn second_gradients(device: &Device) -> Outcome {
    let (rows, len) = (3, 40);
    let mean = fused_of(1, |graph, x| graph.reduce(Reduction::Mean, x[0]))?;
    let [above, x] = [110, 111].map(|seed| tensor(device, DType::F32, &[rows, len], seed));
    let (above, x, grad) = (above?, x?, tensor(device, DType::F32, &[rows, 1], 112)?);
    let found = mean.backward()?.backward()?.run(&[above.view(), grad.view(), x.view()])?;
    let (above, by_grad, by_x) = (above.to_vec::<f32>()?, found[0].to_vec::<f32>()?, found[1].to_vec::<f32>()?);
    for (above, by_grad) in above.chunks(len).zip(by_grad.chunks(len)) {
        let (wanted, got) = (above.iter().sum::<f32>() / len as f32, by_grad.iter().sum::<f32>());
        if (wanted - got).abs() > 1e-5 {
            return Err(format!("the gradient by grad on {device}: {got}, {wanted}").into());
        }
    }
    if by_x.iter().any(|x| *x != 0.0) { Err(format!("the gradient by x on {device}: {by_x:?}").into()) } else { Ok(()) }
}

/// Bad input is a typed error.
fn errors() -> Outcome {
    let cpu = Device::cpu();
    let x = Tensor::zeros(&cpu, DType::F32, [2, 3])?;
    let other = Tensor::zeros(&cpu, DType::F32, [4])?;
    let bytes = Tensor::zeros(&cpu, DType::F8E4M3, [3])?;
    let refused: [(&str, pointwise::Result<Tensor>); 5] = [
        ("shapes", (x.lazy() + &other).eval()),
        ("fp8", bytes.lazy().exp().eval()),
        ("a number", Expr::from(1.0).eval()),
        ("two reductions of one", x.lazy().row_sum().row_sum().eval()),
        ("a condition", x.lazy().where_cond(&x, &x).eval()),
    ];
    for (what, result) in refused {
        if result.is_ok() {
            return Err(format!("{what}: no error").into());
        }
    }
    let mut long = x.lazy();
    for _ in 0..200 {
        long = long + 1.0;
    }
    let error = long.eval().err().ok_or("a long chain: no error")?.to_string();
    if !error.contains("steps") {
        return Err(error.into());
    }
    // So long that its parts could not be dropped by recursion.
    for _ in 0..1_000_000 {
        long = -long;
    }
    let error = long.eval().err().ok_or("a very long chain: no error")?.to_string();
    if !error.contains("chain") {
        return Err(error.into());
    }
    Ok(())
}

/// Each op that computes element by element has a body, where kernels are embedded.
fn methods() -> Outcome {
    if pointwise::embed::embedded().is_empty() {
        return Ok(());
    }
    for def in info::all().filter(|def| !def.info.is_random()) {
        for &dtype in def.info.types.iter().filter(|dtype| is_fused(**dtype)) {
            let fused = of_op(def, dtype)?;
            let operands: Vec<Tensor> = (0..def.info.operands.len())
                .map(|k| Tensor::zeros(&Device::cpu(), def.info.operand_type(k, dtype), [16]))
                .collect::<pointwise::Result<_>>()?;
            let views: Vec<TensorView<'_>> = operands.iter().map(Tensor::view).collect();
            for sm in [80, 90] {
                let text = fused.ptx(&views, sm)?;
                if text.contains(".local") || text.contains("call") {
                    return Err(format!("{} of {dtype}: not of registers alone", def.info.name).into());
                }
            }
        }
    }
    Ok(())
}
