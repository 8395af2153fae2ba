//! RandomKernel: `y[i] = op(x[i], bits[i])`, and `mask[i]` where one is asked for.
//!
//! `bits[i]` is a function of seed, offset and `i` alone; what the strategies differ in is how many elements share one
//! computation of a block of four words. In place and aliasing: as in [`crate::unary`].

use pointwise_core::num::Logic;
use pointwise_core::philox::BLOCK;
use pointwise_core::{Philox, RandomOp, Value};

use crate::element::Bool;
use crate::packed::{self, Packed, unroll};
use crate::thread;

/// The most elements of a vector.
const MOST: usize = 16;

/// A thread an element, which computes a block for one word of it.
///
/// # Safety
/// `x` and `y` are aligned to their elements and valid for `n` of them, and equal or disjoint; with `MASK`, `mask` is
/// valid for `n` bytes and disjoint from both.
#[inline(always)]
pub unsafe fn direct<E, O, const MASK: bool>(
    x: *const E,
    y: *mut E,
    mask: *mut Bool,
    n: u64,
    _head: u32,
    philox: Philox,
    op: O,
) where
    E: Packed,
    O: RandomOp<E::Compute>,
{
    let i = thread::index_1d_wide();
    if i < n {
        // SAFETY: i < n; the caller's contract.
        unsafe { element::<E, O, MASK>(x, y, mask, i, philox, op) }
    }
}

/// A thread the four elements of a block, loaded one by one: any alignment, any size.
///
/// # Safety
/// As [`direct`].
#[inline(always)]
pub unsafe fn explicit_parallel<E, O, const MASK: bool>(
    x: *const E,
    y: *mut E,
    mask: *mut Bool,
    n: u64,
    _head: u32,
    philox: Philox,
    op: O,
) where
    E: Packed,
    O: RandomOp<E::Compute>,
{
    let block = thread::index_1d_wide();
    let first = block * BLOCK as u64;
    if first + BLOCK as u64 <= n {
        let words = philox.block(block);
        let mut inputs = [E::Compute::ZERO; BLOCK];
        // SAFETY: the run ends at or before n; the caller's contract.
        unsafe {
            let (x, y, mask) = (x.add(first as usize), y.add(first as usize), mask.wrapping_add(first as usize));
            unroll!(at most 4: i < BLOCK => { [inputs[i]] = packed::load::<E, 1>(x.add(i)); });
            unroll!(at most 4: i < BLOCK => { packed::store::<E, 1>(y.add(i), [op.apply(inputs[i], words[i])]); });
            if MASK {
                unroll!(at most 4: i < BLOCK => {
                    packed::store::<Bool, 1>(mask.add(i), [Logic(op.keeps(words[i]))]);
                });
            }
        }
    } else {
        for i in first..n {
            // SAFETY: i < n; the caller's contract.
            unsafe { element::<E, O, MASK>(x, y, mask, i, philox, op) }
        }
    }
}

/// A thread one vector of `V` elements by 16-byte accesses, and `V` bytes of the mask at once; head and rest as in
/// [`crate::unary::register_copy`].
///
/// # Safety
/// As [`direct`]; `head <= n`, `x + head` and `y + head` are aligned to 16 bytes, and `mask + head` to `V` with `MASK`.
#[inline(always)]
pub unsafe fn register_copy<E, O, const MASK: bool, const V: usize>(
    x: *const E,
    y: *mut E,
    mask: *mut Bool,
    n: u64,
    head: u32,
    philox: Philox,
    op: O,
) where
    E: Packed,
    O: RandomOp<E::Compute>,
{
    let i = thread::index_1d();
    let body = n - head as u64;
    let vectors = (body / V as u64) as u32;
    if i < vectors {
        let first = head as u64 + i as u64 * V as u64;
        // SAFETY: vector i lies inside the body; the caller's contract.
        unsafe {
            // The load is in flight while the words are computed.
            let inputs = packed::load::<E, V>(x.add(first as usize));
            let words = words::<V>(philox, first);
            let mut results = [E::Compute::ZERO; V];
            unroll!(i < V => { results[i] = op.apply(inputs[i], words[i]); });
            packed::store::<E, V>(y.add(first as usize), results);
            if MASK {
                let mut kept = [Logic(false); V];
                unroll!(i < V => { kept[i] = Logic(op.keeps(words[i])); });
                packed::store::<Bool, V>(mask.add(first as usize), kept);
            }
        }
    }
    if thread::block_idx_x() == 0 {
        let t = i as u64;
        let at = if t < head as u64 { t } else { t + vectors as u64 * V as u64 };
        if at < n {
            // SAFETY: at < n.
            unsafe { element::<E, O, MASK>(x, y, mask, at, philox, op) }
        }
    }
}

/// The words of elements `first .. first + V`, at the start of the array.
#[inline(always)]
pub(crate) fn words<const V: usize>(philox: Philox, first: u64) -> [u32; MOST + BLOCK] {
    let block = first / BLOCK as u64;
    let mut words = [0; MOST + BLOCK];
    if V == 1 {
        words[0] = philox.word(first);
        return words;
    }
    let blocks = V.div_ceil(BLOCK);
    unroll!(at most 4: b < blocks => {
        let four = philox.block(block + b as u64);
        unroll!(at most 4: k < BLOCK => { words[b * BLOCK + k] = four[k]; });
    });
    // The same for all threads: where the head is no multiple of a block, or a vector shorter, it straddles blocks.
    let skip = first as u32 % BLOCK as u32;
    if skip != 0 {
        let four = philox.block(block + blocks as u64);
        unroll!(at most 4: k < BLOCK => { words[blocks * BLOCK + k] = four[k]; });
        let by = |distance: u32| skip & distance != 0;
        unroll!(i < V => { words[i] = if by(1) { words[i + 1] } else { words[i] }; });
        words[V] = if by(1) { words[V + 1] } else { words[V] };
        words[V + 1] = if by(1) { words[V + 2] } else { words[V + 1] };
        unroll!(i < V => { words[i] = if by(2) { words[i + 2] } else { words[i] }; });
    }
    words
}

/// # Safety
/// `x`, `y` and, with `MASK`, `mask` are valid at `i`.
#[inline(always)]
unsafe fn element<E, O, const MASK: bool>(x: *const E, y: *mut E, mask: *mut Bool, i: u64, philox: Philox, op: O)
where
    E: Packed,
    O: RandomOp<E::Compute>,
{
    let word = philox.word(i);
    // SAFETY: the caller's contract.
    unsafe {
        let [input] = packed::load::<E, 1>(x.add(i as usize));
        packed::store::<E, 1>(y.add(i as usize), [op.apply(input, word)]);
        if MASK {
            packed::store::<Bool, 1>(mask.add(i as usize), [Logic(op.keeps(word))]);
        }
    }
}
