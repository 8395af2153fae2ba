//! Bad input gives candle's error with pointwise's text.

use candle_core::{DType, Device, Result, Tensor, Var};
use pointwise_candle::{Op, PointwiseOps, Rope, args, functions, op};

use crate::support::random;

#[track_caller]
pub(crate) fn fails<T>(result: Result<T>, words: &[&str]) {
    let Err(error) = result else { panic!("no error that says {words:?}") };
    let text = error.to_string();
    for word in words {
        assert!(text.contains(word), "{text:?} does not say {word:?}");
    }
}

#[test]
fn bad_calls_are_errors() -> Result<()> {
    let x = random(&[4, 6], 1, -1.0, 1.0, DType::F32)?;
    let f64s = x.to_dtype(DType::F64)?;
    fails(x.pointwise("silo"), &["no op is named silo"]);
    fails(x.pointwise("silu_backward"), &["no op is named silu_backward"]);
    fails(op("rms_norm")?.set("epsilon", 1.0), &["no parameter epsilon", "eps"]);
    fails(f64s.pointwise("silu"), &["f64", "to_dtype"]);
    fails(x.to_dtype(DType::U32)?.pointwise("abs"), &["u32"]);
    fails(x.to_dtype(DType::I64)?.pointwise("silu"), &["silu", "i64"]);
    fails(x.pointwise_with("add", &args![&random(&[4, 5], 2, 0.0, 1.0, DType::F32)?]), &["broadcast"]);
    fails(x.pointwise("add"), &["add", "2"]);
    fails(op("add")?.run_one(&args![1.0, 2.0]), &["numbers alone"]);
    fails(functions::where_cond(&x, &x, &x), &["condition", "u8"]);
    fails(functions::silu_and_mul(&random(&[2, 5], 1, 0.0, 1.0, DType::F32)?), &["silu_and_mul"]);
    fails(op("add_rms_norm")?.run_one(&args![&x, &x, 1.0]), &["2 results"]);
    fails(random(&[1; 9], 1, 0.0, 1.0, DType::F32)?.pointwise("silu"), &["8"]);
    fails(pointwise_candle::dropout(&x, 1.5, pointwise::Philox::new(1)), &["1.5"]);
    Ok(())
}

#[test]
fn bad_writes_are_errors() -> Result<()> {
    let x = random(&[4, 6], 1, -1.0, 1.0, DType::F32)?;
    fails(x.pointwise_inplace("gt", &args![0.0]), &["gt", "bool"]);
    fails(x.pointwise_inplace("mul", &args![&random(&[2, 4, 6], 1, 0.0, 1.0, DType::F32)?]), &["mul"]);
    fails(x.broadcast_as((2, 4, 6))?.pointwise_inplace("silu", &[]), &["silu"]);
    // candle passes no operand that shares the memory of the first.
    fails(x.pointwise_inplace("mul", &args![&x]), &["mul"]);
    Ok(())
}

#[test]
fn a_layout_beyond_its_storage_is_an_error() -> Result<()> {
    use candle_core::op::BackpropOp;
    use candle_core::{CpuStorage, Storage};
    let storage = Storage::Cpu(CpuStorage::F32(vec![1.0; 10]));
    let x = Tensor::from_storage(storage, (4, 5), BackpropOp::none(), false);
    fails(x.pointwise("silu"), &["beyond its storage of 10"]);
    Ok(())
}

#[test]
fn ops_without_gradients_say_so() -> Result<()> {
    mod own {
        use pointwise::prelude::*;

        /// Twice `x`, as a constant to gradients.
        #[op(f32, exact, grad = none)]
        pub fn twice<T: Real>(x: T) -> T {
            x + x
        }
    }
    let x = Var::from_tensor(&random(&[4], 1, -1.0, 1.0, DType::F32)?)?;
    let y = Op::from(own::Twice::def()).run_one(&args![x.as_tensor()])?;
    fails(y.sum_all()?.backward(), &["twice has no gradient"]);
    Ok(())
}

#[test]
fn bad_rotations_are_errors() -> Result<()> {
    let config = pointwise::rope::RopeConfig::default_rope(8, 10_000.0);
    let rope = Rope::new(&config, 64, &Device::Cpu)?;
    let x = random(&[1, 2, 3, 8], 1, -1.0, 1.0, DType::F32)?;
    fails(rope.apply_one(&x.to_dtype(DType::I64)?, 0), &["i64"]);
    fails(rope.apply_one(&random(&[1, 2, 3, 6], 1, 0.0, 1.0, DType::F32)?, 0), &["8 lanes"]);
    fails(rope.apply_one(&x, &Tensor::new(&[0_u32, 1], &Device::Cpu)?), &["position_ids"]);
    fails(rope.apply(&x, &x.narrow(2, 0, 2)?, 0), &["k"]);
    fails(Rope::new(&config.factor(0.0).rotary_dim(3), 64, &Device::Cpu), &["rotary_dim"]);
    Ok(())
}

#[test]
fn devices_without_kernels_are_errors() -> Result<()> {
    let config = pointwise::rope::RopeConfig::default_rope(8, 10_000.0);
    let metal = Device::Metal(candle_core::MetalDevice);
    fails(Rope::new(&config, 64, &metal), &["Metal", "to_device"]);
    fails(pointwise_candle::alibi((2, 4, 4), DType::F32, &metal), &["Metal", "to_device"]);
    #[cfg(not(feature = "cuda"))]
    fails(Rope::new(&config, 64, &Device::Cuda(candle_core::CudaDevice)), &["CUDA", "feature `cuda`"]);
    Ok(())
}
