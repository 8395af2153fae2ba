//! Fits slope and bias of the op by gradient descent.

use pointwise::prelude::*;
use training_op::ops;

/// Returns the mean of a tensor's elements. The program sums them itself: pointwise has only elementwise ops.
fn mean(x: &Tensor) -> pointwise::Result<f64> {
    let values = x.to_vec::<f32>()?;
    Ok(values.iter().map(|&value| f64::from(value)).sum::<f64>() / values.len() as f64)
}

fn main() -> pointwise::Result<()> {
    let device = Device::best()?;
    let x: Vec<f32> = (0..4096).map(|i| i as f32 / 512.0 - 4.0).collect();
    let x = Tensor::from_slice(&device, &x, [4096])?;
    let target = ops::learned_unit(&x, 0.5, 1.7, 1.0, 0.0)?;
    let (mut bias, mut slope) = (0.0, 1.0);
    for step in 0..=400 {
        let y = ops::learned_unit(&x, bias, slope, 1.0, 0.0)?;
        // The gradient of half the squared distance.
        let grad = pointwise::ops::sub(&y, &target)?;
        let (_, of_bias, of_slope, _, _) = ops::learned_unit_backward(&grad, &x, bias, slope, 1.0, 0.0)?;
        if step % 100 == 0 {
            let loss = mean(&pointwise::ops::mul(&grad, &grad)?)?;
            println!("{device}, step {step}: loss {loss:.2e}, bias {bias:.3}, slope {slope:.3}");
        }
        bias -= 0.2 * mean(&of_bias)?;
        slope -= 0.2 * mean(&of_slope)?;
    }
    Ok(())
}
