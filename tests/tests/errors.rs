//! Calls that are refused, and their messages.

use pointwise::{DType, Device, ErrorKind, Number, Philox, Strategy, Tensor, bf16, f16, kernels, ops};

fn tensor() -> Tensor {
    Tensor::from_slice(&Device::cpu(), &[1.0_f32, 2.0, 3.0, 4.0], [2, 2]).unwrap()
}

#[test]
fn an_element_type_the_op_does_not_take() {
    let x = Tensor::from_slice(&Device::cpu(), &[1_i32, 2], [2]).unwrap();
    let error = ops::gelu(&x).unwrap_err();
    assert!(error.is_dtype());
    assert_eq!(error.to_string(), "gelu does not take i32: it takes f32, f16, bf16, f8e4m3, f8e5m2; to_dtype converts");
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
fn views_that_are_not_contiguous_are_served() {
    let x = tensor();
    let mut y = Tensor::zeros(&Device::cpu(), DType::F32, [2, 2]).unwrap();
    ops::neg_into(x.view().transpose(0, 1).unwrap(), y.view_mut().unwrap().transpose(0, 1).unwrap()).unwrap();
    assert_eq!(y.to_vec::<f32>().unwrap(), [-1.0, -2.0, -3.0, -4.0]);
    let y = ops::neg(x.view().transpose(0, 1).unwrap()).unwrap();
    assert_eq!(y.to_vec::<f32>().unwrap(), [-1.0, -3.0, -2.0, -4.0]);
}

#[test]
fn operands_that_do_not_go_together() {
    let x = tensor();
    let zeros = |dtype, shape: &[usize]| Tensor::zeros(&Device::cpu(), dtype, shape).unwrap();
    let error = ops::add(&x, &zeros(DType::F32, &[3])).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Broadcast { dim: 1, .. }), "{error}");
    let error = ops::lerp(&x, &zeros(DType::F16, &[2]), 0.5).unwrap_err();
    assert_eq!(error.to_string(), "operand b of lerp (a is f32) does not take f16: it takes f32; to_dtype converts");
    let error = ops::where_cond(&x, &x, &x).unwrap_err();
    assert_eq!(error.to_string(), "operand condition of where does not take f32: it takes bool; to_dtype converts");
    assert!(ops::sub(&zeros(DType::Bool, &[2]), true).unwrap_err().is_dtype());
    assert!(ops::bitwise_and(&x, &x).unwrap_err().is_dtype());
    let error = ops::add(1.0, 2.0).unwrap_err();
    assert!(error.to_string().contains("at least one operand as a tensor"), "{error}");
    // A float parameter does not go with integers, nor 300 with u8.
    let bytes = zeros(DType::U8, &[2]);
    assert!(ops::add(300, &bytes).unwrap_err().to_string().contains("0 to 255"));
    assert!(ops::add(&bytes, Number::Default).is_err());
}

#[test]
fn outputs_of_several_operands() {
    let (mut x, other) = (tensor(), tensor());
    let mut y = Tensor::zeros(&Device::cpu(), DType::F32, [2, 2]).unwrap();
    // In place the shape must not grow, and the type must not change.
    let mut row = Tensor::zeros(&Device::cpu(), DType::F32, [2]).unwrap();
    assert!(ops::add_inplace(&mut row, &x).unwrap_err().is_shape());
    assert!(kernels::eq().run_inplace(&mut x, &other).unwrap_err().to_string().contains("its result is bool"));
    assert!(ops::eq_into(&x, &other, &mut y).unwrap_err().is_dtype());
    // Overlap that is not the same view.
    let device = Device::cpu();
    let memory = vec![1.0_f32; 9];
    let (base, contiguous) = (memory.as_ptr(), [1]);
    // SAFETY: 8 of 9 elements of `memory` each, which nothing else uses; no call below writes.
    let (a, b) = unsafe {
        (
            pointwise::TensorView::from_raw_parts(&device, base, DType::F32, [8], &contiguous).unwrap(),
            pointwise::TensorViewMut::from_raw_parts(&device, base.add(1).cast_mut(), DType::F32, [8], &contiguous)
                .unwrap(),
        )
    };
    let error = ops::mul_into(a, 2.0, b).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Overlap { .. }), "{error}");
    assert_eq!(memory, [1.0; 9]);
    // A mask over the result, of elements as small.
    let x = Tensor::zeros(&device, DType::F8E4M3, [9]).unwrap();
    let bytes = [1_u8; 9];
    let [y, mask] = [DType::F8E4M3, DType::Bool].map(|dtype| {
        // SAFETY: the 9 bytes, which nothing else uses; the call below does not write.
        unsafe { pointwise::TensorViewMut::from_raw_parts(&device, bytes.as_ptr(), dtype, [9], &contiguous) }.unwrap()
    });
    let error = kernels::dropout(1.0).run_with_mask_into(&x, y, mask, Philox::new(1)).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Overlap { .. }), "{error}");
    // And over the operand.
    // SAFETY: as above.
    let over =
        unsafe { pointwise::TensorView::from_raw_parts(&device, bytes.as_ptr(), DType::F8E4M3, [9], &contiguous) };
    // SAFETY: as above.
    let mask =
        unsafe { pointwise::TensorViewMut::from_raw_parts(&device, bytes.as_ptr(), DType::Bool, [9], &contiguous) };
    let mut y = Tensor::zeros(&device, DType::F8E4M3, [9]).unwrap();
    let error =
        kernels::dropout(1.0).run_with_mask_into(over.unwrap(), &mut y, mask.unwrap(), Philox::new(1)).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Overlap { .. }), "{error}");
    assert_eq!(bytes, [1; 9]);
}

#[test]
fn shapes_of_gated_ops_and_prelu() {
    let odd = Tensor::zeros(&Device::cpu(), DType::F32, [2, 3]).unwrap();
    assert!(ops::silu_and_mul(&odd).unwrap_err().to_string().contains("must be even"));
    assert!(ops::silu_and_mul(&Tensor::zeros(&Device::cpu(), DType::F32, [0; 0]).unwrap()).is_err());
    let weight = |n: usize| Tensor::zeros(&Device::cpu(), DType::F32, [n]).unwrap();
    assert!(ops::prelu(&odd, &weight(2)).unwrap_err().is_shape());
    assert!(ops::prelu(&weight(4), &weight(4)).unwrap_err().is_shape());
    assert!(ops::prelu(&odd, &weight(3)).is_ok() && ops::prelu(&odd, &weight(1)).is_ok());
    assert!(ops::clamp(&odd, None, None).unwrap_err().to_string().contains("at least one bound"));
    let mask = Tensor::zeros(&Device::cpu(), DType::Bool, [2, 1]).unwrap();
    let half = Tensor::zeros(&Device::cpu(), DType::F16, [2, 3]).unwrap();
    assert!(ops::masked_fill(&half, &mask, 1e5).unwrap_err().to_string().contains("beyond the range of f16"));
    assert!(ops::masked_fill(&half, &mask, f64::NEG_INFINITY).is_ok());
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
    assert!(kernels::add(0.5).run(&x, &x).is_err());
    let x = Tensor::from_slice(&Device::cpu(), &[1_u8, 2], [2]).unwrap();
    let error = ops::hardtanh(&x, 300, 400).unwrap_err();
    assert!(error.to_string().contains("min_val = 300"), "{error}");
    // A plan says so, too.
    let error = kernels::hardtanh(300, 400).plan(&x, &x).unwrap_err();
    assert!(error.to_string().contains("min_val = 300"), "{error}");
}

#[test]
fn plans_want_tensors_that_fit() {
    let (x, mut wide) = (tensor(), Tensor::zeros(&Device::cpu(), DType::F32, [2, 2, 2]).unwrap());
    let turned = wide.view().transpose(0, 1).unwrap();
    assert!(kernels::relu().plan(&x, turned).unwrap_err().is_shape());
    assert!(kernels::relu().plan(&wide, &x).unwrap_err().is_shape());
    assert!(kernels::isnan().plan(&x, &x).unwrap_err().is_dtype());
    let error = kernels::dropout(0.5).plan(&x, &wide, None).unwrap_err();
    assert!(error.is_shape(), "{error}");
    let turned = wide.view_mut().unwrap().transpose(0, 1).unwrap();
    assert!(kernels::alibi().plan(turned).unwrap_err().is_shape());
    assert!(kernels::dropout(0.5).plan(&x, &tensor(), Some(x.view())).unwrap_err().is_dtype());
    assert!(kernels::relu().run_into(&x, &mut wide).unwrap_err().is_shape());
}

/// On the CPU, too, where nothing is launched.
#[test]
fn launch_settings_are_checked_everywhere() {
    let (x, place) = (tensor(), Philox::new(1));
    let refused = |what: &str, result: pointwise::Result<Tensor>| {
        let error = result.map(drop).expect_err(what);
        assert!(matches!(error.kind(), ErrorKind::Parameter { name: "threads", .. }), "{what}: {error}");
    };
    refused("unary", kernels::relu().threads(33).run(&x));
    refused("binary", kernels::add(1.0).threads(2048).run(&x, &x));
    refused("ternary", kernels::lerp().threads(0).run(&x, &x, 0.5));
    refused("gated", kernels::silu_and_mul().threads(33).run(&x));
    refused("dropout", kernels::dropout(0.5).threads(33).run(&x, place));
    refused("conversion", kernels::to_dtype().threads(33).run(&x, DType::F16));
    refused("generator", kernels::alibi().threads(33).run(&Device::cpu(), DType::F32, [1, 2, 2]));
    for exponent in [1.0, 2.0, 0.5, -0.5, -1.0, 3.0] {
        let pow = kernels::pow().threads(33);
        refused(&format!("pow by {exponent}"), pow.run(&x, exponent));
        refused(&format!("pow by {exponent} in place"), pow.run_inplace(&mut tensor(), exponent).map(|()| tensor()));
    }
    let empty = Tensor::zeros(&Device::cpu(), DType::F32, [0]).unwrap();
    refused("no elements", kernels::relu().threads(33).run(&empty));
}

#[test]
fn parameters_that_are_to_be_whole_numbers() {
    for decimals in [1.5, f64::INFINITY, f64::NAN] {
        let error = ops::round_decimals(&tensor(), decimals).unwrap_err();
        assert!(error.to_string().ends_with("must be a whole number"), "{error}");
    }
    assert_eq!(ops::round_decimals(&tensor(), 2.0).unwrap().to_vec::<f32>().unwrap(), [1.0, 2.0, 3.0, 4.0]);
}

/// If integers stay as they are, parameters may be numbers that integers cannot hold.
#[test]
fn parameters_that_integers_do_not_take_part_with() {
    let bytes = Tensor::from_slice(&Device::cpu(), &[0_u8, 7, 255], [3]).unwrap();
    assert_eq!(ops::round_decimals(&bytes, -1).unwrap().to_vec::<u8>().unwrap(), [0, 7, 255]);
    let same = ops::nan_to_num(&bytes, 0.5, 1e30, Number::Default).unwrap();
    assert_eq!(same.to_vec::<u8>().unwrap(), [0, 7, 255]);
}

#[test]
fn numbers_of_every_width() {
    let x = Tensor::from_slice(&Device::cpu(), &[1_i32, 2], [2]).unwrap();
    for sum in
        [kernels::add(1_i8).run(&x, 1_u8), kernels::add(1_i16).run(&x, 1_u16), kernels::add(1_i64).run(1_u32, &x)]
    {
        assert_eq!(sum.unwrap().to_vec::<i32>().unwrap(), [2, 3]);
    }
    for half in [ops::mul(&tensor(), f16::from_f32(0.5)), ops::mul(bf16::from_f32(0.5), &tensor())] {
        assert_eq!(half.unwrap().to_vec::<f32>().unwrap(), [0.5, 1.0, 1.5, 2.0]);
    }
}
