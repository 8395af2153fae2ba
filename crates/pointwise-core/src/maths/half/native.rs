//! The operations of the machine, and the functions made of them.

use super::Approx;
use crate::info::BinaryFunction;
use crate::maths::prim;
use crate::num::{Short, Signed};

/// The operations of the machine: approximate instructions on the GPU, the accurate functions on the CPU.
#[derive(Clone, Copy, Debug)]
pub struct Native;

#[cfg(target_arch = "nvptx64")]
macro_rules! ptx {
    ($text:literal, $x:expr) => {{
        let y: f32;
        // SAFETY: one instruction from a register to a register.
        unsafe {
            core::arch::asm!($text, out(reg32) y, in(reg32) $x, options(pure, nomem, nostack));
        }
        y
    }};
}

#[cfg(target_arch = "nvptx64")]
impl Approx for Native {
    #[inline(always)]
    fn ex2(x: f32) -> f32 {
        ptx!("ex2.approx.f32 {}, {};", x)
    }
    #[inline(always)]
    fn ex2_flush(x: f32) -> f32 {
        ptx!("ex2.approx.ftz.f32 {}, {};", x)
    }
    #[inline(always)]
    fn lg2(x: f32) -> f32 {
        ptx!("lg2.approx.f32 {}, {};", x)
    }
    #[inline(always)]
    fn lg2_flush(x: f32) -> f32 {
        ptx!("lg2.approx.ftz.f32 {}, {};", x)
    }
    #[inline(always)]
    fn lg2_magnitude(x: f32) -> f32 {
        // The compiler would clear the sign bit by itself, which the assembler does not take for part of the operand.
        ptx!("{{ .reg .f32 m; abs.f32 m, {1}; lg2.approx.ftz.f32 {0}, m; }}", x)
    }
    #[inline(always)]
    fn rcp(x: f32) -> f32 {
        ptx!("rcp.approx.ftz.f32 {}, {};", x)
    }
    #[inline(always)]
    fn recip(x: f32) -> f32 {
        ptx!("rcp.approx.f32 {}, {};", x)
    }
    #[inline(always)]
    fn rsq(x: f32) -> f32 {
        ptx!("rsqrt.approx.f32 {}, {};", x)
    }
}

/// What costs a CPU, for which nothing is approximate, less in its accurate form.
#[cfg(not(target_arch = "nvptx64"))]
macro_rules! accurate {
    ($($name:ident)*) => { $(
        #[inline(always)]
        fn $name(x: f32) -> f32 {
            crate::maths::single::$name(x)
        }
    )* };
}

#[cfg(not(target_arch = "nvptx64"))]
impl Approx for Native {
    #[inline(always)]
    fn ex2(x: f32) -> f32 {
        crate::maths::exp2(x)
    }
    #[inline(always)]
    fn ex2_flush(x: f32) -> f32 {
        // Zero where the GPU's is: a tail that an infinity is multiplied with.
        let y = crate::maths::exp2(x);
        if y < f32::MIN_POSITIVE { 0.0 } else { y }
    }
    #[inline(always)]
    fn lg2(x: f32) -> f32 {
        crate::maths::log2(x)
    }
    #[inline(always)]
    fn lg2_flush(x: f32) -> f32 {
        crate::maths::log2(if x.abs() < f32::MIN_POSITIVE { 0.0 } else { x })
    }
    #[inline(always)]
    fn log2(x: f32) -> f32 {
        crate::maths::log2(x)
    }
    #[inline(always)]
    fn rcp(x: f32) -> f32 {
        1.0 / x
    }
    #[inline(always)]
    fn recip(x: f32) -> f32 {
        1.0 / x
    }
    #[inline(always)]
    fn rsq(x: f32) -> f32 {
        1.0 / prim::sqrt(x)
    }
    #[inline(always)]
    fn over_twice_sqrt(a: f32, x: f32) -> f32 {
        crate::maths::single::over_twice_sqrt(a, x)
    }
    #[inline(always)]
    fn times_exp(a: f32, x: f32) -> f32 {
        crate::maths::single::times_exp(a, x)
    }
    #[inline(always)]
    fn times_sigmoid(a: f32, x: f32) -> f32 {
        crate::maths::single::times_sigmoid(a, x)
    }
    #[inline(always)]
    fn pow(a: f32, b: f32) -> f32 {
        crate::maths::single::pow(a, b)
    }
    accurate!(exp expm1 expm1_negative ln log1p tanh silu softplus mish);
}

macro_rules! native {
    ($($(#[$doc:meta])* $name:ident($($x:ident),+);)*) => { $(
        $(#[$doc])*
        #[inline(always)]
        pub fn $name($($x: f32),+) -> f32 {
            Native::$name($($x),+)
        }
    )* };
}

native! {
    /// `1 / x`.
    recip(x);
    /// `e^x`.
    exp(x);
    /// `2^x`.
    exp2(x);
    /// `e^x - 1`, accurate near 0.
    expm1(x);
    /// `e^x - 1` for `x <= 0`, accurate near 0.
    expm1_negative(x);
    /// Natural logarithm, accurate near 1.
    ln(x);
    /// `ln(1 + x)`, accurate near 0.
    log1p(x);
    /// Sine of an angle in radians, for every angle.
    sin(x);
    /// Cosine of an angle in radians, for every angle.
    cos(x);
    /// Hyperbolic tangent.
    tanh(x);
    /// `1 / (1 + e^-x)`, accurate in the far negative tail.
    sigmoid(x);
    /// `x / (1 + e^-x)`; NaN at -Inf.
    silu(x);
    /// Error function.
    erf(x);
    /// `erfc(-x / sqrt 2) / 2`, accurate in the far negative tail.
    normal_cdf(x);
    /// `e^(-x^2 / 2) / sqrt(2 pi)`.
    normal_density(x);
    /// `x normal_cdf(x)`; NaN at -Inf.
    gelu(x);
    /// `x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) / 2`; NaN at -Inf.
    gelu_tanh(x);
    /// `ln(1 + e^x)` without overflow.
    softplus(x);
    /// `x tanh(ln(1 + e^x))`; NaN at -Inf.
    mish(x);
    /// The derivative of `mish`; NaN at both infinities.
    mish_derivative(x);
    /// `1 / sqrt(x)`; `-0` gives -Inf.
    rsqrt(x);
    /// `a / (2 sqrt(x))`.
    over_twice_sqrt(a, x);
    /// `a e^x`.
    times_exp(a, x);
    /// `a / (1 + e^-x)`.
    times_sigmoid(a, x);
    /// C99 `pow`.
    pow(a, b);
}

/// Square root, correctly rounded in f32.
#[inline(always)]
pub fn sqrt(x: f32) -> f32 {
    prim::sqrt(x)
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

/// What the sign of `a` makes of a function's short path, in results of 16 and of 32 bits. Only powers ask.
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

/// A function by its short path: of numbers of 16 bits, quotients of f16.
#[inline(always)]
pub fn short(a: f32, b: f32, function: BinaryFunction) -> Short<f32> {
    match function {
        BinaryFunction::Quotient => Short::known(Native::quotient_of_f16(a, b), true),
        BinaryFunction::TruncatedQuotient => Short::known(prim::trunc(Native::quotient_of_f16(a, b)), true),
        BinaryFunction::FlooredQuotient | BinaryFunction::Modulo => crate::maths::single::short(a, b, function),
        BinaryFunction::Power => super::power::short::<Native>(a, b),
    }
}
