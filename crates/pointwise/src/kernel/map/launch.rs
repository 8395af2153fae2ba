//! From checked operands to a kernel, a plan and launches.

use pointwise_core::launch::PAIRS_THREADS;
use pointwise_core::{DType, Kind};

use super::call::{Call, Ready};
use crate::Stream;
use crate::cuda::Context;
use crate::error::Result;
use crate::kernel::choice::{Arguments, Choice, Queue, Tensors, numbers};
use crate::kernel::walk::{Along, TENSORS, Walk, broadcast};
use crate::kernel::{Class, MapPlan, Operand, Strategy, cache_room, check, lookup, promote};
use crate::tensor::TensorView;
use crate::tuner::Lies;

impl Call {
    /// What [`Call::write`] would launch on a CUDA device.
    pub(crate) fn plan(&self, operands: &[Operand<'_>], y: &TensorView<'_>) -> Result<MapPlan> {
        let info = &self.def.info;
        let promoted = match promote::map_type(info, operands)? {
            Some(dtype) => Some(promote::stand_in_all(info, operands, dtype)?),
            None => None,
        };
        let operands = promoted.as_ref().map_or(operands, |promoted| &promoted[..operands.len()]);
        let ready = self.ready(operands)?;
        self.check_output(&ready, y)?;
        self.settings.check(&ready.device)?;
        let walk = walk(&ready, y);
        let (choice, threads) = self.choose_tuned(&ready, &walk, y.address());
        choice.plan(walk.dims().len(), threads, ready.shape.numel() as u64)
    }

    /// # Safety
    /// `target` is the first element of the result, which may be written; the walk is of the result's and the operands'
    /// shapes and strides, the operands equal to or disjoint from the result; `stream` is of the context.
    pub(super) unsafe fn launch(
        &self,
        context: &'static Context,
        stream: &Stream,
        ready: &Ready<'_>,
        walk: &Walk,
        target: usize,
    ) -> Result<()> {
        let (mut choice, mut threads) = self.choose_tuned(ready, walk, target);
        let table = match (self.def.lookup)(ready.dtype) {
            Some(lookup) if choice.table => lookup.address(context, stream, (self.def, ready.dtype))?,
            _ => None,
        };
        if choice.table && table.is_none() {
            (choice, threads) = (self.choose(ready, walk, target, Strategy::RegisterCopy), self.settings.threads);
        }
        let entry = match table {
            Some(_) => lookup::entry(choice.class),
            None => (self.def.entry)(self.def.carrier(ready.dtype), choice.class),
        };
        let entry = entry.ok_or_else(|| check::no_kernel(&self.def.info, ready.dtype))?;
        let queue = Queue { context, function: entry.function(context)?, stream, threads, groups: true };
        let count = self.def.info.operands.len();
        let given = ready.given.map(Option::unwrap_or_default);
        let order = [1, 2, 3];
        let numbers_and_parameters = [&given[..count], &ready.words[..]];
        let arguments = Arguments {
            tensors: [&order[..count], &[0]],
            words: table.as_ref().map_or(numbers_and_parameters, |table| [std::slice::from_ref(table), &[]]),
        };
        // SAFETY: the entry is of the class, its arguments are these; the caller's contract.
        unsafe {
            match count {
                2 => queue.run::<TENSORS, 3>(&choice, arguments),
                _ => queue.run::<TENSORS, 4>(&choice, arguments),
            }
        }
    }

    /// The kernel and the threads of a block for a walk whose result starts at `target`: a tuner's where it has some
    /// for such calls, and no strategy was set.
    fn choose_tuned(&self, ready: &Ready<'_>, walk: &Walk, target: usize) -> (Choice<TENSORS>, u32) {
        // A table is filled by as many threads as its kernel is made for.
        let threads_of = |choice: &Choice<TENSORS>, threads| if choice.table { PAIRS_THREADS } else { threads };
        let choice = self.choose(ready, walk, target, self.settings.strategy);
        let threads = threads_of(&choice, self.settings.threads);
        let (Strategy::Auto, Some(tuned)) = (self.settings.strategy, &self.tuned) else {
            return (choice, threads);
        };
        let lies = Lies::Class(choice.class);
        match tuned.find(&ready.device, ready.dtype, lies, ready.shape.numel() as u64) {
            None => (choice, threads),
            Some((strategy, threads)) => {
                let choice = Choice { replaced: None, ..self.choose(ready, walk, target, strategy) };
                (choice, threads_of(&choice, threads))
            }
        }
    }

    /// The kernel for a walk whose result starts at `target`, by a strategy.
    fn choose(&self, ready: &Ready<'_>, walk: &Walk, target: usize, strategy: Strategy) -> Choice<TENSORS> {
        let sizes = self.sizes(ready.dtype);
        let tensors = Tensors { at: addresses(ready, target), sizes, results: 1, numbers: numbers(&ready.given) };
        let (info, dtype) = (&self.def.info, ready.dtype);
        let table = tensors.numbers == 0
            && match strategy {
                Strategy::Table => lookup::serves(info, dtype),
                Strategy::Auto => lookup::pays_from(info, dtype).is_some_and(|least| walk.numel() >= least),
                _ => false,
            };
        // The kernels of tables have vectors, too.
        let vectors = if strategy == Strategy::Table { Strategy::RegisterCopy } else { strategy };
        let mut choice = tensors.choose(walk, 16 / dtype.size(), vectors, cache_room(&ready.device));
        choice.table = table && choice.class != Class::Strided;
        if strategy == Strategy::Table && !table {
            choice.replaced = Some("only ops without parameters of two tensors of fp8, i8 or u8 have a table");
        }
        choice
    }

    /// Bytes of an element of each tensor, the result first.
    pub(super) fn sizes(&self, dtype: DType) -> [usize; 4] {
        let result = self.def.info.result.of(dtype).size();
        let first = if self.def.info.kind == Kind::Select { 1 } else { dtype.size() };
        [result, first, dtype.size(), dtype.size()]
    }
}

/// The loop of a call.
pub(super) fn walk(ready: &Ready<'_>, y: &TensorView<'_>) -> Walk {
    let of = |view: &TensorView<'_>| broadcast(view.shape(), view.strides(), &ready.shape);
    let [a, b, c] = ready.views.map(|view| view.map_or(Along::default(), |view| of(&view)));
    Walk::new(&ready.shape, &[of(y), a, b, c])
}

/// Addresses of the tensors, the result's first; 0 for those that are not there.
fn addresses(ready: &Ready<'_>, target: usize) -> [usize; 4] {
    let [a, b, c] = ready.views.map(|view| view.map_or(0, |view| view.address()));
    [target, a, b, c]
}
