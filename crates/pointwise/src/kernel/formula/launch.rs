//! From checked operands to a kernel, a plan and launches.

use pointwise_core::formula::{goes_across, lanes, takes_turns};
use pointwise_core::launch::{CODES_THREADS, PAIRS_THREADS};
use pointwise_core::{Draw, row};

use super::call::Kernel;
use super::checked::{CheckedOperands, Results};
use super::def::Table;
use crate::cuda::Context;
use crate::error::Result;
use crate::kernel::choice::{Arguments, Choice, Launcher, TableKind, Tensors, numbers};
use crate::kernel::walk::{Class, Walk};
use crate::kernel::{KernelPlan, Strategy, cache_room, lookup};

impl Kernel<'_> {
    /// Returns the plan of a launch over `walk`.
    pub(super) fn plan_of<const N: usize, const T: usize>(
        &self,
        ready: &CheckedOperands<'_, N>,
        walk: &Walk<T>,
        targets: &Results<'_, T>,
    ) -> KernelPlan {
        let (choice, threads) = self.choose_tuned(ready, walk, targets);
        choice.plan(walk.dims().len(), threads, ready.shape.numel() as u64)
    }

    /// The kernel and the threads of a block for a walk: a tuner's where it has some for such calls, and no strategy was
    /// set.
    fn choose_tuned<const N: usize, const T: usize>(
        &self,
        ready: &CheckedOperands<'_, N>,
        walk: &Walk<T>,
        targets: &Results<'_, T>,
    ) -> (Choice<T>, u32) {
        // A table is filled by as many threads as its kernel is made for.
        let threads_of = |choice: &Choice<T>, threads| match choice.looked {
            Some(TableKind::Codes) => CODES_THREADS,
            Some(TableKind::Pairs) => PAIRS_THREADS,
            None => threads,
        };
        let choice = self.choose(ready, walk, targets, self.settings.strategy);
        let threads = threads_of(&choice, self.settings.threads);
        let (Strategy::Auto, Some(tuned)) = (self.settings.strategy, &self.tuned) else {
            return (choice, threads);
        };
        match tuned.find(&ready.device, ready.dtype, choice.class, ready.shape.numel() as u64) {
            None => (choice, threads),
            Some((strategy, threads)) => {
                let choice = Choice { replaced: None, ..self.choose(ready, walk, targets, strategy) };
                (choice, threads_of(&choice, threads))
            }
        }
    }

    /// The kernel for a walk by a strategy.
    fn choose<const N: usize, const T: usize>(
        &self,
        ready: &CheckedOperands<'_, N>,
        walk: &Walk<T>,
        targets: &Results<'_, T>,
        strategy: Strategy,
    ) -> Choice<T> {
        let (info, dtype) = (&self.def.info, ready.dtype);
        let results = info.results.len();
        let at = std::array::from_fn(|k| {
            let view = match k.checked_sub(results) {
                None => targets.views[k],
                Some(operand) => ready.views.get(operand).copied().flatten(),
            };
            view.map_or(0, |view| view.address())
        });
        let tensors = Tensors {
            at,
            dtypes: self.dtypes(dtype),
            results,
            count: results + info.operands.len(),
            numbers: numbers(&ready.given),
            in_turns: takes_turns(info, dtype.size()),
            goes_across: goes_across(info),
        };
        let is_wanted = |pays_from: Option<u64>| match strategy {
            Strategy::Table => true,
            Strategy::Auto => pays_from.is_some_and(|least| walk.numel() >= least),
            _ => false,
        };
        let looked = match self.def.table(dtype) {
            Table::Codes(_) if is_wanted(Some(lookup::CODES_PAY_FROM)) => Some(TableKind::Codes),
            Table::Pairs(_) if tensors.numbers == 0 && is_wanted(lookup::pays_from(info, dtype)) => {
                Some(TableKind::Pairs)
            }
            _ => None,
        };
        // The kernels of tables have vectors, too.
        let vectors = if strategy == Strategy::Table { Strategy::RegisterCopy } else { strategy };
        let lanes = lanes(info.widest(dtype.size()), results + info.operands.len());
        let mut choice = tensors.choose(walk, lanes, vectors, cache_room(&ready.device));
        choice.looked = looked.filter(|looked| match looked {
            TableKind::Codes => choice.class == Class::Flat && choice.marks.once & 1 == 0,
            TableKind::Pairs => lookup::entry(choice.class).is_some(),
        });
        if strategy == Strategy::Table && choice.looked.is_none() {
            choice.replaced = choice.replaced.or(Some(match looked {
                None => "a table is for one operand of fp8 or, without parameters, two of fp8, i8 or u8",
                Some(_) => "one element for all needs no table",
            }));
        }
        choice
    }

    /// Launches the op's kernel for each part of a walk.
    ///
    /// # Safety
    /// The walk is of the tensors' shapes and strides; operands are equal to or disjoint from the results, which may be
    /// written; `stream` is of the context, and waits for a tensor that a random op draws from, which is checked.
    pub(super) unsafe fn launch<const N: usize, const T: usize>(
        &self,
        context: &'static Context,
        ready: &CheckedOperands<'_, N>,
        walk: &Walk<T>,
        targets: &Results<'_, T>,
    ) -> Result<()> {
        let info = &self.def.info;
        let (mut choice, mut threads) = self.choose_tuned(ready, walk, targets);
        let pairs = match (choice.looked, self.def.table(ready.dtype)) {
            (Some(TableKind::Pairs), Table::Pairs(lookup)) => {
                lookup.address(context, self.stream(), (self.def, ready.dtype))?
            }
            _ => None,
        };
        if choice.looked == Some(TableKind::Pairs) && pairs.is_none() {
            (choice, threads) = (self.choose(ready, walk, targets, Strategy::RegisterCopy), self.settings.threads);
        }
        let entry = self.def.kernel_of(ready.dtype, choice.class, choice.looked.is_some())?;
        let function = entry.function(context)?;
        let rng = self.rng.view().filter(|_| info.is_random());
        let (views, results) = (ready.views.iter().flatten().chain(rng), targets.views.iter().flatten());
        let queue = Launcher { context, function, held: self.settings.hold(context, views, results)?, threads };
        let operands = info.operands.len();
        let given = ready.given.map(Option::unwrap_or_default);
        let numbers_and_parameters = [&given[..operands], &ready.words[..row::param_words(info)]];
        let arguments = Arguments {
            tensors: info.results.len() + operands,
            operands,
            words: pairs.as_ref().map_or(numbers_and_parameters, |table| [std::slice::from_ref(table), &[]]),
            draw: info.has_place().then(|| Draw {
                // SAFETY: the caller's contract.
                blocks: if info.is_random() { unsafe { self.rng.blocks() } } else { Draw::NONE.blocks },
                ..Draw::of(info.random, &ready.shape)
            }),
        };
        // SAFETY: the entry is of the class, its arguments are these; the caller's contract.
        unsafe { queue.run(&choice, arguments) }
    }
}
