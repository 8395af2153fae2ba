//! What visitors of a table share: its element types, and the symbol of a kernel.

/// Calls a macro, its path in parentheses, once for each element type of a table's column: `visitor! { type, args }`.
/// The sets are `floats` (f32 f16 bf16 f8e4m3 f8e5m2) and `ints` (i8 i16 i32 i64 u8); single types stand by their
/// names.
#[macro_export]
macro_rules! for_types {
    ([$($set:ident)*] $visitor:tt $args:tt) => {
        $($crate::for_types! { @$set $visitor $args })*
    };
    (@floats $v:tt $args:tt) => {
        $crate::for_types! { @each $v $args f32 f16 bf16 f8e4m3 f8e5m2 }
    };
    (@ints $v:tt $args:tt) => {
        $crate::for_types! { @each $v $args i8 i16 i32 i64 u8 }
    };
    (@each $v:tt $args:tt $($t:ident)*) => {
        $($crate::for_types! { @$t $v $args })*
    };
    (@f32 $v:tt $args:tt) => { $crate::for_types! { @call f32 $v $args } };
    (@f16 $v:tt $args:tt) => { $crate::for_types! { @call f16 $v $args } };
    (@bf16 $v:tt $args:tt) => { $crate::for_types! { @call bf16 $v $args } };
    (@f8e4m3 $v:tt $args:tt) => { $crate::for_types! { @call f8e4m3 $v $args } };
    (@f8e5m2 $v:tt $args:tt) => { $crate::for_types! { @call f8e5m2 $v $args } };
    (@i8 $v:tt $args:tt) => { $crate::for_types! { @call i8 $v $args } };
    (@i16 $v:tt $args:tt) => { $crate::for_types! { @call i16 $v $args } };
    (@i32 $v:tt $args:tt) => { $crate::for_types! { @call i32 $v $args } };
    (@i64 $v:tt $args:tt) => { $crate::for_types! { @call i64 $v $args } };
    (@u8 $v:tt $args:tt) => { $crate::for_types! { @call u8 $v $args } };
    (@bool $v:tt $args:tt) => { $crate::for_types! { @call bool $v $args } };
    (@call $t:ident ($($visitor:tt)*) $args:tt) => {
        $($visitor)*! { $t, $args }
    };
    (@$word:ident $v:tt $args:tt) => {};
}

/// The symbol of a kernel entry. The only place where one is formed: the kernels export it, the host asks for it.
#[macro_export]
macro_rules! symbol {
    ($kind:ident, $op:ident, $type:ident, $strategy:ident) => {
        concat!(stringify!($kind), "_", stringify!($op), "_", stringify!($type), "_", stringify!($strategy))
    };
}
