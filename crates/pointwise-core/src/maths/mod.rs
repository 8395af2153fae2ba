//! Accurate f32 maths, the same source for the GPU and the CPU.
//!
//! Free functions, all inlined, on scalars: no tables in memory, no calls, no branches but the rare paths of
//! [`prim::rarely`] and the loop of [`fmod()`]. A CPU loop around them becomes vector code where it is compiled with
//! FMA; as PTX they use registers alone. Sums of products are written with [`prim::fma`], so that neither compiler has
//! anything left to contract and both give the same bits, but for the last bit of a reciprocal (see [`prim`]).
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

pub use erf::{erf, erfc, gelu, normal_cdf};
pub use exp::{exp, exp2, expm1};
pub use fmod::{floor_divide, fmod, remainder};
pub use hyperbolic::{gelu_tanh, mish, sigmoid, silu, tanh};
pub use log::{ln, log1p, log2, softplus1};
pub use pow::pow;
pub use prim::{fast_div, maximum, minimum};
pub use root::{lerp, rsqrt};
pub use trig::{cos, is_far, sin, sincos, sincos_tight, sincos_tight_far, sincos_tight_near, sincospi};

/// Whether a formula, as an [`OpInfo`](crate::OpInfo) has it, uses a function of [`Real`](crate::Real) or [`Num`](crate::Num)
/// with a long path for few arguments, which is code wherever the formula is written out.
pub const fn has_rare_path(formula: &str) -> bool {
    const LONG: [&[u8]; 5] = [b".sin()", b".cos()", b".pow(", b".remainder(", b".floor_divide("];
    let text = formula.as_bytes();
    let mut k = 0;
    while k < LONG.len() {
        let mut at = 0;
        while at + LONG[k].len() <= text.len() {
            let mut same = 0;
            while same < LONG[k].len() && text[at + same] == LONG[k][same] {
                same += 1;
            }
            if same == LONG[k].len() {
                return true;
            }
            at += 1;
        }
        k += 1;
    }
    false
}

#[cfg(test)]
mod tests {
    #[test]
    fn formulas_with_a_rare_path() {
        use super::has_rare_path;
        assert!(has_rare_path("x.sin()") && has_rare_path("{ let s = (a * x).cos(); s }") && has_rare_path("a.pow(b)"));
        assert!(!has_rare_path("x.gelu()") && !has_rare_path("x.asin(y)") && !has_rare_path(""));
    }
}
