//! `y[i] = op(x[i], bits[i])`, and the mask.

use std::marker::PhantomData;

use pointwise_core::op::Words;
use pointwise_core::{DType, DescribedOp, Draw, Each, Element, Philox, RandomOp, Value};

use crate::cpu::draw::drawn;
use crate::cpu::lanes::{load, store};
use crate::cpu::level::{Loop, at_best};
use crate::cpu::operand::{BLOCK, Buffer};
use crate::cpu::parallel::{Shared, split};

/// Elements of a call, which an op runs over.
#[derive(Clone, Copy)]
pub(super) struct Part {
    /// Element `start` of the operand.
    pub(super) x: *const u8,
    /// Element `start` of the result.
    pub(super) y: *mut u8,
    /// Element `start` of the mask; null if none is written.
    pub(super) mask: *mut u8,
    /// The place of the first element in its tensor.
    pub(super) start: u64,
    /// The number of elements.
    pub(super) n: usize,
    /// The place of the call in a random sequence.
    pub(super) philox: Philox,
    /// The parameters.
    pub(super) words: Words,
}

/// An op in one element type.
///
/// # Safety
/// `x` and `y` are aligned to their elements, valid for `n` of them, and equal or
/// disjoint; `mask` is null, or valid for `n` bytes and disjoint from both.
pub(super) type RandomFn = unsafe fn(Part);

/// The op `O` on elements `E`.
///
/// # Safety
/// The contract of [`RandomFn`] holds.
pub(super) unsafe fn random<E, O>(part: Part)
where
    E: Element,
    O: DescribedOp + RandomOp<E::Compute>,
{
    // SAFETY: the caller's contract.
    unsafe { at_best(Run::<E, O> { part, of: PhantomData }) }
}

/// An op along elements.
struct Run<E, O> {
    part: Part,
    of: PhantomData<(E, O)>,
}

/// # Safety
/// The contract of [`RandomFn`] holds.
impl<E, O> Loop for Run<E, O>
where
    E: Element,
    O: DescribedOp + RandomOp<E::Compute>,
{
    #[inline(always)]
    unsafe fn run<const LEVEL: u8>(self) {
        let Part { x, y, mask, start, n, philox, words } = self.part;
        let op = O::from_words(words);
        let (blocks, last) = (philox.blocks(), op.last_kept());
        let (x, y) = (x.cast::<E>(), y.cast::<E>());
        let mut done = 0;
        while done < n {
            let len = BLOCK.min(n - done);
            let draw = Draw { blocks, first: start + done as u64, ..Draw::NONE };
            let [words, _] = drawn(&[Each::Element], &draw, len, |_, [word, _]| _ = word.is_at_most(last));
            let mut values = Buffer::<E>::NEW;
            let values = &mut values.0[..len];
            // SAFETY: done + len <= n; the caller's contract. Every value is written by the first loop.
            unsafe {
                load::<E, LEVEL>(x.add(done), values);
                for (value, &word) in values.iter_mut().zip(&words[..len]) {
                    let kept = op.kept(value.assume_init());
                    // A selection, not a product with 0: a dropped infinity or NaN is 0, too.
                    value.write(if word <= last { kept } else { E::Compute::ZERO });
                }
                store::<E, LEVEL>(values, y.add(done));
            }
            if !mask.is_null() {
                for (i, &word) in words[..len].iter().enumerate() {
                    // SAFETY: done + i < n; the caller's contract.
                    unsafe { mask.add(done + i).write(u8::from(word <= last)) };
                }
            }
            done += len;
        }
    }
}

/// Runs `op` over the elements of a call, which are of type `dtype`, in parallel.
///
/// # Safety
/// The contract of [`RandomFn`] holds.
pub(super) unsafe fn run_random(op: RandomFn, all: Part, dtype: DType) {
    // Addresses cross threads; the parts written are disjoint.
    let Part { x, y, mask, start: from, n, philox, words } = all;
    let has_mask = !mask.is_null();
    let (x, y, bytes) = (Shared(x.cast_mut()), Shared(y), Shared(mask));
    split(n, |start, len| {
        // SAFETY: start + len <= n; the caller's contract.
        unsafe {
            let mask = if has_mask { bytes.at(start) } else { std::ptr::null_mut() };
            let at = dtype.offset(start as i64) as usize;
            let (x, y) = (x.at(at).cast_const(), y.at(at));
            op(Part { x, y, mask, start: from + start as u64, n: len, philox, words });
        }
    });
}
