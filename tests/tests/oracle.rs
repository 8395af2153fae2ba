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
            if !report.keeps(def.info.accuracy, def.info.result_type(0, dtype), all_codes) {
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

/// Points where formulas change over, or lose digits.
const HARD: &[f32] = &[
    0.0,
    1.0,
    2.0,
    0.5,
    0.25,
    0.75,
    1.0e-3,
    0.347,
    0.3466,
    0.47,
    1.0397,
    0.549,
    0.875,
    0.9219,
    3.92,
    3.95,
    5.0,
    5.5,
    8.0,
    9.01,
    10.05,
    17.003,
    17.2,
    17.7,
    18.384,
    19.1,
    10.2,
    11.2,
    13.2,
    14.2,
    14.8,
    16.6,
    17.3,
    20.0,
    87.33,
    88.02,
    88.72,
    89.0,
    103.97,
    104.0,
    110.0,
    120.0,
    126.0,
    127.0,
    128.0,
    129.0,
    149.0,
    150.0,
    151.0,
    std::f32::consts::FRAC_PI_4,
    1.5707964,
    2.3561945,
    std::f32::consts::PI,
    4.712389,
    6.2831855,
    355.0,
    710.0,
    5.0e4,
    1.0e5,
    0.70710677,
    std::f32::consts::SQRT_2,
    0.29289323,
    0.41421357,
    1.1754944e-38,
    3.4028235e38,
    1.7014118e38,
    2.3e38,
    1.0e30,
    1.0e-30,
];

/// Takes f32 of all sizes, the range of activations evenly, and the numbers around hard points.
#[test]
fn f32_where_it_is_hard() {
    let mut values: Vec<f32> = (0..1_u32 << 19).map(|i| f32::from_bits(i.wrapping_mul(8191))).collect();
    values.extend((-(1 << 18)..1 << 18).map(|i| i as f32 * (1.0 / 8192.0) * (1.0 + 1.0 / 65536.0)));
    for centre in HARD.iter().chain(&[3.0, 6.0]).flat_map(|centre| [*centre, -centre]) {
        values.extend((0..256).map(|i: u32| f32::from_bits(centre.to_bits().wrapping_add(i).wrapping_sub(128))));
    }
    values.extend([f32::INFINITY, f32::NEG_INFINITY, f32::NAN]);
    let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    check(DType::F32, &bytes, false);
}

#[test]
fn i32_and_i64() {
    for dtype in [DType::I32, DType::I64] {
        check(dtype, &inputs::mixed(dtype, 1 << 16, 0), false);
    }
}
