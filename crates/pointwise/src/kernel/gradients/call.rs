//! A call: its operands and results checked, and run.

use pointwise_core::op::{MAX_OPERANDS, MAX_RESULTS};
use pointwise_core::{DType, OpInfo};

use super::GradientDef;
use super::launch::{addresses, walk};
use crate::cpu::GradientsRun;
use crate::error::{Error, ErrorKind, Result};
use crate::kernel::binary::halves;
use crate::kernel::{LaunchSettings, Operand, check, ready, scalar};
use crate::shape::Shape;
use crate::tensor::TensorView;
use crate::{Device, Number};

/// An op with its parameters and launch settings.
#[derive(Clone, Debug)]
pub(super) struct Call {
    pub(super) def: &'static GradientDef,
    pub(super) params: scalar::Params,
    pub(super) settings: LaunchSettings,
}

/// Checked operands.
pub(super) type Ready<'a> = ready::Ready<'a, MAX_OPERANDS>;

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
    /// The halves of `y`'s last dimension; `pointer` is its first element.
    pub(super) fn halves(info: &OpInfo, pointer: *mut u8, y: &TensorView<'a>) -> Result<Targets<'a>> {
        let [front, back] = halves(info, y)?;
        let second = pointer.wrapping_add(back.address().wrapping_sub(front.address()));
        let none = std::ptr::null_mut();
        Ok(Targets { pointers: [pointer, second, none], views: [Some(front), Some(back), None] })
    }
}

impl Call {
    pub(super) fn new(def: &'static GradientDef, params: &[Number]) -> Call {
        Call { def, params: scalar::given(params), settings: LaunchSettings::new() }
    }

    /// Checks operands, by the rules of [`crate::kernel::map`].
    pub(super) fn ready<'a>(&self, operands: &[Operand<'a>]) -> Result<Ready<'a>> {
        Ready::new(&self.def.info, &self.params, operands)
    }

    /// Checks the tensor that gradient `name` of operands of type `dtype` is to be written to.
    pub(super) fn check_result(
        &self,
        name: &str,
        view: &TensorView<'_>,
        dtype: DType,
        shape: &Shape,
        device: &Device,
    ) -> Result<()> {
        let what = || format!("the output {name} of {}", self.def.info.name);
        check::output(what, view, (dtype, dtype), shape, device)
    }

    /// Runs the op.
    ///
    /// # Safety
    /// The targets are of the op's number of results, of their type, shape and device, disjoint from each other, and
    /// each operand equal to or disjoint from each; the pointers are their first elements, and may be written through.
    pub(super) unsafe fn write(&self, ready: &Ready<'_>, targets: &Targets<'_>) -> Result<()> {
        self.settings.check(&ready.device)?;
        if ready.shape.contains(&0) {
            return Ok(());
        }
        let walk = walk(ready, targets);
        let Some(context) = ready.device.context() else {
            let op = (self.def.cpu)(ready.dtype).ok_or_else(|| check::no_kernel(&self.def.info, ready.dtype))?;
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
        let mut own = None;
        let (operands, results) = (ready.views.iter().flatten(), targets.views.iter().flatten());
        let stream = self.settings.stream(&ready.device, operands, results, &mut own)?;
        // SAFETY: walk and addresses are those of the views; the caller's contract.
        unsafe { self.launch(context, stream, ready, &walk, addresses(ready, targets)) }
    }
}

#[cold]
pub(super) fn overlapping(info: &OpInfo, a: &str, b: &str) -> Error {
    ErrorKind::Overlap { what: format!("{a} and the output {b} of {}", info.name) }.into()
}
