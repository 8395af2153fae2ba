//! Elementwise GPU kernels written in Rust, with PyTorch's semantics, on CUDA and on the CPU.
//!
//! ```
//! use pointwise::{Device, Tensor, ops};
//!
//! let device = Device::best()?; // the first GPU if it can be used, otherwise the CPU
//! let x = Tensor::from_slice(&device, &[-1.0_f32, 0.0, 1.0], [3])?;
//! let y = ops::relu(&x)?;
//! assert_eq!(y.to_vec::<f32>()?, [0.0, 0.0, 1.0]);
//! # Ok::<(), pointwise::Error>(())
//! ```
//!
//! [`ops`] has every op as functions: `NAME` allocates its result, `NAME_into` writes to an existing tensor,
//! `NAME_inplace` to its operand. [`kernels`] has them as objects with launch settings. [`UNARY`], [`BINARY`],
//! [`TERNARY`], [`GATED`], [`BACKWARD`], [`GRADIENTS`] and [`rope::ROPE`] list them as data, except for dropout and the
//! position encodings; [`POWERS`] lists what runs beneath `pow` with a number.
//!
//! A crate with ops of its own makes such functions from its table with [`host_unary!`].
//!
//! With the feature `emulator`, for tests, `Device::for_tests` gives the CPU and the first GPU, or where there is no GPU
//! an emulated one. It runs the same kernels on the CPU and checks every access to memory.
//!
//! # Environment
//!
//! | Variable | Meaning |
//! |---|---|
//! | `POINTWISE_CPU` | `baseline` or `avx2`: the newest instructions that CPU loops may use; other values change nothing |
//! | `POINTWISE_DEPENDENT_LAUNCH` | `0`: a kernel is launched only when the one before it has ended; see [`Stream`] |
//! | `POINTWISE_CACHE` | the folder in which a [`Tuner`] keeps what it has measured |
//! | `POINTWISE_DEVICE` | the one device that `Device::for_tests` gives, by its name ([`Device::parse`]) |
//! | `POINTWISE_EMULATOR_CHECKS` | `off`: emulated devices check bounds and alignment alone |
//! | `POINTWISE_EMULATOR_APPROX` | `worst`: their approximate instructions are off by what the PTX ISA allows |
//! | `POINTWISE_EMULATOR_LIMIT` | how many instructions a warp of theirs executes at most |

pub mod cpu;
pub mod cuda;
mod device;
pub mod embed;
mod error;
mod family;
mod files;
mod host;
mod host_gradients;
mod host_map;
mod host_special;
mod host_table;
pub mod interop;
mod kernel;
mod number;
pub mod rope;
mod shape;
mod storage;
mod stream;
mod tensor;
mod tuner;

#[cfg(feature = "emulator")]
#[doc(hidden)]
pub use cuda::with_kernel as __with_kernel;
pub use device::Device;
pub use error::{DriverError, Error, ErrorKind, FileError, Result};
pub use family::{
    BACKWARD, BINARY, GATED, GRADIENTS, MASKED_FILL, POWERS, TERNARY, UNARY, definitions, embedded, gradient_op,
    kernels, map_op, op, ops,
};
#[doc(hidden)]
pub use host::OracleValue;
#[doc(hidden)]
pub use host_gradients::{__no_result, Step};
#[doc(hidden)]
pub use kernel::Made as __Made;
pub use kernel::result_type;
pub use kernel::{BinaryKernel, Bound, Class, ConvertKernel, GatedKernel, MapDef, MapPlan, Operand, TernaryKernel};
pub use kernel::{DropoutKernel, GeneratorDef, GeneratorKernel, RandomKernel, SinusoidalLayout};
pub use kernel::{Entry, Kernel, Lookup, OpDef, Plan, Strategy, UnaryDef, UnaryKernel, Variant};
pub use kernel::{GatedGradientsKernel, GradientDef, GradientsKernel};
pub use number::Number;
#[doc(hidden)]
pub use pastey as __pastey;
#[doc(hidden)]
pub use pointwise_core as __core;
pub use pointwise_core::{
    Accuracy, DType, F8E4M3, F8E5M2, NoDType, OpInfo, ParamInfo, Philox, Properties, Scalar, SignChange, bf16, f16,
};
pub use shape::{IntoShape, MAX_RANK, Shape, Strides};
pub use stream::Stream;
pub use tensor::{Layout, Overlap, RawPointer, Tensor, TensorView, TensorViewMut, overlap};
pub use tuner::{CACHE_VARIABLE, Choice, Tuner};

/// What the macros of this crate expand to. No part of the API.
#[doc(hidden)]
pub mod __private {
    pub use pointwise_core as core;

    pub use crate::embed::Kernels;
    pub use crate::kernel::{Kernel, OpDef, OracleFn, Typed};
}
