//! What a launch passes to a kernel.

use std::ffi::c_void;

use pointwise_core::Draw;
use pointwise_core::launch::Steps;
use pointwise_core::op::Words;

use crate::Stream;
use crate::cuda::{self, Context};
use crate::error::Result;
use crate::kernel::walk::{Limit, Places, Walk, strided_blocks};

/// The arguments of a launch.
pub(super) struct Launch {
    pub(super) addresses: [u64; 4],
    pub(super) given: [u64; 3],
    pub(super) words: Words,
    pub(super) mode: u32,
    pub(super) count: usize,
    /// What a random op draws from.
    pub(super) draw: Option<Draw>,
}

/// Pointers to arguments, in order.
struct Params {
    pointers: [*mut c_void; 15],
    len: usize,
}

impl Params {
    fn push<T>(&mut self, value: &T) {
        self.pointers[self.len] = std::ptr::from_ref(value).cast_mut().cast();
        self.len += 1;
    }
}

impl Launch {
    /// Operands, result, and what `middle` puts behind them; then mode, numbers and parameters.
    fn params(&self, middle: impl FnOnce(&mut Params)) -> Params {
        let mut params = Params { pointers: [std::ptr::null_mut(); 15], len: 0 };
        self.addresses[1..=self.count].iter().for_each(|address| params.push(address));
        params.push(&self.addresses[0]);
        middle(&mut params);
        params.push(&self.mode);
        self.given[..self.count].iter().for_each(|word| params.push(word));
        self.words.iter().for_each(|word| params.push(word));
        self.draw.iter().for_each(|draw| params.push(draw));
        params
    }

    /// The arguments of a flat kernel.
    pub(super) fn flat(&self, n: u64, head: u32, queue: impl FnOnce(&mut [*mut c_void]) -> Result<()>) -> Result<()> {
        let mut params = self.params(|params| {
            params.push(&n);
            params.push(&head);
        });
        queue(&mut params.pointers[..params.len])
    }

    /// Those of a kernel that is given steps.
    pub(super) fn tiled<const N: usize>(
        &self,
        walk: &Walk,
        queue: impl FnOnce(u64, &mut [*mut c_void]) -> Result<()>,
    ) -> Result<()> {
        let steps: Steps<N> = walk.steps();
        let items = walk.numel() as u32;
        let mut params = self.params(|params| {
            params.push(&steps);
            params.push(&items);
        });
        queue(u64::from(items), &mut params.pointers[..params.len])
    }
}

/// Launches a unary op's strided kernel.
///
/// # Safety
/// The walk's places are valid in the tensors at `addresses` (result, operand), of elements of `sizes` bytes, and one that
/// is in both has the same place in both; `stream` is of the context, and `function` such a kernel.
pub(in crate::kernel) unsafe fn launch_strided_unary(
    context: &'static Context,
    function: cuda::Function,
    stream: &Stream,
    threads: u32,
    walk: &Walk,
    (addresses, sizes, words): ([usize; 2], [usize; 2], Words),
) -> Result<()> {
    walk.parts(Limit::STEPS, Places::default(), &mut |part, place| {
        let at = |k: usize| addresses[k].wrapping_add_signed(place[k] as isize * sizes[k] as isize) as u64;
        let launch = Launch { addresses: [at(0), at(1), 0, 0], given: [0; 3], words, mode: 0, count: 1, draw: None };
        launch.tiled::<2>(part, |items, params| {
            // SAFETY: the caller's contract.
            unsafe { cuda::launch(context, function, strided_blocks(items, threads), threads, stream, params) }
        })
    })
}
