//! Accurate f32 maths, the same source for the GPU and the CPU.
//!
//! Free functions, all inlined, on scalars: no tables in memory, no calls, no branches but the rare paths of
//! [`prim::rarely`] and the loop of [`fmod()`]. A CPU loop around them becomes vector code where it is compiled with
//! FMA; as PTX they use registers alone. Sums of products are written with [`prim::fma`], so that neither compiler can
//! contract more, and both give the same bits, except for the last bit of a reciprocal (see [`prim`]).
//!
//! Errors are given in ulp, the distance to the exact value in units of the last place of the f32 next to it, and hold
//! for every input, subnormal inputs and results included. `tests/maths_accuracy.rs` measures them.
//!
//! Polynomials are minimax fits made for this crate (Remez exchange at 64 bits of significand, then the coefficients
//! rounded to f32 one after the other from the lowest order, the others fitted anew each time).

mod erf;
mod exp;
pub mod fmod;
pub mod half;
mod hyperbolic;
mod log;
pub mod phase;
mod pow;
pub mod prim;
mod root;
pub mod rough;
pub mod single;
mod trig;

pub use erf::{erf, erfc, gelu, normal_cdf, normal_density};
pub use exp::{exp, exp2, expm1};
pub use fmod::{floor_divide, fmod, remainder};
pub use hyperbolic::{gelu_tanh, mish, sigmoid, silu, tanh};
pub use log::{ln, log1p, log2, softplus};
pub use pow::pow;
pub use prim::{clamp, maximum, minimum};
pub use root::rsqrt;
pub use trig::{cos, is_far, sin, sincos, sincos_tight, sincos_tight_far, sincos_tight_near, sincospi};

/// The largest magnitude of an angle with a short reduction in all compute types.
pub const SMALL_ANGLE: f32 = if trig::LARGE < half::LARGE_ANGLE { trig::LARGE } else { half::LARGE_ANGLE };

/// Tells the compiler that an angle needs no long reduction. The CPU would compute both reductions for every element,
/// see [`prim::mostly`]: leaving one out is worth a loop of its own. A GPU saves its code for each lane of a vector.
///
/// # Safety
/// The magnitude is at most [`SMALL_ANGLE`].
#[inline(always)]
pub unsafe fn assume_small_angle(angle: f32) {
    // The same conditions as in `sin` and `cos`: compilers do not recognise another form.
    // SAFETY: the caller's promise.
    unsafe {
        core::hint::assert_unchecked(trig::is_small(angle));
        core::hint::assert_unchecked(half::is_small(angle));
    }
}
