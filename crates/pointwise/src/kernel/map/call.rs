//! A call: its operands brought together, and run on one device or the other.

use pointwise_core::op::MAX_PARAMS;
use pointwise_core::{DType, Philox, ResultType};

use super::MapDef;
use super::check::Ready;
use super::launch::walk;
use crate::cpu::Run;
use crate::error::{ErrorKind, Result};
use crate::kernel::promote::{self, Converted};
use crate::kernel::unary::DEFAULT_THREADS;
use crate::kernel::{Operand, Strategy, check_stream, check_threads};
use crate::tensor::{Tensor, TensorView, TensorViewMut};
use crate::tuner::Choices;
use crate::{Number, Stream};

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

impl Call {
    /// The op with parameters, and launch settings as they are where nothing else is asked for.
    pub(in crate::kernel) fn new(def: &'static MapDef, params: [Number; MAX_PARAMS]) -> Call {
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

    /// The result in a new tensor.
    pub(in crate::kernel) fn run(&self, operands: &[Operand<'_>]) -> Result<Tensor> {
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
                        check_stream(stream, &ready.device)?;
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
                check_threads(self.threads)?;
                // SAFETY: the walk is of the views' shapes and strides; the caller's contract.
                unsafe { self.launch(context, stream, ready, &walk, target.addr()) }
            }
        }
    }
}
