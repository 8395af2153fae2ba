//! Every op that candle has, against candle's.

use candle_core::{DType, Result, Tensor};
use candle_nn::ops as nn;
use pointwise_candle::{Arg, Op, args, functions, op};

use crate::candle_functions::FUNCTIONS;
use crate::support::{assert_close, random};

/// Functions that candle refuses in 16 bits.
const ONLY_F32: [&str; 2] = ["selu", "mish"];

/// Returns operands in the domain of an op, with ties for comparisons.
pub(crate) fn operands(name: &str, count: usize, dtype: DType) -> Result<Vec<Tensor>> {
    let low = if matches!(name, "log" | "sqrt" | "rsqrt" | "reciprocal" | "pow" | "div") { 0.25 } else { -3.0 };
    let mut all = vec![random(&[6, 16], 1, low, 3.0, dtype)?];
    if count == 2 {
        all.push(random(&[16], 2, low, 3.0, dtype)?);
    }
    if matches!(name, "eq" | "ne" | "ge" | "le" | "gt" | "lt") {
        all = all.iter().map(|x| x.round()).collect::<Result<_>>()?;
    }
    Ok(all)
}

/// Returns how far candle's results may be off: it rounds to 16 bits after each step.
fn share(dtype: DType) -> f64 {
    match dtype {
        DType::F32 => 4e-6,
        DType::F16 => 1e-2,
        _ => 6e-2,
    }
}

#[test]
fn ops_agree_with_candle() -> Result<()> {
    for (name, count, function) in FUNCTIONS {
        for dtype in [DType::F32, DType::F16, DType::BF16] {
            let x = operands(name, *count, dtype)?;
            let args: Vec<Arg> = x.iter().map(Arg::from).collect();
            let got = op(name)?.run_one(&args)?;
            let expected = match function(&x) {
                // candle has these in f32 alone.
                Err(_) if dtype != DType::F32 && ONLY_F32.contains(name) => continue,
                expected => expected?,
            };
            assert_eq!(got.dtype(), expected.dtype(), "{name} of {dtype:?}");
            assert_close(&format!("{name} of {dtype:?}"), &got, &expected, share(dtype));
        }
    }
    Ok(())
}

#[test]
fn norms_agree_with_candle() -> Result<()> {
    for dtype in [DType::F32, DType::F16, DType::BF16] {
        let x = random(&[3, 5, 64], 1, -2.0, 2.0, dtype)?;
        let residual = random(&[3, 5, 64], 4, -2.0, 2.0, dtype)?;
        let (weight, bias) = (random(&[64], 2, 0.5, 1.5, dtype)?, random(&[64], 3, -1.0, 1.0, dtype)?);
        let expected = nn::rms_norm(&x, &weight, 1e-5)?;
        assert_close("rms_norm", &functions::rms_norm(&x, &weight, 1e-5)?, &expected, share(dtype));
        let rounded = op("rms_norm")?.set("eps", 1e-5)?.set("rounded", true)?.run_one(&args![&x, &weight])?;
        let expected = nn::rms_norm_slow(&x, &weight, 1e-5)?;
        assert_close("rms_norm, rounded", &rounded, &expected, share(dtype));
        let expected = nn::layer_norm(&x, &weight, &bias, 1e-5)?;
        assert_close("layer_norm", &functions::layer_norm(&x, &weight, &bias, 1e-5)?, &expected, share(dtype));
        let (y, sum) = functions::add_rms_norm(&x, &residual, &weight, 1e-5)?;
        let expected = (&x + &residual)?;
        assert_close("the sum", &sum, &expected, 0.0);
        assert_close("add_rms_norm", &y, &nn::rms_norm(&expected, &weight, 1e-5)?, share(dtype));
        let (y, sum) = functions::add_layer_norm(&x, &residual, &weight, &bias, 1e-5)?;
        assert_close("the sum", &sum, &expected, 0.0);
        assert_close("add_layer_norm", &y, &nn::layer_norm(&expected, &weight, &bias, 1e-5)?, share(dtype));
        assert_close("softmax", &functions::softmax(&x)?, &nn::softmax_last_dim(&x)?, share(dtype));
    }
    Ok(())
}

#[test]
fn selections_agree_with_candle() -> Result<()> {
    for dtype in [DType::F32, DType::BF16, DType::U8, DType::I64] {
        let (a, b) = (random(&[6, 16], 1, 0.0, 9.0, dtype)?, random(&[6, 16], 2, 0.0, 9.0, dtype)?);
        let condition = a.gt(&b)?;
        let got = functions::where_cond(&condition, &a, &b)?;
        assert_close("where", &got, &condition.where_cond(&a, &b)?, 0.0);
        let clamped = op("clamp")?.set("min", 2)?.set("max", 5)?.run_one(&args![&a])?;
        let (low, high) = (a.ones_like()?.affine(2.0, 0.0)?, a.ones_like()?.affine(5.0, 0.0)?);
        assert_close("clamp", &clamped, &a.maximum(&low)?.minimum(&high)?, 0.0);
    }
    let x = random(&[2, 4, 8], 1, -2.0, 2.0, DType::F32)?;
    let weight = random(&[4], 2, 0.0, 1.0, DType::F32)?;
    use candle_nn::Module;
    let expected = candle_nn::PReLU::new(weight.clone(), false).forward(&x)?;
    assert_close("prelu", &Op::run_one(&op("prelu")?, &args![&x, &weight])?, &expected, 0.0);
    Ok(())
}
