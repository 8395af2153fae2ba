//! Conversion between element types: its definition, and the kernel object.

use std::ffi::c_void;

use pointwise_core::DType;
use pointwise_core::launch::Groups;
use pointwise_core::op::MAX_PARAMS;

use super::choice::head_within;
use super::walk::{Along, Class, Limit, Places, Walk, broadcast};
use super::{Entry, LaunchSettings, Strategy, check, launch_settings};
use crate::Stream;
use crate::cpu::{MapFn, Run};
use crate::cuda::{self, Context};
use crate::error::{Error, ErrorKind, Result};
use crate::tensor::{Overlap, Tensor, TensorView, TensorViewMut, overlap};

/// The conversions as the host knows them.
#[derive(Debug)]
pub(crate) struct ConvertDef {
    /// The loop over elements on the CPU.
    pub(crate) cpu: fn(DType, DType) -> Option<MapFn>,
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
    settings: LaunchSettings,
}

impl ConvertKernel {
    launch_settings! { settings;
        /// The strategy on CUDA devices: vectors ([`Strategy::RegisterCopy`], where they fit) or single elements
        /// ([`Strategy::Direct`]); another is taken as [`Strategy::Auto`].
    }

    /// As [`ConvertKernel::on`], where there is one.
    pub(super) fn on_maybe(mut self, stream: Option<&Stream>) -> Self {
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
        let walk = Walk::new(x.shape(), &[of(y), of(x), Along::default(), Along::default()]);
        match x.device().context() {
            None => {
                let null = std::ptr::null();
                let run = Run {
                    op: (self.def.cpu)(from, to).ok_or_else(|| no_kernel(from, to))?,
                    walk: &walk,
                    operands: [x.as_ptr(), null, null],
                    given: [None; 3],
                    y: target,
                    sizes: [to.size(), from.size(), 0, 0],
                    words: [0; MAX_PARAMS],
                };
                // SAFETY: the walk is of the views' shapes and strides; the caller's contract.
                unsafe { run.run() };
                Ok(())
            }
            Some(context) => {
                let mut own = None;
                let stream = self.settings.stream(x.device(), [x], [y], &mut own)?;
                // SAFETY: as above.
                unsafe { self.launch(context, stream, (from, to), &walk, [target.addr(), x.address()]) }
            }
        }
    }

    /// # Safety
    /// As [`ConvertKernel::execute`], of the result and the operand at `addresses`; `stream` is of the context.
    unsafe fn launch(
        &self,
        context: &'static Context,
        stream: &Stream,
        (from, to): (DType, DType),
        walk: &Walk,
        addresses: [usize; 2],
    ) -> Result<()> {
        let sizes = [to.size(), from.size()];
        let lanes = 16 / sizes[0].max(sizes[1]);
        let (_, steps) = walk.inner();
        let is_dense = walk.is_flat() && steps[0] == steps[1];
        let head = |at: [usize; 2]| {
            (0..lanes)
                .find(|head| at.iter().zip(sizes).all(|(at, size)| (at + head * size).is_multiple_of(lanes * size)))
        };
        let is_flat = is_dense && self.settings.strategy != Strategy::Direct && head(addresses).is_some();
        let class = if is_flat { Class::Flat } else { Class::Strided };
        let function = (self.def.entry)(from, to, class).ok_or_else(|| no_kernel(from, to))?.function(context)?;
        walk.parts(Limit::of(class, lanes), Places::default(), &mut |part, place| {
            let at: [usize; 2] =
                std::array::from_fn(|k| addresses[k].wrapping_add_signed(place[k] as isize * sizes[k] as isize));
            let (mut source, mut target) = (at[1] as u64, at[0] as u64);
            let mut queue = |blocks: u32, third: *mut c_void, fourth: *mut c_void| {
                let mut params = [(&raw mut source).cast(), (&raw mut target).cast(), third, fourth];
                // SAFETY: the parameters are those of the entry's class; walk and caller vouch for the memory.
                unsafe { cuda::launch(context, function, blocks, self.settings.threads, stream, &mut params) }
            };
            if is_flat {
                let mut n = part.numel();
                let mut head = head_within(head(at).map_or(0, |head| head as u32), n);
                let body = n - u64::from(head);
                let threads = body / lanes as u64 + body % lanes as u64 + u64::from(head);
                queue(
                    threads.div_ceil(u64::from(self.settings.threads)) as u32,
                    (&raw mut n).cast(),
                    (&raw mut head).cast(),
                )
            } else {
                let (mut groups, items): (Groups<2>, u64) = part.groups();
                let mut items = items as u32;
                let blocks = items.div_ceil(self.settings.threads);
                queue(blocks, (&raw mut groups).cast(), (&raw mut items).cast())
            }
        })
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
