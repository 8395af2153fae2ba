//! The compute type of bool.

use core::ops::{Add, BitAnd, BitOr, BitXor, Mul, Neg, Not, Sub};

use duplicate::duplicate_item;

use super::{Bits, Num, Value};

/// The compute type of bool: addition and maximum are or, multiplication and minimum are and. PyTorch refuses `sub`
/// and `neg` on bool, so no table lists them; here they are exclusive or and the identity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[repr(transparent)]
pub struct Logic(pub bool);

#[duplicate_item(
    Operator  method    result(a, b);
    [Add]     [add]     [a | b];
    [Sub]     [sub]     [a ^ b];
    [Mul]     [mul]     [a & b];
    [BitAnd]  [bitand]  [a & b];
    [BitOr]   [bitor]   [a | b];
    [BitXor]  [bitxor]  [a ^ b];
)]
#[allow(clippy::suspicious_arithmetic_impl)] // PyTorch's arithmetic on bool
impl Operator for Logic {
    type Output = Self;
    #[inline(always)]
    fn method(self, other: Self) -> Self {
        Logic(result([self.0], [other.0]))
    }
}

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

impl Value for Logic {
    const ZERO: Self = Logic(false);
    const ONE: Self = Logic(true);
    #[inline(always)]
    fn whole(number: i64) -> Self {
        Logic(number != 0)
    }
    #[duplicate_item(name; [is_nan]; [is_infinite])]
    #[inline(always)]
    fn name(self) -> bool {
        false
    }
}

impl Bits for Logic {
    #[duplicate_item(name; [shl]; [shr])]
    #[inline(always)]
    fn name(self, count: u32) -> Self {
        Logic(self.0 & (count == 0))
    }
}

impl Num for Logic {
    #[duplicate_item(name; [abs]; [floor]; [ceil]; [trunc]; [round_ties_even])]
    #[inline(always)]
    fn name(self) -> Self {
        self
    }
    #[inline(always)]
    fn round_decimals(self, _: Self) -> Self {
        self
    }
    #[inline(always)]
    fn scaled_add(self, scale: Self, addend: Self) -> Self {
        self * scale + addend
    }
    #[duplicate_item(
        name            result(a, b);
        [maximum]       [a | b];
        [minimum]       [a & b];
        [floor_divide]  [a & b];
        [trunc_divide]  [a & b];
        [pow]           [a | !b];
    )]
    #[inline(always)]
    fn name(self, other: Self) -> Self {
        Logic(result([self.0], [other.0]))
    }
    #[inline(always)]
    fn remainder(self, _: Self) -> Self {
        Logic(false)
    }
}
