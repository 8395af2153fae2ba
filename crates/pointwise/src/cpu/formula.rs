//! `y0[i], .. = op(x0[i], ..)` for any number of operands and results: along a run of elements, and over all runs of a
//! walk.

use std::marker::PhantomData;
#[cfg(target_arch = "x86_64")]
use std::mem::MaybeUninit;
use std::num::Wrapping;

use pointwise_core::element::Bool;
use pointwise_core::formula::{Formula, OpData, ParamWords};
use pointwise_core::philox::MAX_RANDOM_WORDS;
use pointwise_core::{At, DType, Draw, Element, Logic, OpInfo, SignChange, Value, Word, maths};

use super::draw::{drawn, indices};
#[cfg(target_arch = "x86_64")]
use super::lanes::by_f16c;
#[cfg(target_arch = "x86_64")]
use super::level::AVX512;
use super::level::{Loop, at, at_best};
#[cfg(target_arch = "x86_64")]
use super::operand::Repeat;
use super::operand::{BLOCK, Buffer, Fill, Source, Store, Target, prefetch};
use super::parallel::split;
use super::runs::runs;
use super::stored::{FillStored, StoreStored};
use crate::kernel::Walk;

/// `(operands, results, n, parameters, what the first element draws from)`: a formula in one element type, along a run.
///
/// # Safety
/// There are as many operands and results as the formula has, of its types: aligned, and valid for `n` elements at their
/// steps. Element `i` of an operand shares memory with no element of a result but `i`; results share none with each
/// other.
pub type FormulaFn = unsafe fn(&[Source], &[Target], usize, &ParamWords, &Draw);

/// The formula `O` on elements `E`, with results `F`.
///
/// # Safety
/// The contract of [`FormulaFn`] holds.
pub unsafe fn formula<E, F, O, const N: usize, const R: usize>(
    operands: &[Source],
    results: &[Target],
    n: usize,
    words: &ParamWords,
    draw: &Draw,
) where
    E: Element,
    F: Element,
    O: OpData + Formula<E::Compute, N, R, F::Compute>,
{
    let of = PhantomData::<(E, F, O)>;
    // SAFETY: the caller's contract.
    unsafe { at_best(Run::<E, F, O, N, R> { operands, results, n, words, draw, of }) }
}

/// Runs the op `O` on elements `E`: as a bit operation if it only changes signs, else by its formula.
///
/// # Safety
/// The contract of [`FormulaFn`] holds.
pub unsafe fn op<E, O, const N: usize, const R: usize>(
    operands: &[Source],
    results: &[Target],
    n: usize,
    words: &ParamWords,
    draw: &Draw,
) where
    E: Element,
    O: OpData + Formula<E::Compute, N, R>,
{
    // An op that only changes the sign of 16 bits needs no conversion.
    let change = const { sign_change(&O::INFO, E::DTYPE) };
    let (Some(change), [x]) = (change, operands) else {
        // SAFETY: the caller's contract.
        return unsafe { formula::<E, E, O, N, R>(operands, results, n, words, draw) };
    };
    let bits = |word: u64| [*x, Source { word: Some(word), ..*x }];
    // SAFETY: the caller's contract; 16-bit floats are as large and aligned as integers, and the op gives such again.
    unsafe {
        match change {
            SignChange::Clear => {
                formula::<i16, i16, OnBits<false>, 2, 1>(&bits(0x7fff), results, n, words, draw);
            }
            SignChange::Flip => {
                formula::<i16, i16, OnBits<true>, 2, 1>(&bits(0x8000), results, n, words, draw);
            }
        }
    }
}

/// `x & bits`, or `x ^ bits`.
#[derive(Clone, Copy)]
struct OnBits<const FLIPS: bool>;

impl<const FLIPS: bool> OpData for OnBits<FLIPS> {
    const INFO: OpInfo = OpInfo { operands: &["x", "bits"], ..OpInfo::FORMULA };
    fn from_words(_: &ParamWords) -> Self {
        OnBits
    }
}

impl<const FLIPS: bool> Formula<Wrapping<i16>, 2, 1> for OnBits<FLIPS> {
    #[inline(always)]
    fn apply(self, [x, bits]: [Wrapping<i16>; 2], _: [bool; 2], _: At<'_>) -> ([Wrapping<i16>; 1], [bool; 1]) {
        ([if FLIPS { x ^ bits } else { x & bits }], [false])
    }
}

/// Returns the change, if an op on 16-bit floats changes nothing but the sign.
const fn sign_change(info: &OpInfo, dtype: DType) -> Option<SignChange> {
    match dtype {
        DType::F16 | DType::BF16 if info.bool_results() == 0 => info.properties.sign,
        _ => None,
    }
}

/// A formula along a run.
struct Run<'a, E, F, O, const N: usize, const R: usize> {
    operands: &'a [Source],
    results: &'a [Target],
    n: usize,
    words: &'a ParamWords,
    draw: &'a Draw,
    of: PhantomData<(E, F, O)>,
}

/// # Safety
/// The contract of [`FormulaFn`] holds.
impl<E, F, O, const N: usize, const R: usize> Loop for Run<'_, E, F, O, N, R>
where
    E: Element,
    F: Element,
    O: OpData + Formula<E::Compute, N, R, F::Compute>,
{
    #[inline(always)]
    unsafe fn run<const LEVEL: u8>(self) {
        let Run { operands, results, n, words, draw, .. } = self;
        // SAFETY: the caller's contract.
        unsafe {
            #[cfg(target_arch = "x86_64")]
            if const { LEVEL == AVX512 && goes_directly::<E, F, O>() }
                && let (Some(operands), [y, ..]) = (operands.first_chunk::<N>(), results)
                && let Some(places) = places::<E, F, O, N>(operands, y, n)
            {
                return match places.first() {
                    Some(Place::Result) if const { may_be_result::<O>() } => {
                        direct::<E, F, O, N, R, LEVEL, true>(operands, &places, y.pointer, n, words)
                    }
                    _ => direct::<E, F, O, N, R, LEVEL, false>(operands, &places, y.pointer, n, words),
                };
            }
            blocks::<E, F, O, N, R, LEVEL>(operands, results, n, words, draw);
        }
    }
}

/// True if [`direct`] is worth its code: not where the result is rounded to a narrower float or f16 is read, which
/// loops of their own do faster, not where the loop looks at its operands, and not for many tensors.
#[cfg(target_arch = "x86_64")]
const fn goes_directly<E: Element, F: Element, O: OpData>() -> bool {
    let info = &O::INFO;
    let rounds = info.bool_results() == 0 && F::DTYPE.is_float() && F::DTYPE.size() < 4;
    let is_small = info.results.len() == 1 && info.operands.len() <= 3 && !info.has_place() && !info.has_stored();
    is_small && !by_f16c::<E>(AVX512) && !rounds && angle::<E, O>().is_none()
}

/// The place of an operand of a [`direct`] loop.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// One element after another, in memory that the result has no part of.
    Apart,
    /// It is the result.
    Result,
    /// One element, which is the same for all.
    Uniform,
}

/// Returns where the operands of a [`direct`] loop lie: the result is contiguous, and the first operand alone may be it.
/// `None` if there is no such loop.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn places<E: Element, F: Element, O: OpData, const N: usize>(
    operands: &[Source; N],
    result: &Target,
    n: usize,
) -> Option<[Place; N]> {
    let of_result = if O::INFO.bool_results() == 1 { 1 } else { size_of::<F>() };
    let y = result.pointer.addr();
    let end = y + n * of_result;
    let mut places = [Place::Apart; N];
    let mut k = 0;
    while k < N {
        let (source, is_bool) = (&operands[k], is_bool(const { O::INFO.bool_operands() }, k));
        let size = if is_bool { 1 } else { size_of::<E>() };
        let x = source.pointer.addr();
        places[k] = match source.word {
            Some(_) if is_bool || source.has_elements::<E>() => Place::Uniform,
            Some(_) => return None,
            None if source.step == 0 => Place::Uniform,
            None if source.step != 1 => return None,
            None if x + n * size <= y || end <= x => Place::Apart,
            None if const { may_be_result::<O>() } && k == 0 && x == y && size == of_result => Place::Result,
            None => return None,
        };
        k += 1;
    }
    (result.step == 1).then_some(places)
}

/// True if a [`direct`] loop whose first operand is the result is worth its code: not for a gradient, and not for three
/// operands.
#[cfg(target_arch = "x86_64")]
const fn may_be_result<O: OpData>() -> bool {
    O::INFO.operands.len() <= 2 && !O::INFO.is_gradient()
}

/// Elements of a uniform operand: bools, or of type `E`.
#[cfg(target_arch = "x86_64")]
#[repr(align(64))]
struct Elements<E>([MaybeUninit<E>; BLOCK]);

/// The one result in one loop, where no operand is uniform, or in blocks. With `OVER` the first operand is the result.
///
/// # Safety
/// The contract of [`FormulaFn`] holds; [`places`] are those of the operands, the first being `Place::Result` with `OVER`
/// and no other one ever; the processor has `LEVEL`.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn direct<E, F, O, const N: usize, const R: usize, const LEVEL: u8, const OVER: bool>(
    operands: &[Source; N],
    places: &[Place; N],
    y: *mut u8,
    n: usize,
    words: &ParamWords,
) where
    E: Element,
    F: Element,
    O: OpData + Formula<E::Compute, N, R, F::Compute>,
{
    let op = O::from_words(words);
    let mut elements = [const { Elements::<E>([const { MaybeUninit::uninit() }; BLOCK]) }; N];
    // Copies: what is written might be the operands' own list, for all that the compiler knows.
    let (mut pointers, mut steps) = ([std::ptr::null(); N], [0; N]);
    let mut block = n;
    let mut k = 0;
    while k < N {
        let (source, is_bool) = (operands[k], is_bool(const { O::INFO.bool_operands() }, k));
        if places[k] == Place::Uniform {
            block = BLOCK.min(n);
            let to = elements[k].0.as_mut_ptr();
            // SAFETY: the caller's contract; a block of elements, none of which is smaller than a bool.
            unsafe {
                if is_bool {
                    at::<LEVEL, _>(Repeat::<Bool> { source, to: to.cast(), n: block });
                } else {
                    at::<LEVEL, _>(Repeat::<E> { source, to: to.cast(), n: block });
                }
            }
            pointers[k] = to.cast_const().cast();
        } else {
            (pointers[k], steps[k]) = (source.pointer, if is_bool { 1 } else { size_of::<E>() });
        }
        k += 1;
    }
    let step = if const { O::INFO.bool_results() == 1 } { 1 } else { size_of::<F>() };
    let mut start = 0;
    while start < n {
        let len = block.min(n - start);
        let pointers = std::array::from_fn(|k| pointers[k].wrapping_add(start * steps[k]));
        // SAFETY: the caller's contract; a uniform operand has a block of elements.
        unsafe { stretch::<E, F, O, N, R, OVER>(&op, pointers, y.add(start * step), len) };
        start += len;
    }
}

/// `n` elements of the one result.
///
/// # Safety
/// The pointers are aligned and valid for as many elements; no operand but the first with `OVER`, which is the result,
/// shares memory with it.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn stretch<E, F, O, const N: usize, const R: usize, const OVER: bool>(
    op: &O,
    pointers: [*const u8; N],
    y: *mut u8,
    n: usize,
) where
    E: Element,
    F: Element,
    O: OpData + Formula<E::Compute, N, R, F::Compute>,
{
    let bools = const { O::INFO.bool_operands() };
    // By one pointer the compiler sees that an element is read before it is written, and no other one is.
    let pointer = |k: usize| if OVER && k == 0 { y.cast_const() } else { pointers[k] };
    let mut i = 0;
    while i < n {
        // SAFETY: the caller's contract.
        unsafe {
            let values = std::array::from_fn(|k| match is_bool(bools, k) {
                true => E::Compute::ZERO,
                false => pointer(k).cast::<E>().add(i).read().widen(),
            });
            let truths = std::array::from_fn(|k| match is_bool(bools, k) {
                true => pointer(k).cast::<Bool>().add(i).read().widen().0,
                false => false,
            });
            let (of_type, of_bool) = op.apply(values, truths, 0.into());
            if const { O::INFO.bool_results() } == 1 {
                y.cast::<Bool>().add(i).write(Bool::narrow(Logic(of_bool[0])));
            } else {
                y.cast::<F>().add(i).write(F::narrow(of_type[0]));
            }
        }
        i += 1;
    }
}

/// True if operand or result `k` is a bool, by the bits of [`pointwise_core::OpInfo`].
const fn is_bool(bits: u16, k: usize) -> bool {
    bits >> k & 1 == 1
}

/// Returns the operand whose sine or cosine the formula takes, if that is a float.
const fn angle<E: Element, O: OpData>() -> Option<usize> {
    if E::DTYPE.is_float() && O::INFO.properties.angle { O::INFO.operands.len().checked_sub(1) } else { None }
}

/// The number in a float's compute type.
#[inline(always)]
fn number<T: Word>(x: T) -> f32 {
    f32::from_bits(x.to_word() as u32)
}

/// True if no angle is large, infinite or NaN. Sine and cosine then need no long reduction, which vector code would
/// otherwise compute for all angles.
#[inline(always)]
fn are_small(angle: impl Fn(usize) -> f32, len: usize) -> bool {
    // Magnitudes are ordered as their bits are.
    let largest = (0..len).fold(0, |largest, i| largest.max(angle(i).abs().to_bits()));
    largest <= maths::SMALL_ANGLE.to_bits()
}

/// The cache fetches the block that is so many ahead.
const AHEAD: usize = 2;
/// The most tensors of an op that the cache fetches ahead.
const FETCHED: usize = 4;

/// Computes block by block. Loads, maths and stores are loops of their own: an operand may be a result, and a loop that
/// reads and writes it at once would not be vectorised.
///
/// # Safety
/// The contract of [`FormulaFn`] holds; the processor has `LEVEL`.
#[inline(always)]
unsafe fn blocks<E, F, O, const N: usize, const R: usize, const LEVEL: u8>(
    operands: &[Source],
    results: &[Target],
    n: usize,
    words: &ParamWords,
    draw: &Draw,
) where
    E: Element,
    F: Element,
    O: OpData + Formula<E::Compute, N, R, F::Compute>,
{
    let op = O::from_words(words);
    let (Some(operands), Some(results)) = (operands.first_chunk::<N>(), results.first_chunk::<R>()) else { return };
    let mut values: [Buffer<E>; N] = [const { Buffer::NEW }; N];
    let mut truths: [Buffer<Bool>; N] = [const { Buffer::NEW }; N];
    let mut of_type: [Buffer<F>; R] = [const { Buffer::NEW }; R];
    let mut of_bool: [Buffer<Bool>; R] = [const { Buffer::NEW }; R];
    // SAFETY: the caller's contract.
    unsafe { spread::<E, O, N, LEVEL>(operands, BLOCK.min(n), &mut values, &mut truths) };
    let mut start = 0;
    while start < n {
        let len = BLOCK.min(n - start);
        let ahead = start + AHEAD * BLOCK;
        if N + R <= FETCHED && ahead < n {
            fetch::<E, F, O, N, R>(operands, results, ahead);
        }
        // SAFETY: start + len <= n; the caller's contract. Every value read was written before.
        unsafe {
            load::<E, O, N, LEVEL>(operands, start, &mut values, &mut truths, len);
            let draw = Draw { first: draw.first + start as u64, ..*draw };
            compute::<E, F, O, N, R>(&op, (&values, &truths), (&mut of_type, &mut of_bool), len, &draw);
            store::<F, O, R, LEVEL>(results, start, &of_type, &of_bool, len);
        }
        start += len;
    }
}

// Loops that an iterator would drive take the compiler twice as long: there are thousands of these functions.

/// Fills the buffers of uniform operands.
///
/// # Safety
/// The contract of [`FormulaFn`] holds.
#[inline(always)]
unsafe fn spread<E: Element, O: OpData, const N: usize, const LEVEL: u8>(
    operands: &[Source; N],
    len: usize,
    values: &mut [Buffer<E>; N],
    truths: &mut [Buffer<Bool>; N],
) {
    let mut k = 0;
    while k < N {
        if operands[k].is_uniform() {
            // SAFETY: the caller's contract.
            unsafe {
                if let Some(dtype) = const { O::INFO }.stored_operand(k) {
                    at::<LEVEL, _>(FillStored::<E> {
                        dtype,
                        source: operands[k],
                        start: 0,
                        values: &mut values[k].0[..len],
                    });
                } else if is_bool(const { O::INFO.bool_operands() }, k) {
                    operands[k].spread::<Bool>(&mut truths[k].0[..len]);
                } else {
                    operands[k].spread::<E>(&mut values[k].0[..len]);
                }
            }
        }
        k += 1;
    }
}

/// Has the cache fetch the elements from `ahead` on, of all contiguous tensors.
#[inline(always)]
fn fetch<E: Element, F: Element, O: OpData, const N: usize, const R: usize>(
    operands: &[Source; N],
    results: &[Target; R],
    ahead: usize,
) {
    let mut k = 0;
    while k < N + R {
        let (first, step, size) = if k < N {
            let size = const { O::INFO }.operand_size(k, size_of::<E>());
            (operands[k].pointer, operands[k].step, size)
        } else {
            let size = const { O::INFO }.result_size(k - N, size_of::<F>());
            (results[k - N].pointer.cast_const(), results[k - N].step, size)
        };
        if step == 1 {
            prefetch(first.wrapping_add(ahead * size), size);
        }
        k += 1;
    }
}

/// Loads `len` elements from `start` on, of all operands that are not uniform.
///
/// # Safety
/// The contract of [`FormulaFn`] holds for `start + len` elements; the processor has `LEVEL`.
#[inline(always)]
unsafe fn load<E: Element, O: OpData, const N: usize, const LEVEL: u8>(
    operands: &[Source; N],
    start: usize,
    values: &mut [Buffer<E>; N],
    truths: &mut [Buffer<Bool>; N],
    len: usize,
) {
    let mut k = 0;
    while k < N {
        let source = operands[k];
        if !source.is_uniform() {
            // SAFETY: the caller's contract.
            unsafe {
                if let Some(dtype) = const { O::INFO }.stored_operand(k) {
                    at::<LEVEL, _>(FillStored::<E> { dtype, source, start, values: &mut values[k].0[..len] });
                } else if is_bool(const { O::INFO.bool_operands() }, k) {
                    at::<LEVEL, _>(Fill::<Bool> { source, start, values: &mut truths[k].0[..len] });
                } else {
                    at::<LEVEL, _>(Fill::<E> { source, start, values: &mut values[k].0[..len] });
                }
            }
        }
        k += 1;
    }
}

/// Computes `len` elements in buffers.
///
/// # Safety
/// The buffers of all operands have so many elements.
#[inline(always)]
unsafe fn compute<E, F, O, const N: usize, const R: usize>(
    op: &O,
    (values, truths): (&[Buffer<E>; N], &[Buffer<Bool>; N]),
    (of_type, of_bool): (&mut [Buffer<F>; R], &mut [Buffer<Bool>; R]),
    len: usize,
    draw: &Draw,
) where
    E: Element,
    F: Element,
    O: OpData + Formula<E::Compute, N, R, F::Compute>,
{
    let of = |i: usize| -> ([E::Compute; N], [bool; N]) {
        let (mut lanes, mut bools) = ([E::Compute::ZERO; N], [false; N]);
        let mut k = 0;
        while k < N {
            // SAFETY: the caller's contract.
            unsafe {
                if is_bool(const { O::INFO.bool_operands() }, k) {
                    bools[k] = truths[k].0[i].assume_init().0;
                } else {
                    lanes[k] = values[k].0[i].assume_init();
                }
            }
            k += 1;
        }
        (lanes, bools)
    };
    let mut put = |i: usize, (y, answers): ([F::Compute; R], [bool; R])| {
        let mut k = 0;
        while k < R {
            if is_bool(const { O::INFO.bool_results() }, k) {
                of_bool[k].0[i].write(Logic(answers[k]));
            } else {
                of_type[k].0[i].write(y[k]);
            }
            k += 1;
        }
    };
    let mut i = 0;
    if const { O::INFO.has_place() } {
        let index = indices(draw, len, const { O::INFO.indices > 0 });
        let index = |i: usize| index.map(|of_all| of_all[i]);
        let mut words = [[0; BLOCK]; MAX_RANDOM_WORDS];
        if const { O::INFO.is_random() } {
            // The first evaluation only asks for words: its results go nowhere.
            words = drawn(const { O::INFO.random }, draw, len, |i, words| {
                let (values, truths) = of(i);
                _ = op.apply(values, truths, At { words, index: index(i) });
            });
        }
        while i < len {
            let (values, truths) = of(i);
            put(i, op.apply(values, truths, At::new(words.map(|of_all| of_all[i]), index(i))));
            i += 1;
        }
    } else if let Some(angle) = const { angle::<E, O>() }
        // SAFETY: the caller's contract.
        && are_small(|i| number(unsafe { values[angle].0[i].assume_init() }), len)
    {
        while i < len {
            let (values, truths) = of(i);
            // SAFETY: no angle of the block is large.
            unsafe { maths::assume_small_angle(number(values[angle])) };
            put(i, op.apply(values, truths, 0.into()));
            i += 1;
        }
    } else {
        while i < len {
            let (values, truths) = of(i);
            put(i, op.apply(values, truths, 0.into()));
            i += 1;
        }
    }
}

/// Stores `len` elements from `start` on, of all results.
///
/// # Safety
/// The contract of [`FormulaFn`] holds for `start + len` elements, which the buffers have; the processor has `LEVEL`.
#[inline(always)]
unsafe fn store<F: Element, O: OpData, const R: usize, const LEVEL: u8>(
    results: &[Target; R],
    start: usize,
    of_type: &[Buffer<F>; R],
    of_bool: &[Buffer<Bool>; R],
    len: usize,
) {
    let mut k = 0;
    while k < R {
        let target = results[k];
        // SAFETY: the caller's contract.
        unsafe {
            if let Some(dtype) = const { O::INFO }.stored_result(k) {
                at::<LEVEL, _>(StoreStored::<F> { dtype, target, start, values: &of_type[k].0[..len] });
            } else if is_bool(const { O::INFO.bool_results() }, k) {
                at::<LEVEL, _>(Store::<Bool> { target, start, values: &of_bool[k].0[..len] });
            } else {
                at::<LEVEL, _>(Store::<F> { target, start, values: &of_type[k].0[..len] });
            }
        }
        k += 1;
    }
}

/// A call on the CPU.
pub(crate) struct FormulaRun<'a, const T: usize> {
    /// The formula.
    pub(crate) op: FormulaFn,
    /// The loop: over the results, then the operands, then nothing.
    pub(crate) walk: &'a Walk<T>,
    /// First elements of the operands.
    pub(crate) operands: &'a [*const u8],
    /// Operands that came with the call.
    pub(crate) given: &'a [Option<u64>],
    /// First elements of the results.
    pub(crate) results: &'a [*mut u8],
    /// The element type of each tensor.
    pub(crate) dtypes: [DType; T],
    /// Parameters.
    pub(crate) words: &'a ParamWords,
    /// The place of the first element, for an op that knows its elements' places. Its results are contiguous, so that the walk goes
    /// in the order of the elements.
    pub(crate) draw: Draw,
}

// SAFETY: the pointers are of memory that is borrowed for the call, of which each thread writes its own part.
unsafe impl<const T: usize> Sync for FormulaRun<'_, T> {}

impl<const T: usize> FormulaRun<'_, T> {
    /// Runs the formula over the whole walk, in parallel.
    ///
    /// # Safety
    /// Every place of the walk is valid in its tensor, as [`FormulaFn`] asks.
    pub(crate) unsafe fn run(&self) {
        let this = self;
        let count = this.results.len();
        split(this.walk.numel() as usize, |start, len| {
            let mut draw = Draw { first: start as u64, ..this.draw };
            // A run differs from another by the pointers alone.
            let (_, step) = this.walk.inner();
            let none = Source { pointer: std::ptr::null(), step: 0, word: None };
            let (mut sources, mut targets) = ([none; T], [Target { pointer: std::ptr::null_mut(), step: 0 }; T]);
            for (k, word) in this.given.iter().enumerate() {
                (sources[k].step, sources[k].word) = (step[count + k] as isize, *word);
            }
            for (target, step) in targets.iter_mut().zip(&step[..count]) {
                target.step = *step as isize;
            }
            runs(this.walk, start, len, |first, _, n| {
                let bytes = |k: usize| this.dtypes[k].offset(first[k]) as isize;
                for (k, operand) in this.operands.iter().enumerate() {
                    sources[k].pointer = operand.wrapping_offset(bytes(count + k));
                }
                for (k, result) in this.results.iter().enumerate() {
                    targets[k].pointer = result.wrapping_offset(bytes(k));
                }
                let (sources, targets) = (&sources[..this.operands.len()], &targets[..count]);
                // SAFETY: the caller's contract; parts are disjoint in every result.
                unsafe { (this.op)(sources, targets, n, this.words, &draw) };
                draw.first += n as u64;
            });
        });
    }
}
