//! The visitors that make host functions of an op table.

/// Includes the kernels that the build script compiled, as a static `KERNELS` for
/// [`host_unary!`](crate::host_unary) and for [`Device::best_for`](crate::Device::best_for).
#[macro_export]
macro_rules! include_kernels {
    () => {
        /// The kernels embedded in this program: none where it was built without a compiler for GPU code.
        #[allow(unreachable_pub)]
        pub static KERNELS: $crate::embed::Kernels = {
            use $crate::embed::*;
            include!(concat!(env!("OUT_DIR"), "/pointwise_kernels.rs"))
        };
    };
}

/// The visitor that makes host functions of a table of unary ops: the modules `kernels` (each op as a
/// [`UnaryKernel`](crate::kernel::UnaryKernel)) and `ops` (functions `NAME`, `NAME_into`, and `NAME_inplace` where the result
/// has the operand's type), and the list `UNARY` of the [`UnaryDef`](crate::kernel::UnaryDef)s.
///
/// In scope where it is called: the op types of the table, and [`include_kernels!`](crate::include_kernels)' `KERNELS`.
/// For the table `my_ops` of a kernel crate `my_kernels`, which the host crate depends on and its build script
/// compiles:
///
/// ```ignore
/// use my_kernels::*;
///
/// pointwise::include_kernels!();
/// my_kernels::my_ops!(pointwise::host_unary);
/// ```
///
/// The type of an op is to be what its row made it. One whose [`TableOp`](pointwise_core::TableOp) says something else
/// of its formula, for which tensors of the wrong size would be made, does not compile:
///
/// ```compile_fail
/// use pointwise_core::op::Words;
/// use pointwise_core::{OpInfo, Real, ResultType, TableOp, UnaryOp, family::unary::Relu};
///
/// #[derive(Clone, Copy)]
/// pub struct Same;
/// impl TableOp for Same {
///     const INFO: OpInfo = OpInfo { result: ResultType::Bool, ..<Relu as TableOp>::INFO };
///     fn from_words(_: Words) -> Self { Same }
/// }
/// impl<T: Real> UnaryOp<T> for Same {
///     type Output = T; // and no bool
///     fn apply(self, x: T) -> T { x }
/// }
///
/// static KERNELS: pointwise::embed::Kernels = pointwise::embed::Kernels::empty("none are needed");
/// pointwise::host_unary! { same: Same (x: Real) -> T, [f32], Exact => x; }
/// # fn main() { assert!((definitions::same.cpu)(pointwise::DType::F32).is_some()); }
/// ```
#[macro_export]
macro_rules! host_unary {
    ($($rows:tt)*) => {
        $crate::__definitions! { (UNARY UnaryDef __unary_def ()) $($rows)* }
        $crate::__functions! {
            (UnaryKernel kernel_with __ops "The ops as functions. A parameter is any number, or `Number::Default`.")
            $($rows)*
        }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __unary_def {
    (() [$($doc:literal)*] $def:ident $name:ident $op:ident $params:tt $x:tt $bound:ident $out:ident
        [$($set:ident)*]) => {
        $(#[doc = $doc])*
        pub static $def: $crate::kernel::UnaryDef = $crate::kernel::UnaryDef {
            info: $crate::__op_info!($op $params),
            cpu: {
                fn cpu(dtype: $crate::DType) -> Option<$crate::__private::cpu::FormulaFn> {
                    $crate::__private::core::for_types! { [$($set)*] ($crate::__cpu_type) (dtype $op $params) }
                    None
                }
                cpu
            },
            entry: {
                fn entry(dtype: $crate::DType, variant: $crate::kernel::Variant) -> Option<&'static $crate::kernel::Entry> {
                    $crate::__private::core::for_types! { [$($set)*] ($crate::__entry_type) (dtype variant $name $out $op $params) }
                    None
                }
                entry
            },
            oracle: $crate::__oracle!($bound $op $params),
            // SAFETY: all of it is made of the one row, which `ROW` has checked for each type.
            made: unsafe { $crate::__private::Made::of_a_row() },
        };
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __ops {
    ($doc:tt $name:ident $out:ident $x:tt [$($p:ident)*]) => {
        $crate::__ops_of_one! { UnaryKernel $doc $name [$($p)*] }
        $crate::__private::pastey::paste! { $crate::__ops_inplace! { $out [<$name _inplace>] $name [$($p)*] } }
    };
}

/// The functions of an op of one tensor that kernels of type `$Kernel` run, but for the one in place.
#[doc(hidden)]
#[macro_export]
macro_rules! __ops_of_one {
    ($Kernel:ident [$($doc:literal)*] $name:ident [$($p:ident)*]) => {
        $crate::__private::pastey::paste! {
            $(#[doc = $doc])*
            ///
            /// # Errors
            #[doc = concat!("As [`", stringify!($Kernel), "::run`]($crate::kernel::", stringify!($Kernel), "::run).")]
            pub fn $name<'a>(
                x: impl Into<$crate::TensorView<'a>>,
                $($p: impl Into<$crate::Number>,)*
            ) -> $crate::Result<$crate::Tensor> {
                super::kernels::$name($($p),*).run(x)
            }

            #[doc = concat!("[`", stringify!($name), "`] into a tensor that is there.")]
            ///
            /// # Errors
            #[doc = concat!("As [`", stringify!($Kernel), "::run_into`]($crate::kernel::", stringify!($Kernel), "::run_into).")]
            pub fn [<$name _into>]<'a, 'b>(
                x: impl Into<$crate::TensorView<'a>>,
                y: impl Into<$crate::TensorViewMut<'b>>,
                $($p: impl Into<$crate::Number>,)*
            ) -> $crate::Result<()> {
                super::kernels::$name($($p),*).run_into(x, y)
            }
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
        /// As [`UnaryKernel::run_inplace`]($crate::kernel::UnaryKernel::run_inplace).
        pub fn $inplace<'a>(
            x: impl Into<$crate::TensorViewMut<'a>>,
            $($p: impl Into<$crate::Number>,)*
        ) -> $crate::Result<()> {
            super::kernels::$name($($p),*).run_inplace(x)
        }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __cpu_type {
    ($type:ident, ($dtype:ident $op:ident $params:tt)) => {
        if $dtype == <$crate::__private::core::element::ty::$type as $crate::__private::core::Element>::DTYPE {
            type E = $crate::__private::core::element::ty::$type;
            return Some(
                $crate::__private::cpu::unary::<
                    E,
                    $crate::__op_at!(<E as $crate::__private::core::Element>::Compute, $op $params),
                >,
            );
        }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __entry_type {
    ($type:ident, ($dtype:ident $variant:ident $name:ident $out:ident $op:ident $params:tt)) => {
        if $dtype == <$crate::__private::core::element::ty::$type as $crate::__private::core::Element>::DTYPE {
            type E = $crate::__private::core::element::ty::$type;
            $crate::__row! { $op $params }
            return match $variant {
                $crate::kernel::Variant::Strided => $crate::__entry!($name $type strided),
                $crate::kernel::Variant::RegisterCopy => $crate::__entry!($name $type register_copy),
                $crate::kernel::Variant::Table => $crate::__table_entry!($type $out $name),
                _ => None,
            };
        }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __entry {
    ($name:ident $type:ident $variant:ident) => {{
        static ENTRY: $crate::kernel::Entry =
            $crate::kernel::Entry::new($crate::__private::core::symbol!(unary, $name, $type, $variant), ROW, &KERNELS);
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
            fn oracle(x: f64, words: $crate::__private::core::Words) -> f64 {
        type O = $crate::__op_at!(f64, $op $params);
                let op = <O as $crate::__private::core::TableOp>::from_words(words);
                $crate::__private::OracleValue::to_f64($crate::__private::core::UnaryOp::apply(op, x))
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
