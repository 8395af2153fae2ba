//! The conversions between element types, and the macros that walk them.

/// Calls a macro, its path in parentheses, once for each conversion that has kernels: `visitor! { from, to, args }`.
/// These are all pairs of different types, and an integer to itself for each width, which copies elements of any type.
#[macro_export]
macro_rules! convert_pairs {
    ($visitor:tt $args:tt) => {
        $crate::for_types! { [floats ints bool] ($crate::__convert_from) ($visitor $args) }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __convert_from {
    ($from:ident, ($visitor:tt $args:tt)) => {
        $crate::for_types! { [floats ints bool] ($crate::__convert_to) ($from $visitor $args) }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __convert_to {
    (f32, (f32 $($rest:tt)*)) => {};
    (f16, (f16 $($rest:tt)*)) => {};
    (bf16, (bf16 $($rest:tt)*)) => {};
    (f8e4m3, (f8e4m3 $($rest:tt)*)) => {};
    (f8e5m2, (f8e5m2 $($rest:tt)*)) => {};
    (u8, (u8 $($rest:tt)*)) => {};
    (bool, (bool $($rest:tt)*)) => {};
    ($to:ident, ($from:ident ($($visitor:tt)*) $args:tt)) => {
        $($visitor)*! { $from, $to, $args }
    };
}
