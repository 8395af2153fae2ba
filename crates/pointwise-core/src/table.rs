//! What the tables of ops, and the code that is made of them, have in common.

/// The macro that hands a table's rows to a visitor.
#[doc(hidden)]
#[macro_export]
macro_rules! __table {
    (($d:tt) $table:ident; $($rows:tt)*) => {
        /// Hands the rows of this table to a visitor macro: `table!(path::to::visitor)`.
        #[macro_export]
        macro_rules! $table {
            ($d($d visitor:ident)::+) => {
                $d($d visitor)::+! { $($rows)* }
            };
        }
    };
}

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
