//! Dropout: `y[i] = word[i] <= last_kept ? op(x[i]) : 0`, and `mask[i]` where one is asked for.
//!
//! `word[i]` is a function of seed, offset and `i` alone; what the strategies differ in is how many elements share one
//! computation of a block of eight halves. The result may be the operand itself.
//!
//! A thread makes the upper halves of its words, and the lower ones where they matter: where the 15 bits of an upper half
//! equal the upper bits of `last_kept`. One element in 2^15 needs them.

use core::arch::asm;
use core::cell::Cell;

use pointwise_core::launch::NEIGHBOURS;
use pointwise_core::num::Logic;
pub use pointwise_core::philox::elements;
use pointwise_core::philox::{BLOCK, MAX_RANDOM_WORDS, lower, upper, whole};
use pointwise_core::{Blocks, Draw, Each, Philox, RandomOp, RandomWord, Value};

use crate::element::Bool;
use crate::memory;
use crate::packed::{self, Packed, unroll};
use crate::thread;

/// The most elements of a thread.
const MOST: usize = 16;
/// Words that a block has: two halves each.
const TWOS: usize = BLOCK / 2;

/// A thread four neighbours, which are of one block, loaded one by one: any alignment, any size.
///
/// # Safety
/// `x` and `y` are aligned to their elements and valid for `n` of them, and equal or disjoint; with `MASK`, `mask` is
/// valid for `n` bytes and disjoint from both.
#[inline(always)]
pub unsafe fn explicit_parallel<E, O, const MASK: bool>(
    x: *const E,
    y: *mut E,
    mask: *mut Bool,
    n: u64,
    _head: u32,
    blocks: &Blocks,
    op: O,
) where
    E: Packed,
    O: RandomOp<E::Compute>,
{
    let first = thread::index_1d_wide() * NEIGHBOURS as u64;
    if first + NEIGHBOURS as u64 <= n {
        let dropped = dropped::<NEIGHBOURS>(blocks, first, op.last_kept());
        let mut inputs = [E::Compute::ZERO; NEIGHBOURS];
        // SAFETY: the run ends at or before n; the caller's contract.
        unsafe {
            let (x, y, mask) = (x.add(first as usize), y.add(first as usize), mask.wrapping_add(first as usize));
            unroll!(at most 4: i < NEIGHBOURS => { [inputs[i]] = packed::load::<E, 1>(x.add(i)); });
            unroll!(at most 4: i < NEIGHBOURS => {
                let result = if is_kept(&dropped, i) { op.kept(inputs[i]) } else { E::Compute::ZERO };
                packed::store::<E, 1>(y.add(i), [result]);
            });
            if MASK {
                unroll!(at most 4: i < NEIGHBOURS => {
                    packed::store::<Bool, 1>(mask.add(i), [Logic(is_kept(&dropped, i))]);
                });
            }
        }
    } else {
        for i in first..n {
            // SAFETY: i < n; the caller's contract.
            unsafe { element::<E, O, MASK>(x, y, mask, i, blocks, op) }
        }
    }
}

/// A thread `V` neighbouring elements, one or two vectors of `L` by 16-byte accesses, so that no block of random bits is
/// made twice; and `V` bytes of the mask at once. Head and rest as in [`crate::unary::register_copy`].
///
/// # Safety
/// The contract of [`explicit_parallel`] holds; `head <= n`, `x + head` and `y + head` are aligned to 16 bytes, and
/// `mask + head` to `V` with `MASK`.
#[inline(always)]
pub unsafe fn register_copy<E, O, const MASK: bool, const V: usize, const L: usize>(
    x: *const E,
    y: *mut E,
    mask: *mut Bool,
    n: u64,
    head: u32,
    blocks: &Blocks,
    op: O,
) where
    E: Packed,
    O: RandomOp<E::Compute>,
{
    let i = thread::index_1d();
    let body = n - head as u64;
    let vectors = (body / V as u64) as u32;
    let singles = thread::asked_here(thread::block_idx_x() == 0 && vectors as u64 * V as u64 != n);
    if i < vectors {
        let first = head as u64 + i as u64 * V as u64;
        // SAFETY: vector i lies inside the body; the caller's contract.
        unsafe {
            // The loads are in flight while the words are computed.
            let (x, y) = (x.add(first as usize), y.add(first as usize));
            let mut loaded = [[0; 2]; 2];
            unroll!(at most 2: part < V / L => { loaded[part] = memory::load(x.add(part * L).cast(), 16); });
            let dropped = dropped::<V>(blocks, first, op.last_kept());
            unroll!(at most 2: part < V / L => {
                let inputs = packed::unpack::<E, L>(loaded[part]);
                let mut results = [E::Compute::ZERO; L];
                unroll!(i < L => { results[i] = op.kept(inputs[i]); });
                let results = only_kept::<E>(packed::pack::<E, L>(results), &dropped, part * L / 2);
                memory::store(y.add(part * L).cast(), results, 16);
            });
            if MASK {
                let mut lanes = [Logic(false); V];
                unroll!(i < V => { lanes[i] = Logic(is_kept(&dropped, i)); });
                packed::store::<Bool, V>(mask.add(first as usize), lanes);
            }
        }
    }
    if singles {
        let t = i as u64;
        let at = if t < head as u64 { t } else { t + vectors as u64 * V as u64 };
        if at < n {
            // SAFETY: at < n.
            unsafe { element::<E, O, MASK>(x, y, mask, at, blocks, op) }
        }
    }
}

/// Returns the words of elements `first .. first + V` from sequence 0. `ask` gets the upper half of each word and asks it
/// all that the caller will ask. If an answer needs more bits, the lower halves are computed, too; else the lower bits mean
/// nothing.
#[inline(always)]
fn words<const V: usize>(blocks: &Blocks, first: u64, ask: impl Fn(usize, RandomWord<'_>)) -> [u32; V] {
    let asked = Cell::new(false);
    let mut words = above::<V>(blocks, 0, first);
    unroll!(i < V => { ask(i, RandomWord::upper(words[i], &asked)); });
    if asked.get() {
        complete(&mut words, blocks, 0, first);
    }
    words
}

/// Returns all words of `V` neighbours of a call, for an op with the words of `random`; `first` is the number of the first
/// one behind [`Draw::first`]. `ask` is as for [`words`].
#[inline(always)]
pub(crate) fn all_words<const V: usize>(
    random: &'static [Each],
    draw: &Draw,
    first: u64,
    ask: impl Fn(usize, [RandomWord<'_>; MAX_RANDOM_WORDS]),
) -> [[u32; V]; MAX_RANDOM_WORDS] {
    let (at, blocks) = (draw.first + first, &draw.blocks);
    let asked = [const { Cell::new(false) }; MAX_RANDOM_WORDS];
    let mut words = [[0; V]; MAX_RANDOM_WORDS];
    unroll!(if at most 2: k < random.len() => {
        let sequence = k as u32;
        words[k] = match (random[k], placed(blocks)) {
            (Each::Element, _) => above::<V>(blocks, sequence, at),
            (_, None) => shared::<V>(
                draw,
                k,
                first,
                #[inline(always)]
                |group| blocks.upper_of(sequence, group),
            ),
            (_, Some(place)) => shared::<V>(
                draw,
                k,
                first,
                #[inline(always)]
                |group| place.upper_of(sequence, group),
            ),
        };
    });
    unroll!(i < V => {
        let mut given = [RandomWord::from(0); MAX_RANDOM_WORDS];
        unroll!(if at most 2: k < random.len() => { given[k] = RandomWord::upper(words[k][i], &asked[k]); });
        ask(i, given);
    });
    unroll!(if at most 2: k < random.len() => {
        if asked[k].get() {
            let sequence = k as u32;
            if matches!(random[k], Each::Element) {
                complete(&mut words[k], blocks, sequence, at);
            } else {
                let place = placed(blocks).unwrap_or_else(|| blocks.given());
                words[k] = shared::<V>(
                    draw,
                    k,
                    first,
                    #[inline(always)]
                    |group| place.word_of(sequence, group),
                );
            }
        }
    });
    words
}

/// Returns word `k` of `V` neighbours, which share it with theirs, as `word` makes it for a group. Most vectors have one group.
#[inline(always)]
fn shared<const V: usize>(draw: &Draw, k: usize, first: u64, word: impl Fn(u64) -> u32) -> [u32; V] {
    let mut group = draw.group(k, first);
    let (mut words, mut before) = ([0; V], 0);
    loop {
        thread::no_unrolling();
        let word = word(group);
        unroll!(i < V => { words[i] = if i as u64 >= before { word } else { words[i] }; });
        group += 1;
        // The elements of this vector before those of the next group.
        before = group * draw.shared[k] - (draw.first + first);
        if before >= V as u64 {
            return words;
        }
    }
}

/// Returns the upper halves of the words of elements `first .. first + V` from a sequence.
#[inline(always)]
fn above<const V: usize>(blocks: &Blocks, sequence: u32, first: u64) -> [u32; V] {
    let mut words = [0; V];
    let two = upper_halves::<V>(blocks, sequence, first);
    unroll!(i < V => { words[i] = upper(two[i / 2], i % 2 != 0); });
    words
}

/// Joins the lower halves of words to the upper ones.
#[inline(always)]
fn complete<const V: usize>(words: &mut [u32; V], blocks: &Blocks, sequence: u32, first: u64) {
    let place = placed(blocks).unwrap_or_else(|| blocks.given());
    let two = halves::<V>(
        first,
        #[inline(always)]
        |index| place.lower_halves(sequence, index),
    );
    unroll!(i < V => { words[i] = whole(words[i], lower(two[i / 2], i % 2 != 0)); });
}

/// The highest bit of each half of a word.
const HIGHEST: u32 = 0x8000_8000;
/// One in each half.
const ONES: u32 = 0x0001_0001;

/// Marks the elements `first .. first + V` whose words are above `last`: by the highest bit of a half, two elements a
/// word. The other bits mean nothing.
#[inline(always)]
fn dropped<const V: usize>(blocks: &Blocks, first: u64, last: u32) -> [u32; MOST / 2] {
    let two = upper_halves::<V>(blocks, 0, first);
    let most = (last >> 17) * ONES;
    let mut dropped = [0; MOST / 2];
    let mut nearest = !HIGHEST;
    unroll!(at most 8: i < V.div_ceil(2) => {
        // The halves have 15 bits: none borrows from the other. The highest bit stays if the difference is not negative.
        dropped[i] = (two[i] | HIGHEST).wrapping_sub(most);
        nearest = least(nearest, dropped[i]);
    });
    // A half that is 0 borrows.
    if nearest.wrapping_sub(ONES) & HIGHEST != 0 {
        // One by one, as it is hardly ever more than one.
        let mut unknown = 0;
        unroll!(i < V => {
            let is_equal = dropped[i / 2] >> (16 * (i % 2)) & 0x7FFF == 0;
            unknown |= (is_equal as u32) << i;
        });
        loop {
            thread::no_unrolling();
            let lane = unknown.trailing_zeros();
            let [word] = words::<1>(
                blocks,
                first + lane as u64,
                #[inline(always)]
                |_, word| _ = word.bits(),
            );
            let bit = 0x8000 << (16 * (lane % 2));
            unroll!(at most 8: i < V.div_ceil(2) => {
                if i as u32 == lane / 2 {
                    dropped[i] = dropped[i] & !bit | if word > last { bit } else { 0 };
                }
            });
            unknown &= unknown - 1;
            if unknown == 0 {
                break;
            }
        }
    }
    dropped
}

/// The least of several words' halves, with their highest bits cleared, for the first and for the second half.
///
/// Such halves, taken for f16, are as large as they are as integers, but for those that count as NaN, which the minimum
/// passes over. Every GPU has an instruction for two f16; two integers have one from sm_90 on.
#[inline(always)]
fn least(least: u32, of: u32) -> u32 {
    let out;
    // SAFETY: arithmetic on registers. The assembler makes one instruction of two of these.
    unsafe {
        asm!("{{ .reg .b32 a; abs.f16x2 a, {b}; min.f16x2 {o}, {l}, a; }}", o = out(reg32) out, l = in(reg32) least,
            b = in(reg32) of, options(pure, nomem, nostack));
    }
    out
}

/// True if [`dropped`] keeps lane `i`.
#[inline(always)]
fn is_kept(dropped: &[u32; MOST / 2], i: usize) -> bool {
    dropped[i / 2] & (0x8000 << (16 * (i % 2))) == 0
}

/// Zeroes the [`dropped`] elements of a vector of 16 bytes. The word `from` is for its first two elements.
#[inline(always)]
fn only_kept<E: Packed>(vector: [u64; 2], dropped: &[u32; MOST / 2], from: usize) -> [u64; 2] {
    let mask = |i: usize| match size_of::<E>() {
        1 => memory::choose::<0xFDB9>(dropped[2 * i], dropped[2 * i + 1]),
        2 => memory::choose::<0xBB99>(dropped[from + i], 0),
        _ if i % 2 == 0 => memory::choose::<0x9999>(dropped[from + i / 2], 0),
        _ => memory::choose::<0xBBBB>(dropped[from + i / 2], 0),
    };
    let two = |word: u64, i: usize| {
        let (low, high) = (word as u32 & !mask(i), (word >> 32) as u32 & !mask(i + 1));
        low as u64 | (high as u64) << 32
    };
    [two(vector[0], 0), two(vector[1], 2)]
}

/// The place that the call leaves to memory, if it does. Read where it is needed, so that a call without keeps nothing
/// of it.
#[inline(always)]
fn placed(blocks: &Blocks) -> Option<Philox> {
    let address = blocks.address() as *const u8;
    if address.is_null() {
        return None;
    }
    // SAFETY: who made the blocks has vouched for the address.
    let [[seed, _], [offset, _]] = unsafe { [memory::load_here(address, 8), memory::load_here(address.add(8), 8)] };
    Some(Philox { seed, offset })
}

/// Returns the upper halves of elements `first .. first + V`. For a place in memory each block computes the round keys
/// again: kept, they would take 20 registers, also in calls that have no such place.
#[inline(always)]
fn upper_halves<const V: usize>(blocks: &Blocks, sequence: u32, first: u64) -> [u32; MOST / 2] {
    match placed(blocks) {
        None => halves::<V>(
            first,
            #[inline(always)]
            |index| blocks.upper_halves(sequence, index),
        ),
        Some(place) => halves::<V>(
            first,
            #[inline(always)]
            |index| place.upper_halves(sequence, index),
        ),
    }
}

/// Half a word for each of the elements `first .. first + V`, two a word, the first in the lower 16 bits.
///
/// Closures are always inlined: one that is called more than once may otherwise stay a function, and what it writes to
/// would be in local memory.
#[inline(always)]
fn halves<const V: usize>(first: u64, block: impl Fn(u64) -> [u32; TWOS]) -> [u32; MOST / 2] {
    let (index, skip) = (first / BLOCK as u64, first as u32 % BLOCK as u32);
    let skips = |distance: u32| skip & distance != 0;
    let blocks = V.div_ceil(BLOCK);
    let mut all = [0; MOST / 2 + TWOS];
    let mut put = #[inline(always)]
    |b: usize| {
        let twos = block(index + b as u64);
        unroll!(at most 4: k < TWOS => { all[b * TWOS + k] = twos[k]; });
    };
    put(0);
    if blocks > 1 {
        put(1);
    }
    // All threads skip equally many elements of their first block. If the head is no multiple of a block, vectors of
    // whole blocks straddle blocks.
    if V < BLOCK || skip != 0 {
        if skip as usize + V > blocks * BLOCK {
            put(blocks);
        }
        // Each moves as many as those behind it need.
        let moves = #[inline(always)]
        |all: &mut [u32; MOST / 2 + TWOS], by: usize, count: usize| {
            unroll!(if at most 10: i < count => { all[i] = if skips(2 * by as u32) { all[i + by] } else { all[i] }; });
        };
        moves(&mut all, 2, V.div_ceil(2) + 2);
        if skip % 4 != 0 {
            moves(&mut all, 1, V.div_ceil(2) + 1);
            unroll!(at most 8: i < V.div_ceil(2) => {
                all[i] = if skips(1) { all[i] >> 16 | all[i + 1] << 16 } else { all[i] };
            });
        }
    }
    let mut halves = [0; MOST / 2];
    unroll!(at most 8: i < V.div_ceil(2) => { halves[i] = all[i]; });
    halves
}

/// # Safety
/// `x`, `y` and, with `MASK`, `mask` are valid at `i`.
#[inline(always)]
unsafe fn element<E, O, const MASK: bool>(x: *const E, y: *mut E, mask: *mut Bool, i: u64, blocks: &Blocks, op: O)
where
    E: Packed,
    O: RandomOp<E::Compute>,
{
    let last = op.last_kept();
    let [word] = words::<1>(
        blocks,
        i,
        #[inline(always)]
        |_, word| _ = word.is_at_most(last),
    );
    // SAFETY: the caller's contract.
    unsafe {
        let [input] = packed::load::<E, 1>(x.add(i as usize));
        let result = if word <= last { op.kept(input) } else { E::Compute::ZERO };
        packed::store::<E, 1>(y.add(i as usize), [result]);
        if MASK {
            packed::store::<Bool, 1>(mask.add(i as usize), [Logic(word <= last)]);
        }
    }
}
