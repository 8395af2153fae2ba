//! The gradients of ops of several operands: their definitions, and the way of a call from operands to launches.

use std::ffi::c_void;

use pointwise_core::launch::{GRADIENT_TENSORS, ONCE, STREAM_SHIFT, Steps, WORD_SHIFT};
use pointwise_core::op::{MAX_OPERANDS, MAX_PARAMS, MAX_RESULTS, Words};
use pointwise_core::{DType, Kind, OpInfo, ParamInfo};

use super::binary::channel;
use super::unary::DEFAULT_THREADS;
use super::walk::{Along, Class, Limit, Places, Walk, broadcast};
use super::{Entry, MapPlan, Operand, Strategy, settings};
use crate::cpu::{GradientsFn, GradientsRun};
use crate::cuda::{self, Context};
use crate::error::{Error, ErrorKind, Result};
use crate::shape::Shape;
use crate::tensor::{Overlap, Tensor, TensorView, TensorViewMut, overlap};
use crate::{Device, Number, Stream};

/// The gradients of an op of several operands as the host knows them. Made by
/// [`host_gradients!`](crate::host_gradients) and its siblings from a row of a table of gradients.
#[derive(Debug)]
pub struct GradientDef {
    /// The row.
    pub info: OpInfo,
    /// The loop over elements of a type on the CPU; `None` for a type the op does not take.
    pub cpu: fn(DType) -> Option<GradientsFn>,
    /// The kernel of a class for elements of a type; `None` where there is none.
    pub entry: fn(DType, Class) -> Option<&'static Entry>,
    /// The formula in f64, a condition as 0 or 1.
    pub oracle: fn([f64; MAX_OPERANDS], Words) -> [f64; MAX_RESULTS],
    /// The formula with every step rounded to f32 once.
    pub steps: fn([f32; MAX_OPERANDS], Words) -> [f32; MAX_RESULTS],
}

impl GradientDef {
    /// The op with parameters, in the order of [`OpInfo::params`](crate::OpInfo::params).
    pub fn gradients_with(&'static self, params: [Number; MAX_PARAMS]) -> GradientsKernel {
        GradientsKernel(Call::new(self, params))
    }

    /// The gradients of a gated op with parameters.
    pub fn gated_gradients_with(&'static self, params: [Number; MAX_PARAMS]) -> GatedGradientsKernel {
        GatedGradientsKernel(Call::new(self, params))
    }

    /// The formula in f64, for elements of type `dtype`.
    ///
    /// # Errors
    /// An element type or a parameter that the op does not take.
    pub fn oracle_for(
        &self,
        dtype: DType,
        params: &[Number; MAX_PARAMS],
    ) -> Result<impl Fn([f64; MAX_OPERANDS]) -> [f64; MAX_RESULTS] + Copy + use<>> {
        self.check_dtype(dtype)?;
        let mut words = Words::default();
        for ((word, number), info) in words.iter_mut().zip(params).zip(self.info.params) {
            *word = number.oracle(info, dtype)?.to_bits();
        }
        let oracle = self.oracle;
        Ok(move |x| oracle(x, words))
    }

    /// The formula with every step rounded to f32 once, for elements of type `dtype`: what the bound is about.
    ///
    /// # Errors
    /// As [`GradientDef::oracle_for`].
    pub fn steps_for(
        &self,
        dtype: DType,
        params: &[Number; MAX_PARAMS],
    ) -> Result<impl Fn([f32; MAX_OPERANDS]) -> [f32; MAX_RESULTS] + Copy + use<>> {
        self.check_dtype(dtype)?;
        let words = words(&self.info, params, dtype)?;
        let steps = self.steps;
        Ok(move |x| steps(x, words))
    }

    fn check_dtype(&self, dtype: DType) -> Result<()> {
        if self.info.supports(dtype) {
            return Ok(());
        }
        Err(ErrorKind::DType { op: self.info.name.to_owned(), got: dtype, allowed: self.info.types.to_vec() }.into())
    }

    #[cold]
    fn no_kernel(&self, dtype: DType) -> Error {
        ErrorKind::NoKernel {
            symbol: format!("{} of {dtype}", self.info.name),
            why: "its table lists the type, but no code was made for it; please report this".to_owned(),
        }
        .into()
    }
}

/// Parameters as a kernel takes them.
fn words(info: &OpInfo, params: &[Number; MAX_PARAMS], dtype: DType) -> Result<Words> {
    let mut words = Words::default();
    for ((word, number), info) in words.iter_mut().zip(params).zip(info.params) {
        *word = number.word(info, dtype)?;
    }
    Ok(words)
}

/// The gradients of an op of several operands, with parameters and launch settings: all of them in one pass over
/// `grad` and the operands.
///
/// Operands are broadcast together. Every gradient has the shape of the result: that of an operand which was broadcast is
/// to be summed over the dimensions along which it was.
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
pub struct GradientsKernel(Call);

impl GradientsKernel {
    settings!(GradientDef);

    /// The gradients in new contiguous tensors, in the order of [`OpInfo::results`](crate::OpInfo::results).
    ///
    /// # Errors
    /// Another number of operands than the op has; operands of different element types or devices or that cannot be
    /// broadcast together, an element type, number or parameter that the op does not take, no tensor at all; a stream of
    /// another device, bad launch settings, a missing kernel, out of memory, the driver's.
    pub fn run(&self, operands: &[Operand<'_>]) -> Result<Vec<Tensor>> {
        let ready = self.ready(operands)?;
        let mut results = Vec::with_capacity(self.0.def.info.results.len());
        for _ in self.0.def.info.results {
            results.push(Tensor::empty(&ready.device, ready.dtype, ready.shape)?);
        }
        let mut targets = Targets::default();
        for (target, result) in targets.pointers.iter_mut().zip(&mut results) {
            *target = result.as_mut_ptr();
        }
        for (view, result) in targets.views.iter_mut().zip(&results) {
            *view = Some(result.view());
        }
        // SAFETY: new tensors of the results' type, shape and device.
        unsafe { self.0.write(&ready, &targets) }?;
        Ok(results)
    }

    /// The gradients into tensors that are there, of any strides. Allocates nothing and waits for nothing, so that a CUDA
    /// graph can capture it. A result may be an operand's very memory.
    ///
    /// # Errors
    /// As [`GradientsKernel::run`], and: another number of results than the op has; another shape, device or element type
    /// of a result; one that shares memory with another, or with an operand but is not the same view.
    pub fn run_into(&self, operands: &[Operand<'_>], results: &mut [TensorViewMut<'_>]) -> Result<()> {
        let info = &self.0.def.info;
        let ready = self.ready(operands)?;
        if results.len() != info.results.len() {
            return Err(count(info, "results", info.results, results.len()));
        }
        let mut targets = Targets::default();
        for (target, result) in targets.pointers.iter_mut().zip(&mut *results) {
            *target = result.as_mut_ptr();
        }
        for (view, result) in targets.views.iter_mut().zip(results.iter()) {
            *view = Some(result.as_view());
        }
        self.check_results(&ready, &targets)?;
        // SAFETY: the results are exclusively borrowed, and checked.
        unsafe { self.0.write(&ready, &targets) }
    }

    /// What [`GradientsKernel::run_into`] would launch on a CUDA device for these tensors.
    ///
    /// # Errors
    /// As there.
    pub fn plan(&self, operands: &[Operand<'_>], results: &[TensorView<'_>]) -> Result<MapPlan> {
        let info = &self.0.def.info;
        let ready = self.ready(operands)?;
        if results.len() != info.results.len() {
            return Err(count(info, "results", info.results, results.len()));
        }
        let mut targets = Targets::default();
        for (view, result) in targets.views.iter_mut().zip(results) {
            *view = Some(*result);
        }
        self.check_results(&ready, &targets)?;
        self.0.plan(&ready, &targets)
    }

    fn ready<'a>(&self, operands: &[Operand<'a>]) -> Result<Ready<'a>> {
        let info = &self.0.def.info;
        if let (Kind::ChannelGradients, [grad, Operand::View(x), Operand::View(weight)]) = (info.kind, operands)
            && (x.shape().rank() < 2 || weight.shape().rank() != x.shape().rank())
        {
            return self.0.ready(&[*grad, Operand::View(*x), Operand::View(channel(x.shape(), weight)?)]);
        }
        self.0.ready(operands)
    }

    fn check_results(&self, ready: &Ready<'_>, targets: &Targets<'_>) -> Result<()> {
        let info = &self.0.def.info;
        for (k, (name, view)) in info.results.iter().zip(targets.views.iter().flatten()).enumerate() {
            self.0.check_result(name, view, ready.dtype, &ready.shape, &ready.device)?;
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
}

/// The gradients of a gated op, with parameters and launch settings: those of both halves of `x` in one pass.
///
/// ```
/// use pointwise::{Device, Tensor, ops};
///
/// let cpu = Device::cpu();
/// let x = Tensor::from_slice(&cpu, &[0.0_f32, 3.0], [1, 2])?; // gate and value
/// let grad = Tensor::full(&cpu, 2.0_f32, [1, 1])?;
/// let y = ops::silu_and_mul_backward(&grad, &x)?;
/// assert_eq!(y.to_vec::<f32>()?, [3.0, 0.0]); // grad value silu'(0), grad silu(0)
/// # Ok::<(), pointwise::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct GatedGradientsKernel(Call);

impl GatedGradientsKernel {
    settings!(GradientDef);

    /// The gradient of `x` of shape `(.., 2N)` for `grad` of shape `(.., N)`, in a new tensor of x's shape.
    ///
    /// # Errors
    /// A last dimension that is odd or missing, a `grad` that does not broadcast to `(.., N)`, and those of
    /// [`GradientsKernel::run`].
    pub fn run<'a>(&self, grad: impl Into<Operand<'a>>, x: impl Into<TensorView<'a>>) -> Result<Tensor> {
        let x = x.into();
        let ready = self.ready(grad.into(), &x)?;
        let mut y = Tensor::empty(x.device(), x.dtype(), *x.shape())?;
        let pointer = y.as_mut_ptr();
        let targets = Targets::halves(pointer, &y.view())?;
        // SAFETY: a new tensor of the result's type, shape and device.
        unsafe { self.0.write(&ready, &targets) }?;
        Ok(y)
    }

    /// The gradient of `x`, written to `y` of its shape, which may be `x` itself.
    ///
    /// # Errors
    /// As [`GatedGradientsKernel::run`] and [`GradientsKernel::run_into`].
    pub fn run_into<'a, 'b>(
        &self,
        grad: impl Into<Operand<'a>>,
        x: impl Into<TensorView<'a>>,
        y: impl Into<TensorViewMut<'b>>,
    ) -> Result<()> {
        let (grad, x, mut y) = (grad.into(), x.into(), y.into());
        let ready = self.ready(grad, &x)?;
        let pointer = y.as_mut_ptr();
        self.check(&grad, &x, &y.as_view())?;
        // SAFETY: `y` is exclusively borrowed, and checked.
        unsafe { self.0.write(&ready, &Targets::halves(pointer, &y.as_view())?) }
    }

    /// What [`GatedGradientsKernel::run_into`] would launch on a CUDA device for these tensors.
    ///
    /// # Errors
    /// As there.
    pub fn plan<'a>(
        &self,
        grad: impl Into<Operand<'a>>,
        x: impl Into<TensorView<'a>>,
        y: impl Into<TensorView<'a>>,
    ) -> Result<MapPlan> {
        let (grad, x, y) = (grad.into(), x.into(), y.into());
        let ready = self.ready(grad, &x)?;
        self.check(&grad, &x, &y)?;
        self.0.plan(&ready, &Targets::halves(std::ptr::null_mut(), &y)?)
    }

    fn ready<'a>(&self, grad: Operand<'a>, x: &TensorView<'a>) -> Result<Ready<'a>> {
        let info = &self.0.def.info;
        let last = x.shape().rank().checked_sub(1);
        let Some((last, size)) = last.map(|last| (last, x.shape()[last])).filter(|(_, size)| size % 2 == 0) else {
            return Err(ErrorKind::Unsupported {
                what: format!("{} of shape {}", info.name, x.shape()),
                advice: "the last dimension holds gate and value, so it must be even".to_owned(),
            }
            .into());
        };
        let (gate, value) = (x.narrow(last, 0, size / 2)?, x.narrow(last, size / 2, size / 2)?);
        let ready = self.0.ready(&[grad, Operand::View(gate), Operand::View(value)])?;
        if &ready.shape != gate.shape() {
            let got = match grad {
                Operand::View(grad) => *grad.shape(),
                Operand::Number(_) => Shape::SCALAR,
            };
            let what = format!("grad of {} of shape {}", info.name, x.shape());
            return Err(ErrorKind::ShapeMismatch { what, expected: *gate.shape(), got }.into());
        }
        Ok(ready)
    }

    fn check(&self, grad: &Operand<'_>, x: &TensorView<'_>, y: &TensorView<'_>) -> Result<()> {
        let info = &self.0.def.info;
        self.0.check_result("y", y, x.dtype(), x.shape(), x.device())?;
        if overlap(x, y) == Overlap::Partial {
            return Err(overlapping(info, "x", "y"));
        }
        match grad {
            Operand::View(grad) if overlap(grad, y) != Overlap::None => Err(overlapping(info, "grad", "y")),
            _ => Ok(()),
        }
    }
}

#[cold]
fn overlapping(info: &OpInfo, a: &str, b: &str) -> Error {
    ErrorKind::Overlap { what: format!("{a} and the output {b} of {}", info.name) }.into()
}

#[cold]
fn count(info: &OpInfo, what: &str, names: &[&str], got: usize) -> Error {
    ErrorKind::Unsupported {
        what: format!("{} with {got} {what}", info.name),
        advice: format!("they are {}", names.join(", ")),
    }
    .into()
}

/// An op with its parameters and launch settings.
#[derive(Clone, Debug)]
struct Call {
    def: &'static GradientDef,
    params: [Number; MAX_PARAMS],
    strategy: Strategy,
    threads: u32,
    stream: Option<Stream>,
}

/// Operands whose types, shapes and devices go together.
struct Ready<'a> {
    dtype: DType,
    shape: Shape,
    device: Device,
    views: [Option<TensorView<'a>>; MAX_OPERANDS],
    given: [Option<u64>; MAX_OPERANDS],
    words: Words,
}

/// Where results go.
struct Targets<'a> {
    pointers: [*mut u8; MAX_RESULTS],
    views: [Option<TensorView<'a>>; MAX_RESULTS],
}

impl Default for Targets<'_> {
    fn default() -> Self {
        Targets { pointers: [std::ptr::null_mut(); MAX_RESULTS], views: [None; MAX_RESULTS] }
    }
}

impl<'a> Targets<'a> {
    /// The halves of `y`'s last dimension, which is even; `pointer` is its first element.
    fn halves(pointer: *mut u8, y: &TensorView<'a>) -> Result<Targets<'a>> {
        let last = y.shape().rank().saturating_sub(1);
        let half = y.shape()[last] / 2;
        let (front, back) = (y.narrow(last, 0, half)?, y.narrow(last, half, half)?);
        let second = pointer.wrapping_add(back.address().wrapping_sub(front.address()));
        let none = std::ptr::null_mut();
        Ok(Targets { pointers: [pointer, second, none], views: [Some(front), Some(back), None] })
    }
}

/// A walk and the kernel for it.
struct Choice {
    class: Class,
    /// Of items: vectors where the class has them, but for [`Class::Flat`].
    walk: Walk<GRADIENT_TENSORS>,
    lanes: usize,
    mode: u32,
    replaced: Option<&'static str>,
}

type All<T> = [T; GRADIENT_TENSORS];

impl Call {
    fn new(def: &'static GradientDef, params: [Number; MAX_PARAMS]) -> Call {
        Call { def, params, strategy: Strategy::Auto, threads: DEFAULT_THREADS, stream: None }
    }

    fn is_condition(&self, k: usize) -> bool {
        self.def.info.kind == Kind::SelectGradients && k == 0
    }

    /// Checks operands, by the rules of [`super::map`].
    fn ready<'a>(&self, operands: &[Operand<'a>]) -> Result<Ready<'a>> {
        let info = &self.def.info;
        if operands.len() != info.operands.len() {
            return Err(count(info, "operands", info.operands, operands.len()));
        }
        let leader = operands.iter().enumerate().find_map(|(k, operand)| match operand {
            Operand::View(view) if !self.is_condition(k) => Some((info.operands[k], *view)),
            _ => None,
        });
        let Some((leader, first)) = leader else {
            return Err(ErrorKind::Unsupported {
                what: format!("{} of numbers alone", info.name),
                advice: "give at least one operand as a tensor, which decides type and device".to_owned(),
            }
            .into());
        };
        let (dtype, device) = (first.dtype(), *first.device());
        self.def.check_dtype(dtype)?;
        let mut shape = *first.shape();
        let (mut views, mut given) = ([None; MAX_OPERANDS], [None; MAX_OPERANDS]);
        for (k, (operand, &name)) in operands.iter().zip(info.operands).enumerate() {
            let expected = if self.is_condition(k) { DType::Bool } else { dtype };
            match operand {
                Operand::View(view) => {
                    if view.dtype() != expected {
                        let op = match self.is_condition(k) {
                            true => format!("operand {name} of {}", info.name),
                            false => format!("operand {name} of {} (convert one: {leader} is {dtype})", info.name),
                        };
                        return Err(ErrorKind::DType { op, got: view.dtype(), allowed: vec![expected] }.into());
                    }
                    if view.device() != &device {
                        let what = format!("operand {name} of {}", info.name);
                        return Err(ErrorKind::DeviceMismatch { what, expected: device, got: *view.device() }.into());
                    }
                    shape = shape.broadcast_with(view.shape())?;
                    views[k] = Some(*view);
                }
                Operand::Number(Number::Default) => {
                    return Err(ErrorKind::Parameter {
                        name,
                        value: Number::Default.to_string(),
                        why: "an operand has no default".to_owned(),
                    }
                    .into());
                }
                Operand::Number(number) => {
                    given[k] = Some(number.word(&ParamInfo { name, default: 0.0 }, expected)?);
                }
            }
        }
        Ok(Ready { dtype, shape, device, views, given, words: words(info, &self.params, dtype)? })
    }

    fn check_result(
        &self,
        name: &str,
        view: &TensorView<'_>,
        dtype: DType,
        shape: &Shape,
        device: &Device,
    ) -> Result<()> {
        let what = format!("the output {name} of {}", self.def.info.name);
        if view.dtype() != dtype {
            let op = format!("{what} of {dtype}");
            return Err(ErrorKind::DType { op, got: view.dtype(), allowed: vec![dtype] }.into());
        }
        if view.shape() != shape {
            return Err(ErrorKind::ShapeMismatch { what, expected: *shape, got: *view.shape() }.into());
        }
        if view.device() != device {
            return Err(ErrorKind::DeviceMismatch { what, expected: *device, got: *view.device() }.into());
        }
        Ok(())
    }

    /// Runs the op.
    ///
    /// # Safety
    /// The targets are of the op's number of results, of their type, shape and device, disjoint from each other, and each
    /// operand equal to or disjoint from each; the pointers are their first elements, and may be written through.
    unsafe fn write(&self, ready: &Ready<'_>, targets: &Targets<'_>) -> Result<()> {
        if ready.shape.contains(&0) {
            return Ok(());
        }
        let walk = walk(ready, targets);
        let Some(context) = ready.device.context() else {
            let op = (self.def.cpu)(ready.dtype).ok_or_else(|| self.def.no_kernel(ready.dtype))?;
            let run = GradientsRun {
                op,
                walk: &walk,
                operands: ready.views.map(|view| view.map_or(std::ptr::null(), |view| view.as_ptr())),
                given: ready.given,
                results: targets.pointers,
                sizes: self.sizes(ready.dtype),
                words: ready.words,
            };
            // SAFETY: the walk is of the views' shapes and strides; types and overlap are checked.
            unsafe { run.run() };
            return Ok(());
        };
        let own;
        let stream = match &self.stream {
            Some(stream) => {
                super::check_stream(stream, &ready.device)?;
                for view in ready.views.iter().chain(&targets.views).flatten() {
                    view.use_on(stream)?;
                }
                stream
            }
            None => {
                own = ready.device.stream();
                &own
            }
        };
        super::check_threads(self.threads)?;
        self.launch(context, stream, ready, &walk, addresses(ready, targets))
    }

    fn launch(
        &self,
        context: &'static Context,
        stream: &Stream,
        ready: &Ready<'_>,
        walk: &Walk<GRADIENT_TENSORS>,
        start: All<usize>,
    ) -> Result<()> {
        let choice = self.choose(ready, walk, &start);
        let entry = (self.def.entry)(ready.dtype, choice.class).ok_or_else(|| self.def.no_kernel(ready.dtype))?;
        let function = entry.function(context)?;
        let sizes = self.sizes(ready.dtype);
        let given = ready.given.map(Option::unwrap_or_default);
        choice.walk.parts(choice.limit(), [0; GRADIENT_TENSORS], &mut |part, place| {
            let at: All<usize> =
                std::array::from_fn(|k| start[k].wrapping_add_signed(place[k] as isize * sizes[k] as isize));
            let tensors = at.map(|address| address as u64);
            let queue = |items: u64, params: &mut Params| {
                params.push(&choice.mode);
                given.iter().chain(&ready.words).for_each(|word| params.push(word));
                let blocks = items.div_ceil(u64::from(self.threads)) as u32;
                let params = &mut params.pointers[..params.len];
                // SAFETY: the parameters are those of the entry's class; plan and checks vouch for the memory.
                unsafe { cuda::launch(context, function, blocks, self.threads, stream, params) }
            };
            let mut params = Params { pointers: [std::ptr::null_mut(); 18], len: 0 };
            tensors.iter().for_each(|address| params.push(address));
            if choice.class == Class::Flat {
                let n = part.numel();
                let head = head(&at, &sizes, part, choice.lanes).unwrap_or(0).min(n as u32);
                let body = n - u64::from(head);
                params.push(&n);
                params.push(&head);
                return queue(body / choice.lanes as u64 + body % choice.lanes as u64 + u64::from(head), &mut params);
            }
            let steps: Steps<GRADIENT_TENSORS> = part.steps();
            let items = part.numel() as u32;
            params.push(&steps);
            params.push(&items);
            queue(u64::from(items), &mut params)
        })
    }

    /// What [`Call::write`] would launch on a CUDA device.
    fn plan(&self, ready: &Ready<'_>, targets: &Targets<'_>) -> Result<MapPlan> {
        super::check_threads(self.threads)?;
        let walk = walk(ready, targets);
        let at = addresses(ready, targets);
        let choice = self.choose(ready, &walk, &at);
        let n = ready.shape.numel() as u64;
        let (mut launches, mut first) = (0, 0);
        if n > 0 {
            choice.walk.parts(choice.limit(), [0; GRADIENT_TENSORS], &mut |_, _| -> Result<()> {
                launches += 1;
                Ok(())
            })?;
            if choice.class == Class::Flat {
                first = head(&at, &self.sizes(ready.dtype), &choice.walk, choice.lanes).unwrap_or(0);
            }
        }
        Ok(MapPlan {
            class: choice.class,
            strategy: match choice.class {
                Class::Strided => Strategy::Direct,
                Class::Flat | Class::Rows => Strategy::RegisterCopy,
            },
            replaced: choice.replaced,
            dims: walk.dims().len(),
            threads: self.threads,
            lanes: choice.lanes,
            head: u64::from(first).min(n) as u32,
            launches,
            n,
        })
    }

    /// The class for a walk whose tensors start at `at`.
    fn choose(&self, ready: &Ready<'_>, walk: &Walk<GRADIENT_TENSORS>, at: &All<usize>) -> Choice {
        let lanes = 16 / ready.dtype.size();
        let sizes = self.sizes(ready.dtype);
        let bits = |of: &dyn Fn(usize) -> bool| {
            (0..MAX_OPERANDS).fold(0, |bits, k| bits | (u32::from(of(k)) * (ONCE << k)))
        };
        let mode = bits(&|k| ready.given[k].is_some()) << WORD_SHIFT;
        let strided = |replaced| Choice { class: Class::Strided, walk: *walk, lanes: 1, mode, replaced };
        let replaced = match self.strategy {
            Strategy::Direct => return strided(None),
            Strategy::ExplicitParallel | Strategy::Table => Some("gradients have vectors or single elements"),
            _ => None,
        };
        let once = walk.once();
        let results = self.def.info.results.len() * ready.dtype.size();
        let passes = super::result_stays(&ready.device, walk.numel() * results as u64);
        let mode = mode
            | bits(&|k| once[MAX_RESULTS + k] && ready.given[k].is_none())
            | bits(&|k| passes && ready.views[k].is_some() && walk.meets_once(MAX_RESULTS + k)) << STREAM_SHIFT;
        if walk.is_flat() && head(at, &sizes, walk, lanes).is_some() {
            return Choice { class: Class::Flat, walk: *walk, lanes, mode, replaced };
        }
        let aligned = |k: usize, step: i64| {
            at[k].wrapping_add_signed(step as isize * sizes[k] as isize).is_multiple_of(lanes * sizes[k])
        };
        match walk.rows(lanes, aligned) {
            Some(rows) => Choice { class: Class::Rows, walk: rows, lanes, mode, replaced },
            None if self.strategy == Strategy::Auto => strided(None),
            None => strided(Some("the tensors do not lie in aligned vectors")),
        }
    }

    /// Bytes of an element of each tensor.
    fn sizes(&self, dtype: DType) -> All<usize> {
        let mut sizes = [dtype.size(); GRADIENT_TENSORS];
        if self.is_condition(0) {
            sizes[MAX_RESULTS] = 1;
        }
        sizes
    }
}

impl Choice {
    fn limit(&self) -> Limit {
        Limit::of(self.class, self.lanes)
    }
}

/// The loop of a call.
fn walk(ready: &Ready<'_>, targets: &Targets<'_>) -> Walk<GRADIENT_TENSORS> {
    let of = |view: &Option<TensorView<'_>>| {
        view.map_or(Along::default(), |view| broadcast(view.shape(), view.strides(), &ready.shape))
    };
    let [y0, y1, y2] = targets.views.each_ref().map(of);
    let [a, b, c, d] = ready.views.each_ref().map(of);
    Walk::new(&ready.shape, &[y0, y1, y2, a, b, c, d])
}

/// Addresses of the tensors; 0 for those that are not there.
fn addresses(ready: &Ready<'_>, targets: &Targets<'_>) -> All<usize> {
    let of = |view: &Option<TensorView<'_>>| view.map_or(0, |view| view.address());
    let [y0, y1, y2] = targets.views.each_ref().map(of);
    let [a, b, c, d] = ready.views.each_ref().map(of);
    [y0, y1, y2, a, b, c, d]
}

/// The number of elements before one that is aligned for vectors of `lanes` in all tensors that a flat walk steps along;
/// `None` where there is none.
fn head(at: &All<usize>, sizes: &All<usize>, walk: &Walk<GRADIENT_TENSORS>, lanes: usize) -> Option<u32> {
    let (_, steps): (usize, Places<GRADIENT_TENSORS>) = walk.inner();
    (0..lanes).find_map(|head| {
        let aligned = |k: usize| steps[k] == 0 || (at[k] + head * sizes[k]).is_multiple_of(lanes * sizes[k]);
        (0..GRADIENT_TENSORS).all(aligned).then_some(head as u32)
    })
}

/// Pointers to arguments, in order.
struct Params {
    pointers: [*mut c_void; 18],
    len: usize,
}

impl Params {
    fn push<T>(&mut self, value: &T) {
        self.pointers[self.len] = std::ptr::from_ref(value).cast_mut().cast();
        self.len += 1;
    }
}
