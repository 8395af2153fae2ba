//! GradientsKernel: `y0[i], y1[i], .. = op(first[i], b[i], ..)`, by the templates of [`crate::broadcast`] with up to
//! four operands and three results.
//!
//! A result may be an operand's very memory; tensors are otherwise disjoint, the results from each other too.

use pointwise_core::launch::{GRADIENT_TENSORS, ONCE, Steps};
use pointwise_core::op::{MAX_OPERANDS, MAX_RESULTS};
use pointwise_core::{GradientOp, TableOp, Value};

use crate::broadcast::{Loaded, lanes, load, one_each, place, single};
use crate::packed::{self, Packed, unroll};
use crate::thread;

/// The tensors of a launch. Those that the op has not are neither read nor written.
pub struct Tensors<F, E> {
    /// The results' first elements.
    pub results: [*mut E; MAX_RESULTS],
    /// The first operand's.
    pub first: *const F,
    /// The other operands'.
    pub others: [*const E; MAX_OPERANDS - 1],
    /// Operands that came with the call.
    pub words: [u64; MAX_OPERANDS],
    /// Which operands are one value, as in [`crate::broadcast::Inputs::mode`].
    pub mode: u32,
}

/// Offsets in the tensors, in elements: the results, then the operands.
type Places = [i64; GRADIENT_TENSORS];

/// One vector: loads as `mode` says, formulas, stores of all elements or the first one.
///
/// # Safety
/// At the places, operands are as `load` asks, and results valid for writing what `is_vector` says, and aligned to it.
#[inline(always)]
unsafe fn vector<F, E, O, const V: usize>(tensors: &Tensors<F, E>, mode: u32, at: Places, is_vector: bool, op: O)
where
    F: Packed,
    E: Packed,
    O: TableOp + GradientOp<E::Compute, F::Compute>,
{
    let (operands, results) = const { (O::INFO.operands.len(), O::INFO.results.len()) };
    if const { O::INFO.properties.few_registers } {
        if size_of::<E>() == 4 { thread::at_most_registers::<32>() } else { thread::at_most_registers::<48>() }
    }
    // SAFETY: the caller's contract.
    unsafe {
        let first = load::<F, V>(tensors.first.offset(at[MAX_RESULTS] as isize), mode, 0);
        let mut loaded = [Loaded::NONE; MAX_OPERANDS - 1];
        unroll!(at most 4: k < MAX_OPERANDS - 1 => {
            if k + 1 < operands {
                let place = at[MAX_RESULTS + 1 + k] as isize;
                loaded[k] = load::<E, V>(tensors.others[k].offset(place), mode, k as u32 + 1);
            }
        });
        let first = lanes::<F, V>(first, tensors.words[0]);
        let mut others = [[E::Compute::ZERO; V]; MAX_OPERANDS - 1];
        unroll!(at most 4: k < MAX_OPERANDS - 1 => {
            if k + 1 < operands {
                others[k] = lanes::<E, V>(loaded[k], tensors.words[k + 1]);
            }
        });
        let mut values = [[E::Compute::ZERO; V]; MAX_RESULTS];
        unroll!(i < V => {
            let [y0, y1, y2] = op.apply(first[i], [others[0][i], others[1][i], others[2][i]]);
            values[0][i] = y0;
            values[1][i] = y1;
            values[2][i] = y2;
        });
        unroll!(at most 4: k < MAX_RESULTS => {
            if k < results {
                let target = tensors.results[k].offset(at[k] as isize);
                if is_vector {
                    packed::store::<E, V>(target, values[k]);
                } else {
                    packed::store::<E, 1>(target, [values[k][0]]);
                }
            }
        });
    }
}

/// Offsets of element `i` of tensors that all lie alike, but for operands that are one value.
#[inline(always)]
fn alike(i: u64, mode: u32) -> Places {
    let of = |k: u32| if mode & (ONCE << k) != 0 { 0 } else { i as i64 };
    let i = i as i64;
    [i, i, i, of(0), of(1), of(2), of(3)]
}

/// As [`crate::broadcast::flat`].
///
/// # Safety
/// As there, of every result.
#[inline(always)]
pub unsafe fn flat<F, E, O, const V: usize>(tensors: &Tensors<F, E>, n: u64, head: u32, op: O)
where
    F: Packed,
    E: Packed,
    O: TableOp + GradientOp<E::Compute, F::Compute>,
{
    let i = thread::index_1d();
    let vectors = ((n - head as u64) / V as u64) as u32;
    let singles = (n - vectors as u64 * V as u64) as u32;
    if i < vectors + singles {
        let (mode, is_vector) = (tensors.mode, i < vectors);
        let first = if is_vector { head as u64 + i as u64 * V as u64 } else { single::<V>(i - vectors, head, vectors) };
        let how = if is_vector { mode } else { one_each(mode) };
        // SAFETY: the vector ends at or before n, the single element is below; the caller's contract.
        unsafe { vector::<F, E, O, V>(tensors, how, alike(first, mode), is_vector, op) }
    }
}

/// As [`crate::broadcast::tiled`].
///
/// # Safety
/// As there, of every result.
#[inline(always)]
pub unsafe fn tiled<F, E, O, const V: usize, const D: usize>(
    tensors: &Tensors<F, E>,
    steps: &Steps<GRADIENT_TENSORS, D>,
    items: u32,
    op: O,
) where
    F: Packed,
    E: Packed,
    O: TableOp + GradientOp<E::Compute, F::Compute>,
{
    let item = thread::index_1d();
    if item < items {
        // SAFETY: item < items; the caller's contract.
        unsafe { vector::<F, E, O, V>(tensors, tensors.mode, place(steps, item), true, op) }
    }
}
