//! A call: its operands brought together, and run on one device or the other.

use pointwise_core::{DType, ResultType};

use super::MapDef;
use super::launch::walk;
use crate::Number;
use crate::cpu::Run;
use crate::error::{ErrorKind, Result};
use crate::kernel::promote::{self, Converted};
use crate::kernel::{LaunchSettings, Operand, check, ready, scalar};
use crate::tensor::{Overlap, Tensor, TensorView, TensorViewMut, overlap};
use crate::tuner::Choices;

/// Checked operands.
pub(super) type Ready<'a> = ready::Ready<'a, 3>;

/// An op with its parameters and launch settings.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) def: &'static MapDef,
    pub(crate) params: scalar::Params,
    pub(crate) settings: LaunchSettings,
    pub(crate) tuned: Option<Choices>,
}

impl Call {
    /// The op with parameters, and launch settings as they are where nothing else is asked for.
    pub(in crate::kernel) fn new(def: &'static MapDef, params: &[Number]) -> Call {
        let params = scalar::given(params);
        Call { def, params, settings: LaunchSettings::new(), tuned: None }
    }

    /// The result in a new tensor.
    pub(in crate::kernel) fn run(&self, operands: &[Operand<'_>]) -> Result<Tensor> {
        let mut converted = Converted::default();
        let promoted = self.promoted(operands, &mut converted)?;
        let operands = promoted.as_ref().map_or(operands, |promoted| &promoted[..operands.len()]);
        let ready = self.ready(operands)?;
        let mut y = Tensor::empty(&ready.device, self.def.info.result.of(ready.dtype), ready.shape)?;
        let target = y.as_mut_ptr()?;
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
        let target = y.as_mut_ptr()?;
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
        promote::convert_all(info, operands, dtype, self.settings.stream.as_ref(), converted).map(Some)
    }

    /// The result over `y`, which is operand `at`, whatever `operands` has there. Operands of another type are
    /// converted; where they meet in another type than that of `y`, the result is, too, if PyTorch's `can_cast` allows
    /// it.
    pub(in crate::kernel) fn run_inplace<const N: usize>(
        &self,
        y: TensorViewMut<'_>,
        at: usize,
        operands: [Operand<'_>; N],
    ) -> Result<()> {
        self.run_over(y, &[at], operands)
    }

    /// [`Call::run_inplace`], with `y` as several operands.
    pub(in crate::kernel) fn run_over<const N: usize>(
        &self,
        mut y: TensorViewMut<'_>,
        at: &[usize],
        operands: [Operand<'_>; N],
    ) -> Result<()> {
        let target = y.as_mut_ptr()?;
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
            // Before anything is computed: a result of another shape would be found by its conversion alone.
            let planned = promote::stand_in_all(info, &operands, met)?;
            let shape = self.ready(&planned[..N])?.shape;
            if *view.shape() != shape {
                let what = format!("the output of {}", info.name);
                return Err(ErrorKind::ShapeMismatch { what, expected: shape, got: *view.shape() }.into());
            }
            promote::refuse_capture(self.settings.stream.as_ref(), result, view.dtype())?;
            let made = self.run(&operands)?;
            return crate::kernels::to_dtype().on_maybe(self.settings.stream.as_ref()).run_into(&made, y);
        }
        let mut converted = Converted::default();
        let promoted = self.promoted(&operands, &mut converted)?;
        let operands = promoted.as_ref().map_or(&operands[..], |promoted| &promoted[..N]);
        let ready = self.ready(operands)?;
        self.check_output(&ready, &view)?;
        // SAFETY: `y` is exclusively borrowed, and checked.
        unsafe { self.write(&ready, target, &view) }
    }

    /// Checks operands.
    pub(super) fn ready<'a>(&self, operands: &[Operand<'a>]) -> Result<Ready<'a>> {
        Ready::new(&self.def.info, &self.params, operands)
    }

    /// The element type that a call runs in: that in which its operands meet.
    pub(crate) fn dtype(&self, operands: &[Operand<'_>]) -> Result<DType> {
        match promote::map_type(&self.def.info, operands)? {
            Some(dtype) => Ok(dtype),
            None => Ok(self.ready(operands)?.dtype),
        }
    }

    /// Checks the tensor that a result is to be written to.
    pub(super) fn check_output(&self, ready: &Ready<'_>, y: &TensorView<'_>) -> Result<()> {
        let info = &self.def.info;
        let types = (ready.dtype, info.result.of(ready.dtype));
        check::output(|| format!("the output of {}", info.name), y, types, &ready.shape, &ready.device)?;
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

    /// Runs the op.
    ///
    /// # Safety
    /// `y` is of the result's type, shape and device, and each operand equal to or disjoint from it; `target` is its
    /// first element, and may be written through.
    unsafe fn write(&self, ready: &Ready<'_>, target: *mut u8, y: &TensorView<'_>) -> Result<()> {
        self.settings.check(&ready.device)?;
        if ready.shape.contains(&0) {
            return Ok(());
        }
        let walk = walk(ready, y);
        match ready.device.context() {
            None => {
                let dtype = self.def.carrier(ready.dtype);
                let op = (self.def.cpu)(dtype).ok_or_else(|| check::no_kernel(&self.def.info, ready.dtype))?;
                let operands = ready.views.map(|view| view.map_or(std::ptr::null(), |view| view.as_ptr()));
                let (given, sizes, words) = (ready.given, self.sizes(ready.dtype), ready.words);
                let run = Run { op, walk: &walk, operands, given, y: target, sizes, words };
                // SAFETY: the walk is of the views' shapes and strides; types and overlap are checked.
                unsafe { run.run() };
                Ok(())
            }
            Some(context) => {
                let mut own = None;
                let stream = self.settings.stream(&ready.device, ready.views.iter().flatten(), [y], &mut own)?;
                // SAFETY: the walk is of the views' shapes and strides; the caller's contract.
                unsafe { self.launch(context, stream, ready, &walk, target.addr()) }
            }
        }
    }
}
