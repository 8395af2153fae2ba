//! The kernels compute what the package does.

use own_ops::ops::{self, IsOdd};
use pointwise::info::declared_ops;
use pointwise::{Device, Number, Tensor};

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
