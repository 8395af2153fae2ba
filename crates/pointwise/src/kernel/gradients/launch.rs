//! From checked operands to a class, a plan and launches.

use pointwise_core::DType;
use pointwise_core::launch::GRADIENT_TENSORS;
use pointwise_core::op::MAX_RESULTS;

use super::call::{Call, Ready, Targets};
use crate::Stream;
use crate::cuda::Context;
use crate::error::Result;
use crate::kernel::choice::{Arguments, Choice, Queue, Tensors, numbers};
use crate::kernel::ready::is_condition;
use crate::kernel::walk::{Along, Walk, broadcast};
use crate::kernel::{MapPlan, cache_room, check};
use crate::tensor::TensorView;

type All<T> = [T; GRADIENT_TENSORS];

impl Call {
    /// # Safety
    /// The tensors at `start` are those of [`addresses`], the walk that of [`walk`]; operands are equal to or disjoint
    /// from the results, which may be written; `stream` is of the context.
    pub(super) unsafe fn launch(
        &self,
        context: &'static Context,
        stream: &Stream,
        ready: &Ready<'_>,
        walk: &Walk<GRADIENT_TENSORS>,
        start: All<usize>,
    ) -> Result<()> {
        let choice = self.choose(ready, walk, start);
        let entry =
            (self.def.entry)(ready.dtype, choice.class).ok_or_else(|| check::no_kernel(&self.def.info, ready.dtype))?;
        let function = entry.function(context)?;
        let queue = Queue { context, function, stream, threads: self.settings.threads, groups: false };
        let given = ready.given.map(Option::unwrap_or_default);
        let order: All<usize> = std::array::from_fn(|k| k);
        let arguments = Arguments { tensors: [&order, &[]], words: [&given, &ready.words] };
        // SAFETY: the entry is of the class, its arguments are these; the caller's contract.
        unsafe { queue.run::<GRADIENT_TENSORS, GRADIENT_TENSORS>(&choice, arguments) }
    }

    /// What [`Call::write`] would launch on a CUDA device.
    pub(super) fn plan(&self, ready: &Ready<'_>, targets: &Targets<'_>) -> Result<MapPlan> {
        self.settings.check(&ready.device)?;
        let walk = walk(ready, targets);
        let choice = self.choose(ready, &walk, addresses(ready, targets));
        choice.plan(walk.dims().len(), self.settings.threads, ready.shape.numel() as u64)
    }

    /// The kernel for a walk whose tensors start at `at`.
    fn choose(&self, ready: &Ready<'_>, walk: &Walk<GRADIENT_TENSORS>, at: All<usize>) -> Choice<GRADIENT_TENSORS> {
        let sizes = self.sizes(ready.dtype);
        let tensors = Tensors { at, sizes, results: MAX_RESULTS, numbers: numbers(&ready.given) };
        tensors.choose(walk, 16 / ready.dtype.size(), self.settings.strategy, cache_room(&ready.device))
    }

    /// Bytes of an element of each tensor.
    pub(super) fn sizes(&self, dtype: DType) -> All<usize> {
        let mut sizes = [dtype.size(); GRADIENT_TENSORS];
        if is_condition(&self.def.info, 0) {
            sizes[MAX_RESULTS] = 1;
        }
        sizes
    }
}

/// The loop of a call.
pub(super) fn walk(ready: &Ready<'_>, targets: &Targets<'_>) -> Walk<GRADIENT_TENSORS> {
    let of = |view: &Option<TensorView<'_>>| {
        view.map_or(Along::default(), |view| broadcast(view.shape(), view.strides(), &ready.shape))
    };
    let [y0, y1, y2] = targets.views.each_ref().map(of);
    let [a, b, c, d] = ready.views.each_ref().map(of);
    Walk::new(&ready.shape, &[y0, y1, y2, a, b, c, d])
}

/// Addresses of the tensors; 0 for those that are not there.
pub(super) fn addresses(ready: &Ready<'_>, targets: &Targets<'_>) -> All<usize> {
    let of = |view: &Option<TensorView<'_>>| view.map_or(0, |view| view.address());
    let [y0, y1, y2] = targets.views.each_ref().map(of);
    let [a, b, c, d] = ready.views.each_ref().map(of);
    [y0, y1, y2, a, b, c, d]
}
