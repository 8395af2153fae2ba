//! What the visitors that make host functions have in common: the definitions, kernel objects and functions of a
//! table's rows.

/// The module `definitions` of a table, and the list of them all. `$make` makes the static of one, a `$Def`, of a row and
/// of `$given`. No macro makes a definition that is not a static: of one that can be moved, safe code could replace parts.
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
                $crate::$make! {
                    $given [$($doc)*] $name $name $op [$($($p)*)?] ($($x)*) $bound $out [$($set)*]
                }
            )*
        }

        /// Every op of the table, in its order.
        pub static $LIST: &[&$crate::kernel::$Def] = &[$(&definitions::$name),*];
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
                pub fn $name($($p: impl Into<$crate::Number>),*) -> $crate::kernel::$Kernel {
                    super::definitions::$name.$with(&[$($p.into()),*])
                }
            )*
        }
    };
}
