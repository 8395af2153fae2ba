//! What the calls refuse, and what they say.

use pointwise::{DType, Device, ErrorKind, Number, Strategy, Tensor, kernels, ops};

fn tensor() -> Tensor {
    Tensor::from_slice(&Device::cpu(), &[1.0_f32, 2.0, 3.0, 4.0], [2, 2]).unwrap()
}

#[test]
fn an_element_type_the_op_does_not_take() {
    let x = Tensor::from_slice(&Device::cpu(), &[1_i32, 2], [2]).unwrap();
    let error = ops::exp(&x).unwrap_err();
    assert!(error.is_dtype());
    assert_eq!(error.to_string(), "exp does not take i32: it takes f32, f16, bf16, f8e4m3, f8e5m2");
}

#[test]
fn an_output_of_another_shape_or_type() {
    let x = tensor();
    let mut y = Tensor::zeros(&Device::cpu(), DType::F32, [4]).unwrap();
    assert!(ops::exp_into(&x, &mut y).unwrap_err().is_shape());
    let mut y = Tensor::zeros(&Device::cpu(), DType::F16, [2, 2]).unwrap();
    assert!(ops::exp_into(&x, &mut y).unwrap_err().is_dtype());
    assert_eq!(y.to_bytes().unwrap(), [0; 8], "nothing is written");
}

#[test]
fn a_view_that_is_not_contiguous() {
    let x = tensor();
    let mut y = Tensor::zeros(&Device::cpu(), DType::F32, [2, 2]).unwrap();
    let error = ops::exp_into(x.view().transpose(0, 1).unwrap(), &mut y).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::NotContiguous { .. }), "{error}");
    // The call that allocates copies first.
    let y = ops::neg(x.view().transpose(0, 1).unwrap()).unwrap();
    assert_eq!(y.to_vec::<f32>().unwrap(), [-1.0, -3.0, -2.0, -4.0]);
}

#[test]
fn a_predicate_cannot_be_in_place() {
    let mut x = tensor();
    let error = kernels::isnan().run_inplace(&mut x).unwrap_err();
    assert!(error.to_string().contains("its result is bool"), "{error}");
}

#[test]
fn launch_settings_out_of_range() {
    let x = tensor();
    for threads in [0, 31, 48, 2048] {
        let error = kernels::exp().threads(threads).plan(&x, &x).unwrap_err();
        assert!(error.to_string().contains("multiple of 32"), "{error}");
    }
    assert!(kernels::exp().threads(1024).strategy(Strategy::Direct).plan(&x, &x).is_ok());
}

#[test]
fn parameters_of_the_wrong_kind() {
    let x = Tensor::from_slice(&Device::cpu(), &[true, false], [2]).unwrap();
    assert!(ops::nan_to_num(&x, 3, Number::Default, Number::Default).is_err());
    let x = Tensor::from_slice(&Device::cpu(), &[1_u8, 2], [2]).unwrap();
    let error = ops::hardtanh(&x, 300, 400).unwrap_err();
    assert!(error.to_string().contains("min_val = 300"), "{error}");
}
