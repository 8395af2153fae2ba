//! Judges the results of ops that are written with [`pointwise`]: use it in the tests of your own ops.
//!
//! [`Op::check`] runs an op of yours on a device and compares every result with the op's formula at f64:
//!
//! ```
//! use pointwise::Device;
//! use pointwise_testkit::Op;
//!
//! // `Silu` is the struct that `#[op]` made of the function `silu`.
//! Op::from(pointwise::ops::Silu::def()).check(&Device::cpu())?;
//! # Ok::<(), pointwise_testkit::Error>(())
//! ```
//!
//! [`check_all`] does so for all ops that `#[op]` made in a package.
//!
//! Its parts are public, for tests of another kind:
//!
//! - [`inputs`]: special values, every code of the small types, values of all magnitudes, by [`Random`];
//! - [`params`]: parameters to test with;
//! - [`layouts`]: views of all shapes and strides, among bytes that must stay as they are;
//! - [`judge`]: distances in ULP, and [`Report`], which compares results with an op's [`Accuracy`](pointwise::info::Accuracy);
//! - [`calls`]: calls by definition, and checks of their results;
//! - [`formulas`]: ops that a formula at f64 gives other results for;
//! - `fusion`: random graphs as fused kernels.
//!
//! | feature | what it adds |
//! |---|---|
//! | `family` | `fusion`: random graphs of the family's ops, as fused kernels |

pub mod calls;
mod declared;
pub mod formulas;
#[cfg(feature = "family")]
pub mod fusion;
mod gradients;
pub mod inputs;
pub mod judge;
pub mod layouts;
mod op;
pub mod params;
mod random;

pub use declared::{check_all, check_op, largest_error};
pub use judge::Report;
pub use op::{Error, Op};
pub use random::Random;

/// Runs `$body` with `$E` as the Rust type of the element type `$dtype`.
#[macro_export]
macro_rules! with_element {
    ($dtype:expr, $E:ident => $body:expr) => {
        $crate::__with_element!($dtype, $E => $body)
    };
}

#[doc(hidden)]
pub use pointwise::element::with_element as __with_element;
