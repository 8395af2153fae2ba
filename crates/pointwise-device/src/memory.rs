//! Global memory by 1, 2, 4, 8 and 16 bytes.
//!
//! The accesses are inline assembly: LLVM turns a copied 16-byte struct into two 8-byte accesses, and the state space
//! must be `.global` whatever it can prove of the pointer. A generic address of global memory is its global address.

use core::arch::asm;

use pointwise_core::launch::{NUMBER, ONCE, PASSING};

/// The words of a vector of 2, 4, 8 or 16 bytes, which `$load` reads into the registers it is given.
macro_rules! vector {
    ($bytes:ident, $load:ident($($args:tt)*)) => {
        match $bytes {
            2 => {
                let x: u32;
                $load!($($args)*, "u16 {x}" [x]);
                [x as u64, 0]
            }
            4 => {
                let x: u32;
                $load!($($args)*, "u32 {x}" [x]);
                [x as u64, 0]
            }
            8 => {
                let (x, y): (u32, u32);
                $load!($($args)*, "v2.u32 {{{x}, {y}}}" [x y]);
                [join(x, y), 0]
            }
            _ => {
                let (x, y, z, w): (u32, u32, u32, u32);
                $load!($($args)*, "v4.u32 {{{x}, {y}, {z}, {w}}}" [x y z w]);
                [join(x, y), join(z, w)]
            }
        }
    };
}

macro_rules! plain {
    ($address:ident, $load:literal [$($lane:ident)*]) => {
        asm!(concat!("ld.global.", $load, ", [{a}];"), $($lane = out(reg32) $lane,)* a = in(reg64) $address,
            options(pure, readonly, nostack))
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
            _ => vector!(bytes, plain(address)),
        }
    }
}

macro_rules! here {
    ($address:ident, $load:literal [$($lane:ident)*]) => {
        asm!(concat!("ld.global.", $load, ", [{a}];"), $($lane = out(reg32) $lane,)* a = in(reg64) $address,
            options(readonly, nostack))
    };
}

/// As [`load`], of 4, 8 or 16 bytes. It stays where it stands: the compiler may not move it to where the bits are
/// needed, behind what others wait for.
///
/// # Safety
/// As there.
#[inline(always)]
pub unsafe fn load_here(address: *const u8, bytes: usize) -> [u64; 2] {
    // SAFETY: the caller's contract.
    unsafe { vector!(bytes, here(address)) }
}

macro_rules! here_if {
    ($address:ident, $works:ident, $load:literal [$($lane:ident)*]) => {
        asm!("{{ .reg .pred p; setp.ne.u32 p, {works}, 0;", concat!("@p ld.global.", $load, ", [{a}]; }}"),
            $($lane = out(reg32) $lane,)* a = in(reg64) $address, works = in(reg32) $works,
            options(readonly, nostack))
    };
}

/// As [`load_here`]; where `works` is zero, nothing is read, and the bits are anything. No branch.
///
/// # Safety
/// As [`load`], where `works` is not zero.
#[inline(always)]
pub unsafe fn load_here_if(address: *const u8, bytes: usize, works: u32) -> [u64; 2] {
    // SAFETY: the caller's contract.
    unsafe { vector!(bytes, here_if(address, works)) }
}

/// As [`load`], of 1, 2, 4 or 8 bytes; where `how` is [`NUMBER`], nothing is read, and the bits are anything. No branch,
/// and not `pure`: see [`load_as`].
///
/// # Safety
/// As [`load`], unless nothing is read.
#[inline(always)]
pub unsafe fn load_unless(address: *const u8, bytes: usize, how: u32) -> u64 {
    macro_rules! unless {
        ($load:literal $class:ident $type:ty) => {{
            let v: $type;
            asm!("{{ .reg .pred p; setp.ne.u32 p, {how}, {number};", concat!("@p ld.global.", $load, " {v}, [{a}]; }}"),
                v = out($class) v, a = in(reg64) address, how = in(reg32) how, number = const NUMBER,
                options(readonly, nostack));
            v as u64
        }};
    }
    // SAFETY: the caller's contract.
    unsafe {
        match bytes {
            1 => unless!("u8" reg32 u32),
            2 => unless!("u16" reg16 u16),
            4 => unless!("u32" reg32 u32),
            _ => unless!("u64" reg64 u64),
        }
    }
}

/// What [`load_as`] has read, the one or the other.
#[derive(Clone, Copy)]
pub struct VectorOrOne {
    /// The vector, lowest bytes first.
    pub vector: [u64; 2],
    /// The one element, in the lowest bits.
    pub one: u64,
}

/// A load for each way, of which one runs, without a branch: those of all operands are under way before one is waited
/// for. Not `pure`, or LLVM would move a load into a branch behind the wait for another. The one element has registers
/// of its own: a load into those of another waits for that one, also if it does not run.
macro_rules! one_of {
    ($how:ident, $address:ident, $one:ident $element:literal $class:ident, $vector:literal [$($lane:ident)*]) => {
        asm!("{{ .reg .pred v, o, p; setp.eq.u32 v, {how}, 0; setp.eq.u32 o, {how}, {once};",
            "setp.eq.u32 p, {how}, {passing};",
            concat!("@v ld.global.", $vector, ", [{a}];"),
            concat!("@o ld.global.", $element, " {one}, [{a}];"),
            concat!("@p ld.global.cs.", $vector, ", [{a}]; }}"),
            $($lane = out(reg32) $lane,)* one = out($class) $one, a = in(reg64) $address, how = in(reg32) $how,
            once = const ONCE, passing = const PASSING, options(readonly, nostack))
    };
}

macro_rules! vector_or_one {
    ($bytes:ident, $how:ident, $address:ident, $element:literal $class:ident $type:ty) => {{
        let one: $type;
        let vector = vector!($bytes, one_of($how, $address, one $element $class));
        VectorOrOne { vector, one: one as u64 }
    }};
}

/// Reads a vector of `bytes` (2, 4, 8 or 16) bytes, or one element of it, of `size` (1, 2, 4 or 8) bytes; of the other
/// the bits are anything. `how` is the same in all threads: one of [`ONCE`], [`NUMBER`] (neither is read) and [`PASSING`],
/// or 0. `bytes` and `size` must fold to constants.
///
/// # Safety
/// Unless nothing is read: `address` is valid for reading that many bytes of global memory and aligned to
/// them.
#[inline(always)]
pub unsafe fn load_as(address: *const u8, bytes: usize, size: usize, how: u32) -> VectorOrOne {
    // SAFETY: the caller's contract.
    unsafe {
        match size {
            1 => vector_or_one!(bytes, how, address, "u8" reg32 u32),
            2 => vector_or_one!(bytes, how, address, "u16" reg32 u32),
            4 => vector_or_one!(bytes, how, address, "u32" reg32 u32),
            _ => vector_or_one!(bytes, how, address, "u64" reg64 u64),
        }
    }
}

/// Reads `bytes` (4 or 8) bytes at each of two addresses; by one load where they are `joined`, the same in all threads:
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

/// The bytes of two words that `BYTES` selects, in the manner of `prmt`: 8 added to a selector takes the byte's sign,
/// all over the byte.
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
