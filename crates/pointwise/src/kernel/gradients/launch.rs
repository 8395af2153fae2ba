//! From checked operands to a class, a plan and launches.

use std::ffi::c_void;

use pointwise_core::DType;
use pointwise_core::launch::{GRADIENT_TENSORS, ONCE, STREAM_SHIFT, Steps, WORD_SHIFT};
use pointwise_core::op::{MAX_OPERANDS, MAX_RESULTS};

use super::call::{Call, Ready, Targets};
use crate::Stream;
use crate::cuda::{self, Context};
use crate::error::Result;
use crate::kernel::walk::{Along, Class, Limit, Places, Walk, broadcast};
use crate::kernel::{MapPlan, Strategy, check_threads, result_stays};
use crate::tensor::TensorView;

/// A walk and the kernel for it.
struct Choice {
    class: Class,
    /// Of items: vectors where the class has them, but for [`Class::Flat`].
    walk: Walk<GRADIENT_TENSORS>,
    lanes: usize,
    mode: u32,
    replaced: Option<&'static str>,
}

type All<T> = [T; GRADIENT_TENSORS];

impl Call {
    pub(super) fn launch(
        &self,
        context: &'static Context,
        stream: &Stream,
        ready: &Ready<'_>,
        walk: &Walk<GRADIENT_TENSORS>,
        start: All<usize>,
    ) -> Result<()> {
        let choice = self.choose(ready, walk, &start);
        let entry = (self.def.entry)(ready.dtype, choice.class).ok_or_else(|| self.def.no_kernel(ready.dtype))?;
        let function = entry.function(context)?;
        let sizes = self.sizes(ready.dtype);
        let given = ready.given.map(Option::unwrap_or_default);
        choice.walk.parts(choice.limit(), [0; GRADIENT_TENSORS], &mut |part, place| {
            let at: All<usize> =
                std::array::from_fn(|k| start[k].wrapping_add_signed(place[k] as isize * sizes[k] as isize));
            let tensors = at.map(|address| address as u64);
            let queue = |items: u64, params: &mut Params| {
                params.push(&choice.mode);
                given.iter().chain(&ready.words).for_each(|word| params.push(word));
                let blocks = items.div_ceil(u64::from(self.threads)) as u32;
                let params = &mut params.pointers[..params.len];
                // SAFETY: the parameters are those of the entry's class; plan and checks vouch for the memory.
                unsafe { cuda::launch(context, function, blocks, self.threads, stream, params) }
            };
            let mut params = Params { pointers: [std::ptr::null_mut(); 18], len: 0 };
            tensors.iter().for_each(|address| params.push(address));
            if choice.class == Class::Flat {
                let n = part.numel();
                let head = head(&at, &sizes, part, choice.lanes).unwrap_or(0).min(n as u32);
                let body = n - u64::from(head);
                params.push(&n);
                params.push(&head);
                return queue(body / choice.lanes as u64 + body % choice.lanes as u64 + u64::from(head), &mut params);
            }
            let steps: Steps<GRADIENT_TENSORS> = part.steps();
            let items = part.numel() as u32;
            params.push(&steps);
            params.push(&items);
            queue(u64::from(items), &mut params)
        })
    }

    /// What [`Call::write`] would launch on a CUDA device.
    pub(super) fn plan(&self, ready: &Ready<'_>, targets: &Targets<'_>) -> Result<MapPlan> {
        check_threads(self.threads)?;
        let walk = walk(ready, targets);
        let at = addresses(ready, targets);
        let choice = self.choose(ready, &walk, &at);
        let n = ready.shape.numel() as u64;
        let (mut launches, mut first) = (0, 0);
        if n > 0 {
            choice.walk.parts(choice.limit(), [0; GRADIENT_TENSORS], &mut |_, _| -> Result<()> {
                launches += 1;
                Ok(())
            })?;
            if choice.class == Class::Flat {
                first = head(&at, &self.sizes(ready.dtype), &choice.walk, choice.lanes).unwrap_or(0);
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
            threads: self.threads,
            lanes: choice.lanes,
            head: u64::from(first).min(n) as u32,
            launches,
            n,
        })
    }

    /// The class for a walk whose tensors start at `at`.
    fn choose(&self, ready: &Ready<'_>, walk: &Walk<GRADIENT_TENSORS>, at: &All<usize>) -> Choice {
        let lanes = 16 / ready.dtype.size();
        let sizes = self.sizes(ready.dtype);
        let bits =
            |of: &dyn Fn(usize) -> bool| (0..MAX_OPERANDS).fold(0, |bits, k| bits | (u32::from(of(k)) * (ONCE << k)));
        let mode = bits(&|k| ready.given[k].is_some()) << WORD_SHIFT;
        let strided = |replaced| Choice { class: Class::Strided, walk: *walk, lanes: 1, mode, replaced };
        let replaced = match self.strategy {
            Strategy::Direct => return strided(None),
            Strategy::ExplicitParallel | Strategy::Table => Some("gradients have vectors or single elements"),
            _ => None,
        };
        let once = walk.once();
        let results = self.def.info.results.len() * ready.dtype.size();
        let passes = result_stays(&ready.device, walk.numel() * results as u64);
        let mode = mode
            | bits(&|k| once[MAX_RESULTS + k] && ready.given[k].is_none())
            | bits(&|k| passes && ready.views[k].is_some() && walk.meets_once(MAX_RESULTS + k)) << STREAM_SHIFT;
        if walk.is_flat() && head(at, &sizes, walk, lanes).is_some() {
            return Choice { class: Class::Flat, walk: *walk, lanes, mode, replaced };
        }
        let aligned = |k: usize, step: i64| {
            at[k].wrapping_add_signed(step as isize * sizes[k] as isize).is_multiple_of(lanes * sizes[k])
        };
        match walk.rows(lanes, aligned) {
            Some(rows) => Choice { class: Class::Rows, walk: rows, lanes, mode, replaced },
            None if self.strategy == Strategy::Auto => strided(None),
            None => strided(Some("the tensors do not lie in aligned vectors")),
        }
    }

    /// Bytes of an element of each tensor.
    pub(super) fn sizes(&self, dtype: DType) -> All<usize> {
        let mut sizes = [dtype.size(); GRADIENT_TENSORS];
        if self.is_condition(0) {
            sizes[MAX_RESULTS] = 1;
        }
        sizes
    }
}

impl Choice {
    fn limit(&self) -> Limit {
        Limit::of(self.class, self.lanes)
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

/// The number of elements before one that is aligned for vectors of `lanes` in all tensors that a flat walk steps along;
/// `None` where there is none.
fn head(at: &All<usize>, sizes: &All<usize>, walk: &Walk<GRADIENT_TENSORS>, lanes: usize) -> Option<u32> {
    let (_, steps): (usize, Places<GRADIENT_TENSORS>) = walk.inner();
    (0..lanes).find_map(|head| {
        let aligned = |k: usize| steps[k] == 0 || (at[k] + head * sizes[k]).is_multiple_of(lanes * sizes[k]);
        (0..GRADIENT_TENSORS).all(aligned).then_some(head as u32)
    })
}

/// Pointers to arguments, in order.
struct Params {
    pointers: [*mut c_void; 18],
    len: usize,
}

impl Params {
    fn push<T>(&mut self, value: &T) {
        self.pointers[self.len] = std::ptr::from_ref(value).cast_mut().cast();
        self.len += 1;
    }
}
