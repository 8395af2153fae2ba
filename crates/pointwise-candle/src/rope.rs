//! Rotary embedding of candle's tensors, from a model's configuration.

use std::sync::Arc;

use candle_core::{Device, Result, Tensor};
use pointwise::rope::{
    Frequencies, MropeSections, OutOfRange, RopeAngles, RopeConfig, RopeDirection, RopeFrequencies, RopeKernel,
    RopeLayout, RopePairs, RopePositions, RopePrecision, RotatedLanes,
};
use pointwise::{DType, Operand, Shape, Stream, TensorView, TensorViewMut};

use crate::call::{Arg, Call, call_detached};
use crate::graph::call;
use crate::inplace::{self, InPlace};
use crate::memory::error;
use crate::queue::Queue;

/// The position of each token. Numbers are u32 (as candle has them), i32 or i64.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Positions {
    /// The index in the sequence plus this number: `index_pos`, `seqlen_offset` of candle's models.
    Offset(usize),
    /// The index in the sequence plus a number for each batch entry: `[batch]`.
    BatchOffsets(Tensor),
    /// A number for each token: `[sequence]`, `[batch, sequence]` or `[1, sequence]`.
    Ids(Tensor),
    /// Three numbers for each token, its place in time, height and width: `[3, batch, sequence]` or `[3, sequence]`.
    Axes(Tensor, MropeSections),
    /// Sequences one after another, with the layout [`RopeLayout::Thd`]: the start of each and the end of the last.
    Sequences(Tensor),
}

impl From<usize> for Positions {
    fn from(offset: usize) -> Self {
        Positions::Offset(offset)
    }
}

impl From<&Tensor> for Positions {
    fn from(ids: &Tensor) -> Self {
        Positions::Ids(ids.clone())
    }
}

/// Rotary embedding of a model, with its frequencies on a device.
///
/// ```
/// use candle_core::{DType, Device, Tensor};
/// use pointwise::rope::RopeConfig;
/// use pointwise_candle::Rope;
///
/// # fn main() -> candle_core::Result<()> {
/// let device = Device::Cpu;
/// let rope = Rope::new(&RopeConfig::llama3(64, 500_000.0), 8192, &device)?;
/// let q = Tensor::ones((1, 8, 3, 64), DType::F32, &device)?; // batch, heads, sequence, head_dim
/// let k = Tensor::ones((1, 2, 3, 64), DType::F32, &device)?;
/// let (q, k) = rope.apply(&q, &k, 0)?;
/// assert_eq!((q.dims(), k.dims()), (&[1, 8, 3, 64][..], &[1, 2, 3, 64][..]));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Rope {
    frequencies: Arc<RopeFrequencies>,
    pairs: RopePairs,
    layout: RopeLayout,
    rotated: RotatedLanes,
    precision: RopePrecision,
    scales: [f32; 2],
}

impl Rope {
    /// Computes the frequencies of a model for sequences of at most `seq_len` tokens. `RopeConfig::from_hf_json` reads a
    /// model's `config.json`.
    ///
    /// Pairs are halves of a head (Llama, Qwen), and the dimensions are `[batch, heads, sequence, head_dim]`, as in
    /// candle's models.
    ///
    /// # Errors
    /// Fails for a parameter of the configuration that is missing or out of range, for Metal, and with the driver.
    pub fn new(config: &RopeConfig, seq_len: u64, device: &Device) -> Result<Rope> {
        Rope::from_frequencies(&config.frequencies(seq_len).map_err(error)?, device)
    }

    /// Takes frequencies of your own.
    ///
    /// # Errors
    /// Fails for Metal, and with the driver.
    pub fn from_frequencies(frequencies: &Frequencies, device: &Device) -> Result<Rope> {
        let frequencies = RopeFrequencies::new(&Queue::of(device)?.device()?, frequencies).map_err(error)?;
        Ok(Rope {
            frequencies: Arc::new(frequencies),
            pairs: RopePairs::Half,
            layout: RopeLayout::Bhsd,
            rotated: RotatedLanes::Lead,
            precision: RopePrecision::Hf,
            scales: [1.0, 1.0],
        })
    }

    /// Sets the lanes that make a pair.
    #[must_use]
    pub fn pairs(mut self, pairs: RopePairs) -> Rope {
        self.pairs = pairs;
        self
    }

    /// Sets the order of the dimensions.
    #[must_use]
    pub fn layout(mut self, layout: RopeLayout) -> Rope {
        self.layout = layout;
        self
    }

    /// Sets the place of the rotated lanes, if not all rotate.
    #[must_use]
    pub fn rotated_lanes(mut self, rotated: RotatedLanes) -> Rope {
        self.rotated = rotated;
        self
    }

    /// Sets how angles are computed: as HF computes them, or exactly.
    #[must_use]
    pub fn precision(mut self, precision: RopePrecision) -> Rope {
        self.precision = precision;
        self
    }

    /// Multiplies q and k, for instance by the scale of the softmax.
    #[must_use]
    pub fn output_scale(mut self, q: f32, k: f32) -> Rope {
        self.scales = [q, k];
        self
    }

    /// Rotates q and k in one launch, with gradients. They may lie with any strides but 1 between lanes.
    ///
    /// # Errors
    /// Fails for element types, shapes or devices that do not fit, and for positions of another type or shape.
    pub fn apply(&self, q: &Tensor, k: &Tensor, positions: impl Into<Positions>) -> Result<(Tensor, Tensor)> {
        let mut results = call(self.rotation(&[q, k], positions.into()))?.into_iter();
        match (results.next(), results.next()) {
            (Some(q), Some(k)) => Ok((q, k)),
            _ => Err(error("rope gave no results; please report this")),
        }
    }

    /// Rotates one tensor: see [`Rope::apply`].
    ///
    /// # Errors
    /// Fails as [`Rope::apply`] does.
    pub fn apply_one(&self, x: &Tensor, positions: impl Into<Positions>) -> Result<Tensor> {
        let result = call(self.rotation(&[x], positions.into()))?.pop();
        result.ok_or_else(|| error("rope gave no result; please report this"))
    }

    /// Rotates one tensor in place. candle tracks no writes: `x` is to be no part of a graph.
    ///
    /// # Errors
    /// Fails as [`Rope::apply`] does, and for [`RopePairs::InterleavedToHalf`].
    pub fn apply_inplace(&self, x: &Tensor, positions: impl Into<Positions>) -> Result<()> {
        let rotation = self.rotation(&[x], positions.into());
        inplace::run(&rotation, x, &rotation.operands[1..])
    }

    fn rotation(&self, tensors: &[&Tensor], positions: Positions) -> Rotation {
        let mut operands: Vec<Arg> = tensors.iter().map(|&tensor| Arg::from(tensor)).collect();
        operands.extend(match &positions {
            Positions::Offset(_) => None,
            Positions::BatchOffsets(x) | Positions::Ids(x) | Positions::Axes(x, _) | Positions::Sequences(x) => {
                Some(Arg::from(x))
            }
        });
        Rotation { rope: self.clone(), operands, tensors: tensors.len(), positions, direction: RopeDirection::Forward }
    }
}

/// A call: one tensor or two, then the positions.
#[derive(Clone)]
struct Rotation {
    rope: Rope,
    operands: Vec<Arg>,
    tensors: usize,
    positions: Positions,
    direction: RopeDirection,
}

impl Rotation {
    /// Returns the kernel, with the positions among the operands.
    fn kernel<'a>(
        &'a self,
        positions: Option<&Operand<'a>>,
        stream: Option<&Stream>,
    ) -> pointwise::Result<RopeKernel<'a>> {
        let rope = &self.rope;
        let ids = || match positions {
            Some(Operand::View(view)) => Ok(*view),
            _ => Err(missing("positions")),
        };
        let positions = match self.positions {
            Positions::Offset(offset) => RopePositions::Offset(i64::try_from(offset).unwrap_or(i64::MAX)),
            Positions::BatchOffsets(_) => RopePositions::BatchOffsets(ids()?),
            Positions::Ids(_) => RopePositions::Ids(ids()?),
            Positions::Axes(_, sections) => RopePositions::Axes { ids: ids()?, sections },
            Positions::Sequences(_) => RopePositions::Sequences { cu_seqlens: ids()?, offsets: None },
        };
        let kernel = RopeKernel::new(RopeAngles::Frequencies(&rope.frequencies, rope.precision), rope.pairs)
            .layout(rope.layout)
            .rotated_lanes(rope.rotated)
            .output_scale(rope.scales[0], rope.scales[1])
            .out_of_range(OutOfRange::Error)
            .direction(self.direction)
            .positions(positions);
        Ok(crate::op::on(kernel, stream, RopeKernel::on))
    }
}

fn missing(what: &str) -> pointwise::Error {
    pointwise::ErrorKind::Unsupported { what: format!("rope without {what}"), advice: "give a tensor".to_owned() }
        .into()
}

fn view<'a>(operand: Option<&Operand<'a>>) -> pointwise::Result<TensorView<'a>> {
    match operand {
        Some(Operand::View(view)) => Ok(*view),
        _ => Err(missing("a tensor to rotate")),
    }
}

impl Call for Rotation {
    fn name(&self) -> &'static str {
        "rope"
    }

    fn operands(&self) -> &[Arg] {
        &self.operands
    }

    fn read_as(&self, k: usize) -> Option<DType> {
        InPlace::read_as(self, k)
    }

    fn results(&self, operands: &[Operand<'_>]) -> pointwise::Result<Vec<(DType, Shape)>> {
        let each = operands.iter().take(self.tensors).map(|operand| {
            let x = view(Some(operand))?;
            Ok((x.dtype(), *x.shape()))
        });
        each.collect()
    }

    fn run(
        &self,
        operands: &[Operand<'_>],
        results: &mut [TensorViewMut<'_>],
        stream: Option<&Stream>,
    ) -> pointwise::Result<()> {
        let kernel = self.kernel(operands.get(self.tensors), stream)?;
        let q = view(operands.first())?;
        match results {
            [q_out] => kernel.run_into(q, None, q_out.reborrow(), None),
            [q_out, k_out] => {
                kernel.run_into(q, Some(view(operands.get(1))?), q_out.reborrow(), Some(k_out.reborrow()))
            }
            _ => Err(missing("a result")),
        }
    }

    fn gradients(&self, _: &[Option<Tensor>], grads: &[Option<Tensor>]) -> Result<Vec<Option<Tensor>>> {
        let mut back = Rotation { direction: RopeDirection::Backward, ..self.clone() };
        for (operand, grad) in
            back.operands.iter_mut().zip(grads.iter().chain(std::iter::repeat(&None)).take(self.tensors))
        {
            // A result that the loss does not depend on has a gradient of 0, which a rotation leaves 0.
            let x = operand.tensor().ok_or_else(|| error("rope of a number; please report this"))?;
            *operand = Arg::Tensor(grad.clone().map_or_else(|| x.zeros_like(), |grad| dense(&grad))?);
        }
        let mut gradients: Vec<Option<Tensor>> = call_detached(&back)?.into_iter().map(Some).collect();
        gradients.resize(self.operands.len(), None);
        Ok(gradients)
    }
}

/// Returns a gradient whose lanes lie one after another, as a rotation reads them. The gradient of a sum is one number for all.
fn dense(grad: &Tensor) -> Result<Tensor> {
    match grad.stride().last() {
        Some(1) => Ok(grad.clone()),
        _ => grad.contiguous(),
    }
}

impl InPlace for Rotation {
    fn name(&self) -> &'static str {
        "rope"
    }

    fn read_as(&self, k: usize) -> Option<DType> {
        // Positions are u32 in candle, and below 2^31.
        (k >= self.tensors).then_some(DType::I32)
    }

    fn write(&self, x: TensorViewMut<'_>, others: &[Operand<'_>], stream: Option<&Stream>) -> pointwise::Result<()> {
        self.kernel(others.first(), stream)?.run_inplace(x, None)
    }
}
