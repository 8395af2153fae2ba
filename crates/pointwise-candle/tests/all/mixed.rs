//! Ops of several element types, of operands and results that a row has once: results, gradients, errors.

use candle_core::{DType, Device, Result, Tensor, Var};
use candle_nn::{loss, ops as nn};
use pointwise_candle::{Op, PointwiseOps, args, functions, op};

use crate::errors::fails;
use crate::gradients::check;
use crate::layouts::check_bits;
use crate::support::{assert_close, random};

mod own {
    use pointwise::prelude::*;

    /// Codes times a scale. No operand has the op's type.
    #[op(f32, f16, bf16, exact)]
    pub fn scaled_codes<T: Real>(#[stored(u8)] code: T, #[stored(f32)] scale: T) -> T {
        code * scale
    }

    /// A step against the gradient with a memory in f32.
    #[op(f32, f16, bf16, ulp = 4, grad = none, results(next, memory: f32))]
    pub fn descent<T: Real>(x: T, slope: T, #[stored(f32)] memory: T, #[param(default = 0.5)] rate: T) -> (T, T) {
        let memory = (memory + slope) * T::constant(0.5);
        (x - rate * memory, memory)
    }

    /// Rows over their largest magnitude, times a weight in f32.
    #[op(f32, f16, bf16, ulp = 4, grad_ulp = 16)]
    pub fn weighed_rows<T: Real>(x: T, #[stored(f32)] weight: T, row: Row<T>) -> T {
        x * (row.mean(x * x) + T::constant(0.25)).rsqrt() * weight
    }

    /// Each row without its mean, and the mean.
    #[op(f32, f16, bf16, ulp = 4, grad_ulp = 16, results(rest, mean))]
    pub fn centred<T: Real>(x: T, row: Row<T>) -> (T, PerRow<T>) {
        let mean = row.mean(x);
        (x - mean, PerRow(mean))
    }

    /// Rows without their mean, times a number for each.
    #[op(f32, f16, bf16, ulp = 4, grad = none)]
    pub fn scaled_rows<T: Real>(x: T, scale: PerRow<T>, row: Row<T>) -> T {
        (x - row.mean(x)) * scale.0
    }

    /// The element of each row that its label names.
    #[op(f32, f16, bf16, exact)]
    pub fn named<T: Real>(x: T, #[stored(i64)] label: PerRow<T>, row: Row<T>) -> PerRow<T> {
        PerRow(row.sum(if row.index() == label.0 { x } else { T::ZERO }))
    }

    /// Rows in f8e4m3, and what they are to be multiplied by.
    #[op(f32, f16, bf16, ulp = 2, grad = none, results(q: f8e4m3, scale: f32))]
    pub fn packed<T: Real>(x: T, row: Row<T>) -> (T, PerRow<T>) {
        let scale = row.max(x.abs()).maximum(T::constant(1e-12)) / T::constant(448.0);
        (x / scale, PerRow(scale))
    }

    /// Groups over their root mean square, which is a result too, times a weight.
    #[op(f32, f16, bf16, ulp = 4, grad_ulp = 16, row = 16, results(y, rms))]
    pub fn grouped<T: Real>(x: T, weight: T, row: Row<T>) -> (T, PerRow<T>) {
        let rms = (row.mean(x * x) + T::constant(0.25)).sqrt();
        (x / rms * weight, PerRow(rms))
    }

    /// A type that candle does not have.
    #[op(f32, ulp = 2, grad = none, results(q: i8))]
    pub fn to_i8<T: Real>(x: T) -> T {
        x
    }
}
use own::{Centred, Descent, Grouped, Named, Packed, ScaledCodes, ScaledRows, ToI8, WeighedRows};

#[test]
fn results_have_the_bits_of_pointwise_itself() -> Result<()> {
    let ops = [
        ScaledCodes::def(),
        Descent::<f64>::def(),
        WeighedRows::def(),
        Centred::def(),
        ScaledRows::def(),
        Named::def(),
        Packed::def(),
    ];
    for def in ops {
        // Three types, four layouts.
        assert_eq!(check_bits(def)?, 12, "{}", def.info.name);
    }
    Ok(())
}

#[test]
fn gradients_are_slopes() -> Result<()> {
    [ScaledCodes::def(), WeighedRows::def(), Centred::def(), Named::def()].into_iter().try_for_each(check)
}

#[test]
fn results_have_the_types_that_the_op_says() -> Result<()> {
    let x = random(&[3, 8], 1, -2.0, 2.0, DType::BF16)?;
    let memory = Tensor::zeros((3, 8), DType::F32, &Device::Cpu)?;
    let types = |results: Vec<Tensor>| results.iter().map(Tensor::dtype).collect::<Vec<_>>();
    assert_eq!(types(Op::from(Descent::<f64>::def()).run(&args![&x, &x, &memory])?), [DType::BF16, DType::F32]);
    let packed = Op::from(Packed::def()).run(&args![&x])?;
    assert_eq!((packed[0].dims(), packed[1].dims()), (&[3, 8][..], &[3][..]));
    assert_eq!(types(packed), [DType::F8E4M3, DType::F32]);
    let codes = Tensor::new(&[3_u8, 200], &Device::Cpu)?;
    let scaled = Op::from(ScaledCodes::def());
    assert_eq!(scaled.run_one(&args![&codes, 0.5])?.to_vec1::<f32>()?, [1.5, 100.0]);
    assert_eq!(scaled.of_type(DType::F16)?.run_one(&args![&codes, 0.5])?.dtype(), DType::F16);
    Ok(())
}

#[test]
fn rows_are_groups_of_the_last_dimension() -> Result<()> {
    let x = Var::from_tensor(&random(&[5, 48], 1, -2.0, 2.0, DType::F32)?)?;
    let weight = Var::from_tensor(&random(&[48], 2, 0.5, 1.5, DType::F32)?)?;
    let ours = Op::from(Grouped::def()).run(&args![x.as_tensor(), weight.as_tensor()])?;
    let groups = x.reshape((5, 3, 16))?;
    let rms = (groups.sqr()?.mean(2)? + 0.25)?.sqrt()?;
    let y = groups.broadcast_div(&rms.unsqueeze(2)?)?.reshape((5, 48))?.broadcast_mul(&weight)?;
    assert_eq!((ours[0].dims(), ours[1].dims()), (&[5, 48][..], &[5, 3][..]));
    assert_close("the groups", &ours[0], &y, 1e-6);
    assert_close("of each", &ours[1], &rms, 1e-6);
    let grads = |y: &Tensor, rms: &Tensor| (y.sqr()?.sum_all()? + rms.sqr()?.sum_all()?)?.backward();
    let (of_ours, of_theirs) = (grads(&ours[0], &ours[1])?, grads(&y, &rms)?);
    for (what, operand) in [("of x", &x), ("of the weight", &weight)] {
        assert_close(what, of_ours.get(operand).unwrap(), of_theirs.get(operand).unwrap(), 1e-4);
    }
    let odd = random(&[5, 40], 1, -2.0, 2.0, DType::F32)?;
    fails(Op::from(Grouped::def()).run(&args![&odd, 1.0]), &["grouped of shape [5, 40]", "multiple of 16"]);
    Ok(())
}

#[test]
fn gradients_have_the_types_of_their_operands() -> Result<()> {
    let x = random(&[4, 16], 1, -2.0, 2.0, DType::BF16)?;
    let weight = Var::from_tensor(&random(&[16], 2, 0.5, 1.5, DType::F32)?)?;
    let run = |dtype: DType| -> Result<(Tensor, Tensor)> {
        let x = Var::from_tensor(&x.to_dtype(dtype)?)?;
        let y = x.pointwise_with(WeighedRows::def(), &args![weight.as_tensor()])?;
        let grads = y.to_dtype(DType::F32)?.sqr()?.sum_all()?.backward()?;
        Ok((grads.get(&x).unwrap().clone(), grads.get(&weight).unwrap().clone()))
    };
    let (of_x, of_weight) = run(DType::BF16)?;
    assert_eq!((of_x.dtype(), of_weight.dtype()), (DType::BF16, DType::F32));
    let (exact_x, exact_weight) = run(DType::F32)?;
    assert_close("of x", &of_x, &exact_x, 2e-2);
    assert_close("of the weight", &of_weight, &exact_weight, 2e-2);
    Ok(())
}

#[test]
fn cross_entropy_agrees_with_candle() -> Result<()> {
    let logits = Var::from_tensor(&random(&[6, 10], 1, -4.0, 4.0, DType::F32)?)?;
    let labels = Tensor::new(&[0_u32, 9, 3, 3, 5, 1], &Device::Cpu)?;
    let theirs = loss::cross_entropy(&logits, &labels)?;
    let their_grads = theirs.backward()?;
    for dtype in [DType::U32, DType::I64, DType::U8] {
        let ours = functions::cross_entropy(&logits, &labels.to_dtype(dtype)?)?.mean_all()?;
        assert_close("the loss", &ours, &theirs, 1e-6);
        let grads = ours.backward()?;
        assert_close("its gradient", grads.get(&logits).unwrap(), their_grads.get(&logits).unwrap(), 1e-6);
    }
    // Logits and labels of more dimensions, read where they lie.
    let cube = logits.reshape((2, 3, 10))?.transpose(0, 1)?;
    let square = labels.reshape((2, 3))?.t()?;
    let each = functions::cross_entropy(&cube, &square)?;
    let log = nn::log_softmax(&logits, 1)?.neg()?;
    let expected = log.gather(&labels.unsqueeze(1)?, 1)?.reshape((2, 3))?.t()?;
    assert_close("of each row", &each, &expected, 1e-6);
    // A row that does not count, and a smoothed target.
    let labels = Tensor::new(&[0_i64, 9, 3, -1, 5, 1], &Device::Cpu)?;
    let entropy = op("cross_entropy")?.set("ignore_index", -1)?;
    let each = entropy.clone().run_one(&args![&logits, &labels])?;
    assert_eq!(each.get(3)?.to_scalar::<f32>()?, 0.0);
    let smooth = entropy.set("label_smoothing", 0.25)?.run_one(&args![&logits, &labels])?;
    let even = log.mean(1)?.get(0)?.to_scalar::<f32>()?;
    let mixed = 0.75 * each.get(0)?.to_scalar::<f32>()? + 0.25 * even;
    assert!((smooth.get(0)?.to_scalar::<f32>()? - mixed).abs() < 1e-5);
    Ok(())
}

#[test]
fn bad_operands_are_errors() -> Result<()> {
    let x = random(&[4, 6], 1, -1.0, 1.0, DType::F32)?;
    let labels = |count: usize| Tensor::zeros(count, DType::I64, &Device::Cpu);
    fails(functions::cross_entropy(&x, &labels(5)?), &["broadcast"]);
    fails(functions::cross_entropy(&x, &x.get_on_dim(1, 0)?), &["labels", "i64", "f32"]);
    fails(x.pointwise(ToI8::def()), &["i8", "candle does not have"]);
    let halves = x.to_dtype(DType::F16)?;
    fails(x.pointwise_with(WeighedRows::def(), &args![&halves.get(0)?]), &["weight", "f32", "f16"]);
    fails(Op::from(ScaledCodes::def()).of_type(DType::F64), &["f64"]);
    fails(x.pointwise_inplace(Packed::def(), &[]), &["packed"]);
    Ok(())
}
