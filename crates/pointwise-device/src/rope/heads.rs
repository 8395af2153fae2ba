//! The heads of a thread: loads, rotation, stores.

use pointwise_core::Value;
use pointwise_core::rope::{INTERLEAVED_IN, INTERLEAVED_OUT, NEIGHBOURS, RopeElement, Side, rotate};

use crate::memory;
use crate::packed::{Packed, unroll};

/// The bytes of one access: a vector's two words.
pub(super) type Words = [u64; 2];

/// The heads that are left to a thread, and the addresses of the first one.
pub(super) struct Heads<E, const V: usize> {
    x: *const E,
    y: *mut E,
    /// The number of the first one.
    head: u32,
    /// The heads of the tensor.
    heads: u32,
    /// The distance from one head to the next; `step` is the same in elements of input and output.
    apart: u32,
    step: [isize; 2],
    /// Multiplies every lane.
    pub(super) scale: f32,
}

impl<E: Packed, const V: usize> Heads<E, V> {
    /// Returns the heads of a token, from `head` on.
    #[inline(always)]
    pub(super) fn new(x: *const E, y: *mut E, side: Side, [batch, row, head]: [u32; 3]) -> Self {
        let at = |strides: [i64; 3]| {
            (i64::from(batch) * strides[0] + i64::from(row) * strides[1] + i64::from(head) * strides[2]) as isize
        };
        let (x, y) = (x.wrapping_offset(at(side.input)), y.wrapping_offset(at(side.output)));
        let step = [side.step[0] as isize, side.step[1] as isize];
        Heads { x, y, head, heads: side.heads, apart: side.groups, step, scale: side.scale }
    }

    /// True if the thread has a head `j` places on.
    #[inline(always)]
    pub(super) fn has(&self, j: usize) -> bool {
        self.head + j as u32 * self.apart < self.heads
    }

    /// Loads a vector at `a`, and a `second` one at `b` if there is one, of each of `C` heads from the `skip`th next
    /// one on.
    ///
    /// # Safety
    /// The kernel's.
    #[inline(always)]
    pub(super) unsafe fn load<const C: usize>(
        &self,
        skip: usize,
        (a, b): (usize, usize),
        second: bool,
    ) -> [(Words, Words); C] {
        let mut chunk = [([0; 2], [0; 2]); C];
        unroll!(at most 4: j < C => {
            if self.has(skip + j) {
                let x = self.x.wrapping_offset((skip + j) as isize * self.step[0]);
                // SAFETY: the caller's contract.
                unsafe {
                    chunk[j].0 = load::<E, V>(x.add(a));
                    if second {
                        chunk[j].1 = load::<E, V>(x.add(b));
                    }
                }
            }
        });
        chunk
    }

    /// Rotates and stores all heads. The first chunk is loaded already. `flags` tell how lanes pair.
    ///
    /// # Safety
    /// The kernel's.
    #[inline(always)]
    pub(super) unsafe fn turn<const C: usize>(
        &mut self,
        mut chunk: [(Words, Words); C],
        (from, to): ((usize, usize), (usize, usize)),
        cos: &[f32; V],
        sin: &[f32; V],
        flags: u32,
    ) where
        E: RopeElement,
    {
        // SAFETY: the caller's contract.
        unsafe {
            loop {
                unroll!(at most 4: j < C => {
                    if self.has(j) {
                        let (a, b) = rotated::<E, V>(chunk[j], cos, sin, flags);
                        self.store(j, to, a, b, true);
                    }
                });
                self.advance(C);
                if !self.has(0) {
                    break;
                }
                chunk = self.load(0, from, true);
            }
        }
    }

    /// Stores the lanes that do not rotate, a vector of each head, times the scale. The first chunk is loaded already.
    ///
    /// # Safety
    /// The kernel's; `at` is the first of `V` such lanes.
    #[inline(always)]
    pub(super) unsafe fn pass<const C: usize>(&mut self, mut chunk: [(Words, Words); C], at: usize)
    where
        E: RopeElement,
    {
        // SAFETY: the caller's contract.
        unsafe {
            loop {
                unroll!(at most 4: j < C => {
                    if self.has(j) {
                        self.store(j, (at, at), scaled::<E, V>(chunk[j].0, self.scale), [0; 2], false);
                    }
                });
                self.advance(C);
                if !self.has(0) {
                    break;
                }
                chunk = self.load(0, (at, at), false);
            }
        }
    }

    /// The inverse of [`Heads::load`], for the head `j` places on.
    ///
    /// # Safety
    /// The kernel's.
    #[inline(always)]
    pub(super) unsafe fn store(&self, j: usize, (a, b): (usize, usize), near: Words, far: Words, second: bool) {
        let y = self.y.wrapping_offset(j as isize * self.step[1]);
        // SAFETY: the caller's contract.
        unsafe {
            memory::store(y.add(a).cast(), near, V * size_of::<E>());
            if second {
                memory::store(y.add(b).cast(), far, V * size_of::<E>());
            }
        }
    }

    /// Moves on by `count` heads.
    #[inline(always)]
    pub(super) fn advance(&mut self, count: usize) {
        self.x = self.x.wrapping_offset(count as isize * self.step[0]);
        self.y = self.y.wrapping_offset(count as isize * self.step[1]);
        self.head += count as u32 * self.apart;
    }
}

/// # Safety
/// `p` is valid for reading `V` elements, and aligned for a vector.
#[inline(always)]
unsafe fn load<E, const V: usize>(p: *const E) -> Words {
    // SAFETY: the caller's contract.
    unsafe { memory::load(p.cast(), V * size_of::<E>()) }
}

/// Returns a vector times the scale.
#[inline(always)]
pub(super) fn scaled<E: Packed + RopeElement, const V: usize>(vector: Words, scale: f32) -> Words {
    let mut lanes = lanes::<E, V>(vector);
    unroll!(i < V => { lanes[i] *= scale; });
    words::<E, V>(lanes)
}

/// Rotates the `V` pairs of two vectors. Without flags a pair has a lane of each vector. With both flags it is two
/// neighbours in one vector. With one flag the two vectors follow each other, before or after the rotation, and a pair
/// is two neighbours there.
#[inline(always)]
pub(super) fn rotated<E: Packed + RopeElement, const V: usize>(
    (a, b): (Words, Words),
    cos: &[f32; V],
    sin: &[f32; V],
    flags: u32,
) -> (Words, Words) {
    let (mut a, mut b) = (lanes::<E, V>(a), lanes::<E, V>(b));
    if V > 1 && flags & NEIGHBOURS == NEIGHBOURS {
        unroll!(i < V / 2 => {
            (a[2 * i], a[2 * i + 1]) = rotate::<E>(a[2 * i], a[2 * i + 1], cos[i], sin[i]);
            (b[2 * i], b[2 * i + 1]) = rotate::<E>(b[2 * i], b[2 * i + 1], cos[V / 2 + i], sin[V / 2 + i]);
        });
        return (words::<E, V>(a), words::<E, V>(b));
    }
    if V > 1 && flags & INTERLEAVED_IN != 0 {
        let neighbours = (a, b);
        unroll!(i < V => {
            a[i] = pick(&neighbours, 2 * i);
            b[i] = pick(&neighbours, 2 * i + 1);
        });
    }
    unroll!(i < V => { (a[i], b[i]) = rotate::<E>(a[i], b[i], cos[i], sin[i]); });
    if V > 1 && flags & INTERLEAVED_OUT != 0 {
        let halves = (a, b);
        unroll!(i < V => {
            a[i] = deal(&halves, i);
            b[i] = deal(&halves, V + i);
        });
    }
    (words::<E, V>(a), words::<E, V>(b))
}

/// Returns element `i` of two vectors in a row.
#[inline(always)]
fn pick<const V: usize>((a, b): &([f32; V], [f32; V]), i: usize) -> f32 {
    if i < V { a[i] } else { b[i - V] }
}

/// Returns element `i` of two vectors dealt out in turn.
#[inline(always)]
fn deal<const V: usize>((a, b): &([f32; V], [f32; V]), i: usize) -> f32 {
    if i % 2 == 0 { a[i / 2] } else { b[i / 2] }
}

/// Returns the elements of a vector as f32.
#[inline(always)]
pub(super) fn lanes<E: Packed + RopeElement, const V: usize>(words: Words) -> [f32; V] {
    let per_word = 8 / size_of::<E>();
    let halves = [E::unpack(words[0]), E::unpack(words[1])];
    let mut lanes = [0.0; V];
    unroll!(i < V => { lanes[i] = E::to_f32(halves[i / per_word][i % per_word]); });
    lanes
}

/// The inverse of [`lanes`], each rounded once.
#[inline(always)]
pub(super) fn words<E: Packed + RopeElement, const V: usize>(lanes: [f32; V]) -> Words {
    let per_word = 8 / size_of::<E>();
    let mut halves = [[E::Compute::ZERO; 8]; 2];
    unroll!(i < V => { halves[i / per_word][i % per_word] = E::from_f32(lanes[i]); });
    [E::pack(halves[0]), E::pack(halves[1])]
}
