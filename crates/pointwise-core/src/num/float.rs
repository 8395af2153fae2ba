//! `f32`, and the compute types that wrap one.

use core::convert::identity;
use core::ops::{Add, Div, Mul, Neg, Sub};

use duplicate::duplicate_item;

use super::{Coarse, Num, Real, Rough, Short, Signed, Stepped, Value, stepped};
use crate::info::BinaryFunction;
use crate::maths::{half, prim, rough, single};

#[duplicate_item(
    Type       wrap        get(x)  functions;
    [f32]      [identity]  [x]     [single];
    [Coarse]   [Coarse]    [x.0]   [half];
    [Rough]    [Rough]     [x.0]   [rough];
    [Stepped]  [Stepped]   [x.0]   [stepped::functions];
)]
const _: () = {
    impl Value for Type {
        const ZERO: Self = wrap(0.0);
        const ONE: Self = wrap(1.0);
        #[inline(always)]
        fn whole(number: i64) -> Self {
            wrap(number as f32)
        }
        #[inline(always)]
        fn is_nan(self) -> bool {
            f32::is_nan(get([self]))
        }
        #[inline(always)]
        fn is_infinite(self) -> bool {
            f32::abs(get([self])) == f32::INFINITY
        }
        #[inline(always)]
        fn short(self, other: Self, function: BinaryFunction) -> Short<Self> {
            functions::short(get([self]), get([other]), function).map(wrap)
        }
        #[inline(always)]
        fn signed(self, other: Self, function: BinaryFunction) -> Signed<Self> {
            half::signed(get([self]), get([other]), function).map(wrap)
        }
    }

    impl Num for Type {
        #[inline(always)]
        fn abs(self) -> Self {
            wrap(f32::abs(get([self])))
        }
        #[duplicate_item(name; [floor]; [ceil]; [trunc]; [round_ties_even])]
        #[inline(always)]
        fn name(self) -> Self {
            wrap(prim::name(get([self])))
        }
        #[duplicate_item(name; [maximum]; [minimum]; [round_decimals])]
        #[inline(always)]
        fn name(self, other: Self) -> Self {
            wrap(prim::name(get([self]), get([other])))
        }
        #[inline(always)]
        fn clamp(self, min: Self, max: Self) -> Self {
            wrap(prim::clamp(get([self]), get([min]), get([max])))
        }
        #[duplicate_item(name; [remainder]; [floor_divide]; [trunc_divide]; [pow])]
        #[inline(always)]
        fn name(self, other: Self) -> Self {
            wrap(functions::name(get([self]), get([other])))
        }
        #[inline(always)]
        fn scaled_add(self, scale: Self, addend: Self) -> Self {
            self.mul_add(scale, addend)
        }
    }

    impl Real for Type {
        #[inline(always)]
        fn constant(value: f64) -> Self {
            wrap(value as f32)
        }
        #[inline(always)]
        fn in_range(self) -> Self {
            self
        }
        #[inline(always)]
        fn to_f64(self) -> f64 {
            get([self]) as f64
        }
        #[inline(always)]
        fn mul_add(self, a: Self, b: Self) -> Self {
            wrap(prim::fma(get([self]), get([a]), get([b])))
        }
        #[inline(always)]
        fn pow_gradients(self, exponent: Self) -> (Self, Self) {
            let (base, power) = functions::pow_gradients(get([self]), get([exponent]));
            (wrap(base), wrap(power))
        }
        #[inline(always)]
        fn if_above(self, limit: Self, yes: Self, no: Self) -> Self {
            wrap(prim::if_above(get([self]), get([limit]), get([yes]), get([no])))
        }
        #[duplicate_item(name; [over_twice_sqrt]; [times_exp]; [times_sigmoid])]
        #[inline(always)]
        fn name(self, x: Self) -> Self {
            wrap(functions::name(get([self]), get([x])))
        }
        #[duplicate_item(name function; [exp_m1] [expm1]; [exp_m1_negative] [expm1_negative]; [ln_1p] [log1p];
            [exp_negative] [exp_negative]; [exp_negative_16] [exp_negative_16])]
        #[inline(always)]
        fn name(self) -> Self {
            wrap(functions::function(get([self])))
        }
        #[duplicate_item(
            name; [sqrt]; [rsqrt]; [recip]; [exp]; [ln]; [sin]; [cos]; [tanh]; [erf]; [normal_cdf]; [normal_density];
            [sigmoid]; [softplus]; [silu]; [mish]; [mish_derivative]; [gelu]; [gelu_tanh]
        )]
        #[inline(always)]
        fn name(self) -> Self {
            wrap(functions::name(get([self])))
        }
    }
};

#[duplicate_item(
    Type       divide;
    [Coarse]   [half::div];
    [Rough]    [rough::div];
    [Stepped]  [half::div];
)]
const _: () = {
    #[duplicate_item(Operator method; [Add] [add]; [Sub] [sub]; [Mul] [mul])]
    impl Operator for Type {
        type Output = Self;
        #[inline(always)]
        fn method(self, other: Self) -> Self {
            Type(self.0.method(other.0))
        }
    }

    impl Div for Type {
        type Output = Self;
        #[inline(always)]
        fn div(self, divisor: Self) -> Self {
            Type(divide(self.0, divisor.0))
        }
    }

    impl Neg for Type {
        type Output = Self;
        #[inline(always)]
        fn neg(self) -> Self {
            Type(-self.0)
        }
    }
};
