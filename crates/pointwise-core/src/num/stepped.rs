//! `f32` steps with the oracle's functions.

/// `f32` arithmetic with functions that are exact but for one rounding. The reference for formulas whose steps are
/// rounded to f32, as in PyTorch; the oracle does not round them.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct Stepped(pub f32);

// The GPU has no oracle, and no kernel has numbers of this type.
#[cfg(target_arch = "nvptx64")]
pub(super) use crate::maths::single as functions;

/// The oracle's functions, rounded to f32.
#[cfg(not(target_arch = "nvptx64"))]
pub(super) mod functions {
    use duplicate::duplicate_item;

    pub(crate) use self::exp as exp_negative;
    pub(crate) use self::exp as exp_negative_16;
    use super::Stepped;
    pub(crate) use crate::maths::rough::short;
    pub(crate) use crate::maths::single::{floor_divide, over_twice_sqrt, remainder, trunc_divide};
    use crate::num::{Num, Real};

    #[duplicate_item(name of; [expm1] [exp_m1]; [expm1_negative] [exp_m1_negative]; [log1p] [ln_1p])]
    pub(crate) fn name(x: f32) -> f32 {
        Real::of(f64::from(x)) as f32
    }

    #[duplicate_item(
        name; [sqrt]; [rsqrt]; [recip]; [exp]; [ln]; [sin]; [cos]; [tanh]; [erf]; [normal_cdf]; [normal_density];
        [sigmoid]; [softplus]; [silu]; [mish]; [gelu]; [gelu_tanh]
    )]
    pub(crate) fn name(x: f32) -> f32 {
        Real::name(f64::from(x)) as f32
    }

    pub(crate) fn times_exp(a: f32, x: f32) -> f32 {
        a * exp(x)
    }

    pub(crate) fn times_sigmoid(a: f32, x: f32) -> f32 {
        a * sigmoid(x)
    }

    pub(crate) fn pow(a: f32, b: f32) -> f32 {
        Num::pow(f64::from(a), f64::from(b)) as f32
    }

    pub(crate) fn pow_gradients(a: f32, b: f32) -> (f32, f32) {
        (b * pow(a, b - 1.0), if a == 0.0 && b >= 0.0 { 0.0 } else { pow(a, b) * ln(a) })
    }

    pub(crate) fn mish_derivative(x: f32) -> f32 {
        crate::num::mish_derivative(Stepped(x)).0
    }
}
