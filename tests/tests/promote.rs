//! PyTorch's promotion: the common types of operands, and the values.

use pointwise::{
    DType, Device, ErrorKind, Number, Operand, Tensor, TensorView, bf16, f16, info::MASKED_FILL, kernel::result_type,
    kernels, ops,
};

const CPU: Device = Device::cpu();

fn zeros(dtype: DType, shape: &[usize]) -> Tensor {
    Tensor::zeros(&CPU, dtype, shape).unwrap()
}

fn of<T: pointwise::Scalar>(values: &[T]) -> Tensor {
    Tensor::from_slice(&CPU, values, [values.len()]).unwrap()
}

/// `torch.promote_types` of all pairs, rows and columns in this order; `-` is refused.
const TABLE: &str = "
           f32  f16  bf16 f8e4m3 f8e5m2 i8   i16  i32  i64  u8   bool
    f32    f32  f32  f32  -      -      f32  f32  f32  f32  f32  f32
    f16    f32  f16  f32  -      -      f16  f16  f16  f16  f16  f16
    bf16   f32  f32  bf16 -      -      bf16 bf16 bf16 bf16 bf16 bf16
    f8e4m3 -    -    -    f8e4m3 -      -    -    -    -    -    -
    f8e5m2 -    -    -    -      f8e5m2 -    -    -    -    -    -
    i8     f32  f16  bf16 -      -      i8   i16  i32  i64  i16  i8
    i16    f32  f16  bf16 -      -      i16  i16  i32  i64  i16  i16
    i32    f32  f16  bf16 -      -      i32  i32  i32  i64  i32  i32
    i64    f32  f16  bf16 -      -      i64  i64  i64  i64  i64  i64
    u8     f32  f16  bf16 -      -      i16  i16  i32  i64  u8   u8
    bool   f32  f16  bf16 -      -      i8   i16  i32  i64  u8   bool
";

/// The table's pairs.
fn pairs() -> impl Iterator<Item = (DType, DType, Option<DType>)> {
    let mut lines = TABLE.lines().filter(|line| !line.trim().is_empty());
    let columns: Vec<DType> = lines.next().unwrap().split_whitespace().map(|n| DType::from_name(n).unwrap()).collect();
    lines.flat_map(move |line| {
        let mut words = line.split_whitespace();
        let row = DType::from_name(words.next().unwrap()).unwrap();
        let cells: Vec<_> = columns.iter().copied().zip(words.map(DType::from_name)).collect();
        cells.into_iter().map(move |(column, met)| (row, column, met))
    })
}

#[test]
fn every_pair_of_types_meets_as_in_pytorch() {
    assert_eq!(pairs().count(), 121);
    for (a, b, met) in pairs() {
        assert_eq!(a.promote_types(b), met, "{a} {b}");
        let (x, y) = (zeros(a, &[2]), zeros(b, &[2]));
        let found = result_type(&[Operand::from(&x), Operand::from(&y)]);
        match met {
            Some(met) => {
                assert_eq!(found.unwrap(), met, "{a} {b}");
                assert_eq!(ops::mul(&x, &y).unwrap().dtype(), met, "{a} {b}");
                assert_eq!(ops::eq(&x, &y).unwrap().dtype(), DType::Bool, "{a} {b}");
                let chosen = ops::where_cond(&zeros(DType::Bool, &[2]), &x, &y).unwrap();
                assert_eq!(chosen.dtype(), met, "{a} {b}");
                let quotient = ops::div(&x, &y).unwrap().dtype();
                assert_eq!(quotient, if met.is_float() { met } else { DType::F32 }, "{a} {b}");
                let bits = ops::bitwise_or(&x, &y);
                assert_eq!(bits.map(|y| y.dtype()).ok(), (!met.is_float()).then_some(met), "{a} {b}");
            }
            None => {
                let error = ops::add(&x, &y).unwrap_err();
                assert!(matches!(error.kind(), ErrorKind::Promotion { .. }) && error.is_dtype(), "{error}");
                assert!(found.is_err() && ops::lt(&x, &y).is_err(), "{a} {b}");
            }
        }
    }
    let error = ops::add(&zeros(DType::F8E4M3, &[1]), &zeros(DType::F32, &[1])).unwrap_err();
    let words =
        "add of f8e4m3 and f32: fp8 types are not promoted, as in PyTorch; convert one of them with to_dtype() first";
    assert_eq!(error.to_string(), words);
}

#[test]
fn numbers_and_scalars_raise_the_category_alone() {
    use DType::{BF16, Bool, F8E4M3, F16, F32, I8, I16, I32, I64, U8};
    let met = |a: DType, b: Operand<'_>| result_type(&[Operand::from(&zeros(a, &[3])), b]);
    for (a, number, expected) in [
        (F16, Number::Float(1e9), F16),
        (F8E4M3, Number::Float(0.5), F8E4M3),
        (F8E4M3, Number::Int(2), F8E4M3),
        (I8, Number::Int(1000), I8),
        (I8, Number::Bool(true), I8),
        (I64, Number::Float(0.5), F32),
        (Bool, Number::Bool(true), Bool),
        (Bool, Number::Int(1), I64),
        (Bool, Number::Float(1.0), F32),
    ] {
        assert_eq!(met(a, Operand::Number(number)).unwrap(), expected, "{a} {number}");
    }
    for (a, scalar, expected) in [
        (F16, F32, F16),
        (BF16, F16, BF16),
        (F8E4M3, F32, F8E4M3),
        (I8, I64, I8),
        (U8, I8, U8),
        (I32, F16, F16),
        (Bool, U8, U8),
        (I16, Bool, I16),
    ] {
        assert_eq!(met(a, Operand::from(&zeros(scalar, &[]))).unwrap(), expected, "{a} {scalar}");
    }
    assert!(met(I32, Operand::from(&zeros(F8E4M3, &[]))).unwrap_err().is_dtype());
    // Tensors without dimensions, between themselves, and with a number.
    let (half, int) = (zeros(F16, &[]), zeros(I32, &[]));
    assert_eq!(result_type(&[Operand::from(&half), Operand::from(&int)]).unwrap(), F16);
    assert_eq!(result_type(&[Operand::from(&int), Operand::from(0.5)]).unwrap(), F32);
    assert_eq!(result_type(&[Operand::from(1), Operand::from(true)]).unwrap(), I64);
    assert!(result_type(&[]).is_err());
}

#[test]
fn values_of_mixed_types() {
    let ints = of(&[1_i32, -2, 3]);
    let halves = of(&[0.5, 0.25, 1000.0].map(f16::from_f32));
    let y = kernels::add(0.5).run(&ints, &halves).unwrap();
    assert_eq!(y.to_vec::<f16>().unwrap(), [1.25, -1.875, 503.0].map(f16::from_f32));
    let y = ops::add(&halves, &of(&[1.0, 1.0, 1.0].map(bf16::from_f32))).unwrap();
    assert_eq!(y.to_vec::<f32>().unwrap(), [1.5, 1.25, 1001.0]);
    assert_eq!(ops::add(&ints, 0.5).unwrap().to_vec::<f32>().unwrap(), [1.5, -1.5, 3.5]);
    assert_eq!(ops::sub(&of(&[200_u8, 1]), &of(&[-100_i8, 1])).unwrap().to_vec::<i16>().unwrap(), [300, 0]);
    // Division by zero is as in floats.
    let y = ops::div(&of(&[7, -1, 0]), &of(&[2, 0, 0])).unwrap().to_vec::<f32>().unwrap();
    assert!(y[0] == 3.5 && y[1] == f32::NEG_INFINITY && y[2].is_nan());
    assert_eq!(ops::div(&of(&[true, false]), 2).unwrap().to_vec::<f32>().unwrap(), [0.5, 0.0]);
    // i64 beyond 2^24 meets f32 in f32.
    let big = of(&[(1_i64 << 24) + 1]);
    assert_eq!(ops::eq(&big, &of(&[16_777_216.0_f32])).unwrap().to_vec::<bool>().unwrap(), [true]);
    assert_eq!(ops::lt(&ints, 1.5).unwrap().to_vec::<bool>().unwrap(), [true, true, false]);
    let y = ops::where_cond(&of(&[true, false, true]), &ints, 0.5).unwrap();
    assert_eq!(y.to_vec::<f32>().unwrap(), [1.0, 0.5, 3.0]);
    let y = ops::clamp(&ints, &of(&[-0.5_f32]), None).unwrap();
    assert_eq!(y.to_vec::<f32>().unwrap(), [1.0, -0.5, 3.0]);
    assert_eq!(ops::bitwise_and(&of(&[7_i64, 8]), &of(&[true, true])).unwrap().to_vec::<i64>().unwrap(), [1, 0]);
    // Broadcast, the converted operand too.
    let column = Tensor::from_slice(&CPU, &[1_u8, 2], [2, 1]).unwrap();
    let y = ops::mul(&column, &of(&[0.5_f32, 1.0, 2.0])).unwrap();
    assert_eq!((y.shape().to_vec(), y.to_vec::<f32>().unwrap()), (vec![2, 3], vec![0.5, 1.0, 2.0, 1.0, 2.0, 4.0]));
    let y = ops::mul(column.view().expand([2, 3]).unwrap(), &of(&[0.5_f32, 1.0, 2.0])).unwrap();
    assert_eq!(y.to_vec::<f32>().unwrap(), [0.5, 1.0, 2.0, 1.0, 2.0, 4.0]);
    // The operand repeats one element. One is converted, and the result has all.
    let y = ops::mul(of(&[3_u8]).view().expand([2, 2]).unwrap(), &of(&[0.5_f32])).unwrap();
    assert_eq!((y.shape().to_vec(), y.to_vec::<f32>().unwrap()), (vec![2, 2], vec![1.5; 4]));
}

#[test]
fn float_functions_of_integers() {
    assert_eq!(ops::exp(&of(&[0_i64, 1])).unwrap().to_vec::<f32>().unwrap(), [1.0, std::f32::consts::E]);
    assert_eq!(ops::sqrt(&of(&[4_u8, 9])).unwrap().to_vec::<f32>().unwrap(), [2.0, 3.0]);
    assert_eq!(ops::sigmoid(&of(&[false, false])).unwrap().to_vec::<f32>().unwrap(), [0.5, 0.5]);
    let mut y = zeros(DType::F32, &[2]);
    ops::reciprocal_into(&of(&[2_i16, 4]), &mut y).unwrap();
    assert_eq!(y.to_vec::<f32>().unwrap(), [0.5, 0.25]);
    let mut wrong = zeros(DType::I16, &[2]);
    assert!(ops::reciprocal_into(&of(&[2_i16, 4]), &mut wrong).unwrap_err().is_dtype());
    // The names of PyTorch's float functions; activations take floats.
    let floats = "exp log sqrt rsqrt reciprocal sin cos erf log1p expm1 sigmoid tanh div";
    let marked: Vec<&str> = pointwise::info::all()
        .map(|def| &def.info)
        .filter(|info| info.properties.int_to_float)
        .map(|info| info.name)
        .collect();
    assert_eq!(marked.join(" "), floats);
    assert!(ops::silu(&of(&[1_i32])).unwrap_err().is_dtype());
    // A bound takes part.
    let ints = of(&[1_i32, 5]);
    assert_eq!(ops::clamp(&ints, 2.5, None).unwrap().to_vec::<f32>().unwrap(), [2.5, 5.0]);
    assert_eq!(ops::clamp(&ints, 2, 3).unwrap().to_vec::<i32>().unwrap(), [2, 3]);
    assert_eq!(ops::clamp(&of(&[true]), 0, 3).unwrap().to_vec::<i64>().unwrap(), [1]);
}

#[test]
fn in_place_the_type_stays() {
    let mut halves = of(&[1.0, 2.0].map(f16::from_f32));
    ops::add_inplace(&mut halves, &of(&[0.1_f32, 1e6])).unwrap();
    assert_eq!(halves.to_vec::<f16>().unwrap(), [f16::from_f32(1.1), f16::INFINITY]);
    let mut bytes = of(&[1_i8, 2]);
    ops::add_inplace(&mut bytes, &of(&[300_i64, 1])).unwrap();
    assert_eq!(bytes.to_vec::<i8>().unwrap(), [45, 3]);
    let mut ints = of(&[1_i32, 2]);
    let error = ops::add_inplace(&mut ints, 0.5).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Cast { result: DType::F32, got: DType::I32, .. }), "{error}");
    assert!(ops::exp_inplace(&mut ints).unwrap_err().is_dtype());
    assert!(ops::clamp_inplace(&mut ints, 0.5, 1.5).unwrap_err().is_dtype());
    assert!(ops::add_inplace(&mut of(&[true]), 5).unwrap_err().is_dtype());
    // A shape that does not fit is refused in the words of operands of one type, and before anything is computed: the
    // last result would fit no memory.
    let shape_error = |ints: &mut Tensor, other: TensorView<'_>| {
        let error = kernels::add(1).run_inplace(ints, other).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::ShapeMismatch { .. }), "{error}");
        error.to_string()
    };
    let same = shape_error(&mut ints, zeros(DType::I32, &[3, 2]).view());
    assert_eq!(shape_error(&mut ints, zeros(DType::I64, &[3, 2]).view()), same);
    let one = zeros(DType::I64, &[1, 1]);
    shape_error(&mut ints, one.view().expand([1 << 40, 2]).unwrap());
    assert_eq!(ints.to_vec::<i32>().unwrap(), [1, 2], "nothing is written");
    // An output that is there has the type of the result.
    assert!(ops::add_into(&ints, 0.5, &mut ints.copy().unwrap()).unwrap_err().is_dtype());
    let mut y = zeros(DType::F32, &[2]);
    ops::add_into(&ints, 0.5, &mut y).unwrap();
    assert_eq!(y.to_vec::<f32>().unwrap(), [1.5, 2.5]);
}

#[test]
fn what_pytorch_refuses() {
    let (singles, halves) = (zeros(DType::F32, &[2]), zeros(DType::F16, &[2]));
    assert!(ops::lerp(&singles, &halves, 0.5).unwrap_err().is_dtype());
    assert!(ops::prelu(&singles, &zeros(DType::F16, &[1])).unwrap_err().is_dtype());
    assert!(kernels::silu_and_mul().run_pair(&singles, &halves).unwrap_err().is_dtype());
    assert!(ops::sub(&singles, &zeros(DType::Bool, &[2])).unwrap_err().is_dtype());
    assert!(ops::sub(&zeros(DType::I32, &[2]), true).unwrap_err().is_dtype());
    assert!(ops::pow(&zeros(DType::Bool, &[2]), &zeros(DType::Bool, &[2])).unwrap_err().is_dtype());
    assert!(ops::where_cond(&singles, &singles, &halves).unwrap_err().is_dtype());
    // Shapes are told as they were given.
    let error = ops::add(&zeros(DType::I32, &[3]), &singles).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Broadcast { .. }), "{error}");
}

#[test]
fn powers_with_numbers() {
    let x = of(&[3.0_f32, -0.0, f32::NEG_INFINITY, 1e30]);
    let bits = |y: Tensor| y.to_vec::<f32>().unwrap().iter().map(|y| y.to_bits()).collect::<Vec<_>>();
    let same = |y: Tensor, exact: &[f32]| {
        let y = y.to_vec::<f32>().unwrap();
        let same = |(a, b): (&f32, &f32)| a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan();
        assert!(y.iter().zip(exact).all(same), "{y:?} {exact:?}");
    };
    assert_eq!(bits(ops::pow(&x, 1).unwrap()), bits(x.copy().unwrap()));
    same(ops::pow(&x, 2).unwrap(), &[9.0, 0.0, f32::INFINITY, f32::INFINITY]);
    // PyTorch's roots, where C's pow has +0 and +inf.
    same(ops::pow(&x, 0.5).unwrap(), &[3.0_f32.sqrt(), -0.0, f32::NAN, 1e15]);
    assert_eq!(bits(ops::pow(&x, -0.5).unwrap())[1], f32::NEG_INFINITY.to_bits());
    same(ops::pow(&x, -1).unwrap(), &[1.0 / 3.0, f32::NEG_INFINITY, -0.0, 1e-30]);
    same(ops::pow(&x, 0).unwrap(), &[1.0; 4]);
    // A tensor as exponent keeps to C's rules.
    same(ops::pow(&x, &of(&[0.5_f32])).unwrap(), &[3.0_f32.sqrt(), 0.0, f32::INFINITY, 1e15]);
    let ints = of(&[3_i32, -2, 1 << 20]);
    assert_eq!(ops::pow(&ints, 2).unwrap().to_vec::<i32>().unwrap(), [9, 4, 0]);
    assert_eq!(ops::pow(&ints, 2.0).unwrap().to_vec::<f32>().unwrap(), [9.0, 4.0, 1_099_511_627_776.0]);
    assert_eq!(ops::pow(&of(&[4_u8]), 0.5).unwrap().to_vec::<f32>().unwrap(), [2.0]);
    assert_eq!(ops::pow(&of(&[true]), 2).unwrap().to_vec::<i64>().unwrap(), [1]);
    assert_eq!(ops::pow(&of(&[true, false]), true).unwrap().to_vec::<bool>().unwrap(), [true, false]);
    for whole in [&ints, &of(&[true, false])] {
        assert!(ops::pow(whole, -1).unwrap_err().to_string().contains("negative integer powers"));
    }
    assert_eq!(ops::pow(&ints, -1.0).unwrap().to_vec::<f32>().unwrap()[1], -0.5);
    // Into a tensor, and in place.
    let mut y = zeros(DType::F32, &[4]);
    ops::pow_into(&x, 2, &mut y).unwrap();
    assert_eq!(y.to_vec::<f32>().unwrap()[0], 9.0);
    ops::pow_into(&x, 1.0, &mut y).unwrap();
    assert_eq!(y.to_vec::<f32>().unwrap()[0], 3.0);
    ops::pow_inplace(&mut y, 2).unwrap();
    ops::pow_inplace(&mut y, 1).unwrap();
    ops::pow_inplace(&mut y, 0.5).unwrap();
    assert_eq!(y.to_vec::<f32>().unwrap()[0], 3.0);
    assert!(ops::pow_into(&x, 1, &mut zeros(DType::F16, &[4])).unwrap_err().is_dtype());
    let mut ints = ints;
    assert!(ops::pow_inplace(&mut ints, 0.5).unwrap_err().is_dtype());
}

/// The cube is the power with C's special values, rounded once (PyTorch rounds `x x`, too), but for tiny f32.
#[test]
fn powers_with_the_number_3() {
    let nearest = |x: f64| if x.abs() >= 2.0_f64.powi(128) { x.signum() * f64::INFINITY } else { x * x * x };
    for dtype in [DType::F32, DType::F16, DType::BF16] {
        let x =
            Tensor::from_bytes(&CPU, dtype, &pointwise_testkit::inputs::mixed(dtype, 1 << 16, 3), [1 << 16]).unwrap();
        let values = |x: &Tensor| x.to_dtype(DType::F32).unwrap().to_vec::<f32>().unwrap();
        let exact: Vec<f32> = values(&x).iter().map(|&x| nearest(f64::from(x)) as f32).collect();
        let exact = values(&Tensor::from_slice(&CPU, &exact, [1 << 16]).unwrap().to_dtype(dtype).unwrap());
        let powers = ops::pow(&x, 3).unwrap();
        assert_eq!(powers.dtype(), dtype);
        let wrong = values(&powers).into_iter().zip(&exact).filter(|(y, exact)| {
            let apart = y.to_bits().abs_diff(exact.to_bits());
            let near = dtype == DType::F32 && exact.abs() < 2.0_f32.powi(-101);
            apart > u32::from(near) && !(y.is_nan() && exact.is_nan())
        });
        assert_eq!(wrong.count(), 0, "{dtype}");
        // Float or integer, into a tensor, in place, and of a view.
        let bytes = powers.to_bytes().unwrap();
        assert_eq!(ops::pow(&x, 3.0).unwrap().to_bytes().unwrap(), bytes);
        let mut y = zeros(dtype, &[1 << 16]);
        ops::pow_into(&x, 3, &mut y).unwrap();
        assert_eq!(y.to_bytes().unwrap(), bytes);
        let pairs = x.view().reshape([2, 1 << 15]).unwrap();
        let turned = ops::pow(pairs.transpose(0, 1).unwrap(), 3).unwrap();
        assert_eq!(turned.view().transpose(0, 1).unwrap().to_tensor().unwrap().to_bytes().unwrap(), bytes);
        let mut x = x;
        ops::pow_inplace(&mut x, 3).unwrap();
        assert_eq!(x.to_bytes().unwrap(), bytes);
    }
    let ints = of(&[3_i32, -2, 1 << 20]);
    assert_eq!(ops::pow(&ints, 3).unwrap().to_vec::<i32>().unwrap(), [27, -8, 0]);
    assert_eq!(ops::pow(&ints, 3.0).unwrap().to_vec::<f32>().unwrap()[..2], [27.0, -8.0]);
    assert!(ops::pow(&of(&[true]), 3.0).is_ok());
}

#[test]
fn fill_values() {
    let mask = of(&[true, false]);
    let fill = |x: &Tensor, value: Number| ops::masked_fill(x, &mask, value);
    let bytes = of(&[1_u8, 2]);
    assert_eq!(fill(&bytes, Number::Int(-1)).unwrap().to_vec::<u8>().unwrap(), [255, 2]);
    assert_eq!(fill(&bytes, Number::Int(-255)).unwrap().to_vec::<u8>().unwrap(), [1, 2]);
    assert_eq!(fill(&bytes, Number::Float(7.9)).unwrap().to_vec::<u8>().unwrap(), [7, 2]);
    let nan = Number::Float(f64::NAN);
    for bad in [Number::Int(-256), Number::Int(256), Number::Float(-1.0), Number::Float(1e30), nan, Number::Default] {
        assert!(matches!(fill(&bytes, bad).unwrap_err().kind(), ErrorKind::Parameter { .. }), "{bad}");
    }
    assert_eq!(fill(&of(&[1_i8, 2]), Number::Float(-1.7)).unwrap().to_vec::<i8>().unwrap(), [-1, 2]);
    assert!(fill(&of(&[1_i8, 2]), Number::Int(200)).is_err());
    // A float counts before it is cut, as in PyTorch.
    for bad in [-0.5, -1e-300, 255.5] {
        assert!(fill(&bytes, Number::Float(bad)).is_err(), "{bad}");
    }
    for bad in [-128.5, 127.5] {
        assert!(fill(&of(&[1_i8, 2]), Number::Float(bad)).is_err(), "{bad}");
    }
    assert_eq!(fill(&bytes, Number::Float(-0.0)).unwrap().to_vec::<u8>().unwrap(), [0, 2]);
    let ends = fill(&of(&[1_i64, 2]), Number::Float(-9_223_372_036_854_775_808.0)).unwrap();
    assert_eq!(ends.to_vec::<i64>().unwrap(), [i64::MIN, 2]);
    assert!(fill(&of(&[1_i64, 2]), Number::Float(9_223_372_036_854_775_808.0)).is_err());
    assert_eq!(fill(&of(&[false, false]), Number::Float(2.5)).unwrap().to_vec::<bool>().unwrap(), [true, false]);
    assert!(fill(&of(&[1.0, 2.0].map(f16::from_f32)), Number::Float(1e5)).is_err());
    assert!(fill(&of(&[1.0_f32, 2.0]), nan).unwrap().to_vec::<f32>().unwrap()[0].is_nan());
    // A tensor without dimensions is converted.
    let value = Tensor::from_slice(&CPU, &[1.5_f32], []).unwrap();
    assert_eq!(ops::masked_fill(&bytes, &mask, &value).unwrap().to_vec::<u8>().unwrap(), [1, 2]);
    let mut target = of(&[1.0_f32, 2.0]);
    ops::masked_fill_inplace(&mut target, &mask, &value).unwrap();
    assert_eq!(target.to_vec::<f32>().unwrap(), [1.5, 2.0]);
    assert!(ops::masked_fill(&bytes, &mask, &bytes).unwrap_err().is_shape());
    assert_eq!(MASKED_FILL.arguments(), ["x", "mask", "value"]);
}

#[test]
fn a_plan_of_mixed_types_is_that_of_the_common_one() {
    let (ints, halves) = (zeros(DType::I32, &[4, 64]), zeros(DType::F16, &[64]));
    let y = zeros(DType::F16, &[4, 64]);
    let plan = kernels::add(1).plan(&ints, &halves, &y).unwrap();
    assert_eq!((plan.lanes, plan.n), (8, 256));
    assert!(kernels::exp().plan(&ints, &zeros(DType::F32, &[4, 64])).is_ok());
}

/// The stand-in for a converted operand in a plan overlaps with no tensor, however long it is.
#[test]
fn a_plan_of_mixed_types_overlaps_with_nothing() {
    let at = |address: u64, dtype| {
        // SAFETY: the view is for a plan, which reads nothing through it.
        unsafe { TensorView::from_raw_parts(&CPU, address, dtype, [1 << 32], &[1]) }.unwrap()
    };
    // The result lies where the memory pools of some devices begin, at 12 GiB.
    let (ints, y) = (at(0x7f00_0000_0000, DType::I32), at(0x3_0200_0000, DType::F32));
    assert_eq!(kernels::add(1).plan(ints, 0.5, y).unwrap().n, 1 << 32);
}

#[test]
fn pairs_by_definition() {
    for a in DType::ALL {
        for b in DType::ALL {
            tests::promote::check(&CPU, a, b).unwrap();
        }
    }
}
