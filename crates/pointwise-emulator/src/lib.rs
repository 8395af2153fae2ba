//! Executes the PTX of GPU kernels on the CPU, and checks every memory access.
//!
//! A [`Gpu`] is one device's memory. [`Module::parse`] decodes PTX text, and [`Gpu::launch`] runs one of its
//! [`Kernel`]s to the end:
//!
//! ```
//! use pointwise_emulator::{Gpu, Launch, Module, Settings};
//!
//! let module = Module::parse(
//!     ".version 7.8
//!      .target sm_90
//!      .address_size 64
//!      .visible .entry twice(.param .u64 twice_param_0)
//!      {
//!          .reg .b32 %r<3>;
//!          .reg .b64 %rd<3>;
//!          ld.param.b64 %rd1, [twice_param_0];
//!          mov.u32 %r1, %tid.x;
//!          mul.wide.u32 %rd2, %r1, 4;
//!          add.s64 %rd1, %rd1, %rd2;
//!          ld.global.u32 %r2, [%rd1];
//!          add.s32 %r2, %r2, %r2;
//!          st.global.u32 [%rd1], %r2;
//!          ret;
//!      }",
//! )?;
//! let kernel = module.kernel("twice").expect("it is there");
//! let gpu = Gpu::new(Settings::default());
//! let address = gpu.allocate(16)?;
//! gpu.write(address, &[1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4, 0, 0, 0])?;
//! let arguments = address.to_le_bytes();
//! let mut launch = Launch::new([1, 1, 1], [4, 1, 1], &arguments);
//! gpu.launch(&kernel, &launch)?;
//! let mut bytes = [0; 16];
//! gpu.read(address, &mut bytes)?;
//! assert_eq!(bytes, [2, 0, 0, 0, 4, 0, 0, 0, 6, 0, 0, 0, 8, 0, 0, 0]);
//!
//! // One thread more than there are elements.
//! launch.block = [5, 1, 1];
//! let fault = gpu.launch(&kernel, &launch).unwrap_err();
//! assert!(fault.to_string().contains("thread (4, 0, 0): it reads 4 bytes"), "{fault}");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The crate's `README.md` lists what a run proves and what it does not.
#![deny(unsafe_code)]
#![warn(missing_docs)]

mod check;
mod decode;
mod fault;
mod machine;
mod memory;
mod numerics;
mod program;
mod settings;

pub use decode::{Kernel, LoadError, Module};
pub use fault::{Earlier, Fault, Finding, Problem, Touch};
pub use machine::launch::{Counts, Launch};
pub use memory::{Gpu, MemoryError};
pub use program::Parameter;
pub use settings::{Approx, Settings, SettingsError};
