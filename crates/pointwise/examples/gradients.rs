//! Gradients, called by hand: fits the weight of a gate, `y = silu(w x)`, by gradient descent.

use pointwise::prelude::*;

/// The sum of a tensor's elements: pointwise has elementwise ops alone.
fn sum(x: &Tensor) -> Result<f32> {
    Ok(x.to_vec::<f32>()?.iter().sum())
}

fn main() -> Result<()> {
    let device = Device::best()?;
    let x: Vec<f32> = (0..1024).map(|i| i as f32 / 128.0 - 4.0).collect();
    let x = Tensor::from_slice(&device, &x, [1024])?;
    let target = ops::silu(&ops::mul(&x, 1.7_f32)?)?;

    let mut weight = 0.5_f32;
    for step in 0..=40 {
        let scaled = ops::mul(&x, weight)?;
        let y = ops::silu(&scaled)?;
        // Backward, from the last op to the first: of half the squared distance, of silu, of the product.
        let grad = ops::sub(&y, &target)?;
        let loss = sum(&ops::mul(&grad, &grad)?)? / 2048.0;
        let grad = ops::silu_backward(&grad, &scaled)?;
        let (_, of_weight) = ops::mul_backward(&grad, &x, weight)?;
        if step % 10 == 0 {
            println!("{device}, step {step}: loss {loss:.2e}, weight {weight:.4}");
        }
        // The gradient has the shape of the result; the weight, which was broadcast, gets its sum.
        weight -= 0.2 * sum(&of_weight)? / 1024.0;
    }
    Ok(())
}
