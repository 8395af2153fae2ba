//! Ops of several operands: their definitions, and the way of a call from operands to launches.

use std::ffi::c_void;

use pointwise_core::launch::{ONCE, STREAM_SHIFT, Steps, WORD_SHIFT};
use pointwise_core::op::{MAX_PARAMS, Words};
use pointwise_core::{DType, Draw, Kind, OpInfo, Philox, ResultType};

use super::promote::{self, Converted};
use super::unary::DEFAULT_THREADS;
use super::walk::{Along, Class, Limit, Places, Walk, broadcast, strided_blocks};
use super::{Entry, Operand, Strategy, scalar};
use crate::cpu::{MapFn, Run};
use crate::cuda::{self, Context};
use crate::error::{Error, ErrorKind, Result};
use crate::shape::Shape;
use crate::tensor::{Overlap, Tensor, TensorView, TensorViewMut, overlap};
use crate::tuner::{Choices, Lies};
use crate::{Device, Number, Stream};

/// An op of two or three operands as the host knows it. Made by [`host_binary!`](crate::host_binary) and its siblings from
/// a row of an op table.
#[derive(Debug)]
pub struct MapDef {
    /// The row.
    pub info: OpInfo,
    /// The loop over elements of a type on the CPU; `None` for a type the op does not take.
    pub cpu: fn(DType) -> Option<MapFn>,
    /// The kernel of a class for elements of a type; `None` where there is none.
    pub entry: fn(DType, Class) -> Option<&'static Entry>,
    /// The formula in f64 (a bool result as 0 or 1); `None` for ops on bits alone.
    pub oracle: Option<fn([f64; 3], Words) -> f64>,
    /// The formula with every step rounded to f32 once, of binary ops on floats alone: what the bound of a gradient is
    /// about.
    pub steps: Option<fn([f32; 2], Words) -> f32>,
}

/// What a launch of an op of several operands will do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MapPlan {
    /// The kernel's class: how operands and result lie.
    pub class: Class,
    /// The strategy that class stands for: [`Strategy::Direct`] for [`Class::Strided`], else [`Strategy::RegisterCopy`].
    pub strategy: Strategy,
    /// Why another strategy than the one asked for; `None` where it is the one asked for, or was left open.
    pub replaced: Option<&'static str>,
    /// Dimensions left after merging; one less is the number of divisions for each thread.
    pub dims: usize,
    /// Threads of a block.
    pub threads: u32,
    /// Elements a thread has.
    pub lanes: usize,
    /// Elements before the first aligned vector of a flat call, done one by one.
    pub head: u32,
    /// Launches: one for fewer than 2^31 items.
    pub launches: usize,
    /// Elements of the result.
    pub n: u64,
}

impl MapDef {
    /// The formula in f64, for elements of a tensor of type `dtype`: the exact result to f64's accuracy, not yet rounded
    /// to the result's type, a bool as 0 or 1. `None` for ops on bits alone.
    ///
    /// # Errors
    /// An element type or a parameter that the op does not take.
    pub fn oracle_for(
        &self,
        dtype: DType,
        params: &[Number; MAX_PARAMS],
    ) -> Result<Option<impl Fn([f64; 3]) -> f64 + Copy + use<>>> {
        self.check_dtype(dtype)?;
        let mut words = Words::default();
        for ((word, number), info) in words.iter_mut().zip(params).zip(self.info.params) {
            *word = number.oracle(info, dtype)?.to_bits();
        }
        Ok(self.oracle.map(|oracle| move |x| oracle(x, words)))
    }

    /// [`MapDef::steps`] with parameters, for elements of a tensor of type `dtype`.
    ///
    /// # Errors
    /// As [`MapDef::oracle_for`].
    pub fn steps_for(
        &self,
        dtype: DType,
        params: &[Number; MAX_PARAMS],
    ) -> Result<Option<impl Fn([f32; 2]) -> f32 + Copy + use<>>> {
        self.check_dtype(dtype)?;
        let words = scalar::params(&self.info, params, dtype)?;
        Ok(self.steps.map(|steps| move |x| steps(x, words)))
    }

    fn check_dtype(&self, dtype: DType) -> Result<()> {
        if self.info.supports(dtype) {
            return Ok(());
        }
        Err(ErrorKind::DType { op: self.info.name.to_owned(), got: dtype, allowed: self.info.types.to_vec() }.into())
    }

    /// The element type whose kernels and loops serve `dtype`: another of the same width where bits are but moved.
    fn carrier(&self, dtype: DType) -> DType {
        match (self.info.kind, dtype.size()) {
            (Kind::Select, 1) => DType::I8,
            (Kind::Select, 2) => DType::I16,
            (Kind::Select, 4) => DType::I32,
            (Kind::Select, _) => DType::I64,
            _ => dtype,
        }
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

/// An op with its parameters and launch settings.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) def: &'static MapDef,
    pub(crate) params: [Number; MAX_PARAMS],
    pub(crate) strategy: Strategy,
    pub(crate) threads: u32,
    pub(crate) stream: Option<Stream>,
    pub(crate) tuned: Option<Choices>,
    /// Where a random op draws from.
    pub(crate) place: Philox,
}

/// Operands whose types, shapes and devices go together.
pub(super) struct Ready<'a> {
    dtype: DType,
    shape: Shape,
    device: Device,
    views: [Option<TensorView<'a>>; 3],
    given: [Option<u64>; 3],
    words: Words,
}

/// A walk and the kernel for it.
struct Choice {
    class: Class,
    /// Of items: vectors where the class has them, but for [`Class::Flat`].
    walk: Walk,
    lanes: usize,
    mode: u32,
    replaced: Option<&'static str>,
}

impl Call {
    /// The op with parameters, and launch settings as they are where nothing else is asked for.
    pub(super) fn new(def: &'static MapDef, params: [Number; MAX_PARAMS]) -> Call {
        Call {
            def,
            params,
            strategy: Strategy::Auto,
            threads: DEFAULT_THREADS,
            stream: None,
            tuned: None,
            place: Philox::default(),
        }
    }

    /// Checks operands: those of one call have one element type by now (but for a condition, which is bool) and device,
    /// and shapes that can be broadcast together.
    pub(super) fn ready<'a>(&self, operands: &[Operand<'a>]) -> Result<Ready<'a>> {
        let info = &self.def.info;
        if operands.len() != info.operands.len() {
            return Err(ErrorKind::Unsupported {
                what: format!("{} with {} operands", info.name, operands.len()),
                advice: format!("they are {}", info.operands.join(", ")),
            }
            .into());
        }
        let is_condition = |k: usize| info.kind == Kind::Select && k == 0;
        let mut leader: Option<(usize, &TensorView<'a>)> = None;
        for (k, operand) in operands.iter().enumerate() {
            if let Operand::View(view) = operand
                && !is_condition(k)
                && leader.is_none()
            {
                leader = Some((k, view));
            }
        }
        let Some((first, leader)) = leader else {
            return Err(ErrorKind::Unsupported {
                what: format!("{} of numbers alone", info.name),
                advice: "give at least one operand as a tensor, which decides type and device".to_owned(),
            }
            .into());
        };
        let (dtype, device) = (leader.dtype(), *leader.device());
        self.def.check_dtype(dtype)?;
        let mut ready = Ready {
            dtype,
            shape: Shape::SCALAR,
            device,
            views: [None; 3],
            given: [None; 3],
            words: scalar::params(info, &self.params, dtype)?,
        };
        let mut any = false;
        for (k, operand) in operands.iter().enumerate() {
            let name = info.operands[k];
            match operand {
                Operand::View(view) => {
                    let expected = if is_condition(k) { DType::Bool } else { dtype };
                    if view.dtype() != expected {
                        let op = if is_condition(k) {
                            format!("operand {name} of {}", info.name)
                        } else {
                            format!(
                                "operand {name} of {} (convert one: {} is {dtype})",
                                info.name, info.operands[first]
                            )
                        };
                        return Err(ErrorKind::DType { op, got: view.dtype(), allowed: vec![expected] }.into());
                    }
                    if view.device() != &device {
                        return Err(ErrorKind::DeviceMismatch {
                            what: format!("operand {name} of {}", info.name),
                            expected: device,
                            got: *view.device(),
                        }
                        .into());
                    }
                    ready.shape = if any { ready.shape.broadcast_with(view.shape())? } else { *view.shape() };
                    any = true;
                    ready.views[k] = Some(*view);
                }
                Operand::Number(number) => ready.given[k] = Some(scalar::operand(info, k, *number, dtype)?),
            }
        }
        Ok(ready)
    }

    /// The element type that a call runs in: that in which its operands meet.
    pub(crate) fn dtype(&self, operands: &[Operand<'_>]) -> Result<DType> {
        match promote::map_type(&self.def.info, operands)? {
            Some(dtype) => Ok(dtype),
            None => Ok(self.ready(operands)?.dtype),
        }
    }

    /// The result in a new tensor.
    pub(super) fn run(&self, operands: &[Operand<'_>]) -> Result<Tensor> {
        let mut converted = Converted::default();
        let promoted = self.promoted(operands, &mut converted)?;
        let operands = promoted.as_ref().map_or(operands, |promoted| &promoted[..operands.len()]);
        let ready = self.ready(operands)?;
        let mut y = Tensor::empty(&ready.device, self.def.info.result.of(ready.dtype), ready.shape)?;
        let target = y.as_mut_ptr();
        // SAFETY: a new tensor of the result's type, shape and device.
        unsafe { self.write(&ready, target, &y.view()) }?;
        Ok(y)
    }

    /// The result into a tensor that is there.
    pub(crate) fn run_into(&self, operands: &[Operand<'_>], mut y: TensorViewMut<'_>) -> Result<()> {
        let mut converted = Converted::default();
        let promoted = self.promoted(operands, &mut converted)?;
        let operands = promoted.as_ref().map_or(operands, |promoted| &promoted[..operands.len()]);
        let ready = self.ready(operands)?;
        let target = y.as_mut_ptr();
        self.check_output(&ready, &y.as_view())?;
        // SAFETY: `y` is exclusively borrowed, and checked.
        unsafe { self.write(&ready, target, &y.as_view()) }
    }

    /// The operands converted to the type in which they meet; `None` where they are of one, and stay as they are.
    fn promoted<'a>(&self, operands: &[Operand<'a>], converted: &'a mut Converted) -> Result<Option<[Operand<'a>; 3]>> {
        let info = &self.def.info;
        let Some(dtype) = promote::map_type(info, operands)? else {
            return Ok(None);
        };
        promote::convert_all(info, operands, dtype, self.stream.as_ref(), converted).map(Some)
    }

    /// The result over `y`, which is operand `at`, whatever `operands` has there. Operands of another type are converted;
    /// where they meet in another type than that of `y`, the result is, too, if PyTorch's `can_cast` allows it.
    pub(super) fn run_inplace<const N: usize>(
        &self,
        y: TensorViewMut<'_>,
        at: usize,
        operands: [Operand<'_>; N],
    ) -> Result<()> {
        self.run_over(y, &[at], operands)
    }

    /// [`Call::run_inplace`], with `y` as several operands.
    pub(super) fn run_over<const N: usize>(
        &self,
        mut y: TensorViewMut<'_>,
        at: &[usize],
        operands: [Operand<'_>; N],
    ) -> Result<()> {
        let target = y.as_mut_ptr();
        let view = y.as_view();
        let mut operands: [Operand<'_>; N] = operands;
        at.iter().for_each(|&at| operands[at] = Operand::View(view));
        let info = &self.def.info;
        let met = promote::map_type(info, &operands)?.unwrap_or(view.dtype());
        let result = info.result.of(met);
        if info.result == ResultType::Bool && view.dtype() != DType::Bool {
            return Err(ErrorKind::Unsupported {
                what: format!("{} of {} in place", info.name, view.dtype()),
                advice: format!("its result is {result}: write it to another tensor"),
            }
            .into());
        }
        if result != view.dtype() {
            if !result.can_cast(view.dtype()) {
                return Err(ErrorKind::Cast { op: info.name.to_owned(), result, got: view.dtype() }.into());
            }
            let made = self.run(&operands)?;
            return crate::kernels::to_dtype().on_maybe(self.stream.as_ref()).run_into(&made, y);
        }
        let mut converted = Converted::default();
        let promoted = self.promoted(&operands, &mut converted)?;
        let operands = promoted.as_ref().map_or(&operands[..], |promoted| &promoted[..N]);
        let ready = self.ready(operands)?;
        self.check_output(&ready, &view)?;
        // SAFETY: `y` is exclusively borrowed, and checked.
        unsafe { self.write(&ready, target, &view) }
    }

    fn check_output(&self, ready: &Ready<'_>, y: &TensorView<'_>) -> Result<()> {
        let info = &self.def.info;
        let result = info.result.of(ready.dtype);
        let what = || format!("the output of {}", info.name);
        if y.dtype() != result {
            let op = format!("the output of {} of {}", info.name, ready.dtype);
            return Err(ErrorKind::DType { op, got: y.dtype(), allowed: vec![result] }.into());
        }
        if y.shape() != &ready.shape {
            return Err(ErrorKind::ShapeMismatch { what: what(), expected: ready.shape, got: *y.shape() }.into());
        }
        if y.device() != &ready.device {
            return Err(ErrorKind::DeviceMismatch { what: what(), expected: ready.device, got: *y.device() }.into());
        }
        if info.kind == Kind::Random {
            // An element's place is its index.
            y.layout().require_contiguous("run_into")?;
        }
        for (k, view) in ready.views.iter().enumerate() {
            if let Some(view) = view
                && overlap(view, y) == Overlap::Partial
            {
                let what = format!("operand {} and the output of {}", info.operands[k], info.name);
                return Err(ErrorKind::Overlap { what }.into());
            }
        }
        Ok(())
    }

    /// What [`Call::write`] would launch on a CUDA device.
    pub(crate) fn plan(&self, operands: &[Operand<'_>], y: &TensorView<'_>) -> Result<MapPlan> {
        let info = &self.def.info;
        let promoted = match promote::map_type(info, operands)? {
            Some(dtype) => Some(promote::stand_in_all(info, operands, dtype)?),
            None => None,
        };
        let operands = promoted.as_ref().map_or(operands, |promoted| &promoted[..operands.len()]);
        let ready = self.ready(operands)?;
        self.check_output(&ready, y)?;
        super::check_threads(self.threads)?;
        let walk = walk(&ready, y);
        let (choice, threads) = self.settle(&ready, &walk, y.address());
        let limit = choice.limit();
        let (mut launches, mut head) = (0, 0);
        if ready.shape.numel() > 0 {
            choice.walk.parts(limit, Places::default(), &mut |_, _| -> Result<()> {
                launches += 1;
                Ok(())
            })?;
            if choice.class == Class::Flat {
                let addresses = addresses(&ready, y.address());
                head = aligned_head(&addresses, &self.sizes(ready.dtype), &choice.walk, choice.lanes).unwrap_or(0);
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
            threads,
            lanes: choice.lanes,
            head: u64::from(head).min(ready.shape.numel() as u64) as u32,
            launches,
            n: ready.shape.numel() as u64,
        })
    }

    /// Runs the op.
    ///
    /// # Safety
    /// `y` is of the result's type, shape and device, and each operand equal to or disjoint from it; `target` is its first
    /// element, and may be written through.
    unsafe fn write(&self, ready: &Ready<'_>, target: *mut u8, y: &TensorView<'_>) -> Result<()> {
        if ready.shape.contains(&0) {
            return Ok(());
        }
        let walk = walk(ready, y);
        match ready.device.context() {
            None => {
                let dtype = self.def.carrier(ready.dtype);
                let op = (self.def.cpu)(dtype).ok_or_else(|| self.def.no_kernel(ready.dtype))?;
                let operands = ready.views.map(|view| view.map_or(std::ptr::null(), |view| view.as_ptr()));
                let (given, sizes, words) = (ready.given, self.sizes(ready.dtype), ready.words);
                let run = Run { op, walk: &walk, operands, given, y: target, sizes, words, place: self.place };
                // SAFETY: the walk is of the views' shapes and strides; types and overlap are checked.
                unsafe { run.run() };
                Ok(())
            }
            Some(context) => {
                let own;
                let stream = match &self.stream {
                    Some(stream) => {
                        super::check_stream(stream, &ready.device)?;
                        for view in ready.views.iter().flatten().chain([y]) {
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
                self.launch(context, stream, ready, &walk, target.addr())
            }
        }
    }

    fn launch(
        &self,
        context: &'static Context,
        stream: &Stream,
        ready: &Ready<'_>,
        walk: &Walk,
        target: usize,
    ) -> Result<()> {
        let (choice, threads) = self.settle(ready, walk, target);
        let entry = (self.def.entry)(self.def.carrier(ready.dtype), choice.class)
            .ok_or_else(|| self.def.no_kernel(ready.dtype))?;
        let function = entry.function(context)?;
        let sizes = self.sizes(ready.dtype);
        let start = addresses(ready, target);
        // All entries of random ops take three operands.
        let is_random = self.def.info.kind == Kind::Random;
        let count = if is_random { 3 } else { self.def.info.operands.len() };
        choice.walk.parts(choice.limit(), Places::default(), &mut |part, place| {
            let mut at = start;
            for ((address, place), size) in at.iter_mut().zip(place).zip(sizes) {
                *address = address.wrapping_add_signed(place as isize * size as isize);
            }
            let launch = Launch {
                addresses: at.map(|address| address as u64),
                given: ready.given.map(Option::unwrap_or_default),
                words: ready.words,
                mode: choice.mode,
                count,
                draw: is_random.then(|| Draw { blocks: self.place.blocks(), first: place[0] as u64 }),
            };
            let queue = |items: u64, params: &mut [*mut c_void]| {
                let blocks = match choice.class {
                    Class::Strided => strided_blocks(items, threads),
                    Class::Flat | Class::Rows => items.div_ceil(u64::from(threads)) as u32,
                };
                // SAFETY: the parameters are those of the entry's class and arity; plan and checks vouch for the memory.
                unsafe { cuda::launch(context, function, blocks, threads, stream, params) }
            };
            match (choice.class, count) {
                (Class::Flat, _) => {
                    let n = part.numel();
                    let head = aligned_head(&at, &sizes, part, choice.lanes).unwrap_or(0).min(n as u32);
                    let body = n - u64::from(head);
                    launch.flat(n, head, |params| {
                        queue(body / choice.lanes as u64 + body % choice.lanes as u64 + u64::from(head), params)
                    })
                }
                (_, 2) => launch.tiled::<3>(part, queue),
                _ => launch.tiled::<4>(part, queue),
            }
        })
    }

    /// The kernel and the threads of a block for a walk whose result starts at `target`: a tuner's where it has some for
    /// such calls, and no strategy was set.
    fn settle(&self, ready: &Ready<'_>, walk: &Walk, target: usize) -> (Choice, u32) {
        let choice = self.choose(ready, walk, target, self.strategy);
        let (Strategy::Auto, Some(tuned)) = (self.strategy, &self.tuned) else {
            return (choice, self.threads);
        };
        let lies = Lies::Class(choice.class);
        match tuned.find(&ready.device, ready.dtype, lies, ready.shape.numel() as u64) {
            None => (choice, self.threads),
            Some((Strategy::Direct, threads)) => (self.choose(ready, walk, target, Strategy::Direct), threads),
            Some((_, threads)) => (choice, threads),
        }
    }

    /// The kernel for a walk whose result starts at `target`, by a strategy.
    fn choose(&self, ready: &Ready<'_>, walk: &Walk, target: usize, strategy: Strategy) -> Choice {
        let lanes = 16 / ready.dtype.size();
        let (sizes, at) = (self.sizes(ready.dtype), addresses(ready, target));
        let bits = |of: &dyn Fn(usize) -> bool| (0..3).fold(0, |bits, k| bits | (u32::from(of(k)) * (ONCE << k)));
        let mode = bits(&|k| ready.given[k].is_some()) << WORD_SHIFT;
        let strided = |replaced| Choice { class: Class::Strided, walk: *walk, lanes: 1, mode, replaced };
        if strategy == Strategy::Direct {
            return strided(None);
        }
        let replaced = match strategy {
            Strategy::ExplicitParallel | Strategy::Table => {
                Some("ops of several operands have vectors or single elements")
            }
            _ => None,
        };
        let once = walk.once();
        let passes = super::result_stays(&ready.device, walk.numel() * sizes[0] as u64);
        let mode = mode
            | bits(&|k| once[k + 1] && ready.given[k].is_none())
            | bits(&|k| passes && ready.views[k].is_some() && walk.meets_once(k + 1)) << STREAM_SHIFT;
        if walk.is_flat() && aligned_head(&at, &sizes, walk, lanes).is_some() {
            return Choice { class: Class::Flat, walk: *walk, lanes, mode, replaced };
        }
        let aligned = |k: usize, step: i64| {
            let vector = lanes * sizes[k];
            (at[k].wrapping_add_signed(step as isize * sizes[k] as isize)).is_multiple_of(vector)
        };
        match walk.rows(lanes, aligned) {
            Some(rows) => Choice { class: Class::Rows, walk: rows, lanes, mode, replaced },
            None if strategy == Strategy::Auto => strided(None),
            None => strided(Some("the operands do not lie in aligned vectors")),
        }
    }

    /// Bytes of an element of each tensor, the result first.
    fn sizes(&self, dtype: DType) -> [usize; 4] {
        let result = self.def.info.result.of(dtype).size();
        let first = if self.def.info.kind == Kind::Select { 1 } else { dtype.size() };
        [result, first, dtype.size(), dtype.size()]
    }
}

impl Choice {
    fn limit(&self) -> Limit {
        Limit::of(self.class, self.lanes)
    }
}

/// The loop of a call.
fn walk(ready: &Ready<'_>, y: &TensorView<'_>) -> Walk {
    let of = |view: &TensorView<'_>| broadcast(view.shape(), view.strides(), &ready.shape);
    let [a, b, c] = ready.views.map(|view| view.map_or(Along::default(), |view| of(&view)));
    Walk::new(&ready.shape, &[of(y), a, b, c])
}

/// Addresses of the tensors, the result's first; 0 for those that are not there.
fn addresses(ready: &Ready<'_>, target: usize) -> [usize; 4] {
    let [a, b, c] = ready.views.map(|view| view.map_or(0, |view| view.address()));
    [target, a, b, c]
}

/// The number of elements before one that is aligned for vectors of `lanes` in all tensors that a flat walk steps along;
/// `None` where there is none.
fn aligned_head(at: &[usize; 4], sizes: &[usize; 4], walk: &Walk, lanes: usize) -> Option<u32> {
    let (_, steps) = walk.inner();
    (0..lanes).find_map(|head| {
        let aligned = |k: usize| steps[k] == 0 || (at[k] + head * sizes[k]).is_multiple_of(lanes * sizes[k]);
        (0..4).all(aligned).then_some(head as u32)
    })
}

/// The arguments of a launch.
struct Launch {
    addresses: [u64; 4],
    given: [u64; 3],
    words: Words,
    mode: u32,
    count: usize,
    /// What a random op draws from.
    draw: Option<Draw>,
}

/// Pointers to arguments, in order.
struct Params {
    pointers: [*mut c_void; 15],
    len: usize,
}

impl Params {
    fn push<T>(&mut self, value: &T) {
        self.pointers[self.len] = std::ptr::from_ref(value).cast_mut().cast();
        self.len += 1;
    }
}

impl Launch {
    /// Operands, result, and what `middle` puts behind them; then mode, numbers and parameters.
    fn params(&self, middle: impl FnOnce(&mut Params)) -> Params {
        let mut params = Params { pointers: [std::ptr::null_mut(); 15], len: 0 };
        self.addresses[1..=self.count].iter().for_each(|address| params.push(address));
        params.push(&self.addresses[0]);
        middle(&mut params);
        params.push(&self.mode);
        self.given[..self.count].iter().for_each(|word| params.push(word));
        self.words.iter().for_each(|word| params.push(word));
        self.draw.iter().for_each(|draw| params.push(draw));
        params
    }

    fn flat(&self, n: u64, head: u32, queue: impl FnOnce(&mut [*mut c_void]) -> Result<()>) -> Result<()> {
        let mut params = self.params(|params| {
            params.push(&n);
            params.push(&head);
        });
        queue(&mut params.pointers[..params.len])
    }

    fn tiled<const N: usize>(
        &self,
        walk: &Walk,
        queue: impl FnOnce(u64, &mut [*mut c_void]) -> Result<()>,
    ) -> Result<()> {
        let steps: Steps<N> = walk.steps();
        let items = walk.numel() as u32;
        let mut params = self.params(|params| {
            params.push(&steps);
            params.push(&items);
        });
        queue(u64::from(items), &mut params.pointers[..params.len])
    }
}

/// Launches a unary op's strided kernel.
///
/// # Safety
/// The walk's places are valid in the tensors at `addresses` (result, operand), of elements of `sizes` bytes, and one that
/// is in both has the same place in both; `stream` is of the context, and `function` such a kernel.
pub(super) unsafe fn launch_strided_unary(
    context: &'static Context,
    function: cuda::Function,
    stream: &Stream,
    threads: u32,
    walk: &Walk,
    (addresses, sizes, words): ([usize; 2], [usize; 2], Words),
) -> Result<()> {
    walk.parts(Limit::STEPS, Places::default(), &mut |part, place| {
        let at = |k: usize| addresses[k].wrapping_add_signed(place[k] as isize * sizes[k] as isize) as u64;
        let launch = Launch { addresses: [at(0), at(1), 0, 0], given: [0; 3], words, mode: 0, count: 1, draw: None };
        launch.tiled::<2>(part, |items, params| {
            // SAFETY: the caller's contract.
            unsafe { cuda::launch(context, function, strided_blocks(items, threads), threads, stream, params) }
        })
    })
}
