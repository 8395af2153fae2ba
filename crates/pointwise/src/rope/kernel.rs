//! The kernel object: its settings, its calls, and the run on a CUDA device or the CPU.

use std::ffi::c_void;
use std::ptr::null_mut;

use super::call::Call;
use super::check;
use super::plan::{Settings, Template, entry, has_work};
use super::{OutOfRange, RopeAngles, RopeDirection, RopeLayout, RopePairs, RopePositions, RotatedLanes};
use crate::cuda::{self, Context, Grid, Held};
use crate::error::{ErrorKind, Result};
use crate::tensor::{Tensor, TensorView, TensorViewMut};
use crate::{Strategy, Stream};

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
    pub(super) angles: RopeAngles<'a>,
    pub(super) pairs: RopePairs,
    pub(super) layout: RopeLayout,
    pub(super) rotary_dim: Option<usize>,
    pub(super) rotated: RotatedLanes,
    pub(super) positions: RopePositions<'a>,
    pub(super) scales: [f32; 2],
    pub(super) attention_factor: Option<f64>,
    pub(super) direction: RopeDirection,
    pub(super) out_of_range: OutOfRange,
    pub(super) launch: Settings,
    pub(super) stream: Option<Stream>,
}

impl<'a> RopeKernel<'a> {
    /// Makes a rotation by these angles, with the layout BSHD and the defaults that the setters name.
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
            launch: Settings::default(),
            stream: None,
        }
    }

    /// The order of the tensors' dimensions.
    #[must_use]
    pub fn layout(mut self, layout: RopeLayout) -> Self {
        self.layout = layout;
        self
    }

    /// Lanes that rotate. Default: two for each frequency; the whole head for a table as wide as the head, or half as
    /// wide.
    ///
    /// A table of any other width needs it: the width may be all rotated lanes, as in HF's tables, or half of them. A
    /// table of all rotated lanes needs it, too, if they are half of the head.
    #[must_use]
    pub fn rotary_dim(mut self, rotary_dim: usize) -> Self {
        self.rotary_dim = Some(rotary_dim);
        self
    }

    /// The place of the rotated lanes, if not all rotate.
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
    /// can be folded in here. The backward pass takes the same scales.
    #[must_use]
    pub fn output_scale(mut self, q: f32, k: f32) -> Self {
        self.scales = [q, k];
        self
    }

    /// Multiplies cosine and sine, and so the rotated lanes alone. Default: the frequencies' own factor; 1 for tables,
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

    /// The handling of positions that a table does not have.
    #[must_use]
    pub fn out_of_range(mut self, policy: OutOfRange) -> Self {
        self.out_of_range = policy;
        self
    }

    /// The width of accesses on CUDA devices: `register_copy` 16 bytes, `explicit_parallel` 8, `direct` an element. If
    /// dimensions or addresses do not allow a width, the next one takes its place. There is no `table`.
    #[must_use]
    pub fn strategy(mut self, strategy: Strategy) -> Self {
        self.launch.strategy = strategy;
        self
    }

    /// If true, the threads of a block share cosines and sines on CUDA devices. If false, each finds its own where it
    /// can, which saves waiting for the others. Sharing serves every call. By default calls share if the other way does
    /// not serve them (sequences, axes, pairs that move, misaligned tensors or tables, offsets of more than 32 bits,
    /// strides below 0) or is slower (whole heads of 16 bits by angles or tables of f32).
    #[must_use]
    pub fn shared_angles(mut self, shared: bool) -> Self {
        self.launch.shared_angles = Some(shared);
        self
    }

    /// The most threads of a block on CUDA devices: a multiple of 32 from 32 to 1,024. Default: 160, or 128 if angles
    /// are not shared.
    #[must_use]
    pub fn threads(mut self, threads: u32) -> Self {
        self.launch.threads = Some(threads);
        self
    }

    /// The heads a thread rotates on CUDA devices, 1 or more. Default: one, two or four by the amount of work and the
    /// source of angles, up to eight if angles are shared.
    #[must_use]
    pub fn heads_per_thread(mut self, heads: u32) -> Self {
        self.launch.heads_per_thread = Some(heads);
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
    /// q and k have one type, f32, f16 or bf16, and the dimensions of [`RopeKernel::layout`], equal but for the heads.
    ///
    /// # Errors
    /// Element types, devices, shapes or strides that do not fit; an odd rotary dimension or one beyond the head;
    /// tables too short for the positions (see [`OutOfRange`]); bad launch settings; a missing kernel; out of memory;
    /// errors of the driver.
    pub fn run<'b>(&self, q: impl Into<TensorView<'b>>, k: Option<TensorView<'_>>) -> Result<(Tensor, Option<Tensor>)> {
        let q = q.into();
        check::dtype(&q)?;
        let mut q_out = Tensor::empty(q.device(), q.dtype(), q.shape())?;
        let mut k_out = k.as_ref().map(|k| Tensor::empty(k.device(), k.dtype(), k.shape())).transpose()?;
        self.run_into(q, k, &mut q_out, k_out.as_mut().map(TensorViewMut::from))?;
        Ok((q_out, k_out))
    }

    /// [`RopeKernel::run`] into existing tensors. Allocates nothing and waits for nothing, so that a CUDA graph can
    /// capture it.
    ///
    /// # Errors
    /// The errors of [`RopeKernel::run`], and: outputs of another shape, type or device, or that share memory with
    /// another tensor of the call; k without its output, or the reverse.
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
        let targets = (q_out.as_mut_ptr()?, k_out.as_mut().map(TensorViewMut::as_mut_ptr).transpose()?);
        let (q_to, k_to) = (q_out.as_view(), k_out.as_ref().map(TensorViewMut::as_view));
        check::outputs(&q, k.as_ref(), &q_to, k_to.as_ref())?;
        // SAFETY: inputs and outputs are of one shape, type and device and share no memory, and are borrowed until the
        // call is queued.
        unsafe { self.execute((&q, k.as_ref()), (&q_to, k_to.as_ref()), targets) }
    }

    /// [`RopeKernel::run`] in place.
    ///
    /// # Errors
    /// The errors of [`RopeKernel::run`], and: [`RopePairs::InterleavedToHalf`]; q and k that share memory.
    pub fn run_inplace<'b>(&self, q: impl Into<TensorViewMut<'b>>, k: Option<TensorViewMut<'_>>) -> Result<()> {
        let (mut q, mut k) = (q.into(), k);
        if self.pairs == RopePairs::InterleavedToHalf {
            return Err(ErrorKind::Unsupported {
                what: "interleaved_to_half in place".to_owned(),
                advice: "a pair's lanes move: write to another tensor".to_owned(),
            }
            .into());
        }
        let targets = (q.as_mut_ptr()?, k.as_mut().map(TensorViewMut::as_mut_ptr).transpose()?);
        let (q, k) = (q.as_view(), k.as_ref().map(TensorViewMut::as_view));
        if let Some(k) = &k {
            check::apart(&q, k, "q and k")?;
        }
        // SAFETY: each tensor is its own output, exclusively borrowed, with one pairing; they share no memory.
        unsafe { self.execute((&q, k.as_ref()), (&q, k.as_ref()), targets) }
    }

    /// # Safety
    /// Outputs have the shape, type and device of their inputs; they are the very same, with the same pairing on both
    /// sides, or share no memory with q and k; `targets` are theirs and may be written.
    unsafe fn execute(
        &self,
        inputs: (&TensorView<'_>, Option<&TensorView<'_>>),
        outputs: (&TensorView<'_>, Option<&TensorView<'_>>),
        targets: (*mut u8, Option<*mut u8>),
    ) -> Result<()> {
        let call = self.call(inputs, outputs, targets)?;
        if !has_work(&call.walk) {
            return Ok(());
        }
        match call.device.context() {
            None => {
                // SAFETY: the call is checked; the caller's contract.
                unsafe { super::cpu::rope(call.dtype, call.source, &call.pointers, &call.walk) };
                Ok(())
            }
            Some(context) => {
                let hold = || {
                    let held = context.hold(self.stream.as_ref().and_then(Stream::shared))?;
                    let views = [Some(inputs.0), inputs.1, Some(outputs.0), outputs.1];
                    views.into_iter().flatten().try_for_each(|view| view.use_on(&held))?;
                    self.each_operand(|_, view| view.use_on(&held))?;
                    call.device.name_results([Some(outputs.0), outputs.1].into_iter().flatten());
                    Ok(held)
                };
                // SAFETY: as above.
                unsafe { self.launch(context, &call, hold) }
            }
        }
    }

    /// # Safety
    /// The call is checked; `hold` takes its stream.
    unsafe fn launch<'s>(
        &'s self,
        context: &'static Context,
        call: &Call,
        hold: impl FnOnce() -> Result<Held<'s>>,
    ) -> Result<()> {
        let kernel = call.plan.and_then(|plan| Some((plan, entry(&plan, call.source, call.dtype)?)));
        let Some((plan, entry)) = kernel else {
            return Err(ErrorKind::NoKernel {
                symbol: format!("rope of {}", call.dtype),
                why: "no code was made for it; please report this".to_owned(),
            }
            .into());
        };
        let function = entry.function(context)?;
        let p = &call.pointers;
        let (mut walk, mut template) = (call.walk, plan.template);
        let mut addresses = [p.qx, p.qy.cast_const(), p.kx, p.ky.cast_const(), p.ids, p.starts, p.first, p.second]
            .map(|pointer| pointer.addr() as u64);
        if let Template::FullHead(full_head) = &template {
            for tensor in &mut addresses[..4] {
                *tensor += full_head.lanes_before as u64;
            }
            for (table, before) in addresses[6..].iter_mut().zip(full_head.rows_before) {
                *table += before as u64;
            }
        }
        let [qx, qy, kx, ky, ids, starts, first, second] = addresses.each_mut().map(|a| (&raw mut *a).cast::<c_void>());
        // The parameters in the order of the templates' entries. Kernels whose threads find their own angles take no
        // sequences.
        let (mut params, count) = match &mut template {
            Template::PerBlock => ([qx, qy, kx, ky, ids, starts, first, second, (&raw mut walk).cast()], 9),
            Template::PerThread(per_thread) => {
                ([qx, qy, kx, ky, ids, first, second, (&raw mut *per_thread).cast(), null_mut()], 8)
            }
            Template::FullHead(full_head) => {
                ([qx, qy, first, second, (&raw mut full_head.walk).cast(), ids, kx, ky, null_mut()], 8)
            }
        };
        let grid = Grid { blocks: plan.blocks, threads: plan.threads, shared: 0 };
        // SAFETY: the parameters are those of the plan's entry; the caller vouches for the memory.
        unsafe { cuda::launch_grid(function, grid, &hold()?, &mut params[..count]) }
    }
}
