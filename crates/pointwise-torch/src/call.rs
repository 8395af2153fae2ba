//! One call of an op on torch's tensors: what operands have in common, new results, and the run.

use std::sync::OnceLock;

use pointwise::element::{number as number_of, with_element};
use pointwise::kernel::Rng;
use pointwise::{DType, Device, Number, Operand, Philox, Stream, TensorView, TensorViewMut};

use crate::abi::{Api, Element, Handle};
use crate::aligned::{Aligned, With};
use crate::dense::Copies;
use crate::layout;
use crate::registry::{Call, Form, OpSpec, ResultSpec};
use crate::tensor::{Place, Raw, Tensor, overlap, shares};

/// An operand.
#[derive(Debug)]
pub(crate) enum Argument {
    /// A tensor.
    Tensor(Tensor),
    /// A number.
    Number(Number),
}

/// The most dimensions of pointwise's views.
pub(crate) const RANK: usize = 8;

pub(crate) fn say(error: pointwise::Error) -> String {
    error.to_string()
}

/// A number as an op on elements of a type takes it: whole for integers, 0 or 1 for bool.
pub(crate) fn number(value: Number, element: Element) -> Number {
    match (element, value) {
        (Element::Of(DType::Bool), Number::Float(value)) if value == 0.0 || value == 1.0 => Number::Bool(value != 0.0),
        (Element::Of(DType::Bool), _) => value,
        (_, Number::Bool(value)) => Number::Int(value.into()),
        (Element::Of(dtype), Number::Float(value))
            if !dtype.is_float() && value == value.trunc() && value.abs() < 9e18 =>
        {
            Number::Int(value as i64)
        }
        _ => value,
    }
}

/// A number as a float: `default` for one that is not given.
pub(crate) fn real(value: Number, default: Option<f64>) -> Option<f64> {
    match value {
        Number::Float(value) => Some(value),
        Number::Int(value) => Some(value as f64),
        Number::Bool(value) => Some(f64::from(u8::from(value))),
        _ => default,
    }
}

/// A parameter as torch converts it to integers: a factor wraps in u8, bounds of `hardtanh` are cut.
fn of_type(param: Number, name: &str, element: Element) -> Number {
    let Number::Float(value) = param else { return param };
    let is_whole = matches!(element, Element::Of(dtype) if !dtype.is_float());
    match name {
        "alpha" if element == Element::Of(DType::U8) && value == value.trunc() => {
            number(Number::Float(value.rem_euclid(256.0)), element)
        }
        "min_val" | "max_val" if element == Element::Of(DType::U8) => {
            number(Number::Float(value.trunc().clamp(0.0, 255.0)), element)
        }
        "min_val" | "max_val" if is_whole => number(Number::Float(value.trunc()), element),
        _ => number(param, element),
    }
}

/// Makes a random op's source from a tensor of two i64, seed and offset. On the CPU they are read now; on a CUDA device
/// the kernel reads them, so that a CUDA graph draws anew at each launch.
///
/// # Errors
/// Another tensor.
///
/// # Safety
/// The tensor lives, and is not written to, until the kernel has run.
pub(crate) unsafe fn draws<'a>(api: &Api, seed: &Tensor) -> Result<Rng<'a>, String> {
    let raw = seed.raw(api)?;
    if raw.element != Element::Of(DType::I64) || raw.sizes != [2] || raw.strides != [1] {
        return Err("the seed of a random op is a contiguous int64 tensor of 2 elements".to_owned());
    }
    match raw.place {
        Place::Cpu => {
            let data = raw.data.cast::<u64>();
            // SAFETY: two elements of 8 bytes; torch aligns its tensors.
            Ok(Rng::Philox(unsafe { Philox::new(data.read()).at(data.add(1).read()) }))
        }
        Place::Cuda(index) => {
            let device = Device::cuda(index.max(0) as usize).map_err(say)?;
            // SAFETY: the caller's promise.
            Ok(Rng::Memory(unsafe { view(&device, raw.data, raw.element, raw.sizes, raw.strides) }?))
        }
    }
}

/// The value of a tensor without dimensions on the CPU: beside tensors of a CUDA device it is a number.
pub(crate) fn scalar(raw: &Raw<'_>) -> Number {
    let data = raw.data;
    // SAFETY: one element of this type.
    unsafe {
        match raw.element {
            Element::F64 => data.cast::<f64>().read().into(),
            Element::Of(dtype) => with_element!(dtype, E => number_of(data.cast::<E>().read())),
        }
    }
}

/// An operand as it is known: a tensor's memory, or a number.
#[derive(Clone, Copy)]
pub(crate) enum Known<'a> {
    Tensor(Raw<'a>),
    Number(Number),
}

/// Runs an op. Results are new tensors, or the tensors of `outs` if there are any.
///
/// # Errors
/// Operands that do not go together; results that do not fit; errors of the op.
pub(crate) fn run(
    api: &Api,
    op: &OpSpec,
    operands: &[Argument],
    params: &[Number],
    rng: Rng<'_>,
    outs: Vec<Tensor>,
) -> Result<Vec<Tensor>, String> {
    let mut known = Vec::with_capacity(operands.len());
    for operand in operands {
        known.push(match operand {
            Argument::Tensor(tensor) => Known::Tensor(tensor.raw(api)?),
            Argument::Number(number) => Known::Number(*number),
        });
    }
    let (element, place) = match leader(op, &known) {
        Some(found) => found,
        // A generator has its result alone.
        None => match outs.first() {
            Some(out) => out.raw(api).map(|raw| (raw.element, raw.place))?,
            None => return Err(format!("{} of no tensor", op.name)),
        },
    };
    run_known(api, op, known, (element, place), params, rng, outs)
}

/// [`run`] of operands that are known, by the element type and the place of the call.
///
/// # Errors
/// The errors of [`run`].
pub(crate) fn run_known(
    api: &Api,
    op: &OpSpec,
    mut known: Vec<Known<'_>>,
    (element, place): (Element, Place),
    params: &[Number],
    rng: Rng<'_>,
    outs: Vec<Tensor>,
) -> Result<Vec<Tensor>, String> {
    for (known, spec) in known.iter_mut().zip(&op.operands) {
        let Known::Tensor(raw) = known else { continue };
        let expected = spec.element(element);
        if raw.element != expected {
            return Err(format!("{}: {} is {:?}, expected {:?}", op.name, spec.name, raw.element, expected));
        }
        if raw.place != place {
            if raw.place != Place::Cpu || !raw.sizes.is_empty() || spec.dtype.is_some() {
                return Err(format!(
                    "Expected all tensors to be on the same device, but {} of {} is on {:?} and not on {place:?}",
                    spec.name, op.name, raw.place
                ));
            }
            *known = Known::Number(scalar(raw));
        }
    }
    let params: Vec<Number> =
        params.iter().zip(&op.params).map(|(param, spec)| of_type(*param, spec.name, element)).collect();
    let (made, own, mut results, mut raws);
    if outs.is_empty() {
        let (sizes, strides) = match like_operands(op, &known) {
            Some(like) => like,
            None => {
                made = layout_of_results(op, &known)?;
                (&made.0[..], &made.1[..])
            }
        };
        own = own_layouts(op, &known, sizes);
        (results, raws) = (Vec::with_capacity(op.results.len()), Vec::with_capacity(op.results.len()));
        for (k, spec) in op.results.iter().enumerate() {
            let element = spec.element(element);
            let (sizes, strides) = match own.get(k) {
                Some(Some((sizes, strides))) => (&sizes[..], &strides[..]),
                _ => (sizes, strides),
            };
            let result = Tensor::empty(api, sizes, strides, element, place)?;
            raws.push(Raw { data: result.data(api)?, element, sizes, strides, place });
            results.push(result);
        }
    } else {
        results = outs;
        raws = Vec::with_capacity(results.len());
        for (result, spec) in results.iter().zip(&op.results) {
            let raw = result.raw(api)?;
            let expected = spec.element(element);
            if raw.place != place {
                return Err(format!(
                    "Expected all tensors to be on the same device, but the tensor for {} of {} is on {:?} and not on {place:?}",
                    spec.name, op.name, raw.place
                ));
            }
            if raw.element != expected {
                return Err(format!(
                    "{}: the result {} is {expected:?}, the tensor for it {:?}",
                    op.name, spec.name, raw.element
                ));
            }
            raws.push(raw);
        }
    }
    // SAFETY: torch vouches for its tensors while they are held, which the caller does.
    unsafe { launch(api, op, &known, &raws, (element, place), &params, rng) }?;
    Ok(results)
}

/// Returns the element type and place of a call. The first tensor whose type is not fixed has them; a tensor with
/// dimensions comes before one that is a number in effect. An op whose operands are all of fixed types has the first of its
/// own.
fn leader(op: &OpSpec, known: &[Known<'_>]) -> Option<(Element, Place)> {
    let mut found: Option<&Raw<'_>> = None;
    let is_free = op.operands.iter().any(|spec| spec.dtype.is_none());
    for (known, spec) in known.iter().zip(&op.operands) {
        if let Known::Tensor(raw) = known
            && (spec.dtype.is_none() || !is_free)
            && found.is_none_or(|found| found.sizes.is_empty() && found.place == Place::Cpu && raw.place != Place::Cpu)
        {
            found = Some(raw);
        }
    }
    found.map(|raw| (if is_free { raw.element } else { Element::Of(op.dtypes[0]) }, raw.place))
}

/// Sizes and strides of new results in the usual call: operands of one shape, one element after another.
fn like_operands<'a>(op: &OpSpec, known: &[Known<'a>]) -> Option<(&'a [i64], &'a [i64])> {
    let mut tensors = known.iter().filter_map(|known| match known {
        Known::Tensor(raw) => Some(*raw),
        Known::Number(_) => None,
    });
    let first = tensors
        .next()
        .filter(|first| op.form == Form::Elementwise && layout::is_contiguous(first.sizes, first.strides))?;
    tensors.all(|raw| raw.sizes == first.sizes && raw.strides == first.strides).then_some((first.sizes, first.strides))
}

/// The shape that operands broadcast to. One that each row has once counts with a last dimension of 1; an element of a group as all of
/// the group.
///
/// # Errors
/// Shapes that do not go together; a last dimension that is no multiple of the group.
pub(crate) fn shape_of_rows(op: &OpSpec, known: &[Known<'_>]) -> Result<Vec<i64>, String> {
    let mut shapes = Vec::with_capacity(known.len());
    for (known, operand) in known.iter().zip(&op.operands) {
        if let Known::Tensor(raw) = known {
            let mut sizes = raw.sizes.to_vec();
            match sizes.last_mut() {
                _ if operand.is_row && op.group == 0 => sizes.push(1),
                Some(groups) if operand.is_row && *groups != 1 => *groups = groups.saturating_mul(op.group),
                _ => {}
            }
            shapes.push(sizes);
        }
    }
    let sizes = layout::broadcast(shapes.iter().map(Vec::as_slice))?;
    if op.group != 0 && sizes.last().is_none_or(|last| last % op.group != 0) {
        let group = op.group;
        return Err(format!("{}: the last dimension must be a multiple of {group}, the sizes are {sizes:?}", op.name));
    }
    Ok(sizes)
}

/// Sizes and strides of what each row has once, in a call of `sizes`.
fn once_a_row(op: &OpSpec, sizes: &[i64]) -> (Vec<i64>, Vec<i64>) {
    let (mut own, strides) = layout::once_a_row(sizes);
    match sizes.last() {
        Some(last) if op.group != 0 => {
            own.push(last / op.group);
            let strides = layout::contiguous(&own);
            (own, strides)
        }
        _ => (own, strides),
    }
}

/// Sizes and strides of new results, but of those that each row has once.
///
/// # Errors
/// Shapes that do not go together.
pub(crate) fn layout_of_results(op: &OpSpec, known: &[Known<'_>]) -> Result<(Vec<i64>, Vec<i64>), String> {
    let mut tensors: Vec<(&[i64], &[i64])> = Vec::with_capacity(known.len());
    for (known, operand) in known.iter().zip(&op.operands) {
        // An operand with an element for each channel does not count.
        if let (Known::Tensor(raw), false) = (known, operand.is_channel) {
            tensors.push((raw.sizes, raw.strides));
        }
    }
    Ok(match op.form {
        Form::Elementwise | Form::Channel => {
            let sizes = layout::broadcast(tensors.iter().map(|(sizes, _)| *sizes))?;
            let strides =
                if op.has_place() { layout::contiguous(&sizes) } else { layout::of_result(&sizes, &tensors)? };
            (sizes, strides)
        }
        Form::Halves => {
            let mut sizes = tensors.first().map(|(sizes, _)| sizes.to_vec()).unwrap_or_default();
            match sizes.last_mut() {
                Some(last) if *last % 2 == 0 => *last /= 2,
                _ => return Err(format!("{}: the last dimension of x must be even, x is {sizes:?}", op.name)),
            }
            let strides = layout::contiguous(&sizes);
            (sizes, strides)
        }
        Form::HalvesGradient => {
            let sizes = tensors.last().map(|(sizes, _)| sizes.to_vec()).unwrap_or_default();
            let strides = layout::contiguous(&sizes);
            (sizes, strides)
        }
        Form::Rows => {
            let sizes = shape_of_rows(op, known)?;
            let strides = layout::contiguous(&sizes);
            (sizes, strides)
        }
        Form::Generator => return Err(format!("{} writes to a tensor that is given", op.name)),
    })
}

/// Returns sizes and strides of each result that does not have `sizes`, of an op on rows: those that each row has once, and gradients
/// of weights that are summed over rows. None for other ops.
pub(crate) fn own_layouts(op: &OpSpec, known: &[Known<'_>], sizes: &[i64]) -> Vec<Option<(Vec<i64>, Vec<i64>)>> {
    if op.form != Form::Rows {
        return Vec::new();
    }
    let len = &sizes[sizes.len().saturating_sub(1)..];
    let is_row = |own: &[i64]| {
        own.last().is_none_or(|last| len == [*last]) && own.iter().product::<i64>() == len.iter().product::<i64>()
    };
    let mut weights = op.results.iter().filter_map(|spec| spec.weight);
    let is_summed = weights.all(|weight| match &known[weight] {
        Known::Tensor(raw) => raw.sizes.iter().product::<i64>() == 1 || is_row(raw.sizes),
        Known::Number(_) => true,
    });
    let of = |spec: &ResultSpec| {
        if spec.is_row {
            return Some(once_a_row(op, sizes));
        }
        let own = match &known[spec.weight.filter(|_| is_summed)?] {
            Known::Tensor(raw) if is_row(raw.sizes) => raw.sizes,
            _ => len,
        };
        Some((own.to_vec(), layout::contiguous(own)))
    };
    op.results.iter().map(of).collect()
}

/// Runs an op whose tensors are known.
///
/// # Safety
/// All tensors are alive, and nobody writes to them meanwhile but in the order of the device's current stream.
unsafe fn launch(
    api: &Api,
    op: &OpSpec,
    known: &[Known<'_>],
    results: &[Raw<'_>],
    (element, place): (Element, Place),
    params: &[Number],
    rng: Rng<'_>,
) -> Result<(), String> {
    let Stage { device, stream, .. } = &Stage::new(api, place)?;
    // SAFETY: the caller's promise.
    unsafe { launch_on(Some(api), op, known, results, element, device, stream.as_ref(), params, rng) }
}

/// [`launch`] on a device and a stream of it; without one on the device's own. With `api` torch allocates what the call needs
/// meanwhile, so that torch can capture it.
///
/// # Safety
/// All tensors are alive, and nobody writes to them meanwhile but in the order of `stream`.
#[expect(clippy::too_many_arguments, reason = "a call in all its parts")]
pub(crate) unsafe fn launch_on(
    api: Option<&Api>,
    op: &OpSpec,
    known: &[Known<'_>],
    results: &[Raw<'_>],
    element: Element,
    device: &Device,
    stream: Option<&Stream>,
    params: &[Number],
    rng: Rng<'_>,
) -> Result<(), String> {
    let copies = match api {
        // SAFETY: the caller's promise.
        Some(api) => unsafe { Copies::new(api, op, known, results, device, stream) }?.map(|copies| (api, copies)),
        None => None,
    };
    let dense = copies.as_ref().map(|(api, copies)| copies.operands(api, known)).transpose()?;
    let known = dense.as_deref().unwrap_or(known);
    // Groups are one dimension more.
    let is_deep = |sizes: &[i64]| sizes.len() + usize::from(op.group != 0) > RANK;
    let deep = results.iter().any(|raw| is_deep(raw.sizes))
        || known.iter().any(|known| matches!(known, Known::Tensor(raw) if is_deep(raw.sizes)));
    if element == Element::F64 || deep {
        refuse_shared(op, known, results)?;
        let aligned = Aligned::new(op, known, results)?;
        let with = With { op, element, device, stream, params, rng };
        // SAFETY: the caller's promise.
        return unsafe { aligned.run(&with) };
    }
    let mut operands = Vec::with_capacity(known.len());
    for (known, spec) in known.iter().zip(&op.operands) {
        operands.push(match known {
            Known::Number(value) => Operand::Number(number(*value, element)),
            Known::Tensor(raw) => {
                // SAFETY: the caller's promise.
                Operand::View(unsafe { view(device, raw.data, spec.element(element), raw.sizes, raw.strides) }?)
            }
        });
    }
    let mut targets = Vec::with_capacity(results.len());
    for (raw, spec) in results.iter().zip(&op.results) {
        // SAFETY: the caller's promise.
        targets.push(unsafe { view_mut(device, raw.data, spec.element(element), raw.sizes, raw.strides) }?);
    }
    let call = Call { operands: &operands, params, rng, stream };
    let (Some(api), Some(sizes), Some(first)) = (api, op.workspace(&call).map_err(say)?, results.first()) else {
        return op.call(&call, &mut targets, None).map_err(say);
    };
    let (element, strides) = (Element::Of(DType::F32), layout::contiguous(&sizes));
    let memory = Tensor::empty(api, &sizes, &strides, element, first.place)?;
    // SAFETY: a new tensor, which torch's allocator gives to later work of this stream alone once it is dropped.
    let workspace = unsafe { view_mut(device, memory.data(api)?, element, &sizes, &strides) }?;
    op.call(&call, &mut targets, Some(workspace)).map_err(say)
}

/// Refuses results that share memory with each other, or with operands that are not in their place: other calls leave
/// that to pointwise.
fn refuse_shared(op: &OpSpec, known: &[Known<'_>], results: &[Raw<'_>]) -> Result<(), String> {
    for (k, (result, spec)) in results.iter().zip(&op.results).enumerate() {
        let operands = known.iter().filter_map(|known| match known {
            Known::Tensor(raw) => Some(raw),
            Known::Number(_) => None,
        });
        if shares(result, operands) || results[..k].iter().any(|other| overlap(other, result)) {
            return Err(format!(
                "{}: the tensor for {} shares memory with an operand or another result, or with itself: clone() it first",
                op.name, spec.name
            ));
        }
    }
    Ok(())
}

/// A view of torch's memory. (f64 has none.)
///
/// # Safety
/// The memory is a tensor's of these dimensions.
pub(crate) unsafe fn view<'a>(
    device: &Device,
    data: *mut u8,
    element: Element,
    sizes: &[i64],
    strides: &[i64],
) -> Result<TensorView<'a>, String> {
    let (dtype, shape) = parts(element, sizes)?;
    // SAFETY: the caller's promise.
    unsafe { TensorView::from_raw_parts(device, data, dtype, &shape[..sizes.len()], strides) }.map_err(say)
}

/// A view of torch's memory, to write.
///
/// # Safety
/// The memory is a tensor's of these dimensions, and nothing else reads it while the view lives.
pub(crate) unsafe fn view_mut<'a>(
    device: &Device,
    data: *mut u8,
    element: Element,
    sizes: &[i64],
    strides: &[i64],
) -> Result<TensorViewMut<'a>, String> {
    let (dtype, shape) = parts(element, sizes)?;
    // SAFETY: the caller's promise.
    unsafe { TensorViewMut::from_raw_parts(device, data, dtype, &shape[..sizes.len()], strides) }.map_err(say)
}

/// Type and shape of a view.
fn parts(element: Element, sizes: &[i64]) -> Result<(DType, [usize; RANK]), String> {
    let dtype = match element {
        Element::Of(dtype) => dtype,
        Element::F64 => return Err("float64 has no kernels here".to_owned()),
    };
    let mut shape = [0; RANK];
    for (to, from) in shape.iter_mut().zip(sizes) {
        *to = *from as usize;
    }
    Ok((dtype, shape))
}

/// torch's current stream of a device.
fn current_stream(api: &Api, device: &Device, index: i32) -> Result<Stream, String> {
    let cuda = api.cuda.as_ref().ok_or("this torch has no CUDA")?;
    let mut stream = std::ptr::null_mut();
    // SAFETY: the pointer is where the stream goes.
    if unsafe { (cuda.current_stream)(index, &mut stream) } != 0 {
        return Err(format!("torch has no current stream on CUDA device {index}"));
    }
    // SAFETY: torch's streams live as long as the process.
    unsafe { Stream::from_raw(device, stream) }.map_err(say)
}

/// The stage of a call: the device, which is the current one meanwhile, and torch's current stream.
pub(crate) struct Stage<'a> {
    /// The device.
    pub(crate) device: Device,
    /// The stream, on a CUDA device.
    pub(crate) stream: Option<Stream>,
    _guard: Guard<'a>,
}

impl<'a> Stage<'a> {
    /// Returns the stage for tensors in a memory.
    ///
    /// # Errors
    /// A device that cannot be used.
    pub(crate) fn new(api: &'a Api, place: Place) -> Result<Stage<'a>, String> {
        let _guard = Guard::new(api, place)?;
        let (device, stream) = match place {
            Place::Cpu => (Device::cpu(), None),
            Place::Cuda(index) => {
                let device = Device::cuda(index.max(0) as usize).map_err(say)?;
                let stream = current_stream(api, &device, index)?;
                (device, Some(stream))
            }
        };
        Ok(Stage { device, stream, _guard })
    }
}

/// Makes a CUDA device the current one, and that which was so again.
struct Guard<'a>(Option<(&'a Api, Handle)>);

impl<'a> Guard<'a> {
    fn new(api: &'a Api, place: Place) -> Result<Guard<'a>, String> {
        // A launch makes the device's context current itself, and then the one that was so before. A thread that had none
        // keeps the device's, which says something only where there are several devices.
        static SEVERAL: OnceLock<bool> = OnceLock::new();
        let Place::Cuda(index) = place else { return Ok(Guard(None)) };
        if !SEVERAL.get_or_init(|| Device::cuda_count() > 1) {
            return Ok(Guard(None));
        }
        let cuda = api.cuda.as_ref().ok_or("this torch has no CUDA")?;
        let mut handle = std::ptr::null_mut();
        // SAFETY: the pointer is where the guard goes.
        if unsafe { (cuda.create_guard)(index, &mut handle) } != 0 {
            return Err(format!("torch could not make CUDA device {index} the current one"));
        }
        Ok(Guard(Some((api, handle))))
    }
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        if let Some((api, handle)) = self.0
            && let Some(cuda) = &api.cuda
        {
            // SAFETY: the guard is ours, and dropped once.
            unsafe { (cuda.delete_guard)(handle) };
        }
    }
}
