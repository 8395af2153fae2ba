//! Compiles GPU kernels written in Rust to PTX, checks the result and embeds it in a host crate.
//!
//! The `main` of a build script, if a module of the package has ops ([`ops`]):
//!
//! ```no_run
//! pointwise_build::ops("src/ops.rs").build();
//! ```
//!
//! And if a kernel crate is in the folder `kernels` beside it:
//!
//! ```no_run
//! pointwise_build::Kernels::new("kernels").build();
//! ```
//!
//! The host crate includes the result with `pointwise::include_kernels!()`, which makes a static `KERNELS` of it.
//!
//! The steps for a kernel crate:
//!
//! 1. [`toolchain`] finds a Rust compiler that comes with the source of its own library.
//! 2. [`Kernels::compile`] runs cargo for each target, in parallel, with separate target directories. For a newer
//!    target it compiles only what differs from an older one (entries with fp8 elements), provided that the entries are
//!    made by the macros of `pointwise-device`. The `Cargo.lock` of the kernel crate, or of its workspace, is written
//!    and brought up to date first, as any run of cargo does.
//! 3. [`ptx`] takes the assembly text apart, and [`lint`] refuses code that must not be in it.
//! 4. [`Artifacts`] packs the entries in small compressed groups, beside a table that finds each by name, so that the
//!    host loads one entry as one module.
//! 5. [`ptxas`] assembles the text and reads the assembler's report. This step is optional: no NVIDIA tool is needed to
//!    build.
//!
//! Cargo runs inside of cargo, and respects the limits of the outer one. `CARGO_NET_OFFLINE` and configuration files
//! (`net.offline`) hold for both. A build script does not get `--locked`, `--offline` and `--frozen`: on Linux it reads
//! them from the arguments of the cargo that started it. On other systems, and if they come from an alias, only the
//! variable and the configuration count. The inner cargo uses the network only for files that are not on the machine.
//!
//! A package can ship its kernels: [`Artifacts::write`] puts them in a folder, `prebuilt` beside the package's
//! `Cargo.toml`. From then on [`Kernels::build`] embeds them as they are, and needs no compiler for device code.
//!
//! # Environment
//!
//! | Variable | Meaning |
//! |---|---|
//! | `POINTWISE_DEVICE_RUSTC` | the compiler for device code; `none` builds no kernels at all |
//! | `POINTWISE_CUBINS` | compute capabilities to embed machine code for, such as `90` or `80,90` (requires ptxas) |
//! | `POINTWISE_PTXAS` | the path of ptxas |
//! | `POINTWISE_VENV` | a Python virtual environment whose `nvidia-cuda-nvcc` package has ptxas |
//! | `CUDA_HOME`, `CUDA_PATH` | CUDA toolkits, which are searched for ptxas after `PATH` |
#![warn(missing_docs)]

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod artifacts;
mod cargo;
mod cubin;
pub mod doctor;
mod error;
mod facts;
mod inputs;
mod kernels;
mod lanes;
pub mod lint;
mod ops;
mod outside;
mod pack;
mod parallel;
pub mod ptx;
pub mod ptxas;
mod sm;
pub mod toolchain;

pub use artifacts::{Artifacts, EntryModule, GENERATED, TargetArtifacts};
pub use error::Error;
pub use kernels::{CUBINS_VARIABLE, Kernels};
pub use ops::{Ops, ops};
pub use sm::Sm;
pub use toolchain::{Toolchain, ToolchainKind};
