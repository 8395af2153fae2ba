//! Ops on rows: every op of the family against its formula in f64, on the CPU and a GPU or the emulator; the same bits in every
//! batch, at every place in memory and on every device; rows at the ends of what there is.

use std::process::ExitCode;

use libtest_mimic::{Arguments, Failed, Trial};
use pointwise::kernel::OpDef;
use pointwise::{DType, Device, Number, Operand, Tensor, TensorView, info, ops};
use pointwise_testkit::{check_op, inputs, judge};

type Outcome = Result<(), Failed>;
/// A test of rows that are not like others, on a device.
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
    for def in info::every().filter(|def| def.info.is_of_rows()) {
        let name = def.info.name;
        if !def.info.is_gradient() {
            trials.push(Trial::test(format!("{name}::formula"), move || check_op(def, devices).map_err(Failed::from)));
        }
        for &dtype in def.info.types {
            trials.push(Trial::test(format!("{name}::{dtype}::bits"), move || bits(def, dtype, devices)));
        }
    }
    let edges: [(&str, Edge); 16] = [
        ("many_ways", many_ways),
        ("labels", labels),
        ("groups", groups),
        ("causal", causal),
        ("large_mean", large_mean),
        ("strange_rows", strange_rows),
        ("empty", empty),
        ("in_place", in_place),
        ("layouts", layouts),
        ("rounding", rounding),
        ("numbers", numbers),
        ("many_rows", many_rows),
        ("long_rows", long_rows),
        ("long_sums", long_sums),
        ("sums", sums),
        ("workspace", workspace),
    ];
    for (name, edge) in edges {
        let each = move || devices.iter().try_for_each(edge);
        trials.push(Trial::test(format!("edges::{name}"), each));
    }
    // Elsewhere it would take minutes.
    if let Some(device) = devices.iter().find(|device| device.is_cuda() && !device.is_emulated()) {
        trials.push(Trial::test("edges::beyond_2_to_31", move || beyond_31_bits(device)));
    }
    trials.push(Trial::test("edges::errors", errors));
    libtest_mimic::run(&arguments, trials).exit_code()
}

/// Lengths of one thread, parts of a warp, a warp, several, and too long to be held; odd ones, whose rows begin at any element.
const LENGTHS: [usize; 9] = [5, 48, 77, 256, 1000, 1001, 1024, 2056, 17_000];

/// The same bits of a row on all devices, alone and in a batch, and where rows are no aligned vectors.
fn bits(def: &'static OpDef, dtype: DType, devices: &[Device]) -> Outcome {
    let info = &def.info;
    for len in LENGTHS {
        let rows = if len > 2000 { 2 } else { 3 };
        let operands: Vec<(DType, Vec<u8>)> = (0..info.operands.len())
            .map(|k| {
                let (of, count) = (info.operand_type(k, dtype), if info.is_row_operand(k) { rows } else { rows * len });
                (of, inputs::mixed(DType::F32, count, k as u64).chunks(4).flat_map(|x| element(of, x)).collect())
            })
            .collect();
        let shape = |k: usize, rows: usize| if info.is_row_operand(k) { vec![rows] } else { vec![rows, len] };
        let run = |device: &Device, first: usize, count: usize, apart: bool| -> pointwise::Result<Vec<Vec<u8>>> {
            let tensors = operands.iter().enumerate().map(|(k, (of, bytes))| {
                let each = bytes.len() / rows;
                let part = &bytes[first * each..(first + count) * each];
                if !apart || info.is_row_operand(k) {
                    return Tensor::from_bytes(device, *of, part, shape(k, count));
                }
                // An element before each row: no vector is aligned.
                let wide: Vec<u8> = part.chunks(each).flat_map(|row| [&row[..of.size()], row].concat()).collect();
                Tensor::from_bytes(device, *of, &wide, [count, len + 1])
            });
            let tensors = tensors.collect::<pointwise::Result<Vec<_>>>()?;
            let views = tensors.iter().enumerate().map(|(k, tensor)| match apart && !info.is_row_operand(k) {
                true => tensor.view().narrow(1, 1, len).map(Operand::View),
                false => Ok(Operand::View(tensor.view())),
            });
            let views = views.collect::<pointwise::Result<Vec<_>>>()?;
            def.kernel(&[]).run(&views)?.iter().map(Tensor::to_bytes).collect()
        };
        let expected = run(&Device::cpu(), 0, rows, false)?;
        for device in devices {
            for (what, first, count, apart) in
                [("a batch", 0, rows, false), ("one row", 1, 1, false), ("rows apart", 0, rows, true)]
            {
                let got = run(device, first, count, apart)?;
                for (k, (got, expected)) in got.iter().zip(&expected).enumerate() {
                    let each = expected.len() / rows;
                    let expected = &expected[first * each..(first + count) * each];
                    if let Some(at) = judge::same_bits(info.result_type(k, dtype), got, expected) {
                        let result = info.results[k];
                        return Err(format!("{what} of {len} on {device}: {result}[{at}] has other bits").into());
                    }
                }
            }
        }
    }
    Ok(())
}

/// An element of a type by the bytes of an f32, of moderate size.
fn element(dtype: DType, bytes: &[u8]) -> Vec<u8> {
    let x = f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    let x = if x.is_finite() { x.signum() * (x.abs() + 1.0).ln().min(8.0) } else { 1.0 };
    match dtype {
        DType::Bool => vec![u8::from(x > 1.0)],
        DType::I64 => (x.abs() as i64).to_le_bytes().to_vec(),
        DType::F16 => pointwise::f16::from_f32(x).to_le_bytes().to_vec(),
        DType::BF16 => pointwise::bf16::from_f32(x).to_le_bytes().to_vec(),
        _ => x.to_le_bytes().to_vec(),
    }
}

/// An operand that is broadcast along every other dimension: its rows lie in more ways than a kernel takes.
fn many_ways(device: &Device) -> Outcome {
    let x = Tensor::full(device, 1.0_f32, [2, 2, 2, 2, 2, 2, 2, 8])?;
    let bias = Tensor::zeros(device, DType::F32, [2, 1, 2, 1, 2, 1, 2, 1])?;
    let y = ops::biased_softmax(&x, &bias, None)?.to_vec::<f32>()?;
    if y.iter().all(|y| *y == 0.125) { Ok(()) } else { Err(format!("on {device}: {y:?}").into()) }
}

/// Labels that are ignored or name no class, smoothing, classes of minus infinity.
fn labels(device: &Device) -> Outcome {
    const LEN: usize = 9;
    let x: Vec<f32> =
        (0..5 * LEN).map(|i| if i % 7 == 3 { f32::NEG_INFINITY } else { (i * i % 11) as f32 - 5.0 }).collect();
    let logits = f32s(device, &x, &[5, LEN])?;
    let of = |labels: [i64; 5]| Tensor::from_slice(device, &labels, [5]);
    let exact = |row: usize, label: usize, smoothing: f64| {
        let row: Vec<f64> = x[row * LEN..][..LEN].iter().map(|&x| f64::from(x)).collect();
        let lse = row.iter().map(|x| x.exp()).sum::<f64>().ln();
        let of = |k: usize| lse - row[k];
        (1.0 - smoothing) * of(label)
            + if smoothing > 0.0 { smoothing * (0..LEN).map(of).sum::<f64>() / LEN as f64 } else { 0.0 }
    };
    let loss = ops::cross_entropy(&logits, &of([0, 8, -100, 9, -1])?, None, None)?.0.to_vec::<f32>()?;
    for (row, label) in [(0, 0), (1, 8)] {
        let wanted = exact(row, label, 0.0);
        if (f64::from(loss[row]) - wanted).abs() > 1e-5 * wanted.abs() {
            return Err(format!("on {device}: {} of row {row}, not {wanted}", loss[row]).into());
        }
    }
    if loss[2] != 0.0 || !loss[3].is_nan() || !loss[4].is_nan() {
        return Err(format!("on {device}: {loss:?}").into());
    }
    let grad = f32s(device, &[1.0; 5], &[5])?;
    let labels = of([0, 8, 3, 0, 9])?;
    let (_, largest, total) = ops::cross_entropy(&logits, &labels, 3, 0.25)?;
    let grads = ops::cross_entropy_backward(&grad, &logits, &labels, &largest, &total, 3, 0.25)?.to_vec::<f32>()?;
    if !grads[4 * LEN..].iter().all(|grad| grad.is_nan()) {
        return Err(format!("on {device}: the gradient of a label that names no class: {:?}", &grads[4 * LEN..]).into());
    }
    if grads[2 * LEN..3 * LEN].iter().any(|grad| *grad != 0.0) {
        return Err(
            format!("on {device}: the gradient of a row that is ignored is {:?}", &grads[2 * LEN..3 * LEN]).into()
        );
    }
    // A small loss beside large logits.
    let (sure, wanted) = ([1000.0, 990.0], (-10_f64).exp().ln_1p());
    let got =
        ops::cross_entropy(&f32s(device, &sure, &[1, 2])?, &Tensor::from_slice(device, &[0_i64], [1])?, None, None)?;
    let got = f64::from(got.0.to_vec::<f32>()?[0]);
    if (got - wanted).abs() > 2e-3 * wanted {
        return Err(format!("on {device}: {got} of the largest logit, not {wanted}").into());
    }
    // A row without minus infinity, smoothed.
    let plain: Vec<f32> = x.iter().map(|x| if x.is_finite() { *x } else { 0.5 }).collect();
    let smoothed = ops::cross_entropy(&f32s(device, &plain, &[5, LEN])?, &of([1; 5])?, None, 0.1)?.0.to_vec::<f32>()?;
    for (row, got) in plain.chunks(LEN).zip(smoothed) {
        let lse = row.iter().map(|x| f64::from(*x).exp()).sum::<f64>().ln();
        let mean = lse - row.iter().map(|x| f64::from(*x)).sum::<f64>() / LEN as f64;
        let wanted = 0.9 * (lse - f64::from(row[1])) + 0.1 * mean;
        if (f64::from(got) - wanted).abs() > 1e-5 * wanted.abs() {
            return Err(format!("on {device}: {got} with smoothing, not {wanted}").into());
        }
    }
    Ok(())
}

/// Groups of channels as rows, of a tensor that is contiguous and of one that is not, and what has none.
fn groups(device: &Device) -> Outcome {
    let values: Vec<f32> = (0..2 * 6 * 5).map(|i| (i * i % 17) as f32 - 8.0).collect();
    let of_channels = |scale: f32| (0..6).map(|i| i as f32 * scale + 0.5).collect::<Vec<_>>();
    let (weights, biases) = (of_channels(0.25), of_channels(-1.0));
    let exact: Vec<f64> = (0..60)
        .map(|i| {
            let group: Vec<f64> = values[i / 15 * 15..][..15].iter().map(|x| f64::from(*x)).collect();
            let mean = group.iter().sum::<f64>() / 15.0;
            let var = group.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / 15.0;
            let (weight, bias) = (f64::from(weights[i / 5 % 6]), f64::from(biases[i / 5 % 6]));
            (f64::from(values[i]) - mean) / (var + 1e-5).sqrt() * weight + bias
        })
        .collect();
    let (weight, bias) = (f32s(device, &weights, &[6])?, f32s(device, &biases, &[6])?);
    let x = f32s(device, &values, &[2, 6, 5])?;
    close(&ops::group_norm(&x, 2, &weight, &bias, 1e-5)?.to_vec::<f32>()?, &exact, 1e-5)?;
    // Channels last.
    let turned = x.view().transpose(1, 2)?.to_dtype(DType::F32)?;
    let y = ops::group_norm(turned.view().transpose(1, 2)?, 2, &weight, &bias, 1e-5)?;
    close(&y.to_vec::<f32>()?, &exact, 1e-5)?;
    for (what, result) in [
        ("give a divisor of the number of channels, 6", ops::group_norm(&x, 4, 1.0, 0.0, 1e-5)),
        ("a dimension of samples", ops::group_norm(&weight, 1, 1.0, 0.0, 1e-5)),
        ("the weight of group_norm", ops::group_norm(&x, 2, &x, 0.0, 1e-5)),
    ] {
        let error = result.map(|_| String::new()).unwrap_or_else(|error| error.to_string());
        if !error.contains(what) {
            return Err(format!("{error:?} does not say {what}").into());
        }
    }
    Ok(())
}

/// Rows up to a position are the softmax of these elements alone.
fn causal(device: &Device) -> Outcome {
    let values: Vec<f32> = (0..4 * 6).map(|i| (i * i % 11) as f32 / 3.0).collect();
    let x = f32s(device, &values, &[4, 6])?;
    let positions = Tensor::from_slice(device, &[0_i64, 2, 5, -1], [4])?;
    let y = ops::causal_softmax(&x, &positions, 0.5)?.to_vec::<f32>()?;
    for (row, count) in [(0, 1), (1, 3), (2, 6)] {
        let part = f32s(device, &values[row * 6..][..count], &[1, count])?;
        let mut wanted = ops::softmax(&part, 0.5)?.to_vec::<f32>()?;
        wanted.resize(6, 0.0);
        let wanted: Vec<f64> = wanted.into_iter().map(f64::from).collect();
        close(&y[row * 6..][..6], &wanted, 1e-6)?;
    }
    if y[18..].iter().all(|y| y.is_nan()) { Ok(()) } else { Err(format!("no position: {:?}", &y[18..]).into()) }
}

fn f32s(device: &Device, values: &[f32], shape: &[usize]) -> pointwise::Result<Tensor> {
    Tensor::from_slice(device, values, shape)
}

fn close(got: &[f32], expected: &[f64], within: f64) -> Outcome {
    for (i, (&got, &expected)) in got.iter().zip(expected).enumerate() {
        let got = f64::from(got);
        if !((got - expected).abs() <= within * expected.abs() || got.is_nan() && expected.is_nan() || got == expected)
        {
            return Err(format!("element {i} is {got:e}, not {expected:e}").into());
        }
    }
    Ok(())
}

/// A large mean does not cancel the variance.
fn large_mean(device: &Device) -> Outcome {
    let values: Vec<f32> = (0..4096).map(|i| 1e6 + (i % 7) as f32 * 0.5).collect();
    let x = f32s(device, &values, &[1, 4096])?;
    let mean = values.iter().map(|&x| f64::from(x)).sum::<f64>() / 4096.0;
    let sum: f64 = values.iter().map(|&x| (f64::from(x) - mean).powi(2)).sum();
    close(&ops::var(&x, Number::Default)?.to_vec::<f32>()?, &[sum / 4095.0], 1e-2)?;
    let y = ops::layer_norm(&x, 1.0, 0.0, 1e-5)?.to_vec::<f32>()?;
    let deviation = (sum / 4096.0 + 1e-5).sqrt();
    let worst = values.iter().zip(&y).map(|(&x, &y)| ((f64::from(x) - mean) / deviation - f64::from(y)).abs());
    let worst = worst.fold(0.0, f64::max);
    if worst > 0.07 { Err(format!("layer_norm is {worst} off").into()) } else { Ok(()) }
}

/// Infinities, NaN and overflows, as in PyTorch.
fn strange_rows(device: &Device) -> Outcome {
    const INF: f32 = f32::INFINITY;
    let nan = f64::NAN;
    let rows = f32s(device, &[-INF, -INF, -INF, -INF, 0.0, 0.0, 1.0, f32::NAN, 2.0], &[3, 3])?;
    close(&ops::softmax(&rows, 1.0)?.to_vec::<f32>()?, &[nan, nan, nan, 0.0, 0.5, 0.5, nan, nan, nan], 1e-6)?;
    close(&ops::logsumexp(&rows)?.to_vec::<f32>()?, &[f64::NEG_INFINITY, 2.0_f64.ln(), nan], 1e-6)?;
    close(&ops::amax(&rows)?.to_vec::<f32>()?, &[f64::NEG_INFINITY, 0.0, nan], 0.0)?;
    close(&ops::amin(&rows)?.to_vec::<f32>()?, &[f64::NEG_INFINITY, f64::NEG_INFINITY, nan], 0.0)?;
    // A square beyond f32 makes the mean infinite, as in PyTorch.
    let huge = f32s(device, &[2e19, 1.0, -1.0, 0.0], &[1, 4])?;
    close(&ops::rms_norm(&huge, 1.0, 1e-6, 0.0, false)?.to_vec::<f32>()?, &[0.0, 0.0, 0.0, 0.0], 0.0)?;
    // Shifted by the largest element, no exponential overflows.
    let high = f32s(device, &[3e38, 3e38, -3e38], &[3])?;
    close(&ops::softmax(&high, 1.0)?.to_vec::<f32>()?, &[0.5, 0.5, 0.0], 1e-6)?;
    let mask = Tensor::from_slice(device, &[true, false, false], [3])?;
    close(&ops::masked_softmax(&high, &mask, 1.0)?.to_vec::<f32>()?, &[0.0, 1.0, 0.0], 1e-6)
}

/// Rows that shared memory keeps and rows that are too long for it, beside one that is no aligned vectors: the same bits.
fn long_rows(device: &Device) -> Outcome {
    for len in [32_768, 60_000, 131_072] {
        let tensor = |device: &Device, seed: u64| {
            let values = inputs::mixed(DType::F32, len + 1, seed);
            let bytes: Vec<u8> = values.chunks(4).flat_map(|x| element(DType::BF16, x)).collect();
            Tensor::from_bytes(device, DType::BF16, &bytes, [len + 1])
        };
        let run = |device: &Device| -> pointwise::Result<Vec<Vec<u8>>> {
            let tensors = (0..3).map(|seed| tensor(device, seed)).collect::<pointwise::Result<Vec<_>>>()?;
            let mut all = Vec::new();
            for first in [0, 1] {
                let [x, residual, weight] = [0, 1, 2].map(|k| tensors[k].view().narrow(0, first, len));
                let ([x, residual], weight) = ([x?.reshape([1, len])?, residual?.reshape([1, len])?], weight?);
                let (y, sum) = ops::add_rms_norm(x, residual, weight, 1e-6, 0.0, false)?;
                all.extend([y.to_bytes()?, sum.to_bytes()?, ops::softmax(x, 1.0)?.to_bytes()?]);
            }
            Ok(all)
        };
        for (k, (got, expected)) in run(device)?.iter().zip(run(&Device::cpu())?).enumerate() {
            if *got != expected {
                return Err(format!("result {k} of a row of {len} on {device} has other bits").into());
            }
        }
    }
    Ok(())
}

/// Sums over rows that shared memory keeps, of up to three rows a chunk, and over rows that are too long for it: the same bits.
fn long_sums(device: &Device) -> Outcome {
    for (name, rows, len) in [("rms_norm", 270, 8200), ("layer_norm", 270, 8200), ("rms_norm", 2, 40_000)] {
        let def = info::op(name).and_then(|def| def.backward).ok_or("no gradient")?;
        let info = &def.info;
        let run = |device: &Device| -> pointwise::Result<Vec<Vec<u8>>> {
            let operands = (0..info.operands.len()).map(|k| {
                let of = info.operand_type(k, DType::BF16);
                let shape = match () {
                    () if info.is_row_operand(k) => vec![rows],
                    () if info.is_weight(k) => vec![len],
                    () => vec![rows, len],
                };
                let values = inputs::mixed(DType::F32, shape.iter().product(), k as u64);
                let bytes: Vec<u8> = values.chunks(4).flat_map(|x| element(of, x)).collect();
                Tensor::from_bytes(device, of, &bytes, shape)
            });
            let operands = operands.collect::<pointwise::Result<Vec<_>>>()?;
            let operands: Vec<Operand<'_>> = operands.iter().map(Operand::from).collect();
            def.kernel(&[]).run(&operands)?.iter().map(Tensor::to_bytes).collect()
        };
        for (result, (got, expected)) in info.results.iter().zip(run(device)?.iter().zip(run(&Device::cpu())?)) {
            if *got != expected {
                return Err(format!("{result} of {} on {device} has other bits", info.name).into());
            }
        }
    }
    Ok(())
}

/// Rows without elements, no rows, and a tensor without dimensions.
fn empty(device: &Device) -> Outcome {
    let none = Tensor::zeros(device, DType::F32, [3, 0])?;
    close(&ops::sum(&none)?.to_vec::<f32>()?, &[0.0; 3], 0.0)?;
    close(&ops::mean(&none)?.to_vec::<f32>()?, &[f64::NAN; 3], 0.0)?;
    close(&ops::logsumexp(&none)?.to_vec::<f32>()?, &[f64::NEG_INFINITY; 3], 0.0)?;
    let shapes = [
        ops::softmax(&none, 1.0)?.shape().to_vec(),
        ops::sum(&Tensor::zeros(device, DType::F32, [0, 4])?)?.shape().to_vec(),
    ];
    let one = f32s(device, &[3.0], &[])?;
    close(&ops::softmax(&one, 1.0)?.to_vec::<f32>()?, &[1.0], 0.0)?;
    close(&ops::sum(&one)?.to_vec::<f32>()?, &[3.0], 0.0)?;
    if shapes == [vec![3, 0], vec![0]] { Ok(()) } else { Err(format!("shapes {shapes:?}").into()) }
}

/// A result may be the operand, also where rows are read again.
fn in_place(device: &Device) -> Outcome {
    for len in [7, 1024, 17_000] {
        let values: Vec<f32> = (0..2 * len).map(|i| (i % 31) as f32 / 8.0).collect();
        let mut x = f32s(device, &values, &[2, len])?;
        let y = ops::softmax(&x, 0.5)?.to_vec::<f32>()?;
        ops::softmax_inplace(&mut x, 0.5)?;
        if x.to_vec::<f32>()? != y {
            return Err(format!("rows of {len} differ in place").into());
        }
    }
    Ok(())
}

/// Operands whose rows lie apart, or whose elements do, and results of any stride between rows.
fn layouts(device: &Device) -> Outcome {
    let values: Vec<f32> = (0..4 * 6 * 8).map(|i| (i % 23) as f32 - 11.0).collect();
    let x = f32s(device, &values, &[4, 6, 8])?;
    let weight = f32s(device, &[1.0, -2.0, 0.5, 3.0, 1.5, -1.0, 2.0, 0.25], &[8])?;
    let norm = |x: TensorView<'_>| ops::rms_norm(x, &weight, 1e-6, 0.0, false);
    let expected = norm(x.view())?.view().transpose(0, 1)?.to_tensor()?.to_vec::<f32>()?;
    if norm(x.view().transpose(0, 1)?)?.to_vec::<f32>()? != expected {
        return Err("transposed rows differ".into());
    }
    let turned = x.view().transpose(1, 2)?;
    let expected = ops::softmax(&turned.to_tensor()?, 1.0)?.to_vec::<f32>()?;
    if ops::softmax(turned, 1.0)?.to_vec::<f32>()? != expected {
        return Err("elements apart differ".into());
    }
    let mut wide = Tensor::zeros(device, DType::F32, [4, 6, 11])?;
    ops::softmax_into(&x, wide.view_mut()?.narrow(2, 2, 8)?, 1.0)?;
    let got = wide.view().narrow(2, 2, 8)?.to_tensor()?.to_vec::<f32>()?;
    if got != ops::softmax(&x, 1.0)?.to_vec::<f32>()? {
        return Err("results apart differ".into());
    }
    Ok(())
}

/// A sum is rounded before it is normalised, and a quotient before the weight if that is asked for.
fn rounding(device: &Device) -> Outcome {
    let of = |x: f32| pointwise::bf16::from_f32(x);
    let (x, residual) = ([of(1.0), of(3.0)], [of(0.003_906_25), of(0.011_718_75)]);
    let x = Tensor::from_slice(device, &x, [2])?;
    let residual = Tensor::from_slice(device, &residual, [2])?;
    let (y, sum) = ops::add_rms_norm(&x, &residual, 1.0, 0.0, 0.0, false)?;
    let expected = ops::rms_norm(&ops::add(&x, &residual)?, 1.0, 0.0, 0.0, false)?;
    if y.to_bytes()? != expected.to_bytes()? || sum.to_bytes()? != ops::add(&x, &residual)?.to_bytes()? {
        return Err("the sum is not the stored one".into());
    }
    let weight = Tensor::from_slice(device, &[of(1.007_812_5), of(0.996_093_75)], [2])?;
    let by_steps = ops::mul(&ops::rms_norm(&x, 1.0, 0.0, 0.0, false)?, &weight)?;
    let rounded = ops::rms_norm(&x, &weight, 0.0, 0.0, true)?;
    if rounded.to_bytes()? != by_steps.to_bytes()? { Err("rounded differs from two steps".into()) } else { Ok(()) }
}

/// A number is an element for all.
fn numbers(device: &Device) -> Outcome {
    let x = f32s(device, &[1.0, 2.0, 4.0, -3.0], &[4])?;
    let weight = f32s(device, &[0.1; 4], &[4])?;
    let by_tensor = ops::rms_norm(&x, &weight, 1e-6, 0.0, false)?.to_bytes()?;
    if ops::rms_norm(&x, 0.1, 1e-6, 0.0, false)?.to_bytes()? == by_tensor {
        Ok(())
    } else {
        Err("numbers differ".into())
    }
}

/// More rows than a block has, not a whole number of blocks.
fn many_rows(device: &Device) -> Outcome {
    let values: Vec<f32> = (0..1003 * 5).map(|i| (i % 17) as f32).collect();
    let got = ops::sum(&f32s(device, &values, &[1003, 5])?)?.to_vec::<f32>()?;
    let expected: Vec<f64> = values.chunks(5).map(|row| row.iter().map(|&x| f64::from(x)).sum()).collect();
    close(&got, &expected, 0.0)
}

/// The operands of a gradient of weights, of moderate size; the weights are `weight_rows` rows.
fn operands_of(
    def: &OpDef,
    dtype: DType,
    device: &Device,
    [rows, len]: [usize; 2],
    weight_rows: usize,
) -> pointwise::Result<Vec<Tensor>> {
    let of = |k: usize| {
        let rows = if def.info.is_weight(k) { weight_rows } else { rows };
        let count = if def.info.is_weight(k) { len } else { rows * len };
        let numbers = inputs::mixed(DType::F32, count, k as u64);
        let bytes: Vec<u8> = numbers.chunks(4).flat_map(|x| element(dtype, x)).collect();
        let bytes = if def.info.is_weight(k) { bytes.repeat(rows) } else { bytes };
        Tensor::from_bytes(device, dtype, &bytes, [rows, len])
    };
    (0..def.info.operands.len()).map(of).collect()
}

/// Gradients of weights are summed over rows, where weights are one row: the same bits on all devices, in f32, of no rows, of few, and
/// of more than there are chunks; of rows that are held, too long for it, and no aligned vectors.
fn sums(device: &Device) -> Outcome {
    let small = [[0, 8], [1, 8], [9000, 5], [300, 48], [3, 1000], [5, 257], [2, 17_000], [2, 30_001]];
    let large = [[3000, 1024], [600, 4096], [2100, 257], [600, 4097], [300, 17_000]];
    // Elsewhere these take minutes.
    let large = if device.is_cuda() && !device.is_emulated() { &large[..] } else { &large[..0] };
    let cpu = Device::cpu();
    for def in info::every().filter(|def| def.info.weight_results != 0) {
        for (shape, dtype) in
            small.iter().chain(large).flat_map(|&shape| [DType::F32, DType::BF16].map(|dtype| (shape, dtype)))
        {
            let run = |device: &Device, weight_rows: usize| -> pointwise::Result<Vec<Tensor>> {
                let tensors = operands_of(def, dtype, device, shape, weight_rows)?;
                def.kernel(&[]).run(&tensors.iter().map(Operand::from).collect::<Vec<_>>())
            };
            let (expected, got) = (run(&cpu, 1)?, run(device, 1)?);
            let what =
                |k: usize| format!("{} of {} of {dtype}, {shape:?}, on {device}", def.info.results[k], def.info.name);
            for (k, (got, expected)) in got.iter().zip(&expected).enumerate() {
                let of_sum = [1, shape[1]];
                let wanted = if def.info.is_weight_result(k) { &of_sum } else { &shape };
                if got.shape().dims() != wanted {
                    return Err(format!("{}: shape {}", what(k), got.shape()).into());
                }
                if let Some(at) = judge::same_bits(dtype, &got.to_bytes()?, &expected.to_bytes()?) {
                    return Err(format!("{}: element {at} has other bits than the CPU's", what(k)).into());
                }
            }
            if dtype != DType::F32 || shape[0] < 2 {
                continue;
            }
            // A weight of several rows has a gradient for each row: their sum is compared.
            let rows = run(&cpu, shape[0])?;
            for k in (0..rows.len()).filter(|&k| def.info.is_weight_result(k)) {
                let (mut sums, mut sizes) = (vec![0.0; shape[1]], vec![0.0; shape[1]]);
                for (i, x) in rows[k].to_vec::<f32>()?.into_iter().enumerate() {
                    sums[i % shape[1]] += f64::from(x);
                    sizes[i % shape[1]] += f64::from(x.abs());
                }
                let got = got[k].to_vec::<f32>()?;
                let wrong = |i: &usize| (f64::from(got[*i]) - sums[*i]).abs() > 1e-6 * sizes[*i];
                if let Some(i) = (0..shape[1]).find(wrong) {
                    return Err(format!("{}: {} at {i} instead of {}", what(k), got[i], sums[i]).into());
                }
            }
        }
    }
    Ok(())
}

/// A caller's memory for sums, and memory that does not do.
fn workspace(device: &Device) -> Outcome {
    let (def, shape) = (ops::LayerNormBackward::def(), [40, 24]);
    let tensors = operands_of(def, DType::F32, device, shape, 1)?;
    let operands: Vec<Operand<'_>> = tensors.iter().map(Operand::from).collect();
    let kernel = def.kernel(&[]);
    let expected = kernel.run(&operands)?;
    let Some(asked) = kernel.workspace(&operands)? else { return Err("no workspace is asked for".into()) };
    let new = || -> pointwise::Result<Vec<Tensor>> {
        kernel.results(&operands)?.iter().map(|(dtype, shape)| Tensor::empty(device, *dtype, *shape)).collect()
    };
    let mut results = new()?;
    let mut memory = Tensor::full(device, f32::NAN, asked)?;
    let into = |results: &mut [Tensor], memory: &mut Tensor| -> pointwise::Result<()> {
        let mut targets = results.iter_mut().map(Tensor::view_mut).collect::<pointwise::Result<Vec<_>>>()?;
        kernel.run_into_with(&operands, &mut targets, memory.view_mut()?)
    };
    into(&mut results, &mut memory)?;
    for (got, expected) in results.iter().zip(&expected) {
        if got.to_bytes()? != expected.to_bytes()? {
            return Err(format!("on {device} a workspace changes results").into());
        }
    }
    let small = Tensor::empty(device, DType::F32, [1, 24])?;
    let narrow = Tensor::empty(device, DType::BF16, asked)?;
    for (mut memory, words) in [(small, "shape"), (narrow, "f32")] {
        match into(&mut new()?, &mut memory) {
            Err(error) if error.to_string().contains(words) => {}
            other => return Err(format!("{other:?} instead of {words:?}").into()),
        }
    }
    // For weights of several rows nothing is summed.
    let tensors = operands_of(def, DType::F32, device, shape, 40)?;
    let operands: Vec<Operand<'_>> = tensors.iter().map(Operand::from).collect();
    if kernel.workspace(&operands)?.is_some() { Err("a workspace for nothing".into()) } else { Ok(()) }
}

/// More elements than 31 bits can count: the last rows are those of a call of their own.
fn beyond_31_bits(device: &Device) -> Outcome {
    let (rows, len) = ((1_usize << 19) + 2, 1_usize << 12);
    let bytes: Vec<u8> =
        inputs::mixed(DType::F32, 2 * len, 3).chunks(4).flat_map(|x| element(DType::BF16, x)).collect();
    let last = Tensor::from_bytes(device, DType::BF16, &bytes, [2, len])?;
    let mut x = Tensor::zeros(device, DType::BF16, [rows, len])?;
    last.view().copy_into(x.view_mut()?.narrow(0, rows - 2, 2)?)?;
    let y = ops::softmax(&x, None)?;
    let part = |y: &Tensor, from: usize| y.view().narrow(0, from, 2)?.to_dtype(DType::BF16)?.to_bytes();
    let (wanted, got) = (ops::softmax(&last, None)?.to_bytes()?, part(&y, rows - 2)?);
    if let Some(at) = judge::same_bits(DType::BF16, &got, &wanted) {
        return Err(format!("element {at} of the last rows has other bits").into());
    }
    let even = pointwise::bf16::from_f32(1.0 / len as f32).to_le_bytes();
    let got = part(&y, rows / 2)?;
    if got.chunks(2).all(|y| y == even) { Ok(()) } else { Err("a row in the middle is no mean".into()) }
}

/// Checks the errors of calls that cannot be.
fn errors() -> Outcome {
    let cpu = Device::cpu();
    let x = Tensor::zeros(&cpu, DType::F32, [2, 4])?;
    let says = |result: pointwise::Result<()>, words: &str| match result {
        Err(error) if error.to_string().contains(words) => Ok(()),
        other => Err(Failed::from(format!("{other:?} instead of {words:?}"))),
    };
    says(ops::softmax(&Tensor::zeros(&cpu, DType::I32, [4])?, 1.0).map(drop), "f32")?;
    says(ops::rms_norm(&x, &Tensor::zeros(&cpu, DType::F32, [3])?, 1e-6, 0.0, false).map(drop), "broadcast")?;
    let mut y = Tensor::zeros(&cpu, DType::F32, [4, 2])?;
    says(ops::softmax_into(&x, y.view_mut()?.transpose(0, 1)?, 1.0), "last dimension is contiguous")?;
    let mut per_row = Tensor::zeros(&cpu, DType::F32, [2, 1])?;
    says(ops::sum_into(&x, &mut per_row), "shape")
}
