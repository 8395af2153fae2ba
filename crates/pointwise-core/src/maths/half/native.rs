//! The operations of the machine, and the functions made of them.

use duplicate::duplicate_item;

use super::Approx;
use crate::info::BinaryFunction;
#[cfg(target_arch = "nvptx64")]
use crate::maths::prim::ptx;
use crate::maths::{prim, single};
use crate::num::{Short, Signed};

/// The operations of the machine: approximate instructions on the GPU, the accurate functions on the CPU.
#[derive(Clone, Copy, Debug)]
pub struct Native;

#[cfg(target_arch = "nvptx64")]
impl Approx for Native {
    #[duplicate_item(
        name             instruction;
        [ex2]            ["ex2.approx.f32 {}, {};"];
        [ex2_flush]      ["ex2.approx.ftz.f32 {}, {};"];
        [lg2]            ["lg2.approx.f32 {}, {};"];
        [lg2_flush]      ["lg2.approx.ftz.f32 {}, {};"];
        // The compiler would clear the sign bit by an instruction, which the assembler does not make part of the
        // operand.
        [lg2_magnitude]  ["{{ .reg .f32 m; abs.f32 m, {1}; lg2.approx.ftz.f32 {0}, m; }}"];
        [rcp]            ["rcp.approx.ftz.f32 {}, {};"];
        [recip]          ["rcp.approx.f32 {}, {};"];
        [rsq]            ["rsqrt.approx.f32 {}, {};"];
    )]
    #[inline(always)]
    fn name(x: f32) -> f32 {
        ptx!(instruction, x)
    }
}

#[cfg(not(target_arch = "nvptx64"))]
impl Approx for Native {
    #[duplicate_item(name function; [ex2] [exp2]; [lg2] [log2]; [log2] [log2])]
    #[inline(always)]
    fn name(x: f32) -> f32 {
        crate::maths::function(x)
    }
    #[inline(always)]
    fn ex2_flush(x: f32) -> f32 {
        // Zero where the GPU's is: a tail that an infinity is multiplied with.
        let y = crate::maths::exp2(x);
        if y < f32::MIN_POSITIVE { 0.0 } else { y }
    }
    #[inline(always)]
    fn lg2_flush(x: f32) -> f32 {
        crate::maths::log2(if x.abs() < f32::MIN_POSITIVE { 0.0 } else { x })
    }
    #[duplicate_item(name; [rcp]; [recip])]
    #[inline(always)]
    fn name(x: f32) -> f32 {
        1.0 / x
    }
    #[inline(always)]
    fn rsq(x: f32) -> f32 {
        1.0 / prim::sqrt(x)
    }
    // A CPU has no approximate instructions: these functions cost it less in their accurate form.
    #[duplicate_item(
        name; [exp]; [expm1]; [expm1_negative]; [ln]; [log1p]; [tanh]; [silu]; [softplus]; [mish]
    )]
    #[inline(always)]
    fn name(x: f32) -> f32 {
        single::name(x)
    }
    #[duplicate_item(name; [over_twice_sqrt]; [times_exp]; [times_sigmoid]; [pow])]
    #[inline(always)]
    fn name(a: f32, x: f32) -> f32 {
        single::name(a, x)
    }
}

#[duplicate_item(
    name               text;
    [recip]            ["`1 / x`."];
    [exp]              ["`e^x`."];
    [exp2]             ["`2^x`."];
    [expm1]            ["`e^x - 1`, accurate near 0."];
    [expm1_negative]   ["`e^x - 1` for `x <= 0`, accurate near 0."];
    [ln]               ["Natural logarithm, accurate near 1."];
    [log1p]            ["`ln(1 + x)`, accurate near 0."];
    [sin]              ["Sine of an angle in radians, for every angle."];
    [cos]              ["Cosine of an angle in radians, for every angle."];
    [tanh]             ["Hyperbolic tangent."];
    [sigmoid]          ["`1 / (1 + e^-x)`, accurate in the far negative tail."];
    [silu]             ["`x / (1 + e^-x)`; NaN at -Inf."];
    [erf]              ["Error function."];
    [normal_cdf]       ["`erfc(-x / sqrt 2) / 2`, accurate in the far negative tail."];
    [normal_density]   ["`e^(-x^2 / 2) / sqrt(2 pi)`."];
    [gelu]             ["`x normal_cdf(x)`; NaN at -Inf."];
    [gelu_tanh]        ["`x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) / 2`; NaN at -Inf."];
    [softplus]         ["`ln(1 + e^x)` without overflow."];
    [mish]             ["`x tanh(ln(1 + e^x))`; NaN at -Inf."];
    [mish_derivative]  ["The derivative of `mish`; NaN at both infinities."];
    [rsqrt]            ["`1 / sqrt(x)`; `-0` gives -Inf."];
)]
#[doc = text]
#[inline(always)]
pub fn name(x: f32) -> f32 {
    Native::name(x)
}

#[duplicate_item(
    name               text;
    [over_twice_sqrt]  ["`a / (2 sqrt(x))`."];
    [times_exp]        ["`a e^x`."];
    [times_sigmoid]    ["`a / (1 + e^-x)`."];
)]
#[doc = text]
#[inline(always)]
pub fn name(a: f32, x: f32) -> f32 {
    Native::name(a, x)
}

/// Square root, correctly rounded in f32.
#[inline(always)]
pub fn sqrt(x: f32) -> f32 {
    prim::sqrt(x)
}

/// C99 `pow`.
#[inline(always)]
pub fn pow(a: f32, b: f32) -> f32 {
    Native::pow(a, b)
}

/// `b a^(b - 1)`, and `a^b ln(a)` or 0 for `a = 0` and `b >= 0`. Exponents of magnitude 2^16 and more count as even
/// integers.
#[inline(always)]
pub fn pow_gradients(a: f32, b: f32) -> (f32, f32) {
    Native::pow_gradients(a, b)
}

/// `a / b`, correctly rounded in f32.
#[inline(always)]
pub fn div(a: f32, b: f32) -> f32 {
    a / b
}

/// Returns the corrections for the sign of `a` in a function's short path, for results of 16 and 32 bits. Only powers
/// have them.
#[inline(always)]
pub fn signed(a: f32, b: f32, function: BinaryFunction) -> Signed<f32> {
    match function {
        BinaryFunction::Power => super::power::signed::<Native>(a, b),
        BinaryFunction::Quotient
        | BinaryFunction::TruncatedQuotient
        | BinaryFunction::FlooredQuotient
        | BinaryFunction::Modulo => Signed::unknown(a),
    }
}

/// Computes a function by its short path, for numbers of 16 bits; a quotient only for f16.
#[inline(always)]
pub fn short(a: f32, b: f32, function: BinaryFunction) -> Short<f32> {
    match function {
        BinaryFunction::Quotient => Short::known(Native::quotient_of_f16(a, b), true),
        BinaryFunction::TruncatedQuotient => Short::known(prim::trunc(Native::quotient_of_f16(a, b)), true),
        BinaryFunction::FlooredQuotient | BinaryFunction::Modulo => single::short(a, b, function),
        BinaryFunction::Power => super::power::short::<Native>(a, b),
    }
}
