//! Global memory by 1, 2, 4, 8 and 16 bytes.
//!
//! The accesses are inline assembly: LLVM turns a copied 16-byte struct into two 8-byte accesses, and the state space
//! must be `.global` whatever it can prove of the pointer. A generic address of global memory is its global address.

use core::arch::asm;

/// Reads `bytes` (1, 2, 4, 8 or 16) bytes, zero-extended. `bytes` must fold to a constant.
///
/// # Safety
/// `address` is valid for reading `bytes` bytes of global memory and aligned to `bytes`.
#[inline(always)]
pub unsafe fn load(address: *const u8, bytes: usize) -> [u64; 2] {
    // SAFETY: the caller's contract.
    unsafe {
        match bytes {
            1 => {
                let v: u32;
                asm!("ld.global.u8 {v}, [{a}];", v = out(reg32) v, a = in(reg64) address,
                    options(pure, readonly, nostack));
                [v as u64, 0]
            }
            2 => {
                let v: u16;
                asm!("ld.global.u16 {v}, [{a}];", v = out(reg16) v, a = in(reg64) address,
                    options(pure, readonly, nostack));
                [v as u64, 0]
            }
            4 => {
                let v: u32;
                asm!("ld.global.u32 {v}, [{a}];", v = out(reg32) v, a = in(reg64) address,
                    options(pure, readonly, nostack));
                [v as u64, 0]
            }
            8 => {
                let (x, y): (u32, u32);
                asm!("ld.global.v2.u32 {{{x}, {y}}}, [{a}];", x = out(reg32) x, y = out(reg32) y,
                    a = in(reg64) address, options(pure, readonly, nostack));
                [join(x, y), 0]
            }
            _ => {
                let (x, y, z, w): (u32, u32, u32, u32);
                asm!("ld.global.v4.u32 {{{x}, {y}, {z}, {w}}}, [{a}];", x = out(reg32) x, y = out(reg32) y,
                    z = out(reg32) z, w = out(reg32) w, a = in(reg64) address,
                    options(pure, readonly, nostack));
                [join(x, y), join(z, w)]
            }
        }
    }
}

/// The inverse of [`load`].
///
/// # Safety
/// `address` is valid for writing `bytes` bytes of global memory and aligned to `bytes`.
#[inline(always)]
pub unsafe fn store(address: *mut u8, [a, b]: [u64; 2], bytes: usize) {
    // SAFETY: the caller's contract.
    unsafe {
        match bytes {
            1 => asm!("st.global.u8 [{p}], {v};", p = in(reg64) address, v = in(reg32) a as u32, options(nostack)),
            2 => asm!("st.global.u16 [{p}], {v};", p = in(reg64) address, v = in(reg16) a as u16, options(nostack)),
            4 => asm!("st.global.u32 [{p}], {v};", p = in(reg64) address, v = in(reg32) a as u32, options(nostack)),
            8 => asm!("st.global.v2.u32 [{p}], {{{x}, {y}}};", p = in(reg64) address, x = in(reg32) a as u32,
                y = in(reg32) (a >> 32) as u32, options(nostack)),
            _ => asm!("st.global.v4.u32 [{p}], {{{x}, {y}, {z}, {w}}};", p = in(reg64) address,
                x = in(reg32) a as u32, y = in(reg32) (a >> 32) as u32,
                z = in(reg32) b as u32, w = in(reg32) (b >> 32) as u32, options(nostack)),
        }
    }
}

#[inline(always)]
fn join(low: u32, high: u32) -> u64 {
    low as u64 | (high as u64) << 32
}
