//! Elements of a fixed type that is not the op's: converted to f32 when they are read, and from f32 when they are written,
//! by the rules of [`pointwise_core::cast`].
//!
//! The type is a constant of the op, so that one arm of each `match` remains.

use pointwise_core::cast::{Source, Target};
use pointwise_core::formula::OpData;
use pointwise_core::{DType, Logic, Word};

use crate::element::Bool;
use crate::formula::{Loaded, Places, Tensors, put, takes_numbers};
use crate::packed::{self, Packed, unroll};

/// Loads a vector of each operand of an op that has some of fixed types, as `fetch` of the operands.
///
/// # Safety
/// Each operand meets the conditions of [`load`] at its place.
#[inline(always)]
pub(crate) unsafe fn fetch<E: Packed, O: OpData, const N: usize, const R: usize, const V: usize>(
    tensors: &Tensors<N, R>,
    mode: u32,
    at: &Places<N, R>,
) -> [Loaded; N] {
    let mut loaded = [Loaded::NONE; N];
    unroll!(at most 12: k < N => {
        let size = const { O::INFO }.operand_size(k, size_of::<E>());
        // SAFETY: the caller's contract.
        loaded[k] = unsafe { load::<V>(size, tensors.operands[k], at.operands[k], mode, k as u32) };
        loaded[k].is_word &= const { takes_numbers::<E, O>() };
    });
    loaded
}

/// Returns a formula's arguments, of an op that has operands of fixed types.
#[inline(always)]
pub(crate) fn arguments<E: Packed, O: OpData, const N: usize, const V: usize>(
    loaded: &[Loaded; N],
    words: &[u64; N],
) -> ([[E::Compute; N]; V], [[bool; N]; V]) {
    let mut values = [[<E::Compute as pointwise_core::Value>::ZERO; N]; V];
    let mut truths = [[false; N]; V];
    unroll!(at most 12: k < N => {
        if const { O::INFO.bool_operands() } >> k & 1 == 1 {
            let lanes = crate::formula::lanes::<Bool, V>(loaded[k], words[k]);
            unroll!(i < V => { truths[i][k] = lanes[i].0; });
        } else {
            let dtype = const { O::INFO }.operand_type(k, E::DTYPE);
            let lanes = lanes::<V>(dtype, loaded[k], words[k]);
            unroll!(i < V => { values[i][k] = E::Compute::from_word(lanes[i].to_word()); });
        }
    });
    (values, truths)
}

/// Stores all results of an op that has tensors of fixed types: whole vectors, or their first elements.
///
/// # Safety
/// Results are valid at the places for writing `V` elements, or one if `is_vector` is false, and aligned to them.
#[inline(always)]
pub(crate) unsafe fn put_all<F: Packed, O: OpData, const N: usize, const R: usize, const V: usize>(
    tensors: &Tensors<N, R>,
    at: [i64; R],
    (results, answers): ([[F::Compute; V]; R], [[Logic; V]; R]),
    is_vector: bool,
) {
    unroll!(at most 8: k < R => {
        let dtype = const { O::INFO }.result_type(k, F::DTYPE);
        let mut values = [0.0; V];
        unroll!(i < V => { values[i] = f32::from_word(results[k][i].to_word()); });
        // SAFETY: the caller's contract.
        unsafe {
            if const { O::INFO.bool_results() } >> k & 1 == 1 {
                put::<Bool, V>(tensors.results[k], at[k], answers[k], is_vector);
            } else {
                store::<V>(dtype, tensors.results[k], at[k], values, is_vector);
            }
        }
    });
}

/// Loads a vector of operand `k`, whose elements have `size` bytes, as [`load`](crate::formula::load).
///
/// # Safety
/// The conditions of [`load`](crate::formula::load), for elements of this size.
#[inline(always)]
pub(crate) unsafe fn load<const V: usize>(size: usize, first: *const u8, at: i64, mode: u32, k: u32) -> Loaded {
    use crate::formula::load;
    let first = first.wrapping_offset(at as isize * size as isize);
    // SAFETY: the caller's contract.
    unsafe {
        match size {
            1 => load::<i8, V>(first, mode, k),
            2 => load::<i16, V>(first, mode, k),
            4 => load::<i32, V>(first, mode, k),
            _ => load::<i64, V>(first, mode, k),
        }
    }
}

/// Returns the operand's elements. A number that came with the call is `word`, an f32.
#[inline(always)]
pub(crate) fn lanes<const V: usize>(dtype: DType, loaded: Loaded, word: u64) -> [f32; V] {
    if loaded.is_word {
        return [f32::from_word(word); V];
    }
    let bits = match dtype.size() {
        1 => loaded.spread::<i8>(),
        2 => loaded.spread::<i16>(),
        4 => loaded.spread::<i32>(),
        _ => loaded.spread::<i64>(),
    };
    unpack::<V>(dtype, bits)
}

/// Returns `V` elements of at most 16 bytes.
#[inline(always)]
pub(crate) fn unpack<const V: usize>(dtype: DType, bits: [u64; 2]) -> [f32; V] {
    match dtype {
        DType::F32 => unpack_of::<f32, V>(bits),
        DType::F16 => unpack_of::<crate::f16, V>(bits),
        DType::BF16 => unpack_of::<crate::bf16, V>(bits),
        DType::F8E4M3 => unpack_of::<crate::F8E4M3, V>(bits),
        DType::F8E5M2 => unpack_of::<crate::F8E5M2, V>(bits),
        DType::I8 => unpack_of::<i8, V>(bits),
        DType::I16 => unpack_of::<i16, V>(bits),
        DType::I32 => unpack_of::<i32, V>(bits),
        DType::I64 => unpack_of::<i64, V>(bits),
        DType::U8 => unpack_of::<u8, V>(bits),
        DType::Bool => unpack_of::<Bool, V>(bits),
    }
}

#[inline(always)]
fn unpack_of<S: Packed<Compute: Source>, const V: usize>(bits: [u64; 2]) -> [f32; V] {
    let mut values = [0.0; V];
    // The arms of types that the op does not have are there at any length.
    if V * size_of::<S>() <= 16 {
        let lanes = packed::unpack::<S, V>(bits);
        unroll!(i < V => { values[i] = lanes[i].to_f32(); });
    }
    values
}

/// Stores a whole vector, or its first element, as [`put`].
///
/// # Safety
/// The conditions of [`put`], for elements of this type.
#[inline(always)]
pub(crate) unsafe fn store<const V: usize>(dtype: DType, first: *mut u8, at: i64, lanes: [f32; V], is_vector: bool) {
    // SAFETY: the caller's contract.
    unsafe {
        match dtype {
            DType::F32 => put::<f32, V>(first, at, lanes, is_vector),
            DType::F16 => put::<crate::f16, V>(first, at, cast(lanes), is_vector),
            DType::BF16 => put::<crate::bf16, V>(first, at, cast(lanes), is_vector),
            DType::F8E4M3 => put::<crate::F8E4M3, V>(first, at, cast(lanes), is_vector),
            DType::F8E5M2 => put::<crate::F8E5M2, V>(first, at, cast(lanes), is_vector),
            DType::I8 => put::<i8, V>(first, at, cast(lanes), is_vector),
            DType::I16 => put::<i16, V>(first, at, cast(lanes), is_vector),
            DType::I32 => put::<i32, V>(first, at, cast(lanes), is_vector),
            DType::I64 => put::<i64, V>(first, at, cast(lanes), is_vector),
            DType::U8 => put::<u8, V>(first, at, cast(lanes), is_vector),
            DType::Bool => put::<Bool, V>(first, at, cast(lanes), is_vector),
        }
    }
}

/// Stores a whole vector at an address of shared memory.
///
/// # Safety
/// The conditions of [`packed::store_shared`], for elements of this type.
#[inline(always)]
pub(crate) unsafe fn store_shared<const V: usize>(dtype: DType, address: u32, lanes: [f32; V]) {
    // SAFETY: the caller's contract.
    unsafe {
        match dtype {
            DType::F32 => packed::store_shared::<f32, V>(address, lanes),
            DType::F16 => packed::store_shared::<crate::f16, V>(address, cast(lanes)),
            DType::BF16 => packed::store_shared::<crate::bf16, V>(address, cast(lanes)),
            DType::F8E4M3 => packed::store_shared::<crate::F8E4M3, V>(address, cast(lanes)),
            DType::F8E5M2 => packed::store_shared::<crate::F8E5M2, V>(address, cast(lanes)),
            DType::I8 => packed::store_shared::<i8, V>(address, cast(lanes)),
            DType::I16 => packed::store_shared::<i16, V>(address, cast(lanes)),
            DType::I32 => packed::store_shared::<i32, V>(address, cast(lanes)),
            DType::I64 => packed::store_shared::<i64, V>(address, cast(lanes)),
            DType::U8 => packed::store_shared::<u8, V>(address, cast(lanes)),
            DType::Bool => packed::store_shared::<Bool, V>(address, cast(lanes)),
        }
    }
}

#[inline(always)]
fn cast<T: Target, const V: usize>(values: [f32; V]) -> [T; V] {
    let mut lanes = [T::ZERO; V];
    unroll!(i < V => { lanes[i] = T::cast(values[i]); });
    lanes
}
