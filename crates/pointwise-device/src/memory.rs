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

/// What a vector's load is to do; at most one bit is set, by the host, so that the choice is the same in all threads.
#[derive(Clone, Copy)]
pub struct How {
    /// Not zero: nothing, and the bits are anything.
    pub nothing: u32,
    /// Not zero: one element.
    pub one: u32,
    /// Not zero: the vector, whose lines the level-2 cache is to give up first, to hold what stays longer.
    pub passing: u32,
}

/// A load for each way, of which one runs, without a branch: those of all operands are under way before one is waited for.
macro_rules! one_of {
    ($how:ident, $vector:literal, $one:literal, $address:ident, $($lane:ident)*) => {
        asm!("{{ .reg .pred v, o, p; .reg .b32 t; setp.ne.u32 o, {one}, 0; setp.ne.u32 p, {passing}, 0;",
            "or.b32 t, {one}, {passing}; or.b32 t, t, {nothing}; setp.eq.u32 v, t, 0;",
            concat!("@v ld.global", $vector, ", [{a}];"),
            concat!("@p ld.global.cs", $vector, ", [{a}];"),
            concat!("@o ld.global", $one, ", [{a}]; }}"),
            $($lane = out(reg32) $lane,)* a = in(reg64) $address, one = in(reg32) $how.one,
            passing = in(reg32) $how.passing, nothing = in(reg32) $how.nothing, options(pure, readonly, nostack))
    };
}

macro_rules! word_or {
    ($how:ident, $vector:literal, $one:literal, $address:ident) => {{
        let x: u32;
        one_of!($how, $vector, $one, $address, x);
        [x as u64, 0]
    }};
}

macro_rules! pair_or {
    ($how:ident, $one:literal, $address:ident) => {{
        let (x, y): (u32, u32);
        one_of!($how, ".v2.u32 {{{x}, {y}}}", $one, $address, x y);
        [join(x, y), 0]
    }};
}

macro_rules! quad_or {
    ($how:ident, $one:literal, $address:ident) => {{
        let (x, y, z, w): (u32, u32, u32, u32);
        one_of!($how, ".v4.u32 {{{x}, {y}, {z}, {w}}}", $one, $address, x y z w);
        [join(x, y), join(z, w)]
    }};
}

/// Reads a vector of `bytes` (2, 4, 8 or 16) bytes, or one element of it, of `size` (1, 2, 4 or 8) bytes, into the lowest
/// bits, the others being anything. `bytes` and `size` must fold to constants.
///
/// # Safety
/// Unless `how` says nothing is read: `address` is valid for reading that many bytes of global memory and aligned to them.
#[inline(always)]
pub unsafe fn load_as(address: *const u8, bytes: usize, size: usize, how: How) -> [u64; 2] {
    // SAFETY: the caller's contract.
    unsafe {
        match (bytes, size) {
            (2, _) => word_or!(how, ".u16 {x}", ".u8 {x}", address),
            (4, 1) => word_or!(how, ".u32 {x}", ".u8 {x}", address),
            (4, _) => word_or!(how, ".u32 {x}", ".u16 {x}", address),
            (8, 1) => pair_or!(how, ".u8 {x}", address),
            (8, 2) => pair_or!(how, ".u16 {x}", address),
            (8, _) => pair_or!(how, ".u32 {x}", address),
            (_, 1) => quad_or!(how, ".u8 {x}", address),
            (_, 2) => quad_or!(how, ".u16 {x}", address),
            (_, 4) => quad_or!(how, ".u32 {x}", address),
            _ => quad_or!(how, ".v2.u32 {{{x}, {y}}}", address),
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

/// Twice the word whose bytes are those of `word` that `BYTES` selects, in the manner of `prmt`.
#[inline(always)]
pub fn repeat<const BYTES: u32>(word: u32) -> u64 {
    let twice: u64;
    // SAFETY: arithmetic on registers. Written as shifts, LLVM makes 64-bit multiplications of it.
    unsafe {
        asm!("{{ .reg .b32 t; prmt.b32 t, {w}, 0, {b}; mov.b64 {d}, {{t, t}}; }}", w = in(reg32) word, b = const BYTES,
            d = out(reg64) twice, options(pure, nomem, nostack));
    }
    twice
}
