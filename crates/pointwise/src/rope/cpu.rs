//! Rotary embedding on the CPU: the kernel's formula, a token at a time.

use std::marker::PhantomData;

use pointwise_core::rope::{
    AXES, AXES_IN_TURN, BATCH_OFFSETS, IDS, INTERLEAVED_IN, INTERLEAVED_OUT, RopeElement, RopeWalk, SEQUENCES, Side,
    WIDE_IDS, axis, rotate, sincos_exact, sincos_hf,
};
use pointwise_core::{DType, bf16, f16, maths};

use super::{Pointers, Source};
use crate::cpu::lanes::{load, store};
use crate::cpu::level::{Loop, at_best};
use crate::cpu::operand::Buffer;
use crate::cpu::parallel::{TASK, tasks};

/// Pairs converted, rotated and stored at a time: loops of their own over buffers in the first-level cache.
const BLOCK: usize = 64;

/// Rotates q and k as `walk` says, for vectors of one element.
///
/// # Safety
/// The tensors have the elements that `walk` reaches; outputs are disjoint from inputs, or the very same with the same
/// pairing on both sides; positions and tables are as `walk` describes them. `dtype` is one of RoPE's.
pub(crate) unsafe fn rope(dtype: DType, source: Source, pointers: &Pointers, walk: &RopeWalk) {
    // SAFETY: the caller's contract.
    unsafe {
        match dtype {
            DType::F16 => tokens::<f16>(source, pointers, walk),
            DType::BF16 => tokens::<bf16>(source, pointers, walk),
            _ => tokens::<f32>(source, pointers, walk),
        }
    }
}

/// # Safety
/// The contract of [`rope`] holds.
unsafe fn tokens<E: RopeElement>(source: Source, pointers: &Pointers, walk: &RopeWalk) {
    let token_elements = (walk.q.heads + walk.k.heads) as usize * (2 * walk.half + walk.rest_lanes) as usize;
    let task = (TASK / token_elements.max(1)).clamp(1, 1 << 16) as u32;
    let run = |start: u32| {
        let end = start.saturating_add(task).min(walk.tokens);
        let of = PhantomData::<E>;
        // SAFETY: the caller's contract; the tokens of two tasks are different ones.
        unsafe { at_best(Tokens { source, pointers, walk, start, end, of }) }
    };
    tasks(walk.tokens.div_ceil(task) as usize, |i| run(i as u32 * task));
}

/// Tokens `start..end`, which exist.
struct Tokens<'a, E> {
    source: Source,
    pointers: &'a Pointers,
    walk: &'a RopeWalk,
    start: u32,
    end: u32,
    of: PhantomData<E>,
}

/// # Safety
/// The contract of [`rope`] holds.
impl<E: RopeElement> Loop for Tokens<'_, E> {
    #[inline(always)]
    unsafe fn run<const LEVEL: u8>(self) {
        let Tokens { source, pointers, walk, start, end, .. } = self;
        // SAFETY: the caller's contract.
        unsafe { range::<E, LEVEL>(source, pointers, walk, start, end) }
    }
}

/// A function, for its references share no memory with what it writes, as far as the compiler knows.
///
/// # Safety
/// The contract of [`rope`] holds; tokens `start..end` exist.
#[inline(always)]
unsafe fn range<E: RopeElement, const LEVEL: u8>(
    source: Source,
    pointers: &Pointers,
    walk: &RopeWalk,
    start: u32,
    end: u32,
) {
    let half = walk.half as usize;
    let (mut cos, mut sin) = (vec![0.0_f32; half], vec![0.0_f32; half]);
    let (mut scaled_cos, mut scaled_sin) = (cos.clone(), sin.clone());
    for token in start..end {
        let (batch, row) = walk.seq.divide(token);
        let (batch, row) = (i64::from(batch), i64::from(row));
        // SAFETY: the caller's contract.
        unsafe {
            if walk.flags & AXES == 0 {
                angles::<E>(source, pointers, walk, [batch, row], token, 0, &mut cos, &mut sin);
            } else {
                for number in 0..3 {
                    let (cos_of, sin_of) = (&mut scaled_cos, &mut scaled_sin);
                    angles::<E>(source, pointers, walk, [batch, row], token, number, cos_of, sin_of);
                    let in_turn = walk.flags & AXES_IN_TURN != 0;
                    for pair in (0..half).filter(|pair| axis(*pair as u32, walk.sections, in_turn) == number) {
                        (cos[pair], sin[pair]) = (cos_of[pair], sin_of[pair]);
                    }
                }
            }
            let tensors = [(&walk.q, pointers.qx, pointers.qy), (&walk.k, pointers.kx, pointers.ky)];
            for (side, x, y) in tensors.into_iter().filter(|(side, ..)| side.heads > 0) {
                for i in 0..half {
                    scaled_cos[i] = cos[i] * side.scale;
                    scaled_sin[i] = sin[i] * side.scale;
                }
                let (x, y) = (x.cast::<E>(), y.cast::<E>());
                heads::<E, LEVEL>(side, walk, (batch, row), x, y, &scaled_cos, &scaled_sin);
            }
        }
    }
}

/// Cosines and sines of a token by its position on an axis, times the factor; of no rotation, where no table has it.
///
/// # Safety
/// The contract of [`rope`] holds.
#[inline(always)]
#[allow(clippy::too_many_arguments)]
unsafe fn angles<E: RopeElement>(
    source: Source,
    pointers: &Pointers,
    walk: &RopeWalk,
    [batch, row]: [i64; 2],
    token: u32,
    axis: u32,
    cos: &mut [f32],
    sin: &mut [f32],
) {
    // SAFETY: the caller's contract.
    let (position, known) = unsafe { position(pointers, walk, [batch, row], token, axis) };
    if !known {
        cos.fill(1.0);
        return sin.fill(0.0);
    }
    // SAFETY: as above.
    unsafe { fill::<E>(source, pointers, walk, (batch, position), cos, sin) };
    cos.iter_mut().for_each(|cos| *cos *= walk.factor);
    sin.iter_mut().for_each(|sin| *sin = *sin * walk.factor * walk.sin_sign);
}

/// The heads of one token.
///
/// # Safety
/// The contract of [`rope`] holds.
#[inline(always)]
unsafe fn heads<E: RopeElement, const LEVEL: u8>(
    side: &Side,
    walk: &RopeWalk,
    (batch, row): (i64, i64),
    x: *const E,
    y: *mut E,
    cos: &[f32],
    sin: &[f32],
) {
    let at =
        |strides: [i64; 3], head: u32| (batch * strides[0] + row * strides[1] + i64::from(head) * strides[2]) as isize;
    // First lane and steps to the partner and to the next pair.
    let pairing = |flag: u32| if walk.flags & flag != 0 { (1, 2) } else { (walk.half as usize, 1) };
    let (from, to) = (pairing(INTERLEAVED_IN), pairing(INTERLEAVED_OUT));
    let rest = walk.rest_lanes as usize;
    for head in 0..side.heads {
        // SAFETY: the caller's contract.
        unsafe {
            let (x, y) = (x.offset(at(side.input, head)), y.offset(at(side.output, head)));
            let (rotated_x, rotated_y) = (x.add(walk.rotated_at as usize), y.add(walk.rotated_at as usize));
            let mut start = 0;
            while start < cos.len() {
                let len = BLOCK.min(cos.len() - start);
                let (mut a, mut b) = (Buffer::<E, BLOCK>::NEW, Buffer::<E, BLOCK>::NEW);
                let (a, b) = (&mut a.0[..len], &mut b.0[..len]);
                let near = rotated_x.add(start * from.1);
                if from.1 == 1 {
                    load::<E, LEVEL>(near, a);
                    load::<E, LEVEL>(near.add(from.0), b);
                } else {
                    for (i, (a, b)) in a.iter_mut().zip(b.iter_mut()).enumerate() {
                        let near = near.add(i * from.1);
                        a.write(near.read().widen());
                        b.write(near.add(from.0).read().widen());
                    }
                }
                let angles = cos[start..start + len].iter().zip(&sin[start..start + len]);
                for ((a, b), (cos, sin)) in a.iter_mut().zip(b.iter_mut()).zip(angles) {
                    let (near, far) = rotate::<E>(E::to_f32(a.assume_init()), E::to_f32(b.assume_init()), *cos, *sin);
                    a.write(E::from_f32(near));
                    b.write(E::from_f32(far));
                }
                let near = rotated_y.add(start * to.1);
                if to.1 == 1 {
                    store::<E, LEVEL>(a, near);
                    store::<E, LEVEL>(b, near.add(to.0));
                } else {
                    for (i, (a, b)) in a.iter().zip(b.iter()).enumerate() {
                        let near = near.add(i * to.1);
                        near.write(E::narrow(a.assume_init()));
                        near.add(to.0).write(E::narrow(b.assume_init()));
                    }
                }
                start += len;
            }
            for lane in walk.rest_at as usize..walk.rest_at as usize + rest {
                let value = E::to_f32(x.add(lane).read().widen()) * side.scale;
                y.add(lane).write(E::narrow(E::from_f32(value)));
            }
        }
    }
}

/// Cosines and sines of one row.
///
/// # Safety
/// The contract of [`rope`] holds; the tables have the row.
#[inline(always)]
unsafe fn fill<E: RopeElement>(
    source: Source,
    pointers: &Pointers,
    walk: &RopeWalk,
    (batch, position): (i64, i64),
    cos: &mut [f32],
    sin: &mut [f32],
) {
    let at = |[batch_stride, row_stride]: [i64; 2]| (batch * batch_stride + position * row_stride) as isize;
    let pairs = cos.iter_mut().zip(sin).enumerate();
    // SAFETY: the caller's contract.
    unsafe {
        match source {
            Source::Hf => {
                let inv_freq = pointers.first.cast::<f32>();
                pairs.for_each(|(i, (cos, sin))| (*sin, *cos) = sincos_hf(position, inv_freq.add(i).read()));
            }
            Source::Exact => {
                let turns = pointers.first.cast::<u64>();
                pairs.for_each(|(i, (cos, sin))| (*sin, *cos) = sincos_exact(position, turns.add(i).read()));
            }
            Source::Angles => {
                let angles = pointers.first.cast::<f32>().offset(at(walk.first));
                pairs.for_each(|(i, (cos, sin))| (*sin, *cos) = maths::sincos_tight(angles.add(i).read()));
            }
            Source::Tables => {
                let cosines = pointers.first.cast::<f32>().offset(at(walk.first));
                let sines = pointers.second.cast::<f32>().offset(at(walk.second));
                pairs.for_each(|(i, (cos, sin))| (*cos, *sin) = (cosines.add(i).read(), sines.add(i).read()));
            }
            Source::OwnTables => {
                let cosines = pointers.first.cast::<E>().offset(at(walk.first));
                let sines = pointers.second.cast::<E>().offset(at(walk.second));
                let read = |p: *const E| E::to_f32(p.read().widen());
                pairs.for_each(|(i, (cos, sin))| (*cos, *sin) = (read(cosines.add(i)), read(sines.add(i))));
            }
        }
    }
}

/// The position of a token on an axis, and whether it has one that the tables know; as in the kernel.
///
/// # Safety
/// The contract of [`rope`] holds.
unsafe fn position(pointers: &Pointers, walk: &RopeWalk, [batch, row]: [i64; 2], token: u32, axis: u32) -> (i64, bool) {
    let read = |list: *const u8, i: i64| {
        // SAFETY: the caller's contract.
        unsafe {
            if walk.flags & WIDE_IDS != 0 {
                list.cast::<i64>().offset(i as isize).read()
            } else {
                i64::from(list.cast::<i32>().offset(i as isize).read())
            }
        }
    };
    let token = i64::from(token);
    let (mut position, mut known) = (walk.offset.wrapping_add(row), true);
    if walk.flags & SEQUENCES != 0 {
        let sequences = i64::from(walk.sequences);
        let (mut low, mut high) = (0, sequences);
        while low + 1 < high {
            let middle = (low + high) / 2;
            if read(pointers.starts, middle) <= token {
                low = middle;
            } else {
                high = middle;
            }
        }
        let start = read(pointers.starts, low);
        known = start <= token && token < read(pointers.starts, sequences);
        let offset = if walk.flags & BATCH_OFFSETS != 0 { read(pointers.ids, low * walk.ids[0]) } else { 0 };
        position = walk.offset.wrapping_add(offset).wrapping_add(token.wrapping_sub(start));
    } else if walk.flags & (IDS | BATCH_OFFSETS) != 0 {
        let given = read(pointers.ids, batch * walk.ids[0] + row * walk.ids[1] + i64::from(axis) * walk.axis);
        let row = if walk.flags & IDS != 0 { 0 } else { row };
        position = walk.offset.wrapping_add(given).wrapping_add(row);
    }
    (position, known && (walk.rows == i64::MAX || (0..walk.rows).contains(&position)))
}
