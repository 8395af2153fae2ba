//! RopeKernel: rotary embedding of q and k in one launch.
//!
//! A thread owns both halves of its pairs, so that in place works without a race, and computes their cosines and sines
//! once for several heads. All loads of a chunk of heads are in flight before the first store; none takes the read-only
//! path. The lanes that do not rotate are copied, times the scale, by threads of their own.

pub use pointwise_core::rope::Walk;
use pointwise_core::rope::{
    BATCH_OFFSETS, CHUNK, IDS, INTERLEAVED_IN, INTERLEAVED_OUT, RopeElement, SEQUENCES, Side, TOKENS_INNER, WIDE_IDS,
    rotate, sincos_exact, sincos_hf,
};
use pointwise_core::{Value, maths};

use crate::packed::{self, Packed, unroll};
use crate::{memory, thread};

/// Bytes of one access: a vector's two words.
type Words = [u64; 2];

/// Where cosines and sines come from.
pub trait Source {
    /// Cosines and sines of the `V` pairs from `pair` on, at a position or row.
    ///
    /// # Safety
    /// The tables have the row, with at least `pair + V` entries, and are aligned for vectors of `V`.
    unsafe fn cos_sin<const V: usize>(
        first: *const u8,
        second: *const u8,
        walk: &Walk,
        batch: i64,
        position: i64,
        pair: u32,
    ) -> ([f32; V], [f32; V]);
}

/// The f32 product of position and `inv_freq`.
pub struct Hf;
/// 64-bit turns.
pub struct Exact;
/// A table of angles.
pub struct Angles;
/// Tables of cosines and sines with elements of type `T`.
pub struct Tables<T>(core::marker::PhantomData<T>);

impl Source for Hf {
    #[inline(always)]
    unsafe fn cos_sin<const V: usize>(
        first: *const u8,
        _: *const u8,
        _: &Walk,
        _: i64,
        position: i64,
        pair: u32,
    ) -> ([f32; V], [f32; V]) {
        // SAFETY: the caller's contract.
        let inv_freq = unsafe { packed::load::<f32, V>(first.cast::<f32>().add(pair as usize)) };
        let (mut cos, mut sin) = ([0.0; V], [0.0; V]);
        unroll!(i < V => { (sin[i], cos[i]) = sincos_hf(position, inv_freq[i]); });
        (cos, sin)
    }
}

impl Source for Exact {
    #[inline(always)]
    unsafe fn cos_sin<const V: usize>(
        first: *const u8,
        _: *const u8,
        _: &Walk,
        _: i64,
        position: i64,
        pair: u32,
    ) -> ([f32; V], [f32; V]) {
        // SAFETY: the caller's contract.
        let turns = unsafe { packed::load::<i64, V>(first.cast::<i64>().add(pair as usize)) };
        let (mut cos, mut sin) = ([0.0; V], [0.0; V]);
        unroll!(i < V => { (sin[i], cos[i]) = sincos_exact(position, turns[i].0 as u64); });
        (cos, sin)
    }
}

impl Source for Angles {
    #[inline(always)]
    unsafe fn cos_sin<const V: usize>(
        first: *const u8,
        _: *const u8,
        walk: &Walk,
        batch: i64,
        position: i64,
        pair: u32,
    ) -> ([f32; V], [f32; V]) {
        // SAFETY: the caller's contract.
        let angles = unsafe { row::<f32, V>(first, walk.first, batch, position, pair) };
        let (mut cos, mut sin) = ([0.0; V], [0.0; V]);
        unroll!(i < V => { (sin[i], cos[i]) = maths::sincos(angles[i]); });
        (cos, sin)
    }
}

impl<T: Packed + RopeElement> Source for Tables<T> {
    #[inline(always)]
    unsafe fn cos_sin<const V: usize>(
        first: *const u8,
        second: *const u8,
        walk: &Walk,
        batch: i64,
        position: i64,
        pair: u32,
    ) -> ([f32; V], [f32; V]) {
        // SAFETY: the caller's contract.
        unsafe {
            let cos = row::<T, V>(first, walk.first, batch, position, pair);
            (cos, row::<T, V>(second, walk.second, batch, position, pair))
        }
    }
}

/// `V` entries of a table's row.
///
/// # Safety
/// The table has them, aligned for vectors of `V`.
#[inline(always)]
unsafe fn row<T: Packed + RopeElement, const V: usize>(
    table: *const u8,
    [batch_stride, row_stride]: [i64; 2],
    batch: i64,
    row: i64,
    pair: u32,
) -> [f32; V] {
    let at = batch * batch_stride + row * row_stride + i64::from(pair);
    // SAFETY: the caller's contract.
    let wide = unsafe { packed::load::<T, V>(table.cast::<T>().offset(at as isize)) };
    let mut entries = [0.0; V];
    unroll!(i < V => { entries[i] = T::to_f32(wide[i]); });
    entries
}

/// Rotates the heads of one token that fall to this thread, by vectors of `V` elements.
///
/// # Safety
/// The tensors have the elements that `walk` reaches, aligned for vectors of `V`; outputs are disjoint from inputs, or
/// the very same with the same pairing on both sides; positions and tables are as `walk` describes them.
#[inline(always)]
#[allow(clippy::too_many_arguments)]
pub unsafe fn rope<E: Packed + RopeElement, S: Source, const V: usize>(
    qx: *const E,
    qy: *mut E,
    kx: *const E,
    ky: *mut E,
    ids: *const u8,
    starts: *const u8,
    first: *const u8,
    second: *const u8,
    walk: &Walk,
) {
    let n = thread::index_1d();
    let groups = walk.q.groups + walk.k.groups;
    let (rest, lane) = walk.lanes.divide(n);
    let (far, near) = walk.inner.divide(rest);
    let (token, group) = if walk.flags & TOKENS_INNER != 0 { (near, far) } else { (far, near) };
    if token >= walk.tokens || group >= groups {
        return;
    }
    let (batch, row) = walk.seq.divide(token);
    let (batch, row) = (i64::from(batch), i64::from(row));
    let is_k = group >= walk.q.groups;
    let (x, y) = if is_k { (kx, ky) } else { (qx, qy) };
    let side = if is_k { walk.k } else { walk.q };
    let head = if is_k { group - walk.q.groups } else { group };
    let at = |strides: [i64; 3]| (batch * strides[0] + row * strides[1] + i64::from(head) * strides[2]) as isize;
    // SAFETY: both stay inside the tensors; the caller's contract.
    let (x, y) = unsafe { (x.offset(at(side.input)), y.offset(at(side.output))) };
    let mut heads = Heads::<E, V> { x, y, head, side };

    if lane >= walk.pair_lanes {
        let at = walk.rest_at + (lane - walk.pair_lanes) * V as u32;
        // SAFETY: the lane passes through; the caller's contract.
        unsafe { pass::<E, V>(&mut heads, at as usize) }
        return;
    }
    let pair = lane * V as u32;
    let runs = |interleaved: u32| {
        let near = walk.rotated_at + if walk.flags & interleaved != 0 { 2 * pair } else { pair };
        let apart = if walk.flags & interleaved != 0 { V as u32 } else { walk.half };
        (near as usize, (near + apart) as usize)
    };
    let (from, to) = (runs(INTERLEAVED_IN), runs(INTERLEAVED_OUT));

    // SAFETY: the runs are inside the rotated lanes; the caller's contract.
    unsafe {
        let mut chunk = heads.load(from);
        // The scale of every lane; where no table has the position, the token is not rotated.
        let (mut cos, mut sin) = ([side.scale; V], [0.0; V]);
        let (position, known) = position(ids, starts, walk, batch, row, token);
        if known {
            let (c, s) = S::cos_sin::<V>(first, second, walk, batch, position, pair);
            unroll!(i < V => {
                cos[i] = c[i] * walk.factor * side.scale;
                sin[i] = s[i] * walk.factor * (side.scale * walk.sin_sign);
            });
        }
        loop {
            unroll!(at most 4: j < CHUNK as usize => {
                if heads.has(j) {
                    let (a, b) = turn::<E, V>(chunk[j], &cos, &sin, walk.flags);
                    heads.store(j, to, a, b);
                }
            });
            heads.advance();
            if !heads.has(0) {
                break;
            }
            chunk = heads.load(from);
        }
    }
}

/// The heads that are left to a thread, and where the first of them begins.
struct Heads<E, const V: usize> {
    x: *const E,
    y: *mut E,
    head: u32,
    side: Side,
}

impl<E: Packed, const V: usize> Heads<E, V> {
    /// Whether the thread has a head `j` places on.
    #[inline(always)]
    fn has(&self, j: usize) -> bool {
        self.head + j as u32 * self.side.groups < self.side.heads
    }

    #[inline(always)]
    fn step(&self, j: usize, stride: i64) -> isize {
        (i64::from(j as u32 * self.side.groups) * stride) as isize
    }

    /// Two vectors of each head of the next chunk.
    ///
    /// # Safety
    /// The kernel's.
    #[inline(always)]
    unsafe fn load(&self, (a, b): (usize, usize)) -> [(Words, Words); CHUNK as usize] {
        let mut chunk = [([0; 2], [0; 2]); CHUNK as usize];
        unroll!(at most 4: j < CHUNK as usize => {
            if self.has(j) {
                // SAFETY: the caller's contract.
                unsafe {
                    let x = self.x.offset(self.step(j, self.side.input[2]));
                    chunk[j] = (load::<E, V>(x.add(a)), load::<E, V>(x.add(b)));
                }
            }
        });
        chunk
    }

    /// # Safety
    /// The kernel's.
    #[inline(always)]
    unsafe fn store(&self, j: usize, (a, b): (usize, usize), near: Words, far: Words) {
        // SAFETY: the caller's contract.
        unsafe {
            let y = self.y.offset(self.step(j, self.side.output[2]));
            memory::store(y.add(a).cast(), near, V * size_of::<E>());
            memory::store(y.add(b).cast(), far, V * size_of::<E>());
        }
    }

    #[inline(always)]
    fn advance(&mut self) {
        let (x, y) = (self.step(CHUNK as usize, self.side.input[2]), self.step(CHUNK as usize, self.side.output[2]));
        self.x = self.x.wrapping_offset(x);
        self.y = self.y.wrapping_offset(y);
        self.head += CHUNK * self.side.groups;
    }
}

/// # Safety
/// `V` elements at `p`, aligned for a vector.
#[inline(always)]
unsafe fn load<E, const V: usize>(p: *const E) -> Words {
    // SAFETY: the caller's contract.
    unsafe { memory::load(p.cast(), V * size_of::<E>()) }
}

/// The lanes that do not rotate: times the scale.
///
/// # Safety
/// The kernel's; `at` is the first of `V` such lanes.
#[inline(always)]
unsafe fn pass<E: Packed + RopeElement, const V: usize>(heads: &mut Heads<E, V>, at: usize) {
    while heads.has(0) {
        let mut chunk = [[0; 2]; CHUNK as usize];
        // SAFETY: the caller's contract.
        unsafe {
            unroll!(at most 4: j < CHUNK as usize => {
                if heads.has(j) {
                    chunk[j] = load::<E, V>(heads.x.offset(heads.step(j, heads.side.input[2])).add(at));
                }
            });
            unroll!(at most 4: j < CHUNK as usize => {
                if heads.has(j) {
                    let mut lanes = lanes::<E, V>(chunk[j]);
                    unroll!(i < V => { lanes[i] *= heads.side.scale; });
                    let y = heads.y.offset(heads.step(j, heads.side.output[2]));
                    memory::store(y.add(at).cast(), words::<E, V>(lanes), V * size_of::<E>());
                }
            });
        }
        heads.advance();
    }
}

/// Rotates `V` pairs.
#[inline(always)]
fn turn<E: Packed + RopeElement, const V: usize>(
    (a, b): (Words, Words),
    cos: &[f32; V],
    sin: &[f32; V],
    flags: u32,
) -> (Words, Words) {
    let (mut a, mut b) = (lanes::<E, V>(a), lanes::<E, V>(b));
    if flags & INTERLEAVED_IN != 0 {
        let neighbours = (a, b);
        unroll!(i < V => {
            a[i] = pick(&neighbours, 2 * i);
            b[i] = pick(&neighbours, 2 * i + 1);
        });
    }
    unroll!(i < V => { (a[i], b[i]) = rotate(a[i], b[i], cos[i], sin[i]); });
    if flags & INTERLEAVED_OUT != 0 {
        let halves = (a, b);
        unroll!(i < V => {
            a[i] = deal(&halves, i);
            b[i] = deal(&halves, V + i);
        });
    }
    (words::<E, V>(a), words::<E, V>(b))
}

/// Element `i` of two vectors in a row.
#[inline(always)]
fn pick<const V: usize>((a, b): &([f32; V], [f32; V]), i: usize) -> f32 {
    if i < V { a[i] } else { b[i - V] }
}

/// Element `i` of two vectors dealt out in turn.
#[inline(always)]
fn deal<const V: usize>((a, b): &([f32; V], [f32; V]), i: usize) -> f32 {
    if i % 2 == 0 { a[i / 2] } else { b[i / 2] }
}

/// The elements of a vector as f32.
#[inline(always)]
fn lanes<E: Packed + RopeElement, const V: usize>(words: Words) -> [f32; V] {
    let per_word = 8 / size_of::<E>();
    let halves = [E::unpack(words[0]), E::unpack(words[1])];
    let mut lanes = [0.0; V];
    unroll!(i < V => { lanes[i] = E::to_f32(halves[i / per_word][i % per_word]); });
    lanes
}

/// The inverse of [`lanes`], each rounded once.
#[inline(always)]
fn words<E: Packed + RopeElement, const V: usize>(lanes: [f32; V]) -> Words {
    let per_word = 8 / size_of::<E>();
    let mut halves = [[E::Compute::ZERO; 8]; 2];
    unroll!(i < V => { halves[i / per_word][i % per_word] = E::from_f32(lanes[i]); });
    [E::pack(halves[0]), E::pack(halves[1])]
}

/// The position of a token, and whether it has one that the tables know.
///
/// # Safety
/// The positions are as `walk` describes them.
#[inline(always)]
unsafe fn position(ids: *const u8, starts: *const u8, walk: &Walk, batch: i64, row: i64, token: u32) -> (i64, bool) {
    let wide = walk.flags & WIDE_IDS != 0;
    let read = |list: *const u8, i: i64| {
        // SAFETY: the caller's contract.
        unsafe {
            if wide {
                memory::load(list.cast::<i64>().offset(i as isize).cast(), 8)[0] as i64
            } else {
                i64::from(memory::load(list.cast::<i32>().offset(i as isize).cast(), 4)[0] as i32)
            }
        }
    };
    let (mut position, mut known) = (walk.offset + row, true);
    if walk.flags & SEQUENCES != 0 {
        // The last sequence that begins at or before the token.
        let (mut low, mut high) = (0, i64::from(walk.sequences));
        while low + 1 < high {
            let middle = (low + high) / 2;
            if read(starts, middle) <= i64::from(token) { low = middle } else { high = middle }
        }
        let start = read(starts, low);
        // A token before the first or after the last is padding.
        known = start <= i64::from(token) && i64::from(token) < read(starts, i64::from(walk.sequences));
        let offset = if walk.flags & BATCH_OFFSETS != 0 { read(ids, low * walk.ids[0]) } else { 0 };
        position = walk.offset + offset + (i64::from(token) - start);
    } else if walk.flags & (IDS | BATCH_OFFSETS) != 0 {
        let given = read(ids, batch * walk.ids[0] + row * walk.ids[1]);
        position = walk.offset + given + if walk.flags & IDS != 0 { 0 } else { row };
    }
    (position, known && (position as u64) < walk.rows as u64 || known && walk.rows == i64::MAX)
}

/// Exports the entries: every source, element type and strategy of `rope_entries!`.
#[macro_export]
macro_rules! export_rope {
    () => {
        $crate::rope_entries! { ($crate::__rope_entry) () }
    };
}

#[doc(hidden)]
#[macro_export]
#[allow_internal_unstable(abi_gpu_kernel)]
macro_rules! __rope_entry {
    ($source:ident $type:ident $strategy:ident, ()) => {
        const _: () = {
            type E = $crate::element::ty::$type;

            /// # Safety
            /// That of `pointwise_device::rope::rope`; the host checks it before the launch.
            #[unsafe(export_name = $crate::symbol!(rope, $source, $type, $strategy))]
            unsafe extern "gpu-kernel" fn entry(
                qx: *const E,
                qy: *mut E,
                kx: *const E,
                ky: *mut E,
                ids: *const u8,
                starts: *const u8,
                first: *const u8,
                second: *const u8,
                walk: $crate::rope::Walk,
            ) {
                // SAFETY: this entry's own contract.
                unsafe {
                    $crate::rope::rope::<E, $crate::__rope_source!($source), { $crate::__rope_vector!($strategy) }>(
                        qx, qy, kx, ky, ids, starts, first, second, &walk,
                    )
                }
            }
        };
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __rope_source {
    (hf) => { $crate::rope::Hf };
    (exact) => { $crate::rope::Exact };
    (angles) => { $crate::rope::Angles };
    (tables) => { $crate::rope::Tables<f32> };
    (own_tables) => { $crate::rope::Tables<E> };
}

/// Elements of a vector of type `E`: 16 bytes, 8 bytes, or one.
#[doc(hidden)]
#[macro_export]
macro_rules! __rope_vector {
    (register_copy) => {
        16 / size_of::<E>()
    };
    (explicit_parallel) => {
        8 / size_of::<E>()
    };
    (direct) => {
        1
    };
}
