//! A call: its operands and results checked, and run.

use pointwise_core::formula::{MAX_INPUTS, MAX_OUTPUTS, MAX_TENSORS, MAX_WORDS, ParamWords};
use pointwise_core::{DType, Kind, OpInfo, ParamInfo, Philox};

use super::{OpDef, words};
use crate::cpu::FormulaRun;
use crate::error::{Error, ErrorKind, Result};
use crate::kernel::binary::channel;
use crate::kernel::walk::{Along, Walk, broadcast};
use crate::kernel::{LaunchSettings, MapPlan, Operand, Rng, Strategy, check, launch_settings};
use crate::shape::Shape;
use crate::tensor::{Overlap, Tensor, TensorView, TensorViewMut, overlap};
use crate::{Device, Number, Stream};

/// An op with its parameters and launch settings.
///
/// Operands are broadcast together; every result has the shape that they broadcast to. An operand is a tensor or a
/// number; one at least is a tensor of the element type, which decides type and device. `'r` is how long the tensor
/// lives that a random op draws from, if it does.
///
/// The gradient of an operand that was broadcast is to be summed over the dimensions along which it was:
///
/// ```
/// use pointwise::{Device, Tensor, ops};
///
/// let cpu = Device::cpu();
/// let x = Tensor::from_slice(&cpu, &[1.0_f32, 2.0, 3.0, 4.0], [2, 2])?;
/// let scale = Tensor::from_slice(&cpu, &[10.0_f32, 100.0], [2])?;
/// let grad = Tensor::full(&cpu, 1.0_f32, [2, 2])?; // of mul(x, scale)
/// let (grad_x, grad_scale) = ops::mul_backward(&grad, &x, &scale)?;
/// assert_eq!(grad_x.to_vec::<f32>()?, [10.0, 100.0, 10.0, 100.0]);
/// // `scale` was broadcast along dimension 0: its gradient is the sum of the rows.
/// let rows = grad_scale.to_vec::<f32>()?;
/// assert_eq!([rows[0] + rows[2], rows[1] + rows[3]], [4.0, 6.0]);
/// # Ok::<(), pointwise::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Kernel<'r> {
    pub(super) def: &'static OpDef,
    /// Those that were given; more than there is room for are an error of the call.
    params: [Number; MAX_WORDS],
    given: usize,
    pub(super) settings: LaunchSettings,
    pub(super) rng: Rng<'r>,
}

/// Checked operands.
pub(super) struct Ready<'a> {
    pub(super) dtype: DType,
    /// What they broadcast to.
    pub(super) shape: Shape,
    pub(super) device: Device,
    pub(super) views: [Option<TensorView<'a>>; MAX_INPUTS],
    /// Those that came as numbers.
    pub(super) given: [Option<u64>; MAX_INPUTS],
    pub(super) words: ParamWords,
}

/// Where results go.
pub(super) struct Targets<'a> {
    pub(super) pointers: [*mut u8; MAX_OUTPUTS],
    pub(super) views: [Option<TensorView<'a>>; MAX_OUTPUTS],
}

impl Default for Targets<'_> {
    fn default() -> Self {
        Targets { pointers: [std::ptr::null_mut(); MAX_OUTPUTS], views: [None; MAX_OUTPUTS] }
    }
}

impl<'r> Kernel<'r> {
    pub(super) fn new(def: &'static OpDef, params: &[Number]) -> Kernel<'r> {
        let mut kept = [Number::Default; MAX_WORDS];
        kept.iter_mut().zip(params).for_each(|(kept, number)| *kept = *number);
        let given = words::given(params).len();
        Kernel { def, params: kept, given, settings: LaunchSettings::new(), rng: Rng::default() }
    }

    launch_settings! { settings;
        /// The strategy on CUDA devices: vectors ([`Strategy::RegisterCopy`]) or single elements
        /// ([`Strategy::Direct`]). One that cannot serve a call is replaced by one that can; the plan says so.
    }

    /// Where a random op draws from: seed and offset, as a [`Philox`] or in a tensor. The random word of an
    /// element depends on these and on its index in the result alone, so that another call at the same place draws the
    /// same. Other ops ignore it.
    #[must_use]
    pub fn rng(mut self, rng: impl Into<Rng<'r>>) -> Self {
        self.rng = rng.into();
        self
    }

    /// The op.
    pub fn def(&self) -> &'static OpDef {
        self.def
    }

    /// The results in new contiguous tensors, in the order of [`OpInfo::results`].
    ///
    /// # Errors
    /// Another number of operands than the op has; operands of different element types or devices or that cannot be
    /// broadcast together, an element type, number or parameter that the op does not take, no tensor at all; of a random
    /// op a tensor to draw from that is not as [`Rng`] says; a stream of another device, bad launch settings, a missing kernel, out of memory, the driver's.
    pub fn run(&self, operands: &[Operand<'_>]) -> Result<Vec<Tensor>> {
        let ready = self.ready(operands)?;
        let info = &self.def.info;
        let mut results = Vec::with_capacity(info.results.len());
        for k in 0..info.results.len() {
            results.push(Tensor::empty(&ready.device, info.result_type(k, ready.dtype), ready.shape)?);
        }
        let mut targets = Targets::default();
        for (target, result) in targets.pointers.iter_mut().zip(&mut results) {
            *target = result.as_mut_ptr()?;
        }
        for (view, result) in targets.views.iter_mut().zip(&results) {
            *view = Some(result.view());
        }
        // SAFETY: new tensors of the results' types, shape and device.
        unsafe { self.write(&ready, &targets) }?;
        Ok(results)
    }

    /// The results into tensors that are there, of any strides. Allocates nothing and waits for nothing, so that a CUDA
    /// graph can capture it. A result may be an operand's very memory.
    ///
    /// # Errors
    /// As [`Kernel::run`], and: another number of results than the op has; another shape, device or element type of a
    /// result; one that shares memory with another, or with an operand but is not the same view; of a random op one that
    /// is not contiguous.
    pub fn run_into(&self, operands: &[Operand<'_>], results: &mut [TensorViewMut<'_>]) -> Result<()> {
        let ready = self.ready(operands)?;
        self.check_count(results.len())?;
        let mut targets = Targets::default();
        for (target, result) in targets.pointers.iter_mut().zip(&mut *results) {
            *target = result.as_mut_ptr()?;
        }
        for (view, result) in targets.views.iter_mut().zip(results.iter()) {
            *view = Some(result.as_view());
        }
        self.check_results(&ready, &targets)?;
        // SAFETY: the results are exclusively borrowed, and checked.
        unsafe { self.write(&ready, &targets) }
    }

    /// The op, written back to its first operand, whose shape the others must broadcast to.
    ///
    /// # Errors
    /// As [`Kernel::run_into`]; an op of several results, or whose result is of another type than its first operand.
    pub fn run_inplace(&self, mut first: TensorViewMut<'_>, others: &[Operand<'_>]) -> Result<()> {
        let info = &self.def.info;
        self.check_count(1)?;
        if info.bool_operands & 1 != info.bool_results & 1 {
            return Err(ErrorKind::Unsupported {
                what: format!("{} in place", info.name),
                advice: "its result is of another type than its first operand: write it to another tensor".to_owned(),
            }
            .into());
        }
        let pointer = first.as_mut_ptr()?;
        let view = first.as_view();
        let mut operands = Vec::with_capacity(1 + others.len());
        operands.push(Operand::View(view));
        operands.extend_from_slice(others);
        let ready = self.ready(&operands)?;
        let mut targets = Targets::default();
        (targets.pointers[0], targets.views[0]) = (pointer, Some(view));
        self.check_results(&ready, &targets)?;
        // SAFETY: the result is exclusively borrowed, and checked.
        unsafe { self.write(&ready, &targets) }
    }

    /// What [`Kernel::run_into`] would launch on a CUDA device for these tensors.
    ///
    /// # Errors
    /// Those of [`Kernel::run_into`].
    pub fn plan(&self, operands: &[Operand<'_>], results: &[TensorView<'_>]) -> Result<MapPlan> {
        let ready = self.ready(operands)?;
        self.check_count(results.len())?;
        let mut targets = Targets::default();
        for (view, result) in targets.views.iter_mut().zip(results) {
            *view = Some(*result);
        }
        self.check_results(&ready, &targets)?;
        self.plan_for(&ready, &targets)
    }

    /// What [`Kernel::write`] would launch on a CUDA device.
    pub(super) fn plan_for(&self, ready: &Ready<'_>, targets: &Targets<'_>) -> Result<MapPlan> {
        self.settings.check(&ready.device)?;
        self.check_rng(ready, targets)?;
        self.sized(Plan { ready, targets })
    }

    /// The parameters that were given.
    fn params(&self) -> Result<&[Number]> {
        let info = &self.def.info;
        self.params.get(..self.given).ok_or_else(|| words::too_many(info, self.given))
    }

    fn check_count(&self, results: usize) -> Result<()> {
        let info = &self.def.info;
        if results != info.results.len() {
            return Err(check::wrong_count(info, "results", info.results, results));
        }
        Ok(())
    }

    /// Checks operands: those of the element type have one, bools are bools, all are on one device, and their shapes can
    /// be broadcast together, a weight's as that of channels.
    pub(super) fn ready<'a>(&self, operands: &[Operand<'a>]) -> Result<Ready<'a>> {
        let info = &self.def.info;
        if operands.len() != info.operands.len() {
            return Err(check::wrong_count(info, "operands", info.operands, operands.len()));
        }
        let leader = operands.iter().enumerate().find_map(|(k, operand)| match operand {
            Operand::View(view) if !info.is_bool(k) => Some((info.operands[k], view)),
            _ => None,
        });
        let Some((leader, first)) = leader else { return Err(no_tensor(info)) };
        let (dtype, device) = (first.dtype(), *first.device());
        check::dtype(info, dtype)?;
        let mut ready = Ready {
            dtype,
            shape: *first.shape(),
            device,
            views: [None; MAX_INPUTS],
            given: [None; MAX_INPUTS],
            words: words::params(info, self.params()?, dtype)?,
        };
        for (k, operand) in operands.iter().enumerate() {
            let what = || format!("operand {} of {}", info.operands[k], info.name);
            let expected = info.operand_type(k, dtype);
            match operand {
                Operand::View(view) => {
                    if view.dtype() != expected {
                        let op = if info.is_bool(k) { what() } else { format!("{} ({leader} is {dtype})", what()) };
                        return Err(ErrorKind::DType { op, got: view.dtype(), allowed: vec![expected] }.into());
                    }
                    if view.device() != &device {
                        let got = *view.device();
                        return Err(ErrorKind::DeviceMismatch { what: what(), expected: device, got }.into());
                    }
                    let view = match operands.get(1) {
                        Some(Operand::View(x)) if info.kind == Kind::ChannelGradients && k == 2 => weight(x, view)?,
                        _ => *view,
                    };
                    ready.shape = ready.shape.broadcast_with(view.shape())?;
                    ready.views[k] = Some(view);
                }
                Operand::Number(Number::Default) => {
                    return Err(ErrorKind::Parameter {
                        name: info.operands[k],
                        value: Number::Default.to_string(),
                        why: "an operand has no default".to_owned(),
                    }
                    .into());
                }
                Operand::Number(number) => {
                    let scalar = ParamInfo::number(info.operands[k], 0.0);
                    ready.given[k] = Some(number.word(&scalar, expected)?);
                }
            }
        }
        Ok(ready)
    }

    fn check_results(&self, ready: &Ready<'_>, targets: &Targets<'_>) -> Result<()> {
        let info = &self.def.info;
        for (k, (name, view)) in info.results.iter().zip(targets.views.iter().flatten()).enumerate() {
            let what = || format!("the output {name} of {}", info.name);
            let types = (ready.dtype, info.result_type(k, ready.dtype));
            check::output(what, view, types, &ready.shape, &ready.device)?;
            if info.is_random {
                // An element's place is its index.
                view.layout().require_contiguous("the output of a random op")?;
            }
            for (operand, source) in info.operands.iter().zip(&ready.views) {
                if source.is_some_and(|source| overlap(&source, view) == Overlap::Partial) {
                    return Err(overlapping(info, operand, name));
                }
            }
            for (other, earlier) in info.results.iter().zip(targets.views[..k].iter().flatten()) {
                if overlap(earlier, view) != Overlap::None {
                    return Err(overlapping(info, other, name));
                }
            }
        }
        Ok(())
    }

    fn check_rng(&self, ready: &Ready<'_>, targets: &Targets<'_>) -> Result<()> {
        let info = &self.def.info;
        if !info.is_random {
            return Ok(());
        }
        self.rng.check(info.name, &ready.device, targets.views.iter().flatten())
    }

    /// Runs the op.
    ///
    /// # Safety
    /// The targets are of the op's number of results, of their types, shape and device, disjoint from each other, and
    /// each operand equal to or disjoint from each; the pointers are their first elements, and may be written through.
    pub(super) unsafe fn write(&self, ready: &Ready<'_>, targets: &Targets<'_>) -> Result<()> {
        self.settings.check(&ready.device)?;
        self.check_rng(ready, targets)?;
        if ready.shape.contains(&0) {
            return Ok(());
        }
        self.sized(Write { ready, targets })
    }

    /// Does `work` with a walk over as many tensors as the op has, or a few more: loops over tensors are short for most.
    fn sized<W: Work>(&self, work: W) -> Result<W::Done> {
        match self.def.info.operands.len() + self.def.info.results.len() {
            ..=4 => work.run::<4>(self),
            5..=8 => work.run::<8>(self),
            _ => work.run::<MAX_TENSORS>(self),
        }
    }

    /// Bytes of an element of each tensor: results, then operands.
    pub(super) fn sizes<const T: usize>(&self, dtype: DType) -> [usize; T] {
        let info = &self.def.info;
        let results = info.results.len();
        std::array::from_fn(|k| match k.checked_sub(results) {
            None => info.result_type(k, dtype).size(),
            Some(operand) => info.operand_type(operand, dtype).size(),
        })
    }
}

/// What is done with checked tensors once it is known how many there are.
pub(super) trait Work {
    type Done;
    fn run<const T: usize>(self, kernel: &Kernel<'_>) -> Result<Self::Done>;
}

struct Plan<'a> {
    ready: &'a Ready<'a>,
    targets: &'a Targets<'a>,
}

impl Work for Plan<'_> {
    type Done = MapPlan;
    fn run<const T: usize>(self, kernel: &Kernel<'_>) -> Result<MapPlan> {
        kernel.plan_of::<T>(self.ready, &walk(kernel, self.ready, self.targets), self.targets)
    }
}

struct Write<'a> {
    ready: &'a Ready<'a>,
    targets: &'a Targets<'a>,
}

impl Work for Write<'_> {
    type Done = ();
    fn run<const T: usize>(self, kernel: &Kernel<'_>) -> Result<()> {
        let Write { ready, targets } = self;
        let walk = walk::<T>(kernel, ready, targets);
        let info = &kernel.def.info;
        let (operands, results) = (info.operands.len(), info.results.len());
        let Some(context) = ready.device.context() else {
            let pointers = ready.views.map(|view| view.map_or(std::ptr::null(), |view| view.as_ptr()));
            let run = FormulaRun {
                op: kernel.def.cpu(ready.dtype)?,
                walk: &walk,
                operands: &pointers[..operands],
                given: &ready.given[..operands],
                results: &targets.pointers[..results],
                sizes: kernel.sizes(ready.dtype),
                words: &ready.words,
                rng: if info.is_random { kernel.rng.on_cpu()? } else { Philox::default() },
            };
            // SAFETY: the walk is of the views' shapes and strides; types and overlap are checked by those who made
            // the targets.
            unsafe { run.run() };
            return Ok(());
        };
        let mut own = None;
        let rng = kernel.rng.view().filter(|_| info.is_random);
        let (operands, results) = (ready.views.iter().flatten().chain(rng), targets.views.iter().flatten());
        let stream = kernel.settings.stream(&ready.device, operands, results, &mut own)?;
        // SAFETY: walk and addresses are those of the views, and the tensor to draw from is checked; as above.
        unsafe { kernel.launch(context, stream, ready, &walk, targets) }
    }
}

/// The loop of a call: over the results, then the operands.
fn walk<const T: usize>(kernel: &Kernel<'_>, ready: &Ready<'_>, targets: &Targets<'_>) -> Walk<T> {
    let results = kernel.def.info.results.len();
    let of = |view: &Option<TensorView<'_>>| {
        view.map_or(Along::default(), |view| broadcast(view.shape(), view.strides(), &ready.shape))
    };
    let along: [Along; T] = std::array::from_fn(|k| match k.checked_sub(results) {
        None => of(&targets.views[k]),
        Some(operand) => ready.views.get(operand).map_or(Along::default(), of),
    });
    Walk::new(&ready.shape, &along)
}

/// The weight of `x` as it is broadcast: one for all or one a channel; of x's rank, as it lies.
fn weight<'a>(x: &TensorView<'_>, weight: &TensorView<'a>) -> Result<TensorView<'a>> {
    let (x, rank) = (x.shape(), weight.shape().rank());
    if x.rank() >= 2 && rank == x.rank() { Ok(*weight) } else { channel(x, weight) }
}

#[cold]
fn no_tensor(info: &OpInfo) -> Error {
    ErrorKind::Unsupported {
        what: format!("{} of numbers alone", info.name),
        advice: "give at least one operand that is no bool as a tensor, which decides type and device".to_owned(),
    }
    .into()
}

#[cold]
pub(super) fn overlapping(info: &OpInfo, a: &str, b: &str) -> Error {
    ErrorKind::Overlap { what: format!("{a} and the output {b} of {}", info.name) }.into()
}
