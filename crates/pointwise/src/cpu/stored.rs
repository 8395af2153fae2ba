//! Elements of a fixed type that is not the op's: converted to the compute type when they are read, and from it when they
//! are written, by the rules of [`pointwise_core::cast`].

use std::mem::MaybeUninit;

use pointwise_core::cast::{Source as From, Target as To};
use pointwise_core::{DType, Element, Word};

use super::level::Loop;
use super::operand::{BLOCK, Buffer, Fill, Source, Store, Target};
use crate::element::with_element;

/// Elements `start ..` of an operand of type `dtype`, at most a block of them, as values of the compute type of `E`, a type
/// of floats.
pub(super) struct FillStored<'a, E: Element> {
    pub(super) dtype: DType,
    pub(super) source: Source,
    pub(super) start: usize,
    pub(super) values: &'a mut [MaybeUninit<E::Compute>],
}

/// # Safety
/// The elements are valid for reading, and aligned; of a uniform operand there is one.
impl<E: Element> Loop for FillStored<'_, E> {
    #[inline(always)]
    unsafe fn run<const LEVEL: u8>(self) {
        let FillStored { dtype, source, start, values } = self;
        if let Some(word) = source.word {
            values.fill(MaybeUninit::new(E::Compute::from_word(word)));
            return;
        }
        // SAFETY: the caller's contract.
        with_element!(dtype, S => unsafe { fill::<S, E, LEVEL>(source, start, values) });
    }
}

/// # Safety
/// The conditions of [`FillStored`].
#[inline(always)]
unsafe fn fill<S: Element<Compute: From>, E: Element, const LEVEL: u8>(
    source: Source,
    start: usize,
    values: &mut [MaybeUninit<E::Compute>],
) {
    let mut read = Buffer::<S>::NEW;
    let len = values.len().min(BLOCK);
    let (values, read) = (&mut values[..len], &mut read.0[..len]);
    // SAFETY: the caller's contract; all are written before they are read.
    unsafe {
        Fill::<S> { source, start, values: read }.run::<LEVEL>();
        for (value, read) in values.iter_mut().zip(read) {
            value.write(E::Compute::from_word(read.assume_init().to_f32().to_word()));
        }
    }
}

/// Elements `start ..` of a result of type `dtype`, at most a block of them, from values of the compute type of `E`, a type
/// of floats.
pub(super) struct StoreStored<'a, E: Element> {
    pub(super) dtype: DType,
    pub(super) target: Target,
    pub(super) start: usize,
    pub(super) values: &'a [MaybeUninit<E::Compute>],
}

/// # Safety
/// The elements are valid for writing, and aligned; all values are initialised.
impl<E: Element> Loop for StoreStored<'_, E> {
    #[inline(always)]
    unsafe fn run<const LEVEL: u8>(self) {
        let StoreStored { dtype, target, start, values } = self;
        // SAFETY: the caller's contract.
        with_element!(dtype, S => unsafe { store::<S, E, LEVEL>(target, start, values) });
    }
}

/// # Safety
/// The conditions of [`StoreStored`].
#[inline(always)]
unsafe fn store<S: Element<Compute: To>, E: Element, const LEVEL: u8>(
    target: Target,
    start: usize,
    values: &[MaybeUninit<E::Compute>],
) {
    let mut written = Buffer::<S>::NEW;
    let len = values.len().min(BLOCK);
    for (to, value) in written.0.iter_mut().zip(&values[..len]) {
        // SAFETY: the caller's contract.
        let value = f32::from_word(unsafe { value.assume_init() }.to_word());
        to.write(S::Compute::cast(value));
    }
    // SAFETY: the caller's contract.
    unsafe { Store::<S> { target, start, values: &written.0[..len] }.run::<LEVEL>() };
}
