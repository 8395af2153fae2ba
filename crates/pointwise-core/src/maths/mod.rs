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

pub use erf::{erf, erfc, gelu, normal_cdf, normal_density};
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
    let mut k = 0;
    while k < LONG.len() {
        if find(formula.as_bytes(), LONG[k]).is_some() {
            return true;
        }
        k += 1;
    }
    false
}

/// Where `part` first stands in `text`.
const fn find(text: &[u8], part: &[u8]) -> Option<usize> {
    let mut at = 0;
    while at + part.len() <= text.len() {
        if stands_at(text, at, part) {
            return Some(at);
        }
        at += 1;
    }
    None
}

/// Whether `part` stands in `text` at a place.
const fn stands_at(text: &[u8], at: usize, part: &[u8]) -> bool {
    let mut same = 0;
    while same < part.len() && at + same < text.len() && text[at + same] == part[same] {
        same += 1;
    }
    same == part.len()
}

/// The operand whose sine or cosine a formula takes: `x` of `x.sin()`.
pub const fn angle_operand(info: &crate::OpInfo) -> Option<usize> {
    const FUNCTIONS: [&[u8]; 2] = [b".sin()", b".cos()"];
    let text = info.formula.as_bytes();
    let mut k = 0;
    while k < FUNCTIONS.len() {
        if let Some(end) = find(text, FUNCTIONS[k]) {
            let mut operand = 0;
            while operand < info.operands.len() {
                let name = info.operands[operand].as_bytes();
                if name.len() <= end && stands_at(text, end - name.len(), name) {
                    return Some(operand);
                }
                operand += 1;
            }
        }
        k += 1;
    }
    None
}

/// The largest magnitude of an angle whose reduction is a short one, in all compute types.
pub const SMALL_ANGLE: f32 = if trig::LARGE < half::LARGE_ANGLE { trig::LARGE } else { half::LARGE_ANGLE };

/// Tells the compiler that an angle needs no long reduction. That it is worked out for no element is worth a loop of its
/// own on the CPU, where [`prim::rarely`] works out both, and on a GPU saves the code of it for each lane of a vector.
///
/// # Safety
/// The magnitude is at most [`SMALL_ANGLE`].
#[inline(always)]
pub unsafe fn assume_small_angle(angle: f32) {
    // As the conditions stand in `sin` and `cos`: in another form they are not recognised.
    // SAFETY: the caller's promise.
    unsafe {
        core::hint::assert_unchecked(trig::is_small(angle));
        core::hint::assert_unchecked(half::is_small(angle));
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn formulas_with_a_rare_path() {
        use super::has_rare_path;
        assert!(has_rare_path("x.sin()") && has_rare_path("{ let s = (a * x).cos(); s }") && has_rare_path("a.pow(b)"));
        assert!(!has_rare_path("x.gelu()") && !has_rare_path("x.asin(y)") && !has_rare_path(""));
    }

    #[test]
    fn operands_that_are_angles() {
        use super::angle_operand;
        use crate::family::{backward, unary};
        let find = |ops: &[crate::OpInfo], name: &str| angle_operand(ops.iter().find(|op| op.name == name).unwrap());
        assert_eq!((find(unary::OPS, "sin"), find(unary::OPS, "exp")), (Some(0), None));
        assert_eq!((find(backward::OPS, "sin_backward"), find(backward::OPS, "cos_backward")), (Some(1), Some(1)));
    }
}
