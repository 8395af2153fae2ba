//! The kernels compute what the package does.

use own_ops::ops::{self, IsOdd};
use pointwise::info::declared_ops;
use pointwise::{DType, Device, Number, Operand, Tensor};

fn devices() -> Vec<Device> {
    Device::for_tests(pointwise::embed::embedded()).unwrap()
}

#[test]
fn ops_keep_their_bounds() {
    pointwise_testkit::check_all("own-ops", &devices()).unwrap();
}

#[test]
fn every_op_is_there() {
    let names: Vec<_> = declared_ops("own-ops").iter().map(|def| def.info.name).collect();
    let expected = [
        "by_attribute",
        "by_cfg",
        "by_feature",
        "counted_norm",
        "doubled_backward",
        "halved",
        "halved_backward",
        "is_odd",
        "of_a_feature",
    ];
    assert_eq!(names, expected);
}

#[test]
fn features_and_cfgs_hold_on_the_gpu() {
    for device in devices() {
        let x = Tensor::from_slice(&device, &[2.0_f32], [1]).unwrap();
        let value = |y: pointwise::Result<Tensor>| y.unwrap().to_vec::<f32>().unwrap()[0];
        assert_eq!(value(ops::by_feature(&x)), 6.0, "{device}");
        assert_eq!(value(ops::by_cfg(&x)), 8.0, "{device}");
        assert_eq!(value(ops::halved_backward(&x)), 4.0, "{device}");
    }
}

#[test]
fn a_whole_default_is_exact() {
    const ODD: i64 = 9_007_199_254_740_993;
    assert_eq!((IsOdd::default().n, IsOdd::def().info.params[0].whole), (ODD, ODD));
    for device in devices() {
        let x = Tensor::from_slice(&device, &[2.0_f32], [1]).unwrap();
        for (n, odd) in [(Number::Default, true), (Number::Int(ODD), true), (Number::Int(ODD - 1), false)] {
            assert_eq!(ops::is_odd(&x, n).unwrap().1.to_vec::<bool>().unwrap(), [odd], "{device}");
        }
    }
}

/// Sums over rows of vectors of two elements, of up to three rows a chunk: in registers, and in shared memory.
#[test]
fn sums_have_the_same_bits() {
    let def = ops::CountedNorm::def().backward.unwrap();
    for (rows, len) in [(270, 64), (270, 4104)] {
        let run = |device: &Device| -> Vec<Vec<u8>> {
            let operands = def.info.operands.iter().enumerate().map(|(k, _)| {
                let shape = if def.info.is_weight(k) { vec![len] } else { vec![rows, len] };
                let numbers = (0..shape.iter().product::<usize>()).map(|i| (i * (7 + k) % 31) as i64 - 15);
                match def.info.operand_type(k, DType::F32) {
                    DType::I64 => Tensor::from_slice(device, &numbers.collect::<Vec<_>>(), shape).unwrap(),
                    _ => {
                        Tensor::from_slice(device, &numbers.map(|n| n as f32 / 8.0).collect::<Vec<_>>(), shape).unwrap()
                    }
                }
            });
            let operands: Vec<Tensor> = operands.collect();
            let operands: Vec<Operand<'_>> = operands.iter().map(Operand::from).collect();
            def.kernel(&[]).run(&operands).unwrap().iter().map(|result| result.to_bytes().unwrap()).collect()
        };
        let expected = run(&Device::cpu());
        for device in devices() {
            assert!(run(&device) == expected, "{rows} x {len} on {device}");
        }
    }
}
