//! `y[i] = op(a[i], b[i], c[i])` along a run of elements.

use std::mem::MaybeUninit;

use pointwise_core::family::bitwise::{BitwiseAnd, BitwiseXor};
use pointwise_core::map::{self, Map, absent};
use pointwise_core::op::Words;
use pointwise_core::{
    BinaryOp, DType, Element, Logic, OpInfo, ResultType, SignChange, Store, TableOp, TernaryOp, UnaryOp, Word, cast,
    maths, row,
};

#[cfg(target_arch = "x86_64")]
use super::lanes::by_f16c;
use super::lanes::store;
#[cfg(target_arch = "x86_64")]
use super::level;
use super::level::BASELINE;
use super::operand::{BLOCK, Source, buffer, fill, prefetch};

/// `(operands, y, step of y in elements, n, parameters)`: an op in one element type, along a run.
///
/// # Safety
/// Operands and `y` are aligned to their elements, and valid for `n` of them at their steps. Element `i` of an operand
/// shares memory with no element of `y` but `i`.
pub type MapFn = unsafe fn(&[Source; 3], *mut u8, isize, usize, Words);

macro_rules! arities {
    ($($(#[doc = $doc:literal])* $name:ident: $Map:ident, [$($bound:tt)*];)*) => { $(
        $(#[doc = $doc])*
        ///
        /// # Safety
        /// As [`MapFn`].
        pub unsafe fn $name<E, O>(
            operands: &[Source; 3],
            y: *mut u8,
            step: isize,
            n: usize,
            words: Words,
        )
        where
            E: Element,
            O: TableOp + $($bound)*,
        {
            const { _ = row::of_map::<map::$Map<E, O>, O, O>() };
            // SAFETY: the caller's contract.
            unsafe { run::<map::$Map<E, O>>(operands, y, step, n, words) }
        }
    )* };
}

/// The unary op `O` on elements `E`.
///
/// # Safety
/// As [`MapFn`].
pub unsafe fn unary<E, O>(operands: &[Source; 3], y: *mut u8, step: isize, n: usize, words: Words)
where
    E: Element,
    O: TableOp + UnaryOp<E::Compute, Output: Store<E>>,
{
    const { _ = row::of_map::<map::Unary<E, O>, O, O>() };
    // What concerns the sign of 16 bits alone needs no conversion.
    let bits = |word: u64| [operands[0], Source { word: Some(word), ..operands[0] }, operands[2]];
    // SAFETY: the caller's contract; 16-bit floats are as large and aligned as integers, and the op gives such again.
    unsafe {
        match const { sign_change(&O::INFO, E::DTYPE) } {
            Some(SignChange::Clear) => {
                run::<map::Binary<i16, BitwiseAnd>>(&bits(0x7fff), y, step, n, words);
            }
            Some(SignChange::Flip) => {
                run::<map::Binary<i16, BitwiseXor>>(&bits(0x8000), y, step, n, words);
            }
            None => run::<map::Unary<E, O>>(operands, y, step, n, words),
        }
    }
}

/// Whether an op on 16-bit floats changes nothing but the sign.
const fn sign_change(info: &OpInfo, dtype: DType) -> Option<SignChange> {
    match (dtype, info.result) {
        (DType::F16 | DType::BF16, ResultType::Same) => info.properties.sign,
        _ => None,
    }
}

arities! {
    /// The binary op `O` on elements `E`.
    binary: Binary, [BinaryOp<E::Compute, Output: Store<E>>];
    /// The ternary op `O` on elements `E`.
    ternary: Ternary, [TernaryOp<E::Compute, Output: Store<E>>];
    /// The op `O` on a condition and elements `E`.
    select: Select, [TernaryOp<E::Compute, Logic, Output: Store<E>>];
}

/// The conversion of elements `A` to elements `B`.
///
/// # Safety
/// As [`MapFn`].
pub(crate) unsafe fn convert<A, B>(operands: &[Source; 3], y: *mut u8, step: isize, n: usize, words: Words)
where
    A: Element<Compute: cast::Source>,
    B: Element<Compute: cast::Target>,
{
    // SAFETY: the caller's contract.
    unsafe { run::<cast::Convert<A, B>>(operands, y, step, n, words) }
}

/// # Safety
/// As [`MapFn`].
unsafe fn run<M: Map>(operands: &[Source; 3], y: *mut u8, step: isize, n: usize, words: Words) {
    #[cfg(target_arch = "x86_64")]
    match level::level() {
        // SAFETY: the processor has the level; the caller's contract.
        level::AVX512 => return unsafe { run_avx512::<M>(operands, y, step, n, words) },
        // SAFETY: as above.
        level::AVX2 => return unsafe { run_avx2::<M>(operands, y, step, n, words) },
        _ => {}
    }
    // SAFETY: the caller's contract.
    unsafe { blocks::<M, BASELINE>(operands, y, step, n, words) }
}

/// # Safety
/// As [`MapFn`]; the processor has the features.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,f16c")]
unsafe fn run_avx2<M: Map>(operands: &[Source; 3], y: *mut u8, step: isize, n: usize, words: Words) {
    // SAFETY: the caller's contract.
    unsafe { blocks::<M, { level::AVX2 }>(operands, y, step, n, words) }
}

/// # Safety
/// As [`MapFn`]; the processor has the features.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,f16c,avx512f,avx512bw,avx512dq,avx512vl")]
unsafe fn run_avx512<M: Map>(operands: &[Source; 3], y: *mut u8, step: isize, n: usize, words: Words) {
    // SAFETY: the caller's contract.
    unsafe {
        if const { goes_directly::<M>() } {
            if M::OPERANDS == 2 && operands[1].is_uniform() && lie_apart::<M>(operands, 1, y, step, n) {
                return direct::<M, true>(operands, y, n, words);
            }
            if lie_apart::<M>(operands, M::OPERANDS, y, step, n) {
                return direct::<M, false>(operands, y, n, words);
            }
        }
        blocks::<M, { level::AVX512 }>(operands, y, step, n, words);
    }
}

/// Whether [`direct`] is worth its code: not where the result is rounded to a narrower float or f16 is read, which
/// loops of their own do faster, and not where the loop looks at its operands.
#[cfg(target_arch = "x86_64")]
const fn goes_directly<M: Map>() -> bool {
    let f16 = by_f16c::<M::A>(level::AVX512) || by_f16c::<M::B>(level::AVX512);
    let rounds = M::R::DTYPE.is_float() && M::R::DTYPE.size() < 4;
    !f16 && !rounds && M::ANGLE.is_none()
}

/// Whether the first `count` operands and the result are contiguous, and the result shares no memory with them.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn lie_apart<M: Map>(operands: &[Source; 3], count: usize, y: *mut u8, step: isize, n: usize) -> bool {
    let sizes = [size_of::<M::A>(), size_of::<M::B>(), size_of::<M::C>()];
    let (y, end) = (y.addr(), y.addr() + n * size_of::<M::R>());
    let apart = |(source, size): (&Source, usize)| {
        let x = source.pointer.addr();
        source.word.is_none() && source.step == 1 && (x + n * size <= y || end <= x)
    };
    step == 1 && operands.iter().zip(sizes).take(count).all(apart)
}

/// `y[i] = op(a[i], ..)` in one loop; the second operand may be uniform.
///
/// # Safety
/// As [`MapFn`]; the other operands and the result [`lie_apart`].
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn direct<M: Map, const UNIFORM: bool>(operands: &[Source; 3], y: *mut u8, n: usize, words: Words) {
    let map = M::from_words(words);
    let mut second = [MaybeUninit::new(absent::<M::B>())];
    if UNIFORM && n > 0 {
        // SAFETY: the caller's contract.
        unsafe { operands[1].spread::<M::B>(&mut second) };
    }
    let [a, b, c] = operands.each_ref().map(|source| source.pointer);
    let (a, b, c, y) = (a.cast::<M::A>(), b.cast::<M::B>(), c.cast::<M::C>(), y.cast::<M::R>());
    for i in 0..n {
        // SAFETY: the caller's contract; `second` was written when it was made.
        unsafe {
            let a = a.add(i).read().widen();
            let b = if M::OPERANDS > 1 && !UNIFORM { b.add(i).read().widen() } else { second[0].assume_init() };
            let c = if M::OPERANDS > 2 { c.add(i).read().widen() } else { absent::<M::C>() };
            y.add(i).write(M::R::narrow(map.map(a, b, c)));
        }
    }
}

/// How many blocks ahead the cache is to fetch operands and results.
const AHEAD: usize = 2;

/// # Safety
/// As [`MapFn`]; the processor has `LEVEL`.
#[inline(always)]
unsafe fn blocks<M: Map, const LEVEL: u8>(operands: &[Source; 3], y: *mut u8, step: isize, n: usize, words: Words) {
    let map = M::from_words(words);
    let y = y.cast::<M::R>();
    let [a, b, c] = operands;
    let (mut av, mut bv, mut cv, mut results) =
        (buffer::<M::A>(), buffer::<M::B>(), buffer::<M::C>(), buffer::<M::R>());
    let first = BLOCK.min(n);
    // SAFETY: the caller's contract.
    unsafe {
        a.spread::<M::A>(&mut av[..first]);
        if M::OPERANDS > 1 {
            b.spread::<M::B>(&mut bv[..first]);
        }
        if M::OPERANDS > 2 {
            c.spread::<M::C>(&mut cv[..first]);
        }
    }
    let mut start = 0;
    while start < n {
        let len = BLOCK.min(n - start);
        let ahead = start + AHEAD * BLOCK;
        if ahead < n {
            if a.step == 1 {
                prefetch(a.pointer.cast::<M::A>(), ahead);
            }
            if M::OPERANDS > 1 && b.step == 1 {
                prefetch(b.pointer.cast::<M::B>(), ahead);
            }
            if M::OPERANDS > 2 && c.step == 1 {
                prefetch(c.pointer.cast::<M::C>(), ahead);
            }
            if step == 1 {
                prefetch(y.cast_const(), ahead);
            }
        }
        // Loads, maths and stores are loops of their own: an operand may be y, and a loop that reads and writes it at
        // once would not be vectorised.
        // SAFETY: start + len <= n; the caller's contract. Every value read was written before.
        unsafe {
            fill::<M::A, LEVEL>(a, start, &mut av[..len]);
            if M::OPERANDS > 1 {
                fill::<M::B, LEVEL>(b, start, &mut bv[..len]);
            }
            if M::OPERANDS > 2 {
                fill::<M::C, LEVEL>(c, start, &mut cv[..len]);
            }
            let values = |i: usize| {
                let b = if M::OPERANDS > 1 { bv[i].assume_init() } else { absent::<M::B>() };
                let c = if M::OPERANDS > 2 { cv[i].assume_init() } else { absent::<M::C>() };
                (av[i].assume_init(), b, c)
            };
            let angle_of = |i: usize| {
                let (a, b, c) = values(i);
                angle::<M>(a, b, c)
            };
            if const { M::ANGLE.is_some() } && are_small(angle_of, len) {
                for (i, result) in results[..len].iter_mut().enumerate() {
                    let (a, b, c) = values(i);
                    maths::assume_small_angle(angle::<M>(a, b, c));
                    result.write(map.map(a, b, c));
                }
            } else {
                for (i, result) in results[..len].iter_mut().enumerate() {
                    let (a, b, c) = values(i);
                    result.write(map.map(a, b, c));
                }
            }
            if step == 1 {
                store::<M::R, LEVEL>(&results[..len], y.add(start));
            } else {
                let y = y.offset(start as isize * step);
                for (i, result) in results[..len].iter().enumerate() {
                    y.offset(i as isize * step).write(M::R::narrow(result.assume_init()));
                }
            }
        }
        start += len;
    }
}

/// The value of an operand.
type Compute<E> = <E as Element>::Compute;

/// The operand that [`Map::ANGLE`] names, which is of a float type.
#[inline(always)]
fn angle<M: Map>(a: Compute<M::A>, b: Compute<M::B>, c: Compute<M::C>) -> f32 {
    let word = match M::ANGLE {
        Some(1) => b.to_word(),
        Some(2) => c.to_word(),
        _ => a.to_word(),
    };
    f32::from_bits(word as u32)
}

/// Whether none of some angles is large, infinite or NaN: sine and cosine then need no long reduction, which vector
/// code would otherwise work out for all of them.
#[inline(always)]
fn are_small(angle: impl Fn(usize) -> f32, len: usize) -> bool {
    // Magnitudes are ordered as their bits are.
    let largest = (0..len).fold(0, |largest, i| largest.max(angle(i).abs().to_bits()));
    largest <= maths::SMALL_ANGLE.to_bits()
}
