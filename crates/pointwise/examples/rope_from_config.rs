//! Rotary embedding as a Hugging Face model has it: from its configuration to rotated queries and keys.

use pointwise::prelude::*;
use pointwise::rope::{
    RopeAngles, RopeConfig, RopeFrequencies, RopeKernel, RopeLayout, RopePairs, RopePositions, RopePrecision,
};

/// The part of Llama 3.2 1B's `config.json` that rotary embedding needs.
const CONFIG: &str = r#"{
    "model_type": "llama", "hidden_size": 2048, "num_attention_heads": 32, "head_dim": 64,
    "max_position_embeddings": 131072, "rope_theta": 500000.0,
    "rope_scaling": {"rope_type": "llama3", "factor": 32.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                     "original_max_position_embeddings": 8192}
}"#;

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let device = Device::best()?;
    let config = RopeConfig::from_hf_json(CONFIG)?; // RopeConfig::from_path reads a file
    println!("{:?}, heads of {} lanes", config.rope_type(), config.head_dim());

    // 16 tokens of 32 heads of queries, 8 of keys: [batch, sequence, heads, lanes].
    let (tokens, lanes) = (16, config.head_dim());
    let mut q = Tensor::full(&device, bf16::from_f32(1.0), [1, tokens, 32, lanes])?;
    let mut k = Tensor::full(&device, bf16::from_f32(1.0), [1, tokens, 8, lanes])?;

    let frequencies = RopeFrequencies::new(&device, &config.frequencies(tokens as u64)?)?;
    let rope = RopeKernel::new(RopeAngles::Frequencies(&frequencies, RopePrecision::Hf), RopePairs::Half)
        .layout(RopeLayout::Bshd)
        .positions(RopePositions::Offset(1000)); // the tokens in front of these are in the cache
    rope.run_inplace(&mut q, Some(k.view_mut()?))?; // one launch for both

    let head = q.select(1, 15)?.select(1, 0)?.narrow(1, 0, 4)?;
    println!("token 1,015, head 0, the first lanes: {:?}", ops::to_dtype(head, DType::F32)?.to_vec::<f32>()?);
    Ok(())
}
