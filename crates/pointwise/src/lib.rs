//! Elementwise and row GPU kernels written in Rust, with PyTorch's semantics, on CUDA and on the CPU.
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
//! `NAME_inplace` to its operand. [`kernels`] has them as objects with launch settings. [`info`] and
//! [`rope::ROPE`] list them as data. [`prelude`] has the names that most programs use.
//!
//! A package makes its own ops of functions, with the attribute [`op`](macro@op); [`info::declared_ops`] lists them.
//! [`formulas`] has the ops as functions that such a function calls.
//!
//! With the feature `emulator`, for tests, `Device::for_tests` gives the CPU and the first GPU, or where there is no GPU
//! an emulated one. It runs the same kernels on the CPU and checks every access to memory.
//!
//! # Features
//!
//! | Feature | What it adds |
//! |---|---|
//! | `family` | the ops of [`ops`] and [`kernels`], and [`rope`]; on by default. A package that runs its own ops alone leaves it out, and compiles none of them |
//! | `emulator` | `Device::emulated` and emulated devices of `Device::for_tests`: a dev-dependency's feature, for tests |
//! | `cudarc` | `interop::cudarc`: views of the crate's buffers, and its streams |
//! | `cust` | `interop::cust`: the same of the crate cust, which needs a CUDA toolkit to build |
//! | `safetensors` | `Tensor::from_safetensors` and `Tensor::to_safetensors` |
//! | `ndarray` | views of ndarray's arrays, `Tensor::from_ndarray` and `Tensor::to_ndarray` |
//! | `serde` | `Serialize` and `Deserialize` of settings: `Strategy`, `kernel::SinusoidalLayout`, and `RopeConfig` with the choices of a rotation |
//!
//! # Environment
//!
//! | Variable | Meaning |
//! |---|---|
//! | `POINTWISE_CPU` | `baseline` or `avx2`: the newest instructions that CPU loops may use; other values change nothing |
//! | `RAYON_NUM_THREADS` | how many threads CPU calls run on; see [`parallel`] |
//! | `POINTWISE_DEPENDENT_LAUNCH` | `0`: a kernel is launched only when the one before it has ended; see [`Stream`] |
//! | `POINTWISE_CACHE` | the folder in which a [`Tuner`](tuner::Tuner) keeps what it has measured |
//! | `POINTWISE_DEVICE` | the one device that `Device::for_tests` gives, by its name ([`Device::parse`]) |
//! | `POINTWISE_EMULATOR_CHECKS` | `off`: emulated devices check bounds and alignment alone |
//! | `POINTWISE_EMULATOR_APPROX` | `worst`: their approximate instructions are off by what the PTX ISA allows |
//! | `POINTWISE_EMULATOR_LIMIT` | how many instructions a warp of theirs executes at most |

#![cfg_attr(docsrs, feature(doc_cfg))]

// The family's modules name this crate as users' do.
extern crate self as pointwise;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod cpu;
pub mod cuda;
mod device;
#[doc(hidden)]
pub mod element;
pub mod embed;
pub mod error;
mod family;
mod files;
pub mod fusion;
pub mod interop;
pub mod kernel;
mod number;
#[cfg(feature = "family")]
pub mod rope;
mod shape;
mod storage;
mod stream;
pub mod tensor;
pub mod tuner;

/// The threads that CPU calls run on.
pub mod parallel {
    pub use crate::cpu::parallel::{Executor, set_executor};
}

pub use device::Device;
pub use error::{Error, ErrorKind, Result};
pub use family::{kernels, ops};
pub use kernel::{Operand, Strategy};
pub use number::Number;
pub use pointwise_core::{DType, F8E4M3, F8E5M2, Philox, Scalar, bf16, f16, formulas};
pub use pointwise_macros::op;
pub use shape::Shape;
pub use stream::Stream;
pub use tensor::{Tensor, TensorView, TensorViewMut};

/// The ops as data: lists and definitions by name.
pub mod info {
    pub use pointwise_core::{Accuracy, Domain, Each, NoDType, OpInfo, ParamInfo, ParamKind, Properties, SignChange};

    #[cfg(feature = "family")]
    pub use crate::family::{CHOICES, Choice, MASKED_FILL, listed};
    pub use crate::family::{all, beneath, every, op};
    pub use crate::kernel::declared_ops;
}

/// The names that most programs use, and modules of [`op`](macro@op): `use pointwise::prelude::*;`. If such a module is
/// compiled for the GPU, the prelude has only the names of formulas.
///
/// The functions of the family's ops for such formulas are in [`formulas`]: `use pointwise::formulas;`.
pub mod prelude {
    pub use pointwise_core::op::Index;
    pub use pointwise_core::rows::{PerRow, Place, Row};
    pub use pointwise_core::{BinaryOp, Bits, Num, RandomWord, Real, TernaryOp, UnaryOp, Value};
    pub use pointwise_macros::op;

    pub use crate::{
        DType, Device, Error, ErrorKind, F8E4M3, F8E5M2, Number, Operand, Philox, Result, Scalar, Shape, Stream,
        Tensor, TensorView, TensorViewMut, bf16, f16, kernels, ops,
    };
}

/// The names that the modules of the family import, on the device from `pointwise-device`. No part of the API.
#[doc(hidden)]
#[cfg(feature = "family")]
pub mod __family {
    pub use pointwise_core::dual::activations;
    pub use pointwise_core::rows::{PerRow, Place, Row};
    pub use pointwise_core::{Bits, Num, Real, Value};
    pub use pointwise_macros::family_op as op;

    pub use crate::family::rewrites;
}

/// The names that the macros of this crate use in their output. No part of the API.
#[doc(hidden)]
pub mod __private {
    pub use pointwise_core::formula::source;
    pub use {inventory, pointwise_core as core};

    #[cfg(feature = "emulator")]
    pub use crate::cuda::with_kernel;
    pub use crate::embed::{Kernels, Pack, Packed};
    pub use crate::kernel::{
        Declared, GeneratorTyped, Lookup, OpDef, Place, Typed, TypedRows, oracle, reference, reference_of_rows, result,
        results,
    };

    /// Macros that include files at compile time, by names of this crate.
    pub mod files {
        pub use core::{concat, env, include, include_bytes, include_str};
    }

    /// The loops over elements on the CPU.
    pub mod cpu {
        pub use crate::cpu::*;
    }
}
