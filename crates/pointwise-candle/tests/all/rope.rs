//! Rotary embedding against candle's, by every kind of position, with gradients.

use candle_core::{D, DType, Device, Result, Tensor, Var};
use candle_nn::rotary_emb;
use pointwise::rope::{RopeConfig, RopeLayout, RopePairs};
use pointwise_candle::{Positions, Rope};

use crate::support::{assert_close, random};

const THETA: f64 = 10_000.0;

/// Returns cosines and sines as candle's models make them.
fn tables(head_dim: usize, positions: &[u32]) -> Result<(Tensor, Tensor)> {
    let inv_freq: Vec<f32> =
        (0..head_dim).step_by(2).map(|i| 1.0 / (THETA as f32).powf(i as f32 / head_dim as f32)).collect();
    let inv_freq = Tensor::new(inv_freq, &Device::Cpu)?.unsqueeze(0)?;
    let positions = Tensor::new(positions, &Device::Cpu)?.to_dtype(DType::F32)?.unsqueeze(1)?;
    let angles = positions.matmul(&inv_freq)?;
    Ok((angles.cos()?, angles.sin()?))
}

fn rope(head_dim: usize) -> Result<Rope> {
    Rope::new(&RopeConfig::default_rope(head_dim, THETA), 128, &Device::Cpu)
}

#[test]
fn rotations_agree_with_candle() -> Result<()> {
    let (q, k) = (random(&[2, 4, 5, 16], 1, -1.0, 1.0, DType::F32)?, random(&[2, 2, 5, 16], 2, -1.0, 1.0, DType::F32)?);
    let (cos, sin) = tables(16, &[7, 8, 9, 10, 11])?;
    let (q_out, k_out) = rope(16)?.apply(&q, &k, 7)?;
    assert_close("q", &q_out, &rotary_emb::rope(&q, &cos, &sin)?, 2e-6);
    assert_close("k", &k_out, &rotary_emb::rope(&k, &cos, &sin)?, 2e-6);
    let pairs = rope(16)?.pairs(RopePairs::Interleaved).apply_one(&q, 7)?;
    assert_close("interleaved", &pairs, &rotary_emb::rope_i(&q, &cos, &sin)?, 2e-6);
    // Read in place from [batch, sequence, heads, head_dim], where candle copies first.
    let bshd = q.transpose(1, 2)?.contiguous()?;
    let in_place = rope(16)?.apply_one(&bshd.transpose(1, 2)?, 7)?;
    assert_close("transposed", &in_place, &q_out, 0.0);
    let layout = rope(16)?.layout(RopeLayout::Bshd).apply_one(&bshd, 7)?;
    assert_close("bshd", &layout.transpose(1, 2)?, &q_out, 0.0);
    let over = q.copy()?;
    rope(16)?.apply_inplace(&over, 7)?;
    assert_close("in place", &over, &q_out, 0.0);
    Ok(())
}

/// A model's file decides the variant: here Llama 3.2's, whose frequencies candle's Llama scales by hand.
#[test]
fn a_models_config_is_enough() -> Result<()> {
    let text = r#"{
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 256, "num_attention_heads": 8,
        "num_key_value_heads": 2, "head_dim": 32, "max_position_embeddings": 131072, "rope_theta": 500000.0,
        "rope_scaling": {
            "factor": 32.0, "high_freq_factor": 4.0, "low_freq_factor": 1.0, "original_max_position_embeddings": 8192,
            "rope_type": "llama3"
        }
    }"#;
    let config = RopeConfig::from_hf_json(text).map_err(candle_core::Error::wrap)?;
    // As `calculate_default_inv_freq` and `Cache::new` of candle_transformers' llama.rs have it.
    let (low, high) = (8192.0 / 1.0_f32, 8192.0 / 4.0_f32);
    let inv_freq = (0..16).map(|pair| 1.0 / 500_000_f32.powf(2.0 * pair as f32 / 32.0)).map(|freq: f32| {
        let wavelength = 2.0 * std::f32::consts::PI / freq;
        let smooth = (8192.0 / wavelength - 1.0) / (4.0 - 1.0);
        match wavelength {
            short if short < high => freq,
            long if long > low => freq / 32.0,
            _ => (1.0 - smooth) * freq / 32.0 + smooth * freq,
        }
    });
    let inv_freq = Tensor::new(inv_freq.collect::<Vec<f32>>(), &Device::Cpu)?.unsqueeze(0)?;
    let positions = Tensor::new(&[100_f32, 101.0, 102.0], &Device::Cpu)?.unsqueeze(1)?;
    let angles = positions.matmul(&inv_freq)?;
    let q = random(&[1, 8, 3, 32], 1, -1.0, 1.0, DType::F32)?;
    let ours = Rope::new(&config, 131_072, &Device::Cpu)?.apply_one(&q, 100)?;
    assert_close("llama3", &ours, &rotary_emb::rope(&q, &angles.cos()?, &angles.sin()?)?, 1e-5);
    Ok(())
}

#[test]
fn positions_are_numbers_of_candles_types() -> Result<()> {
    let x = random(&[2, 4, 3, 16], 1, -1.0, 1.0, DType::BF16)?;
    let expected = rope(16)?.apply_one(&x, 5)?;
    let ids = Tensor::new(&[5_u32, 6, 7], &Device::Cpu)?;
    assert_close("u32", &rope(16)?.apply_one(&x, &ids)?, &expected, 0.0);
    assert_close("i64", &rope(16)?.apply_one(&x, &ids.to_dtype(DType::I64)?)?, &expected, 0.0);
    let offsets = Positions::BatchOffsets(Tensor::new(&[5_u32, 5], &Device::Cpu)?);
    assert_close("offsets", &rope(16)?.apply_one(&x, offsets)?, &expected, 0.0);
    let over = x.copy()?;
    rope(16)?.apply_inplace(&over, &ids)?;
    assert_close("in place", &over, &expected, 0.0);
    Ok(())
}

#[test]
fn rotations_have_gradients() -> Result<()> {
    let q = Var::from_tensor(&random(&[1, 4, 5, 8], 1, -1.0, 1.0, DType::F32)?)?;
    let k = Var::from_tensor(&random(&[1, 2, 5, 8], 2, -1.0, 1.0, DType::F32)?)?;
    let weights = random(&[1, 4, 5, 8], 3, -1.0, 1.0, DType::F32)?;
    let (cos, sin) = tables(8, &[0, 1, 2, 3, 4])?;
    let loss = |q: Tensor, k: Tensor| -> Result<Tensor> {
        (&q * &weights)?.sum_all()? + (k.sqr()? * 0.5)?.narrow(D::Minus1, 0, 3)?.sum_all()?
    };
    let (q_out, k_out) = rope(8)?.apply(&q, &k, 0)?;
    let ours = loss(q_out, k_out)?.backward()?;
    let theirs = loss(rotary_emb::rope_slow(&q, &cos, &sin)?, rotary_emb::rope_slow(&k, &cos, &sin)?)?.backward()?;
    for var in [&q, &k] {
        assert_close("a gradient", ours.get(var).unwrap(), theirs.get(var).unwrap(), 2e-6);
    }
    // k alone is in the loss: the gradient of q is 0.
    let (_, k_out) = rope(8)?.apply(&q, &k, 0)?;
    let grads = k_out.sum_all()?.backward()?;
    assert_close("q", grads.get(&q).unwrap(), &q.zeros_like()?, 0.0);
    Ok(())
}
