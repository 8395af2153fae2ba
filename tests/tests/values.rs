//! Values that PyTorch's documentation and kernels pin down, beyond what the oracle can say.

use pointwise::{Device, Number, Tensor, bf16, ops};

fn f32s(values: &[f32]) -> Tensor {
    Tensor::from_slice(&Device::cpu(), values, [values.len()]).unwrap()
}

fn bits(tensor: &Tensor) -> Vec<u32> {
    tensor.to_vec::<f32>().unwrap().into_iter().map(f32::to_bits).collect()
}

fn assert_bits(got: &Tensor, expected: &[f32]) {
    assert_eq!(bits(got), expected.iter().map(|x| x.to_bits()).collect::<Vec<_>>(), "{got:?}: {expected:?}");
}

#[test]
fn round_is_to_even_and_takes_decimals() {
    let x = f32s(&[0.5, 1.5, 2.5, -0.5, -1.5, 1e10]);
    assert_bits(&ops::round(&x).unwrap(), &[0.0, 2.0, 2.0, -0.0, -2.0, 1e10]);
    assert_bits(&ops::round_decimals(&x, Number::Default).unwrap(), &[0.0, 2.0, 2.0, -0.0, -2.0, 1e10]);
    let x = f32s(&[0.125, 1.234_567, -9.876, 1234.0]);
    assert_bits(&ops::round_decimals(&x, 2).unwrap(), &[0.12, 1.23, -9.88, 1234.0]);
    assert_bits(&ops::round_decimals(&x, -2).unwrap(), &[0.0, 0.0, -0.0, 1200.0]);
    let x = Tensor::from_slice(&Device::cpu(), &[17_i32, -5], [2]).unwrap();
    assert_eq!(ops::round_decimals(&x, 3).unwrap().to_vec::<i32>().unwrap(), [17, -5]);
}

#[test]
fn sign_of_zero_and_nan() {
    let x = f32s(&[-0.0, f32::NAN, -3.0, f32::INFINITY]);
    assert_bits(&ops::sign(&x).unwrap(), &[0.0, 0.0, -1.0, 1.0]);
    assert_bits(&ops::neg(&f32s(&[0.0, -0.0])).unwrap(), &[-0.0, 0.0]);
    assert_bits(&ops::abs(&f32s(&[-0.0])).unwrap(), &[0.0]);
}

#[test]
fn nan_passes_relu_clamp_and_hardtanh() {
    let nan = f32s(&[f32::NAN]);
    for y in [ops::relu(&nan), ops::clamp(&nan, -1.0, 1.0), ops::hardtanh(&nan, -1.0, 1.0)] {
        assert!(y.unwrap().to_vec::<f32>().unwrap()[0].is_nan());
    }
    let x = f32s(&[0.0]);
    assert!(ops::clamp(&x, f64::NAN, 1.0).unwrap().to_vec::<f32>().unwrap()[0].is_nan());
}

#[test]
fn clamp_with_min_above_max_gives_max_and_a_side_may_be_open() {
    let x = f32s(&[-5.0, 0.0, 5.0]);
    assert_bits(&ops::clamp(&x, 3.0, 1.0).unwrap(), &[1.0, 1.0, 1.0]);
    assert_bits(&ops::clamp(&x, None, 1.0).unwrap(), &[-5.0, 0.0, 1.0]);
    let x = Tensor::from_slice(&Device::cpu(), &[-128_i8, 0, 127], [3]).unwrap();
    assert_eq!(ops::clamp(&x, -3, None).unwrap().to_vec::<i8>().unwrap(), [-3, 0, 127]);
    assert_eq!(ops::clamp(&x, -1000, 5).unwrap().to_vec::<i8>().unwrap(), [-128, 0, 5]);
    // A bound that is no whole number promotes integers to f32.
    assert_bits(&ops::clamp(&x, 0.5, 5).unwrap(), &[0.5, 0.5, 5.0]);
}

#[test]
fn nan_to_num_takes_the_types_own_ends() {
    let x = f32s(&[f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 1.0]);
    let default = Number::Default;
    assert_bits(&ops::nan_to_num(&x, default, default, default).unwrap(), &[0.0, f32::MAX, f32::MIN, 1.0]);
    let x = [bf16::NAN, bf16::INFINITY, bf16::NEG_INFINITY];
    let x = Tensor::from_slice(&Device::cpu(), &x, [3]).unwrap();
    let y = ops::nan_to_num(&x, 7.0, default, default).unwrap();
    assert_eq!(y.to_vec::<bf16>().unwrap(), [bf16::from_f32(7.0), bf16::MAX, bf16::MIN]);
}

#[test]
fn integers_wrap() {
    let x = Tensor::from_slice(&Device::cpu(), &[i64::MIN, i64::MAX, -1], [3]).unwrap();
    assert_eq!(ops::abs(&x).unwrap().to_vec::<i64>().unwrap(), [i64::MIN, i64::MAX, 1]);
    assert_eq!(ops::neg(&x).unwrap().to_vec::<i64>().unwrap(), [i64::MIN, -i64::MAX, 1]);
    assert_eq!(ops::bitwise_not(&x).unwrap().to_vec::<i64>().unwrap(), [i64::MAX, i64::MIN, 0]);
    let x = Tensor::from_slice(&Device::cpu(), &[0_u8, 1, 255], [3]).unwrap();
    assert_eq!(ops::neg(&x).unwrap().to_vec::<u8>().unwrap(), [0, 255, 1]);
}

#[test]
fn predicates_give_bool() {
    let x = f32s(&[f32::NAN, f32::INFINITY, 0.0, -0.0, 1e-45]);
    let bools = |y: pointwise::Result<Tensor>| y.unwrap().to_vec::<bool>().unwrap();
    assert_eq!(bools(ops::isnan(&x)), [true, false, false, false, false]);
    assert_eq!(bools(ops::isinf(&x)), [false, true, false, false, false]);
    assert_eq!(bools(ops::isfinite(&x)), [false, false, true, true, true]);
    assert_eq!(bools(ops::logical_not(&x)), [false, false, true, true, false]);
}

#[test]
fn softplus_hands_over_at_its_threshold() {
    let x = f32s(&[20.0, 20.000_002, 5.5]);
    assert_bits(&ops::softplus(&x, 1.0, 20.0).unwrap(), &[20.0, 20.000_002, 5.504_078_4]);
    assert_bits(&ops::softplus(&x, 1.0, 5.0).unwrap(), &[20.0, 20.000_002, 5.5]);
}

fn pairs(op: impl Fn(&Tensor, &Tensor) -> pointwise::Result<Tensor>, pairs: &[(f32, f32, f32)]) {
    let (a, b): (Vec<f32>, Vec<f32>) = pairs.iter().map(|&(a, b, _)| (a, b)).unzip();
    let y = op(&f32s(&a), &f32s(&b)).unwrap().to_vec::<f32>().unwrap();
    for (y, (a, b, expected)) in y.into_iter().zip(pairs) {
        assert!(y.to_bits() == expected.to_bits() || y.is_nan() && expected.is_nan(), "{a}, {b}: {y}, not {expected}");
    }
}

const INF: f32 = f32::INFINITY;
const NAN: f32 = f32::NAN;

#[test]
fn floor_divide_and_remainder_are_exact() {
    pairs(
        |a, b| ops::floor_divide(a, b),
        &[
            (1.0, 0.1, 9.0),
            (INF, 2.0, NAN),
            (INF, 0.0, INF),
            (1.0, INF, 0.0),
            (-1.0, INF, -1.0),
            (0.0, -1.0, -0.0),
            (-0.0, -1.0, 0.0),
            (-1e-45, 1.0, -1.0),
            (f32::MAX, 0.1, INF),
            (NAN, 1.0, NAN),
            (7.0, -2.0, -4.0),
        ],
    );
    pairs(
        |a, b| ops::remainder(a, b),
        &[
            (1.0, 0.1, f32::from_bits(0x3DCC_CCCB)),
            (-2.0, 1.0, -0.0),
            (2.0, -1.0, 0.0),
            (1.0, 0.0, NAN),
            (INF, 1.0, NAN),
            (1.0, INF, 1.0),
            (-1.0, INF, INF),
            (1.0, -INF, -INF),
            (-1e-45, 1.0, 1.0),
            (1e20, 3.0, 2.0),
        ],
    );
}

#[test]
fn maximum_and_minimum_of_nan_and_zeros() {
    let zeros = [(0.0, -0.0), (-0.0, 0.0)];
    for (a, b) in zeros {
        pairs(|a, b| ops::maximum(a, b), &[(a, b, 0.0), (NAN, 1.0, NAN), (1.0, NAN, NAN)]);
        pairs(|a, b| ops::minimum(a, b), &[(a, b, -0.0), (NAN, 1.0, NAN), (1.0, NAN, NAN)]);
    }
}

#[test]
fn pow_is_that_of_c99() {
    pairs(
        |a, b| ops::pow(a, b),
        &[
            (NAN, 0.0, 1.0),
            (1.0, NAN, 1.0),
            (-1.0, INF, 1.0),
            (-2.0, 0.5, NAN),
            (0.0, -1.0, INF),
            (-0.0, -1.0, -INF),
            (-0.0, -2.0, INF),
            (-0.0, 3.0, -0.0),
            (-0.0, 0.5, 0.0),
            (-INF, 0.5, INF),
            (-INF, 3.0, -INF),
            (-INF, -3.0, -0.0),
            (0.5, INF, 0.0),
            (0.5, -INF, INF),
            (2.0, INF, INF),
            (-2.0, 3.0, -8.0),
        ],
    );
    let x = Tensor::from_slice(&Device::cpu(), &[2_i32, 0, -1, -1, 1, 3], [6]).unwrap();
    let e = Tensor::from_slice(&Device::cpu(), &[31_i32, -1, -3, -2, -5, -1], [6]).unwrap();
    assert_eq!(ops::pow(&x, &e).unwrap().to_vec::<i32>().unwrap(), [i32::MIN, 0, -1, 1, 1, 0]);
}

#[test]
fn add_and_sub_keep_signs_of_zero() {
    pairs(|a, b| ops::add(a, b), &[(-0.0, -0.0, -0.0), (0.0, -0.0, 0.0), (INF, -INF, NAN)]);
    pairs(|a, b| ops::sub(a, b), &[(-0.0, -0.0, 0.0), (INF, INF, NAN), (1.0, 3.0, -2.0)]);
    pairs(|a, b| ops::mul(a, b), &[(0.0, INF, NAN), (0.0, -0.0, -0.0)]);
    pairs(|a, b| ops::div(a, b), &[(1.0, 0.0, INF), (1.0, -0.0, -INF), (0.0, 0.0, NAN), (1.0, 3.0, 1.0 / 3.0)]);
}

#[test]
fn lerp_changes_its_formula_at_a_half() {
    let lerp = |weight: f32| move |a: &Tensor, b: &Tensor| ops::lerp(a, b, weight);
    pairs(lerp(0.3), &[(1.0, INF, INF), (INF, INF, NAN), (f32::MAX, -f32::MAX, -INF), (-0.0, -0.0, 0.0)]);
    pairs(lerp(0.7), &[(1.0, INF, NAN), (INF, 1.0, INF)]);
    pairs(lerp(0.5), &[(1.0, 3.0, 2.0)]);
}

#[test]
fn comparisons_with_nan_and_numbers() {
    let x = f32s(&[NAN, 0.0, -0.0, 1.0]);
    let bools = |y: pointwise::Result<Tensor>| y.unwrap().to_vec::<bool>().unwrap();
    assert_eq!(bools(ops::eq(&x, &x)), [false, true, true, true]);
    assert_eq!(bools(ops::ne(&x, &x)), [true, false, false, false]);
    assert_eq!(bools(ops::eq(&x, 0.0)), [false, true, true, false]);
    assert_eq!(bools(ops::gt(0.5, &x)), [false, true, true, false]);
    assert_eq!(bools(ops::logical_and(&x, true)), [true, false, false, true]);
    // A number is rounded to the tensor's type, as PyTorch does it.
    let tenth = Tensor::from_slice(&Device::cpu(), &[bf16::from_f32(0.1)], [1]).unwrap();
    assert_eq!(bools(ops::eq(&tenth, 0.1)), [true]);
}

#[test]
fn integers_divide_as_pytorch_does() {
    let i = |values: &[i32]| Tensor::from_slice(&Device::cpu(), values, [values.len()]).unwrap();
    let (a, b) = (i(&[7, -7, 7, -7, 5, i32::MIN]), i(&[2, 2, -2, -2, 0, -1]));
    let ints = |y: pointwise::Result<Tensor>| y.unwrap().to_vec::<i32>().unwrap();
    assert_eq!(ints(ops::div_trunc(&a, &b)), [3, -3, -3, 3, 0, i32::MIN]);
    assert_eq!(ints(ops::floor_divide(&a, &b)), [3, -4, -4, 3, 0, i32::MIN]);
    assert_eq!(ints(ops::remainder(&a, &b)), [1, 1, -1, -1, 0, 0]);
}

#[test]
fn where_and_masked_fill_pass_bits_through() {
    let device = Device::cpu();
    let payload = f32::from_bits(0x7F80_1234);
    let x = f32s(&[payload, -0.0, 3.0]);
    let mask = Tensor::from_slice(&device, &[false, false, true], [3]).unwrap();
    let y = ops::where_cond(&mask, 1.0, &x).unwrap();
    assert_eq!(bits(&y), [0x7F80_1234, 0x8000_0000, 1.0_f32.to_bits()]);
    let mut x = x;
    ops::masked_fill_inplace(&mut x, &mask, f64::NEG_INFINITY).unwrap();
    assert_eq!(bits(&x), [0x7F80_1234, 0x8000_0000, f32::NEG_INFINITY.to_bits()]);
    let ints = Tensor::from_slice(&device, &[1_i64, 2, 3], [3]).unwrap();
    assert_eq!(ops::masked_fill(&ints, &mask, -2.7).unwrap().to_vec::<i64>().unwrap(), [1, 2, -2]);
}

#[test]
fn clamp_takes_tensors_as_bounds() {
    let x = f32s(&[-5.0, 0.0, 5.0, NAN, 1.0]);
    let (min, max) = (f32s(&[-1.0, 3.0, -1.0, 0.0, NAN]), f32s(&[1.0, 1.0, 1.0, 1.0, 2.0]));
    let floats = |y: pointwise::Result<Tensor>| y.unwrap().to_vec::<f32>().unwrap();
    let y = floats(ops::clamp(&x, &min, &max));
    assert_eq!(y[..3], [-1.0, 1.0, 1.0]);
    assert!(y[3].is_nan() && y[4].is_nan());
    assert_eq!(floats(ops::clamp(&x, &min, None))[..3], [-1.0, 3.0, 5.0]);
    assert_eq!(floats(ops::clamp(&x, None, 0.5))[..3], [-5.0, 0.0, 0.5]);
    let mut over = f32s(&[-5.0, 0.0, 5.0]);
    ops::clamp_inplace(&mut over, -1.0, &f32s(&[2.0])).unwrap();
    assert_eq!(over.to_vec::<f32>().unwrap(), [-1.0, 0.0, 2.0]);
    let mut y = f32s(&[0.0; 3]);
    ops::clamp_into(&over, None, 1, &mut y).unwrap();
    assert_eq!(y.to_vec::<f32>().unwrap(), [-1.0, 0.0, 1.0]);
}

#[test]
fn prelu_has_a_weight_for_each_channel() {
    let device = Device::cpu();
    let x: Vec<f32> = (0..24).map(|i| -(i as f32)).collect();
    let weight = f32s(&[1.0, 10.0, 100.0]);
    for shape in [vec![8, 3], vec![2, 3, 4], vec![2, 3, 2, 2]] {
        let y = ops::prelu(&Tensor::from_slice(&device, &x, shape.clone()).unwrap(), &weight).unwrap();
        let inner: usize = shape[2..].iter().product();
        for (i, y) in y.to_vec::<f32>().unwrap().into_iter().enumerate() {
            assert_eq!(y, x[i] * [1.0, 10.0, 100.0][i / inner % 3], "{shape:?} {i}");
        }
    }
    let y = ops::prelu(&f32s(&[-2.0, 2.0]), &f32s(&[0.5])).unwrap();
    assert_eq!(y.to_vec::<f32>().unwrap(), [-1.0, 2.0]);
}

#[test]
fn gated_ops_take_the_gate_first() {
    let x = f32s(&[0.0, 20.0, f32::NEG_INFINITY, 3.0, 2.0, 1.0]);
    let x = x.reshape([1, 1, 6]).unwrap();
    let y = ops::silu_and_mul(&x).unwrap();
    assert_eq!(y.shape(), &[1, 1, 3]);
    let y = y.to_vec::<f32>().unwrap();
    assert_eq!(y[..2], [0.0, 40.0]);
    assert!(y[2].is_nan());
    let kernel = pointwise::kernels::silu_and_mul();
    let gate = f32s(&[20.0]).reshape([]).unwrap();
    let pair = kernel.run_pair(&gate, &f32s(&[2.0, -1.0])).unwrap();
    assert_eq!(pair.to_vec::<f32>().unwrap(), [40.0, -20.0]);
    // Kernels of 16 and 8 bits would look for a number in memory.
    let error = kernel.run_pair(20.0, &f32s(&[2.0, -1.0])).unwrap_err().to_string();
    assert!(error.contains("as the number 20") && error.contains("give it as a tensor"), "{error}");
    let mut y = f32s(&[0.0, 0.0]);
    assert!(kernel.run_pair_into(&f32s(&[2.0, -1.0]), 1, &mut y).is_err());
}
