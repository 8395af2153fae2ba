//! Integers, which wrap.

use core::num::Wrapping;

use super::{Bits, Num, Value};

macro_rules! integers {
    ($($t:ident: $abs:ident),*) => { $(
        impl Value for Wrapping<$t> {
            const ZERO: Self = Wrapping(0);
            const ONE: Self = Wrapping(1);
            #[inline(always)]
            fn truth(self) -> bool {
                self.0 != 0
            }
            #[inline(always)]
            fn is_nan(self) -> bool {
                false
            }
            #[inline(always)]
            fn is_infinite(self) -> bool {
                false
            }
        }

        impl Bits for Wrapping<$t> {}

        #[allow(unused_comparisons)] // one body for signed and unsigned
        impl Num for Wrapping<$t> {
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
            fn floor(self) -> Self {
                self
            }
            #[inline(always)]
            fn ceil(self) -> Self {
                self
            }
            #[inline(always)]
            fn trunc(self) -> Self {
                self
            }
            #[inline(always)]
            fn round_ties_even(self) -> Self {
                self
            }
            #[inline(always)]
            fn round_decimals(self, _: Self) -> Self {
                self
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
                let (mut result, mut base, mut e) = (Wrapping(1 as $t), self, exponent.0);
                let negative = e < 0;
                if negative {
                    // |base| > 1 gives 0, 1 gives 1, -1 gives +-1 by parity: only parity matters, so one round serves.
                    result = if base.0 == 1 || base == -Wrapping(1 as $t) {
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
            #[inline(always)]
            fn scaled_add(self, scale: Self, addend: Self) -> Self {
                self * scale + addend
            }
        }
    )* };
}
integers!(i8: wrapping_abs, i16: wrapping_abs, i32: wrapping_abs, i64: wrapping_abs, u8: abs);
