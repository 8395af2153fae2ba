//! ALiBi and the sinusoidal encoding against f64.

use pointwise::{DType, Device, ErrorKind, Strategy, Tensor, kernel::SinusoidalLayout, kernels, ops};
use pointwise_core::Element;
use pointwise_testkit::with_element;

use crate::{FLOATS, Failed, GUARD, Outcome, differs, same_on_the_cpu};

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
        bytes.chunks_exact(size_of::<E>()).map(|bytes| pointwise_testkit::judge::from_bytes::<E>(bytes).to_f64()).collect()
    }))
}

pub(crate) fn alibi(device: &Device, dtype: DType, strategy: Strategy, causal: bool) -> Outcome {
    let default = if causal { kernels::alibi_causal() } else { kernels::alibi() };
    let kernel = default.clone().strategy(strategy);
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
        if !device.is_cpu() {
            let cpu = default.run(&Device::cpu(), dtype, [heads, seq_len, seq_len])?;
            same_on_the_cpu(&y, &cpu, &format!("{heads} heads, {seq_len}"))?;
        }
    }
    let function = if causal { ops::alibi_causal } else { ops::alibi };
    assert_eq!(function(device, dtype, 3, 9)?.to_bytes()?, kernel.run(device, dtype, [3, 9, 9])?.to_bytes()?);
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

pub(crate) fn slopes() -> Outcome {
    for heads in [0, 1, 2, 3, 4, 6, 8, 12, 16, 20, 32, 40, 71, 128] {
        let got = ops::alibi_slopes(heads)?;
        assert_eq!(got.len(), heads);
        for (got, exact) in got.iter().zip(paper_slopes(heads)) {
            assert!((f64::from(*got) - exact).abs() <= exact * 6.1e-8, "{heads} heads: {got} instead of {exact}");
        }
    }
    Ok(())
}

pub(crate) fn sinusoidal(device: &Device, dtype: DType, strategy: Strategy, layout: SinusoidalLayout) -> Outcome {
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
            // The stated bounds: 3 ulp of f32 and 2^-46 of the angle; of 16 and 8 bits, what f32 is within before it is
            // rounded.
            let within = match dtype.size() {
                4 => 0.0,
                2 => 2.0_f64.powi(-22),
                _ => 2.0_f64.powi(-18),
            };
            let allowed = tolerance(dtype, exact, 3.0) + within + angle * 2.0_f64.powi(-46);
            let is_near = (got - exact).abs() <= allowed;
            if !is_near {
                return Err(format!("({seq_len}, {d_model}) at {p}, {column}: {got} instead of {exact}").into());
            }
        }
        if !device.is_cpu() {
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
pub(crate) fn into_views(device: &Device) -> Outcome {
    for dtype in FLOATS {
        let size = dtype.size();
        for at in [0, 1, 3, 8, 16] {
            for (kind, shape) in [("alibi", vec![3, 16, 16]), ("sinusoidal", vec![48, 16])] {
                let n = shape.iter().product::<usize>();
                let mut y = Tensor::from_bytes(device, dtype, &vec![GUARD; (n + 32) * size], [n + 32])?;
                let view = y.view_mut()?.narrow(0, at, n)?.reshape(&shape[..])?;
                let exact = if kind == "alibi" {
                    ops::alibi_into(view)?;
                    ops::alibi(&Device::cpu(), dtype, 3, 16)?
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

pub(crate) fn encoding_errors(device: &Device) -> Outcome {
    let interleaved = SinusoidalLayout::Interleaved;
    let error = ops::sinusoidal(device, DType::F32, 4, 7, interleaved).unwrap_err();
    assert_eq!(error.to_string(), "d_model = 7: must be even: a sine and a cosine for each frequency");
    assert!(ops::sinusoidal(device, DType::I32, 4, 8, interleaved).unwrap_err().is_dtype());
    assert!(ops::alibi_causal(device, DType::Bool, 4, 8).unwrap_err().is_dtype());
    assert!(ops::alibi_causal(device, DType::F32, (1 << 31) + 1, 0).is_err());
    for heads in [(1 << 24) + 1, 1 << 31, usize::MAX] {
        assert!(ops::alibi_slopes(heads).is_err());
    }
    let mut y = Tensor::zeros(device, DType::F32, [2, 4, 5])?;
    let error = ops::alibi_into(&mut y).unwrap_err();
    assert!(error.to_string().contains("(num_heads, seq_len, seq_len)"), "{error}");
    assert!(ops::sinusoidal_into(&mut y, interleaved).is_err());
    let mut y = Tensor::zeros(device, DType::F32, [4, 8])?;
    let error = ops::sinusoidal_into(y.view_mut().unwrap().transpose(0, 1)?, interleaved).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::NotContiguous { .. }), "{error}");
    assert_eq!(y.to_vec::<f32>()?, [0.0; 32], "nothing is written");
    for threads in [0, 33, 2048] {
        assert!(kernels::sinusoidal(interleaved).threads(threads).plan(&mut y).is_err());
    }
    let plan = kernels::sinusoidal(interleaved).strategy(Strategy::Table).plan(&mut y)?;
    assert_eq!((plan.strategy, plan.replaced.is_some()), (Strategy::Direct, true));
    Ok(())
}
