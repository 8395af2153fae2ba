//! Global and shared memory by 1, 2, 4, 8 and 16 bytes.
//!
//! The accesses are inline assembly: LLVM turns a copied 16-byte struct into two 8-byte accesses, and the state space
//! must be `.global`, whatever LLVM can prove about the pointer. A generic address of global memory is its global
//! address.

use core::arch::asm;

use duplicate::duplicate_item;
use pointwise_core::launch::{NUMBER, ONCE, PASSING};

use crate::packed::unroll;

/// Reads a vector of 2, 4, 8 or 16 bytes as words, by lines of assembly: `_` is the vector's type and registers.
macro_rules! vector {
    ($bytes:ident, [$($line:tt)*] $($operand:tt)*) => {
        match $bytes {
            2 => {
                let x: u32;
                vector!(@ "u16 {x}" [x] [$($line)*] $($operand)*);
                [x as u64, 0]
            }
            4 => {
                let x: u32;
                vector!(@ "u32 {x}" [x] [$($line)*] $($operand)*);
                [x as u64, 0]
            }
            8 => {
                let (x, y): (u32, u32);
                vector!(@ "v2.u32 {{{x}, {y}}}" [x y] [$($line)*] $($operand)*);
                [join(x, y), 0]
            }
            _ => {
                let (x, y, z, w): (u32, u32, u32, u32);
                vector!(@ "v4.u32 {{{x}, {y}, {z}, {w}}}" [x y z w] [$($line)*] $($operand)*);
                [join(x, y), join(z, w)]
            }
        }
    };
    (@ $vector:literal [$($lane:ident)*] [$($($before:literal)+ $(_ $($behind:literal)+)?),+] $($operand:tt)*) => {
        asm!($(concat!($($before),+ $(, $vector, $($behind),+)?),)+ $($lane = out(reg32) $lane,)* $($operand)*)
    };
}

/// Reads 1, 2, 4, 8 or 16 bytes at `{a}` by an instruction, zero-extended; without a branch nothing if `works` is zero, and zero then.
macro_rules! or_zero {
    ($bytes:ident, $works:ident, $load:literal, $($operand:tt)*) => {
        match $bytes {
            1 => {
                let v: u32;
                or_zero!(@ "mov.u32 {v}, 0;" $load ".u8 {v}" [v = out(reg32) v,] $works $($operand)*);
                [v as u64, 0]
            }
            2 => {
                let v: u16;
                or_zero!(@ "mov.u16 {v}, 0;" $load ".u16 {v}" [v = out(reg16) v,] $works $($operand)*);
                [v as u64, 0]
            }
            4 => {
                let v: u32;
                or_zero!(@ "mov.u32 {v}, 0;" $load ".u32 {v}" [v = out(reg32) v,] $works $($operand)*);
                [v as u64, 0]
            }
            8 => {
                let v: u64;
                or_zero!(@ "mov.u64 {v}, 0;" $load ".u64 {v}" [v = out(reg64) v,] $works $($operand)*);
                [v, 0]
            }
            _ => {
                let (x, y, z, w): (u32, u32, u32, u32);
                or_zero!(@ "mov.u32 {x}, 0; mov.u32 {y}, 0; mov.u32 {z}, 0; mov.u32 {w}, 0;"
                    $load ".v4.u32 {{{x}, {y}, {z}, {w}}}"
                    [x = out(reg32) x, y = out(reg32) y, z = out(reg32) z, w = out(reg32) w,] $works $($operand)*);
                [join(x, y), join(z, w)]
            }
        }
    };
    (@ $zero:literal $load:literal $vector:literal [$($out:tt)*] $works:ident $($operand:tt)*) => {
        asm!("{{ .reg .pred p; setp.ne.u32 p, {works}, 0;", $zero, concat!("@p ", $load, $vector, ", [{a}]; }}"),
            $($out)* works = in(reg32) $works, $($operand)*)
    };
}

/// Writes 1, 2, 4, 8 or 16 bytes by an instruction.
macro_rules! store_as {
    ($store:literal, [$a:ident, $b:ident], $bytes:ident, $($address:tt)*) => {
        match $bytes {
            1 => asm!(concat!($store, ".u8 [{p}], {v};"), p = $($address)*, v = in(reg32) $a as u32, options(nostack)),
            2 => asm!(concat!($store, ".u16 [{p}], {v};"), p = $($address)*, v = in(reg16) $a as u16, options(nostack)),
            4 => asm!(concat!($store, ".u32 [{p}], {v};"), p = $($address)*, v = in(reg32) $a as u32, options(nostack)),
            8 => asm!(concat!($store, ".v2.u32 [{p}], {{{x}, {y}}};"), p = $($address)*, x = in(reg32) $a as u32,
                y = in(reg32) ($a >> 32) as u32, options(nostack)),
            _ => asm!(concat!($store, ".v4.u32 [{p}], {{{x}, {y}, {z}, {w}}};"), p = $($address)*,
                x = in(reg32) $a as u32, y = in(reg32) ($a >> 32) as u32,
                z = in(reg32) $b as u32, w = in(reg32) ($b >> 32) as u32, options(nostack)),
        }
    };
}

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
            _ => vector!(bytes, ["ld.global." _ ", [{a}];"]
                a = in(reg64) address, options(pure, readonly, nostack)),
        }
    }
}

/// [`load`] of 4, 8 or 16 bytes that stays in place: the compiler may not move it to the first use of the bits, behind
/// loads that others wait for.
///
/// # Safety
/// The conditions of [`load`].
#[inline(always)]
pub unsafe fn load_here(address: *const u8, bytes: usize) -> [u64; 2] {
    // SAFETY: the caller's contract.
    unsafe { vector!(bytes, ["ld.global." _ ", [{a}];"] a = in(reg64) address, options(readonly, nostack)) }
}

/// [`load_here`], but if `works` is zero, nothing is read, and the bits have no meaning. No branch.
///
/// # Safety
/// The conditions of [`load`], unless `works` is zero.
#[inline(always)]
pub unsafe fn load_here_if(address: *const u8, bytes: usize, works: u32) -> [u64; 2] {
    // SAFETY: the caller's contract.
    unsafe {
        vector!(bytes, ["{{ .reg .pred p; setp.ne.u32 p, {works}, 0;", "@p ld.global." _ ", [{a}]; }}"]
            a = in(reg64) address, works = in(reg32) works, options(readonly, nostack))
    }
}

/// [`load_here_if`], but what is not read is zero: in a loop its registers are not kept for the bits of the round before, as those
/// of a load that may not run are.
///
/// # Safety
/// The conditions of [`load`], unless `works` is zero.
#[inline(always)]
pub unsafe fn load_here_or_zero(address: *const u8, bytes: usize, works: u32) -> [u64; 2] {
    // SAFETY: the caller's contract.
    unsafe { or_zero!(bytes, works, "ld.global", a = in(reg64) address, options(readonly, nostack)) }
}

/// [`load_here_or_zero`], but bits that nothing asks for are not loaded. With [`keep_loads_here`] behind it, it stays in place.
///
/// # Safety
/// The conditions of [`load`], unless `works` is zero.
#[inline(always)]
pub unsafe fn load_or_zero(address: *const u8, bytes: usize, works: u32) -> [u64; 2] {
    // SAFETY: the caller's contract.
    unsafe { or_zero!(bytes, works, "ld.global", a = in(reg64) address, options(pure, readonly, nostack)) }
}

/// [`load_or_zero`] of shared memory.
///
/// # Safety
/// The bytes are of the block's shared memory, and aligned to `bytes`, unless `works` is zero.
#[inline(always)]
pub unsafe fn load_shared_or_zero(address: u32, bytes: usize, works: u32) -> [u64; 2] {
    // SAFETY: the caller's contract.
    unsafe { or_zero!(bytes, works, "ld.shared", a = in(reg32) address, options(pure, readonly, nostack)) }
}

/// Keeps the loads before it in front of it: the compiler may not move one to the first use of its bits, behind others' waits.
#[inline(always)]
pub fn keep_loads_here() {
    // SAFETY: no instruction. To the compiler it may write memory.
    unsafe { asm!("", options(nostack)) }
}

/// Begins to copy 4, 8 or 16 bytes of global memory to shared memory, if `works` is not zero. `bytes` must fold to a constant.
///
/// # Safety
/// Unless `works` is zero: the conditions of [`load`]; the bytes at `to` are of the block's shared memory and aligned to `bytes`, and
/// nobody reads them before the thread has called [`wait_for_copies`].
#[inline(always)]
pub unsafe fn copy_to_shared(to: u32, from: *const u8, bytes: usize, works: u32) {
    // SAFETY: the caller's contract.
    unsafe {
        match bytes {
            16 => asm!("{{ .reg .pred p; setp.ne.u32 p, {w}, 0; @p cp.async.cg.shared.global [{t}], [{f}], 16; }}",
                w = in(reg32) works, t = in(reg32) to, f = in(reg64) from, options(nostack)),
            8 => asm!("{{ .reg .pred p; setp.ne.u32 p, {w}, 0; @p cp.async.ca.shared.global [{t}], [{f}], 8; }}",
                w = in(reg32) works, t = in(reg32) to, f = in(reg64) from, options(nostack)),
            _ => asm!("{{ .reg .pred p; setp.ne.u32 p, {w}, 0; @p cp.async.ca.shared.global [{t}], [{f}], 4; }}",
                w = in(reg32) works, t = in(reg32) to, f = in(reg64) from, options(nostack)),
        }
    }
}

/// [`copy_to_shared`] of 16 bytes through the level-1 cache, where other rows find them.
///
/// # Safety
/// The conditions of [`copy_to_shared`].
#[inline(always)]
pub unsafe fn copy_to_shared_by_cache(to: u32, from: *const u8) {
    // SAFETY: the caller's contract.
    unsafe {
        asm!("cp.async.ca.shared.global [{t}], [{f}], 16;", t = in(reg32) to, f = in(reg64) from, options(nostack));
    }
}

/// Waits for what the thread has begun to copy to shared memory. Other threads see it behind a barrier.
#[inline(always)]
pub fn wait_for_copies() {
    // SAFETY: waits.
    unsafe { asm!("cp.async.wait_all;", options(nostack)) }
}

/// [`load`] of 1, 2, 4 or 8 bytes, but if `how` is [`NUMBER`], nothing is read, and the bits have no meaning. No
/// branch, and not `pure`: see [`load_as`].
///
/// # Safety
/// The conditions of [`load`], unless nothing is read.
#[inline(always)]
pub unsafe fn load_unless(address: *const u8, bytes: usize, how: u32) -> u64 {
    // SAFETY: the caller's contract.
    unsafe {
        match bytes {
            1 => unless_u8(address, how),
            2 => unless_u16(address, how),
            4 => unless_u32(address, how),
            _ => unless_u64(address, how),
        }
    }
}

#[duplicate_item(
    unless       element class   Bits;
    [unless_u8]  ["u8"]  [reg32] [u32];
    [unless_u16] ["u16"] [reg16] [u16];
    [unless_u32] ["u32"] [reg32] [u32];
    [unless_u64] ["u64"] [reg64] [u64];
)]
#[inline(always)]
unsafe fn unless(address: *const u8, how: u32) -> u64 {
    let v: Bits;
    // SAFETY: the caller's contract.
    unsafe {
        asm!("{{ .reg .pred p; setp.ne.u32 p, {how}, {number};", concat!("@p ld.global.", element, " {v}, [{a}]; }}"),
            v = out(class) v, a = in(reg64) address, how = in(reg32) how, number = const NUMBER,
            options(readonly, nostack));
    }
    v as u64
}

/// The result of [`load_as`]: one of the two.
#[derive(Clone, Copy)]
pub struct VectorOrOne {
    /// The vector, lowest bytes first.
    pub vector: [u64; 2],
    /// The one element, in the lowest bits.
    pub one: u64,
}

// A load for each way, and one of them runs, without a branch: the loads of all operands are under way before a thread
// waits for one. Not `pure`, or LLVM would move a load into a branch behind the wait for another. The one element has
// registers of its own: a load into another load's registers waits for that load, even if it does not run.
#[duplicate_item(
    vector_or_one   element class   Bits;
    [vector_or_u8]  ["u8"]  [reg32] [u32];
    [vector_or_u16] ["u16"] [reg32] [u32];
    [vector_or_u32] ["u32"] [reg32] [u32];
    [vector_or_u64] ["u64"] [reg64] [u64];
)]
#[inline(always)]
unsafe fn vector_or_one(address: *const u8, bytes: usize, how: u32) -> VectorOrOne {
    let one: Bits;
    // SAFETY: the caller's contract.
    let vector = unsafe {
        vector!(bytes, [
            "{{ .reg .pred v, o, p; setp.eq.u32 v, {how}, 0; setp.eq.u32 o, {how}, {once};",
            "setp.eq.u32 p, {how}, {passing};",
            "@v ld.global." _ ", [{a}];",
            "@o ld.global." element " {one}, [{a}];",
            "@p ld.global.cs." _ ", [{a}]; }}"
        ] one = out(class) one, a = in(reg64) address, how = in(reg32) how, once = const ONCE, passing = const PASSING,
            options(readonly, nostack))
    };
    VectorOrOne { vector, one: one as u64 }
}

/// Reads a vector of `bytes` (2, 4, 8 or 16) bytes, or one element of it, of `size` (1, 2, 4 or 8) bytes; the bits of
/// the other have no meaning. `how` is the same in all threads: one of [`ONCE`], [`NUMBER`] (neither is read) and
/// [`PASSING`], or 0. `bytes` and `size` must fold to constants.
///
/// # Safety
/// Unless nothing is read: `address` is valid for reading that many bytes of global memory and aligned to
/// them.
#[inline(always)]
pub unsafe fn load_as(address: *const u8, bytes: usize, size: usize, how: u32) -> VectorOrOne {
    // SAFETY: the caller's contract.
    unsafe {
        match size {
            1 => vector_or_u8(address, bytes, how),
            2 => vector_or_u16(address, bytes, how),
            4 => vector_or_u32(address, bytes, how),
            _ => vector_or_u64(address, bytes, how),
        }
    }
}

/// Reads `bytes` (4 or 8) bytes at each of two addresses; by one load if they are `joined` (the same in all threads):
/// the second follows the first, which is aligned for both. `bytes` must fold to a constant.
///
/// # Safety
/// Both addresses are valid for reading that many bytes of global memory, and aligned to them.
#[inline(always)]
pub unsafe fn load_halves(near: *const u8, far: *const u8, bytes: usize, joined: bool) -> [u64; 2] {
    let (x, y, z, w): (u32, u32, u32, u32);
    // SAFETY: the caller's contract.
    unsafe {
        match bytes {
            4 => {
                asm!("{{ .reg .pred j; setp.ne.u32 j, {joined}, 0; @j ld.global.v2.u32 {{{x}, {z}}}, [{near}];",
                    "@!j ld.global.u32 {x}, [{near}]; @!j ld.global.u32 {z}, [{far}]; }}",
                    x = out(reg32) x, z = out(reg32) z, near = in(reg64) near, far = in(reg64) far,
                    joined = in(reg32) joined as u32, options(pure, readonly, nostack));
                [x as u64, z as u64]
            }
            _ => {
                asm!("{{ .reg .pred j; setp.ne.u32 j, {joined}, 0;",
                    "@j ld.global.v4.u32 {{{x}, {y}, {z}, {w}}}, [{near}];",
                    "@!j ld.global.v2.u32 {{{x}, {y}}}, [{near}]; @!j ld.global.v2.u32 {{{z}, {w}}}, [{far}]; }}",
                    x = out(reg32) x, y = out(reg32) y, z = out(reg32) z, w = out(reg32) w, near = in(reg64) near,
                    far = in(reg64) far, joined = in(reg32) joined as u32, options(pure, readonly, nostack));
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
    unsafe { store_as!("st.global", [a, b], bytes, in(reg64) address) }
}

/// [`store`] to shared memory.
///
/// # Safety
/// The bytes are of the block's shared memory, and aligned to `bytes`.
#[inline(always)]
pub unsafe fn store_shared(address: u32, [a, b]: [u64; 2], bytes: usize) {
    // SAFETY: the caller's contract.
    unsafe { store_as!("st.shared", [a, b], bytes, in(reg32) address) }
}

#[inline(always)]
fn join(low: u32, high: u32) -> u64 {
    low as u64 | (high as u64) << 32
}

/// Returns two copies of a word: the bytes of `word` that `BYTES` selects, in the manner of `prmt`.
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

/// Returns the 16 bytes from byte `shift` (below 16) of two vectors on. It is a multiple of `size`, a power of two which must fold to a
/// constant.
#[inline(always)]
pub fn across([a, b]: [u64; 2], [c, d]: [u64; 2], shift: u32, size: usize) -> [u64; 2] {
    let [x, y, z] = if shift & 8 != 0 { [b, c, d] } else { [a, b, c] };
    if size == 8 {
        return [x, y];
    }
    let words = [x as u32, (x >> 32) as u32, y as u32, (y >> 32) as u32, z as u32, (z >> 32) as u32];
    let mut all = [0; 5];
    unroll!(at most 8: i < 5 => { all[i] = if shift & 4 != 0 { words[i + 1] } else { words[i] }; });
    if size < 4 {
        let selector = 0x3210 + 0x1111 * (shift & 3);
        unroll!(at most 4: i < 4 => { all[i] = chosen(all[i], all[i + 1], selector); });
    }
    [join(all[0], all[1]), join(all[2], all[3])]
}

/// Returns the bytes of two words that a selector of `prmt` says.
#[inline(always)]
fn chosen(a: u32, b: u32, selector: u32) -> u32 {
    let chosen;
    // SAFETY: arithmetic on registers.
    unsafe {
        asm!("prmt.b32 {d}, {a}, {b}, {s};", a = in(reg32) a, b = in(reg32) b, s = in(reg32) selector,
            d = out(reg32) chosen, options(pure, nomem, nostack));
    }
    chosen
}

/// Returns the bytes of two words that `BYTES` selects, in the manner of `prmt`: 8 added to a selector takes the byte's
/// sign, all over the byte.
#[inline(always)]
pub fn choose<const BYTES: u32>(a: u32, b: u32) -> u32 {
    let chosen;
    // SAFETY: arithmetic on registers.
    unsafe {
        asm!("prmt.b32 {d}, {a}, {b}, {s};", a = in(reg32) a, b = in(reg32) b, s = const BYTES, d = out(reg32) chosen,
            options(pure, nomem, nostack));
    }
    chosen
}
