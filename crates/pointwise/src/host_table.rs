//! What the visitors that make host functions have in common: the definitions, kernel objects and functions of a
//! table's rows.

/// The module `definitions` of a table, and the list of them all. `$make` makes one of `$Def` of a row and of `$given`.
#[doc(hidden)]
#[macro_export]
macro_rules! __definitions {
    (($LIST:ident $Def:ident $make:ident $given:tt) $(
        $(#[doc = $doc:literal])*
        $name:ident: $op:ident $({ $($p:ident = $default:expr),* })? ($($x:ident),*: $bound:ident) -> $out:tt,
        [$($set:ident)*], $accuracy:expr => $formula:expr;
    )*) => {
        /// The definitions of the ops, by name.
        #[allow(non_upper_case_globals)]
        pub mod definitions {
            #[allow(unused_imports)]
            use super::*;
            $(
                $(#[doc = $doc])*
                pub static $name: $crate::$Def = $crate::$make! {
                    $given $name $op [$($($p)*)?] ($($x)*) $bound $out [$($set)*]
                };
            )*
        }

        /// Every op of the table, in its order.
        pub static $LIST: &[&$crate::$Def] = &[$(&definitions::$name),*];
    };
}

/// The modules `kernels` and `ops` of a table: each op as a `$Kernel`, which the method `$with` of its definition
/// makes, and as the functions that `$ops` makes of a row.
#[doc(hidden)]
#[macro_export]
macro_rules! __functions {
    (($Kernel:ident $with:ident $ops:ident $about:literal) $(
        $(#[doc = $doc:literal])*
        $name:ident: $op:ident $({ $($p:ident = $default:expr),* })? ($($x:ident),*: $bound:ident) -> $out:tt,
        [$($set:ident)*], $accuracy:expr => $formula:expr;
    )*) => {
        $crate::__kernels! { $Kernel $with $( $name [$($doc)*] [$($($p)*)?] )* }

        #[doc = $about]
        pub mod ops {
            $( $crate::$ops! { [$($doc)*] $name $out ($($x)*) [$($($p)*)?] } )*
        }
    };
}

/// The module `kernels` of a table.
#[doc(hidden)]
#[macro_export]
macro_rules! __kernels {
    ($Kernel:ident $with:ident $($name:ident [$($doc:literal)*] [$($p:ident)*])*) => {
        /// The ops as kernel objects, whose strategy, threads and stream can be set.
        pub mod kernels {
            $(
                $(#[doc = $doc])*
                #[must_use]
                pub fn $name($($p: impl Into<$crate::Number>),*) -> $crate::$Kernel {
                    let given = [$($p.into()),*];
                    super::definitions::$name.$with($crate::__fill_params(given))
                }
            )*
        }
    };
}

/// The parameters of a call, the rest being defaults.
#[doc(hidden)]
#[must_use]
pub fn __fill_params<const N: usize>(given: [crate::Number; N]) -> [crate::Number; pointwise_core::op::MAX_PARAMS] {
    const { assert!(N <= pointwise_core::op::MAX_PARAMS, "an op has at most four parameters") };
    let mut params = [crate::Number::Default; pointwise_core::op::MAX_PARAMS];
    params[..N].copy_from_slice(&given);
    params
}

/// The op's type for the compute type of an element type.
#[doc(hidden)]
#[macro_export]
macro_rules! __op_at {
    ($compute:ty, $op:ident []) => {
        $op
    };
    ($compute:ty, $op:ident [$($p:ident)+]) => {
        $op<$compute>
    };
}

/// What the table says of an op.
#[doc(hidden)]
#[macro_export]
macro_rules! __op_info {
    ($op:ident []) => {
        $crate::__core::__info!($op)
    };
    ($op:ident [$($p:ident)+]) => {
        $crate::__core::__info!($op { $($p),* })
    };
}
