//! Integers, which wrap.
#![allow(unused_comparisons, clippy::absurd_extreme_comparisons, clippy::unnecessary_cast)] // one body for all

use core::num::Wrapping;

use duplicate::duplicate_item;

use super::{Bits, Num, Value};

#[duplicate_item(int; [i8]; [i16]; [i32]; [i64]; [u8])]
const _: () = {
    impl Value for Wrapping<int> {
        const ZERO: Self = Wrapping(0);
        const ONE: Self = Wrapping(1);
        #[inline(always)]
        fn whole(number: i64) -> Self {
            Wrapping(number as int)
        }
        #[duplicate_item(name; [is_nan]; [is_infinite])]
        #[inline(always)]
        fn name(self) -> bool {
            false
        }
    }

    impl Bits for Wrapping<int> {
        #[inline(always)]
        fn shl(self, count: u32) -> Self {
            Wrapping(self.0.checked_shl(count).unwrap_or(0))
        }
        #[inline(always)]
        fn shr(self, count: u32) -> Self {
            let sign = if self.0 < 0 { int::MAX.wrapping_add(1) >> (int::BITS - 1) } else { 0 };
            Wrapping(self.0.checked_shr(count).unwrap_or(sign))
        }
    }

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

#[cfg(test)]
mod tests {
    use core::num::Wrapping;

    use super::super::{Bits, Logic, Value};

    #[test]
    fn shifts_are_those_of_pytorch() {
        assert_eq!([0, 3, 7, 8, 40].map(|count| Wrapping(-5_i8).shl(count).0), [-5, -40, -128, 0, 0]);
        assert_eq!([0, 1, 7, 8, 40].map(|count| Wrapping(-5_i8).shr(count).0), [-5, -3, -1, -1, -1]);
        assert_eq!([0, 1, 7, 8, 40].map(|count| Wrapping(0xA5_u8).shr(count).0), [0xA5, 0x52, 1, 0, 0]);
        assert_eq!([63, 64].map(|count| Wrapping(i64::MIN).shr(count).0), [-1, -1]);
        assert_eq!([0, 1].map(|count| Logic(true).shl(count)), [Logic(true), Logic(false)]);
    }

    #[test]
    fn whole_numbers_wrap_and_round() {
        assert_eq!((Wrapping::<u8>::whole(-1).0, Wrapping::<i8>::whole(200).0), (255, -56));
        assert_eq!((f32::whole((1 << 24) + 1), f64::whole(-3)), (16_777_216.0, -3.0));
        assert_eq!([0, 2].map(Logic::whole), [Logic(false), Logic(true)]);
    }
}
