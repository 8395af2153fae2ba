//! candle's CUDA storages as views, on candle's own stream and in its context.

use std::sync::Arc;

use candle_core::cuda_backend::cudarc::driver::{
    CudaSlice, CudaStream, DevicePtr, DevicePtrMut, DeviceRepr, SyncOnDrop,
};
use candle_core::cuda_backend::{CudaDevice, CudaStorage, CudaStorageSlice};
use candle_core::{DType as CandleType, Layout, Result};
use pointwise::interop::{self, Foreign};
use pointwise::{DType, Device, Stream};

use crate::memory::{Owner, View, check_bounds, dtype, error, for_each_type, geometry, seen_as};

/// candle's stream of a device.
pub(crate) struct Queue {
    candle: CudaDevice,
    cu_stream: Arc<CudaStream>,
    stream: Stream,
}

impl Queue {
    /// Takes the stream that candle uses.
    ///
    /// # Errors
    /// Fails with the driver.
    pub(crate) fn new(device: &CudaDevice) -> Result<Queue> {
        let cu_stream = device.cuda_stream();
        let stream = interop::cudarc::stream(&cu_stream).map_err(error)?;
        Ok(Queue { candle: device.clone(), cu_stream, stream })
    }

    /// Returns the stream.
    pub(crate) fn stream(&self) -> &Stream {
        &self.stream
    }

    /// Returns the device.
    pub(crate) fn device(&self) -> Result<Device> {
        interop::cudarc::device(self.cu_stream.context()).map_err(error)
    }

    /// Allocates elements on the stream. They are not initialised: a launch that follows writes all of them.
    pub(crate) fn allocate(&self, dtype: CandleType, len: usize) -> Result<CudaStorage> {
        macro_rules! each {
            ($($name:ident),*) => {
                match dtype {
                    // SAFETY: every result of an op is written in full by the launch, which this stream orders before
                    // any reader.
                    $(CandleType::$name => CudaStorageSlice::$name(unsafe { self.candle.alloc(len) }?),)*
                    other => return Err(error(format!("no results of {}", other.as_str()))),
                }
            };
        }
        Ok(CudaStorage { slice: for_each_type!(each!()), device: self.candle.clone() })
    }

    /// Allocates one f32 of 0.
    pub(crate) fn zero(&self) -> Result<CudaStorage> {
        Ok(CudaStorage { slice: CudaStorageSlice::F32(self.candle.alloc_zeros(1)?), device: self.candle.clone() })
    }
}

/// A buffer's address, length and type, and what tells other streams of cudarc's that it is in use, when it is dropped.
type Buffer<'a> = (u64, usize, CandleType, SyncOnDrop<'a>);

/// Views a storage's elements to read them. The stream waits for what writes them, as far as cudarc tracks it.
///
/// # Errors
/// Fails for a type that pointwise does not have, for more than 8 dimensions, and with the driver.
pub(crate) fn view<'a>(
    storage: &'a CudaStorage,
    layout: &Layout,
    read_as: Option<DType>,
    queue: &'a Queue,
) -> Result<View<'a>> {
    fn buffer<'a, T: DeviceRepr>(slice: &'a CudaSlice<T>, of: CandleType, queue: &'a Queue) -> Buffer<'a> {
        let (address, used) = slice.device_ptr(&queue.cu_stream);
        (address, slice.num_bytes() / size_of::<T>().max(1), of, used)
    }
    macro_rules! each {
        ($($name:ident),*) => {
            match &storage.slice {
                $(CudaStorageSlice::$name(slice) => buffer(slice, CandleType::$name, queue),)*
                CudaStorageSlice::U32(slice) => buffer(slice, CandleType::U32, queue),
                other => return Err(unknown(other)),
            }
        };
    }
    place(for_each_type!(each!()), &storage.device, layout, read_as, queue, false)
}

/// Views a storage's elements to write them.
///
/// # Errors
/// Fails as [`view`] does.
pub(crate) fn view_mut<'a>(
    storage: &'a mut CudaStorage,
    layout: &Layout,
    write_as: Option<DType>,
    queue: &'a Queue,
) -> Result<View<'a>> {
    fn buffer<'a, T: DeviceRepr>(slice: &'a mut CudaSlice<T>, of: CandleType, queue: &'a Queue) -> Buffer<'a> {
        let len = slice.num_bytes() / size_of::<T>().max(1);
        let (address, used) = slice.device_ptr_mut(&queue.cu_stream);
        (address, len, of, used)
    }
    macro_rules! each {
        ($($name:ident),*) => {
            match &mut storage.slice {
                $(CudaStorageSlice::$name(slice) => buffer(slice, CandleType::$name, queue),)*
                other => return Err(unknown(other)),
            }
        };
    }
    place(for_each_type!(each!()), &storage.device, layout, write_as, queue, true)
}

fn unknown(slice: &CudaStorageSlice) -> candle_core::Error {
    let name = match slice {
        CudaStorageSlice::F64(_) => CandleType::F64,
        CudaStorageSlice::F6E2M3(_) => CandleType::F6E2M3,
        CudaStorageSlice::F6E3M2(_) => CandleType::F6E3M2,
        CudaStorageSlice::F4(_) => CandleType::F4,
        CudaStorageSlice::F8E8M0(_) => CandleType::F8E8M0,
        _ => CandleType::U32,
    };
    match dtype(name) {
        Err(error) => error,
        Ok(dtype) => error(format!("tensors of {dtype} have no ops here")),
    }
}

/// Views a buffer's elements on its own device, which the call compares with the other operands'.
fn place<'a>(
    (address, len, stored, used): Buffer<'a>,
    at: &CudaDevice,
    layout: &Layout,
    seen: Option<DType>,
    queue: &Queue,
    writes: bool,
) -> Result<View<'a>> {
    // The order on the stream does not hold after an error that cudarc kept.
    queue.cu_stream.context().check_err().map_err(error)?;
    check_bounds(layout, len)?;
    let dtype = seen_as(stored, seen)?;
    let (shape, strides) = geometry(layout)?;
    let device = interop::cudarc::device(at.cuda_stream().context()).map_err(error)?;
    let first = address + dtype.offset(layout.start_offset() as i64) as u64;
    let owner = Owner::Stream(used);
    // SAFETY: the elements are in bounds of the buffer, which is borrowed, exclusively where the view writes; work on the
    // queue's stream alone uses it before `used` is dropped, and that stream waits for its writers. candle frees it in the
    // order of its stream.
    let view = unsafe {
        match writes {
            true => Foreign::from_raw_parts_mut(&device, first, dtype, shape, &strides, owner),
            false => Foreign::from_raw_parts(&device, first, dtype, shape, &strides, owner),
        }
    };
    view.map_err(error)
}
