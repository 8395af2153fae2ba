//! The template for heads all of whose lanes rotate, by tables of the tensors' type.

use pointwise_core::rope::{FullHead, FullHeadPlace, FullHeadSide, PLAIN, RopeElement, WIDE_IDS, rotate};

use super::heads::{Words, lanes, words};
use super::position::Given;
use crate::packed::{Packed, unroll};
use crate::{memory, thread};

/// Rotates the tokens and heads that fall to this block, by two vectors of `V` elements a thread. They are under way at
/// once, with the entries of its tables. With `PAIRS` a pair is two neighbours of a vector, before and after, else a
/// lane of each. With `IDS` the row of a token is given, else it is the token's number.
///
/// # Safety
/// The tensors have the elements that `walk` reaches, aligned for vectors of `V`; outputs are disjoint from inputs, or
/// the very same; tables are as `walk` describes them, and aligned for loads of `V` entries, or of `V / 2` with
/// `PAIRS`. With `IDS` they have a row; else they have one for each token.
#[inline(always)]
#[allow(clippy::too_many_arguments)]
pub unsafe fn full_head<E: Packed + RopeElement, const V: usize, const PAIRS: bool, const IDS: bool>(
    qx: *const E,
    qy: *mut E,
    first: *const u8,
    second: *const u8,
    walk: &FullHead,
    ids: *const u8,
    kx: *const E,
    ky: *mut E,
) {
    let block @ [_, _, z] = [thread::block_idx_x(), thread::block_idx_y(), thread::block_idx_z()];
    let thread @ [lane, ..] = [thread::thread_idx_x(), thread::thread_idx_y(), thread::thread_idx_z()];
    let tile @ [width, ..] = [thread::block_dim_x(), thread::block_dim_y(), thread::block_dim_z()];
    let FullHeadPlace { works, is_k, token, head } = walk.place(block, tile, thread);
    // A thread without work takes the first token's position and table rows, so that no branch is before the loads: the
    // assembler moves no parameter's load across, and each is waited for. It reads no head.
    let (token, head) = if works { (token, head) } else { (0, 0) };
    // First of all, as others wait for it.
    // SAFETY: the caller's contract.
    let given = IDS.then(|| unsafe { given(ids, z * walk.ids[0] + token * walk.ids[1], walk.flags) });
    let (x, y) = if is_k { (kx, ky) } else { (qx, qy) };
    // Number by number, and both of each, or they go through memory.
    let pick = |of: fn(&FullHeadSide) -> u32| {
        let (q, k) = (of(&walk.q), of(&walk.k));
        if is_k { k } else { q }
    };
    let input = [pick(|side| side.input[0]), pick(|side| side.input[1]), pick(|side| side.input[2])];
    let output = [pick(|side| side.output[0]), pick(|side| side.output[1]), pick(|side| side.output[2])];
    let (q, k) = (walk.scales[0], walk.scales[1]);
    let scale = if is_k { k } else { q };
    let at = |[outer, tokens, heads]: [u32; 3]| (z * outer + token * tokens + head * heads + lane) as usize;
    let x = x.cast::<[E; V]>().wrapping_add(at(input));
    let y = y.cast::<[E; V]>().wrapping_add(at(output));
    let (apart, bytes) = (width as usize, V * size_of::<E>());
    // SAFETY: the lanes are inside the head; the caller's contract.
    unsafe {
        let near = memory::load_here_if(x.cast(), bytes, works as u32);
        let far = memory::load_here_if(x.wrapping_add(apart).cast(), bytes, works as u32);
        // The assembler would have these loads wait for the position. It moves none across a barrier with a branch
        // behind it, be it one that no thread takes.
        if IDS {
            thread::sync_warp();
            if thread::opaque(width) == 0 {
                return;
            }
        }
        let position = given.map_or(i64::from(token), |given| walk.offset + given.number(walk.flags));
        let known = !IDS || (position as u64) < walk.rows as u64;
        // For a position that no table has, the first row is read and not used.
        let row = if known { position as u32 } else { 0 };
        let entries = |table: *const u8, outer: u32, rows: u32| {
            let pairs = if PAIRS { V / 2 } else { V };
            let table = table.cast::<E>().wrapping_add((z * outer + row * rows) as usize + lane as usize * pairs);
            if PAIRS {
                let far = table.wrapping_add(V / 2 * apart);
                let ([near, _], [far, _]) =
                    (memory::load(table.cast(), bytes / 2), memory::load(far.cast(), bytes / 2));
                if bytes / 2 < 8 { [near | far << 32, 0] } else { [near, far] }
            } else {
                memory::load(table.cast(), bytes)
            }
        };
        let cos = entries(first, walk.tables[0][0], walk.tables[0][1]);
        let sin = entries(second, walk.tables[1][0], walk.tables[1][1]);
        let factors = [walk.factor, walk.factor * walk.sin_sign];
        // Without a position the token is not rotated.
        let scaled = |cos: f32, sin: f32| {
            let turned = [cos * factors[0], sin * factors[1] * scale];
            if known { [turned[0] * scale, turned[1]] } else { [scale, 0.0] }
        };
        let is_plain = walk.flags & PLAIN != 0 && known;
        let (near, far) = if IDS && size_of::<E>() == 2 && bytes == 16 {
            const { assert!(!IDS || !PAIRS) }
            // Room for all 2,048 threads of a multiprocessor: each waits for its position, then for the row.
            thread::at_most_registers::<32>();
            if is_plain {
                rotated::<E, V, PAIRS>(near, far, &lanes::<E, V>(cos), &lanes::<E, V>(sin))
            } else {
                rotated_by_words::<E>(near, far, cos, sin, scaled)
            }
        } else {
            let (mut cos, mut sin) = (lanes::<E, V>(cos), lanes::<E, V>(sin));
            if !is_plain {
                unroll!(i < V => { [cos[i], sin[i]] = scaled(cos[i], sin[i]); });
            }
            rotated::<E, V, PAIRS>(near, far, &cos, &sin)
        };
        if works {
            memory::store(y.cast(), near, bytes);
            memory::store(y.wrapping_add(apart).cast(), far, bytes);
        }
    }
}

/// Loads the position at a place of a list, in words of 32 bits. Nothing uses it here, so nothing waits for it yet. It is
/// two loads of 32 bits, because one of 32 bits and one of 64 would wait for each other. If positions have 32 bits, the
/// second reads the same word again.
///
/// # Safety
/// The list has it.
#[inline(always)]
unsafe fn given(ids: *const u8, at: u32, flags: u32) -> Given {
    let low = ids.cast::<u32>().wrapping_add(at as usize);
    let high = low.wrapping_add((flags & WIDE_IDS != 0) as usize);
    // SAFETY: the caller's contract.
    let ([low, _], [high, _]) = unsafe { (memory::load_here(low.cast(), 4), memory::load_here(high.cast(), 4)) };
    Given([low as u32, high as u32])
}

/// Rotates the `V` pairs of two vectors.
#[inline(always)]
fn rotated<E: Packed + RopeElement, const V: usize, const PAIRS: bool>(
    near: Words,
    far: Words,
    cos: &[f32; V],
    sin: &[f32; V],
) -> (Words, Words) {
    let (mut a, mut b) = (lanes::<E, V>(near), lanes::<E, V>(far));
    if PAIRS {
        unroll!(i < V / 2 => {
            let j = V / 2 + i;
            (a[2 * i], a[2 * i + 1]) = rotate::<E>(a[2 * i], a[2 * i + 1], cos[i], sin[i]);
            (b[2 * i], b[2 * i + 1]) = rotate::<E>(b[2 * i], b[2 * i + 1], cos[j], sin[j]);
        });
    } else {
        unroll!(i < V => { (a[i], b[i]) = rotate::<E>(a[i], b[i], cos[i], sin[i]); });
    }
    (words::<E, V>(a), words::<E, V>(b))
}

/// Rotates the pairs of two vectors of 16-bit elements, a lane of each. `scaled` turns cosines and sines into the factors.
/// Goes word by word: the factors of all lanes at once would take more registers than there are.
#[inline(always)]
fn rotated_by_words<E: Packed + RopeElement>(
    mut near: Words,
    mut far: Words,
    mut cos: Words,
    mut sin: Words,
    scaled: impl Fn(f32, f32) -> [f32; 2],
) -> (Words, Words) {
    // Takes the lowest word out, and puts a finished word in at the top.
    let moved = |[low, high]: Words, word: u64| [low >> 32 | high << 32, high >> 32 | word << 32];
    let mut left = thread::opaque(4);
    loop {
        thread::no_unrolling();
        let [mut a, mut b] = [near, far].map(lanes::<E, 2>);
        let [c, s] = [cos, sin].map(lanes::<E, 2>);
        unroll!(at most 2: i < 2 => {
            let [c, s] = scaled(c[i], s[i]);
            (a[i], b[i]) = rotate::<E>(a[i], b[i], c, s);
        });
        (near, far) = (moved(near, words::<E, 2>(a)[0]), moved(far, words::<E, 2>(b)[0]));
        (cos, sin) = (moved(cos, 0), moved(sin, 0));
        left -= 1;
        if left == 0 {
            return (near, far);
        }
    }
}
