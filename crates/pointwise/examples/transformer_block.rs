//! A transformer block but for its matrix products: the norms, the rotation of q and k, the softmax and the gate.

use pointwise::prelude::*;
use pointwise::rope::{RopeAngles, RopeConfig, RopeFrequencies, RopeKernel, RopePairs, RopePrecision, RopeType};

const TOKENS: usize = 6;
const HIDDEN: usize = 64;
const HEADS: usize = 4;

/// Stands for a matrix product.
fn product(x: &Tensor, shape: &[usize]) -> Result<Tensor> {
    let values: Vec<f32> = x.to_vec()?;
    let n = shape.iter().product();
    Tensor::from_slice(x.device(), &(0..n).map(|i| values[i * 7 % values.len()]).collect::<Vec<f32>>(), shape)
}

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let device = Device::best()?;
    let hidden: Vec<f32> = (0..TOKENS * HIDDEN).map(|i| (i * 31 % 17) as f32 / 8.0 - 1.0).collect();
    let x = Tensor::from_slice(&device, &hidden, [TOKENS, HIDDEN])?;
    let weight = Tensor::full(&device, 1.0_f32, [HIDDEN])?;
    let config = RopeConfig::new(RopeType::Default, HIDDEN / HEADS, 10_000.0);
    let frequencies = RopeFrequencies::new(&device, &config.frequencies(TOKENS as u64)?)?;
    let rope = RopeKernel::new(RopeAngles::Frequencies(&frequencies, RopePrecision::Hf), RopePairs::Half);

    let h = ops::rms_norm(&x, &weight, 1e-6, 0.0, false)?;
    let mut q = product(&h, &[1, HEADS, TOKENS, HIDDEN / HEADS])?;
    let mut k = product(&h, &[1, HEADS, TOKENS, HIDDEN / HEADS])?;
    rope.run_inplace(&mut q, Some(k.view_mut()?))?;
    let scores = product(&q, &[HEADS, TOKENS, TOKENS])?;
    let later: Vec<bool> = (0..TOKENS * TOKENS).map(|i| i % TOKENS > i / TOKENS).collect();
    let mask = Tensor::from_slice(&device, &later, [TOKENS, TOKENS])?;
    let weights = ops::masked_softmax(&scores, &mask, 0.25)?;
    let attention = product(&weights, &[TOKENS, HIDDEN])?;
    let (h, x) = ops::add_rms_norm(&attention, &x, &weight, 1e-6, 0.0, false)?;
    let y = ops::silu_and_mul(&product(&h, &[TOKENS, 2 * HIDDEN])?)?;
    let x = ops::add(&x, &product(&y, &[TOKENS, HIDDEN])?)?;
    println!("the first token's weights: {}", weights.view().narrow(1, 0, 1)?.to_tensor()?);
    println!("the block's result: {:?} of {}", x.shape(), x.dtype());
    Ok(())
}
