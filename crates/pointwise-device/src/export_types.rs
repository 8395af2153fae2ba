//! Which entries a target has of its own.
//!
//! The compiler makes the same PTX for every target up to sm_90 but of entries with fp8 elements, which have conversion
//! instructions from sm_89 on. The builder tells a target's run by the cfg `pointwise_inherits` what an older target of
//! the list has the same: `"plain"` is every entry without fp8 elements, `"fp8"` those with them.

/// [`for_types`](crate::for_types), for visitors that expand to entries: without the element types whose entries an
/// older target has the same.
#[doc(hidden)]
#[macro_export]
macro_rules! __export_types {
    ($set:tt $visitor:tt $args:tt) => {
        $crate::for_types! { $set ($crate::__export_type) ($visitor $args) }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __export_type {
    ($type:ident, (($($visitor:tt)*) $args:tt)) => {
        $crate::__unless_inherited! { $type { $($visitor)*! { $type, $args } } }
    };
}

/// Items that make entries of an element type, unless an older target has them the same.
#[doc(hidden)]
#[macro_export]
macro_rules! __unless_inherited {
    (f8e4m3 { $($item:tt)* }) => {
        #[cfg(not(pointwise_inherits = "fp8"))]
        const _: () = { $($item)* };
    };
    (f8e5m2 $items:tt) => {
        $crate::__unless_inherited! { f8e4m3 $items }
    };
    ($type:ident { $($item:tt)* }) => {
        #[cfg(not(pointwise_inherits = "plain"))]
        const _: () = { $($item)* };
    };
}
