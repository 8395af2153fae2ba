//! The ops against their own formulas in f64, on the CPU and on the GPU where there is one and kernels are built.

use custom_op::{KERNELS, UNARY, definitions, ops};
use pointwise::{DType, Device, Tensor, Variant, bf16};

fn devices() -> Vec<Device> {
    let best = Device::best_for(&KERNELS).expect("a GPU that is there works");
    std::iter::once(Device::cpu()).chain(Some(best).filter(Device::is_cuda)).collect()
}

/// Numbers of all magnitudes and some near zero, where formulas turn. Not a multiple of any vector.
fn inputs() -> Vec<f32> {
    let all = (0..10_007_u32).map(|i| f32::from_bits(i.wrapping_mul(0x9E37_79B9))).filter(|x| x.is_finite());
    all.chain((-2_000..2_000).map(|i| i as f32 / 100.0)).collect()
}

#[test]
fn snake_keeps_its_bound() {
    let x = inputs();
    for a in [1.0, 0.3] {
        let exact = definitions::snake.oracle_for(DType::F32, &[a.into()]).unwrap().unwrap();
        let bound = f64::from(definitions::snake.info.accuracy.bound(DType::F32));
        for device in devices() {
            let y = ops::snake(&Tensor::from_slice(&device, &x, [x.len()]).unwrap(), a).unwrap();
            for (&x, y) in x.iter().zip(y.to_vec::<f32>().unwrap()) {
                let exact = exact(f64::from(x));
                let nearest = (exact as f32).abs();
                let ulp = f64::from(nearest.next_up()) - f64::from(nearest);
                assert!(
                    (f64::from(y) - exact).abs() <= bound * ulp,
                    "{device}: snake({x:e}, {a}) = {y:e}, not {exact:e}"
                );
            }
        }
    }
}

#[test]
fn squared_relu_of_every_bf16_is_correctly_rounded() {
    let x: Vec<bf16> = (0..=u16::MAX).map(bf16::from_bits).filter(|x| !x.is_nan()).collect();
    for device in devices() {
        let y = ops::squared_relu(&Tensor::from_slice(&device, &x, [x.len()]).unwrap()).unwrap();
        for (&x, y) in x.iter().zip(y.to_vec::<bf16>().unwrap()) {
            assert_eq!(y, bf16::from_f64(x.to_f64().max(0.0).powi(2)), "{device}: squared_relu({x})");
        }
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
    let x = inputs();
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
