//! Other crates' buffers and streams, and raw ones, used without a copy.
//!
//! | what | how | feature |
//! |---|---|---|
//! | a device pointer, a host pointer | [`TensorView::from_raw_parts`], [`TensorViewMut::from_raw_parts`] | |
//! | the same with an owner that keeps the memory | [`Foreign`] | |
//! | DLPack's structs: PyTorch, NumPy, CuPy, JAX; both ways | [`dlpack`] | |
//! | a `CUstream` or `cudaStream_t` | [`Stream::from_raw`] | |
//! | cudarc's `CudaSlice`, `CudaView`, `CudaViewMut`; `Arc<CudaStream>` | `interop::cudarc` | `cudarc` |
//! | cust's `DeviceBuffer`, `DeviceSlice`; `Arc<Stream>` | `interop::cust` | `cust` |
//! | ndarray's `ArrayView`, `ArrayViewMut`; a copy to `ArrayD` | `interop::ndarray` | `ndarray` |
//! | a tensor of a safetensors file, and back; a copy | `interop::safetensors` | `safetensors` |
//! | one of this crate's tensors elsewhere | [`Tensor::device_ptr`], [`Stream::raw`] | |
//!
//! # What the caller is responsible for
//!
//! A view of foreign memory borrows the buffer, so the compiler ensures that the buffer outlives the view. But a GPU
//! still works after the call that queued the work has returned, and the compiler knows nothing of that. Hence making
//! such a view is `unsafe`, and the caller promises three things.
//!
//! * **Order.** Work that wrote the memory comes before work that reads it: both on one stream, or the second stream
//!   waits for the first ([`Stream::wait_for`]), or the host waits ([`Stream::synchronize`], [`Device::synchronize`]).
//!   This crate orders the use of *its own* tensors on several streams; it does not know the history of foreign memory.
//! * **Lifetime.** The buffer is freed only when queued work is done with it, or in stream order after that work. A
//!   graph that has captured such work may queue it again until the graph is dropped: the buffer must outlive the graph.
//! * **Content.** The elements are initialised. A bool is any byte, true unless it is 0.
//!
//! Copies to the host (`to_vec`) of a view of foreign memory wait for the whole device first, so they need no ordering.
//!
//! # Temporaries
//!
//! A call that converts an operand, or a random op on a view that is not contiguous, allocates from this crate's pool.
//! Code with an allocator of its own converts first: [`result_type`](crate::kernel::result_type) gives the common
//! element type of the operands, and `kernels::to_dtype().on(&stream).run_into(x, y)` writes `x`, converted or
//! contiguous, to memory that the caller has allocated. The `_into` form of the op then allocates nothing.
//!
//! # Contexts
//!
//! This crate works in a device's *primary* context, the one CUDA's runtime (and so PyTorch), cudarc's
//! `CudaContext::new` and cust's `Context::new` use. Buffers and streams of another context (`cuCtxCreate`, cudarc's
//! `new_non_primary`, cust's `context::legacy`) are refused with
//! [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported). The context of a raw pointer is not checked: if it is the
//! wrong one, the driver refuses the kernel, or the kernel faults.
//!
//! A call makes the primary context current on its thread, and then the one that was current before. A thread that had
//! none keeps the primary one, as after a call of CUDA's runtime.
//!
//! # Raw pointers and streams
//!
//! ```no_run
//! use pointwise::{DType, Device, Shape, Stream, TensorView};
//!
//! # fn foreign() -> (u64, *mut std::ffi::c_void) { (0, std::ptr::null_mut()) }
//! # fn main() -> pointwise::Result<()> {
//! let device = Device::cuda(0)?;
//! let (address, raw_stream) = foreign(); // say, a PyTorch tensor's data_ptr() and its current stream
//! let shape = Shape::new(&[2, 3])?;
//! // SAFETY: six f32 lie at `address`, written by work queued on `raw_stream` and freed in its order.
//! let x = unsafe { TensorView::from_raw_parts(&device, address, DType::F32, shape, &shape.contiguous_strides())? };
//! // SAFETY: the owner of the stream keeps it while we use it.
//! let stream = unsafe { Stream::from_raw(&device, raw_stream)? };
//! // Queue ops that read `x` on `stream`, or let another stream wait for it:
//! device.stream().wait_for(&stream)?;
//! # let _ = x;
//! # Ok(())
//! # }
//! ```
//!
//! In the other direction, [`Tensor::device_ptr`] and [`Stream::raw`] hand out a tensor's address and a stream. A
//! tensor's memory is freed in the order of its device's own stream: before you drop a tensor that foreign work uses,
//! let [`Device::stream`] wait for that work. This crate also fills its tensors on that stream: let the foreign stream
//! wait for it ([`Stream::wait_for`]) before you queue the work.
//!
//! [`Device::stream`]: crate::Device::stream
//! [`Device::synchronize`]: crate::Device::synchronize
//! [`Stream::from_raw`]: crate::Stream::from_raw
//! [`Stream::raw`]: crate::Stream::raw
//! [`Stream::synchronize`]: crate::Stream::synchronize
//! [`Stream::wait_for`]: crate::Stream::wait_for
//! [`Tensor::device_ptr`]: crate::Tensor::device_ptr
//! [`TensorView::from_raw_parts`]: crate::TensorView::from_raw_parts
//! [`TensorViewMut::from_raw_parts`]: crate::TensorViewMut::from_raw_parts

#[cfg(feature = "cudarc")]
pub mod cudarc;
#[cfg(feature = "cust")]
pub mod cust;
pub mod dlpack;
mod foreign;
#[cfg(feature = "ndarray")]
pub mod ndarray;
#[cfg(feature = "safetensors")]
pub mod safetensors;

pub use foreign::Foreign;

/// Refuses a buffer of another number of elements than the shape.
#[cfg(any(feature = "cudarc", feature = "cust"))]
fn check_len(shape: &crate::Shape, len: usize) -> crate::Result<()> {
    if shape.numel() == len {
        return Ok(());
    }
    Err(crate::ErrorKind::DataLength { expected: shape.numel(), got: len, unit: "elements" }.into())
}
