//! `torch.result_type`: the element type in which the operands of a call meet, and their conversion to it.

use pointwise_core::{DType, OpInfo};

use super::{Operand, check};
use crate::error::{ErrorKind, Result};
use crate::tensor::{Tensor, TensorView};
use crate::{Number, Stream};

/// The element type in which operands meet, as `torch.result_type` has it.
///
/// Bool is below integers, and they are below floats. Of tensors with dimensions the types are promoted
/// ([`DType::promote_types`]); a tensor without dimensions, and then a number, changes the result only if it is of a
/// higher one of these three categories. A number is f32, i64 or bool.
///
/// ```
/// use pointwise::{DType, Device, Operand, Tensor, kernel::result_type};
///
/// let ints = Tensor::zeros(&Device::cpu(), DType::I8, [3])?;
/// let halves = Tensor::zeros(&Device::cpu(), DType::F16, [3])?;
/// assert_eq!(result_type(&[Operand::from(&ints), Operand::from(&halves)])?, DType::F16);
/// assert_eq!(result_type(&[Operand::from(&ints), Operand::from(1000)])?, DType::I8);
/// assert_eq!(result_type(&[Operand::from(&ints), Operand::from(0.5)])?, DType::F32);
/// # Ok::<(), pointwise::Error>(())
/// ```
///
/// # Errors
/// An fp8 type with another type, which PyTorch promotes no more; no operand.
pub fn result_type(operands: &[Operand<'_>]) -> Result<DType> {
    common("result_type", operands)
}

fn common<'a, 'v: 'a>(op: &str, operands: impl IntoIterator<Item = &'a Operand<'v>>) -> Result<DType> {
    let (mut tensors, mut scalars, mut numbers) = (None, None, None);
    for operand in operands {
        match operand {
            Operand::View(view) if view.shape().rank() > 0 => tensors = promoted(op, tensors, Some(view.dtype()))?,
            Operand::View(view) => scalars = promoted(op, scalars, Some(view.dtype()))?,
            Operand::Number(number) => numbers = promoted(op, numbers, category(*number))?,
        }
    }
    let found = met(op, tensors, scalars, numbers)?;
    Ok(found.ok_or_else(|| ErrorKind::Unsupported {
        what: format!("{op} of nothing"),
        advice: "give at least one tensor or number".to_owned(),
    })?)
}

/// Two types together; one that is not there counts for nothing.
///
/// # Errors
/// Types that have no common one.
pub(crate) fn promoted(op: &str, a: Option<DType>, b: Option<DType>) -> Result<Option<DType>> {
    match (a, b) {
        (Some(a), Some(b)) => match a.promote_types(b) {
            None => Err(ErrorKind::Promotion { op: op.to_owned(), a, b }.into()),
            both => Ok(both),
        },
        (a, b) => Ok(a.or(b)),
    }
}

/// The type in which tensors with dimensions, tensors without, and numbers meet. A lower one of these counts only if it is of a
/// higher category.
///
/// # Errors
/// Types that have no common one.
pub(crate) fn met(
    op: &str,
    tensors: Option<DType>,
    scalars: Option<DType>,
    numbers: Option<DType>,
) -> Result<Option<DType>> {
    let combine = |higher: Option<DType>, lower: Option<DType>| match (higher, lower) {
        (Some(high), _) if high.is_float() => Ok(higher),
        (Some(high), Some(low)) if high != DType::Bool && !low.is_float() => Ok(higher),
        _ => promoted(op, higher, lower),
    };
    combine(tensors, combine(scalars, numbers)?)
}

/// The type that a number counts as.
fn category(number: Number) -> Option<DType> {
    match number {
        Number::Default => None,
        Number::Float(_) => Some(DType::F32),
        Number::Int(_) => Some(DType::I64),
        Number::Bool(_) => Some(DType::Bool),
    }
}

/// The type in which `op` computes for operands that meet in `dtype`.
fn computed(info: &OpInfo, dtype: DType) -> Option<DType> {
    match info.supports(dtype) {
        true => Some(dtype),
        false => (info.properties.int_to_float && !dtype.is_float()).then_some(DType::F32),
    }
}

/// As [`computed`], of a fused kernel's step.
///
/// # Errors
/// A type that the op does not take.
pub(crate) fn computed_type(info: &OpInfo, dtype: DType) -> Result<DType> {
    if dtype == DType::Bool && info.properties.refuses_bool {
        return Err(check::wrong_dtype(info, dtype));
    }
    computed(info, dtype).ok_or_else(|| check::wrong_dtype(info, dtype))
}

/// Returns the type in which tensors of type `dtype` and a number meet.
fn raised(dtype: DType, number: Number) -> DType {
    match number {
        Number::Float(_) if !dtype.is_float() => DType::F32,
        Number::Int(_) if dtype == DType::Bool => DType::I64,
        _ => dtype,
    }
}

/// The type in which an op computes, with the parameters of a call; `None` where that is the type that all operands have,
/// or where the op converts none and leaves it to the check of its operands to refuse others. A bound (a parameter that is
/// infinite by default) counts as an operand.
///
/// # Errors
/// Types that do not go together, or in which the op has no kernels.
pub(super) fn common_type(info: &OpInfo, operands: &[Operand<'_>], params: &[Number]) -> Result<Option<DType>> {
    // A condition has no say, nor has any other operand of a fixed type.
    let values =
        || operands.iter().enumerate().filter(|(k, _)| info.fixed_operand(*k).is_none()).map(|(_, operand)| operand);
    let mut first = None;
    let (mut is_one, mut has_bool) = (true, false);
    for operand in values() {
        if let Operand::View(view) = operand {
            is_one &= *first.get_or_insert(view.dtype()) == view.dtype();
            has_bool |= view.dtype() == DType::Bool;
        }
    }
    let Some(first) = first else {
        return Ok(None);
    };
    for operand in values() {
        if let Operand::Number(number) = operand {
            is_one &= raised(first, *number) == first;
            has_bool |= matches!(number, Number::Bool(_));
        }
    }
    let bounds = params.iter().zip(info.params).filter(|(_, param)| param.default.is_infinite());
    let bounds = || bounds.clone().map(|(number, _)| *number);
    is_one &= bounds().all(|bound| raised(first, bound) == first);
    if has_bool && info.properties.refuses_bool {
        return Err(check::wrong_dtype(info, DType::Bool));
    }
    if (is_one && info.supports(first)) || !info.promotes() {
        return Ok(None);
    }
    let bounds: Vec<_> = bounds().map(Operand::Number).collect();
    let dtype = common(info.name, values().chain(&bounds))?;
    computed(info, dtype).map(Some).ok_or_else(|| check::wrong_dtype(info, dtype))
}

/// The tensors that operands of a call were converted to.
pub(super) struct Converted<const N: usize>([Option<Tensor>; N]);

impl<const N: usize> Default for Converted<N> {
    fn default() -> Self {
        Converted([const { None }; N])
    }
}

/// Refuses to convert a tensor in a call on a stream that is being captured: where the thread that captures allocates
/// memory, the driver spoils the capture, and what was converted would be gone before a graph reads it. (Without a
/// stream of its own a call allocates on its device's, which refuses.)
pub(super) fn refuse_capture(stream: Option<&Stream>, from: DType, to: DType) -> Result<()> {
    refuse_captured(stream, || {
        let what = format!("converting {from} to {to} in a call that is captured");
        (what, "make a tensor before the capture, by to_dtype() or to_tensor()")
    })
}

/// As [`refuse_capture`], of what needs memory for another reason: what that is, and what to do.
pub(crate) fn refuse_captured(stream: Option<&Stream>, words: impl FnOnce() -> (String, &'static str)) -> Result<()> {
    match stream {
        Some(stream) if stream.is_capturing()? => {
            let (what, advice) = words();
            Err(ErrorKind::Unsupported { what, advice: advice.to_owned() }.into())
        }
        _ => Ok(()),
    }
}

/// Converts a view, on the stream of the call.
///
/// # Errors
/// A stream that is being captured; those of a launch.
pub(crate) fn convert(view: &TensorView<'_>, dtype: DType, stream: Option<&Stream>) -> Result<Tensor> {
    refuse_capture(stream, view.dtype(), dtype)?;
    crate::kernel::ConvertKernel::new().on_stream(stream).run(view, dtype)
}

/// The operands with those of another type than `dtype` converted; `converted` keeps what they were converted to.
///
/// # Errors
/// Out of memory, and those of a launch.
pub(super) fn convert_all<'a, const N: usize>(
    info: &OpInfo,
    operands: &[Operand<'a>],
    dtype: DType,
    stream: Option<&Stream>,
    converted: &'a mut Converted<N>,
) -> Result<[Operand<'a>; N]> {
    let mut all = [Operand::Number(Number::Default); N];
    for ((k, operand), (slot, out)) in operands.iter().enumerate().zip(converted.0.iter_mut().zip(&mut all)) {
        *out = match operand {
            Operand::View(view) if view.dtype() != dtype && info.fixed_operand(k).is_none() => {
                let tensor = slot.insert(convert(&once(view)?, dtype, stream)?);
                Operand::View(tensor.view().expand(view.shape())?)
            }
            operand => *operand,
        };
    }
    Ok(all)
}

/// As [`convert_all`], with views of no memory where it converts: for a plan, which reads no elements.
///
/// # Errors
/// Views that cannot be.
pub(super) fn stand_in_all<'a, const N: usize>(
    info: &OpInfo,
    operands: &[Operand<'a>],
    dtype: DType,
) -> Result<[Operand<'a>; N]> {
    let mut all = [Operand::Number(Number::Default); N];
    for ((k, operand), out) in operands.iter().enumerate().zip(&mut all) {
        *out = match operand {
            Operand::View(view) if view.dtype() != dtype && info.fixed_operand(k).is_none() => {
                Operand::View(stand_in(&once(view)?, dtype, k)?.expand(view.shape())?)
            }
            operand => *operand,
        };
    }
    Ok(all)
}

/// The addresses from here on are nobody's: those of host and device memory alike have fewer bits.
const BEYOND_MEMORY: u64 = 1 << 63;

/// A view like that of a tensor that [`convert`] would make, where no tensor is.
pub(super) fn stand_in<'a>(view: &TensorView<'_>, dtype: DType, k: usize) -> Result<TensorView<'a>> {
    let shape = *view.shape();
    // Aligned as new tensors are; one for each operand: plans compare addresses.
    let address = BEYOND_MEMORY + 4096 * k as u64;
    // SAFETY: the view is for plans, which look at its address and layout, and read nothing through it.
    unsafe { TensorView::from_raw_parts(view.device(), address, dtype, shape, &shape.contiguous_strides()) }
}

/// The view with repeated elements taken once.
fn once<'a>(view: &TensorView<'a>) -> Result<TensorView<'a>> {
    let mut view = *view;
    for dim in 0..view.shape().rank() {
        if view.strides()[dim] == 0 && view.shape()[dim] > 1 {
            view = view.narrow(dim, 0, 1)?;
        }
    }
    Ok(view)
}
