//! The reductions of a row: each thread's lanes, then the row's threads, by a fixed tree.

use core::arch::asm;

use pointwise_core::rows::{MAX_GIVEN, MAX_THREADS, Reduction, RowData, RowState, WARP, first_answer};

use crate::packed::unroll;
use crate::thread;

/// The most warps of a row.
pub(super) const WARPS: u32 = MAX_THREADS / WARP;

/// The parts of a thread's elements in the reductions of a round, for each lane of a vector.
pub(super) struct Sums<const L: usize> {
    parts: [[f32; L]; MAX_GIVEN],
}

/// Returns the number of reductions of a round, 0 if there is no such round.
pub(super) const fn count<O: RowData>(round: usize) -> usize {
    if round < O::ROUNDS.len() { O::ROUNDS[round].len() } else { 0 }
}

/// Returns reduction `k` of a round.
#[inline(always)]
fn reduction<O: RowData>(round: usize, k: usize) -> Reduction {
    O::ROUNDS[round][k]
}

impl<const L: usize> Sums<L> {
    #[inline(always)]
    pub(super) fn new<O: RowData, const ROUND: usize>() -> Self {
        let mut parts = [[0.0; L]; MAX_GIVEN];
        unroll!(at most 9: k < count::<O>(ROUND) => {
            parts[k] = [reduction::<O>(ROUND, k).neutral(); L];
        });
        Sums { parts }
    }

    /// Adds what the elements of a vector give. A sum is not added to the zero that it `begins` with: a sum of -0 alone gets it in the
    /// end.
    #[inline(always)]
    pub(super) fn add<O: RowData, const ROUND: usize>(&mut self, given: &[[f32; L]; MAX_GIVEN], begins: bool) {
        unroll!(at most 9: k < count::<O>(ROUND) => {
            let reduction = reduction::<O>(ROUND, k);
            unroll!(l < L => {
                self.parts[k][l] = match reduction {
                    Reduction::Sum | Reduction::Mean if begins => given[k][l],
                    _ => reduction.join(self.parts[k][l], given[k][l]),
                };
            });
        });
    }

    /// Adds what the first `count` elements of a vector give.
    #[inline(always)]
    pub(super) fn add_part<O: RowData, const ROUND: usize>(&mut self, given: &[[f32; L]; MAX_GIVEN], count: u32) {
        unroll!(l < L => {
            let mut each = [0.0; MAX_GIVEN];
            unroll!(at most 9: k < self::count::<O>(ROUND) => { each[k] = given[k][l]; });
            self.add_one::<O, ROUND>(l, &each, (l as u32) < count);
        });
    }

    /// Adds what an element gives to a lane, if it counts.
    #[inline(always)]
    pub(super) fn add_one<O: RowData, const ROUND: usize>(&mut self, l: usize, given: &[f32; MAX_GIVEN], counts: bool) {
        unroll!(at most 9: k < count::<O>(ROUND) => {
            let joined = reduction::<O>(ROUND, k).join(self.parts[k][l], given[k]);
            self.parts[k][l] = if counts { joined } else { self.parts[k][l] };
        });
    }

    /// Reduces the lanes of a vector, then those of the row's threads, and puts the answers into `row`. A thread that has several rows
    /// knows its place in shared memory; for one row it takes more to keep it.
    #[inline(always)]
    pub(super) fn finish<O: RowData, const ROUND: usize>(
        mut self,
        row: &mut RowState<f32>,
        threads: u32,
        shared: Option<Shared>,
    ) {
        let first = first_answer(O::ROUNDS, ROUND);
        unroll!(at most 9: k < count::<O>(ROUND) => {
            unroll!(at most 4: step < 4 => {
                let half = L >> (step + 1);
                unroll!(if at most 8: l < half => {
                    self.parts[k][l] = reduction::<O>(ROUND, k).join(self.parts[k][l], self.parts[k][l + half]);
                });
            });
        });
        self.within_warp::<O, ROUND>(threads);
        if threads > WARP {
            let (thread, warps) = (thread::thread_idx_x(), threads / WARP);
            let own = match shared {
                Some(own) => own,
                None => Shared::new(),
            };
            unroll!(at most 9: k < count::<O>(ROUND) => {
                if thread % WARP == 0 {
                    own.put((first + k) as u32 * WARPS + thread / WARP, self.parts[k][0]);
                }
            });
            thread::sync_threads();
            unroll!(at most 9: k < count::<O>(ROUND) => {
                // Every warp has the answer. There are places for as many warps as a row may have.
                let warp = thread % WARPS;
                let part = own.get((first + k) as u32 * WARPS);
                self.parts[k][0] = if warp < warps { part } else { reduction::<O>(ROUND, k).neutral() };
            });
            self.within_warp::<O, ROUND>(WARPS);
        }
        unroll!(at most 9: k < count::<O>(ROUND) => {
            let reduction = reduction::<O>(ROUND, k);
            let all = reduction.join(self.parts[k][0], reduction.neutral());
            row.answers[first + k] = reduction.finish(all, row.len);
        });
    }

    /// Joins the parts of `threads` neighbours in a warp, the same bits in each: all reductions step by step together, so that none
    /// waits for another's steps.
    #[inline(always)]
    fn within_warp<O: RowData, const ROUND: usize>(&mut self, threads: u32) {
        if threads >= WARP {
            // One question for all steps.
            unroll!(at most 8: step < 5 => { self.join_apart::<O, ROUND>(WARP >> (step + 1)); });
            return;
        }
        unroll!(at most 4: step < 4 => {
            let apart = WARP >> (step + 2);
            if apart < threads {
                self.join_apart::<O, ROUND>(apart);
            }
        });
    }

    /// Joins the parts of threads whose indices in the warp differ by `apart` in one bit.
    #[inline(always)]
    fn join_apart<O: RowData, const ROUND: usize>(&mut self, apart: u32) {
        unroll!(at most 9: k < count::<O>(ROUND) => {
            let other = exchanged(self.parts[k][0], apart);
            self.parts[k][0] = reduction::<O>(ROUND, k).join(self.parts[k][0], other);
        });
    }
}

/// Returns the value of the thread whose index in the warp differs by `apart` in one bit.
#[inline(always)]
pub(super) fn exchanged(value: f32, apart: u32) -> f32 {
    let other;
    // SAFETY: all threads of the warp are here, as the condition around it is the same for all of them.
    unsafe {
        asm!("shfl.sync.bfly.b32 {o}, {v}, {a}, 31, 0xffffffff;", o = out(reg32) other, v = in(reg32) value,
            a = in(reg32) apart, options(nomem, nostack));
    }
    other
}

/// The place of slot `thread % WARPS` in the numbers that the block shares, `pointwise_rows`: there is one for each answer and warp.
#[derive(Clone, Copy)]
pub(super) struct Shared(u32);

impl Shared {
    /// Computes the place, which is not computed again where it is used.
    #[inline(always)]
    pub(super) fn new() -> Self {
        let address;
        // SAFETY: computes an address.
        unsafe {
            asm!("{{ .reg .u32 p; mov.u32 p, pointwise_rows; add.u32 {a}, p, {s}; }}", a = out(reg32) address,
                s = in(reg32) thread::thread_idx_x() % WARPS * 4, options(nomem, nostack));
        }
        Shared(address)
    }

    /// Writes a number, `slot` behind the place.
    #[inline(always)]
    pub(super) fn put(self, slot: u32, value: f32) {
        // SAFETY: the slot is of `pointwise_rows`.
        unsafe {
            asm!("st.shared.f32 [{a}], {v};", a = in(reg32) self.0 + slot * 4, v = in(reg32) value, options(nostack));
        }
    }

    /// Reads a number, `slot` behind the place.
    #[inline(always)]
    pub(super) fn get(self, slot: u32) -> f32 {
        let value;
        // SAFETY: as above.
        unsafe {
            asm!("ld.shared.f32 {v}, [{a}];", a = in(reg32) self.0 + slot * 4, v = out(reg32) value, options(nostack));
        }
        value
    }
}
