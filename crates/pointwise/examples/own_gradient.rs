//! A gradient of one's own, in place of the one that is derived from the formula: rounding to steps, trained through as if
//! it did not round. It runs on the CPU: kernels for a GPU need a build script, as the packages in `examples` have.

use pointwise::prelude::*;

/// `x` at the nearest multiple of `step`. The derivative is zero nearly everywhere, which trains nothing.
#[op(f32, f16, bf16, ulp = 2, grad = straight_through)]
pub fn quantise<T: Real>(x: T, #[param(default = 1.0)] step: T) -> T {
    (x / step).round_ties_even() * step
}

/// Takes the gradient of the result, then what the op takes.
fn straight_through<T: Real>(grad: T, _x: T, _step: T) -> T {
    grad
}

fn main() -> Result<()> {
    let cpu = Device::cpu();
    let target = Tensor::from_slice(&cpu, &[0.25_f32, -0.5, 1.0, 0.75], [4])?;
    let mut weights = Tensor::zeros(&cpu, DType::F32, [4])?;
    for step in 0..=12 {
        let y = quantise(&weights, 0.25)?;
        let grad = ops::sub(&y, &target)?;
        if step % 4 == 0 {
            println!("step {step:2}: {:?}", y.to_vec::<f32>()?);
        }
        let grad = quantise_backward(&grad, &weights, 0.25)?;
        weights = ops::sub(&weights, &ops::mul(&grad, 0.3)?)?;
    }
    Ok(())
}
