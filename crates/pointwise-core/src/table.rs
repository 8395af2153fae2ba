//! What the tables of ops, and the code that is made of them, have in common: the element types of a column, names of
//! kernels.

/// A formula as text.
#[doc(hidden)]
#[macro_export]
macro_rules! __text {
    ($formula:expr) => {
        stringify!($formula)
    };
}

/// The element types of a table's column, as an array of [`DType`](crate::DType).
#[doc(hidden)]
#[macro_export]
macro_rules! __dtypes {
    ([floats $($rest:tt)*] [$($t:ident)*]) => {
        $crate::__dtypes!([$($rest)*] [$($t)* F32 F16 BF16 F8E4M3 F8E5M2])
    };
    ([ints $($rest:tt)*] [$($t:ident)*]) => {
        $crate::__dtypes!([$($rest)*] [$($t)* I8 I16 I32 I64 U8])
    };
    ([f32 $($rest:tt)*] [$($t:ident)*]) => { $crate::__dtypes!([$($rest)*] [$($t)* F32]) };
    ([f16 $($rest:tt)*] [$($t:ident)*]) => { $crate::__dtypes!([$($rest)*] [$($t)* F16]) };
    ([bf16 $($rest:tt)*] [$($t:ident)*]) => { $crate::__dtypes!([$($rest)*] [$($t)* BF16]) };
    ([f8e4m3 $($rest:tt)*] [$($t:ident)*]) => { $crate::__dtypes!([$($rest)*] [$($t)* F8E4M3]) };
    ([f8e5m2 $($rest:tt)*] [$($t:ident)*]) => { $crate::__dtypes!([$($rest)*] [$($t)* F8E5M2]) };
    ([i8 $($rest:tt)*] [$($t:ident)*]) => { $crate::__dtypes!([$($rest)*] [$($t)* I8]) };
    ([i16 $($rest:tt)*] [$($t:ident)*]) => { $crate::__dtypes!([$($rest)*] [$($t)* I16]) };
    ([i32 $($rest:tt)*] [$($t:ident)*]) => { $crate::__dtypes!([$($rest)*] [$($t)* I32]) };
    ([i64 $($rest:tt)*] [$($t:ident)*]) => { $crate::__dtypes!([$($rest)*] [$($t)* I64]) };
    ([u8 $($rest:tt)*] [$($t:ident)*]) => { $crate::__dtypes!([$($rest)*] [$($t)* U8]) };
    ([bool $($rest:tt)*] [$($t:ident)*]) => { $crate::__dtypes!([$($rest)*] [$($t)* Bool]) };
    ([$word:ident $($rest:tt)*] $found:tt) => { $crate::__dtypes!([$($rest)*] $found) };
    ([] [$($t:ident)*]) => {
        &[$($crate::DType::$t),*]
    };
}

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

/// The symbol of a kernel entry that no op of a table has: the kernels export it, the host asks for it.
#[macro_export]
macro_rules! symbol {
    ($kind:ident, $op:ident, $type:ident, $strategy:ident) => {
        concat!(stringify!($kind), "_", stringify!($op), "_", stringify!($type), "_", stringify!($strategy))
    };
}
