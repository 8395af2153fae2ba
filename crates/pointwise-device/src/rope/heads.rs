//! The heads of a thread: loads, rotation, stores.

use pointwise_core::Value;
use pointwise_core::rope::{CHUNK, INTERLEAVED_IN, INTERLEAVED_OUT, RopeElement, Side, rotate};

use crate::memory;
use crate::packed::{Packed, unroll};

/// Bytes of one access: a vector's two words.
type Words = [u64; 2];

/// The heads that are left to a thread, and where the first of them begins.
pub(super) struct Heads<E, const V: usize> {
    x: *const E,
    y: *mut E,
    /// Number of the first.
    head: u32,
    /// Of the tensor.
    heads: u32,
    /// From one to the next, in numbers and in elements of input and output.
    apart: u32,
    step: [isize; 2],
    /// Multiplies every lane.
    pub(super) scale: f32,
}

impl<E: Packed, const V: usize> Heads<E, V> {
    /// The heads from `head` on, of a token.
    #[inline(always)]
    pub(super) fn new(x: *const E, y: *mut E, side: Side, [batch, row, head]: [u32; 3]) -> Self {
        let at = |strides: [i64; 3]| {
            (i64::from(batch) * strides[0] + i64::from(row) * strides[1] + i64::from(head) * strides[2]) as isize
        };
        let (x, y) = (x.wrapping_offset(at(side.input)), y.wrapping_offset(at(side.output)));
        let step = [side.step[0] as isize, side.step[1] as isize];
        Heads { x, y, head, heads: side.heads, apart: side.groups, step, scale: side.scale }
    }

    /// Whether the thread has a head `j` places on.
    #[inline(always)]
    fn has(&self, j: usize) -> bool {
        self.head + j as u32 * self.apart < self.heads
    }

    /// Two vectors of each head of the next chunk.
    ///
    /// # Safety
    /// The kernel's.
    #[inline(always)]
    pub(super) unsafe fn load(&self, (a, b): (usize, usize)) -> [(Words, Words); CHUNK as usize] {
        let mut chunk = [([0; 2], [0; 2]); CHUNK as usize];
        unroll!(at most 4: j < CHUNK as usize => {
            if self.has(j) {
                let x = self.x.wrapping_offset(j as isize * self.step[0]);
                // SAFETY: the caller's contract.
                unsafe { chunk[j] = (load::<E, V>(x.add(a)), load::<E, V>(x.add(b))) };
            }
        });
        chunk
    }

    /// Rotates and stores all heads; of the first chunk, which is loaded. `flags` say how lanes pair.
    ///
    /// # Safety
    /// The kernel's.
    #[inline(always)]
    pub(super) unsafe fn turn(
        &mut self,
        mut chunk: [(Words, Words); CHUNK as usize],
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
                unroll!(at most 4: j < CHUNK as usize => {
                    if self.has(j) {
                        let (a, b) = turn::<E, V>(chunk[j], cos, sin, flags);
                        self.store(j, to, a, b);
                    }
                });
                self.advance();
                if !self.has(0) {
                    break;
                }
                chunk = self.load(from);
            }
        }
    }

    /// # Safety
    /// The kernel's.
    #[inline(always)]
    unsafe fn store(&self, j: usize, (a, b): (usize, usize), near: Words, far: Words) {
        let y = self.y.wrapping_offset(j as isize * self.step[1]);
        // SAFETY: the caller's contract.
        unsafe {
            memory::store(y.add(a).cast(), near, V * size_of::<E>());
            memory::store(y.add(b).cast(), far, V * size_of::<E>());
        }
    }

    /// On to the next chunk.
    #[inline(always)]
    fn advance(&mut self) {
        self.x = self.x.wrapping_offset(CHUNK as isize * self.step[0]);
        self.y = self.y.wrapping_offset(CHUNK as isize * self.step[1]);
        self.head += CHUNK * self.apart;
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
pub(super) unsafe fn pass<E: Packed + RopeElement, const V: usize>(heads: &mut Heads<E, V>, at: usize) {
    while heads.has(0) {
        let mut chunk = [[0; 2]; CHUNK as usize];
        // SAFETY: the caller's contract.
        unsafe {
            unroll!(at most 4: j < CHUNK as usize => {
                if heads.has(j) {
                    chunk[j] = load::<E, V>(heads.x.wrapping_offset(j as isize * heads.step[0]).add(at));
                }
            });
            unroll!(at most 4: j < CHUNK as usize => {
                if heads.has(j) {
                    let mut lanes = lanes::<E, V>(chunk[j]);
                    unroll!(i < V => { lanes[i] *= heads.scale; });
                    let y = heads.y.wrapping_offset(j as isize * heads.step[1]);
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
