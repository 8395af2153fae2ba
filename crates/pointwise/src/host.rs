//! The visitors that make host functions of an op table.

/// Includes the kernels that the build script compiled, as a static `KERNELS` for
/// [`host_unary!`](crate::host_unary).
#[macro_export]
macro_rules! include_kernels {
    () => {
        static KERNELS: $crate::embed::Kernels = {
            use $crate::embed::*;
            include!(concat!(env!("OUT_DIR"), "/pointwise_kernels.rs"))
        };
    };
}

/// The visitor that makes host functions of a table of unary ops: the modules `kernels` (each op as a
/// [`UnaryKernel`](crate::UnaryKernel)) and `ops` (functions `NAME`, `NAME_into`, and `NAME_inplace` where the result
/// has the operand's type), and the list `UNARY` of the [`UnaryDef`](crate::UnaryDef)s.
///
/// In scope where it is called: the op types of the table, and [`include_kernels!`](crate::include_kernels)' `KERNELS`.
/// For the table `my_ops` of a kernel crate `my_kernels`, which the host crate depends on and its build script compiles:
///
/// ```ignore
/// use my_kernels::*;
///
/// pointwise::include_kernels!();
/// my_kernels::my_ops!(pointwise::host_unary);
/// ```
#[macro_export]
macro_rules! host_unary {
    ($(
        $(#[doc = $doc:literal])*
        $name:ident: $op:ident $({ $($p:ident = $default:expr),* })? ($x:ident: $bound:ident) -> $out:ident,
        [$($set:ident)*], $accuracy:expr => $formula:expr;
    )*) => {
        /// The definitions of the ops, by name.
        #[allow(non_upper_case_globals)]
        pub mod definitions {
            #[allow(unused_imports)]
            use super::*;
            $(
                $(#[doc = $doc])*
                pub static $name: $crate::UnaryDef = $crate::UnaryDef {
                    info: $crate::__core::__info!($op $({ $($p),* })?),
                    cpu: {
                        fn cpu(dtype: $crate::DType) -> Option<$crate::cpu::MapFn> {
                            $crate::__core::for_types! { [$($set)*] ($crate::__cpu_type) (dtype $op [$($($p)*)?]) }
                            None
                        }
                        cpu
                    },
                    entry: {
                        fn entry(
                            dtype: $crate::DType,
                            variant: $crate::Variant,
                        ) -> Option<&'static $crate::Entry> {
                            $crate::__core::for_types! {
                                [$($set)*] ($crate::__entry_type) (dtype variant $name $out)
                            }
                            None
                        }
                        entry
                    },
                    oracle: $crate::__oracle!($bound $op [$($($p)*)?]),
                };
            )*
        }

        /// Every op of the table, in its order.
        pub static UNARY: &[&$crate::UnaryDef] = &[$(&definitions::$name),*];

        /// The ops as kernel objects, whose strategy, threads and stream can be set.
        pub mod kernels {
            $(
                $(#[doc = $doc])*
                #[must_use]
                pub fn $name($($($p: impl Into<$crate::Number>),*)?) -> $crate::UnaryKernel {
                    let given = [$($($p.into()),*)?];
                    super::definitions::$name.kernel_with($crate::__fill_params(given))
                }
            )*
        }

        /// The ops as functions. A parameter is any number, or `Number::Default`.
        pub mod ops {
            $( $crate::__ops! { [$($doc)*] $name $out [$($($p)*)?] } )*
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

#[doc(hidden)]
#[macro_export]
macro_rules! __ops {
    ([$($doc:literal)*] $name:ident $out:ident [$($p:ident)*]) => {
        $crate::__pastey::paste! {
            $(#[doc = $doc])*
            ///
            /// # Errors
            /// As [`UnaryKernel::run`]($crate::UnaryKernel::run).
            pub fn $name<'a>(
                x: impl Into<$crate::TensorView<'a>>,
                $($p: impl Into<$crate::Number>,)*
            ) -> $crate::Result<$crate::Tensor> {
                super::kernels::$name($($p),*).run(x)
            }

            #[doc = concat!("[`", stringify!($name), "`] into a tensor that is there.")]
            ///
            /// # Errors
            /// As [`UnaryKernel::run_into`]($crate::UnaryKernel::run_into).
            pub fn [<$name _into>]<'a, 'b>(
                x: impl Into<$crate::TensorView<'a>>,
                y: impl Into<$crate::TensorViewMut<'b>>,
                $($p: impl Into<$crate::Number>,)*
            ) -> $crate::Result<()> {
                super::kernels::$name($($p),*).run_into(x, y)
            }

            $crate::__ops_inplace! { $out [<$name _inplace>] $name [$($p)*] }
        }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __ops_inplace {
    (bool $($rest:tt)*) => {};
    (T $inplace:ident $name:ident [$($p:ident)*]) => {
        #[doc = concat!("[`", stringify!($name), "`] in place.")]
        ///
        /// # Errors
        /// As [`UnaryKernel::run_inplace`]($crate::UnaryKernel::run_inplace).
        pub fn $inplace<'a>(
            x: impl Into<$crate::TensorViewMut<'a>>,
            $($p: impl Into<$crate::Number>,)*
        ) -> $crate::Result<()> {
            super::kernels::$name($($p),*).run_inplace(x)
        }
    };
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

#[doc(hidden)]
#[macro_export]
macro_rules! __cpu_type {
    ($type:ident, ($dtype:ident $op:ident $params:tt)) => {
        if $dtype == <$crate::__core::element::ty::$type as $crate::__core::Element>::DTYPE {
            type E = $crate::__core::element::ty::$type;
            return Some(
                $crate::cpu::unary::<
                    E,
                    $crate::__op_at!(<E as $crate::__core::Element>::Compute, $op $params),
                >,
            );
        }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __entry_type {
    ($type:ident, ($dtype:ident $variant:ident $name:ident $out:ident)) => {
        if $dtype == <$crate::__core::element::ty::$type as $crate::__core::Element>::DTYPE {
            return match $variant {
                $crate::Variant::Direct => $crate::__entry!($name $type direct),
                $crate::Variant::DirectWide => $crate::__entry!($name $type direct_wide),
                $crate::Variant::DirectStrided => $crate::__entry!($name $type direct_strided),
                $crate::Variant::ExplicitParallel => $crate::__entry!($name $type explicit_parallel),
                $crate::Variant::RegisterCopy => $crate::__entry!($name $type register_copy),
                $crate::Variant::Table => $crate::__table_entry!($type $out $name),
            };
        }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __entry {
    ($name:ident $type:ident $variant:ident) => {{
        static ENTRY: $crate::Entry =
            $crate::Entry::new($crate::__core::symbol!(unary, $name, $type, $variant), &KERNELS);
        Some(&ENTRY)
    }};
}

/// Only fp8 ops with an fp8 result have a `table` entry.
#[doc(hidden)]
#[macro_export]
macro_rules! __table_entry {
    (f8e4m3 T $name:ident) => {
        $crate::__entry!($name f8e4m3 table)
    };
    (f8e5m2 T $name:ident) => {
        $crate::__entry!($name f8e5m2 table)
    };
    ($($other:tt)*) => {
        None
    };
}

/// The formula at f64. Ops on bits alone have none.
#[doc(hidden)]
#[macro_export]
macro_rules! __oracle {
    (Bits $($rest:tt)*) => {
        None
    };
    ($bound:ident $op:ident $params:tt) => {
        Some({
            fn oracle(x: f64, words: $crate::__core::Words) -> f64 {
        type O = $crate::__op_at!(f64, $op $params);
                let op = <O as $crate::__core::TableOp>::from_words(words);
                $crate::OracleValue::to_f64($crate::__core::UnaryOp::apply(op, x))
            }
            oracle
        })
    };
}

/// What a formula at f64 gives: a number, or a bool as 0 or 1.
#[doc(hidden)]
pub trait OracleValue {
    /// The value as a number.
    fn to_f64(self) -> f64;
}

impl OracleValue for f64 {
    fn to_f64(self) -> f64 {
        self
    }
}

impl OracleValue for bool {
    fn to_f64(self) -> f64 {
        f64::from(u8::from(self))
    }
}
