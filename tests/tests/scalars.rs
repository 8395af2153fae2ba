//! Numbers as operands and as `alpha`: which are rounded to the element type first, and which are refused, is as with
//! PyTorch's CUDA kernels.

use pointwise::{DType, Device, ErrorKind, Number, Operand, Result, Tensor, bf16, f16, kernels, ops};

const CPU: Device = Device::cpu();

/// An op of two operands.
type Binary = for<'a> fn(Operand<'a>, Operand<'a>) -> Result<Tensor>;

/// Each op, and whether a number is an element as its first and as its second operand; else it is an f32.
const OPS: &[(&str, Binary, [bool; 2])] = &[
    ("add", |a, b| ops::add(a, b), [false, false]),
    ("sub", |a, b| ops::sub(a, b), [false, false]),
    ("mul", |a, b| ops::mul(a, b), [false, false]),
    ("div", |a, b| ops::div(a, b), [true, false]),
    ("div_trunc", |a, b| ops::div_trunc(a, b), [true, false]),
    ("floor_divide", |a, b| ops::floor_divide(a, b), [true, false]),
    ("remainder", |a, b| ops::remainder(a, b), [true, true]),
    ("pow", |a, b| ops::pow(a, b), [true, true]),
    ("eq", |a, b| ops::eq(a, b), [true, true]),
];

/// 0.3 is another number in each of the 16-bit types: the results tell which one was taken.
#[test]
fn what_a_number_is_rounded_to() {
    for dtype in [DType::F16, DType::BF16] {
        // Its rounding, some multiples of either, and others.
        let third = Tensor::full(&CPU, 0.3_f32, []).unwrap();
        let element = third.to_dtype(dtype).unwrap();
        let x: Vec<f32> = (1..=2000).map(|i| i as f32 * 0.0125).collect();
        let x = Tensor::from_slice(&CPU, &x, [x.len()]).unwrap().to_dtype(dtype).unwrap();
        let wide = x.to_dtype(DType::F32).unwrap();
        for &(name, op, is_element) in OPS {
            for (at, is_element) in is_element.into_iter().enumerate() {
                let call = |x: &Tensor, number: Operand<'_>| {
                    let mut operands = [Operand::from(x), Operand::from(x)];
                    let y = {
                        operands[at] = number;
                        op(operands[0], operands[1]).unwrap()
                    };
                    let result = if y.dtype() == DType::Bool { DType::Bool } else { dtype };
                    y.to_dtype(result).unwrap().to_bytes().unwrap()
                };
                let got = call(&x, Operand::from(0.3));
                let as_element = call(&x, Operand::from(&element));
                // The op in f32, and one rounding: what a 16-bit kernel does.
                let as_f32 = call(&wide, Operand::from(&third));
                assert_ne!(as_element, as_f32, "{name} {dtype}: the operands tell nothing");
                let expected = if is_element { &as_element } else { &as_f32 };
                assert!(got == *expected, "{name} of {dtype} with a number as operand {at}");
            }
        }
    }
}

/// PyTorch's results.
#[test]
fn remainders_by_a_number() {
    let of = |values: &[f32]| Tensor::from_slice(&CPU, values, [values.len()]).unwrap();
    let halves = of(&[1.0, 5.0, -2.5]).to_dtype(DType::F16).unwrap();
    let y = ops::remainder(&halves, 0.3).unwrap().to_vec::<f16>().unwrap();
    assert_eq!(y, [0.099_853_516, 0.199_218_75, 0.200_439_45].map(f16::from_f32));
    let brains = of(&[1.0, 5.0, -2.5]).to_dtype(DType::BF16).unwrap();
    let y = ops::remainder(&brains, 0.3).unwrap().to_vec::<bf16>().unwrap();
    assert_eq!(y, [0.097_656_25, 0.1875, 0.207_031_25].map(bf16::from_f32));
}

/// An integer becomes an f32 by one rounding, also where f64 cannot hold it.
#[test]
fn large_integers_are_rounded_once() {
    // Just above the middle of two neighbours in f32. In f64 it is the middle, and would be rounded down.
    let number = (1_i64 << 60) + (1 << 36) + 1;
    assert_ne!(number as f32, number as f64 as f32, "the number tells nothing");
    let zero = Tensor::zeros(&CPU, DType::F32, [1]).unwrap();
    let no = Tensor::from_slice(&CPU, &[false], [1]).unwrap();
    for (name, y) in [
        ("operand", ops::add(&zero, number)),
        ("alpha", kernels::add(number).run(&zero, &Tensor::full(&CPU, 1.0_f32, [1]).unwrap())),
        ("bound", ops::clamp(&zero, number, None)),
        ("fill value", ops::where_cond(&no, &zero, number)),
    ] {
        assert_eq!(y.unwrap().to_vec::<f32>().unwrap(), [number as f32], "{name}");
    }
}

#[test]
fn an_exponent_beyond_the_type() {
    let x = |dtype| Tensor::zeros(&CPU, dtype, [2]).unwrap();
    let error = ops::pow(&x(DType::F16), 1e5).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Parameter { .. }));
    assert_eq!(error.to_string(), "b = 100000: f16 cannot hold this exponent; convert the tensor to f32");
    assert!(ops::pow(&x(DType::BF16), 1e5).is_ok() && ops::pow(&x(DType::F32), 1e5).is_ok());
    assert_eq!([65504, -65504, 65505].map(|b| ops::pow(&x(DType::F16), b).is_ok()), [true, true, false]);
    // As a base it is infinite, and a divisor may be.
    let ones = Tensor::full(&CPU, f16::from_f32(1.0), [2]).unwrap();
    assert_eq!(ops::pow(1e5, &ones).unwrap().to_vec::<f16>().unwrap(), [f16::INFINITY; 2]);
    assert_eq!(ops::remainder(&ones, 1e5).unwrap().to_vec::<f16>().unwrap(), [f16::from_f32(1.0); 2]);
}

#[test]
fn alpha_is_of_the_category_of_the_result() {
    let ints = Tensor::from_slice(&CPU, &[5_i32, -2], [2]).unwrap();
    let floats = Tensor::from_slice(&CPU, &[0.5_f32, 2.0], [2]).unwrap();
    let bools = Tensor::from_slice(&CPU, &[true, false], [2]).unwrap();
    for (alpha, value) in [(2.0, "2.0"), (0.5, "0.5"), (-1e20, "-1e20"), (f64::NAN, "NaN")] {
        for result in [kernels::add(alpha).run(&ints, &ints), kernels::sub(alpha).run(&ints, 3)] {
            let error = result.unwrap_err();
            assert!(matches!(error.kind(), ErrorKind::Parameter { name: "alpha", .. }), "{error}");
            let words = "must not be a floating-point number for i32: give an integer, or convert the tensors to f32";
            assert_eq!(error.to_string(), format!("alpha = {value}: {words}"));
        }
        assert!(kernels::add(alpha).run(&bools, &bools).is_err());
        assert!(kernels::add(alpha).run_inplace(&mut ints.copy().unwrap(), &ints).is_err());
    }
    for tensor in [&ints, &floats] {
        let error = kernels::sub(true).run(tensor, tensor).unwrap_err();
        let dtype = tensor.dtype();
        let words = format!("alpha = true: a bool goes with a bool result alone: give 0 or 1 for {dtype}");
        assert_eq!(error.to_string(), words);
    }
    let i32s = |y: Tensor| y.to_vec::<i32>().unwrap();
    assert_eq!(i32s(kernels::add(2).run(&ints, &ints).unwrap()), [15, -6]);
    assert_eq!(i32s(kernels::sub(Number::Default).run(&ints, &ints).unwrap()), [0, 0]);
    assert_eq!(i32s(kernels::add(2).run(&bools, &ints).unwrap()), [11, -4]);
    // The result decides, not each operand.
    assert_eq!(kernels::add(2.5).run(&ints, &floats).unwrap().to_vec::<f32>().unwrap(), [6.25, 3.0]);
    assert_eq!(kernels::add(2.5).run(&ints, 1.5).unwrap().to_vec::<f32>().unwrap(), [8.75, 1.75]);
    // As a bool, any integer but 0 is true.
    for (alpha, sum) in [(Number::Int(2), [true, true]), (Number::Int(0), [true, false]), (true.into(), [true, true])] {
        let y = kernels::add(alpha).run(&bools, &Tensor::full(&CPU, true, [2]).unwrap()).unwrap();
        assert_eq!(y.to_vec::<bool>().unwrap(), sum, "{alpha}");
    }
    assert!(
        kernels::add(300)
            .run(&Tensor::zeros(&CPU, DType::U8, [1]).unwrap(), 1)
            .unwrap_err()
            .to_string()
            .contains("255")
    );
}
