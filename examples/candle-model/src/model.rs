//! The decoder: embedding, layers of attention and a gated network, a last norm, logits.

use std::cell::RefCell;

use candle_core::{Device, Result, Tensor};
use candle_nn::{Embedding, Linear, Module, VarBuilder, embedding, linear_no_bias};
use candle_transformers::utils::repeat_kv;

use crate::parts::Parts;

/// The sizes of a decoder.
#[derive(Clone, Debug)]
pub struct Sizes {
    /// Words.
    pub vocab: usize,
    /// The width of the residual stream.
    pub hidden: usize,
    /// The width of the gated network.
    pub intermediate: usize,
    /// Layers.
    pub layers: usize,
    /// Heads of q.
    pub heads: usize,
    /// Heads of k and v.
    pub kv_heads: usize,
    /// The width of a head.
    pub head_dim: usize,
    /// True if q and k are normalised by heads, as in Qwen3.
    pub norms_heads: bool,
    /// True if a head of k and v meets all heads of q that share it in one product; else it is repeated for each, as in
    /// candle_transformers.
    pub in_groups: bool,
}

impl Sizes {
    /// Returns the sizes of a small model, or of Llama 3.2 1B.
    pub fn new(is_large: bool) -> Sizes {
        let (vocab, hidden, intermediate, layers, heads, kv_heads, head_dim) = match is_large {
            true => (32_000, 2048, 8192, 16, 32, 8, 64),
            false => (512, 256, 704, 4, 8, 2, 32),
        };
        Sizes { vocab, hidden, intermediate, layers, heads, kv_heads, head_dim, norms_heads: false, in_groups: true }
    }
}

/// A decoder whose weights have the names of candle_transformers' models.
pub struct Decoder {
    sizes: Sizes,
    embedding: Embedding,
    layers: Vec<Layer>,
    norm: Tensor,
    head: Linear,
    /// The mask of the last call.
    mask: RefCell<Option<Tensor>>,
}

struct Layer {
    sizes: Sizes,
    norm: Tensor,
    q: Linear,
    k: Linear,
    v: Linear,
    out: Linear,
    head_norms: Option<(Tensor, Tensor)>,
    second_norm: Tensor,
    gate: Linear,
    up: Linear,
    down: Linear,
}

fn weight(vb: VarBuilder<'_>, size: usize) -> Result<Tensor> {
    vb.get_with_hints(size, "weight", candle_nn::Init::Const(1.0))
}

impl Decoder {
    /// Makes or finds the weights.
    ///
    /// # Errors
    /// Fails for weights of other shapes, and without memory.
    pub fn new(sizes: &Sizes, vb: &VarBuilder<'_>) -> Result<Decoder> {
        Ok(Decoder {
            sizes: sizes.clone(),
            embedding: embedding(sizes.vocab, sizes.hidden, vb.pp("model.embed_tokens"))?,
            layers: (0..sizes.layers)
                .map(|k| Layer::new(sizes, &vb.pp(format!("model.layers.{k}"))))
                .collect::<Result<_>>()?,
            norm: weight(vb.pp("model.norm"), sizes.hidden)?,
            head: linear_no_bias(sizes.hidden, sizes.vocab, vb.pp("lm_head"))?,
            mask: RefCell::new(None),
        })
    }

    /// Returns the logits at every position of `words`, `[batch, sequence]`; with `last`, those at the last one alone.
    ///
    /// # Errors
    /// Fails as the ops do.
    pub fn forward(&self, words: &Tensor, parts: &dyn Parts, last: bool) -> Result<Tensor> {
        let len = words.dim(1)?;
        let mask = self.mask(len, words.device())?;
        let mut x = self.embedding.forward(words)?;
        let first = self.layers.first().map(|layer| &layer.norm).unwrap_or(&self.norm);
        let mut normed = parts.norm(&x, first)?;
        for (k, layer) in self.layers.iter().enumerate() {
            let next = self.layers.get(k + 1).map_or(&self.norm, |layer| &layer.norm);
            (normed, x) = layer.forward(&x, &normed, next, &mask, parts)?;
        }
        if last {
            normed = normed.narrow(1, len - 1, 1)?.contiguous()?;
        }
        self.head.forward(&normed)
    }

    /// Returns a mask that is 1 where a position is not to be seen, kept from the last call where that had as many.
    fn mask(&self, len: usize, device: &Device) -> Result<Tensor> {
        if let Some(mask) = self.mask.borrow().as_ref().filter(|mask| mask.dims() == [len, len]) {
            return Ok(mask.clone());
        }
        let mask: Vec<u8> = (0..len * len).map(|at| u8::from(at % len > at / len)).collect();
        let mask = Tensor::from_vec(mask, (len, len), device)?;
        self.mask.replace(Some(mask.clone()));
        Ok(mask)
    }

    /// Returns the sizes.
    pub fn sizes(&self) -> &Sizes {
        &self.sizes
    }
}

impl Layer {
    fn new(sizes: &Sizes, vb: &VarBuilder<'_>) -> Result<Layer> {
        let (hidden, q_width) = (sizes.hidden, sizes.heads * sizes.head_dim);
        let (attn, mlp, kv_width) = (vb.pp("self_attn"), vb.pp("mlp"), sizes.kv_heads * sizes.head_dim);
        let head_norms = match sizes.norms_heads {
            true => Some((weight(attn.pp("q_norm"), sizes.head_dim)?, weight(attn.pp("k_norm"), sizes.head_dim)?)),
            false => None,
        };
        Ok(Layer {
            sizes: sizes.clone(),
            norm: weight(vb.pp("input_layernorm"), hidden)?,
            q: linear_no_bias(hidden, q_width, attn.pp("q_proj"))?,
            k: linear_no_bias(hidden, kv_width, attn.pp("k_proj"))?,
            v: linear_no_bias(hidden, kv_width, attn.pp("v_proj"))?,
            out: linear_no_bias(q_width, hidden, attn.pp("o_proj"))?,
            head_norms,
            second_norm: weight(vb.pp("post_attention_layernorm"), hidden)?,
            gate: linear_no_bias(hidden, sizes.intermediate, mlp.pp("gate_proj"))?,
            up: linear_no_bias(hidden, sizes.intermediate, mlp.pp("up_proj"))?,
            down: linear_no_bias(sizes.intermediate, hidden, mlp.pp("down_proj"))?,
        })
    }

    /// Returns the norm that comes next, and the residual stream.
    fn forward(
        &self,
        x: &Tensor,
        normed: &Tensor,
        next_norm: &Tensor,
        mask: &Tensor,
        parts: &dyn Parts,
    ) -> Result<(Tensor, Tensor)> {
        let attention = self.attention(normed, mask, parts)?;
        let (normed, x) = parts.add_norm(&attention, x, &self.second_norm)?;
        let gated = parts.gate(&self.gate.forward(&normed)?, &self.up.forward(&normed)?)?;
        parts.add_norm(&self.down.forward(&gated)?, &x, next_norm)
    }

    fn attention(&self, x: &Tensor, mask: &Tensor, parts: &dyn Parts) -> Result<Tensor> {
        let Sizes { heads, kv_heads, head_dim, .. } = self.sizes;
        let (batch, len, _) = x.dims3()?;
        let split = |y: Tensor, heads: usize| y.reshape((batch, len, heads, head_dim));
        let (mut q, mut k) = (split(self.q.forward(x)?, heads)?, split(self.k.forward(x)?, kv_heads)?);
        let v = split(self.v.forward(x)?, kv_heads)?.transpose(1, 2)?;
        if let Some((q_norm, k_norm)) = &self.head_norms {
            (q, k) = (parts.norm(&q, q_norm)?, parts.norm(&k, k_norm)?);
        }
        let (q, k) = parts.rope(&q.transpose(1, 2)?, &k.transpose(1, 2)?)?;
        let scale = 1.0 / (head_dim as f64).sqrt();
        let y = if self.sizes.in_groups {
            // The group's rows are one matrix.
            let q = q.reshape((batch, kv_heads, heads / kv_heads * len, head_dim))?;
            let scores = q.matmul(&k.t()?)?.reshape((batch, heads, len, len))?;
            let weights = parts.attention(&scores, mask, scale)?;
            let weights = weights.reshape((batch, kv_heads, heads / kv_heads * len, len))?;
            weights.matmul(&v.contiguous()?)?.reshape((batch, heads, len, head_dim))?
        } else {
            let (k, v) = (repeat_kv(k, heads / kv_heads)?, repeat_kv(v, heads / kv_heads)?);
            let weights = parts.attention(&q.matmul(&k.t()?)?, mask, scale)?;
            weights.matmul(&v.contiguous()?)?
        };
        self.out.forward(&y.transpose(1, 2)?.reshape((batch, len, heads * head_dim))?)
    }
}
