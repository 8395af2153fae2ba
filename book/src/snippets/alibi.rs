use pointwise::prelude::*;

fn alibi(device: &Device) -> Result<Tensor> {
    ops::alibi(device, DType::BF16, 8, 128) // or alibi_causal: 8 heads, 128 tokens
}
