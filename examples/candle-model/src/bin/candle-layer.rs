//! The parts of a layer one by one: candle's time and pointwise's, in turns, and both forms of the attention's products.
//!
//! `cargo run --release --bin candle-layer [--features cuda] -- [--cuda] [--large] [--bf16]`
#![forbid(unsafe_code)]

use candle_core::{DType, Device, Result, Tensor};
use candle_model::model::Sizes;
use candle_model::parts::{Candle, Parts, Pointwise};
use candle_model::{device, has, in_turns};
use candle_transformers::utils::repeat_kv;
use pointwise::rope::RopeConfig;

const EPS: f64 = 1e-5;

fn main() -> Result<()> {
    let device = device()?;
    let dtype = if has("--bf16") { DType::BF16 } else { DType::F32 };
    let sizes = Sizes::new(has("--large"));
    println!("us a call, {}, {device:?}: candle, pointwise", dtype.as_str());
    for len in [1, 128, 2048] {
        layer(&sizes, len, dtype, &device)?;
    }
    Ok(())
}

fn layer(sizes: &Sizes, len: usize, dtype: DType, device: &Device) -> Result<()> {
    let Sizes { hidden, intermediate, heads, kv_heads, head_dim, .. } = *sizes;
    let rope = RopeConfig::default_rope(head_dim, 500_000.0);
    let theirs = Candle::new(&rope, EPS, len, true, dtype, device)?;
    let ours = Pointwise::new(&rope, EPS, len, device)?;
    let random = |shape: &[usize]| Tensor::randn(0.0_f32, 1.0, shape, device)?.to_dtype(dtype);

    let (x, residual, weight) = (random(&[1, len, hidden])?, random(&[1, len, hidden])?, random(&[hidden])?);
    let (gate, value) = (random(&[1, len, intermediate])?, random(&[1, len, intermediate])?);
    let (q, k) = (random(&[1, len, heads, head_dim])?, random(&[1, len, kv_heads, head_dim])?);
    let (q, k) = (q.transpose(1, 2)?, k.transpose(1, 2)?);
    let scores = random(&[1, heads, len, len])?;
    let mask: Vec<u8> = (0..len * len).map(|at| u8::from(at % len > at / len)).collect();
    let mask = Tensor::from_vec(mask, (len, len), device)?;
    let scale = 1.0 / (head_dim as f64).sqrt();

    println!("\n{len} words");
    let calls = if device.is_cpu() { 1 } else { 10 };
    let row = |name: &str, a: &dyn Fn() -> Result<()>, b: &dyn Fn() -> Result<()>| -> Result<()> {
        let (a, b) = in_turns(device, calls, a, b)?;
        println!("  {name:<24}{:>12.1}{:>12.1}", a * 1e6, b * 1e6);
        Ok(())
    };
    row("norm", &|| theirs.norm(&x, &weight).map(drop), &|| ours.norm(&x, &weight).map(drop))?;
    row("add, norm", &|| theirs.add_norm(&x, &residual, &weight).map(drop), &|| {
        ours.add_norm(&x, &residual, &weight).map(drop)
    })?;
    row("rope", &|| theirs.rope(&q, &k).map(drop), &|| ours.rope(&q, &k).map(drop))?;
    row("mask, softmax", &|| theirs.attention(&scores, &mask, scale).map(drop), &|| {
        ours.attention(&scores, &mask, scale).map(drop)
    })?;
    row("gate", &|| theirs.gate(&gate, &value).map(drop), &|| ours.gate(&gate, &value).map(drop))?;

    println!("  products: heads one by one, heads in groups");
    let (q, k, v) = (q.contiguous()?, k.contiguous()?, k.contiguous()?);
    let groups = (1, kv_heads, heads / kv_heads * len, head_dim);
    let in_groups = scores.reshape((1, kv_heads, heads / kv_heads * len, len))?;
    row("scores", &|| q.matmul(&repeat_kv(k.clone(), heads / kv_heads)?.t()?).map(drop), &|| {
        q.reshape(groups)?.matmul(&k.t()?).map(drop)
    })?;
    row("values", &|| scores.matmul(&repeat_kv(v.clone(), heads / kv_heads)?).map(drop), &|| {
        in_groups.matmul(&v).map(drop)
    })?;
    let zeros = || Tensor::zeros((1, heads, len, len), dtype, device).map(drop);
    row("zeros, as many as scores", &zeros, &zeros)
}
