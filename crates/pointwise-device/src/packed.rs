//! Elements by the vector: `V` neighbouring elements between memory and registers.

use duplicate::duplicate_item;
use pointwise_core::{Element, Value};

use crate::convert;
use crate::memory;

/// Writes out `$body` for each `$i` below `$len`, at most 16: a loop that the optimiser does not unroll would index its
/// array in local memory.
///
/// `$len` is a constant, so that no code is made of the others, which optimisers would take long to remove. With `if` it is a
/// number that they find out; with `const` `$i` is a constant, too.
macro_rules! unroll {
    (if at most 2: $i:ident < $len:expr => $body:block) => {
        unroll!(@ if $i, $len, $body, 0 1)
    };
    (if at most 4: $i:ident < $len:expr => $body:block) => {
        unroll!(@ if $i, $len, $body, 0 1 2 3)
    };
    (if at most 8: $i:ident < $len:expr => $body:block) => {
        unroll!(@ if $i, $len, $body, 0 1 2 3 4 5 6 7)
    };
    (if at most 10: $i:ident < $len:expr => $body:block) => {
        unroll!(@ if $i, $len, $body, 0 1 2 3 4 5 6 7 8 9)
    };
    (const at most 4: $i:ident < $len:expr => $body:block) => {
        unroll!(@ const $i, $len, $body, 0 1 2 3)
    };
    (@ const $i:ident, $len:expr, $body:block, $($k:literal)*) => {
        $(if const { $k < $len } {
            const $i: usize = $k;
            $body
        })*
    };
    (@ if $i:ident, $len:expr, $body:block, $($k:literal)*) => {
        $(if $k < $len {
            let $i: usize = $k;
            $body
        })*
    };
    ($i:ident < $len:expr => $body:block) => {
        unroll!(@ $i, $len, $body, 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15)
    };
    // For arrays of a known length: the compiler checks their indices also in branches that are never taken.
    (at most 2: $i:ident < $len:expr => $body:block) => {
        unroll!(@ $i, $len, $body, 0 1)
    };
    (at most 3: $i:ident < $len:expr => $body:block) => {
        unroll!(@ $i, $len, $body, 0 1 2)
    };
    (at most 4: $i:ident < $len:expr => $body:block) => {
        unroll!(@ $i, $len, $body, 0 1 2 3)
    };
    (at most 8: $i:ident < $len:expr => $body:block) => {
        unroll!(@ $i, $len, $body, 0 1 2 3 4 5 6 7)
    };
    (at most 9: $i:ident < $len:expr => $body:block) => {
        unroll!(@ $i, $len, $body, 0 1 2 3 4 5 6 7 8)
    };
    (at most 12: $i:ident < $len:expr => $body:block) => {
        unroll!(@ $i, $len, $body, 0 1 2 3 4 5 6 7 8 9 10 11)
    };
    (at most 20: $i:ident < $len:expr => $body:block) => {
        unroll!(@ $i, $len, $body, 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19)
    };
    (@ $i:ident, $len:expr, $body:block, $($k:literal)*) => {
        $(if const { $k < $len } {
            let $i: usize = $k;
            $body
        })*
    };
}
pub(crate) use unroll;

/// Returns the number of elements in one 64-bit word.
const fn per_word<E: Element>() -> usize {
    8 / size_of::<E>()
}

/// Elements that convert between memory and registers, by 64-bit words.
///
/// If the hardware converts in pairs (f16, bf16, fp8), two lanes cost one instruction. This keeps 16-bit kernels inside
/// the instruction budget of a copy.
pub trait Packed: Element {
    /// Returns the lanes of a word. Lane `i` is bits `8 size i ..`; lanes past the word are zero.
    fn unpack(word: u64) -> [Self::Compute; 8];
    /// The inverse, rounding each lane once.
    fn pack(lanes: [Self::Compute; 8]) -> u64;
    /// [`Packed::pack`] for numbers that do not round to an infinity.
    #[inline(always)]
    fn pack_bounded(lanes: [Self::Compute; 8]) -> u64 {
        Self::pack(lanes)
    }
}

/// Loads `V` elements.
///
/// # Safety
/// `p` is valid for reading `V` elements and aligned to the smaller of 16 bytes and the vector's size.
#[inline(always)]
pub unsafe fn load<E: Packed, const V: usize>(p: *const E) -> [E::Compute; V] {
    let mut lanes = [E::Compute::ZERO; V];
    let run = access::<E>(V);
    unroll!(part < V / access::<E>(V) => {
        let at = part * run;
        // SAFETY: elements at .. at + run are inside the vector; the caller vouches for the rest.
        let words = unsafe { memory::load(p.add(at).cast(), run * size_of::<E>()) };
        let halves = [E::unpack(words[0]), E::unpack(words[1])];
        unroll!(i < access::<E>(V) => { lanes[at + i] = halves[i / per_word::<E>()][i % per_word::<E>()]; });
    });
    lanes
}

/// Returns the `V` elements in at most 16 bytes, as [`memory::load`] returns them.
#[inline(always)]
pub fn unpack<E: Packed, const V: usize>(bits: [u64; 2]) -> [E::Compute; V] {
    let mut lanes = [E::Compute::ZERO; V];
    let halves = [E::unpack(bits[0]), E::unpack(bits[1])];
    unroll!(i < V => { lanes[i] = halves[i / per_word::<E>()][i % per_word::<E>()]; });
    lanes
}

/// Returns the bytes of `V` elements, 16 or fewer, as [`memory::store`] takes them.
#[inline(always)]
pub fn pack<E: Packed, const V: usize>(lanes: [E::Compute; V]) -> [u64; 2] {
    let mut halves = [[E::Compute::ZERO; 8]; 2];
    unroll!(i < V => { halves[i / per_word::<E>()][i % per_word::<E>()] = lanes[i]; });
    [E::pack(halves[0]), E::pack(halves[1])]
}

/// Returns the truths of a word's elements of one or two bytes, in the highest bit of each. The other bits have no
/// meaning.
#[inline(always)]
pub fn truths<E: Element>(word: u32) -> u32 {
    let below = !highest::<E>();
    let low = (word & below) + below;
    // The sign of a float does not count: -0 is false.
    if E::DTYPE.is_float() { low } else { low | word }
}

/// Returns the highest bit of each element of one or two bytes in a word.
#[inline(always)]
pub const fn highest<E>() -> u32 {
    if size_of::<E>() == 1 { 0x8080_8080 } else { 0x8000_8000 }
}

/// Returns the bools of a vector of `E`s, from words with nothing but the [`highest`] bit of each.
#[inline(always)]
pub fn bools<E>([a, b, c, d]: [u32; 4]) -> [u64; 2] {
    let bytes = |word: u32| (word >> 7) as u64;
    if size_of::<E>() == 1 {
        return [bytes(a) | bytes(b) << 32, bytes(c) | bytes(d) << 32];
    }
    let pair = |a, b| bytes(memory::choose::<0x7531>(a, b));
    [pair(a, b) | pair(c, d) << 32, 0]
}

/// Stores `V` elements.
///
/// # Safety
/// `p` is valid for writing `V` elements and aligned to the smaller of 16 bytes and the vector's size.
#[inline(always)]
pub unsafe fn store<E: Packed, const V: usize>(p: *mut E, lanes: [E::Compute; V]) {
    // SAFETY: the caller's contract.
    unsafe { store_by(p, lanes, E::pack) }
}

/// Stores `V` elements, with one of the two ways to pack them.
///
/// # Safety
/// The conditions of [`store`].
#[inline(always)]
pub unsafe fn store_by<E: Packed, const V: usize>(
    p: *mut E,
    lanes: [E::Compute; V],
    pack: impl Fn([E::Compute; 8]) -> u64,
) {
    let run = access::<E>(V);
    unroll!(part < V / access::<E>(V) => {
        let at = part * run;
        let mut halves = [[E::Compute::ZERO; 8]; 2];
        unroll!(i < access::<E>(V) => { halves[i / per_word::<E>()][i % per_word::<E>()] = lanes[at + i]; });
        // SAFETY: as in `load`.
        unsafe {
            memory::store(p.add(at).cast(), [pack(halves[0]), pack(halves[1])], run * size_of::<E>());
        }
    });
}

/// [`store`] to an address of shared memory.
///
/// # Safety
/// The conditions of [`store`], of the block's shared memory.
#[inline(always)]
pub unsafe fn store_shared<E: Packed, const V: usize>(address: u32, lanes: [E::Compute; V]) {
    let run = access::<E>(V);
    unroll!(part < V / access::<E>(V) => {
        let mut halves = [[E::Compute::ZERO; 8]; 2];
        unroll!(i < access::<E>(V) => { halves[i / per_word::<E>()][i % per_word::<E>()] = lanes[part * run + i]; });
        let bytes = run * size_of::<E>();
        // SAFETY: as in `store`.
        unsafe { memory::store_shared(address + (part * bytes) as u32, [E::pack(halves[0]), E::pack(halves[1])], bytes) };
    });
}

/// Returns the elements of one access to a vector of `len`.
const fn access<E: Element>(len: usize) -> usize {
    if len * size_of::<E>() < 16 { len } else { 16 / size_of::<E>() }
}

// Lanes converted one at a time: types whose conversion is free or has no packed instruction.
#[duplicate_item(
    T                      Bits  from_bits              to_bits;
    [f32]                  [u32] [f32::from_bits]       [f32::to_bits];
    [i8]                   [u8]  [|b| b as i8]          [|x| x as u8];
    [i16]                  [u16] [|b| b as i16]         [|x| x as u16];
    [i32]                  [u32] [|b| b as i32]         [|x| x as u32];
    [i64]                  [u64] [|b| b as i64]         [|x| x as u64];
    [u8]                   [u8]  [|b| b]                [|x| x];
    [crate::element::Bool] [u8]  [crate::element::Bool] [|x| x.0];
)]
impl Packed for T {
    #[inline(always)]
    fn unpack(word: u64) -> [Self::Compute; 8] {
        let from: fn(Bits) -> T = from_bits;
        let mut lanes = [Self::Compute::ZERO; 8];
        unroll!(at most 8: i < per_word::<T>() => {
            lanes[i] = from((word >> (8 * size_of::<T>() * i)) as Bits).widen();
        });
        lanes
    }
    #[inline(always)]
    fn pack(lanes: [Self::Compute; 8]) -> u64 {
        let to: fn(T) -> Bits = to_bits;
        let mut word = 0;
        unroll!(at most 8: i < per_word::<T>() => {
            word |= (to(<T>::narrow(lanes[i])) as u64) << (8 * size_of::<T>() * i);
        });
        word
    }
}

// Lanes converted in pairs: two f32 to or from one `Pair` of bits. `wrap` and `get` are functions: with a plain `.0`
// LLVM makes other code for bf16, which takes more registers in some kernels.
#[duplicate_item(
    T               Pair  unpack_pair              pack_pair              Wrapper;
    [crate::f16]    [u32] [convert::unpack_f16x2]  [convert::pack_f16x2]  [crate::Coarse];
    [crate::bf16]   [u32] [convert::unpack_bf16x2] [convert::pack_bf16x2] [crate::Coarse];
    [crate::F8E4M3] [u16] [convert::unpack_e4m3x2] [convert::pack_e4m3x2] [crate::Rough];
)]
impl Packed for T {
    #[inline(always)]
    fn unpack(word: u64) -> [Self::Compute; 8] {
        let wrap: fn(f32) -> Self::Compute = Wrapper;
        let mut lanes = [Self::Compute::ZERO; 8];
        unroll!(at most 4: i < per_word::<T>() / 2 => {
            let (lo, hi) = unpack_pair((word >> (8 * size_of::<Pair>() * i)) as Pair);
            lanes[2 * i] = wrap(lo);
            lanes[2 * i + 1] = wrap(hi);
        });
        lanes
    }
    #[inline(always)]
    fn pack(lanes: [Self::Compute; 8]) -> u64 {
        let get: fn(Self::Compute) -> f32 = |c| c.0;
        let mut word = 0;
        unroll!(at most 4: i < per_word::<T>() / 2 => {
            let pair = pack_pair(get(lanes[2 * i]), get(lanes[2 * i + 1]));
            word |= (pair as u64) << (8 * size_of::<Pair>() * i);
        });
        word
    }
}

impl Packed for crate::F8E5M2 {
    #[inline(always)]
    fn unpack(word: u64) -> [Self::Compute; 8] {
        let mut lanes = [Self::Compute::ZERO; 8];
        unroll!(at most 4: i < 4 => {
            // An e5m2 is the upper byte of an f16.
            let half = (word >> (32 * (i / 2))) as u32;
            let (lo, hi) = convert::unpack_f16x2(upper_bytes(half, i % 2 == 1));
            lanes[2 * i] = crate::Rough(lo);
            lanes[2 * i + 1] = crate::Rough(hi);
        });
        lanes
    }
    #[inline(always)]
    fn pack(lanes: [Self::Compute; 8]) -> u64 {
        let saturated = by_pairs(lanes, convert::pack_saturated_e5m2x2);
        // Bytes from 0x7B on need the conversion that tells infinities.
        if (largest_e5m2(saturated as u32) | largest_e5m2((saturated >> 32) as u32)) & 0x8080_8080 != 0 {
            by_pairs(lanes, convert::pack_e5m2x2)
        } else {
            saturated
        }
    }
    #[inline(always)]
    fn pack_bounded(lanes: [Self::Compute; 8]) -> u64 {
        by_pairs(lanes, convert::pack_saturated_e5m2x2)
    }
}

/// Sets the highest bit of each byte of a word that is 0x7B, the largest number of e5m2, or above. The other bits have
/// no meaning.
#[inline(always)]
pub(crate) fn largest_e5m2(word: u32) -> u32 {
    (word & 0x7F7F_7F7F) + 0x0505_0505
}

/// Returns the first or the last two bytes of a word, each above a byte of zeros: turns e5m2 into f16.
#[inline(always)]
pub(crate) fn upper_bytes(word: u32, second: bool) -> u32 {
    let out;
    // SAFETY: one instruction from registers to a register.
    unsafe {
        core::arch::asm!("prmt.b32 {o}, {w}, 0, {s};", o = out(reg32) out, w = in(reg32) word,
            s = in(reg32) if second { 0x3424 } else { 0x1404 }, options(pure, nomem, nostack));
    }
    out
}

/// Packs eight bytes, two lanes at a time.
#[inline(always)]
fn by_pairs(lanes: [crate::Rough; 8], pack: fn(f32, f32) -> u16) -> u64 {
    let four = |i: usize| {
        let lo = pack(lanes[i].0, lanes[i + 1].0) as u32;
        lo | (pack(lanes[i + 2].0, lanes[i + 3].0) as u32) << 16
    };
    four(0) as u64 | (four(4) as u64) << 32
}
