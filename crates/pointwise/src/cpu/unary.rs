//! `y[i] = op(x[i])`.

use std::mem::MaybeUninit;

use pointwise_core::op::Words;
use pointwise_core::{Element, Store, TableOp, UnaryOp};

use super::parallel::split;

/// `(x, y, n, parameters)`: an op in one element type.
///
/// # Safety
/// `x` and `y` are aligned to their elements, valid for `n` of them, and equal or disjoint.
pub type UnaryFn = unsafe fn(*const u8, *mut u8, usize, Words);

type Out<O, E> = <<O as UnaryOp<<E as Element>::Compute>>::Output as Store<E>>::Storage;

/// Elements converted, computed and stored at a time: three loops over buffers that stay in the first-level cache.
const BLOCK: usize = 256;

/// The op `O` on elements `E`.
///
/// # Safety
/// As [`UnaryFn`].
pub unsafe fn unary<E, O>(x: *const u8, y: *mut u8, n: usize, words: Words)
where
    E: Element,
    O: TableOp + UnaryOp<E::Compute, Output: Store<E>>,
{
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("fma") {
        // SAFETY: the features are there; the caller's contract.
        return unsafe { unary_avx2::<E, O>(x, y, n, words) };
    }
    // SAFETY: the caller's contract.
    unsafe { blocks::<E, O>(x, y, n, words) }
}

/// # Safety
/// As [`UnaryFn`]; the processor has AVX2 and FMA.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
unsafe fn unary_avx2<E, O>(x: *const u8, y: *mut u8, n: usize, words: Words)
where
    E: Element,
    O: TableOp + UnaryOp<E::Compute, Output: Store<E>>,
{
    // SAFETY: the caller's contract.
    unsafe { blocks::<E, O>(x, y, n, words) }
}

/// # Safety
/// As [`UnaryFn`].
#[inline(always)]
unsafe fn blocks<E, O>(x: *const u8, y: *mut u8, n: usize, words: Words)
where
    E: Element,
    O: TableOp + UnaryOp<E::Compute, Output: Store<E>>,
{
    let op = O::from_words(words);
    let (x, y) = (x.cast::<E>(), y.cast::<Out<O, E>>());
    let mut start = 0;
    while start < n {
        let len = BLOCK.min(n - start);
        let mut inputs = [MaybeUninit::<E::Compute>::uninit(); BLOCK];
        let mut results = [MaybeUninit::<<Out<O, E> as Element>::Compute>::uninit(); BLOCK];
        // Loads, maths and stores are loops of their own: x may be y, and a loop that reads and writes it at once
        // would not be vectorised.
        for (i, input) in inputs[..len].iter_mut().enumerate() {
            // SAFETY: start + i < n; the caller's contract.
            input.write(unsafe { x.add(start + i).read() }.widen());
        }
        for (input, result) in inputs[..len].iter().zip(&mut results[..len]) {
            // SAFETY: written above.
            result.write(op.apply(unsafe { input.assume_init() }).lane());
        }
        for (i, result) in results[..len].iter().enumerate() {
            // SAFETY: as for the loads; result was written above.
            unsafe { y.add(start + i).write(Out::<O, E>::narrow(result.assume_init())) };
        }
        start += len;
    }
}

/// Runs `op` over `n` elements, in parallel. `sizes` are the bytes of an element of `x` and of `y`.
///
/// # Safety
/// As [`UnaryFn`].
pub(crate) unsafe fn run_unary(
    op: UnaryFn,
    x: *const u8,
    y: *mut u8,
    n: usize,
    sizes: (usize, usize),
    words: Words,
) {
    // Addresses cross threads; the parts written are disjoint.
    let (x, y) = (Shared(x.cast_mut()), Shared(y));
    split(n, |start, len| {
        // SAFETY: start + len <= n; the caller's contract.
        unsafe { op(x.at(start * sizes.0), y.at(start * sizes.1), len, words) }
    });
}

/// A pointer that several threads use, each its own part.
struct Shared(*mut u8);

// SAFETY: see above: what is behind the pointer is shared by contract of `run_unary`.
unsafe impl Sync for Shared {}

impl Shared {
    /// # Safety
    /// `bytes` stays inside the allocation.
    unsafe fn at(&self, bytes: usize) -> *mut u8 {
        // SAFETY: the caller's contract.
        unsafe { self.0.add(bytes) }
    }
}
