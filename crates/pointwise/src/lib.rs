//! (being written)

pub mod cuda;
mod device;
mod error;
pub mod interop;
mod shape;
mod storage;
mod stream;
mod tensor;

pub mod embed;

pub use device::Device;
pub use error::{Error, ErrorKind, Result};
pub use pointwise_core::{DType, F8E4M3, F8E5M2, Scalar, bf16, f16};
pub use shape::{IntoShape, MAX_RANK, Shape, Strides};
pub use stream::Stream;
pub use tensor::{Layout, Overlap, RawPointer, Tensor, TensorView, TensorViewMut, overlap};
