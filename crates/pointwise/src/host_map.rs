//! The visitors that make host functions of tables of ops of several operands.

/// The visitor that makes host functions of a table of binary or channel ops: the modules `kernels` (each op as a
/// [`BinaryKernel`](crate::kernel::BinaryKernel)) and `ops` (functions `NAME`, `NAME_into`, and `NAME_inplace` where the result
/// has the operands' type), and the list `BINARY` of the [`MapDef`](crate::kernel::MapDef)s.
///
/// In scope where it is called: the op types of the table, and [`include_kernels!`](crate::include_kernels)' `KERNELS`.
#[macro_export]
macro_rules! host_binary {
    ($($rows:tt)*) => {
        $crate::__definitions! { (BINARY MapDef __map_def (binary binary)) $($rows)* }
        $crate::__several! { (BinaryKernel binary_with __binary_ops) $($rows)* }
    };
}

/// The visitor that makes host functions of a table of gradients of unary ops: as
/// [`host_binary!`](crate::host_binary), with the list `BACKWARD`.
#[macro_export]
macro_rules! host_backward {
    ($($rows:tt)*) => {
        $crate::__definitions! { (BACKWARD MapDef __map_def (binary binary)) $($rows)* }
        $crate::__several! { (BinaryKernel binary_with __binary_ops) $($rows)* }
    };
}

/// The visitor that makes host functions of a table of gated ops: as [`host_binary!`](crate::host_binary), with
/// [`GatedKernel`](crate::kernel::GatedKernel) and the list `GATED`.
#[macro_export]
macro_rules! host_gated {
    ($($rows:tt)*) => {
        $crate::__definitions! { (GATED MapDef __map_def (binary binary)) $($rows)* }
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
        $crate::__definitions! { (TERNARY MapDef __map_def (ternary ternary)) $($rows)* }
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
                    $crate::__map_def! {
                        (select select) [$($doc)*] [<$name _cond>] $name $op [] ($($x)*) $bound $out [i8 i16 i32 i64]
                    }
                )*
            }

            /// Every op of the table, in its order.
            pub static SELECT: &[&$crate::kernel::MapDef] = &[$(&definitions::[<$name _cond>]),*];

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

#[doc(hidden)]
#[macro_export]
macro_rules! __map_def {
    (($kind:ident $cpu:ident) [$($doc:literal)*] $def:ident $name:ident $op:ident $params:tt $x:tt $bound:ident
        $out:ident [$($set:ident)*]) => {
        $(#[doc = $doc])*
        pub static $def: $crate::kernel::MapDef = $crate::kernel::MapDef {
            info: $crate::__op_info!($op $params),
            cpu: {
                fn cpu(dtype: $crate::DType) -> Option<$crate::__private::cpu::MapFn> {
                    $crate::__private::core::for_types! { [$($set)*] ($crate::__map_cpu) (dtype $cpu $op $params) }
                    None
                }
                cpu
            },
            entry: {
                fn entry(dtype: $crate::DType, class: $crate::kernel::Class) -> Option<&'static $crate::kernel::Entry> {
                    $crate::__private::core::for_types! { [$($set)*] ($crate::__map_entries) (dtype class $kind [$kind] $name $op $params) }
                    None
                }
                entry
            },
            lookup: $crate::__map_lookup!($kind [$($set)*]),
            oracle: $crate::__map_oracle!($kind $bound $x $op $params),
            stepped: $crate::__map_stepped!($kind $bound $out $op $params),
            // SAFETY: all of it is made of the one row, which `ROW` has checked for each type.
            made: unsafe { $crate::__private::Made::of_a_row() },
        };
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __map_cpu {
    ($type:ident, ($dtype:ident $cpu:ident $op:ident $params:tt)) => {
        if $dtype == <$crate::__private::core::element::ty::$type as $crate::__private::core::Element>::DTYPE {
            type E = $crate::__private::core::element::ty::$type;
            return Some(
                $crate::__private::cpu::$cpu::<E, $crate::__op_at!(<E as $crate::__private::core::Element>::Compute, $op $params)>,
            );
        }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __map_entries {
    ($type:ident, ($dtype:ident $class:ident $kind:ident [$($row:ident)*] $name:ident $op:ident $params:tt)) => {
        if $dtype == <$crate::__private::core::element::ty::$type as $crate::__private::core::Element>::DTYPE {
            type E = $crate::__private::core::element::ty::$type;
            $crate::__row! { $($row)* $op $params }
            return match $class {
                $crate::kernel::Class::Flat => $crate::__map_entry!($kind $name $type flat),
                $crate::kernel::Class::Rows => $crate::__map_entry!($kind $name $type rows),
                $crate::kernel::Class::Strided => $crate::__map_entry!($kind $name $type strided),
            };
        }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __map_entry {
    ($kind:ident $name:ident $type:ident $variant:ident) => {{
        static ENTRY: $crate::kernel::Entry =
            $crate::kernel::Entry::new($crate::__private::core::symbol!($kind, $name, $type, $variant), ROW, &KERNELS);
        Some(&ENTRY)
    }};
}

/// Where the tables of an op of two operands of one byte are kept.
#[doc(hidden)]
#[macro_export]
macro_rules! __map_lookup {
    (binary [$($set:ident)*]) => {{
        fn lookup(dtype: $crate::DType) -> Option<&'static $crate::kernel::Lookup> {
            let _ = dtype;
            $crate::__private::core::for_types! { [$($set)*] ($crate::__map_lookup_of) (dtype) }
            None
        }
        lookup
    }};
    ($kind:ident $sets:tt) => {
        |_| None
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __map_lookup_of {
    (f8e4m3, $args:tt) => {
        $crate::__map_lookup_of! { @ f8e4m3 $args }
    };
    (f8e5m2, $args:tt) => {
        $crate::__map_lookup_of! { @ f8e5m2 $args }
    };
    (i8, $args:tt) => {
        $crate::__map_lookup_of! { @ i8 $args }
    };
    (u8, $args:tt) => {
        $crate::__map_lookup_of! { @ u8 $args }
    };
    (@ $type:ident ($dtype:ident)) => {
        if $dtype == <$crate::__private::core::element::ty::$type as $crate::__private::core::Element>::DTYPE {
            static LOOKUP: $crate::kernel::Lookup = $crate::kernel::Lookup::new();
            return Some(&LOOKUP);
        }
    };
    ($type:ident, $args:tt) => {};
}

/// The formula at f64. Ops on bits alone have none.
#[doc(hidden)]
#[macro_export]
macro_rules! __map_oracle {
    ($kind:ident Bits $($rest:tt)*) => {
        None
    };
    (select $bound:ident $x:tt $op:ident $params:tt) => {
        Some({
            fn oracle([condition, a, b]: [f64; 3], words: $crate::__private::core::Words) -> f64 {
        type O = $crate::__op_at!(f64, $op $params);
                let op = <O as $crate::__private::core::TableOp>::from_words(words);
                let condition = $crate::__private::core::num::Logic(condition != 0.0);
                $crate::__private::OracleValue::to_f64($crate::__private::core::TernaryOp::apply(op, condition, a, b))
            }
            oracle
        })
    };
    (binary $bound:ident ($a:ident $b:ident) $op:ident $params:tt) => {
        Some({
            fn oracle([a, b, _]: [f64; 3], words: $crate::__private::core::Words) -> f64 {
        type O = $crate::__op_at!(f64, $op $params);
                let op = <O as $crate::__private::core::TableOp>::from_words(words);
                $crate::__private::OracleValue::to_f64($crate::__private::core::BinaryOp::apply(op, a, b))
            }
            oracle
        })
    };
    (ternary $bound:ident $x:tt $op:ident $params:tt) => {
        Some({
            fn oracle([a, b, c]: [f64; 3], words: $crate::__private::core::Words) -> f64 {
        type O = $crate::__op_at!(f64, $op $params);
                let op = <O as $crate::__private::core::TableOp>::from_words(words);
                $crate::__private::OracleValue::to_f64($crate::__private::core::TernaryOp::apply(op, a, b, c))
            }
            oracle
        })
    };
}

/// The formula with every step rounded to f32, of binary ops on floats alone.
#[doc(hidden)]
#[macro_export]
macro_rules! __map_stepped {
    (binary Real T $op:ident $params:tt) => {
        Some({
            fn stepped([a, b]: [f32; 2], words: $crate::__private::core::Words) -> f32 {
        type O = $crate::__op_at!($crate::__private::core::Stepped, $op $params);
                let op = <O as $crate::__private::core::TableOp>::from_words(words);
                let [a, b] = [a, b].map($crate::__private::core::Stepped);
                $crate::__private::core::BinaryOp::apply(op, a, b).0
            }
            stepped
        })
    };
    ($kind:ident $bound:ident $out:ident $($rest:tt)*) => {
        None
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
