//! Dropout and the position encodings, one named case each, on the device of `POINTWISE_DEVICE` (`auto`, `cpu`, `cuda`,
//! `cuda:N`).
//!
//! Dropout is compared, bit for bit, with its definition applied to one element at a time; the encodings with f64. On a
//! CUDA device every strategy is a case, and the encodings must have the CPU's bits, too.

use libtest_mimic::{Arguments, Failed, Trial};
use pointwise::{
    DType, Device, ErrorKind, Philox, SinusoidalLayout, Strategy, Stream, Tensor, TensorView, Tuner, kernels, ops,
};
use pointwise_core::Element;
use tests::{inputs, with_element};

const FLOATS: [DType; 5] = [DType::F32, DType::F16, DType::BF16, DType::F8E4M3, DType::F8E5M2];
const GUARD: u8 = 0xA5;
const LAYOUTS: [(&str, SinusoidalLayout); 2] =
    [("interleaved", SinusoidalLayout::Interleaved), ("halves", SinusoidalLayout::Halves)];

type Outcome = Result<(), Failed>;

fn main() {
    let arguments = Arguments::from_args();
    let name = std::env::var("POINTWISE_DEVICE").unwrap_or_else(|_| "auto".to_owned());
    let device = Device::parse(&name).unwrap_or_else(|error| {
        eprintln!("error: {error}");
        std::process::exit(2);
    });
    let mut trials = vec![
        Trial::test("dropout::statistics", move || statistics(&device)),
        Trial::test("dropout::independence", move || independence(&device)),
        Trial::test("dropout::views", move || views(&device)),
        Trial::test("dropout::errors", move || dropout_errors(&device)),
        Trial::test("encodings::errors", move || encoding_errors(&device)),
        Trial::test("encodings::into_views", move || into_views(&device)),
        Trial::test("alibi::slopes", slopes),
        Trial::test("tuner::nothing_to_measure", move || nothing_to_measure(&device)),
    ];
    let strategies: Vec<(&str, Strategy)> = if device.is_cpu() {
        vec![("cpu", Strategy::Auto)]
    } else {
        Strategy::ALL.into_iter().filter(|s| *s != Strategy::Table).map(|s| (s.name(), s)).collect()
    };
    for dtype in FLOATS {
        trials.push(Trial::test(format!("dropout::{dtype}::settings"), move || settings(&device, dtype)));
        for &(name, strategy) in &strategies {
            let test = move || dropout(&device, dtype, strategy);
            trials.push(Trial::test(format!("dropout::{dtype}::{name}"), test));
            if strategy == Strategy::ExplicitParallel {
                continue;
            }
            for causal in [false, true] {
                let test = move || alibi(&device, dtype, strategy, causal);
                let kind = if causal { "causal" } else { "symmetric" };
                trials.push(Trial::test(format!("alibi::{dtype}::{kind}::{name}"), test));
            }
            for (kind, layout) in LAYOUTS {
                let test = move || sinusoidal(&device, dtype, strategy, layout);
                trials.push(Trial::test(format!("sinusoidal::{dtype}::{kind}::{name}"), test));
            }
        }
    }
    if device.is_cuda() {
        trials.push(Trial::test("graph_and_stream", move || graph_and_stream(&device)));
        for (dtype, n) in [(DType::F32, 1000), (DType::BF16, 1 << 20), (DType::F8E4M3, 1 << 22)] {
            let test = move || tune(&device, dtype, n);
            trials.push(Trial::test(format!("tuner::{dtype}::{n}"), test));
        }
        trials.push(Trial::test("tuner::other_kinds", move || tune_other_kinds(&device)));
        for &(name, strategy) in &strategies {
            let test = move || beyond_32_bits(&device, strategy);
            trials.push(Trial::test(format!("dropout::beyond_2_to_32::{name}"), test).with_ignored_flag(true));
        }
    }
    libtest_mimic::run(&arguments, trials).exit();
}

/// Dropout's definition: the result and the mask for the elements of `x`, as bytes.
fn expected(dtype: DType, x: &[u8], p: f64, place: Philox, first: u64) -> (Vec<u8>, Vec<u8>) {
    let size = dtype.size();
    let scale = (1.0 / (1.0 - p)) as f32;
    let (mut y, mut mask) = (Vec::new(), Vec::new());
    with_element!(dtype, E => {
        for (i, bytes) in x.chunks_exact(size).enumerate() {
            let kept = f64::from(place.word(first + i as u64)) / 2.0_f64.powi(32) < 1.0 - p;
            mask.push(u8::from(kept));
            if kept {
                // One f32 product, rounded to the type: f64 holds it, and every value of these types, exactly.
                let value = tests::judge::from_bytes::<E>(bytes).to_f64() as f32 * scale;
                let value = tests::judge::from_bytes::<E>(&bytes_of::<E>(E::from_f64(f64::from(value))));
                y.extend(bytes_of::<E>(value));
            } else {
                y.extend(std::iter::repeat_n(0, size));
            }
        }
    });
    (y, mask)
}

/// An element's bytes.
fn bytes_of<E: Element>(value: E) -> Vec<u8> {
    // SAFETY: an element type is a plain number without padding.
    unsafe { std::slice::from_raw_parts((&raw const value).cast::<u8>(), size_of::<E>()) }.to_vec()
}

/// The first element that differs; all NaN are one.
fn differs(dtype: DType, a: &[u8], b: &[u8]) -> Option<usize> {
    tests::judge::same_bits(dtype, a, b)
}

const SIZES: [usize; 20] = [0, 1, 2, 3, 4, 5, 7, 8, 15, 16, 17, 31, 33, 63, 127, 255, 257, 1023, 1025, 70_001];
/// Offsets of operand, result and mask.
const OFFSETS: [(usize, usize, usize); 9] =
    [(0, 0, 0), (1, 1, 1), (2, 2, 2), (3, 3, 3), (7, 7, 7), (9, 9, 0), (1, 0, 1), (0, 1, 0), (5, 2, 3)];

fn dropout(device: &Device, dtype: DType, strategy: Strategy) -> Outcome {
    let size = dtype.size();
    let largest = SIZES[SIZES.len() - 1];
    let x_bytes = inputs::mixed(dtype, largest + 16, 4);
    let x = Tensor::from_bytes(device, dtype, &x_bytes, [largest + 16])?;
    let place = Philox::new(0x1234_5678_9ABC_DEF0).at((1 << 32) - 3);
    for (p, sizes) in [(0.25, &SIZES[..]), (0.9, &SIZES[16..19])] {
        let kernel = kernels::dropout(p).strategy(strategy);
        for &n in sizes {
            for (x_at, y_at, mask_at) in OFFSETS {
                let context = || format!("p {p}, size {n}, offsets {x_at}, {y_at}, {mask_at}");
                let input = &x_bytes[x_at * size..(x_at + n) * size];
                let (exact, kept) = expected(dtype, input, p, place, 0);
                let mut y = Tensor::from_bytes(device, dtype, &vec![GUARD; (n + 32) * size], [n + 32])?;
                let mut mask = Tensor::from_bytes(device, DType::Bool, &vec![1; n + 32], [n + 32])?;
                let source = x.view().narrow(0, x_at, n)?;
                // Without a mask, then with one into a fresh result.
                for with_mask in [false, true] {
                    if with_mask {
                        y.copy_from_bytes(&vec![GUARD; (n + 32) * size])?;
                        let into = (y.view_mut().narrow(0, y_at, n)?, mask.view_mut().narrow(0, mask_at, n)?);
                        kernel.run_with_mask_into(source, into.0, into.1, place)?;
                    } else {
                        kernel.run_into(source, y.view_mut().narrow(0, y_at, n)?, place)?;
                    }
                    let bytes = y.to_bytes()?;
                    let (start, end) = (y_at * size, (y_at + n) * size);
                    if let Some(at) = differs(dtype, &bytes[start..end], &exact) {
                        return Err(format!("{}: element {at} is wrong", context()).into());
                    }
                    if bytes[..start].iter().chain(&bytes[end..]).any(|&byte| byte != GUARD) {
                        return Err(format!("{}: wrote outside the output", context()).into());
                    }
                }
                let bytes = mask.to_bytes()?;
                if bytes[mask_at..mask_at + n] != kept {
                    return Err(format!("{}: the mask is wrong", context()).into());
                }
                if bytes[..mask_at].iter().chain(&bytes[mask_at + n..]).any(|&byte| byte != 1) {
                    return Err(format!("{}: wrote outside the mask", context()).into());
                }
                if x_at == y_at {
                    let mut inplace = x.try_clone()?;
                    kernel.run_inplace(inplace.view_mut().narrow(0, x_at, n)?, place)?;
                    let bytes = inplace.to_bytes()?;
                    if let Some(at) = differs(dtype, &bytes[x_at * size..(x_at + n) * size], &exact) {
                        return Err(format!("in place, {}: element {at} is wrong", context()).into());
                    }
                    if bytes[..x_at * size] != x_bytes[..x_at * size]
                        || bytes[(x_at + n) * size..] != x_bytes[(x_at + n) * size..]
                    {
                        return Err(format!("in place, {}: wrote outside the view", context()).into());
                    }
                }
            }
        }
    }
    Ok(())
}

/// The ends of the range of p, training off, and the gradient.
fn settings(device: &Device, dtype: DType) -> Outcome {
    let n = 1000;
    // Codes as they are, NaN payloads included: a copy changes none.
    let bytes = inputs::mixed(dtype, n, 7);
    let x = Tensor::from_bytes(device, dtype, &bytes, [10, 100])?;
    let place = Philox::new(3);
    for (p, training) in [(0.0, true), (0.0, false), (0.3, false), (1.0, false)] {
        let (y, mask) = ops::dropout_with_mask(&x, p, training, place)?;
        assert_eq!((y.to_bytes()?, mask.to_bytes()?), (bytes.clone(), vec![1; n]), "{p} {training}");
        let mut z = x.try_clone()?;
        ops::dropout_inplace(&mut z, p, training, place)?;
        assert_eq!(z.to_bytes()?, bytes);
    }
    let (y, mask) = ops::dropout_with_mask(&x, 1.0, true, place)?;
    assert_eq!((y.to_bytes()?, mask.to_bytes()?), (vec![0; n * dtype.size()], vec![0; n]));
    assert_eq!(y.shape(), x.shape());
    let mut z = x.try_clone()?;
    ops::dropout_inplace(&mut z, 1.0, true, place)?;
    assert_eq!(z.to_bytes()?, vec![0; n * dtype.size()]);

    let y = ops::dropout(&x, 0.4, true, place)?.to_bytes()?;
    let gradient = ops::dropout_backward(&x, 0.4, place)?.to_bytes()?;
    assert_eq!(y, gradient, "the gradient is the same mask and factor");
    let mut z = Tensor::zeros(device, dtype, [10, 100])?;
    ops::dropout_backward_into(&x, &mut z, 0.4, place)?;
    assert_eq!(z.to_bytes()?, y);
    let mut z = x.try_clone()?;
    ops::dropout_backward_inplace(&mut z, 0.4, place)?;
    assert_eq!(z.to_bytes()?, y);
    Ok(())
}

/// The mask of `n` elements.
fn mask(device: &Device, p: f64, n: usize, place: Philox) -> Result<Vec<bool>, Failed> {
    let x = Tensor::zeros(device, DType::F8E5M2, [n])?;
    Ok(ops::dropout_with_mask(&x, p, true, place)?.1.to_vec::<bool>()?)
}

const N: usize = 1 << 20;

/// Four standard deviations: what a fair generator exceeds once in 16,000 tries; the seeds are fixed.
const SIGMAS: f64 = 4.0;

fn statistics(device: &Device) -> Outcome {
    for (seed, p) in [(1, 0.5), (2, 0.1), (3, 0.9), (4, 0.999), (5, 1e-4), (u64::MAX, 0.3)] {
        let kept = mask(device, p, N, Philox::new(seed))?;
        let count = kept.iter().filter(|kept| **kept).count() as f64;
        let sigma = (N as f64 * p * (1.0 - p)).sqrt();
        let deviation = (count - N as f64 * (1.0 - p)) / sigma;
        if deviation.abs() > SIGMAS {
            return Err(
                format!("seed {seed}, p {p}: {count} of {N} kept, {deviation:.1} standard deviations off").into()
            );
        }
    }
    Ok(())
}

/// Neighbours at many lags, words of a block, seeds and offsets are uncorrelated.
fn independence(device: &Device) -> Outcome {
    let p = 0.4;
    let centred = |place| -> Result<Vec<f64>, Failed> {
        Ok(mask(device, p, N, place)?.into_iter().map(|kept| f64::from(u8::from(kept)) - (1.0 - p)).collect())
    };
    let check = |what: String, a: &[f64], b: &[f64]| -> Outcome {
        let products: f64 = a.iter().zip(b).map(|(a, b)| a * b).sum();
        let deviation = products / ((a.len().min(b.len()) as f64).sqrt() * p * (1.0 - p));
        if deviation.abs() > SIGMAS {
            return Err(format!("{what}: correlated by {deviation:.1} standard deviations").into());
        }
        Ok(())
    };
    let base = Philox::new(11);
    let first = centred(base)?;
    for lag in [1, 2, 3, 4, 5, 8, 16, 31, 32, 64, 128, 1000, 1024, 4096, 1 << 16] {
        check(format!("lag {lag}"), &first, &first[lag..])?;
    }
    // Pairs of words within blocks alone.
    for (i, j) in [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)] {
        let word = |k: usize| first.iter().skip(k).step_by(4).copied().collect::<Vec<_>>();
        check(format!("words {i} and {j}"), &word(i), &word(j))?;
    }
    for other in [Philox::new(12), Philox::new(11 | 1 << 63), base.after(N as u64), base.at(1 << 32)] {
        let second = centred(other)?;
        assert_ne!(first, second);
        check(format!("{other:?}"), &first, &second)?;
    }
    // The second half of a call is the call on the second half, further on.
    let half = N / 2;
    assert_eq!(mask(device, p, half, base.after(half as u64))?, mask(device, p, N, base)?[half..]);
    Ok(())
}

/// Shapes and strides do not matter, row-major indices do; two dimensions, other types, the same mask.
fn views(device: &Device) -> Outcome {
    let place = Philox::new(99).at(5);
    let values: Vec<f32> = (0..24 * 36).map(|i| i as f32 - 400.0).collect();
    let x = Tensor::from_slice(device, &values, [24, 36])?;
    let flat = ops::dropout(x.view().reshape([24 * 36])?, 0.5, true, place)?;
    assert_eq!(ops::dropout(&x, 0.5, true, place)?.to_bytes()?, flat.to_bytes()?);
    let turned = x.view().transpose(0, 1)?;
    let (y, mask) = ops::dropout_with_mask(turned, 0.5, true, place)?;
    let copied = ops::dropout(&turned.to_tensor()?, 0.5, true, place)?;
    assert_eq!((y.shape(), y.to_bytes()?), (turned.shape(), copied.to_bytes()?));
    assert_eq!(ops::dropout(turned, 0.5, true, place)?.to_bytes()?, copied.to_bytes()?);
    for dtype in FLOATS {
        let ones = Tensor::zeros(device, dtype, [36, 24])?;
        let other = ops::dropout_with_mask(&ones, 0.5, true, place)?.1;
        assert_eq!(other.to_bytes()?, mask.to_bytes()?, "{dtype}");
    }
    // A dropped infinity or NaN is +0, and so is a dropped negative number.
    let x = Tensor::from_slice(device, &[f32::NAN, f32::INFINITY, -1.0, f32::NEG_INFINITY].repeat(64), [256])?;
    let (y, mask) = ops::dropout_with_mask(&x, 0.5, true, place)?;
    let pairs = y.to_vec::<f32>()?.into_iter().zip(mask.to_vec::<bool>()?);
    assert!(pairs.clone().filter(|(_, kept)| !kept).all(|(y, _)| y.to_bits() == 0));
    assert!(pairs.clone().any(|(y, kept)| kept && y.is_nan()));
    Ok(())
}

fn dropout_errors(device: &Device) -> Outcome {
    let place = Philox::new(0);
    let x = Tensor::zeros(device, DType::F32, [4])?;
    for p in [-0.1, 1.1, f64::NAN, f64::INFINITY, -f64::MIN_POSITIVE, 1.0 + f64::EPSILON] {
        for training in [true, false] {
            let error = ops::dropout(&x, p, training, place).unwrap_err();
            assert!(matches!(error.kind(), ErrorKind::Parameter { name: "p", .. }), "{error}");
        }
        assert!(ops::dropout_backward(&x, p, place).is_err());
    }
    assert_eq!(
        ops::dropout(&x, 1.5, true, place).unwrap_err().to_string(),
        "p = 1.5: must be a probability, from 0 to 1"
    );
    let ints = Tensor::zeros(device, DType::I32, [4])?;
    assert!(ops::dropout(&ints, 0.5, true, place).unwrap_err().is_dtype());
    let mut y = Tensor::zeros(device, DType::F32, [5])?;
    assert!(ops::dropout_into(&x, &mut y, 0.5, true, place).unwrap_err().is_shape());
    let mut y = Tensor::zeros(device, DType::F16, [4])?;
    assert!(ops::dropout_into(&x, &mut y, 0.5, true, place).unwrap_err().is_dtype());
    let (mut y, mut mask) = (Tensor::zeros(device, DType::F32, [4])?, Tensor::zeros(device, DType::U8, [4])?);
    assert!(ops::dropout_with_mask_into(&x, &mut y, &mut mask, 0.5, true, place).unwrap_err().is_dtype());
    let mut mask = Tensor::zeros(device, DType::Bool, [3])?;
    assert!(ops::dropout_with_mask_into(&x, &mut y, &mut mask, 0.5, true, place).unwrap_err().is_shape());
    for threads in [0, 31, 48, 2048] {
        assert!(kernels::dropout(0.5).threads(threads).plan(&x, &y, None).is_err());
    }
    // The result one element into its operand.
    let mut both = Tensor::zeros(device, DType::F32, [5])?;
    let address = both.device_ptr();
    // SAFETY: a view for one call, refused before it is read.
    let source = unsafe { TensorView::from_raw_parts(device, address, DType::F32, [4], &[1])? };
    let target = both.view_mut().narrow(0, 1, 4)?;
    let error = ops::dropout_into(source, target, 0.5, true, place).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Overlap { .. }), "{error}");
    Ok(())
}

/// Half the distance between neighbouring values of a type at `value`, and what f32 arithmetic adds.
fn tolerance(dtype: DType, value: f64, f32_ulps: f64) -> f64 {
    // Stored significand bits, least exponent of a normal number.
    let ulp = |digits: i32, least: i32| {
        let exponent = ((value.abs().to_bits() >> 52) as i32 - 1023).max(least);
        2.0_f64.powi(exponent - digits)
    };
    let own = match dtype {
        DType::F32 => 0.0,
        DType::F16 => ulp(10, -14) / 2.0,
        DType::BF16 => ulp(7, -126) / 2.0,
        DType::F8E4M3 => ulp(3, -6) / 2.0,
        _ => ulp(2, -14) / 2.0,
    };
    own + f32_ulps * ulp(23, -126)
}

/// A result in f64.
fn numbers(y: &Tensor) -> Result<Vec<f64>, Failed> {
    let bytes = y.to_bytes()?;
    Ok(with_element!(y.dtype(), E => {
        bytes.chunks_exact(size_of::<E>()).map(|bytes| tests::judge::from_bytes::<E>(bytes).to_f64()).collect()
    }))
}

fn same_on_the_cpu(y: &Tensor, cpu: &Tensor, what: &str) -> Outcome {
    match differs(y.dtype(), &y.to_bytes()?, &cpu.to_bytes()?) {
        None => Ok(()),
        Some(at) => Err(format!("{what}: element {at} differs from the CPU's").into()),
    }
}

fn alibi(device: &Device, dtype: DType, strategy: Strategy, causal: bool) -> Outcome {
    let kernel = kernels::alibi(causal).strategy(strategy);
    for (heads, seq_len) in [(1, 1), (2, 7), (3, 16), (8, 33), (12, 64), (5, 128), (20, 100), (1, 600), (0, 4), (3, 0)]
    {
        let y = kernel.run(device, dtype, [heads, seq_len, seq_len])?;
        let slopes = paper_slopes(heads);
        for (at, got) in numbers(&y)?.into_iter().enumerate() {
            let (h, i, j) = (at / (seq_len * seq_len), at / seq_len % seq_len, at % seq_len);
            let exact = if causal && j > i { f64::NEG_INFINITY } else { -slopes[h] * i.abs_diff(j) as f64 };
            let exact = if dtype == DType::F8E4M3 { exact.max(-448.0) } else { exact };
            let ok = got == exact || (got - exact).abs() <= tolerance(dtype, exact, 0.501);
            if !ok || (i == j && got.is_sign_negative()) {
                return Err(format!("{heads} heads, head {h}, {i}, {j}: {got} instead of {exact}").into());
            }
        }
        if device.is_cuda() {
            let cpu = kernels::alibi(causal).run(&Device::cpu(), dtype, [heads, seq_len, seq_len])?;
            same_on_the_cpu(&y, &cpu, &format!("{heads} heads, {seq_len}"))?;
        }
    }
    assert_eq!(ops::alibi(device, dtype, 3, 9, causal)?.to_bytes()?, kernel.run(device, dtype, [3, 9, 9])?.to_bytes()?);
    Ok(())
}

/// The slopes as the paper's published code has them, in f64.
fn paper_slopes(heads: usize) -> Vec<f64> {
    let power_of_two = |n: usize| {
        let start = 2.0_f64.powf(-(2.0_f64.powf(-((n as f64).log2() - 3.0))));
        (0..n).map(|i| start.powi(i as i32 + 1)).collect::<Vec<_>>()
    };
    if heads == 0 {
        return Vec::new();
    }
    if heads.is_power_of_two() {
        return power_of_two(heads);
    }
    let closest = heads.next_power_of_two() / 2;
    let mut slopes = power_of_two(closest);
    slopes.extend(paper_slopes(2 * closest).into_iter().step_by(2).take(heads - closest));
    slopes
}

fn slopes() -> Outcome {
    for heads in [0, 1, 2, 3, 4, 6, 8, 12, 16, 20, 32, 40, 71, 128] {
        let got = ops::alibi_slopes(heads)?;
        assert_eq!(got.len(), heads);
        for (got, exact) in got.iter().zip(paper_slopes(heads)) {
            assert!((f64::from(*got) - exact).abs() <= exact * 6.1e-8, "{heads} heads: {got} instead of {exact}");
        }
    }
    Ok(())
}

fn sinusoidal(device: &Device, dtype: DType, strategy: Strategy, layout: SinusoidalLayout) -> Outcome {
    let kernel = kernels::sinusoidal(layout).strategy(strategy);
    let shapes = [(1, 2), (7, 6), (33, 64), (130, 96), (3, 1000), (5000, 16), (131_072, 2), (0, 4), (4, 0)];
    for (seq_len, d_model) in shapes {
        let y = kernel.run(device, dtype, [seq_len, d_model])?;
        for (at, got) in numbers(&y)?.into_iter().enumerate() {
            let (p, column) = (at / d_model, at % d_model);
            let (pair, is_cosine) = match layout {
                SinusoidalLayout::Interleaved => (column / 2, column % 2 == 1),
                SinusoidalLayout::Halves => (column % (d_model / 2), column >= d_model / 2),
            };
            let angle = p as f64 * 10_000_f64.powf(-2.0 * pair as f64 / d_model as f64);
            let exact = if is_cosine { angle.cos() } else { angle.sin() };
            // The stated bound: 3 ulp of f32 and 2^-46 of the angle.
            if (got - exact).abs() > tolerance(dtype, exact, 3.0) + angle * 2.0_f64.powi(-46) {
                return Err(format!("({seq_len}, {d_model}) at {p}, {column}: {got} instead of {exact}").into());
            }
        }
        if device.is_cuda() {
            let cpu = kernels::sinusoidal(layout).run(&Device::cpu(), dtype, [seq_len, d_model])?;
            same_on_the_cpu(&y, &cpu, &format!("({seq_len}, {d_model})"))?;
        }
    }
    assert_eq!(
        ops::sinusoidal(device, dtype, 9, 8, layout)?.to_bytes()?,
        kernel.run(device, dtype, [9, 8])?.to_bytes()?
    );
    Ok(())
}

/// Into views at any element, nothing around them written.
fn into_views(device: &Device) -> Outcome {
    for dtype in FLOATS {
        let size = dtype.size();
        for at in [0, 1, 3, 8, 16] {
            for (kind, shape) in [("alibi", vec![3, 16, 16]), ("sinusoidal", vec![48, 16])] {
                let n = shape.iter().product::<usize>();
                let mut y = Tensor::from_bytes(device, dtype, &vec![GUARD; (n + 32) * size], [n + 32])?;
                let view = y.view_mut().narrow(0, at, n)?.reshape(&shape[..])?;
                let exact = if kind == "alibi" {
                    ops::alibi_into(view, false)?;
                    ops::alibi(&Device::cpu(), dtype, 3, 16, false)?
                } else {
                    ops::sinusoidal_into(view, SinusoidalLayout::Interleaved)?;
                    ops::sinusoidal(&Device::cpu(), dtype, 48, 16, SinusoidalLayout::Interleaved)?
                };
                let bytes = y.to_bytes()?;
                let (start, end) = (at * size, (at + n) * size);
                if let Some(wrong) = differs(dtype, &bytes[start..end], &exact.to_bytes()?) {
                    return Err(format!("{kind} of {dtype} at {at}: element {wrong} is wrong").into());
                }
                if bytes[..start].iter().chain(&bytes[end..]).any(|&byte| byte != GUARD) {
                    return Err(format!("{kind} of {dtype} at {at}: wrote outside the view").into());
                }
            }
        }
    }
    Ok(())
}

fn encoding_errors(device: &Device) -> Outcome {
    let interleaved = SinusoidalLayout::Interleaved;
    let error = ops::sinusoidal(device, DType::F32, 4, 7, interleaved).unwrap_err();
    assert_eq!(error.to_string(), "d_model = 7: must be even: a sine and a cosine for each frequency");
    assert!(ops::sinusoidal(device, DType::I32, 4, 8, interleaved).unwrap_err().is_dtype());
    assert!(ops::alibi(device, DType::Bool, 4, 8, true).unwrap_err().is_dtype());
    assert!(ops::alibi(device, DType::F32, (1 << 31) + 1, 0, true).is_err());
    assert!(ops::alibi_slopes(usize::MAX).is_err());
    let mut y = Tensor::zeros(device, DType::F32, [2, 4, 5])?;
    let error = ops::alibi_into(&mut y, false).unwrap_err();
    assert!(error.to_string().contains("(num_heads, seq_len, seq_len)"), "{error}");
    assert!(ops::sinusoidal_into(&mut y, interleaved).is_err());
    let mut y = Tensor::zeros(device, DType::F32, [4, 8])?;
    let error = ops::sinusoidal_into(y.view_mut().transpose(0, 1)?, interleaved).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::NotContiguous { .. }), "{error}");
    assert_eq!(y.to_vec::<f32>()?, [0.0; 32], "nothing is written");
    for threads in [0, 33, 2048] {
        assert!(kernels::sinusoidal(interleaved).threads(threads).plan(&mut y).is_err());
    }
    let plan = kernels::sinusoidal(interleaved).strategy(Strategy::Table).plan(&mut y)?;
    assert_eq!((plan.strategy, plan.replaced.is_some()), (Strategy::Direct, true));
    Ok(())
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
        kernels::alibi(true).on(&stream).run_into(&mut bias)?;
        kernels::sinusoidal(SinusoidalLayout::Halves).on(&stream).run_into(&mut table)
    };
    // Loads the kernels, which a capture may not.
    run()?;
    stream.synchronize()?;
    stream.begin_capture()?;
    run()?;
    let graph = stream.end_capture()?;
    for tensor in [&mut y, &mut z, &mut copy, &mut bias, &mut table] {
        let poison = vec![GUARD; tensor.byte_len()];
        tensor.copy_from_bytes(&poison)?;
    }
    // SAFETY: every tensor of the graph lives, and nothing else uses them.
    unsafe { graph.launch(&stream)? };
    stream.synchronize()?;
    let cpu = Device::cpu();
    let (expected, kept) = ops::dropout_with_mask(&x.to_device(&cpu)?, 0.3, true, place)?;
    same_on_the_cpu(&y, &expected, "dropout")?;
    same_on_the_cpu(&z, &expected, "dropout with a mask")?;
    same_on_the_cpu(&mask, &kept, "the mask")?;
    assert_eq!(copy.to_bytes()?, x.to_bytes()?);
    same_on_the_cpu(&bias, &ops::alibi(&cpu, DType::F16, 4, 64, true)?, "alibi")?;
    same_on_the_cpu(&table, &ops::sinusoidal(&cpu, DType::F32, 100, 64, SinusoidalLayout::Halves)?, "sinusoidal")
}

/// More elements than 32 bits can count, looked at in places.
fn beyond_32_bits(device: &Device, strategy: Strategy) -> Outcome {
    let n = (1_usize << 32) + 12_345;
    let mut x = Tensor::zeros(device, DType::F8E4M3, [n])?;
    ops::cos_inplace(&mut x)?;
    let place = Philox::new(5);
    kernels::dropout(0.5).strategy(strategy).run_inplace(&mut x, place)?;
    let window = 50_000;
    for first in [0, (1 << 31) - 25_000, (1 << 32) - 25_000, n - window] {
        let bytes = x.view().narrow(0, first, window)?.to_bytes()?;
        // 1.0 in, 2.0 out.
        let (exact, _) = expected(DType::F8E4M3, &vec![0x38; window], 0.5, place, first as u64);
        if let Some(at) = differs(DType::F8E4M3, &bytes, &exact) {
            return Err(format!("element {} is wrong", first + at).into());
        }
    }
    Ok(())
}

/// On the CPU, and without elements, tuning is a typed error; the tuned kernel runs all the same.
fn nothing_to_measure(device: &Device) -> Outcome {
    let mut tuner = Tuner::in_memory();
    let cpu = Device::cpu();
    let x = Tensor::full(&cpu, 1.0_f32, [8])?;
    let mut y = Tensor::zeros(&cpu, DType::F32, [8])?;
    let error = tuner.tune(&kernels::relu(), &x, &mut y).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Unsupported { .. }), "{error}");
    assert_eq!(error.to_string(), "tuning on the CPU: there is nothing to tune; call the kernel as it is");
    assert_eq!(tuner.choice(&kernels::relu(), &x, &y)?, None);
    assert_eq!(kernels::relu().tuned(&tuner).run(&x)?.to_vec::<f32>()?, [1.0; 8]);
    assert!(tuner.warnings().is_empty() && tuner.file().is_none());
    let x = Tensor::zeros(device, DType::F32, [0])?;
    let mut y = Tensor::zeros(device, DType::F32, [0])?;
    assert!(tuner.tune(&kernels::relu(), &x, &mut y).is_err());

    let place = Philox::new(1);
    let x = Tensor::full(&cpu, 1.0_f32, [2, 8])?;
    let mut y = Tensor::zeros(&cpu, DType::F32, [2, 8])?;
    let mut half = Tensor::zeros(&cpu, DType::F32, [2, 4])?;
    let on_the_cpu = [
        tuner.tune_binary(&kernels::add(1.0), &x, 2.0, &mut y),
        tuner.tune_gated(&kernels::silu_and_mul(), &x, &mut half),
        tuner.tune_ternary(&kernels::lerp(), &x, &x, 0.5, &mut y),
        tuner.tune_dropout(&kernels::dropout(0.5), &x, &mut y, place),
    ];
    for result in on_the_cpu {
        assert!(result.unwrap_err().to_string().starts_with("tuning on the CPU: "));
    }
    // A call that is wrong in itself says so on any device.
    let error = tuner.tune_gated(&kernels::silu_and_mul(), x.view().narrow(1, 0, 7)?, &mut half).unwrap_err();
    assert!(error.to_string().contains("must be even"), "{error}");
    assert_eq!(kernels::add(1.0).tuned(&tuner).run(&x, 2.0)?.to_vec::<f32>()?, [3.0; 16]);
    assert_eq!(kernels::dropout(0.0).tuned(&tuner).run(&x, place)?.to_vec::<f32>()?, [1.0; 16]);
    Ok(())
}

/// Ops of several operands and dropout: each class of broadcast has a choice of its own, kept in the file and used.
fn tune_other_kinds(device: &Device) -> Outcome {
    let folder = std::env::temp_dir().join(format!("pointwise-special-{}-kinds", std::process::id()));
    let file = folder.join("tuner.json");
    let (rows, cols) = (1 << 10, 1 << 10);
    let matrix = Tensor::from_bytes(device, DType::BF16, &inputs::mixed(DType::BF16, rows * cols, 8), [rows, cols])?;
    let row = Tensor::from_bytes(device, DType::BF16, &inputs::mixed(DType::BF16, cols, 9), [cols])?;
    let wide =
        Tensor::from_bytes(device, DType::BF16, &inputs::mixed(DType::BF16, 2 * rows * cols, 10), [rows, 2 * cols])?;
    let mut y = Tensor::zeros(device, DType::BF16, [rows, cols])?;
    let (add, gated, lerp) = (kernels::add(1.0), kernels::silu_and_mul(), kernels::lerp());
    let (dropout, place) = (kernels::dropout(0.3), Philox::new(4));
    let mut tuner = Tuner::load_from(&file);
    let flat = tuner.tune_binary(&add, &matrix, &matrix, &mut y)?;
    let along_rows = tuner.tune_binary(&add, &matrix, &row, &mut y)?;
    let strided = tuner.tune_binary(&add, &matrix, matrix.view().transpose(0, 1)?, &mut y)?;
    let halves = tuner.tune_gated(&gated, &wide, &mut y)?;
    let three = tuner.tune_ternary(&lerp, &matrix, &row, 0.5, &mut y)?;
    let random = tuner.tune_dropout(&dropout, &matrix, &mut y, place)?;
    println!("{flat:?}\n{along_rows:?}\n{strided:?}\n{halves:?}\n{three:?}\n{random:?}");
    assert_eq!(strided.strategy, Strategy::Direct, "nothing else serves a transposed operand");
    assert_eq!(tuner.warnings(), &[] as &[String]);

    let again = Tuner::load_from(&file);
    assert_eq!(again.warnings().len(), 0);
    let tuned = add.clone().tuned(&again);
    let turned = matrix.view().transpose(0, 1)?;
    for (choice, plan) in [
        (flat, tuned.plan(&matrix, &matrix, &y)?),
        (along_rows, tuned.plan(&matrix, &row, &y)?),
        (strided, tuned.plan(&matrix, turned, &y)?),
        (halves, gated.clone().tuned(&again).plan(&wide, &y)?),
        (three, lerp.clone().tuned(&again).plan(&matrix, &row, 0.5, &y)?),
    ] {
        assert_eq!((plan.strategy, plan.threads, plan.replaced), (choice.strategy, choice.threads, None));
    }
    let plan = dropout.clone().tuned(&again).plan(&matrix, &y, None)?;
    assert_eq!((plan.strategy, plan.threads), (random.strategy, random.threads));
    // The same values, whatever was chosen.
    let pairs = [
        (add.run(&matrix, &row)?, tuned.run(&matrix, &row)?),
        (gated.run(&wide)?, gated.clone().tuned(&again).run(&wide)?),
        (lerp.run(&matrix, &row, 0.5)?, lerp.clone().tuned(&again).run(&matrix, &row, 0.5)?),
        (dropout.run(&matrix, place)?, dropout.clone().tuned(&again).run(&matrix, place)?),
    ];
    for (plain, tuned) in pairs {
        assert_eq!(differs(DType::BF16, &plain.to_bytes()?, &tuned.to_bytes()?), None);
    }
    // A strategy that was set holds; other sizes and ops have no choice.
    let set = tuned.clone().strategy(Strategy::Direct).threads(64).plan(&matrix, &matrix, &y)?;
    assert_eq!((set.strategy, set.threads), (Strategy::Direct, 64));
    let small = tuned.clone().threads(96);
    let mut part = Tensor::zeros(device, DType::BF16, [8, cols])?;
    let plan = small.plan(matrix.view().narrow(0, 0, 8)?, &row, &part)?;
    assert_eq!(plan.threads, 96);
    small.run_into(matrix.view().narrow(0, 0, 8)?, &row, &mut part)?;
    assert!(tuner.tune_dropout(&kernels::dropout(0.0), &matrix, &mut y, place).is_err(), "it draws nothing");

    std::fs::remove_dir_all(folder)?;
    Ok(())
}

/// A choice is made, kept in the file, used by calls like the one measured, and by no others.
fn tune(device: &Device, dtype: DType, n: usize) -> Outcome {
    let folder = std::env::temp_dir().join(format!("pointwise-special-{}-{dtype}", std::process::id()));
    let file = folder.join("tuner.json");
    let x = Tensor::from_bytes(device, dtype, &inputs::mixed(dtype, n, 6), [n])?;
    let mut y = Tensor::zeros(device, dtype, [n])?;
    let expected = ops::silu(&x)?.to_bytes()?;
    let kernel = kernels::silu();
    let mut tuner = Tuner::load_from(&file);
    let choice = tuner.tune(&kernel, &x, &mut y)?;
    println!("{dtype}, {n} elements: {choice:?}");
    assert!(choice.microseconds > 0.0 && choice.strategy != Strategy::Auto, "{choice:?}");
    assert_eq!(tuner.choice(&kernel, &x, &y)?, Some(choice));
    assert_eq!(tuner.warnings(), &[] as &[String]);

    let again = Tuner::load_from(&file);
    assert_eq!((again.choice(&kernel, &x, &y)?, again.warnings().len()), (Some(choice), 0));
    let tuned = kernel.clone().tuned(&again);
    let plan = tuned.plan(&x, &y)?;
    assert_eq!((plan.strategy, plan.threads, plan.replaced), (choice.strategy, choice.threads, None));
    y.copy_from_bytes(&vec![0; n * dtype.size()])?;
    tuned.run_into(&x, &mut y)?;
    assert_eq!(differs(dtype, &y.to_bytes()?, &expected), None);
    // A strategy that was set holds; other ops, sizes and alignments have no choice.
    let direct = tuned.clone().strategy(Strategy::Direct).plan(&x, &y)?;
    assert_eq!(direct.strategy, Strategy::Direct);
    assert_eq!(again.choice(&kernels::exp(), &x, &y)?, None);
    assert_eq!(again.choice(&kernel, x.view().narrow(0, 0, n / 4)?, &y)?, None);
    assert_eq!(again.choice(&kernel, x.view().narrow(0, 1, n - 1)?, &y)?, None);

    std::fs::remove_dir_all(folder)?;
    Ok(())
}
