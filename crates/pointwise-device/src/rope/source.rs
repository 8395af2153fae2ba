//! The sources of cosines and sines: frequencies, angles, or tables of cosines and sines.

use core::marker::PhantomData;

use pointwise_core::maths;
use pointwise_core::rope::{RopeElement, sincos_exact, sincos_hf};

use super::heads::Words;
use crate::packed::{self, Packed, unroll};
use crate::{memory, thread};

/// A source of cosines and sines.
pub trait Source {
    /// True for a table: a position can be outside of it.
    const TABLE: bool;

    /// Returns cosine and sine of a pair at a position or row. `strides` are the tables' strides of batch and row.
    ///
    /// # Safety
    /// The tables have the row, and it has more than `pair` entries.
    unsafe fn cos_sin(tables: [*const u8; 2], strides: Strides, batch: i64, position: i64, pair: u32) -> (f32, f32);

    /// Loads the words that `V` pairs need before the position is known.
    ///
    /// # Safety
    /// The list has the pairs, aligned as [`Pairs`] says.
    #[inline(always)]
    unsafe fn early<const V: usize>(_: [*const u8; 2], _: Pairs) -> [Words; 4] {
        [[0; 2]; 4]
    }

    /// Returns cosines and sines of the pairs. Offsets into the tables have 32 bits.
    ///
    /// # Safety
    /// The conditions of [`Source::cos_sin`] for all pairs, which are aligned as [`Pairs`] says.
    unsafe fn late<const V: usize>(
        early: [Words; 4],
        tables: [*const u8; 2],
        strides: [[u32; 2]; 2],
        batch: u32,
        position: i64,
        pairs: Pairs,
    ) -> ([f32; V], [f32; V]);
}

/// The strides of two tables, each of batch and row, in elements.
pub type Strides = [[i64; 2]; 2];

/// The pairs of a thread: half of them from `near` on, the others `apart` from there. If they are `joined`, all follow
/// each other and are aligned for one load of all, else for loads of half.
#[derive(Clone, Copy)]
pub struct Pairs {
    pub(super) near: u32,
    pub(super) apart: u32,
    pub(super) joined: bool,
}

/// Angles by the f32 product of position and `inv_freq`.
pub struct Hf;
/// Angles by 64-bit turns.
pub struct Exact;
/// A table of angles.
pub struct Angles;
/// Tables of cosines and sines with elements of type `T`.
pub struct Tables<T>(PhantomData<T>);

impl Source for Hf {
    const TABLE: bool = false;

    #[inline(always)]
    unsafe fn cos_sin([list, _]: [*const u8; 2], _: Strides, _: i64, position: i64, pair: u32) -> (f32, f32) {
        // SAFETY: the caller's contract.
        let inv_freq = unsafe { entry::<f32>(list, i64::from(pair)) };
        let (sin, cos) = sincos_hf(position, inv_freq);
        (cos, sin)
    }

    #[inline(always)]
    unsafe fn early<const V: usize>([list, _]: [*const u8; 2], pairs: Pairs) -> [Words; 4] {
        // SAFETY: the caller's contract.
        let [near, far] = unsafe { runs::<f32, V>(list, 0, pairs) };
        [near, far, [0; 2], [0; 2]]
    }

    #[inline(always)]
    unsafe fn late<const V: usize>(
        [near, far, ..]: [Words; 4],
        _: [*const u8; 2],
        _: [[u32; 2]; 2],
        _: u32,
        position: i64,
        _: Pairs,
    ) -> ([f32; V], [f32; V]) {
        let mut angles = spread::<f32, V>([near, far]);
        let position = position as f32;
        unroll!(i < V => { angles[i] *= position; });
        cosines_sines(&angles)
    }
}

impl Source for Exact {
    const TABLE: bool = false;

    #[inline(always)]
    unsafe fn cos_sin([list, _]: [*const u8; 2], _: Strides, _: i64, position: i64, pair: u32) -> (f32, f32) {
        // SAFETY: the caller's contract.
        let [turns, _] = unsafe { memory::load(list.cast::<u64>().add(pair as usize).cast(), 8) };
        let (sin, cos) = sincos_exact(position, turns);
        (cos, sin)
    }

    #[inline(always)]
    unsafe fn early<const V: usize>([list, _]: [*const u8; 2], pairs: Pairs) -> [Words; 4] {
        let mut words = [[0; 2]; 4];
        // Two entries of each run in a pair of words, or one.
        let (each, parts) = if V > 2 { (2, V / 4) } else { (1, 1) };
        unroll!(if at most 4: n < 2 * parts => {
            let at = (pairs.near + (n / parts) as u32 * pairs.apart) as usize + n % parts * each;
            // SAFETY: the caller's contract.
            words[n] = unsafe { memory::load(list.cast::<u64>().add(at).cast(), 8 * each) };
        });
        words
    }

    #[inline(always)]
    unsafe fn late<const V: usize>(
        turns: [Words; 4],
        _: [*const u8; 2],
        _: [[u32; 2]; 2],
        _: u32,
        position: i64,
        _: Pairs,
    ) -> ([f32; V], [f32; V]) {
        let (mut cos, mut sin) = ([0.0; V], [0.0; V]);
        let each = if V > 2 { 2 } else { 1 };
        unroll!(at most 8: i < V => { (sin[i], cos[i]) = sincos_exact(position, turns[i / each][i % each]); });
        (cos, sin)
    }
}

impl Source for Angles {
    const TABLE: bool = true;

    #[inline(always)]
    unsafe fn cos_sin([table, _]: [*const u8; 2], strides: Strides, batch: i64, row: i64, pair: u32) -> (f32, f32) {
        // SAFETY: the caller's contract.
        let angle = unsafe { entry::<f32>(table, at(strides[0], batch, row) + i64::from(pair)) };
        let (sin, cos) = maths::sincos_tight(angle);
        (cos, sin)
    }

    #[inline(always)]
    unsafe fn late<const V: usize>(
        _: [Words; 4],
        [table, _]: [*const u8; 2],
        strides: [[u32; 2]; 2],
        batch: u32,
        row: i64,
        pairs: Pairs,
    ) -> ([f32; V], [f32; V]) {
        // SAFETY: the caller's contract.
        let angles = unsafe { runs::<f32, V>(table, near(strides[0], batch, row), pairs) };
        cosines_sines(&spread::<f32, V>(angles))
    }
}

impl<T: Packed + RopeElement> Source for Tables<T> {
    const TABLE: bool = true;

    #[inline(always)]
    unsafe fn cos_sin([cos, sin]: [*const u8; 2], strides: Strides, batch: i64, row: i64, pair: u32) -> (f32, f32) {
        let pair = i64::from(pair);
        // SAFETY: the caller's contract.
        unsafe {
            let cos = entry::<T>(cos, at(strides[0], batch, row) + pair);
            (cos, entry::<T>(sin, at(strides[1], batch, row) + pair))
        }
    }

    #[inline(always)]
    unsafe fn late<const V: usize>(
        _: [Words; 4],
        [cos, sin]: [*const u8; 2],
        strides: [[u32; 2]; 2],
        batch: u32,
        row: i64,
        pairs: Pairs,
    ) -> ([f32; V], [f32; V]) {
        // SAFETY: the caller's contract.
        unsafe {
            let cos = runs::<T, V>(cos, near(strides[0], batch, row), pairs);
            let sin = runs::<T, V>(sin, near(strides[1], batch, row), pairs);
            (spread::<T, V>(cos), spread::<T, V>(sin))
        }
    }
}

/// Returns the offset where a row of a table begins.
#[inline(always)]
fn at([batch_stride, row_stride]: [i64; 2], batch: i64, row: i64) -> i64 {
    batch * batch_stride + row * row_stride
}

/// Reads an entry of a table.
///
/// # Safety
/// The table has it.
#[inline(always)]
unsafe fn entry<T: Packed + RopeElement>(table: *const u8, at: i64) -> f32 {
    // SAFETY: the caller's contract.
    let [entry] = unsafe { packed::load::<T, 1>(table.cast::<T>().offset(at as isize)) };
    T::to_f32(entry)
}

/// Returns the same for a table with 32-bit offsets. The row has been checked.
#[inline(always)]
fn near([batch_stride, row_stride]: [u32; 2], batch: u32, row: i64) -> u32 {
    batch * batch_stride + row as u32 * row_stride
}

/// Loads the entries of a thread's pairs from the row that begins at `row`: half of them in each part.
///
/// # Safety
/// The table has them, aligned as [`Pairs`] says.
#[inline(always)]
unsafe fn runs<T, const V: usize>(table: *const u8, row: u32, pairs: Pairs) -> [Words; 2] {
    let near = table.cast::<T>().wrapping_add((row + pairs.near) as usize);
    let far = near.wrapping_add(pairs.apart as usize);
    let bytes = V / 2 * size_of::<T>();
    // SAFETY: the caller's contract.
    unsafe {
        match bytes {
            4 | 8 => memory::load_halves(near.cast(), far.cast(), bytes, pairs.joined).map(|half| [half, 0]),
            _ => [memory::load(near.cast(), bytes), memory::load(far.cast(), bytes)],
        }
    }
}

/// Returns the entries that [`runs`] loaded, as f32.
#[inline(always)]
fn spread<T: Packed + RopeElement, const V: usize>(runs: [Words; 2]) -> [f32; V] {
    let per_word = 8 / size_of::<T>();
    let words = [[T::unpack(runs[0][0]), T::unpack(runs[0][1])], [T::unpack(runs[1][0]), T::unpack(runs[1][1])]];
    let mut entries = [0.0; V];
    unroll!(at most 8: i < V => {
        let j = i % (V / 2);
        entries[i] = T::to_f32(words[i / (V / 2)][j / per_word][j % per_word]);
    });
    entries
}

/// Returns cosines and sines of a thread's angles. The work for angles near zero overlaps. Other angles are rare, and
/// the code of their long reduction is here once.
#[inline(always)]
fn cosines_sines<const V: usize>(angles: &[f32; V]) -> ([f32; V], [f32; V]) {
    let (mut cos, mut sin, mut far) = ([0.0; V], [0.0; V], false);
    unroll!(i < V => {
        (sin[i], cos[i]) = maths::sincos_tight_near(angles[i]);
        far |= maths::is_far(angles[i]);
    });
    if far {
        // The count is hidden from the compiler, or it would write the body as many times.
        let (mut n, end) = (0, thread::opaque(V as u32));
        while n < end {
            let mut angle = 0.0;
            unroll!(i < V => { angle = if n == i as u32 { angles[i] } else { angle }; });
            if maths::is_far(angle) {
                let (s, c) = maths::sincos_tight_far(angle);
                unroll!(i < V => {
                    sin[i] = if n == i as u32 { s } else { sin[i] };
                    cos[i] = if n == i as u32 { c } else { cos[i] };
                });
            }
            n += 1;
        }
    }
    (cos, sin)
}
