//! The visitors that make host functions of tables of gradients.

/// The visitor that makes host functions of a table of gradients: the modules `kernels` (each op as a
/// [`GradientsKernel`](crate::kernel::GradientsKernel)) and `ops` (functions `NAME`, whose result is the tuple of gradients,
/// and `NAME_into`), and the list `GRADIENTS` of the [`GradientDef`](crate::kernel::GradientDef)s.
///
/// In scope where it is called: the op types of the table, and [`include_kernels!`](crate::include_kernels)' `KERNELS`.
#[macro_export]
macro_rules! host_gradients {
    ($($rows:tt)*) => {
        $crate::__definitions! { (GRADIENTS GradientDef __gradient_def (same)) $($rows)* }
        $crate::__several! { (GradientsKernel gradients_with __gradient_ops) $($rows)* }
    };
}

/// As [`host_gradients!`](crate::host_gradients), of ops whose first operand is a condition.
#[macro_export]
macro_rules! host_select_gradients {
    ($($rows:tt)*) => {
        $crate::__definitions! { (GRADIENTS GradientDef __gradient_def (bool)) $($rows)* }
        $crate::__several! { (GradientsKernel gradients_with __gradient_ops) $($rows)* }
    };
}

/// As [`host_gradients!`](crate::host_gradients), of gated ops: with
/// [`GatedGradientsKernel`](crate::kernel::GatedGradientsKernel), and functions of `grad` and `x` with one result.
#[macro_export]
macro_rules! host_gated_gradients {
    ($($rows:tt)*) => {
        $crate::__definitions! { (GRADIENTS GradientDef __gradient_def (same)) $($rows)* }
        $crate::__functions! {
            (GatedGradientsKernel gated_gradients_with __gated_gradient_ops "The ops as functions of `grad` of shape \
             `(.., N)` and `x` of shape `(.., 2N)`, the gate in front.")
            $($rows)*
        }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __gradient_def {
    (($first:ident) [$($doc:literal)*] $def:ident $name:ident $op:ident $params:tt $x:tt $bound:ident $y:tt
        [$($set:ident)*]) => {
        $(#[doc = $doc])*
        pub static $def: $crate::kernel::GradientDef = $crate::kernel::GradientDef {
            info: $crate::__op_info!($op $params),
            cpu: {
                fn cpu(dtype: $crate::DType) -> Option<$crate::__private::cpu::GradientsFn> {
                    $crate::__private::core::for_types! { [$($set)*] ($crate::__gradient_cpu) (dtype $first $op $params) }
                    None
                }
                cpu
            },
            entry: {
                fn entry(dtype: $crate::DType, class: $crate::kernel::Class) -> Option<&'static $crate::kernel::Entry> {
                    $crate::__private::core::for_types! {
                        [$($set)*] ($crate::__map_entries) (dtype class gradients [gradients $first] $name $op $params)
                    }
                    None
                }
                entry
            },
            oracle: $crate::__gradient_formula!($first f64 (f64) $op $params),
            stepped: $crate::__gradient_formula!($first f32 ($crate::__private::core::Stepped) $op $params),
            // SAFETY: all of it is made of the one row, which `ROW` has checked for each type.
            made: unsafe { $crate::__private::Made::of_a_row() },
        };
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __gradient_cpu {
    ($type:ident, ($dtype:ident $first:ident $op:ident $params:tt)) => {
        if $dtype == <$crate::__private::core::element::ty::$type as $crate::__private::core::Element>::DTYPE {
            type E = $crate::__private::core::element::ty::$type;
            type F = $crate::__gradient_first!($first);
            return Some(
                $crate::__private::cpu::gradients::<F, E, $crate::__op_at!(<E as $crate::__private::core::Element>::Compute, $op $params)>,
            );
        }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __gradient_first {
    (same) => {
        E
    };
    (bool) => {
        $crate::__private::core::element::Bool
    };
}

/// The formula at another compute type, between arrays of a number type.
#[doc(hidden)]
#[macro_export]
macro_rules! __gradient_formula {
    ($first:ident $number:ident ($compute:ty) $op:ident $params:tt) => {{
        fn formula(x: [$number; 4], words: $crate::__private::core::Words) -> [$number; 3] {
            type O = $crate::__op_at!($compute, $op $params);
            let op = <O as $crate::__private::core::TableOp>::from_words(words);
            let others = [$crate::__private::Step::of(x[1]), $crate::__private::Step::of(x[2]), $crate::__private::Step::of(x[3])];
            let y: [$compute; 3] =
                $crate::__private::core::GradientOp::apply(op, $crate::__gradient_first_value!($first x[0]), others);
            y.map($crate::__private::Step::number)
        }
        formula
    }};
}

#[doc(hidden)]
#[macro_export]
macro_rules! __gradient_first_value {
    (same $x:expr) => {
        $crate::__private::Step::of($x)
    };
    (bool $x:expr) => {
        $crate::__private::core::Logic($x != 0.0)
    };
}

/// A compute type of references and the numbers it stands for.
#[doc(hidden)]
pub trait Step {
    /// The numbers.
    type Number;
    /// A number as the compute type.
    fn of(number: Self::Number) -> Self;
    /// The inverse.
    fn number(self) -> Self::Number;
}

impl Step for f64 {
    type Number = f64;
    fn of(number: f64) -> Self {
        number
    }
    fn number(self) -> f64 {
        self
    }
}

impl Step for pointwise_core::Stepped {
    type Number = f32;
    fn of(number: f32) -> Self {
        pointwise_core::Stepped(number)
    }
    fn number(self) -> f32 {
        self.0
    }
}

#[doc(hidden)]
#[macro_export]
macro_rules! __gradient_ops {
    ([$($doc:literal)*] $name:ident ($($y:ident),*) ($($x:ident)*) [$($p:ident)*]) => {
        $crate::__private::pastey::paste! {
            $(#[doc = $doc])*
            ///
            /// Every gradient has the shape that the operands broadcast to; that of a broadcast operand is to be summed
            /// over the dimensions along which it was.
            ///
            /// # Errors
            /// As [`GradientsKernel::run`]($crate::kernel::GradientsKernel::run).
            pub fn $name<'a>(
                $($x: impl Into<$crate::Operand<'a>>,)*
                $($p: impl Into<$crate::Number>,)*
            ) -> $crate::Result<($($crate::__gradient_tensor!($y)),*)> {
                let mut results = super::kernels::$name($($p),*).run(&[$($x.into()),*])?.into_iter();
                // One for each name: that is what the table lists.
                $( let $y = results.next().ok_or_else($crate::__private::no_result)?; )*
                Ok(($($y),*))
            }

            #[doc = concat!("[`", stringify!($name), "`] into tensors that are there.")]
            ///
            /// # Errors
            /// As [`GradientsKernel::run_into`]($crate::kernel::GradientsKernel::run_into).
            pub fn [<$name _into>]<'a, 'b>(
                $($x: impl Into<$crate::Operand<'a>>,)*
                $($y: impl Into<$crate::TensorViewMut<'b>>,)*
                $($p: impl Into<$crate::Number>,)*
            ) -> $crate::Result<()> {
                super::kernels::$name($($p),*).run_into(&[$($x.into()),*], &mut [$($y.into()),*])
            }
        }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __gradient_tensor {
    ($y:ident) => {
        $crate::Tensor
    };
}

/// A table that lists more results than its op has.
#[doc(hidden)]
#[cold]
pub fn no_result() -> crate::Error {
    crate::ErrorKind::NoKernel {
        symbol: "of a gradient".to_owned(),
        why: "its table lists more results than its op has; please report this".to_owned(),
    }
    .into()
}

#[doc(hidden)]
#[macro_export]
macro_rules! __gated_gradient_ops {
    ([$($doc:literal)*] $name:ident $y:tt $x:tt [$($p:ident)*]) => {
        $crate::__private::pastey::paste! {
            $(#[doc = $doc])*
            ///
            /// # Errors
            /// As [`GatedGradientsKernel::run`]($crate::kernel::GatedGradientsKernel::run).
            pub fn $name<'a>(
                grad: impl Into<$crate::Operand<'a>>,
                x: impl Into<$crate::TensorView<'a>>,
                $($p: impl Into<$crate::Number>,)*
            ) -> $crate::Result<$crate::Tensor> {
                super::kernels::$name($($p),*).run(grad, x)
            }

            #[doc = concat!("[`", stringify!($name), "`] into a tensor that is there.")]
            ///
            /// # Errors
            /// As [`GatedGradientsKernel::run_into`]($crate::kernel::GatedGradientsKernel::run_into).
            pub fn [<$name _into>]<'a, 'b>(
                grad: impl Into<$crate::Operand<'a>>,
                x: impl Into<$crate::TensorView<'a>>,
                y: impl Into<$crate::TensorViewMut<'b>>,
                $($p: impl Into<$crate::Number>,)*
            ) -> $crate::Result<()> {
                super::kernels::$name($($p),*).run_into(grad, x, y)
            }
        }
    };
}
