//! The stream that a call runs on: it views operands, and makes storages for results.

use candle_core::{CpuStorage, DType as CandleType, Device as CandleDevice, Error, Layout, Result, Storage};
use pointwise::{DType, Device, Shape};

#[cfg(feature = "cuda")]
use crate::cuda;
#[cfg(not(feature = "cuda"))]
use crate::memory::NO_CUDA;
use crate::memory::{NO_METAL, View, candle_dtype, cpu_view, error, for_each_type, place, unknown};

/// The stream that a call runs on.
pub(crate) enum Queue {
    /// The CPU, which has none.
    Host,
    /// candle's own stream of a device.
    #[cfg(feature = "cuda")]
    Stream(cuda::Queue),
}

impl Queue {
    /// Takes the stream of a device.
    ///
    /// # Errors
    /// Fails for Metal, for CUDA without the feature `cuda`, and with the driver.
    pub(crate) fn of(device: &CandleDevice) -> Result<Queue> {
        match device {
            CandleDevice::Cpu => Ok(Queue::Host),
            #[cfg(feature = "cuda")]
            CandleDevice::Cuda(device) => cuda::Queue::new(device).map(Queue::Stream),
            #[cfg(not(feature = "cuda"))]
            CandleDevice::Cuda(_) => Err(error(NO_CUDA)),
            CandleDevice::Metal(_) => Err(error(NO_METAL)),
        }
    }

    /// Returns the device as pointwise names it.
    pub(crate) fn device(&self) -> Result<Device> {
        match self {
            Queue::Host => Ok(Device::cpu()),
            #[cfg(feature = "cuda")]
            Queue::Stream(queue) => queue.device(),
        }
    }

    /// Returns the stream, of a GPU.
    pub(crate) fn stream(&self) -> Option<&pointwise::Stream> {
        match self {
            Queue::Host => None,
            #[cfg(feature = "cuda")]
            Queue::Stream(queue) => Some(queue.stream()),
        }
    }

    /// Allocates a result, whose elements are written before anything reads them: see [`Queue::written`].
    ///
    /// # Errors
    /// Fails for a type that candle does not have, and where there is no memory.
    pub(crate) fn allocate(&self, dtype: DType, len: usize) -> Result<Storage> {
        let dtype = candle_dtype(dtype)?;
        match self {
            Queue::Host => {
                macro_rules! each {
                    ($($name:ident),*) => {
                        match dtype {
                            $(CandleType::$name => CpuStorage::$name(room(len)?),)*
                            other => return Err(error(format!("no results of {}", other.as_str()))),
                        }
                    };
                }
                Ok(Storage::Cpu(for_each_type!(each!())))
            }
            #[cfg(feature = "cuda")]
            Queue::Stream(queue) => queue.allocate(dtype, len).map(Storage::Cuda),
        }
    }

    /// Allocates one f32 of 0.
    ///
    /// # Errors
    /// Fails where there is no memory.
    pub(crate) fn zero(&self) -> Result<Storage> {
        match self {
            Queue::Host => Ok(Storage::Cpu(CpuStorage::F32(vec![0.0]))),
            #[cfg(feature = "cuda")]
            Queue::Stream(queue) => queue.zero().map(Storage::Cuda),
        }
    }

    /// Views a result that was allocated here to write it.
    ///
    /// # Errors
    /// Fails for more than 8 dimensions.
    pub(crate) fn target<'a>(&'a self, storage: &'a mut Storage, dtype: DType, shape: &Shape) -> Result<View<'a>> {
        let layout = Layout::contiguous(shape.dims());
        match (storage, self) {
            (Storage::Cpu(storage), Queue::Host) => {
                macro_rules! each {
                    ($($name:ident),*) => {
                        match storage {
                            $(CpuStorage::$name(v) => (v.as_mut_ptr().cast_const().cast(), v.capacity()),)*
                            other => return Err(unknown(other)),
                        }
                    };
                }
                let (pointer, room) = for_each_type!(each!());
                place(pointer, room, dtype, &layout, true)
            }
            #[cfg(feature = "cuda")]
            (Storage::Cuda(storage), Queue::Stream(queue)) => cuda::view_mut(storage, &layout, Some(dtype), queue),
            (storage, _) => Err(no_device(storage)),
        }
    }

    /// Counts a result's elements in.
    ///
    /// # Safety
    /// An op has written the first `len` elements of the storage, which [`Queue::allocate`] made for as many.
    pub(crate) unsafe fn written(storage: &mut Storage, len: usize) {
        macro_rules! each {
            ($($name:ident),*) => {
                match storage {
                    // SAFETY: the elements are written, says the caller, and there is room for them.
                    $(Storage::Cpu(CpuStorage::$name(v)) => unsafe { v.set_len(len) },)*
                    _ => {}
                }
            };
        }
        for_each_type!(each!());
    }
}

/// Views a tensor's elements where they lie, with any strides. `read_as` names the type that the op reads, if it is not
/// the memory's: see [`seen_as`](crate::memory::seen_as).
///
/// # Errors
/// Fails for an element type that pointwise does not have, for more than 8 dimensions, and for Metal.
pub(crate) fn view<'a>(
    storage: &'a Storage,
    layout: &Layout,
    read_as: Option<DType>,
    queue: &'a Queue,
) -> Result<View<'a>> {
    match (storage, queue) {
        (Storage::Cpu(storage), Queue::Host) => cpu_view(storage, layout, read_as),
        #[cfg(feature = "cuda")]
        (Storage::Cuda(storage), Queue::Stream(queue)) => cuda::view(storage, layout, read_as, queue),
        (storage, _) => Err(no_device(storage)),
    }
}

/// Refuses a storage that is not where the call runs.
fn no_device(storage: &Storage) -> Error {
    error(match storage {
        Storage::Metal(_) => NO_METAL,
        #[cfg(not(feature = "cuda"))]
        Storage::Cuda(_) => NO_CUDA,
        _ => "operands are on the CPU and on CUDA: move them to one device (to_device)",
    })
}

/// Returns a vector with room for elements.
fn room<T>(len: usize) -> Result<Vec<T>> {
    let mut elements = Vec::new();
    match elements.try_reserve_exact(len) {
        Ok(()) => Ok(elements),
        Err(_) => Err(error(format!("no memory for {len} elements"))),
    }
}
