//! What integers and bool have in common: no NaN, no infinity, nothing behind the point.

/// The compute type of integers or of bool: its zero and its one, and the methods of `Num` that are its own.
macro_rules! whole {
    ($type:ty, $zero:expr, $one:expr, { $($own:tt)* }) => {
        impl $crate::num::Value for $type {
            const ZERO: Self = $zero;
            const ONE: Self = $one;
            #[inline(always)]
            fn truth(self) -> bool {
                self.0 != Self::ZERO.0
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

        impl $crate::num::Bits for $type {}

        impl $crate::num::Num for $type {
            $($own)*
            whole! { @same floor ceil trunc round_ties_even }
            #[inline(always)]
            fn round_decimals(self, _: Self) -> Self {
                self
            }
            #[inline(always)]
            fn scaled_add(self, scale: Self, addend: Self) -> Self {
                self * scale + addend
            }
        }
    };
    (@same $($method:ident)*) => { $(
        #[inline(always)]
        fn $method(self) -> Self {
            self
        }
    )* };
}
