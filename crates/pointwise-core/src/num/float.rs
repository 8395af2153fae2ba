//! `f32`, and what the compute types that wrap one have in common.

use super::{Num, Real, Value};
use crate::maths;

macro_rules! operators {
    ($t:ident: $($trait:ident $method:ident $op:tt),*) => { $(
        impl $trait for $t {
            type Output = Self;
            #[inline(always)]
            fn $method(self, other: Self) -> Self {
                $t(self.0 $op other.0)
            }
        }
    )* };
}

macro_rules! divide_and_negate {
    ($($t:ident: $div:path;)*) => { $(
        impl Div for $t {
            type Output = Self;
            #[inline(always)]
            fn div(self, divisor: Self) -> Self {
                $t($div(self.0, divisor.0))
            }
        }

        impl Neg for $t {
            type Output = Self;
            #[inline(always)]
            fn neg(self) -> Self {
                $t(-self.0)
            }
        }
    )* };
}

/// `Value` and the exact part of `Num` for a type that wraps or is an `f32`.
macro_rules! f32_like {
    ($t:ty, $wrap:expr, |$x:ident| $get:expr, $functions:path) => {
        impl Value for $t {
            const ZERO: Self = $wrap(0.0);
            const ONE: Self = $wrap(1.0);
            #[inline(always)]
            fn truth(self) -> bool {
                let $x = self;
                $get != 0.0
            }
            #[inline(always)]
            fn is_nan(self) -> bool {
                let $x = self;
                $get != $get
            }
            #[inline(always)]
            fn is_infinite(self) -> bool {
                let $x = self;
                ($get).abs() == f32::INFINITY
            }
            #[inline(always)]
            fn short(self, other: Self, function: crate::BinaryFunction) -> crate::Short<Self> {
                use $functions as functions;
                let (a, b) = (
                    { let $x = self; $get },
                    { let $x = other; $get },
                );
                functions::short(a, b, function).map($wrap)
            }
            #[inline(always)]
            fn signed(self, other: Self, function: crate::BinaryFunction) -> crate::Signed<Self> {
                let (a, b) = (
                    { let $x = self; $get },
                    { let $x = other; $get },
                );
                maths::half::signed(a, b, function).map($wrap)
            }
        }

        impl Num for $t {
            f32_like!(@num $wrap, |$x| $get;
                abs: f32::abs, floor: maths::prim::floor, ceil: maths::prim::ceil,
                trunc: maths::prim::trunc, round_ties_even: maths::prim::round_ties_even;
                maximum: maths::prim::maximum, minimum: maths::prim::minimum);
            f32_like!(@two $functions, $wrap, |$x| $get; remainder, floor_divide, trunc_divide, pow);
            #[inline(always)]
            fn round_decimals(self, decimals: Self) -> Self {
                let (x, d) = (
                    { let $x = self; $get },
                    { let $x = decimals; $get },
                );
                $wrap(maths::prim::round_decimals(x, d))
            }
            #[inline(always)]
            fn scaled_add(self, scale: Self, addend: Self) -> Self {
                Real::mul_add(self, scale, addend)
            }
        }

        impl Real for $t {
            #[inline(always)]
            fn constant(value: f64) -> Self {
                $wrap(value as f32)
            }
            #[inline(always)]
            fn in_range(self) -> Self {
                self
            }
            #[inline(always)]
            fn to_f64(self) -> f64 {
                let $x = self;
                $get as f64
            }
            #[inline(always)]
            fn mul_add(self, a: Self, b: Self) -> Self {
                let (x, y, z) = (
                    { let $x = self; $get },
                    { let $x = a; $get },
                    { let $x = b; $get },
                );
                $wrap(maths::prim::fma(x, y, z))
            }
            #[inline(always)]
            fn pow_gradients(self, exponent: Self) -> (Self, Self) {
                use $functions as functions;
                let (a, b) = (
                    { let $x = self; $get },
                    { let $x = exponent; $get },
                );
                let (base, power) = functions::pow_gradients(a, b);
                ($wrap(base), $wrap(power))
            }
            #[inline(always)]
            fn if_above(self, limit: Self, yes: Self, no: Self) -> Self {
                let get = |v: Self| {
                    let $x = v;
                    $get
                };
                $wrap(maths::prim::if_above(get(self), get(limit), get(yes), get(no)))
            }
            f32_like!(@two $functions, $wrap, |$x| $get; over_twice_sqrt, times_exp, times_sigmoid);
            f32_like!(@real $functions, $wrap, |$x| $get;
                sqrt sqrt, rsqrt rsqrt, recip recip, exp exp, exp_m1 expm1,
                exp_m1_negative expm1_negative, ln ln, ln_1p log1p, sin sin, cos cos,
                tanh tanh, erf erf, normal_cdf normal_cdf, normal_density normal_density, sigmoid sigmoid,
                softplus softplus, silu silu, mish mish, mish_derivative mish_derivative,
                gelu gelu, gelu_tanh gelu_tanh);
        }
    };
    (@num $wrap:expr, |$x:ident| $get:expr; $($one:ident: $f1:path),*; $($two:ident: $f2:path),*) => {
        $(#[inline(always)]
        fn $one(self) -> Self {
            let $x = self;
            $wrap($f1($get))
        })*
        $(#[inline(always)]
        fn $two(self, other: Self) -> Self {
            let (a, b) = (
                { let $x = self; $get },
                { let $x = other; $get },
            );
            $wrap($f2(a, b))
        })*
    };
    (@two $functions:path, $wrap:expr, |$x:ident| $get:expr; $($name:ident),*) => {
        $(#[inline(always)]
        fn $name(self, other: Self) -> Self {
            use $functions as functions;
            let (a, b) = (
                { let $x = self; $get },
                { let $x = other; $get },
            );
            $wrap(functions::$name(a, b))
        })*
    };
    (@real $functions:path, $wrap:expr, |$x:ident| $get:expr; $($method:ident $function:ident),*) => {
        $(#[inline(always)]
        fn $method(self) -> Self {
            use $functions as functions;
            let $x = self;
            $wrap(functions::$function($get))
        })*
    };
}

#[inline(always)]
const fn identity(x: f32) -> f32 {
    x
}

f32_like!(f32, identity, |x| x, crate::maths::single);
