//! Ops of several operands on the CPU against models: all pairs of 8-bit codes, special values of the other types.

use duplicate::duplicate_item;
use pointwise::{DType, Device, Strategy, Tensor};
use pointwise_testkit::{calls, params};

fn check(dtype: DType) {
    let device = Device::cpu();
    let mut failures = Vec::new();
    let mut ops = 0;
    for def in tests::several().filter(|def| def.info.supports(dtype)) {
        let operands = calls::operands(&def.info, dtype, 2);
        let tensors: Vec<Tensor> = operands
            .iter()
            .enumerate()
            .map(|(k, bytes)| {
                let dtype = def.info.operand_type(k, dtype);
                Tensor::from_bytes(&device, dtype, bytes, [bytes.len() / dtype.size()]).unwrap()
            })
            .collect();
        for set in params::sets(&def.info, dtype) {
            let results = calls::run(def, &set, Strategy::Auto, &tensors).unwrap();
            let y: Vec<Vec<u8>> = results.iter().map(|y| y.to_bytes().unwrap()).collect();
            if let Err(failure) = calls::check(def, dtype, &set, &operands, &y) {
                failures.push(failure);
            }
        }
        ops += 1;
    }
    assert!(ops > 10, "{ops} ops take {dtype}");
    assert!(failures.is_empty(), "{failures:#?}");
}

#[duplicate_item(
    name Type;
    [f32] [F32]; [f16] [F16]; [bf16] [BF16]; [f8e4m3] [F8E4M3]; [f8e5m2] [F8E5M2];
    [i8] [I8]; [i16] [I16]; [i32] [I32]; [i64] [I64]; [u8] [U8]; [bool] [Bool];
)]
#[test]
fn name() {
    check(DType::Type);
}
