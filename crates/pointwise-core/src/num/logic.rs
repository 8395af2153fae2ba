//! The compute type of bool.

use core::ops::{Add, BitAnd, BitOr, BitXor, Mul, Neg, Not, Sub};

/// The compute type of bool: addition and maximum are or, multiplication and minimum are and. PyTorch refuses `sub`
/// and `neg` on bool, so no table lists them; here they are exclusive or and the identity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[repr(transparent)]
pub struct Logic(pub bool);

macro_rules! logic {
    ($($trait:ident $method:ident $op:tt),*) => { $(
        impl $trait for Logic {
            type Output = Self;
            #[inline(always)]
            #[allow(clippy::suspicious_arithmetic_impl)] // PyTorch's arithmetic on bool
            fn $method(self, other: Self) -> Self {
                Logic(self.0 $op other.0)
            }
        }
    )* };
}
logic!(Add add |, Sub sub ^, Mul mul &, BitAnd bitand &, BitOr bitor |, BitXor bitxor ^);

impl Not for Logic {
    type Output = Self;
    #[inline(always)]
    fn not(self) -> Self {
        Logic(!self.0)
    }
}

impl Neg for Logic {
    type Output = Self;
    #[inline(always)]
    fn neg(self) -> Self {
        self
    }
}

macro_rules! logic_num {
    ($($method:ident: |$a:ident, $b:ident| $value:expr),*) => {
        whole! { Logic, Logic(false), Logic(true), {
            #[inline(always)]
            fn abs(self) -> Self {
                self
            }
            $(#[inline(always)]
            fn $method(self, other: Self) -> Self {
                let ($a, $b) = (self.0, other.0);
                Logic($value)
            })*
        } }
    };
}
logic_num!(maximum: |a, b| a | b, minimum: |a, b| a & b, remainder: |_a, _b| false, floor_divide: |a, b| a & b,
    trunc_divide: |a, b| a & b, pow: |a, b| a | !b);
