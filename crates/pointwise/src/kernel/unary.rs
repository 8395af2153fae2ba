//! Unary ops: their definitions, and the kernel object.

use std::ffi::c_void;

use pointwise_core::launch::STREAM_UNARY;
use pointwise_core::op::{MAX_PARAMS, Words};
use pointwise_core::{DType, OpInfo, ParamWords, Philox};

use super::choice::{Arguments, Choice, Queue, Tensors};
use super::params::{self, Params};
use super::plan::{Call, MAX_STEPS, plan};
use super::promote;
use super::walk::{Limit, Walk, broadcast};
use super::{Entry, LaunchSettings, Made, Plan, Strategy, Variant, check, launch_settings};
use crate::cpu::{FormulaFn, FormulaRun};
use crate::cuda::{self, Context};
use crate::error::{ErrorKind, Result};
use crate::tensor::{Overlap, Tensor, TensorView, TensorViewMut, overlap};
use crate::tuner::{Choices, Lies, Settings};
use crate::{Device, Number, Stream, tuner::Tuner};

/// A unary op as the host knows it. Made by [`host_unary!`](crate::host_unary) from a row of an op table.
#[derive(Debug)]
pub struct UnaryDef {
    /// The row.
    pub info: OpInfo,
    /// The loop over elements of a type on the CPU; `None` for a type the op does not take.
    pub cpu: fn(DType) -> Option<FormulaFn>,
    /// The kernel of a variant for elements of a type; `None` where there is none.
    pub entry: fn(DType, Variant) -> Option<&'static Entry>,
    /// The formula in f64 (a bool result as 0 or 1); `None` for ops on bits alone.
    pub oracle: Option<fn(f64, Words) -> f64>,
    /// That all of this is of one row.
    #[doc(hidden)]
    pub made: Made,
}

/// Threads of a block where nothing else is asked for.
pub(crate) const DEFAULT_THREADS: u32 = 128;

impl UnaryDef {
    /// The op with its default parameters.
    pub fn kernel(&'static self) -> UnaryKernel {
        self.kernel_with(&[])
    }

    /// The op with parameters, in the order of [`OpInfo::params`].
    pub fn kernel_with(&'static self, params: &[Number]) -> UnaryKernel {
        let params = Params::new(params);
        UnaryKernel { def: self, params, settings: LaunchSettings::new(), vectors: None, tuned: None }
    }

    /// The formula in f64, for elements of a tensor of type `dtype`: the exact result to f64's accuracy, not yet
    /// rounded to the result's type, a bool as 0 or 1. `None` for ops on bits alone.
    ///
    /// # Errors
    /// As [`UnaryKernel::run`] for element type and parameters.
    pub fn oracle_for(&self, dtype: DType, params: &[Number]) -> Result<Option<impl Fn(f64) -> f64 + Copy + use<>>> {
        check::dtype(&self.info, dtype)?;
        let [a, b, c, d, ..] = params::oracle_words(&self.info, &Params::new(params), dtype)?;
        let words = [a, b, c, d];
        Ok(self.oracle.map(|oracle| move |x| oracle(x, words)))
    }

    /// [`UnaryDef::oracle_for`] of one element.
    ///
    /// # Errors
    /// As there.
    pub fn oracle(&self, dtype: DType, params: &[Number], x: f64) -> Result<Option<f64>> {
        Ok(self.oracle_for(dtype, params)?.map(|oracle| oracle(x)))
    }
}

/// A unary op with its parameters and launch settings.
///
/// ```
/// use pointwise::{Device, Strategy, Tensor, kernels};
///
/// let x = Tensor::from_slice(&Device::cpu(), &[-1.0_f32, 0.0, 2.0], [3])?;
/// let y = kernels::leaky_relu(0.1).strategy(Strategy::RegisterCopy).threads(128).run(&x)?;
/// assert_eq!(y.to_vec::<f32>()?, [-0.1, 0.0, 2.0]);
/// # Ok::<(), pointwise::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct UnaryKernel {
    def: &'static UnaryDef,
    params: Params,
    settings: LaunchSettings,
    /// `None` where it is left open; checked where it is used.
    vectors: Option<u32>,
    tuned: Option<Choices>,
}

impl UnaryKernel {
    /// The op.
    pub fn def(&self) -> &'static UnaryDef {
        self.def
    }

    launch_settings! { settings;
        /// The strategy on CUDA devices. One that cannot serve a call is replaced by one that can;
        /// [`UnaryKernel::plan`] says so. `table` has its own number of threads.
    }

    /// 16-byte vectors of a thread of [`Strategy::RegisterCopy`] on CUDA devices, from 1 to 64. Without it there are as
    /// many as was measured to be best for the op and the size: one; for large tensors and long formulas two or four.
    #[must_use]
    pub fn vectors_per_thread(mut self, vectors: u32) -> Self {
        self.vectors = Some(vectors);
        self
    }

    /// With the settings that a tuner has found for calls like the one made, as it knows them now. A strategy or
    /// vectors per thread that were set hold all the same.
    #[must_use]
    pub fn tuned(mut self, tuner: &Tuner) -> Self {
        self.tuned = Some(tuner.choices(&self.def.info));
        self
    }

    /// The kernel with the default strategy, and no choices of a tuner.
    pub(crate) fn untuned(&self) -> UnaryKernel {
        let settings = self.settings.with(Strategy::Auto, DEFAULT_THREADS);
        UnaryKernel { settings, vectors: None, tuned: None, ..self.clone() }
    }

    /// The kernel with settings that a tuner tries.
    pub(crate) fn with(&self, settings: Settings) -> UnaryKernel {
        let Settings { strategy, threads, vectors } = settings;
        UnaryKernel { settings: self.settings.with(strategy, threads), vectors, ..self.clone() }
    }

    /// As [`UnaryKernel::on`], where there is one.
    pub(super) fn on_maybe(mut self, stream: Option<&Stream>) -> Self {
        self.settings.stream = stream.cloned();
        self
    }

    /// The stream that was set.
    pub(crate) fn stream(&self) -> Option<&Stream> {
        self.settings.stream.as_ref()
    }

    /// Whether 16-byte vectors fit both tensors.
    pub(crate) fn takes_vectors(&self, x: &TensorView<'_>, y: usize) -> Result<bool> {
        let settings = Settings { strategy: Strategy::RegisterCopy, ..self.asked() };
        let vectors = self.plan_as(x, y, settings)?;
        Ok(vectors.strategy == Strategy::RegisterCopy)
    }

    /// The type in which the op computes for elements of type `dtype`.
    #[inline]
    fn computed(&self, dtype: DType) -> Result<DType> {
        promote::unary_type(&self.def.info, dtype, self.params.of(&self.def.info)?)
    }

    /// What the kernel is given for `x`: a tensor of the type in which the op computes, of no memory where `x` would be
    /// converted first.
    pub(crate) fn seen<'a>(&self, x: TensorView<'a>) -> Result<TensorView<'a>> {
        let dtype = self.computed(x.dtype())?;
        if dtype == x.dtype() { Ok(x) } else { promote::stand_in(&x, dtype, 0) }
    }

    /// The op on every element of `x`, in a new tensor of its shape. Integers and bool are converted to f32 first where
    /// the op is a float function ([`OpInfo::int_to_float`]), which takes another pass and a tensor meanwhile.
    ///
    /// # Errors
    /// An element type or a parameter that the op does not take, a stream of another device, bad launch settings, a
    /// missing kernel, out of memory, the driver's.
    pub fn run<'a>(&self, x: impl Into<TensorView<'a>>) -> Result<Tensor> {
        let x = x.into();
        let dtype = self.computed(x.dtype())?;
        if dtype != x.dtype() {
            let converted = promote::convert(&x, dtype, self.stream())?;
            return self.run(&converted);
        }
        let mut y = Tensor::empty(x.device(), self.def.info.result.of(x.dtype()), x.shape())?;
        self.run_into(x, &mut y)?;
        Ok(y)
    }

    /// The op on every element of `x`, written to `y`. Allocates nothing and waits for nothing, so that a CUDA graph
    /// can capture it, unless `x` is converted first.
    ///
    /// # Errors
    /// As [`UnaryKernel::run`], and: another shape, device or element type of `y`, views that share memory but are not
    /// the same.
    pub fn run_into<'a, 'b>(&self, x: impl Into<TensorView<'a>>, y: impl Into<TensorViewMut<'b>>) -> Result<()> {
        let (x, mut y) = (x.into(), y.into());
        let dtype = self.checked(&x, &y.as_view())?;
        if dtype != x.dtype() {
            let converted = promote::convert(&x, dtype, self.stream())?;
            return self.run_into(&converted, y);
        }
        let target = y.as_mut_ptr()?;
        // SAFETY: types, sizes, device and overlap are checked; both views are borrowed until the call is queued, and
        // noted as used on its stream.
        unsafe { self.execute(&x, target, &y.as_view()) }
    }

    /// The type in which a call computes, whose tensors fit each other.
    fn checked(&self, x: &TensorView<'_>, y: &TensorView<'_>) -> Result<DType> {
        let info = &self.def.info;
        let dtype = self.computed(x.dtype())?;
        let what = || format!("the output of {}", info.name);
        check::output(what, y, (x.dtype(), info.result.of(dtype)), x.shape(), x.device())?;
        if overlap(x, y) == Overlap::Partial {
            return Err(ErrorKind::Overlap { what: format!("input and output of {}", info.name) }.into());
        }
        Ok(dtype)
    }

    /// The op on every element of `x`, written back to `x`. Allocates nothing and waits for nothing.
    ///
    /// # Errors
    /// As [`UnaryKernel::run`], and a result of another element type than `x`.
    pub fn run_inplace<'a>(&self, x: impl Into<TensorViewMut<'a>>) -> Result<()> {
        let mut x = x.into();
        let info = &self.def.info;
        let dtype = self.computed(x.dtype())?;
        if dtype != x.dtype() {
            // What is converted is of a lower category, to which nothing is cast back.
            return Err(ErrorKind::Cast { op: info.name.to_owned(), result: dtype, got: x.dtype() }.into());
        }
        if info.result.of(x.dtype()) != x.dtype() {
            return Err(ErrorKind::Unsupported {
                what: format!("{} of {} in place", info.name, x.dtype()),
                advice: format!("its result is {}: write it to another tensor", info.result.of(x.dtype())),
            }
            .into());
        }
        let target = x.as_mut_ptr()?;
        let view = x.as_view();
        // SAFETY: one exclusively borrowed tensor is operand and result, of one type and size.
        unsafe { self.execute(&view, target, &view) }
    }

    /// What [`UnaryKernel::run_into`] would launch on a CUDA device for these tensors; on the CPU there is nothing to
    /// plan, and the answer is that of a device.
    ///
    /// # Errors
    /// As [`UnaryKernel::run_into`], but for those of a launch.
    pub fn plan<'a, 'b>(&self, x: impl Into<TensorView<'a>>, y: impl Into<TensorView<'b>>) -> Result<Plan> {
        let (x, y) = (x.into(), y.into());
        let dtype = self.checked(&x, &y)?;
        params::words(&self.def.info, &self.params, dtype)?;
        self.check_settings(x.device())?;
        let x = self.seen(x)?;
        match strides(&x, &y) {
            None => self.plan_for(&x, y.address()),
            Some(walk) => self.plan_strided(&x, &walk),
        }
    }

    #[inline]
    fn plan_for(&self, x: &TensorView<'_>, y: usize) -> Result<Plan> {
        if let (Strategy::Auto, Some(tuned)) = (self.settings.strategy, &self.tuned) {
            let aligned = self.takes_vectors(x, y)?;
            let lies = Lies::aligned(aligned);
            if let Some(found) = tuned.settings(x.device(), x.dtype(), lies, x.numel() as u64) {
                let settings = Settings { vectors: self.vectors.or(found.vectors), ..found };
                return Ok(Plan { replaced: None, ..self.plan_as(x, y, settings)? });
            }
        }
        self.plan_as(x, y, self.asked())
    }

    /// Checks the settings of a launch on `device`.
    fn check_settings(&self, device: &Device) -> Result<()> {
        self.settings.check(device)?;
        check::vectors(self.vectors, MAX_STEPS)
    }

    /// The settings that were asked for.
    #[inline]
    fn asked(&self) -> Settings {
        Settings { strategy: self.settings.strategy, threads: self.settings.threads, vectors: self.vectors }
    }

    #[inline]
    fn plan_as(&self, x: &TensorView<'_>, y: usize, settings: Settings) -> Result<Plan> {
        let Settings { strategy, threads, vectors } = settings;
        check::threads(threads)?;
        check::vectors(vectors, MAX_STEPS)?;
        plan(&Call {
            x: x.address(),
            y,
            dtype: x.dtype(),
            result: self.def.info.result,
            n: x.numel() as u64,
            strategy,
            threads,
            vectors,
            properties: self.def.info.properties,
            room: super::cache_room(x.device()),
        })
    }

    /// The plan for tensors that do not lie one like the other.
    fn plan_strided(&self, x: &TensorView<'_>, walk: &Walk<2>) -> Result<Plan> {
        let (wished, threads) = (self.settings.strategy, self.settings.threads);
        let mut blocks = None;
        walk.parts(Limit::STEPS, [0; 2], &mut |part, _| -> Result<()> {
            blocks.get_or_insert_with(|| part.group_words(2).1.div_ceil(u64::from(threads)) as u32);
            Ok(())
        })?;
        Ok(Plan {
            strategy: Strategy::Direct,
            replaced: matches!(wished, Strategy::RegisterCopy | Strategy::Table)
                .then_some("elements that do not lie one after another are read one by one"),
            variant: Variant::Strided,
            threads,
            blocks: blocks.unwrap_or(0),
            head: 0,
            vectors_per_thread: 1,
            streams: false,
            n: x.numel() as u64,
        })
    }

    /// # Safety
    /// `target` is the first element of `result`, which has the shape of `x` and the result's type, on the same device,
    /// may be written, and is equal to or disjoint from `x`.
    unsafe fn execute(&self, x: &TensorView<'_>, target: *mut u8, result: &TensorView<'_>) -> Result<()> {
        let words = params::words(&self.def.info, &self.params, x.dtype())?;
        self.check_settings(x.device())?;
        if x.numel() == 0 {
            return Ok(());
        }
        let sizes = [self.def.info.result.of(x.dtype()).size(), x.dtype().size()];
        match x.device().context() {
            None => {
                let op = (self.def.cpu)(x.dtype()).ok_or_else(|| check::no_kernel(&self.def.info, x.dtype()))?;
                let run = FormulaRun {
                    op,
                    walk: &walk(x, result),
                    operands: &[x.as_ptr()],
                    given: &[None],
                    results: &[target],
                    sizes,
                    words: &words,
                    rng: Philox::default(),
                };
                // SAFETY: the walk is of the views' shapes and strides; the caller's contract.
                unsafe { run.run() };
                Ok(())
            }
            Some(context) => {
                let mut own = None;
                let stream = self.settings.stream(x.device(), [x], [result], &mut own)?;
                let strides = strides(x, result);
                let plan = match &strides {
                    None => self.plan_for(x, target.addr())?,
                    Some(walk) => self.plan_strided(x, walk)?,
                };
                let entry = (self.def.entry)(x.dtype(), plan.variant)
                    .ok_or_else(|| check::no_kernel(&self.def.info, x.dtype()))?;
                let function = entry.function(context)?;
                if plan.variant != Variant::Strided {
                    // SAFETY: plan and caller vouch for the memory.
                    return unsafe {
                        launch(context, function, &plan, [x.device_ptr(), target.addr() as u64], stream, words)
                    };
                }
                let queue = Queue { context, function, stream, threads: plan.threads };
                let tensors = Tensors { at: [target.addr(), x.address()], sizes, results: 1, numbers: 0 };
                let arguments = Arguments { tensors: 2, operands: 1, words: [&words[..MAX_PARAMS], &[]], draw: None };
                let walk = strides.unwrap_or_else(|| walk(x, result));
                // SAFETY: the walk is of the views' shapes and strides; the caller's contract.
                unsafe { queue.run(&Choice::strided(&walk, tensors), arguments) }
            }
        }
    }
}

/// Launches a kernel for elements that lie one after another in one order.
///
/// # Safety
/// Operand and result at `addresses` are as the plan has them; `stream` is of the context.
#[inline]
unsafe fn launch(
    context: &'static Context,
    function: cuda::Function,
    plan: &Plan,
    [mut source, mut target]: [u64; 2],
    stream: &Stream,
    words: ParamWords,
) -> Result<()> {
    let (mut n, mut head) = (plan.n, plan.head);
    let mut per_thread = plan.vectors_per_thread | if plan.streams { STREAM_UNARY } else { 0 };
    let [mut p0, mut p1, mut p2, mut p3, ..] = words;
    let mut params: [*mut c_void; 9] = [
        (&raw mut source).cast(),
        (&raw mut target).cast(),
        (&raw mut n).cast(),
        (&raw mut head).cast(),
        (&raw mut per_thread).cast(),
        (&raw mut p0).cast(),
        (&raw mut p1).cast(),
        (&raw mut p2).cast(),
        (&raw mut p3).cast(),
    ];
    // SAFETY: the parameters are those of every entry by vectors or a table; the caller's contract.
    unsafe { cuda::launch(context, function, plan.blocks, plan.threads, stream, &mut params) }
}

/// The loop over a result and its operand.
fn walk(x: &TensorView<'_>, y: &TensorView<'_>) -> Walk<2> {
    let of = |view: &TensorView<'_>| broadcast(view.shape(), view.strides(), x.shape());
    Walk::new(x.shape(), &[of(y), of(x)])
}

/// The loop, where it is more than one over elements that lie one after another in the same order.
#[inline]
fn strides(x: &TensorView<'_>, y: &TensorView<'_>) -> Option<Walk<2>> {
    if x.is_contiguous() && y.is_contiguous() {
        return None;
    }
    let walk = walk(x, y);
    let (_, steps) = walk.inner();
    (!(walk.is_flat() && steps[0] == steps[1])).then_some(walk)
}
