//! A call: its operands and results checked, and run.

use pointwise_core::op::{MAX_OPERANDS, MAX_PARAMS, MAX_RESULTS, Words};
use pointwise_core::{DType, Kind, OpInfo, ParamInfo};

use super::GradientDef;
use super::def::words;
use super::launch::{addresses, walk};
use crate::cpu::GradientsRun;
use crate::error::{Error, ErrorKind, Result};
use crate::kernel::unary::DEFAULT_THREADS;
use crate::kernel::{Operand, Strategy, check_stream, check_threads};
use crate::shape::Shape;
use crate::tensor::TensorView;
use crate::{Device, Number, Stream};

/// An op with its parameters and launch settings.
#[derive(Clone, Debug)]
pub(super) struct Call {
    pub(super) def: &'static GradientDef,
    pub(super) params: [Number; MAX_PARAMS],
    pub(super) strategy: Strategy,
    pub(super) threads: u32,
    pub(super) stream: Option<Stream>,
}

/// Operands whose types, shapes and devices go together.
pub(super) struct Ready<'a> {
    pub(super) dtype: DType,
    pub(super) shape: Shape,
    pub(super) device: Device,
    pub(super) views: [Option<TensorView<'a>>; MAX_OPERANDS],
    pub(super) given: [Option<u64>; MAX_OPERANDS],
    pub(super) words: Words,
}

/// Where results go.
pub(super) struct Targets<'a> {
    pub(super) pointers: [*mut u8; MAX_RESULTS],
    pub(super) views: [Option<TensorView<'a>>; MAX_RESULTS],
}

impl Default for Targets<'_> {
    fn default() -> Self {
        Targets { pointers: [std::ptr::null_mut(); MAX_RESULTS], views: [None; MAX_RESULTS] }
    }
}

impl<'a> Targets<'a> {
    /// The halves of `y`'s last dimension, which is even; `pointer` is its first element.
    pub(super) fn halves(pointer: *mut u8, y: &TensorView<'a>) -> Result<Targets<'a>> {
        let last = y.shape().rank().saturating_sub(1);
        let half = y.shape()[last] / 2;
        let (front, back) = (y.narrow(last, 0, half)?, y.narrow(last, half, half)?);
        let second = pointer.wrapping_add(back.address().wrapping_sub(front.address()));
        let none = std::ptr::null_mut();
        Ok(Targets { pointers: [pointer, second, none], views: [Some(front), Some(back), None] })
    }
}

impl Call {
    pub(super) fn new(def: &'static GradientDef, params: [Number; MAX_PARAMS]) -> Call {
        Call { def, params, strategy: Strategy::Auto, threads: DEFAULT_THREADS, stream: None }
    }

    pub(super) fn is_condition(&self, k: usize) -> bool {
        self.def.info.kind == Kind::SelectGradients && k == 0
    }

    /// Checks operands, by the rules of [`crate::kernel::map`].
    pub(super) fn ready<'a>(&self, operands: &[Operand<'a>]) -> Result<Ready<'a>> {
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

    pub(super) fn check_result(
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
    pub(super) unsafe fn write(&self, ready: &Ready<'_>, targets: &Targets<'_>) -> Result<()> {
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
                check_stream(stream, &ready.device)?;
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
        check_threads(self.threads)?;
        // SAFETY: walk and addresses are those of the views; the caller's contract.
        unsafe { self.launch(context, stream, ready, &walk, addresses(ready, targets)) }
    }
}

#[cold]
pub(super) fn overlapping(info: &OpInfo, a: &str, b: &str) -> Error {
    ErrorKind::Overlap { what: format!("{a} and the output {b} of {}", info.name) }.into()
}

#[cold]
pub(super) fn count(info: &OpInfo, what: &str, names: &[&str], got: usize) -> Error {
    ErrorKind::Unsupported {
        what: format!("{} with {got} {what}", info.name),
        advice: format!("they are {}", names.join(", ")),
    }
    .into()
}
