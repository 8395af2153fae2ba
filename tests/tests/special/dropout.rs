//! Dropout against its definition, its statistics and its errors.

use pointwise::{DType, Device, ErrorKind, Philox, Strategy, Tensor, TensorView, kernels, ops};
use pointwise_core::Element;
use pointwise_testkit::{inputs, with_element};

use crate::{FLOATS, Failed, GUARD, Outcome, differs};

/// Dropout's definition: the result and the mask for the elements of `x`, as bytes.
fn expected(dtype: DType, x: &[u8], p: f64, place: Philox, first: u64) -> (Vec<u8>, Vec<u8>) {
    let size = dtype.size();
    let p = f64::from(p as f32);
    let scale = (1.0 / (1.0 - p)) as f32;
    let (mut y, mut mask) = (Vec::new(), Vec::new());
    with_element!(dtype, E => {
        for (i, bytes) in x.chunks_exact(size).enumerate() {
            let kept = f64::from(place.word(first + i as u64)) / 2.0_f64.powi(32) < 1.0 - p;
            mask.push(u8::from(kept));
            if kept {
                // One f32 product, rounded to the type: f64 holds it, and every value of these types, exactly.
                let value = pointwise_testkit::judge::from_bytes::<E>(bytes).to_f64() as f32 * scale;
                let value = pointwise_testkit::judge::from_bytes::<E>(&bytes_of::<E>(E::from_f64(f64::from(value))));
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

const SIZES: [usize; 20] = [0, 1, 2, 3, 4, 5, 7, 8, 15, 16, 17, 31, 33, 63, 127, 255, 257, 1023, 1025, 70_001];
/// Offsets of operand, result and mask.
const OFFSETS: [(usize, usize, usize); 9] =
    [(0, 0, 0), (1, 1, 1), (2, 2, 2), (3, 3, 3), (7, 7, 7), (9, 9, 0), (1, 0, 1), (0, 1, 0), (5, 2, 3)];

pub(crate) fn dropout(device: &Device, dtype: DType, strategy: Strategy) -> Outcome {
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
                        let into = (y.view_mut()?.narrow(0, y_at, n)?, mask.view_mut()?.narrow(0, mask_at, n)?);
                        kernel.run_with_mask_into(source, into.0, into.1, place)?;
                    } else {
                        kernel.run_into(source, y.view_mut()?.narrow(0, y_at, n)?, place)?;
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
                    let mut inplace = x.copy()?;
                    kernel.run_inplace(inplace.view_mut()?.narrow(0, x_at, n)?, place)?;
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

/// Thresholds that are an element's very word, and one less: all 32 bits count, in every lane.
pub(crate) fn thresholds(device: &Device, dtype: DType, strategy: Strategy) -> Outcome {
    let (size, n) = (dtype.size(), 61);
    let x_bytes = inputs::mixed(dtype, n + 3, 5);
    let x = Tensor::from_bytes(device, dtype, &x_bytes, [n + 3])?;
    for (place, i, p, is_kept) in around_words(n) {
        for at in [0, 3] {
            let (exact, kept) = expected(dtype, &x_bytes[at * size..(at + n) * size], p, place, 0);
            assert_eq!(kept[i], u8::from(is_kept));
            let kernel = kernels::dropout(p).strategy(strategy);
            let mut y = x.copy()?;
            let mut mask = Tensor::zeros(device, DType::Bool, [n + 3])?;
            let source = x.view().narrow(0, at, n)?;
            kernel.run_into(source, y.view_mut()?.narrow(0, at, n)?, place)?;
            let plain = y.to_bytes()?;
            let target = y.view_mut()?.narrow(0, at, n)?;
            kernel.run_with_mask_into(source, target, mask.view_mut()?.narrow(0, at, n)?, place)?;
            for bytes in [plain, y.to_bytes()?] {
                if let Some(wrong) = differs(dtype, &bytes[at * size..(at + n) * size], &exact) {
                    return Err(format!("the word of {i}, from {at}: element {wrong} is wrong").into());
                }
            }
            assert_eq!(mask.to_bytes()?[at..at + n], kept, "the word of {i}, from {at}");
        }
    }
    Ok(())
}

/// Places, elements below `n` there, probabilities that just keep or just drop the element, and which: those that are
/// numbers of f32, as few are that lie next to a word.
pub(crate) fn around_words(n: usize) -> Vec<(Philox, usize, f64, bool)> {
    let mut found = Vec::new();
    for part in 0.. {
        let place = Philox::new(77).at((1 << 40) + 1000 * part);
        for i in 0..n {
            let word = place.word(i as u64);
            for (kept_words, is_kept) in [(u64::from(word) + 1, true), (u64::from(word), false)] {
                // Exact: 32 bits and a power of two.
                let p = 1.0 - kept_words as f64 / 2.0_f64.powi(32);
                if f64::from(p as f32) == p && p > 0.0 && p < 1.0 {
                    found.push((place, i, p, is_kept));
                }
            }
        }
        if found.len() > 80 && [true, false].iter().all(|kept| found.iter().filter(|it| it.3 == *kept).count() > 30) {
            break;
        }
    }
    found
}

/// The ends of the range of p, training off, and the gradient.
pub(crate) fn settings(device: &Device, dtype: DType) -> Outcome {
    let n = 1000;
    // Codes as they are, NaN payloads included: a copy changes none.
    let bytes = inputs::mixed(dtype, n, 7);
    let x = Tensor::from_bytes(device, dtype, &bytes, [10, 100])?;
    let place = Philox::new(3);
    for (p, training) in [(0.0, true), (0.0, false), (0.3, false), (1.0, false)] {
        let (y, mask) = kernels::dropout(p).training(training).run_with_mask(&x, place)?;
        assert_eq!((y.to_bytes()?, mask.to_bytes()?), (bytes.clone(), vec![1; n]), "{p} {training}");
        let mut z = x.copy()?;
        kernels::dropout(p).training(training).run_inplace(&mut z, place)?;
        assert_eq!(z.to_bytes()?, bytes);
    }
    let (y, mask) = ops::dropout_with_mask(&x, 1.0, place)?;
    assert_eq!((y.to_bytes()?, mask.to_bytes()?), (vec![0; n * dtype.size()], vec![0; n]));
    assert_eq!(y.shape(), x.shape());
    let mut z = x.copy()?;
    ops::dropout_inplace(&mut z, 1.0, place)?;
    assert_eq!(z.to_bytes()?, vec![0; n * dtype.size()]);

    let y = ops::dropout(&x, 0.4, place)?.to_bytes()?;
    let gradient = ops::dropout_backward(&x, 0.4, place)?.to_bytes()?;
    assert_eq!(y, gradient, "the gradient is the same mask and factor");
    let mut z = Tensor::zeros(device, dtype, [10, 100])?;
    ops::dropout_backward_into(&x, &mut z, 0.4, place)?;
    assert_eq!(z.to_bytes()?, y);
    let mut z = x.copy()?;
    ops::dropout_backward_inplace(&mut z, 0.4, place)?;
    assert_eq!(z.to_bytes()?, y);
    Ok(())
}

/// The mask of `n` elements.
fn mask(device: &Device, p: f64, n: usize, place: Philox) -> Result<Vec<bool>, Failed> {
    let x = Tensor::zeros(device, DType::F8E5M2, [n])?;
    Ok(ops::dropout_with_mask(&x, p, place)?.1.to_vec::<bool>()?)
}

const N: usize = 1 << 20;

/// Four standard deviations: what a fair generator exceeds once in 16,000 tries; the seeds are fixed.
const SIGMAS: f64 = 4.0;

pub(crate) fn statistics(device: &Device) -> Outcome {
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

/// Neighbours at many lags, lanes of a block, seeds and offsets are uncorrelated.
pub(crate) fn independence(device: &Device) -> Outcome {
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
    // Pairs of lanes of a block alone.
    for (i, j) in (0..8).flat_map(|i| (0..i).map(move |j| (i, j))) {
        let lane = |k: usize| first.iter().skip(k).step_by(8).copied().collect::<Vec<_>>();
        check(format!("lanes {i} and {j}"), &lane(i), &lane(j))?;
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
pub(crate) fn views(device: &Device) -> Outcome {
    let place = Philox::new(99).at(5);
    let values: Vec<f32> = (0..24 * 36).map(|i| i as f32 - 400.0).collect();
    let x = Tensor::from_slice(device, &values, [24, 36])?;
    let flat = ops::dropout(x.view().reshape([24 * 36])?, 0.5, place)?;
    assert_eq!(ops::dropout(&x, 0.5, place)?.to_bytes()?, flat.to_bytes()?);
    let turned = x.view().transpose(0, 1)?;
    let (y, mask) = ops::dropout_with_mask(turned, 0.5, place)?;
    let copied = ops::dropout(&turned.to_tensor()?, 0.5, place)?;
    assert_eq!((y.shape(), y.to_bytes()?), (turned.shape(), copied.to_bytes()?));
    assert_eq!(ops::dropout(turned, 0.5, place)?.to_bytes()?, copied.to_bytes()?);
    assert_eq!(ops::dropout(turned, 0.0, place)?.to_bytes()?, turned.to_tensor()?.to_bytes()?);
    let (y, none) = ops::dropout_with_mask(turned, 1.0, place)?;
    assert_eq!((y.to_bytes()?, none.to_bytes()?), (vec![0; 24 * 36 * 4], vec![0; 24 * 36]));
    for dtype in FLOATS {
        let ones = Tensor::zeros(device, dtype, [36, 24])?;
        let other = ops::dropout_with_mask(&ones, 0.5, place)?.1;
        assert_eq!(other.to_bytes()?, mask.to_bytes()?, "{dtype}");
    }
    // A dropped infinity or NaN is +0, and so is a dropped negative number.
    let x = Tensor::from_slice(device, &[f32::NAN, f32::INFINITY, -1.0, f32::NEG_INFINITY].repeat(64), [256])?;
    let (y, mask) = ops::dropout_with_mask(&x, 0.5, place)?;
    let pairs = y.to_vec::<f32>()?.into_iter().zip(mask.to_vec::<bool>()?);
    assert!(pairs.clone().filter(|(_, kept)| !kept).all(|(y, _)| y.to_bits() == 0));
    assert!(pairs.clone().any(|(y, kept)| kept && y.is_nan()));
    Ok(())
}

pub(crate) fn dropout_errors(device: &Device) -> Outcome {
    let place = Philox::new(0);
    let x = Tensor::zeros(device, DType::F32, [4])?;
    for p in [-0.1, 1.1, f64::NAN, f64::INFINITY, -f64::MIN_POSITIVE, 1.0 + f64::EPSILON] {
        for training in [true, false] {
            let error = kernels::dropout(p).training(training).run(&x, place).unwrap_err();
            assert!(matches!(error.kind(), ErrorKind::Parameter { name: "p", .. }), "{error}");
        }
        assert!(ops::dropout_backward(&x, p, place).is_err());
    }
    assert_eq!(ops::dropout(&x, 1.5, place).unwrap_err().to_string(), "p = 1.5: must be a probability, from 0 to 1");
    let ints = Tensor::zeros(device, DType::I32, [4])?;
    assert!(ops::dropout(&ints, 0.5, place).unwrap_err().is_dtype());
    let mut y = Tensor::zeros(device, DType::F32, [5])?;
    assert!(ops::dropout_into(&x, &mut y, 0.5, place).unwrap_err().is_shape());
    let mut y = Tensor::zeros(device, DType::F16, [4])?;
    assert!(ops::dropout_into(&x, &mut y, 0.5, place).unwrap_err().is_dtype());
    let (mut y, mut mask) = (Tensor::zeros(device, DType::F32, [4])?, Tensor::zeros(device, DType::U8, [4])?);
    assert!(ops::dropout_with_mask_into(&x, &mut y, &mut mask, 0.5, place).unwrap_err().is_dtype());
    let mut mask = Tensor::zeros(device, DType::Bool, [3])?;
    assert!(ops::dropout_with_mask_into(&x, &mut y, &mut mask, 0.5, place).unwrap_err().is_shape());
    for threads in [0, 31, 48, 2048] {
        assert!(kernels::dropout(0.5).threads(threads).plan(&x, &y, None).is_err());
    }
    // The result one element into its operand.
    let mut both = Tensor::zeros(device, DType::F32, [5])?;
    let address = both.device_ptr();
    // SAFETY: a view for one call, refused before it is read.
    let source = unsafe { TensorView::from_raw_parts(device, address, DType::F32, [4], &[1])? };
    let target = both.view_mut()?.narrow(0, 1, 4)?;
    let error = ops::dropout_into(source, target, 0.5, place).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Overlap { .. }), "{error}");
    Ok(())
}

/// More elements than 32 bits can count, looked at in places.
pub(crate) fn beyond_32_bits(device: &Device, strategy: Strategy) -> Outcome {
    let n = (1_usize << 32) + 12_345;
    let mut x = Tensor::zeros(device, DType::F8E4M3, [n])?;
    ops::cos_inplace(&mut x)?;
    let place = Philox::new(5);
    kernels::dropout(0.5).strategy(strategy).run_inplace(&mut x, place)?;
    let window = 50_000;
    for first in [0, (1 << 31) - 25_000, n - window] {
        let bytes = x.view().narrow(0, first, window)?.to_bytes()?;
        // 1.0 in, 2.0 out.
        let (exact, _) = expected(DType::F8E4M3, &vec![0x38; window], 0.5, place, first as u64);
        if let Some(at) = differs(DType::F8E4M3, &bytes, &exact) {
            return Err(format!("element {} is wrong", first + at).into());
        }
    }
    Ok(())
}
