//! Looks up results of one byte in a table of all codes. Each block makes it in shared memory.

use core::arch::asm;

use pointwise_core::Value;
use pointwise_core::formula::{Formula, OpData};
use pointwise_core::launch::{CODES, CODES_THREADS, CODES_VECTORS};

use super::Tensors;
use crate::memory;
use crate::packed::{Packed, unroll};
use crate::thread;

/// Each thread looks up [`CODES_VECTORS`] vectors of 16 bytes. The block behind the last whole one does the `head`
/// elements before the first aligned one, and the elements after the last whole vector.
///
/// # Safety
/// The conditions of [`flat`](super::flat), for an operand that is read by vectors, and: the launch has
/// [`CODES_THREADS`] threads a block and a block more than whole ones, and the module declares `pointwise_table`.
#[inline(always)]
pub unsafe fn table<E, O>(tensors: &Tensors<1, 1>, n: u64, head: u32, op: O)
where
    E: Packed,
    O: OpData + Formula<E::Compute, 1, 1>,
{
    const { assert!(size_of::<E>() == 1 && O::INFO.bool_results() == 0 && O::INFO.bool_operands() == 0) }
    // The fill and the barrier come first, reached by every thread.
    let each = CODES as u32 / CODES_THREADS;
    let mut code = thread::thread_idx_x() * each;
    for _ in 0..each {
        write(code, result::<E, O>(code, op));
        code += 1;
    }
    thread::sync_threads();

    let vectors = (n - head as u64) / 16;
    let in_block = (CODES_THREADS as usize * CODES_VECTORS) as u64;
    let first = thread::block_idx_x() as u64 * in_block + thread::thread_idx_x() as u64;
    let (x, y) = (tensors.operands[0], tensors.results[0]);
    // SAFETY: every access is inside the n elements; the caller's contract.
    unsafe {
        let (source, target) = (x.add(head as usize), y.add(head as usize));
        let at = |k: usize| first + (k * CODES_THREADS as usize) as u64;
        let load = |k| memory::load(source.add(at(k) as usize * 16), 16);
        let store = |k, words: [u64; 2]| memory::store(target.add(at(k) as usize * 16), words.map(look_up), 16);
        if at(CODES_VECTORS - 1) < vectors {
            // All loads are in flight before the first look-up. Named, not an array, which would go to local memory.
            let (w0, w1, w2, w3) = (load(0), load(1), load(2), load(3));
            store(0, w0);
            store(1, w1);
            store(2, w2);
            store(3, w3);
        } else {
            for k in 0..CODES_VECTORS {
                if at(k) < vectors {
                    store(k, load(k));
                }
            }
        }
        if thread::block_idx_x() as u64 == vectors / in_block {
            let t = thread::thread_idx_x() as u64;
            let byte = |i: u64| {
                let [code, _] = memory::load(x.add(i as usize), 1);
                memory::store(y.add(i as usize), [read(code as u32) as u64, 0], 1);
            };
            if t < head as u64 {
                byte(t);
            }
            let last = head as u64 + vectors * 16 + t;
            if last < n {
                byte(last);
            }
        }
    }
}

/// Returns the result of a code.
#[inline(always)]
fn result<E, O>(code: u32, op: O) -> u32
where
    E: Packed,
    O: OpData + Formula<E::Compute, 1, 1>,
{
    let [x, ..] = E::unpack(code as u64);
    let ([y], _) = op.apply([x], [false], 0.into());
    let mut lanes = [E::Compute::ZERO; 8];
    lanes[0] = y;
    E::pack(lanes) as u32 & 0xFF
}

/// Looks up eight bytes.
#[inline(always)]
fn look_up(word: u64) -> u64 {
    let mut out = 0;
    unroll!(at most 8: i < 8 => { out |= (read((word >> (8 * i)) as u32 & 0xFF) as u64) << (8 * i); });
    out
}

/// Writes to the table, which `kernel_crate!` declares once a module.
#[inline(always)]
fn write(index: u32, byte: u32) {
    // SAFETY: the caller keeps index below the 256 bytes of the table.
    unsafe {
        asm!("{{ .reg .u32 a; mov.u32 a, pointwise_table; add.u32 a, a, {i}; st.shared.u8 [a], {v}; }}",
            i = in(reg32) index, v = in(reg32) byte, options(nostack));
    }
}

/// Reads the table.
#[inline(always)]
fn read(index: u32) -> u32 {
    let v: u32;
    // SAFETY: index is a byte. Not `pure`: it must stay behind the barrier.
    unsafe {
        asm!("{{ .reg .u32 a; mov.u32 a, pointwise_table; add.u32 a, a, {i}; ld.shared.u8 {v}, [a]; }}",
            i = in(reg32) index, v = out(reg32) v, options(nostack));
    }
    v
}
