//! Every op of the registry in every type, read in place from contiguous, transposed, sliced and broadcast tensors.

use candle_core::{DType, Device, Result, Tensor};
use pointwise::info::OpInfo;
use pointwise::kernel::OpDef;
use pointwise::{Device as OurDevice, Operand, Scalar, Tensor as OurTensor};
use pointwise_candle::{Arg, Op, ops};

use crate::support::random;

const TYPES: [DType; 8] =
    [DType::F32, DType::F16, DType::BF16, DType::F8E4M3, DType::U8, DType::I16, DType::I32, DType::I64];

/// Returns the bytes of a contiguous tensor.
fn bytes(x: &Tensor) -> Vec<u8> {
    fn of<T: candle_core::WithDType>(x: &Tensor) -> Vec<u8> {
        let elements = x.flatten_all().unwrap().to_vec1::<T>().unwrap();
        // SAFETY: numbers of a plain type have no padding.
        unsafe { std::slice::from_raw_parts(elements.as_ptr().cast(), size_of_val(&elements[..])) }.to_vec()
    }
    match x.dtype() {
        DType::F32 => of::<f32>(x),
        DType::F16 => of::<pointwise::f16>(x),
        DType::BF16 => of::<pointwise::bf16>(x),
        DType::F8E4M3 => x.to_dtype(DType::F32).map(|x| of::<f32>(&x)).unwrap(),
        DType::U8 => of::<u8>(x),
        DType::I16 => of::<i16>(x),
        DType::I32 => of::<i32>(x),
        DType::I64 => of::<i64>(x),
        other => panic!("{other:?}"),
    }
}

/// Copies a tensor of candle's to one of pointwise's.
fn ours(x: &Tensor, is_bool: bool) -> OurTensor {
    fn of<T: candle_core::WithDType + Scalar>(x: &Tensor) -> OurTensor {
        let elements = x.flatten_all().unwrap().to_vec1::<T>().unwrap();
        OurTensor::from_slice(&OurDevice::cpu(), &elements, x.dims()).unwrap()
    }
    match x.dtype() {
        DType::U8 if is_bool => {
            let bools: Vec<bool> = x.flatten_all().unwrap().to_vec1::<u8>().unwrap().iter().map(|&x| x != 0).collect();
            OurTensor::from_slice(&OurDevice::cpu(), &bools, x.dims()).unwrap()
        }
        DType::F32 => of::<f32>(x),
        DType::F16 => of::<pointwise::f16>(x),
        DType::BF16 => of::<pointwise::bf16>(x),
        DType::F8E4M3 => {
            let floats = of::<f32>(&x.to_dtype(DType::F32).unwrap());
            pointwise::ops::to_dtype(&floats, pointwise::DType::F8E4M3).unwrap()
        }
        DType::U8 => of::<u8>(x),
        DType::I16 => of::<i16>(x),
        DType::I32 => of::<i32>(x),
        DType::I64 => of::<i64>(x),
        other => panic!("{other:?}"),
    }
}

/// Returns the bytes of a result of pointwise's, with f8e4m3 as f32 and bool as u8.
fn our_bytes(x: &OurTensor) -> Vec<u8> {
    fn of<T: Scalar>(x: &OurTensor) -> Vec<u8> {
        let elements = x.to_vec::<T>().unwrap();
        // SAFETY: numbers of a plain type have no padding.
        unsafe { std::slice::from_raw_parts(elements.as_ptr().cast(), size_of_val(&elements[..])) }.to_vec()
    }
    match x.dtype() {
        pointwise::DType::F32 => of::<f32>(x),
        pointwise::DType::F16 => of::<pointwise::f16>(x),
        pointwise::DType::BF16 => of::<pointwise::bf16>(x),
        pointwise::DType::F8E4M3 => of::<f32>(&pointwise::ops::to_dtype(x, pointwise::DType::F32).unwrap()),
        pointwise::DType::Bool => of::<bool>(x),
        pointwise::DType::U8 => of::<u8>(x),
        pointwise::DType::I16 => of::<i16>(x),
        pointwise::DType::I32 => of::<i32>(x),
        pointwise::DType::I64 => of::<i64>(x),
        other => panic!("{other}"),
    }
}

/// How the operands of a call lie.
#[derive(Clone, Copy, Debug)]
enum Lies {
    Contiguous,
    Transposed,
    Sliced,
    Broadcast,
}

/// Returns an operand that broadcasts to the shape (4, 6).
fn operand(info: &OpInfo, k: usize, dtype: DType, lies: Lies) -> Result<Tensor> {
    let (dtype, low, high) = match info.fixed_operand(k) {
        Some(pointwise::DType::Bool) => (DType::U8, 0.0, 2.0),
        Some(pointwise::DType::I64) => (DType::I64, 0.0, 6.0),
        Some(fixed) => (fixed.name().parse().map_err(candle_core::Error::wrap)?, 1.0, 9.0),
        None => (dtype, 1.0, 9.0),
    };
    let make = |shape: &[usize]| random(shape, 7 + k as u64, low, high, dtype);
    if info.is_row_operand(k) {
        return match lies {
            Lies::Contiguous | Lies::Broadcast => make(&[4]),
            Lies::Transposed => make(&[4, 3])?.t()?.get(1),
            Lies::Sliced => make(&[9])?.narrow(0, 3, 4),
        };
    }
    if info.is_channel(k) {
        return make(&[6]);
    }
    match lies {
        Lies::Contiguous => make(&[4, 6]),
        Lies::Transposed => make(&[6, 4])?.t(),
        Lies::Sliced => make(&[9, 13])?.narrow(0, 3, 4)?.narrow(1, 5, 6),
        // The first operand has the shape of the result; the others are one row, one column.
        Lies::Broadcast if k == 0 => make(&[4, 6]),
        Lies::Broadcast if k % 2 == 1 => make(&[1, 6])?.broadcast_as((4, 6)),
        Lies::Broadcast => make(&[4, 1]),
    }
}

/// Compares an op's results with pointwise's own, in every type, however the operands lie. Returns the number of calls.
pub(crate) fn check_bits(def: &'static OpDef) -> Result<usize> {
    let (info, mut calls) = (&def.info, 0);
    for dtype in TYPES {
        if !info.types.iter().any(|of| of.name() == dtype.as_str()) {
            continue;
        }
        for lies in [Lies::Contiguous, Lies::Transposed, Lies::Sliced, Lies::Broadcast] {
            let operands: Vec<Tensor> =
                (0..info.operands.len()).map(|k| operand(info, k, dtype, lies)).collect::<Result<_>>()?;
            let args: Vec<Arg> = operands.iter().map(Arg::from).collect();
            let what = format!("{} of {dtype:?}, {lies:?}", info.name);
            let results = Op::from(def).of_type(dtype)?.run(&args).unwrap_or_else(|error| panic!("{what}: {error}"));
            let copies: Vec<OurTensor> = operands.iter().enumerate().map(|(k, x)| ours(x, info.is_bool(k))).collect();
            let views: Vec<Operand<'_>> = copies.iter().map(Operand::from).collect();
            let of: pointwise::DType = dtype.as_str().parse().map_err(candle_core::Error::wrap)?;
            let expected = def.kernel(&[]).of_type(of).run(&views).unwrap();
            assert_eq!(results.len(), expected.len(), "{what}");
            for (result, expected) in results.iter().zip(&expected) {
                assert_eq!(result.dims(), expected.shape().dims(), "{what}");
                assert_eq!(bytes(result), our_bytes(expected), "{what}");
            }
            calls += 1;
        }
    }
    Ok(calls)
}

#[test]
fn results_have_the_bits_of_pointwise_itself() -> Result<()> {
    let mut calls = 0;
    for def in ops() {
        calls += check_bits(def)?;
    }
    assert!(calls > 1000, "{calls} calls: the registry is nearly empty");
    Ok(())
}

#[test]
fn a_gated_op_takes_one_tensor_or_two() -> Result<()> {
    for def in ops().filter(|def| def.takes_halves() && !def.info.is_gradient()) {
        let x = random(&[5, 14], 3, -4.0, 4.0, DType::BF16)?;
        let (gate, value) = (x.narrow(1, 0, 7)?, x.narrow(1, 7, 7)?);
        let op = Op::from(def);
        let (halves, pair) = (op.run_one(&[(&x).into()])?, op.run_one(&[(&gate).into(), (&value).into()])?);
        assert_eq!(bytes(&halves), bytes(&pair), "{}", def.info.name);
    }
    Ok(())
}

#[test]
fn operands_are_not_copied() -> Result<()> {
    // A slice far into a tensor, in every second column: its elements are read where they lie.
    let x = random(&[64, 128], 1, -2.0, 2.0, DType::F32)?;
    let view = x.narrow(0, 17, 20)?.narrow(1, 3, 50)?.t()?;
    let y = pointwise_candle::functions::silu(&view)?;
    assert_eq!(bytes(&y), bytes(&pointwise_candle::functions::silu(&view.contiguous()?)?));
    assert!(y.is_contiguous());
    Ok(())
}

#[test]
fn ops_in_place_write_over_their_operand() -> Result<()> {
    use pointwise_candle::{PointwiseOps, args};
    let x = random(&[6, 8], 1, -2.0, 2.0, DType::F32)?;
    let (y, z) = (random(&[8], 2, 1.0, 2.0, DType::F32)?, random(&[6, 1], 3, 0.0, 1.0, DType::F32)?);
    let expected = x.pointwise("silu")?.pointwise_with("mul", &args![&y])?.pointwise_with("lerp", &args![&y, &z])?;
    let over = x.copy()?;
    over.pointwise_inplace("silu", &[])?;
    over.pointwise_inplace("mul", &args![&y])?;
    over.pointwise_inplace("lerp", &args![&y, &z])?;
    assert_eq!(bytes(&over), bytes(&expected));
    // A slice: the elements around it stay.
    let whole = x.copy()?;
    whole.narrow(1, 2, 3)?.pointwise_inplace("add", &args![1.0])?;
    assert_eq!(bytes(&whole.narrow(1, 0, 2)?), bytes(&x.narrow(1, 0, 2)?));
    assert_eq!(bytes(&whole.narrow(1, 2, 3)?), bytes(&x.narrow(1, 2, 3)?.affine(1.0, 1.0)?));
    Ok(())
}

#[test]
fn numbers_and_types_meet_as_in_pytorch() -> Result<()> {
    use pointwise_candle::{PointwiseOps, args};
    let ints = Tensor::new(&[1_i64, 2, 3], &Device::Cpu)?;
    let halves = Tensor::new(&[0.5_f32, 0.25, 2.0], &Device::Cpu)?.to_dtype(DType::F16)?;
    assert_eq!(ints.pointwise_with("mul", &args![&halves])?.dtype(), DType::F16);
    assert_eq!(ints.pointwise_with("add", &args![1])?.to_vec1::<i64>()?, [2, 3, 4]);
    assert_eq!(ints.pointwise("exp")?.dtype(), DType::F32);
    assert_eq!(ints.pointwise_with("gt", &args![1])?.to_vec1::<u8>()?, [0, 1, 1]);
    Ok(())
}

#[test]
fn dropout_draws_by_place() -> Result<()> {
    use pointwise::Philox;
    let x = random(&[30, 20], 1, 1.0, 2.0, DType::F32)?;
    let place = Philox::new(5);
    let y = pointwise_candle::dropout(&x, 0.3, place)?;
    // As pointwise itself draws, and in row-major order of the view.
    let expected = pointwise::ops::dropout(&ours(&x, false), 0.3, place).unwrap();
    assert_eq!(bytes(&y), our_bytes(&expected));
    let turned = pointwise_candle::dropout(&x.t()?, 0.3, place)?;
    let expected = pointwise::ops::dropout(&ours(&x.t()?.contiguous()?, false), 0.3, place).unwrap();
    assert_eq!(bytes(&turned), our_bytes(&expected));
    let bias = pointwise_candle::alibi((8, 4, 4), DType::F32, &Device::Cpu)?;
    assert_eq!(bias.get(0)?.get(0)?.to_vec1::<f32>()?, [0.0, -0.5, -1.0, -1.5]);
    let halves = pointwise::kernel::SinusoidalLayout::Halves;
    let code = pointwise_candle::sinusoidal(halves, (3, 4), DType::F32, &Device::Cpu)?;
    let expected = Tensor::new(&[1.0_f32.sin(), 0.01_f32.sin(), 1.0_f32.cos(), 0.01_f32.cos()], &Device::Cpu)?;
    crate::support::assert_close("sinusoidal", &code.get(1)?, &expected, 1e-6);
    Ok(())
}

mod own {
    use pointwise::prelude::*;

    /// `x + sin^2(a x) / a`.
    #[op(f32, bf16, ulp = 8)]
    pub fn snake<T: Real>(x: T, #[param(default = 1.0)] a: T) -> T {
        let s = (a * x).sin();
        x + s * s / a
    }

    /// A sum of five operands, and their product.
    #[op(f32, ulp = 8, grad_ulp = 64, results(sum, product))]
    pub fn five<T: Real>(a: T, b: T, c: T, d: T, e: T) -> (T, T) {
        (a + b + c + d + e, a * b * c * d * e)
    }
}

pub(crate) use own::{Five, Snake};

#[test]
fn an_op_of_ones_own_takes_one_line() -> Result<()> {
    use pointwise_candle::PointwiseOps;
    let x = random(&[100], 1, -3.0, 3.0, DType::F32)?;
    let y = x.pointwise(Snake::<f64>::def())?;
    let expected = (&x + x.sin()?.sqr()?)?;
    crate::support::assert_close("snake", &y, &expected, 1e-6);
    let steep = Op::from(Snake::<f64>::def()).set("a", 2.0)?.run_one(&[(&x).into()])?;
    let expected = (&x + ((&x * 2.0)?.sin()?.sqr()? / 2.0)?)?;
    crate::support::assert_close("snake, a = 2", &steep, &expected, 1e-6);
    Ok(())
}
