//! From checked operands to a kernel, a plan and launches.

use std::ffi::c_void;

use pointwise_core::launch::{ONCE, STREAM_SHIFT, WORD_SHIFT};
use pointwise_core::{DType, Draw, Kind};

use super::call::Call;
use super::check::Ready;
use super::params::Launch;
use crate::Stream;
use crate::cuda::{self, Context};
use crate::error::Result;
use crate::kernel::walk::{Along, Class, Limit, Places, Walk, broadcast, strided_blocks};
use crate::kernel::{Operand, Strategy, check_threads, promote, result_stays};
use crate::tensor::TensorView;
use crate::tuner::Lies;

/// What a launch of an op of several operands will do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MapPlan {
    /// The kernel's class: how operands and result lie.
    pub class: Class,
    /// The strategy that class stands for: [`Strategy::Direct`] for [`Class::Strided`], else [`Strategy::RegisterCopy`].
    pub strategy: Strategy,
    /// Why another strategy than the one asked for; `None` where it is the one asked for, or was left open.
    pub replaced: Option<&'static str>,
    /// Dimensions left after merging; one less is the number of divisions for each thread.
    pub dims: usize,
    /// Threads of a block.
    pub threads: u32,
    /// Elements a thread has.
    pub lanes: usize,
    /// Elements before the first aligned vector of a flat call, done one by one.
    pub head: u32,
    /// Launches: one for fewer than 2^31 items.
    pub launches: usize,
    /// Elements of the result.
    pub n: u64,
}

/// A walk and the kernel for it.
struct Choice {
    class: Class,
    /// Of items: vectors where the class has them, but for [`Class::Flat`].
    walk: Walk,
    lanes: usize,
    mode: u32,
    replaced: Option<&'static str>,
}

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
        check_threads(self.threads)?;
        let walk = walk(&ready, y);
        let (choice, threads) = self.settle(&ready, &walk, y.address());
        let limit = choice.limit();
        let (mut launches, mut head) = (0, 0);
        if ready.shape.numel() > 0 {
            choice.walk.parts(limit, Places::default(), &mut |_, _| -> Result<()> {
                launches += 1;
                Ok(())
            })?;
            if choice.class == Class::Flat {
                let addresses = addresses(&ready, y.address());
                head = aligned_head(&addresses, &self.sizes(ready.dtype), &choice.walk, choice.lanes).unwrap_or(0);
            }
        }
        Ok(MapPlan {
            class: choice.class,
            strategy: match choice.class {
                Class::Strided => Strategy::Direct,
                Class::Flat | Class::Rows => Strategy::RegisterCopy,
            },
            replaced: choice.replaced,
            dims: walk.dims().len(),
            threads,
            lanes: choice.lanes,
            head: u64::from(head).min(ready.shape.numel() as u64) as u32,
            launches,
            n: ready.shape.numel() as u64,
        })
    }

    pub(super) fn launch(
        &self,
        context: &'static Context,
        stream: &Stream,
        ready: &Ready<'_>,
        walk: &Walk,
        target: usize,
    ) -> Result<()> {
        let (choice, threads) = self.settle(ready, walk, target);
        let entry = (self.def.entry)(self.def.carrier(ready.dtype), choice.class)
            .ok_or_else(|| self.def.no_kernel(ready.dtype))?;
        let function = entry.function(context)?;
        let sizes = self.sizes(ready.dtype);
        let start = addresses(ready, target);
        // All entries of random ops take three operands.
        let is_random = self.def.info.kind == Kind::Random;
        let count = if is_random { 3 } else { self.def.info.operands.len() };
        choice.walk.parts(choice.limit(), Places::default(), &mut |part, place| {
            let mut at = start;
            for ((address, place), size) in at.iter_mut().zip(place).zip(sizes) {
                *address = address.wrapping_add_signed(place as isize * size as isize);
            }
            let launch = Launch {
                addresses: at.map(|address| address as u64),
                given: ready.given.map(Option::unwrap_or_default),
                words: ready.words,
                mode: choice.mode,
                count,
                draw: is_random.then(|| Draw { blocks: self.place.blocks(), first: place[0] as u64 }),
            };
            let queue = |items: u64, params: &mut [*mut c_void]| {
                let blocks = match choice.class {
                    Class::Strided => strided_blocks(items, threads),
                    Class::Flat | Class::Rows => items.div_ceil(u64::from(threads)) as u32,
                };
                // SAFETY: the parameters are those of the entry's class and arity; plan and checks vouch for the memory.
                unsafe { cuda::launch(context, function, blocks, threads, stream, params) }
            };
            match (choice.class, count) {
                (Class::Flat, _) => {
                    let n = part.numel();
                    let head = aligned_head(&at, &sizes, part, choice.lanes).unwrap_or(0).min(n as u32);
                    let body = n - u64::from(head);
                    launch.flat(n, head, |params| {
                        queue(body / choice.lanes as u64 + body % choice.lanes as u64 + u64::from(head), params)
                    })
                }
                (_, 2) => launch.tiled::<3>(part, queue),
                _ => launch.tiled::<4>(part, queue),
            }
        })
    }

    /// The kernel and the threads of a block for a walk whose result starts at `target`: a tuner's where it has some for
    /// such calls, and no strategy was set.
    fn settle(&self, ready: &Ready<'_>, walk: &Walk, target: usize) -> (Choice, u32) {
        let choice = self.choose(ready, walk, target, self.strategy);
        let (Strategy::Auto, Some(tuned)) = (self.strategy, &self.tuned) else {
            return (choice, self.threads);
        };
        let lies = Lies::Class(choice.class);
        match tuned.find(&ready.device, ready.dtype, lies, ready.shape.numel() as u64) {
            None => (choice, self.threads),
            Some((Strategy::Direct, threads)) => (self.choose(ready, walk, target, Strategy::Direct), threads),
            Some((_, threads)) => (choice, threads),
        }
    }

    /// The kernel for a walk whose result starts at `target`, by a strategy.
    fn choose(&self, ready: &Ready<'_>, walk: &Walk, target: usize, strategy: Strategy) -> Choice {
        let lanes = 16 / ready.dtype.size();
        let (sizes, at) = (self.sizes(ready.dtype), addresses(ready, target));
        let bits = |of: &dyn Fn(usize) -> bool| (0..3).fold(0, |bits, k| bits | (u32::from(of(k)) * (ONCE << k)));
        let mode = bits(&|k| ready.given[k].is_some()) << WORD_SHIFT;
        let strided = |replaced| Choice { class: Class::Strided, walk: *walk, lanes: 1, mode, replaced };
        if strategy == Strategy::Direct {
            return strided(None);
        }
        let replaced = match strategy {
            Strategy::ExplicitParallel | Strategy::Table => {
                Some("ops of several operands have vectors or single elements")
            }
            _ => None,
        };
        let once = walk.once();
        let passes = result_stays(&ready.device, walk.numel() * sizes[0] as u64);
        let mode = mode
            | bits(&|k| once[k + 1] && ready.given[k].is_none())
            | bits(&|k| passes && ready.views[k].is_some() && walk.meets_once(k + 1)) << STREAM_SHIFT;
        if walk.is_flat() && aligned_head(&at, &sizes, walk, lanes).is_some() {
            return Choice { class: Class::Flat, walk: *walk, lanes, mode, replaced };
        }
        let aligned = |k: usize, step: i64| {
            let vector = lanes * sizes[k];
            (at[k].wrapping_add_signed(step as isize * sizes[k] as isize)).is_multiple_of(vector)
        };
        match walk.rows(lanes, aligned) {
            Some(rows) => Choice { class: Class::Rows, walk: rows, lanes, mode, replaced },
            None if strategy == Strategy::Auto => strided(None),
            None => strided(Some("the operands do not lie in aligned vectors")),
        }
    }

    /// Bytes of an element of each tensor, the result first.
    pub(super) fn sizes(&self, dtype: DType) -> [usize; 4] {
        let result = self.def.info.result.of(dtype).size();
        let first = if self.def.info.kind == Kind::Select { 1 } else { dtype.size() };
        [result, first, dtype.size(), dtype.size()]
    }
}

impl Choice {
    fn limit(&self) -> Limit {
        Limit::of(self.class, self.lanes)
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

/// The number of elements before one that is aligned for vectors of `lanes` in all tensors that a flat walk steps along;
/// `None` where there is none.
fn aligned_head(at: &[usize; 4], sizes: &[usize; 4], walk: &Walk, lanes: usize) -> Option<u32> {
    let (_, steps) = walk.inner();
    (0..lanes).find_map(|head| {
        let aligned = |k: usize| steps[k] == 0 || (at[k] + head * sizes[k]).is_multiple_of(lanes * sizes[k]);
        (0..4).all(aligned).then_some(head as u32)
    })
}
