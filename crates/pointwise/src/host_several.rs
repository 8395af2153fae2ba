//! The visitors that make host functions of tables of ops of several operands.

/// The visitor that makes host functions of a table of binary or channel ops: the modules `kernels` (each op as a
/// [`BinaryKernel`](crate::kernel::BinaryKernel)) and `ops` (functions `NAME`, `NAME_into`, and `NAME_inplace` where the result
/// has the operands' type), and the list `BINARY` of the [`OpDef`](crate::kernel::OpDef)s.
///
/// In scope where it is called: the op types of the table, and [`include_kernels!`](crate::include_kernels)' `KERNELS`.
#[macro_export]
macro_rules! host_binary {
    ($($rows:tt)*) => {
        $crate::__definitions! { (BINARY OpDef __several_def (binary same Binary)) $($rows)* }
        $crate::__several! { (BinaryKernel binary_with __binary_ops) $($rows)* }
    };
}

/// The visitor that makes host functions of a table of gradients of unary ops: as
/// [`host_binary!`](crate::host_binary), with the list `BACKWARD`.
#[macro_export]
macro_rules! host_backward {
    ($($rows:tt)*) => {
        $crate::__definitions! { (BACKWARD OpDef __several_def (binary same Binary)) $($rows)* }
        $crate::__several! { (BinaryKernel binary_with __binary_ops) $($rows)* }
    };
}

/// The visitor that makes host functions of a table of gated ops: as [`host_binary!`](crate::host_binary), with
/// [`GatedKernel`](crate::kernel::GatedKernel) and the list `GATED`.
#[macro_export]
macro_rules! host_gated {
    ($($rows:tt)*) => {
        $crate::__definitions! { (GATED OpDef __several_def (binary same Binary)) $($rows)* }
        $crate::__functions! {
            (GatedKernel gated_with __gated_ops "The ops as functions of `x` of shape `(.., 2N)`, the gate in front. A \
             parameter is any number, or `Number::Default`.")
            $($rows)*
        }
    };
}

/// The visitor that makes host functions of a table of ternary ops: as [`host_binary!`](crate::host_binary), with
/// [`TernaryKernel`](crate::kernel::TernaryKernel) and the list `TERNARY`.
#[macro_export]
macro_rules! host_ternary {
    ($($rows:tt)*) => {
        $crate::__definitions! { (TERNARY OpDef __several_def (ternary same Ternary)) $($rows)* }
        $crate::__several! { (TernaryKernel ternary_with __ternary_ops) $($rows)* }
    };
}

/// The visitor that makes host functions of a table of select ops: as [`host_ternary!`](crate::host_ternary), with the
/// list `SELECT`. A function's name ends in `_cond`: `where` is a keyword.
#[macro_export]
macro_rules! host_select {
    ($(
        $(#[doc = $doc:literal])*
        $name:ident: $op:ident ($($x:ident),*: $bound:ident) -> $out:ident,
        [$($set:ident)*], $accuracy:expr => $formula:expr;
    )*) => {
        $crate::__private::pastey::paste! {
            /// The definitions of the ops, by name.
            #[allow(non_upper_case_globals)]
            pub mod definitions {
                #[allow(unused_imports)]
                use super::*;
                $(
                    $crate::__several_def! {
                        (select bool Select) [$($doc)*] [<$name _cond>] $name $op [] ($($x)*) $bound $out
                        [i8 i16 i32 i64]
                    }
                )*
            }

            /// Every op of the table, in its order.
            pub static SELECT: &[&$crate::kernel::OpDef] = &[$(&definitions::[<$name _cond>]),*];

            $crate::__kernels! { TernaryKernel ternary_with $( [<$name _cond>] [$($doc)*] [] )* }

            /// The ops as functions.
            pub mod ops {
                $( $crate::__ternary_pair! { [$($doc)*] [<$name _cond>] ($($x)*) [] } )*
            }
        }
    };
}

/// The functions of ops whose operands may be numbers.
#[doc(hidden)]
#[macro_export]
macro_rules! __several {
    (($Kernel:ident $with:ident $ops:ident) $($rows:tt)*) => {
        $crate::__functions! {
            ($Kernel $with $ops "The ops as functions. An operand is a tensor, a view or a number; a parameter any \
             number, or `Number::Default`.")
            $($rows)*
        }
    };
}

/// The static of a row.
#[doc(hidden)]
#[macro_export]
macro_rules! __several_def {
    (($kind:ident $first:ident $adapter:ident) [$($doc:literal)*] $def:ident $name:ident $op:ident [$($p:ident)*]
        ($($x:ident)*) $bound:ident $out:tt [$($set:ident)*]) => {
        $crate::__private::definition! {
            ($crate) (KERNELS) [$($doc)*] $kind $name $def $op $bound $first $adapter [$($set)*] [$($x)*] [$out] [$($p)*]
        }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __binary_ops {
    ([$($doc:literal)*] $name:ident $out:ident ($a:ident $b:ident) [$($p:ident)*]) => {
        $crate::__private::pastey::paste! {
            $(#[doc = $doc])*
            ///
            /// # Errors
            /// As [`BinaryKernel::run`]($crate::kernel::BinaryKernel::run).
            pub fn $name<'a>(
                $a: impl Into<$crate::Operand<'a>>,
                $b: impl Into<$crate::Operand<'a>>,
                $($p: impl Into<$crate::Number>,)*
            ) -> $crate::Result<$crate::Tensor> {
                super::kernels::$name($($p),*).run($a, $b)
            }

            #[doc = concat!("[`", stringify!($name), "`] into a tensor that is there.")]
            ///
            /// # Errors
            /// As [`BinaryKernel::run_into`]($crate::kernel::BinaryKernel::run_into).
            pub fn [<$name _into>]<'a, 'b>(
                $a: impl Into<$crate::Operand<'a>>,
                $b: impl Into<$crate::Operand<'a>>,
                y: impl Into<$crate::TensorViewMut<'b>>,
                $($p: impl Into<$crate::Number>,)*
            ) -> $crate::Result<()> {
                super::kernels::$name($($p),*).run_into($a, $b, y)
            }

            $crate::__binary_inplace! { $out [<$name _inplace>] $name $a $b [$($p)*] }
        }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __binary_inplace {
    (bool $($rest:tt)*) => {};
    (T $inplace:ident $name:ident $a:ident $b:ident [$($p:ident)*]) => {
        #[doc = concat!("[`", stringify!($name), "`] over its first operand.")]
        ///
        /// # Errors
        /// As [`BinaryKernel::run_inplace`]($crate::kernel::BinaryKernel::run_inplace).
        pub fn $inplace<'a, 'b>(
            $a: impl Into<$crate::TensorViewMut<'a>>,
            $b: impl Into<$crate::Operand<'b>>,
            $($p: impl Into<$crate::Number>,)*
        ) -> $crate::Result<()> {
            super::kernels::$name($($p),*).run_inplace($a, $b)
        }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __gated_ops {
    ($doc:tt $name:ident $out:ident $x:tt $params:tt) => {
        $crate::__ops_of_one! { GatedKernel $doc $name $params }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __ternary_ops {
    ($docs:tt $name:ident $out:ident $x:tt $params:tt) => {
        $crate::__ternary_pair! { $docs $name $x $params }
        $crate::__ternary_inplace! { $out $name $x $params }
    };
}

/// The functions of an op but for the one in place.
#[doc(hidden)]
#[macro_export]
macro_rules! __ternary_pair {
    ([$($doc:literal)*] $name:ident ($a:ident $b:ident $c:ident) [$($p:ident)*]) => {
        $crate::__private::pastey::paste! {
            $(#[doc = $doc])*
            ///
            /// # Errors
            /// As [`TernaryKernel::run`]($crate::kernel::TernaryKernel::run).
            pub fn $name<'a>(
                $a: impl Into<$crate::Operand<'a>>,
                $b: impl Into<$crate::Operand<'a>>,
                $c: impl Into<$crate::Operand<'a>>,
                $($p: impl Into<$crate::Number>,)*
            ) -> $crate::Result<$crate::Tensor> {
                super::kernels::$name($($p),*).run($a, $b, $c)
            }

            #[doc = concat!("[`", stringify!($name), "`] into a tensor that is there.")]
            ///
            /// # Errors
            /// As [`TernaryKernel::run_into`]($crate::kernel::TernaryKernel::run_into).
            pub fn [<$name _into>]<'a, 'b>(
                $a: impl Into<$crate::Operand<'a>>,
                $b: impl Into<$crate::Operand<'a>>,
                $c: impl Into<$crate::Operand<'a>>,
                y: impl Into<$crate::TensorViewMut<'b>>,
                $($p: impl Into<$crate::Number>,)*
            ) -> $crate::Result<()> {
                super::kernels::$name($($p),*).run_into($a, $b, $c, y)
            }
        }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __ternary_inplace {
    (bool $($rest:tt)*) => {};
    (T $name:ident ($a:ident $b:ident $c:ident) [$($p:ident)*]) => {
        $crate::__private::pastey::paste! {
            #[doc = concat!("[`", stringify!($name), "`] over its first operand.")]
            ///
            /// # Errors
            /// As [`TernaryKernel::run_inplace`]($crate::kernel::TernaryKernel::run_inplace).
            pub fn [<$name _inplace>]<'a, 'b>(
                $a: impl Into<$crate::TensorViewMut<'a>>,
                $b: impl Into<$crate::Operand<'b>>,
                $c: impl Into<$crate::Operand<'b>>,
                $($p: impl Into<$crate::Number>,)*
            ) -> $crate::Result<()> {
                super::kernels::$name($($p),*).run_inplace($a, $b, $c)
            }
        }
    };
}
