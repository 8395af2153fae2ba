//! Integers, which wrap.
#![allow(unused_comparisons, clippy::absurd_extreme_comparisons)] // one body for signed and unsigned

use core::num::Wrapping;

use duplicate::duplicate_item;

use super::{Bits, Num, Value};

#[duplicate_item(int; [i8]; [i16]; [i32]; [i64]; [u8])]
const _: () = {
    impl Value for Wrapping<int> {
        const ZERO: Self = Wrapping(0);
        const ONE: Self = Wrapping(1);
        #[duplicate_item(name; [is_nan]; [is_infinite])]
        #[inline(always)]
        fn name(self) -> bool {
            false
        }
    }

    impl Bits for Wrapping<int> {}

    impl Num for Wrapping<int> {
        #[duplicate_item(name; [floor]; [ceil]; [trunc]; [round_ties_even])]
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
        #[inline(always)]
        fn abs(self) -> Self {
            if self.0 < 0 { -self } else { self }
        }
        #[inline(always)]
        fn maximum(self, other: Self) -> Self {
            if self.0 > other.0 { self } else { other }
        }
        #[inline(always)]
        fn minimum(self, other: Self) -> Self {
            if self.0 < other.0 { self } else { other }
        }
        #[inline(always)]
        fn remainder(self, divisor: Self) -> Self {
            let r = self.0.checked_rem(divisor.0).unwrap_or(0);
            let adjust = r != 0 && (r < 0) != (divisor.0 < 0);
            Wrapping(if adjust { r.wrapping_add(divisor.0) } else { r })
        }
        #[inline(always)]
        fn floor_divide(self, divisor: Self) -> Self {
            let q = self.trunc_divide(divisor).0;
            let r = self.0.wrapping_sub(q.wrapping_mul(divisor.0));
            let adjust = divisor.0 != 0 && r != 0 && (r < 0) != (divisor.0 < 0);
            Wrapping(if adjust { q.wrapping_sub(1) } else { q })
        }
        #[inline(always)]
        fn trunc_divide(self, divisor: Self) -> Self {
            // `checked_div` is None for a zero divisor and for MIN / -1, which wraps to MIN.
            let fallback = if divisor.0 == 0 { 0 } else { self.0 };
            Wrapping(self.0.checked_div(divisor.0).unwrap_or(fallback))
        }
        #[inline(always)]
        fn pow(self, exponent: Self) -> Self {
            let (mut result, mut base, mut e) = (Self::ONE, self, exponent.0);
            let negative = e < 0;
            if negative {
                // |base| > 1 gives 0, 1 gives 1, -1 gives +-1 by parity: only parity matters, so one round serves.
                result = if base.0 == 1 || base == -Self::ONE {
                    if e & 1 == 1 { base } else { result }
                } else {
                    Wrapping(0)
                };
                e = 0;
            }
            while e != 0 {
                result = if e & 1 == 1 { result * base } else { result };
                base = base * base;
                e >>= 1;
            }
            result
        }
    }
};
