//! One call of an op on torch's tensors: what operands have in common, new results, the stage, and the run.

use std::sync::OnceLock;

use pointwise::kernel::Rng;
use pointwise::{DType, Device, Number, Operand, Philox, Stream};

use crate::abi::{Api, Element, Handle};
use crate::aligned::{Aligned, With};
use crate::dense::Copies;
use crate::operand::{Argument, Known, number, of_type, scalar};
use crate::registry::{Call, OpSpec};
use crate::results::{layout_of_results, like_operands, own_layouts};
use crate::tensor::{Place, Raw, Tensor, overlap, shares};
use crate::view::{RANK, say, view, view_mut};
use crate::{double, layout};

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
        if aligned.is_empty(op) {
            return Ok(());
        }
        // SAFETY: the caller's promise.
        return unsafe { if element == Element::F64 { double::run(aligned, &with) } else { aligned.run(&with) } };
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
