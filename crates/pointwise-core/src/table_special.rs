//! The kernels of random ops, listed once for the device and the host.

/// Calls a macro, its path in parentheses, once for each kernel that a random op has in an element type:
/// `visitor! { kind mask strategy, args }`, where `kind` is `random_mask` and `mask` is `true` for those that also
/// write the mask.
#[macro_export]
macro_rules! random_strategies {
    (($($visitor:tt)*) $args:tt) => {
        $($visitor)*! { random false explicit_parallel, $args }
        $($visitor)*! { random false register_copy, $args }
        $($visitor)*! { random_mask true explicit_parallel, $args }
        $($visitor)*! { random_mask true register_copy, $args }
    };
}
