//! Ops on candle's tensors: functions, any op by its name, gradients, an op of your own, in place, RoPE.

use candle_core::{DType, Device, Result, Tensor, Var};
use pointwise::rope::RopeConfig;
use pointwise_candle::{PointwiseOps, Rope, args, functions, op};

mod ops {
    use pointwise::prelude::*;

    /// `x + sin^2(a x) / a` (Ziyin et al. 2020).
    #[op(f32, f16, bf16, ulp = 8)]
    pub fn snake<T: Real>(x: T, #[param(default = 1.0)] a: T) -> T {
        let s = (a * x).sin();
        x + s * s / a
    }
}

fn main() -> Result<()> {
    let device = Device::Cpu; // or Device::new_cuda(0)?, with the feature `cuda`
    let x = Var::randn(0.0_f32, 1.0, (4, 64), &device)?;
    let weight = Var::ones(64, DType::F32, &device)?;

    let y = functions::rms_norm(&x, &weight, 1e-5)?; // common ops are functions
    let y = y.pointwise("softplus")?; // any op of the family, by its name
    let y = y.pointwise_with("lerp", &args![&x, 0.25])?; // operands are tensors and numbers
    let y = op("leaky_relu")?.set("negative_slope", 0.1)?.run_one(&args![&y])?; // parameters
    let y = y.pointwise(ops::Snake::<f64>::def())?; // an op of your own

    let grads = y.sqr()?.mean_all()?.backward()?; // candle's own walk back
    println!("gradient of the weight: {:?}", grads.get(&weight).map(Tensor::dims));

    let scores = Tensor::randn(0.0_f32, 1.0, (2, 8), &device)?;
    scores.pointwise_inplace("mul", &args![0.125])?; // over its first operand

    let rope = Rope::new(&RopeConfig::llama3(64, 500_000.0), 8192, &device)?;
    let q = Tensor::randn(0.0_f32, 1.0, (1, 16, 8, 64), &device)?.transpose(1, 2)?; // read where it lies
    let k = Tensor::randn(0.0_f32, 1.0, (1, 16, 2, 64), &device)?.transpose(1, 2)?;
    let (q, k) = rope.apply(&q, &k, 0)?; // one launch
    println!("q {:?}, k {:?}, scores {:?}", q.dims(), k.dims(), scores.dims());
    Ok(())
}
