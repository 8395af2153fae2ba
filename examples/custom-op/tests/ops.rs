//! The ops against their own formulas in f64: on the CPU, and as kernels on the GPU or, where there is none, in the
//! emulator.

use custom_op::{KERNELS, UNARY, definitions, ops};
use pointwise::{DType, Device, Number, Strategy, Tensor, Variant};
use pointwise_testkit::Op;

fn devices() -> Vec<Device> {
    Device::for_tests(&KERNELS).expect("devices that can be used")
}

/// Every element type, with the parameters' defaults and others, on special and random values.
#[test]
fn every_op_keeps_its_bound() {
    for device in devices() {
        for &def in UNARY {
            Op::from(def).check(&device).unwrap();
        }
    }
}

#[test]
fn squared_relu_of_some_numbers() {
    for device in Device::for_tests(&KERNELS).unwrap() {
        let x = Tensor::from_slice(&device, &[-3.0_f32, 0.0, 1.5], [3]).unwrap();
        assert_eq!(ops::squared_relu(&x).unwrap().to_vec::<f32>().unwrap(), [0.0, 0.0, 2.25], "{device}");
    }
}

/// One parameter that is of interest.
#[test]
fn snake_keeps_its_bound_at_0_3() {
    let set = [0.3.into(), Number::Default, Number::Default, Number::Default];
    let snake = Op::from(&definitions::snake);
    let x = snake.operands(DType::F32, 5);
    for device in devices() {
        let y = snake.run(&device, DType::F32, &set, Strategy::Auto, &x).unwrap();
        let report = snake.judge(DType::F32, &set, &x, &y).unwrap()[0];
        assert!(snake.keeps(&report, DType::F32), "{device}: {report}");
    }
}

#[test]
fn squared_relu_of_integers_wraps() {
    for device in devices() {
        let x = Tensor::from_slice(&device, &[-3_i8, 0, 11, 12], [4]).unwrap();
        assert_eq!(ops::squared_relu(&x).unwrap().to_vec::<i8>().unwrap(), [0, 0, 121, 144_u8 as i8]);
    }
}

#[test]
fn is_outlier_compares_with_its_limit() {
    let x: Vec<f32> = (-1_000..1_000).map(|i| i as f32 / 100.0).collect();
    for device in devices() {
        let y = ops::is_outlier(&Tensor::from_slice(&device, &x, [x.len()]).unwrap(), 2.5).unwrap();
        assert!(x.iter().zip(y.to_vec::<bool>().unwrap()).all(|(x, y)| y == (x.abs() > 2.5)), "{device}");
    }
}

#[test]
fn every_kernel_was_built_or_none() {
    let entries = UNARY.iter().flat_map(|def| def.info.types.iter().map(|&dtype| (def.entry)(dtype, Variant::Direct)));
    let built: Vec<bool> = entries.map(|entry| entry.is_some_and(|entry| entry.is_embedded())).collect();
    assert!(built.iter().all(|&is_built| is_built != KERNELS.is_empty()), "{built:?}");
}
