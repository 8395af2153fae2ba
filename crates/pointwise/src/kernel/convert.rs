//! Conversion between element types: its definition, and the kernel object.

use pointwise_core::{DType, Draw, ParamWords};

use super::choice::{Arguments, Choice, Launcher, Tensors};
use super::walk::{Class, Walk, broadcast};
use super::{Entry, LaunchSettings, cache_room, check};
use crate::Stream;
use crate::cpu::{FormulaFn, FormulaRun};
use crate::error::{Error, ErrorKind, Result};
use crate::tensor::{Overlap, Tensor, TensorView, TensorViewMut, overlap};

/// The conversions as the host knows them.
#[derive(Debug)]
pub(crate) struct ConvertDef {
    /// The loop over elements on the CPU.
    pub(crate) cpu: fn(DType, DType) -> Option<FormulaFn>,
    /// The kernel of a class: by vectors, or by single elements.
    pub(crate) entry: fn(DType, DType, Class) -> Option<&'static Entry>,
}

impl ConvertDef {
    pub(crate) const fn kernel(&'static self) -> ConvertKernel {
        ConvertKernel { def: self, settings: LaunchSettings::new() }
    }
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
    def: &'static ConvertDef,
    pub(super) settings: LaunchSettings,
}

impl ConvertKernel {
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
        let x = x.into();
        let mut y = Tensor::empty(x.device(), dtype, x.shape())?;
        self.run_into(x, &mut y)?;
        Ok(y)
    }

    /// The elements of `x` as those of `y`, of any strides. Allocates nothing and waits for nothing, so that a CUDA
    /// graph can capture it.
    ///
    /// # Errors
    /// As [`ConvertKernel::run`], and: another shape or device of `y`, views that share memory but are not the same.
    pub fn run_into<'a, 'b>(&self, x: impl Into<TensorView<'a>>, y: impl Into<TensorViewMut<'b>>) -> Result<()> {
        let (x, mut y) = (x.into(), y.into());
        let what = || format!("the output of a conversion to {}", y.dtype());
        check::output(what, &y.as_view(), (x.dtype(), y.dtype()), x.shape(), x.device())?;
        if overlap(&x, &y.as_view()) == Overlap::Partial {
            let what = format!("input and output of a conversion to {}", y.dtype());
            return Err(ErrorKind::Overlap { what }.into());
        }
        let target = y.as_mut_ptr()?;
        // SAFETY: shapes, device and overlap are checked; both views are borrowed until the call is queued, and noted
        // as used on its stream.
        unsafe { self.execute(&x, target, &y.as_view()) }
    }

    /// # Safety
    /// `target` is the first element of `y`, which has the shape and device of `x`, may be written, and is equal to or
    /// disjoint from it.
    unsafe fn execute(&self, x: &TensorView<'_>, target: *mut u8, y: &TensorView<'_>) -> Result<()> {
        self.settings.check(x.device())?;
        if x.numel() == 0 {
            return Ok(());
        }
        let (from, to) = match (x.dtype(), y.dtype()) {
            (from, to) if from == to => (bits_of(from), bits_of(to)),
            pair => pair,
        };
        let of = |view: &TensorView<'_>| broadcast(view.shape(), view.strides(), x.shape());
        let walk = Walk::new(x.shape(), &[of(y), of(x)]);
        let sizes = [to.size(), from.size()];
        match x.device().context() {
            None => {
                let run = FormulaRun {
                    op: (self.def.cpu)(from, to).ok_or_else(|| no_kernel(from, to))?,
                    walk: &walk,
                    operands: &[x.as_ptr()],
                    given: &[None],
                    results: &[target],
                    sizes,
                    words: &ParamWords::default(),
                    draw: Draw::NONE,
                };
                // SAFETY: the walk is of the views' shapes and strides; the caller's contract.
                unsafe { run.run() };
                Ok(())
            }
            Some(context) => {
                let tensors = Tensors {
                    at: [target.addr(), x.address()],
                    sizes,
                    results: 1,
                    count: 2,
                    numbers: 0,
                    in_turns: false,
                    goes_across: false,
                };
                let lanes = 16 / sizes[0].max(sizes[1]);
                let room = cache_room(x.device());
                let choice = match tensors.choose(&walk, lanes, self.settings.strategy, room) {
                    choice if choice.class != Class::Rows => choice,
                    // There are no kernels of vectors along rows.
                    _ => Choice::singles(&walk, tensors),
                };
                let entry = (self.def.entry)(from, to, choice.class).ok_or_else(|| no_kernel(from, to))?;
                let function = entry.function(context)?;
                let held = self.settings.hold(context, [x], [y])?;
                let queue = Launcher { context, function, held, threads: self.settings.threads };
                let arguments = Arguments { tensors: 2, operands: 1, words: [&[], &[]], draw: None };
                // SAFETY: the entry is of the class and takes these arguments; the walk is of the views' shapes and
                // strides; the caller's contract.
                unsafe { queue.run(&choice, arguments) }
            }
        }
    }
}

#[cold]
fn no_kernel(from: DType, to: DType) -> Error {
    ErrorKind::NoKernel {
        symbol: format!("of the conversion of {from} to {to}"),
        why: "every pair should have one; please report this".to_owned(),
    }
    .into()
}
