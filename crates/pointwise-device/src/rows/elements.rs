//! Elements of a thread's part of a row: loaded, as lanes, computed and stored.

use pointwise_core::Logic;
use pointwise_core::Word;
use pointwise_core::formula::OpData;
use pointwise_core::launch::NUMBER;
use pointwise_core::rows::{RowData, RowOp, RowState, is_keepable};

use super::part::{Part, is_row_operand, kept_place, size};
use crate::element::Bool;
use crate::formula::put;
use crate::memory;
use crate::packed::{self, Packed, unroll};
use crate::stored;

/// The results of `L` elements.
pub(super) struct Results<const R: usize, const L: usize> {
    pub(super) values: [[f32; L]; R],
    pub(super) truths: [[Logic; L]; R],
}

/// The operands of `L` elements, in f32: a row has the same bits wherever it is computed, and approximate functions would have
/// others on a GPU.
pub(super) struct Lanes<const N: usize, const L: usize> {
    pub(super) values: [[f32; N]; L],
    pub(super) truths: [[bool; N]; L],
}

impl<O, const N: usize, const R: usize, const STREAMED: bool> Part<O, N, R, STREAMED>
where
    O: RowData + RowOp<f32, N, R>,
{
    /// Loads `V` vectors of the operands `which`, bit `k` for operand `k`, as far as they are of the row: the thread's from its vector
    /// `index` on. All loads are under way before the first is waited for; without `FILLS` none is: the bits of operands that
    /// have one element have no meaning then.
    ///
    /// # Safety
    /// The conditions of [`held`](super::held).
    #[inline(always)]
    pub(super) unsafe fn load<E: Packed, const L: usize, const V: usize, const FILLS: bool>(
        &self,
        index: u32,
        which: u32,
    ) -> [[[u64; 2]; N]; V] {
        let mut held = if STREAMED && self.is_kept {
            // A branch: a load into the registers of another, which does not run, would wait for it.
            // SAFETY: the caller's contract.
            unsafe { self.load_from::<E, L, V, true>(index, which) }
        } else {
            // SAFETY: as above.
            unsafe { self.load_from::<E, L, V, false>(index, which) }
        };
        if FILLS && !self.all_move() {
            unroll!(at most 4: j < V => {
                unroll!(at most 12: k < N => {
                    if which >> k & 1 == 1 {
                        held[j][k] = self.filled(k, held[j][k]);
                    }
                });
            });
        }
        held
    }

    /// [`Part::load`] without filling, from shared memory what it keeps if it is `KEPT`.
    ///
    /// # Safety
    /// The conditions of [`held`](super::held); the row is kept if it is `KEPT`.
    #[inline(always)]
    unsafe fn load_from<E: Packed, const L: usize, const V: usize, const KEPT: bool>(
        &self,
        index: u32,
        which: u32,
    ) -> [[[u64; 2]; N]; V] {
        let mut held = [[[0; 2]; N]; V];
        unroll!(at most 4: j < V => {
            let first = (index + j as u32 * self.threads) * L as u32;
            unroll!(at most 12: k < N => {
                if which >> k & 1 == 1 && (const { O::INFO.row_operands == 0 } || !is_row_operand::<O>(k)) {
                    let (bytes, works) = (size::<E, O>(k), (first < self.len && self.moves(k)) as u32);
                    let place = self.operands[k].wrapping_add(first as usize * bytes);
                    // SAFETY: the vector is of the row; the caller's contract.
                    held[j][k] = unsafe {
                        if KEPT && is_keepable(&O::INFO, k, size_of::<E>()) {
                            memory::load_shared_or_zero(kept_place::<E, O>(k, self.len) + first * bytes as u32, L * bytes, works)
                        } else if STREAMED || const { !O::INFO.properties.of_family } {
                            // The family's formulas have no branches, which must not depend on what is not read.
                            memory::load_or_zero(place, L * bytes, works)
                        } else {
                            memory::load_here_if(place, L * bytes, works)
                        }
                    };
                }
            });
        });
        if STREAMED || const { !O::INFO.properties.of_family } {
            memory::keep_loads_here();
        }
        held
    }

    /// Returns a loaded vector of operand `k`, or one of its one element.
    #[inline(always)]
    pub(super) fn filled(&self, k: usize, loaded: [u64; 2]) -> [u64; 2] {
        let is_stored = const { O::INFO.has_stored() } && const { O::INFO }.stored_operand(k).is_some();
        if is_stored || self.moves(k) { loaded } else { self.vector_of_once(k) }
    }

    /// Returns a vector of the one element of operand `k`.
    #[inline(always)]
    fn vector_of_once(&self, k: usize) -> [u64; 2] {
        let quarter = self.once[k] as u64;
        [quarter | quarter << 32; 2]
    }

    /// Loads one element of each operand, the one `l` behind `first`, if the row has it.
    ///
    /// # Safety
    /// The conditions of [`held`](super::held), but for alignment.
    #[inline(always)]
    pub(super) unsafe fn single<E: Packed>(&self, first: u32, l: usize) -> [[u64; 2]; N] {
        let mut bits = [[0; 2]; N];
        unroll!(at most 12: k < N => {
            // Of neighbours one address, and offsets that are known.
            let place = self.operands[k].wrapping_add(first as usize * size::<E, O>(k)).wrapping_add(l * size::<E, O>(k));
            let works = self.moves(k) && first + (l as u32) < self.len;
            // SAFETY: the caller's contract.
            let element = unsafe {
                if STREAMED {
                    memory::load_here_or_zero(place, size::<E, O>(k), works as u32)[0]
                } else {
                    memory::load_unless(place, size::<E, O>(k), if works { 0 } else { NUMBER })
                }
            };
            bits[k] = if self.moves(k) { [element, 0] } else { self.vector_of_once(k) };
        });
        bits
    }

    /// Returns the operands of `L` elements.
    #[inline(always)]
    pub(super) fn lanes<E: Packed, const L: usize>(&self, bits: &[[u64; 2]; N]) -> Lanes<N, L> {
        let mut lanes = Lanes { values: [[0.0; N]; L], truths: [[false; N]; L] };
        unroll!(at most 12: k < N => {
            if const { O::INFO.has_stored() } && let Some(dtype) = const { O::INFO }.stored_operand(k) {
                let one = f32::from_bits(self.once[k]);
                let mut values = [one; L];
                if !is_row_operand::<O>(k) && self.moves(k) {
                    values = stored::unpack::<L>(dtype, bits[k]);
                }
                unroll!(l < L => { lanes.values[l][k] = values[l]; });
            } else if const { O::INFO.bool_operands() } >> k & 1 == 1 {
                let truths = packed::unpack::<Bool, L>(bits[k]);
                unroll!(l < L => { lanes.truths[l][k] = truths[l].0; });
            } else {
                let values = packed::unpack::<E, L>(bits[k]);
                unroll!(l < L => { lanes.values[l][k] = f32::from_bits(values[l].to_word() as u32); });
            }
        });
        lanes
    }

    /// Computes the results of a vector, from element `first` on.
    #[inline(always)]
    pub(super) fn results<const L: usize>(
        &self,
        lanes: &Lanes<N, L>,
        row: &RowState<f32>,
        first: u32,
    ) -> Results<R, L> {
        let mut results = Results { values: [[0.0; L]; R], truths: [[Logic(false); L]; R] };
        unroll!(l < L => {
            let (of_type, of_bool) = self.op.results(lanes.values[l], lanes.truths[l], row, first + l as u32);
            unroll!(at most 8: k < R => {
                results.values[k][l] = of_type[k];
                results.truths[k][l] = Logic(of_bool[k]);
            });
        });
        results
    }

    /// Stores the results of a vector, from element `first` on; with `SUMS` without gradients of weights.
    ///
    /// # Safety
    /// The row has `L` elements there; the conditions of [`held`](super::held).
    #[inline(always)]
    pub(super) unsafe fn store<E: Packed, const L: usize, const SUMS: bool>(
        &self,
        first: u32,
        results: &Results<R, L>,
    ) {
        unroll!(at most 8: k < R => {
            if !const { O::INFO }.is_row_result(k) && !(SUMS && const { O::INFO }.is_weight_result(k)) {
                let mut values = results.values[k];
                if const { O::INFO }.is_weight_result(k) {
                    // A sum over rows begins with a zero, so that -0 becomes 0. So it does of one row.
                    unroll!(l < L => { values[l] += 0.0; });
                }
                // SAFETY: the caller's contract.
                unsafe { store::<E, O, L>(k, self.results[k], first as i64, values, results.truths[k]) };
            }
        });
    }
}

/// Stores elements of result `k`, in its type.
///
/// # Safety
/// The place is valid for writing `V` elements, and aligned to them.
#[inline(always)]
pub(super) unsafe fn store<E: Packed, O: OpData, const V: usize>(
    k: usize,
    target: *mut u8,
    at: i64,
    values: [f32; V],
    truths: [Logic; V],
) {
    // SAFETY: the caller's contract.
    unsafe {
        match const { O::INFO }.stored_result(k) {
            Some(dtype) => stored::store::<V>(dtype, target, at, values, true),
            _ if const { O::INFO.bool_results() } >> k & 1 == 1 => put::<Bool, V>(target, at, truths, true),
            _ => {
                let mut lanes = [E::Compute::from_word(0); V];
                unroll!(l < V => { lanes[l] = E::Compute::from_word(values[l].to_bits() as u64); });
                put::<E, V>(target, at, lanes, true);
            }
        }
    }
}
