#![doc = include_str!("../README.md")]
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
