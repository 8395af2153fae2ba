//! Conversion between element types: an op for each type that is converted to, and the kernel object.

pub(crate) mod functions;

use pointwise_core::{DType, Draw, Element, Kind, OpInfo};

use super::choice::{Arguments, Choice, Launcher, Tensors};
use super::walk::{Class, Walk, broadcast};
use super::{Entry, Kernel, KernelPlan, LaunchSettings, OpDef, Operand, OwnCall, OwnKernels, cache_room, check};
use crate::Stream;
use crate::cpu::FormulaRun;
use crate::element::with_element;
use crate::error::Result;
use crate::tensor::{Tensor, TensorView, TensorViewMut};

/// The loops and kernels of every pair of types.
mod pairs {
    pointwise_macros::host! { (crate) (*crate::embed::embedded()) Conversions; }
}

/// The loops and kernels of the conversions to a type.
#[derive(Debug)]
struct Conversions {
    to: DType,
}

/// Returns the op that converts to `dtype`.
pub(crate) fn to(dtype: DType) -> &'static OpDef {
    with_element!(dtype, E => {
        static OWN: Conversions = Conversions { to: E::DTYPE };
        const INFO: OpInfo = OpInfo {
            name: "to_dtype",
            kind: Kind::Convert,
            operands: &["x"],
            result_types: &[Some(E::DTYPE)],
            types: &DType::ALL,
            doc: "The elements as another type.\n",
            ..OpInfo::FORMULA
        };
        static TO: OpDef = OpDef::with_own_kernels(INFO, &OWN, None);
        &TO
    })
}

/// The type whose elements are copied in place of others of the same width.
pub(crate) const fn bits_of(dtype: DType) -> DType {
    match dtype.size() {
        1 => DType::I8,
        2 => DType::I16,
        4 => DType::I32,
        _ => DType::I64,
    }
}

/// `tensor.to(dtype)` with its launch settings.
///
/// | from | to | rule |
/// |---|---|---|
/// | float | float | one rounding to nearest even; f8e4m3 saturates, the others overflow to infinity |
/// | integer | float | one rounding of the whole value, 64 bits too |
/// | float | i8, i16, i32, i64 | towards zero; beyond the range its nearest end; NaN is 0 |
/// | float | u8 | as to i64, of which the low 8 bits: -1.0 is 255, as in PyTorch |
/// | integer | integer | the low bits |
/// | any | bool | whether it is not 0; NaN is true |
/// | bool | any | 0 or 1 |
///
/// A type to itself copies the elements' bits. PyTorch leaves a float beyond a signed integer's range to the machine,
/// and its f8e4m3 becomes NaN where this one saturates.
///
/// ```
/// use pointwise::{DType, Device, Tensor, kernels};
///
/// let x = Tensor::from_slice(&Device::cpu(), &[-1.7_f32, 0.0, 300.0], [3])?;
/// assert_eq!(kernels::to_dtype().run(&x, DType::I8)?.to_vec::<i8>()?, [-1, 0, 127]);
/// assert_eq!(x.to_dtype(DType::Bool)?.to_vec::<bool>()?, [true, false, true]);
/// # Ok::<(), pointwise::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct ConvertKernel {
    pub(super) settings: LaunchSettings,
}

impl ConvertKernel {
    pub(crate) const fn new() -> Self {
        ConvertKernel { settings: LaunchSettings::new() }
    }

    /// The op that converts to `dtype`.
    fn kernel(&self, dtype: DType) -> Kernel<'static> {
        Kernel { settings: self.settings.clone(), ..to(dtype).kernel(&[]) }
    }

    /// As [`ConvertKernel::on`], where there is one.
    pub(super) fn on_stream(mut self, stream: Option<&Stream>) -> Self {
        self.settings.stream = stream.cloned();
        self
    }

    /// The elements of `x` as `dtype`, in a new contiguous tensor.
    ///
    /// # Errors
    /// A stream of another device, bad launch settings, a missing kernel, out of memory, the driver's.
    pub fn run<'a>(&self, x: impl Into<TensorView<'a>>, dtype: DType) -> Result<Tensor> {
        self.kernel(dtype).run_one(&[Operand::View(x.into())])
    }

    /// The elements of `x` as those of `y`, of any strides. Allocates nothing and waits for nothing, so that a CUDA
    /// graph can capture it.
    ///
    /// # Errors
    /// As [`ConvertKernel::run`], and: another shape or device of `y`, views that share memory but are not the same.
    pub fn run_into<'a, 'b>(&self, x: impl Into<TensorView<'a>>, y: impl Into<TensorViewMut<'b>>) -> Result<()> {
        let y = y.into();
        self.kernel(y.dtype()).run_into(&[Operand::View(x.into())], &mut [y])
    }
}

impl Conversions {
    /// The types between which a conversion from `from` moves elements: for a type to itself, integers of its width.
    fn pair(&self, from: DType) -> (DType, DType) {
        if from == self.to { (bits_of(from), bits_of(from)) } else { (from, self.to) }
    }
}

impl OwnKernels for Conversions {
    unsafe fn run(&self, call: &OwnCall<'_>) -> Result<()> {
        let ([Some(x)], [Some(y)], [target]) = (call.operands, call.results, call.pointers) else { return Ok(()) };
        if x.numel() == 0 {
            return Ok(());
        }
        let (from, to) = self.pair(call.dtype);
        let walk = walk(x, y);
        let Some(context) = x.device().context() else {
            let run = FormulaRun {
                op: pairs::cpu(from, to).ok_or_else(|| check::no_kernel(&call.kernel.def.info, from))?,
                walk: &walk,
                operands: &[x.as_ptr()],
                given: &[None],
                results: &[*target],
                dtypes: [to, from],
                words: call.words,
                draw: Draw::NONE,
            };
            // SAFETY: the walk is of the views' shapes and strides; the caller's contract.
            unsafe { run.run() };
            return Ok(());
        };
        let choice = choose(call, (from, to), &walk, [y.address(), x.address()]);
        let entries = pairs::entries(from, to).ok_or_else(|| check::no_kernel(&call.kernel.def.info, from))?;
        let function = entries[usize::from(choice.class == Class::Flat)].function(context)?;
        let settings = &call.kernel.settings;
        let queue = Launcher { context, function, held: settings.hold(context, [x], [y])?, threads: settings.threads };
        let arguments = Arguments { tensors: 2, operands: 1, words: [&[], &[]], draw: None };
        // SAFETY: the entry is of the class and takes these arguments; the walk is of the views' shapes and strides; the
        // caller's contract.
        unsafe { queue.run(&choice, arguments) }
    }

    fn plan(&self, call: &OwnCall<'_>) -> Result<KernelPlan> {
        let info = &call.kernel.def.info;
        let ([Some(x)], [Some(y)]) = (call.operands, call.results) else {
            return Err(check::wrong_count(info, "operands", info.operands, 0));
        };
        let walk = walk(x, y);
        let choice = choose(call, self.pair(call.dtype), &walk, [y.address(), x.address()]);
        Ok(choice.plan(walk.dims().len(), call.kernel.settings.threads, x.numel() as u64))
    }

    fn entries(&self, dtype: DType) -> Option<&'static [Entry; 2]> {
        let (from, to) = self.pair(dtype);
        pairs::entries(from, to)
    }

    fn is_apart(&self, _: usize) -> bool {
        false
    }
}

/// The loop over the result, then the operand.
fn walk(x: &TensorView<'_>, y: &TensorView<'_>) -> Walk<2> {
    let of = |view: &TensorView<'_>| broadcast(view.shape(), view.strides(), x.shape());
    Walk::new(x.shape(), &[of(y), of(x)])
}

/// The kernel for a walk over a result and an operand at these addresses.
fn choose(call: &OwnCall<'_>, (from, to): (DType, DType), walk: &Walk<2>, at: [usize; 2]) -> Choice<2> {
    let dtypes = [to, from];
    let tensors = Tensors { at, dtypes, results: 1, count: 2, numbers: 0, in_turns: false, goes_across: false };
    let device = call.operands[0].map_or_else(crate::Device::cpu, |x| *x.device());
    let lanes = 16 / to.size().max(from.size());
    match tensors.choose(walk, lanes, call.kernel.settings.strategy, cache_room(&device)) {
        choice if choice.class != Class::Rows => choice,
        // There are no kernels of vectors along rows.
        _ => Choice::singles(walk, tensors),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pair_has_kernels() {
        for from in DType::ALL {
            for to in DType::ALL {
                let (from, to) = if from == to { (bits_of(from), bits_of(to)) } else { (from, to) };
                assert!(pairs::cpu(from, to).is_some(), "{from} {to}");
                let entries = pairs::entries(from, to).unwrap();
                for (found, class) in entries.iter().zip(["strided", "flat"]) {
                    assert_eq!(found.symbol(), format!("convert_{from}_{to}_{class}"));
                    assert!(crate::embed::embedded().is_empty() || found.is_embedded(), "{found:?}");
                }
            }
        }
    }
}
