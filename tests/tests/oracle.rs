//! The CPU executor against the oracle: every code of the 8- and 16-bit types, a million f32, every op.

use duplicate::duplicate_item;
use pointwise::{DType, Device, Tensor};
use pointwise_testkit::{inputs, judge, params};

fn check(dtype: DType, x: &[u8], all_codes: bool) {
    let device = Device::cpu();
    let n = x.len() / dtype.size();
    let tensor = Tensor::from_bytes(&device, dtype, x, [n]).unwrap();
    let mut failures = Vec::new();
    let mut pairs = 0;
    for def in tests::unary().filter(|def| def.info.supports(dtype)) {
        for set in params::sets(&def.info, dtype) {
            let y = def.unary_with(&set).run(&tensor).unwrap().to_bytes().unwrap();
            let report = judge::unary(def, dtype, &set, x, &y).unwrap();
            assert!(report.compared > 0);
            pairs += 1;
            if !report.keeps(def.info.accuracy, def.info.result.of(dtype), all_codes) {
                failures.push(format!("{} {dtype} {set:?}: {report}", def.info.name));
            }
        }
    }
    assert!(pairs > 0, "no op takes {dtype}");
    assert!(failures.is_empty(), "{failures:#?}");
}

#[duplicate_item(
    name Type;
    [every_f16] [F16]; [every_bf16] [BF16]; [every_f8e4m3] [F8E4M3]; [every_f8e5m2] [F8E5M2];
    [every_i8] [I8]; [every_i16] [I16]; [every_u8] [U8]; [every_bool] [Bool];
)]
#[test]
fn name() {
    check(DType::Type, &inputs::codes(DType::Type, 0, 0), true);
}

#[test]
fn a_million_f32() {
    check(DType::F32, &inputs::mixed(DType::F32, 1 << 20, 0), false);
}

#[test]
fn i32_and_i64() {
    for dtype in [DType::I32, DType::I64] {
        check(dtype, &inputs::mixed(dtype, 1 << 16, 0), false);
    }
}
