//! Models, and tensors as what they hold, whatever their layout.

use pointwise::rope::{RopeLayout, RopePairs, RotatedLanes};
use pointwise::{DType, Device, Tensor, TensorView, bf16, f16};
use pointwise_testkit::Random;

/// Heads and lanes of a model.
#[derive(Clone, Copy)]
pub(crate) struct Model {
    pub(crate) name: &'static str,
    pub(crate) heads: [usize; 2],
    pub(crate) head_dim: usize,
    pub(crate) rotary_dim: usize,
    pub(crate) lanes: RotatedLanes,
    pub(crate) pairs: RopePairs,
}

pub(crate) const fn half(name: &'static str, q: usize, k: usize, head_dim: usize, rotary_dim: usize) -> Model {
    Model { name, heads: [q, k], head_dim, rotary_dim, lanes: RotatedLanes::Lead, pairs: RopePairs::Half }
}

pub(crate) const fn interleaved(name: &'static str, q: usize, k: usize, head_dim: usize, rotary_dim: usize) -> Model {
    Model { pairs: RopePairs::Interleaved, ..half(name, q, k, head_dim, rotary_dim) }
}

/// The models' dimensions, and odd ones.
pub(crate) const MODELS: &[Model] = &[
    half("llama_8b", 32, 8, 128, 128),
    half("qwen25_7b", 28, 4, 128, 128),
    half("gpt_oss", 64, 8, 64, 64),
    half("falcon_7b", 71, 1, 64, 64),
    half("phi_35", 32, 32, 96, 96),
    half("phi_2", 32, 32, 80, 32),
    half("gpt_neox_20b", 8, 8, 96, 24),
    half("stablelm_3b", 8, 8, 80, 20),
    half("gemma_3", 8, 4, 256, 256),
    half("gemma_4", 8, 4, 512, 512),
    half("mimo", 5, 3, 192, 64),
    half("vit_72", 3, 1, 72, 72),
    half("q_alone", 14, 0, 128, 128),
    half("two_lanes", 3, 2, 2, 2),
    half("odd_head", 3, 2, 7, 4),
    interleaved("gpt_j", 16, 16, 256, 64),
    interleaved("glm_4", 32, 2, 128, 64),
    interleaved("six_of_ten", 3, 1, 10, 6),
    Model { lanes: RotatedLanes::Trail, ..interleaved("deepseek_v3", 128, 1, 192, 64) },
    Model { lanes: RotatedLanes::Trail, ..half("trail_half", 4, 2, 128, 64) },
    // The vectors that pass through are odd in number.
    interleaved("odd_rest", 5, 2, 88, 64),
    half("odd_rest_half", 5, 2, 52, 32),
    Model { pairs: RopePairs::InterleavedToHalf, ..half("deepseek_to_half", 16, 1, 64, 64) },
    Model { pairs: RopePairs::InterleavedToHalf, lanes: RotatedLanes::Trail, ..half("to_half_trail", 3, 1, 48, 20) },
];

/// The values of a tensor by batch, token, head and lane, whatever its layout.
#[derive(Clone, PartialEq)]
pub(crate) struct Logical {
    pub(crate) dims: [usize; 4],
    pub(crate) values: Vec<f64>,
}

impl Logical {
    pub(crate) fn at(&self, [b, s, h, d]: [usize; 4]) -> usize {
        ((b * self.dims[1] + s) * self.dims[2] + h) * self.dims[3] + d
    }

    /// Values of a type between -4 and 4.
    pub(crate) fn random(dims: [usize; 4], dtype: DType, seed: u64) -> Logical {
        let mut random = Random::new(seed);
        let count = dims.iter().product();
        let values = (0..count).map(|_| rounded(dtype, (random.next_u64() >> 40) as f64 / (1 << 21) as f64 - 4.0));
        Logical { dims, values: values.collect() }
    }

    /// The tensor of a layout.
    pub(crate) fn tensor(&self, device: &Device, dtype: DType, layout: RopeLayout) -> Tensor {
        let [b, s, h, d] = self.dims;
        let shape: Vec<usize> = match layout {
            RopeLayout::Bshd => vec![b, s, h, d],
            RopeLayout::Bhsd => vec![b, h, s, d],
            RopeLayout::Sbhd => vec![s, b, h, d],
            RopeLayout::Thd => vec![b * s, h, d],
            RopeLayout::Sd => vec![b * s, d],
        };
        let mut bytes = vec![0; self.values.len() * dtype.size()];
        for (from, to) in self.order(layout).into_iter().enumerate() {
            encode(dtype, self.values[to], &mut bytes[from * dtype.size()..][..dtype.size()]);
        }
        Tensor::from_bytes(device, dtype, &bytes, &shape[..]).unwrap()
    }

    /// The logical index of each element of a tensor of a layout.
    pub(crate) fn order(&self, layout: RopeLayout) -> Vec<usize> {
        let [b, s, h, d] = self.dims;
        let mut order = Vec::with_capacity(self.values.len());
        let mut push = |b, s, h| order.extend((0..d).map(|d| self.at([b, s, h, d])));
        match layout {
            RopeLayout::Bhsd => each([b, h, s], |b, h, s| push(b, s, h)),
            RopeLayout::Sbhd => each([s, b, h], |s, b, h| push(b, s, h)),
            _ => each([b, s, h], push),
        }
        order
    }

    /// Reads the values of a tensor of a layout.
    pub(crate) fn read(dims: [usize; 4], layout: RopeLayout, view: &TensorView<'_>) -> Logical {
        let bytes = view.to_bytes().unwrap();
        let mut logical = Logical { dims, values: vec![0.0; dims.iter().product()] };
        let size = view.dtype().size();
        for (from, to) in logical.order(layout).into_iter().enumerate() {
            logical.values[to] = decode(view.dtype(), &bytes[from * size..][..size]);
        }
        logical
    }
}

pub(crate) fn each([a, b, c]: [usize; 3], mut visit: impl FnMut(usize, usize, usize)) {
    for i in 0..a {
        for j in 0..b {
            for k in 0..c {
                visit(i, j, k);
            }
        }
    }
}

pub(crate) fn encode(dtype: DType, value: f64, to: &mut [u8]) {
    match dtype {
        DType::F32 => to.copy_from_slice(&(value as f32).to_le_bytes()),
        DType::F16 => to.copy_from_slice(&f16::from_f64(value).to_le_bytes()),
        _ => to.copy_from_slice(&bf16::from_f64(value).to_le_bytes()),
    }
}

pub(crate) fn decode(dtype: DType, bytes: &[u8]) -> f64 {
    match dtype {
        DType::F32 => f64::from(f32::from_le_bytes(bytes.try_into().unwrap())),
        DType::F16 => f16::from_le_bytes(bytes.try_into().unwrap()).to_f64(),
        _ => bf16::from_le_bytes(bytes.try_into().unwrap()).to_f64(),
    }
}

pub(crate) fn rounded(dtype: DType, value: f64) -> f64 {
    let mut bytes = [0; 4];
    encode(dtype, value, &mut bytes[..dtype.size()]);
    decode(dtype, &bytes[..dtype.size()])
}

/// Half a unit in the last place, relative.
pub(crate) fn rounding(dtype: DType) -> f64 {
    match dtype {
        DType::F32 => 2.0_f64.powi(-24),
        DType::F16 => 2.0_f64.powi(-11),
        _ => 2.0_f64.powi(-8),
    }
}
