//! candle's memory in pointwise's words: element types, layouts, and the CPU's storages as views, without a copy.

#[cfg(feature = "cuda")]
use candle_core::cuda_backend::cudarc::driver::SyncOnDrop;
use candle_core::{CpuStorage, DType as CandleType, Error, Layout, Result, Storage};
use pointwise::interop::Foreign;
use pointwise::{DType, Device, Shape};

/// Keeps a view's memory in order while the view lives: on a GPU, cudarc's record of the use.
pub(crate) enum Owner<'a> {
    /// The lock of candle's storage, which the borrow stands for.
    Storage(std::marker::PhantomData<&'a Storage>),
    /// The same, and a note to other streams when it is dropped.
    #[cfg(feature = "cuda")]
    #[allow(dead_code)] // held for its drop
    Stream(SyncOnDrop<'a>),
}

/// A view of candle's memory.
pub(crate) type View<'a> = Foreign<'a, Owner<'a>>;

/// The element types that both libraries have, with the types of their elements in candle's storages.
macro_rules! for_each_type {
    ($do:ident!($($first:tt)*)) => {
        $do!($($first)* U8, I16, I32, I64, BF16, F16, F32, F8E4M3)
    };
}
pub(crate) use for_each_type;

/// Makes an error of candle's with pointwise's text.
pub(crate) fn error(error: impl std::fmt::Display + Send + Sync + 'static) -> Error {
    Error::wrap(error)
}

/// Returns candle's element type as pointwise names it.
///
/// # Errors
/// Fails for a type that pointwise does not have.
pub(crate) fn dtype(of: CandleType) -> Result<DType> {
    macro_rules! same {
        ($($name:ident),*) => {
            match of {
                $(CandleType::$name => Ok(DType::$name),)*
                other => Err(error(format!(
                    "tensors of {} have no ops here: convert to f32, f16, bf16, f8e4m3, u8, i16, i32 or i64 (to_dtype)",
                    other.as_str()
                ))),
            }
        };
    }
    for_each_type!(same!())
}

/// Returns the type that candle holds elements in: candle has bools as u8.
///
/// # Errors
/// Fails for a type that candle does not have.
pub(crate) fn candle_dtype(of: DType) -> Result<CandleType> {
    macro_rules! same {
        ($($name:ident),*) => {
            match of {
                $(DType::$name => Ok(CandleType::$name),)*
                DType::Bool => Ok(CandleType::U8),
                other => Err(error(format!("a result is {other}, which candle does not have"))),
            }
        };
    }
    for_each_type!(same!())
}

/// Returns the element type that an op sees: `read_as`, where memory of candle's type holds that, too.
pub(crate) fn seen_as(stored: CandleType, read_as: Option<DType>) -> Result<DType> {
    match (stored, read_as) {
        (CandleType::U8, Some(DType::Bool)) => Ok(DType::Bool),
        // Positions: as i32 they are the same bits below 2^31, and candle has them as u32.
        (CandleType::U32, Some(DType::I32)) => Ok(DType::I32),
        (other, Some(DType::Bool)) => {
            Err(error(format!("a condition is {}: give u8 (candle's comparisons return it)", other.as_str())))
        }
        (other, _) => dtype(other),
    }
}

/// Checks that all elements of a layout lie in a storage of `len` elements.
///
/// candle lets safe code make a tensor of any layout, and this crate reads by pointers.
pub(crate) fn check_bounds(layout: &Layout, len: usize) -> Result<()> {
    let steps = layout.dims().iter().zip(layout.stride());
    let last = steps.clone().try_fold(layout.start_offset(), |at, (&size, &stride)| {
        size.saturating_sub(1).checked_mul(stride).and_then(|step| at.checked_add(step))
    });
    let is_empty = layout.dims().contains(&0);
    match last {
        _ if is_empty && layout.start_offset() <= len => Ok(()),
        Some(last) if !is_empty && last < len => Ok(()),
        _ => Err(error(format!("a tensor of shape {:?} reaches beyond its storage of {len} elements", layout.shape()))),
    }
}

/// Returns a layout's shape and strides as pointwise has them.
///
/// # Errors
/// Fails for more than 8 dimensions.
pub(crate) fn geometry(layout: &Layout) -> Result<(Shape, Vec<i64>)> {
    let shape = Shape::new(layout.dims()).map_err(error)?;
    // Strides are within `isize`: the elements lie in memory.
    Ok((shape, layout.stride().iter().map(|&stride| stride as i64).collect()))
}

/// Views the elements of a CPU storage where they lie, with any strides. `read_as` names the type that the op reads, if it is
/// not the memory's: see [`seen_as`].
///
/// # Errors
/// Fails for an element type that pointwise does not have, and for more than 8 dimensions.
pub(crate) fn cpu_view<'a>(storage: &'a CpuStorage, layout: &Layout, read_as: Option<DType>) -> Result<View<'a>> {
    let (pointer, len, stored) = elements(storage)?;
    place(pointer, len, seen_as(stored, read_as)?, layout, false)
}

/// Views the elements of a CPU storage to write them.
pub(crate) fn cpu_view_mut<'a>(
    storage: &'a mut CpuStorage,
    layout: &Layout,
    write_as: Option<DType>,
) -> Result<View<'a>> {
    let (pointer, len, stored) = elements_mut(storage)?;
    place(pointer, len, seen_as(stored, write_as)?, layout, true)
}

/// Views elements at a pointer of a borrowed storage.
///
/// # Errors
/// Fails for a layout that reaches beyond them, and for more than 8 dimensions.
pub(crate) fn place<'a>(
    pointer: *const u8,
    len: usize,
    dtype: DType,
    layout: &Layout,
    writes: bool,
) -> Result<View<'a>> {
    check_bounds(layout, len)?;
    let (shape, strides) = geometry(layout)?;
    let first = pointer.wrapping_add(dtype.offset(layout.start_offset() as i64) as usize);
    let (cpu, owner) = (Device::cpu(), Owner::Storage(std::marker::PhantomData));
    // SAFETY: the elements are in bounds, and initialised where the view is read: an op reads no result; the storage is borrowed for as long as the caller's lifetime,
    // exclusively where the view writes. Types of one size and any bits stand for each other alone.
    let view = unsafe {
        match writes {
            true => Foreign::from_raw_parts_mut(&cpu, first.cast_mut(), dtype, shape, &strides, owner),
            false => Foreign::from_raw_parts(&cpu, first, dtype, shape, &strides, owner),
        }
    };
    view.map_err(error)
}

/// Returns address, number and type of a storage's elements.
fn elements(storage: &CpuStorage) -> Result<(*const u8, usize, CandleType)> {
    macro_rules! each {
        ($($name:ident),*) => {
            match storage {
                $(CpuStorage::$name(v) => (v.as_ptr().cast(), v.len(), CandleType::$name),)*
                CpuStorage::U32(v) => (v.as_ptr().cast(), v.len(), CandleType::U32),
                other => return Err(unknown(other)),
            }
        };
    }
    Ok(for_each_type!(each!()))
}

/// Returns address, number and type of a storage's elements, to write them.
fn elements_mut(storage: &mut CpuStorage) -> Result<(*const u8, usize, CandleType)> {
    macro_rules! each {
        ($($name:ident),*) => {
            match storage {
                $(CpuStorage::$name(v) => (v.as_mut_ptr().cast_const().cast(), v.len(), CandleType::$name),)*
                other => return Err(unknown(other)),
            }
        };
    }
    Ok(for_each_type!(each!()))
}

/// Refuses a storage of a type that has no ops.
pub(crate) fn unknown(storage: &CpuStorage) -> Error {
    use candle_core::backend::BackendStorage;
    match dtype(storage.dtype()) {
        Err(error) => error,
        Ok(dtype) => crate::memory::error(format!("tensors of {dtype} have no ops here")),
    }
}

pub(crate) const NO_METAL: &str =
    "a tensor is on Metal, which has no kernels here: move it to the CPU or to CUDA (to_device)";
#[cfg(not(feature = "cuda"))]
pub(crate) const NO_CUDA: &str = "a tensor is on CUDA: build with the feature `cuda` of pointwise-candle";
