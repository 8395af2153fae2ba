//! From checked operands to a class, a plan and launches.

use pointwise_core::formula::{MAX_INPUTS, MAX_TENSORS, MAX_WORDS, lanes};
use pointwise_core::launch::{FORMULA_STREAM_SHIFT, FORMULA_WORD_SHIFT, ROW_SPLITS, SPLITS};
use pointwise_core::{Draw, row};

use super::call::{Kernel, Ready, Targets};
use crate::Stream;
use crate::cuda::{self, Context, Grid};
use crate::error::Result;
use crate::kernel::choice::{Choice, Params, Tensors, head_within, numbers};
use crate::kernel::walk::{Class, Limit, StepWords, Walk};
use crate::kernel::{MapPlan, cache_room};

/// The most arguments of a launch: tensors, a word for each operand and of the parameters; elements and head or items,
/// mode, steps, draw.
const MOST_ARGUMENTS: usize = MAX_TENSORS + MAX_INPUTS + MAX_WORDS + 5;

impl Kernel<'_> {
    /// What a launch over `walk` would be.
    pub(super) fn plan_of<const T: usize>(
        &self,
        ready: &Ready<'_>,
        walk: &Walk<T>,
        targets: &Targets<'_>,
    ) -> Result<MapPlan> {
        let choice = self.choose(ready, walk, targets);
        choice.plan(walk.dims().len(), self.settings.threads, ready.shape.numel() as u64)
    }

    /// The kernel for a walk.
    fn choose<const T: usize>(&self, ready: &Ready<'_>, walk: &Walk<T>, targets: &Targets<'_>) -> Choice<T> {
        let info = &self.def.info;
        let results = info.results.len();
        let at = std::array::from_fn(|k| {
            let view = match k.checked_sub(results) {
                None => targets.views[k],
                Some(operand) => ready.views.get(operand).copied().flatten(),
            };
            view.map_or(0, |view| view.address())
        });
        let tensors = Tensors { at, sizes: self.sizes(ready.dtype), results, numbers: numbers(&ready.given) };
        let lanes = lanes(ready.dtype.size(), results + info.operands.len());
        tensors.choose(walk, lanes, self.settings.strategy, cache_room(&ready.device))
    }

    /// Launches the op's kernel for each part of a walk.
    ///
    /// # Safety
    /// The walk is of the tensors' shapes and strides; operands are equal to or disjoint from the results, which may be
    /// written; `stream` is of the context, and waits for a tensor that a random op draws from, which is checked.
    pub(super) unsafe fn launch<const T: usize>(
        &self,
        context: &'static Context,
        stream: &Stream,
        ready: &Ready<'_>,
        walk: &Walk<T>,
        targets: &Targets<'_>,
    ) -> Result<()> {
        let info = &self.def.info;
        let choice = self.choose(ready, walk, targets);
        let function = self.def.entry(ready.dtype, choice.class)?.function(context)?;
        let tensors = info.results.len() + info.operands.len();
        let given = ready.given.map(Option::unwrap_or_default);
        let mode = mode(&choice, info.operands.len());
        let limit = Limit::of(choice.class, choice.lanes);
        choice.walk.parts(limit, [0; T], &mut |part, place| {
            let moved = choice.tensors.moved(place);
            let addresses = moved.at.map(|address| address as u64);
            let mut params = Params::<MOST_ARGUMENTS>::default();
            addresses[..tensors].iter().for_each(|address| params.push(address));
            let (n, head, items, work): (u64, u32, u32, u64);
            if choice.class == Class::Flat {
                n = part.numel();
                head = head_within(moved.head(part, choice.lanes).unwrap_or(0), n);
                let body = n - u64::from(head);
                work = body / choice.lanes as u64 + body % choice.lanes as u64 + u64::from(head);
                params.push(&n);
                params.push(&head);
            } else {
                work = part.numel();
                items = work as u32;
                params.push(&items);
            }
            params.push(&mode);
            given[..info.operands.len()].iter().for_each(|word| params.push(word));
            ready.words[..row::param_words(info)].iter().for_each(|word| params.push(word));
            let steps: StepWords;
            if choice.class != Class::Flat {
                let splits = if choice.class == Class::Rows { ROW_SPLITS } else { SPLITS };
                steps = part.step_words(tensors, splits);
                params.push(&steps);
            }
            let draw: Draw;
            if info.is_random {
                // SAFETY: the caller's contract.
                draw = Draw { blocks: unsafe { self.rng.blocks() }, first: place[0] as u64 };
                params.push(&draw);
            }
            let threads = self.settings.threads;
            let blocks = work.div_ceil(u64::from(threads)) as u32;
            let grid = Grid { blocks: [blocks, 1, 1], threads: [threads, 1, 1], shared: 0 };
            let params = params.pointers();
            // SAFETY: the arguments are those of the entry's class; the caller's contract.
            unsafe { cuda::launch_grid(context, function, grid, stream, params) }
        })
    }
}

/// The `mode` of a formula's kernel.
fn mode<const T: usize>(choice: &Choice<T>, operands: usize) -> u64 {
    let all = (1_u64 << operands) - 1;
    let marks = choice.marks;
    (u64::from(marks.once) & all)
        | (u64::from(marks.numbers) & all) << FORMULA_WORD_SHIFT
        | (u64::from(marks.passing) & all) << FORMULA_STREAM_SHIFT
}
