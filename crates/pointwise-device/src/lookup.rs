//! Ops of two operands of one byte each, by a table of all 65,536 results in shared memory: one kernel for all ops and
//! types, whatever their formulas cost.
//!
//! An operand may be the result's very memory, like in [`crate::formula`]: a thread owns its vectors, and loads each
//! before it stores it.

use pointwise_core::launch::{PAIRS, PAIRS_SHIFTED, PAIRS_THREADS, ROW_SPLITS, Steps};

use crate::formula::{Loaded, Places, load, place};
use crate::memory;
use crate::thread;

/// The tensors of a launch.
pub struct Tensors {
    /// The operands' first elements.
    pub operands: [*const u8; 2],
    /// The result's first element.
    pub result: *mut u8,
    /// The load modes of the operands: [`pointwise_core::launch::how`]. No operand came with the call.
    pub mode: u32,
    /// The results, in global memory, at the places of [`pointwise_core::launch::pair_slot`].
    pub table: *const u8,
}

/// A vector of each operand.
type Pair = [Loaded; 2];
/// Offsets in the tensors.
type At = Places<2, 1>;

impl Tensors {
    /// # Safety
    /// The places are valid for reading `V` elements of each operand, or one if `mode` says so, and aligned to them.
    #[inline(always)]
    unsafe fn fetch<const V: usize>(&self, at: At) -> Pair {
        // SAFETY: the caller's contract.
        unsafe {
            let a = load::<u8, V>(self.operands[0].offset(at.operands[0] as isize), self.mode, 0);
            let b = load::<u8, V>(self.operands[1].offset(at.operands[1] as isize), self.mode, 1);
            [a, b]
        }
    }

    /// # Safety
    /// The result is valid there for writing `V` elements, and aligned to them.
    #[inline(always)]
    unsafe fn finish<const V: usize>(&self, [a, b]: Pair, at: At) {
        let [a, b] = [a.spread::<u8>(), b.spread::<u8>()];
        let out = if V > 1 { [look_up(a[0], b[0]), look_up(a[1], b[1])] } else { [one(a[0], b[0]), 0] };
        // SAFETY: the caller's contract.
        unsafe { memory::store(self.result.offset(at.results[0] as isize), out, V) }
    }

    /// Fills the table, and runs `items` vectors at the places that `at` finds, a grid's width apart. The next vector
    /// is on its way while the last is looked up.
    ///
    /// # Safety
    /// Every place is as [`Tensors::fetch`] and [`Tensors::finish`] ask; `items < 2^31`, and the grid has fewer threads
    /// than that, [`PAIRS_THREADS`] a block, with [`PAIRS`] bytes of shared memory.
    #[inline(always)]
    unsafe fn run(&self, items: u32, at: impl Fn(u32) -> At) {
        let width = thread::grid_dim_x() * thread::block_dim_x();
        let mut item = thread::index_1d();
        // SAFETY: every item is below `items`; the caller's contract.
        unsafe {
            let mut coming = [Loaded::NONE; 2];
            if item < items {
                coming = self.fetch::<16>(at(item));
            }
            shared::fill(self.table);
            while item < items {
                let (now, pair) = (at(item), coming);
                item += width;
                if item < items {
                    coming = self.fetch::<16>(at(item));
                }
                self.finish::<16>(pair, now);
            }
        }
    }
}

/// Looks up vectors of tensors that all lie alike, or are one value. The first threads do the `head` elements before
/// the first aligned one, and the elements after the last whole vector.
///
/// # Safety
/// The conditions of `pointwise_device::formula::flat` for vectors of 16, and of `Tensors::run` for the grid.
#[inline(always)]
pub unsafe fn flat(tensors: &Tensors, n: u64, head: u32) {
    let vectors = ((n - head as u64) / 16) as u32;
    // SAFETY: vectors end at or before n; the caller's contract.
    unsafe { tensors.run(vectors, |item| Places::alike(head as u64 + item as u64 * 16, tensors.mode)) }
    let i = thread::index_1d();
    let single = if i < head { i as u64 } else { i as u64 + vectors as u64 * 16 };
    if i < 2 * 16 && single < n {
        let at = Places::alike(single, tensors.mode);
        // SAFETY: single < n; the caller's contract.
        unsafe { tensors.finish::<1>(tensors.fetch::<1>(at), at) }
    }
}

/// Looks up vectors along rows.
///
/// # Safety
/// The conditions of `pointwise_device::formula::tiled` for vectors of 16, and of `Tensors::run` for the grid.
#[inline(always)]
pub unsafe fn rows(tensors: &Tensors, steps: &Steps<3, ROW_SPLITS>, items: u32) {
    // SAFETY: the caller's contract.
    unsafe { tensors.run(items, |item| place(steps, item)) }
}

/// Returns the results of eight pairs.
#[inline(always)]
fn look_up(a: u64, b: u64) -> u64 {
    let four = |a: u32, b: u32| {
        let low = mixed(a, b);
        let [first, second] = [memory::choose::<0x5140>(low, a), memory::choose::<0x7362>(low, a)];
        let [r0, r1] = [shared::read(first & 0xFFFF), shared::read(first >> 16)];
        let [r2, r3] = [shared::read(second & 0xFFFF), shared::read(second >> 16)];
        memory::choose::<0x5410>(memory::choose::<0x0040>(r0, r1), memory::choose::<0x0040>(r2, r3)) as u64
    };
    four(a as u32, b as u32) | four((a >> 32) as u32, (b >> 32) as u32) << 32
}

/// Returns the result of the lowest pair.
#[inline(always)]
fn one(a: u64, b: u64) -> u64 {
    let (a, b) = (a as u32, b as u32);
    shared::read(memory::choose::<0x5140>(mixed(a, b), a) & 0xFFFF) as u64
}

/// Returns the lower bytes of the slots of four pairs.
#[inline(always)]
fn mixed(a: u32, b: u32) -> u32 {
    b ^ ((a << 3) & (PAIRS_SHIFTED as u32 * 0x0101_0101))
}

/// The table in shared memory, whose size the launch gives. There is one a module, declared by `kernel_crate!`.
mod shared {
    use core::arch::asm;

    use super::{PAIRS, PAIRS_THREADS, memory, thread};

    /// Copies the whole table, 16 bytes a thread at a time, past the registers. Every thread of the block calls it, and
    /// returns when the whole table is there.
    ///
    /// # Safety
    /// `table` is valid for reading [`PAIRS`] bytes, and aligned to 16.
    #[inline(always)]
    pub(super) unsafe fn fill(table: *const u8) {
        let shared: u32;
        // SAFETY: computes an address.
        unsafe { asm!("mov.u32 {a}, pointwise_pairs;", a = out(reg32) shared, options(pure, nomem, nostack)) }
        let mut at = thread::thread_idx_x() * 16;
        while at < PAIRS as u32 {
            // SAFETY: both stay inside the table, as the block has PAIRS_THREADS threads. They wait below.
            unsafe { memory::copy_to_shared(shared + at, table.wrapping_add(at as usize), 16, 1) }
            at += PAIRS_THREADS * 16;
        }
        memory::wait_for_copies();
        // For what the others have copied.
        thread::sync_threads();
    }

    #[inline(always)]
    pub(super) fn read(index: u32) -> u32 {
        let v: u32;
        // SAFETY: index has 16 bits. Not `pure`: it must stay behind the barrier.
        unsafe {
            asm!("{{ .reg .u32 a; mov.u32 a, pointwise_pairs; add.u32 a, a, {i}; ld.shared.u8 {v}, [a]; }}",
                i = in(reg32) index, v = out(reg32) v, options(nostack));
        }
        v
    }
}
