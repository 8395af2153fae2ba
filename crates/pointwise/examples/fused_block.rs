//! A chain of ops as one formula: one pass over memory instead of three. Here it runs on the CPU: its kernels for a GPU
//! need a build script, which the package `examples/fused-block` has.

use pointwise::prelude::*;

/// `residual + dropout(silu(gate) value, p)`.
#[op(f32, f16, bf16, ulp = 4)]
pub fn silu_dropout_add<T: Real>(
    residual: T,
    gate: T,
    value: T,
    bits: RandomWord,
    #[param(default = 0.1, probability)] p: T,
) -> T {
    residual + (gate.silu() * value).dropout(p, bits)
}

fn main() -> Result<()> {
    let cpu = Device::cpu();
    let numbers = |seed: f32| -> Vec<f32> { (0..8).map(|i| (seed * i as f32).sin()).collect() };
    let residual = Tensor::from_slice(&cpu, &numbers(1.0), [2, 4])?;
    let gate = Tensor::from_slice(&cpu, &numbers(2.0), [2, 4])?;
    let value = Tensor::from_slice(&cpu, &numbers(3.0)[..4], [4])?; // broadcast to both rows
    let rng = Philox::new(42);

    // Three ops, two tensors between them, each rounded.
    let gated = ops::mul(&ops::silu(&gate)?, &value)?;
    let dropped = ops::dropout(&gated, 0.25, rng)?;
    println!("one by one = {}", ops::add(&residual, &dropped)?);

    // One op. The same seed draws the same mask.
    println!("fused      = {}", silu_dropout_add(&residual, &gate, &value, 0.25, rng)?);

    // Its gradient is one kernel, too: of all three operands.
    let (of_residual, of_gate, of_value) = silu_dropout_add_backward(1.0, &residual, &gate, &value, 0.25, rng)?;
    println!("gradients: {of_residual}\n{of_gate}\n{of_value}");
    Ok(())
}
