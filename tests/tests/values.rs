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
    assert_bits(&ops::clamp(&x, Number::Default, 1.0).unwrap(), &[-5.0, 0.0, 1.0]);
    let x = Tensor::from_slice(&Device::cpu(), &[-128_i8, 0, 127], [3]).unwrap();
    assert_eq!(ops::clamp(&x, -3, Number::Default).unwrap().to_vec::<i8>().unwrap(), [-3, 0, 127]);
    assert_eq!(ops::clamp(&x, -1000, 5).unwrap().to_vec::<i8>().unwrap(), [-128, 0, 5]);
    let error = ops::clamp(&x, 0.5, 5).unwrap_err();
    assert!(error.to_string().contains("whole number"), "{error}");
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
