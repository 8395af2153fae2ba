//! The kernel object: checks a call, plans it, launches it or hands it to the CPU.

use std::ffi::c_void;
use std::ptr::null;

use pointwise_core::DType;
use pointwise_core::rope::{
    BATCH_OFFSETS, CHUNK, Count, IDS, INTERLEAVED_IN, INTERLEAVED_OUT, SEQUENCES, Side, TOKENS_INNER, Walk,
};

use super::check::{self, Shape4};
use super::options::TYPES;
use super::{
    OutOfRange, Pointers, RopeAngles, RopeDirection, RopeError, RopeLayout, RopePairs, RopePositions, RopePrecision,
    RotatedLanes, Source,
};
use crate::cuda::{self, Context};
use crate::error::{ErrorKind, Result};
use crate::kernel::Entry;
use crate::tensor::{Tensor, TensorView, TensorViewMut};
use crate::{Device, Strategy, Stream};

/// Rotary embedding of q and k with its settings.
///
/// ```
/// use pointwise::rope::{RopeAngles, RopeConfig, RopeFrequencies, RopeKernel, RopePairs, RopePrecision};
/// use pointwise::{Device, Tensor};
///
/// let device = Device::cpu();
/// let config = RopeConfig::llama3(4, 500_000.0);
/// let frequencies = RopeFrequencies::new(&device, &config.frequencies(8192)?)?;
/// let angles = RopeAngles::Frequencies(&frequencies, RopePrecision::Hf);
/// let q = Tensor::from_slice(&device, &[1.0_f32; 2 * 3 * 4], [1, 2, 3, 4])?; // batch, sequence, heads, head_dim
/// let (rotated, _) = RopeKernel::new(angles, RopePairs::Half).run(&q, None)?;
/// assert_eq!(rotated.to_vec::<f32>()?[..4], [1.0; 4]); // position 0 is not turned
/// # Ok::<(), pointwise::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct RopeKernel<'a> {
    angles: RopeAngles<'a>,
    pairs: RopePairs,
    layout: RopeLayout,
    rotary_dim: Option<usize>,
    rotated: RotatedLanes,
    positions: RopePositions<'a>,
    scales: [f32; 2],
    attention_factor: Option<f64>,
    direction: RopeDirection,
    out_of_range: OutOfRange,
    strategy: Strategy,
    threads: u32,
    heads_per_thread: Option<u32>,
    stream: Option<Stream>,
}

/// Threads of a block where nothing else is asked for.
const THREADS: u32 = 128;

/// A checked call.
struct Call {
    dtype: DType,
    device: Device,
    source: Source,
    strategy: Strategy,
    pointers: Pointers,
    walk: Walk,
}

impl<'a> RopeKernel<'a> {
    /// A rotation by these angles; layout BSHD, all defaults as the setters have them.
    pub fn new(angles: RopeAngles<'a>, pairs: RopePairs) -> Self {
        RopeKernel {
            angles,
            pairs,
            layout: RopeLayout::Bshd,
            rotary_dim: None,
            rotated: RotatedLanes::Lead,
            positions: RopePositions::Offset(0),
            scales: [1.0, 1.0],
            attention_factor: None,
            direction: RopeDirection::Forward,
            out_of_range: OutOfRange::Error,
            strategy: Strategy::Auto,
            threads: THREADS,
            heads_per_thread: None,
            stream: None,
        }
    }

    /// The order of the tensors' dimensions.
    #[must_use]
    pub fn layout(mut self, layout: RopeLayout) -> Self {
        self.layout = layout;
        self
    }

    /// Lanes that rotate. Default: two for each frequency; of a table, its width if that is the whole head, else twice
    /// its width.
    #[must_use]
    pub fn rotary_dim(mut self, rotary_dim: usize) -> Self {
        self.rotary_dim = Some(rotary_dim);
        self
    }

    /// Which lanes rotate, if not all do.
    #[must_use]
    pub fn rotated_lanes(mut self, rotated: RotatedLanes) -> Self {
        self.rotated = rotated;
        self
    }

    /// The tokens' positions; by default the index in the sequence.
    #[must_use]
    pub fn positions(mut self, positions: RopePositions<'a>) -> Self {
        self.positions = positions;
        self
    }

    /// Multiplies every lane of q and of k, also those that do not rotate; 1 by default. The softmax scale and 1/ln 2
    /// can be folded in here. The backward pass takes the forward pass's.
    #[must_use]
    pub fn output_scale(mut self, q: f32, k: f32) -> Self {
        self.scales = [q, k];
        self
    }

    /// Multiplies cosine and sine, and so the rotated lanes alone. Default: that of the frequencies; 1 for tables,
    /// which hold it already.
    #[must_use]
    pub fn attention_factor(mut self, factor: f64) -> Self {
        self.attention_factor = Some(factor);
        self
    }

    /// Forward or backward; forward by default.
    #[must_use]
    pub fn direction(mut self, direction: RopeDirection) -> Self {
        self.direction = direction;
        self
    }

    /// What to do about positions that a table does not have.
    #[must_use]
    pub fn out_of_range(mut self, policy: OutOfRange) -> Self {
        self.out_of_range = policy;
        self
    }

    /// The width of accesses on CUDA devices: `register_copy` 16 bytes, `explicit_parallel` 8, `direct` an element. One
    /// that dimensions or addresses do not allow is replaced by the next.
    #[must_use]
    pub fn strategy(mut self, strategy: Strategy) -> Self {
        self.strategy = strategy;
        self
    }

    /// Threads of a block on CUDA devices: a multiple of 32 from 32 to 1,024.
    #[must_use]
    pub fn threads(mut self, threads: u32) -> Self {
        self.threads = threads;
        self
    }

    /// How many heads share a thread's cosines and sines on CUDA devices. Default: one where there is little work, else
    /// four.
    #[must_use]
    pub fn heads_per_thread(mut self, heads: u32) -> Self {
        self.heads_per_thread = Some(heads.max(1));
        self
    }

    /// The stream to launch on; without one it is the device's own.
    #[must_use]
    pub fn on(mut self, stream: &Stream) -> Self {
        self.stream = Some(stream.clone());
        self
    }

    /// Rotates q and, if there is one, k into new contiguous tensors of their shapes.
    ///
    /// q and k: f32, f16 or bf16, both alike, dimensions as [`RopeKernel::layout`] has them, equal but for the heads.
    ///
    /// # Errors
    /// Element types, devices, shapes or strides that do not fit; an odd rotary dimension or one beyond the head;
    /// tables too short for the positions (see [`OutOfRange`]); bad launch settings, a missing kernel, out of memory,
    /// the driver's.
    pub fn run<'b>(&self, q: impl Into<TensorView<'b>>, k: Option<TensorView<'_>>) -> Result<(Tensor, Option<Tensor>)> {
        let q = q.into();
        check::dtype(&q)?;
        let mut q_out = Tensor::empty(q.device(), q.dtype(), q.shape())?;
        let mut k_out = k.as_ref().map(|k| Tensor::empty(k.device(), k.dtype(), k.shape())).transpose()?;
        self.run_into(q, k, &mut q_out, k_out.as_mut().map(Tensor::view_mut))?;
        Ok((q_out, k_out))
    }

    /// [`RopeKernel::run`] into tensors that are there. Allocates nothing and waits for nothing, so that a CUDA graph
    /// can capture it.
    ///
    /// # Errors
    /// As there, and: outputs of another shape, type or device, or that share memory with another tensor of the call; k
    /// without its output, or the reverse.
    pub fn run_into<'b, 'c>(
        &self,
        q: impl Into<TensorView<'b>>,
        k: Option<TensorView<'_>>,
        q_out: impl Into<TensorViewMut<'c>>,
        k_out: Option<TensorViewMut<'_>>,
    ) -> Result<()> {
        let (q, mut q_out, mut k_out) = (q.into(), q_out.into(), k_out);
        if k.is_some() != k_out.is_some() {
            return Err(ErrorKind::Unsupported {
                what: "k without an output for it, or the reverse".to_owned(),
                advice: "give both or neither".to_owned(),
            }
            .into());
        }
        let targets = (q_out.as_mut_ptr(), k_out.as_mut().map(TensorViewMut::as_mut_ptr));
        let (q_to, k_to) = (q_out.as_view(), k_out.as_ref().map(TensorViewMut::as_view));
        check::outputs(&q, k.as_ref(), &q_to, k_to.as_ref())?;
        // SAFETY: inputs and outputs are of one shape, type and device and share no memory, and are borrowed until the
        // call is queued.
        unsafe { self.execute((&q, k.as_ref()), (&q_to, k_to.as_ref()), targets) }
    }

    /// [`RopeKernel::run`] in place.
    ///
    /// # Errors
    /// As there, and: [`RopePairs::InterleavedToHalf`], q and k that share memory.
    pub fn run_inplace<'b>(&self, q: impl Into<TensorViewMut<'b>>, k: Option<TensorViewMut<'_>>) -> Result<()> {
        let (mut q, mut k) = (q.into(), k);
        if self.pairs == RopePairs::InterleavedToHalf {
            return Err(ErrorKind::Unsupported {
                what: "interleaved_to_half in place".to_owned(),
                advice: "a pair's lanes move: write to another tensor".to_owned(),
            }
            .into());
        }
        let targets = (q.as_mut_ptr(), k.as_mut().map(TensorViewMut::as_mut_ptr));
        let (q, k) = (q.as_view(), k.as_ref().map(TensorViewMut::as_view));
        if let Some(k) = &k {
            check::apart(&q, k, "q and k")?;
        }
        // SAFETY: each tensor is its own output, exclusively borrowed, with one pairing; they share no memory.
        unsafe { self.execute((&q, k.as_ref()), (&q, k.as_ref()), targets) }
    }

    /// # Safety
    /// Outputs have the shape, type and device of their inputs; they are the very same, with the same pairing on both
    /// sides, or share no memory with any tensor of the call; `targets` are theirs and may be written.
    unsafe fn execute(
        &self,
        inputs: (&TensorView<'_>, Option<&TensorView<'_>>),
        outputs: (&TensorView<'_>, Option<&TensorView<'_>>),
        targets: (*mut u8, Option<*mut u8>),
    ) -> Result<()> {
        let call = self.call(inputs, outputs, targets)?;
        if call.walk.tokens == 0 || call.walk.q.heads + call.walk.k.heads == 0 {
            return Ok(());
        }
        match call.device.context() {
            None => {
                // SAFETY: the call is checked; the caller's contract.
                unsafe { crate::cpu::rope::rope(call.dtype, call.source, &call.pointers, &call.walk) };
                Ok(())
            }
            Some(context) => {
                let own;
                let stream = match &self.stream {
                    Some(stream) => {
                        check::device("the stream", &call.device, stream.device())?;
                        let views = [Some(inputs.0), inputs.1, Some(outputs.0), outputs.1];
                        for view in views.into_iter().flatten() {
                            view.use_on(stream)?;
                        }
                        self.each_operand(|_, view| view.use_on(stream))?;
                        stream
                    }
                    None => {
                        own = call.device.stream();
                        &own
                    }
                };
                // SAFETY: as above.
                unsafe { self.launch(context, &call, stream) }
            }
        }
    }

    /// # Safety
    /// The call is checked, the stream of the context's device.
    unsafe fn launch(&self, context: &'static Context, call: &Call, stream: &Stream) -> Result<()> {
        let entry = entry(call.source, call.dtype, call.strategy).ok_or_else(|| ErrorKind::NoKernel {
            symbol: format!("rope of {}", call.dtype),
            why: "no code was made for it; please report this".to_owned(),
        })?;
        let function = entry.function(context)?;
        let walk = &call.walk;
        let groups = u64::from(walk.q.groups) + u64::from(walk.k.groups);
        let items = u64::from(walk.tokens) * u64::from(walk.lanes.size) * groups;
        // Below 2^31 with the last block's idle threads: `call` saw to it.
        let blocks = items.div_ceil(u64::from(self.threads)) as u32;
        let p = &call.pointers;
        let mut addresses = [p.qx, p.qy, p.kx, p.ky, p.ids, p.starts, p.first, p.second].map(|p| p.addr() as u64);
        let mut walk = *walk;
        let [a, b, c, d, e, f, g, h] = &mut addresses;
        let mut params: [*mut c_void; 9] = [
            (&raw mut *a).cast(),
            (&raw mut *b).cast(),
            (&raw mut *c).cast(),
            (&raw mut *d).cast(),
            (&raw mut *e).cast(),
            (&raw mut *f).cast(),
            (&raw mut *g).cast(),
            (&raw mut *h).cast(),
            (&raw mut walk).cast(),
        ];
        // SAFETY: the parameters are those of every RoPE entry; the caller vouches for the memory.
        unsafe { cuda::launch(context, function, blocks, self.threads, stream, &mut params) }
    }

    /// The tensors of positions and angles, by name.
    fn each_operand(&self, mut visit: impl FnMut(&'static str, &TensorView<'_>) -> Result<()>) -> Result<()> {
        match &self.positions {
            RopePositions::Offset(_) => {}
            RopePositions::BatchOffsets(offsets) => visit("offsets", offsets)?,
            RopePositions::Ids(ids) => visit("position_ids", ids)?,
            RopePositions::Sequences { cu_seqlens, offsets } => {
                visit("cu_seqlens", cu_seqlens)?;
                offsets.as_ref().map_or(Ok(()), |offsets| visit("offsets", offsets))?;
            }
        }
        match &self.angles {
            RopeAngles::Frequencies(frequencies, _) => {
                visit("inv_freq", &frequencies.inv_freq.view())?;
                visit("inv_freq", &frequencies.turns.view())
            }
            RopeAngles::Raw(angles) => visit("freqs", angles),
            RopeAngles::Tables { cos, sin } => {
                visit("cos", cos)?;
                visit("sin", sin)
            }
        }
    }

    /// Checks everything and makes the walk.
    fn call(
        &self,
        (q, k): (&TensorView<'_>, Option<&TensorView<'_>>),
        (q_out, k_out): (&TensorView<'_>, Option<&TensorView<'_>>),
        targets: (*mut u8, Option<*mut u8>),
    ) -> Result<Call> {
        let (dtype, device) = (q.dtype(), *q.device());
        check::dtype(q)?;
        check::launch(self.threads, self.scales)?;
        self.each_operand(|name, view| check::device(name, &device, view.device()))?;
        let shape = check::shape("q", q, self.layout)?;
        let mut k_heads = 0;
        if let Some(k) = k {
            k_heads = check::second(q, k, &shape, self.layout)?;
        }
        for out in [Some(q_out), k_out].into_iter().flatten() {
            check::shape("an output", out, self.layout)?;
        }
        let mut walk = Walk {
            q: self.side(shape.heads, q, q_out, self.scales[0]),
            k: k.zip(k_out).map_or_else(Side::default, |(k, k_out)| self.side(k_heads, k, k_out, self.scales[1])),
            tokens: shape.tokens()?,
            seq: Count::new(shape.seq as u32),
            factor: 1.0,
            sin_sign: if self.direction == RopeDirection::Backward { -1.0 } else { 1.0 },
            rows: i64::MAX,
            ..Walk::default()
        };
        let mut pointers = Pointers {
            qx: q.as_ptr(),
            qy: targets.0,
            kx: k.map_or(null(), TensorView::as_ptr),
            ky: targets.1.unwrap_or(std::ptr::null_mut()),
            ids: null(),
            starts: null(),
            first: null(),
            second: null(),
        };
        let (source, rotary_dim, per_token) = self.angles(dtype, &shape, &mut walk, &mut pointers)?;
        self.lanes(&shape, rotary_dim, &mut walk)?;
        self.place(&shape, per_token, &mut walk, &mut pointers)?;
        let in_place = pointers.qx.addr() == pointers.qy.addr();
        let strategy = self.plan(&device, dtype, source, &pointers, &mut walk, in_place)?;
        Ok(Call { dtype, device, source, strategy, pointers, walk })
    }

    fn side(&self, heads: usize, input: &TensorView<'_>, output: &TensorView<'_>, scale: f32) -> Side {
        let strides = |view: &TensorView<'_>| self.layout.dims().map(|dim| dim.map_or(0, |dim| view.strides()[dim]));
        Side { heads: heads as u32, groups: 1, input: strides(input), output: strides(output), scale }
    }

    /// The source of angles, the rotary dimension, and whether tables have a row for each token.
    fn angles(
        &self,
        dtype: DType,
        shape: &Shape4,
        walk: &mut Walk,
        pointers: &mut Pointers,
    ) -> Result<(Source, usize, bool)> {
        let mut factor = 1.0;
        let (source, rotary_dim, per_token) = match &self.angles {
            RopeAngles::Frequencies(frequencies, precision) => {
                factor = frequencies.attention_factor;
                let rotary_dim = frequencies.rotary_dim();
                if let Some(asked) = self.rotary_dim.filter(|asked| *asked != rotary_dim) {
                    let detail = format!("{asked} lanes, but there are frequencies for {rotary_dim}");
                    return Err(RopeError::contradiction("rotary_dim", "inv_freq", detail).into());
                }
                let (source, list) = match precision {
                    RopePrecision::Hf => (Source::Hf, &frequencies.inv_freq),
                    RopePrecision::Exact => (Source::Exact, &frequencies.turns),
                };
                pointers.first = list.as_ptr();
                (source, rotary_dim, false)
            }
            RopeAngles::Raw(angles) => {
                let table = check::table("freqs", angles, &[DType::F32], shape)?;
                pointers.first = angles.as_ptr();
                (walk.first, walk.rows) = (table.strides, table.rows);
                (Source::Angles, table.rotary_dim(self.rotary_dim, shape)?, table.per_token)
            }
            RopeAngles::Tables { cos, sin } => {
                let (table, other) = (
                    check::table("cos", cos, &[DType::F32, dtype], shape)?,
                    check::table("sin", sin, &[cos.dtype()], shape)?,
                );
                if cos.shape() != sin.shape() {
                    return Err(ErrorKind::ShapeMismatch {
                        what: "sin".to_owned(),
                        expected: *cos.shape(),
                        got: *sin.shape(),
                    }
                    .into());
                }
                (pointers.first, pointers.second) = (cos.as_ptr(), sin.as_ptr());
                (walk.first, walk.second, walk.rows) = (table.strides, other.strides, table.rows);
                let source = if cos.dtype() == DType::F32 { Source::Tables } else { Source::OwnTables };
                (source, table.rotary_dim(self.rotary_dim, shape)?, table.per_token)
            }
        };
        let factor = self.attention_factor.unwrap_or(factor);
        if !factor.is_finite() {
            return Err(RopeError::invalid("attention_factor", factor, "give a finite number").into());
        }
        walk.factor = factor as f32;
        Ok((source, rotary_dim, per_token))
    }

    /// Which lanes rotate, and how they pair.
    fn lanes(&self, shape: &Shape4, rotary_dim: usize, walk: &mut Walk) -> Result<()> {
        if rotary_dim == 0 || !rotary_dim.is_multiple_of(2) {
            let expected = "lanes rotate in pairs; make it even and above 0";
            return Err(RopeError::invalid("rotary_dim", rotary_dim, expected).into());
        }
        if rotary_dim > shape.head_dim {
            let detail = format!("{rotary_dim} lanes of a head of {} cannot rotate", shape.head_dim);
            return Err(RopeError::contradiction("rotary_dim", "head_dim", detail).into());
        }
        let rest = (shape.head_dim - rotary_dim) as u32;
        walk.half = (rotary_dim / 2) as u32;
        (walk.rotated_at, walk.rest_at) = match self.rotated {
            RotatedLanes::Lead => (0, rotary_dim as u32),
            RotatedLanes::Trail => (rest, 0),
        };
        walk.lanes = Count::new(walk.half + rest);
        walk.pair_lanes = walk.half;
        walk.flags |= match (self.pairs, self.direction) {
            (RopePairs::Half, _) => 0,
            (RopePairs::Interleaved, _) => INTERLEAVED_IN | INTERLEAVED_OUT,
            (RopePairs::InterleavedToHalf, RopeDirection::Forward) => INTERLEAVED_IN,
            (RopePairs::InterleavedToHalf, RopeDirection::Backward) => INTERLEAVED_OUT,
        };
        Ok(())
    }

    /// Where positions come from, and whether the tables have them.
    fn place(&self, shape: &Shape4, per_token: bool, walk: &mut Walk, pointers: &mut Pointers) -> Result<()> {
        let strict = self.out_of_range == OutOfRange::Error;
        if per_token && !matches!(self.positions, RopePositions::Offset(0)) {
            return Err(ErrorKind::Unsupported {
                what: "positions with a table that has a row for each token".to_owned(),
                advice: "leave the positions out, or give a table of [rows, width]".to_owned(),
            }
            .into());
        }
        match &self.positions {
            RopePositions::Offset(offset) => {
                walk.offset = *offset;
                let last = i64::try_from(shape.seq).ok().and_then(|seq| offset.checked_add(seq));
                let last = last.ok_or_else(|| ErrorKind::Parameter {
                    name: "offset",
                    value: offset.to_string(),
                    why: "positions would overflow".to_owned(),
                })?;
                if strict && walk.rows != i64::MAX && (*offset < 0 || last > walk.rows) && walk.tokens > 0 {
                    return Err(check::beyond(*offset, last - 1, walk.rows).into());
                }
            }
            RopePositions::BatchOffsets(offsets) => {
                check::positions("offsets", offsets, &[&[shape.batch]])?;
                (pointers.ids, walk.ids) = (offsets.as_ptr(), [offsets.strides()[0], 0]);
                walk.flags |= BATCH_OFFSETS | check::wide(offsets);
                if strict {
                    check::host_positions(offsets, walk.rows, shape.seq)?;
                }
            }
            RopePositions::Ids(ids) => {
                let (batch, seq) = (shape.batch, shape.seq);
                check::positions("position_ids", ids, &[&[seq], &[batch, seq], &[1, seq]])?;
                pointers.ids = ids.as_ptr();
                walk.ids = match ids.strides() {
                    [token] => [0, *token],
                    [_, token] if ids.shape()[0] == 1 => [0, *token],
                    strides => [strides[0], strides[1]],
                };
                walk.flags |= IDS | check::wide(ids);
                if strict {
                    check::host_positions(ids, walk.rows, 1)?;
                }
            }
            RopePositions::Sequences { cu_seqlens, offsets } => {
                if self.layout != RopeLayout::Thd {
                    return Err(ErrorKind::Unsupported {
                        what: format!("cu_seqlens with the layout {}", self.layout.describe()),
                        advice: "it goes with thd, [tokens, heads, head_dim]".to_owned(),
                    }
                    .into());
                }
                walk.sequences = check::starts(cu_seqlens)?;
                pointers.starts = cu_seqlens.as_ptr();
                walk.flags |= SEQUENCES | check::wide(cu_seqlens);
                if let Some(offsets) = offsets {
                    check::positions("offsets", offsets, &[&[walk.sequences as usize]])?;
                    if offsets.dtype() != cu_seqlens.dtype() {
                        return Err(ErrorKind::DType {
                            op: "the offsets beside cu_seqlens".to_owned(),
                            got: offsets.dtype(),
                            allowed: vec![cu_seqlens.dtype()],
                        }
                        .into());
                    }
                    (pointers.ids, walk.ids) = (offsets.as_ptr(), [offsets.strides()[0], 0]);
                    walk.flags |= BATCH_OFFSETS;
                }
                if strict {
                    check::host_sequences(cu_seqlens, offsets.as_ref(), walk.rows)?;
                }
            }
        }
        Ok(())
    }

    /// The width of accesses, and what a thread does.
    fn plan(
        &self,
        device: &Device,
        dtype: DType,
        source: Source,
        pointers: &Pointers,
        walk: &mut Walk,
        in_place: bool,
    ) -> Result<Strategy> {
        let rest = walk.lanes.size - walk.pair_lanes;
        // In place the lanes that do not rotate are there already.
        let untouched = in_place && walk.q.scale == 1.0 && (walk.k.heads == 0 || walk.k.scale == 1.0);
        let rest = if untouched { 0 } else { rest };
        let Some(info) = device.info() else {
            walk.lanes = Count::new(walk.half + rest);
            return Ok(Strategy::Direct);
        };
        let widest = 16 / dtype.size() as u32;
        let serves = |vector: u32| vectors_fit(vector, rest, dtype, source, pointers, walk);
        let (strategy, vector) = match self.strategy {
            Strategy::Direct => (Strategy::Direct, 1),
            Strategy::ExplicitParallel if serves(widest / 2) => (Strategy::ExplicitParallel, widest / 2),
            Strategy::ExplicitParallel => (Strategy::Direct, 1),
            _ if serves(widest) => (Strategy::RegisterCopy, widest),
            _ if serves(widest / 2) => (Strategy::ExplicitParallel, widest / 2),
            _ => (Strategy::Direct, 1),
        };
        walk.pair_lanes = walk.half / vector;
        walk.lanes = Count::new(walk.pair_lanes + rest / vector);
        // Heads that share a thread: four, unless that leaves the device without work.
        let items = u64::from(walk.tokens) * u64::from(walk.lanes.size);
        let threads = |share: u32| {
            let groups = walk.q.heads.div_ceil(share) + walk.k.heads.div_ceil(share);
            items.saturating_mul(u64::from(groups))
        };
        let enough = u64::from(info.multiprocessors) * 1024;
        let mut share = self.heads_per_thread.unwrap_or_else(|| {
            if threads(CHUNK) >= enough {
                CHUNK
            } else if threads(2) >= enough {
                2
            } else {
                1
            }
        });
        let most = (1_u64 << 31) - u64::from(self.threads);
        while threads(share) > most && share < walk.q.heads.max(walk.k.heads) {
            share *= 2;
        }
        if threads(share) > most {
            return Err(ErrorKind::Unsupported {
                what: "a tensor of this many tokens".to_owned(),
                advice: "rotate parts of it".to_owned(),
            }
            .into());
        }
        walk.q.groups = walk.q.heads.div_ceil(share);
        walk.k.groups = walk.k.heads.div_ceil(share);
        let [_, token, head] = walk.q.input;
        if token < head {
            walk.flags |= TOKENS_INNER;
        }
        let inner = if walk.flags & TOKENS_INNER != 0 { walk.tokens } else { walk.q.groups + walk.k.groups };
        walk.inner = Count::new(inner);
        Ok(strategy)
    }
}

/// Whether every access of vectors of `vector` elements is aligned and whole.
fn vectors_fit(vector: u32, rest: u32, dtype: DType, source: Source, pointers: &Pointers, walk: &Walk) -> bool {
    let lanes = [walk.half, walk.rotated_at, rest, if rest > 0 { walk.rest_at } else { 0 }];
    let strides = [walk.q.input, walk.q.output, walk.k.input, walk.k.output];
    let bytes = vector as usize * dtype.size();
    let tensors = [pointers.qx, pointers.qy.cast_const(), pointers.kx, pointers.ky.cast_const()];
    // A table's vector is as many entries, in accesses of at most 16 bytes.
    let entry = match source {
        Source::Hf | Source::Exact => None,
        Source::Angles | Source::Tables => Some(4),
        Source::OwnTables => Some(dtype.size()),
    };
    let tables = entry.is_none_or(|entry| {
        let access = (vector as usize * entry).min(16);
        let strides = [walk.first, walk.second];
        [pointers.first, pointers.second].iter().all(|table| table.addr().is_multiple_of(access))
            && strides.iter().flatten().all(|stride| (stride * entry as i64) % access as i64 == 0)
    });
    tables
        && lanes.iter().all(|lane| lane.is_multiple_of(vector))
        && strides.iter().flatten().all(|stride| stride % i64::from(vector) == 0)
        && tensors.iter().all(|tensor| tensor.addr().is_multiple_of(bytes))
}

/// The kernel of a source, an element type and a strategy.
fn entry(source: Source, dtype: DType, strategy: Strategy) -> Option<&'static Entry> {
    macro_rules! source {
        (hf) => {
            Source::Hf
        };
        (exact) => {
            Source::Exact
        };
        (angles) => {
            Source::Angles
        };
        (tables) => {
            Source::Tables
        };
        (own_tables) => {
            Source::OwnTables
        };
    }
    macro_rules! strategy {
        (direct) => {
            Strategy::Direct
        };
        (explicit_parallel) => {
            Strategy::ExplicitParallel
        };
        (register_copy) => {
            Strategy::RegisterCopy
        };
    }
    macro_rules! look {
        ($source:ident $type:ident $strategy:ident, ($s:ident $d:ident $v:ident)) => {
            let of = <pointwise_core::element::ty::$type as pointwise_core::Element>::DTYPE;
            if $s == source!($source) && $d == of && $v == strategy!($strategy) {
                static ENTRY: Entry =
                    Entry::new(pointwise_core::symbol!(rope, $source, $type, $strategy), crate::family::embedded());
                return Some(&ENTRY);
            }
        };
    }
    debug_assert!(TYPES.contains(&dtype));
    pointwise_core::rope_entries! { (look) (source dtype strategy) }
    None
}
