//! The parts of a decoder that are no matrix products: by candle, and by pointwise.

use candle_core::{D, DType, Device, Result, Tensor};
use candle_nn::{ops as nn, rotary_emb};
use pointwise::rope::RopeConfig;
use pointwise_candle::{Op, Rope, args, functions, op};

/// The parts of a decoder.
pub trait Parts {
    /// `x / sqrt(mean(x^2) + eps) * weight`.
    ///
    /// # Errors
    /// Fails as the ops do.
    fn norm(&self, x: &Tensor, weight: &Tensor) -> Result<Tensor>;

    /// The norm of `x + residual`, and the sum.
    ///
    /// # Errors
    /// Fails as the ops do.
    fn add_norm(&self, x: &Tensor, residual: &Tensor, weight: &Tensor) -> Result<(Tensor, Tensor)>;

    /// q and k `[batch, heads, sequence, head_dim]`, with any strides, turned by their positions from 0 on.
    ///
    /// # Errors
    /// Fails as the ops do.
    fn rope(&self, q: &Tensor, k: &Tensor) -> Result<(Tensor, Tensor)>;

    /// The softmax of `scores * scale` where `mask` is 0.
    ///
    /// # Errors
    /// Fails as the ops do.
    fn attention(&self, scores: &Tensor, mask: &Tensor, scale: f64) -> Result<Tensor>;

    /// `silu(gate) * value`.
    ///
    /// # Errors
    /// Fails as the ops do.
    fn gate(&self, gate: &Tensor, value: &Tensor) -> Result<Tensor>;
}

/// candle's parts: the fused ones, which drop gradients, or the steps that its graph can walk back.
pub struct Candle {
    cos: Tensor,
    sin: Tensor,
    eps: f64,
    is_fused: bool,
}

impl Candle {
    /// Makes the tables as candle's models do, from pointwise's frequencies.
    ///
    /// # Errors
    /// Fails for a bad configuration, and without memory.
    pub fn new(
        rope: &RopeConfig,
        eps: f64,
        len: usize,
        is_fused: bool,
        dtype: DType,
        device: &Device,
    ) -> Result<Candle> {
        let frequencies = rope.frequencies(len as u64).map_err(candle_core::Error::wrap)?;
        let inv_freq = Tensor::new(&frequencies.inv_freq[..], device)?.unsqueeze(0)?;
        let positions = Tensor::arange(0, len as u32, device)?.to_dtype(DType::F32)?.unsqueeze(1)?;
        let angles = positions.matmul(&inv_freq)?;
        Ok(Candle { cos: angles.cos()?.to_dtype(dtype)?, sin: angles.sin()?.to_dtype(dtype)?, eps, is_fused })
    }
}

impl Parts for Candle {
    fn norm(&self, x: &Tensor, weight: &Tensor) -> Result<Tensor> {
        match self.is_fused {
            true => nn::rms_norm(&x.contiguous()?, weight, self.eps as f32),
            false => nn::rms_norm_slow(x, weight, self.eps as f32),
        }
    }

    fn add_norm(&self, x: &Tensor, residual: &Tensor, weight: &Tensor) -> Result<(Tensor, Tensor)> {
        let sum = (x + residual)?;
        Ok((self.norm(&sum, weight)?, sum))
    }

    fn rope(&self, q: &Tensor, k: &Tensor) -> Result<(Tensor, Tensor)> {
        let len = q.dim(2)?;
        let (cos, sin) = (self.cos.narrow(0, 0, len)?, self.sin.narrow(0, 0, len)?);
        let turn = if self.is_fused { rotary_emb::rope } else { rotary_emb::rope_slow };
        Ok((turn(&q.contiguous()?, &cos, &sin)?, turn(&k.contiguous()?, &cos, &sin)?))
    }

    fn attention(&self, scores: &Tensor, mask: &Tensor, scale: f64) -> Result<Tensor> {
        let mask = mask.broadcast_as(scores.shape())?;
        let never =
            Tensor::new(f32::NEG_INFINITY, scores.device())?.to_dtype(scores.dtype())?.broadcast_as(scores.shape())?;
        let scores = mask.where_cond(&never, &(scores * scale)?)?;
        if self.is_fused { nn::softmax_last_dim(&scores) } else { nn::softmax(&scores, D::Minus1) }
    }

    fn gate(&self, gate: &Tensor, value: &Tensor) -> Result<Tensor> {
        gate.silu()? * value
    }
}

/// pointwise's parts, each one launch, with gradients.
pub struct Pointwise {
    rope: Rope,
    eps: f64,
    gate: Op,
}

impl Pointwise {
    /// Puts the frequencies on the device.
    ///
    /// # Errors
    /// Fails for a bad configuration, and without memory.
    pub fn new(rope: &RopeConfig, eps: f64, len: usize, device: &Device) -> Result<Pointwise> {
        Ok(Pointwise { rope: Rope::new(rope, len as u64, device)?, eps, gate: op("silu_and_mul")? })
    }
}

impl Parts for Pointwise {
    fn norm(&self, x: &Tensor, weight: &Tensor) -> Result<Tensor> {
        functions::rms_norm(x, weight, self.eps)
    }

    fn add_norm(&self, x: &Tensor, residual: &Tensor, weight: &Tensor) -> Result<(Tensor, Tensor)> {
        functions::add_rms_norm(x, residual, weight, self.eps)
    }

    fn rope(&self, q: &Tensor, k: &Tensor) -> Result<(Tensor, Tensor)> {
        self.rope.apply(q, k, 0)
    }

    fn attention(&self, scores: &Tensor, mask: &Tensor, scale: f64) -> Result<Tensor> {
        op("masked_softmax")?.set("scale", scale)?.run_one(&args![scores, mask])
    }

    fn gate(&self, gate: &Tensor, value: &Tensor) -> Result<Tensor> {
        self.gate.run_one(&args![gate, value])
    }
}
