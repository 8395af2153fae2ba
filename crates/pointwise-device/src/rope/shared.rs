//! The table of cosines and sines in shared memory. A module has one, declared with the entries.

use core::arch::asm;

use crate::packed::unroll;

#[inline(always)]
pub(super) fn write(index: u32, value: f32) {
    // SAFETY: the caller keeps index inside the table.
    unsafe {
        asm!("{{ .reg .u32 a; mov.u32 a, pointwise_rope; add.u32 a, a, {i}; st.shared.f32 [a], {v}; }}",
            i = in(reg32) 4 * index, v = in(reg32) value, options(nostack));
    }
}

/// Reads `V` entries from an index on. The index is a multiple of `V`.
#[inline(always)]
pub(super) fn read<const V: usize>(index: u32) -> [f32; V] {
    let mut entries = [0.0; V];
    // SAFETY: the caller keeps them inside the table. Not `pure`: they must stay behind the barrier.
    unsafe {
        if V % 4 == 0 {
            unroll!(part < V / 4 => {
                let (a, b, c, d): (f32, f32, f32, f32);
                asm!("{{ .reg .u32 a; mov.u32 a, pointwise_rope; add.u32 a, a, {i};",
                    "ld.shared.v4.f32 {{{a}, {b}, {c}, {d}}}, [a]; }}",
                    i = in(reg32) 4 * index + 16 * part as u32, a = out(reg32) a, b = out(reg32) b,
                    c = out(reg32) c, d = out(reg32) d, options(nostack));
                entries[4 * part] = a;
                entries[4 * part + 1] = b;
                entries[4 * part + 2] = c;
                entries[4 * part + 3] = d;
            });
        } else {
            unroll!(i < V => {
                let entry: f32;
                asm!("{{ .reg .u32 a; mov.u32 a, pointwise_rope; add.u32 a, a, {i}; ld.shared.f32 {v}, [a]; }}",
                    i = in(reg32) 4 * (index + i as u32), v = out(reg32) entry, options(nostack));
                entries[i] = entry;
            });
        }
    }
    entries
}
