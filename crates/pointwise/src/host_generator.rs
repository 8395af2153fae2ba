//! The visitor that makes host functions of tables of generators.

/// The visitor that makes host functions of a table of generators ([`generator_ops!`](pointwise_core::generator_ops)):
/// the modules `kernels` (each op as a [`GeneratorKernel`](crate::kernel::GeneratorKernel)) and `ops` (functions `NAME` and
/// `NAME_into`), and the list `GENERATORS` of the [`GeneratorDef`](crate::kernel::GeneratorDef)s.
///
/// In scope where it is called: the op types of the table, and [`include_kernels!`](crate::include_kernels)' `KERNELS`.
#[macro_export]
macro_rules! host_generator {
    ($(
        $(#[doc = $doc:literal])*
        $name:ident: $op:ident $({ $($p:ident = $default:expr),* })? ($plane:ident, $row:ident, $column:ident)
        [$($set:ident)*], $accuracy:expr => $formula:expr;
    )*) => {
        /// The definitions of the ops, by name.
        #[allow(non_upper_case_globals)]
        pub mod definitions {
            #[allow(unused_imports)]
            use super::*;
            $(
                $(#[doc = $doc])*
                pub static $name: $crate::kernel::GeneratorDef = $crate::kernel::GeneratorDef {
                    info: <$op as $crate::__private::core::TableOp>::INFO,
                    rows: <$op as $crate::__private::core::GeneratorOp>::ROWS,
                    cpu: {
                        fn cpu(dtype: $crate::DType) -> Option<$crate::__private::cpu::GeneratorFn> {
                            $crate::__private::core::for_types! { [$($set)*] ($crate::__generator_cpu) (dtype $op) }
                            None
                        }
                        cpu
                    },
                    entry: {
                        fn entry(dtype: $crate::DType, variant: $crate::kernel::Variant) -> Option<&'static $crate::kernel::Entry> {
                            $crate::__private::core::for_types! { [$($set)*] ($crate::__generator_entry) (dtype variant $name $op) }
                            None
                        }
                        entry
                    },
                    // SAFETY: all of it is made of the one row, which `ROW` has checked for each type.
                    made: unsafe { $crate::__private::Made::of_a_row() },
                };
            )*
        }

        /// Every op of the table, in its order.
        pub static GENERATORS: &[&$crate::kernel::GeneratorDef] = &[$(&definitions::$name),*];

        /// The ops as kernel objects, whose strategy, threads and stream can be set.
        pub mod kernels {
            $(
                $(#[doc = $doc])*
                #[must_use]
                pub fn $name($($($p: impl Into<$crate::Number>),*)?) -> $crate::kernel::GeneratorKernel {
                    super::definitions::$name.kernel_with(&[$($($p.into()),*)?])
                }
            )*
        }

        /// The ops as functions. A parameter is any number, or `Number::Default`.
        pub mod ops {
            $( $crate::__generator_ops! { [$($doc)*] $name [$($($p)*)?] } )*
        }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __generator_ops {
    ([$($doc:literal)*] $name:ident [$($p:ident)*]) => {
        $crate::__private::pastey::paste! {
            $(#[doc = $doc])*
            ///
            /// # Errors
            /// As [`GeneratorKernel::run`]($crate::kernel::GeneratorKernel::run).
            pub fn $name(
                device: &$crate::Device,
                dtype: $crate::DType,
                shape: impl $crate::tensor::IntoShape,
                $($p: impl Into<$crate::Number>,)*
            ) -> $crate::Result<$crate::Tensor> {
                super::kernels::$name($($p),*).run(device, dtype, shape)
            }

            #[doc = concat!("[`", stringify!($name), "`] into a tensor that is there.")]
            ///
            /// # Errors
            /// As [`GeneratorKernel::run_into`]($crate::kernel::GeneratorKernel::run_into).
            pub fn [<$name _into>]<'a>(
                y: impl Into<$crate::TensorViewMut<'a>>,
                $($p: impl Into<$crate::Number>,)*
            ) -> $crate::Result<()> {
                super::kernels::$name($($p),*).run_into(y)
            }
        }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __generator_cpu {
    ($type:ident, ($dtype:ident $op:ident)) => {
        if $dtype == <$crate::__private::core::element::ty::$type as $crate::__private::core::Element>::DTYPE {
            return Some($crate::__private::cpu::generator::<$crate::__private::core::element::ty::$type, $op>);
        }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __generator_entry {
    ($type:ident, ($dtype:ident $variant:ident $name:ident $op:ident)) => {
        if $dtype == <$crate::__private::core::element::ty::$type as $crate::__private::core::Element>::DTYPE {
            const ROW: u64 = $crate::__private::core::row::of_generator::<$crate::__private::core::element::ty::$type, $op>();
            return match $variant {
                $crate::kernel::Variant::Direct => $crate::__generator_static!($name $type direct),
                $crate::kernel::Variant::RegisterCopy => $crate::__generator_static!($name $type register_copy),
                _ => None,
            };
        }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __generator_static {
    ($name:ident $type:ident $variant:ident) => {{
        static ENTRY: $crate::kernel::Entry = $crate::kernel::Entry::new(
            $crate::__private::core::symbol!(generator, $name, $type, $variant),
            ROW,
            &KERNELS,
        );
        Some(&ENTRY)
    }};
}
