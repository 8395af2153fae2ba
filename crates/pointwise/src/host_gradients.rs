//! The visitors that make host functions of tables of gradients.

/// The visitor that makes host functions of a table of gradients: the modules `kernels` (each op as a
/// [`GradientsKernel`](crate::kernel::GradientsKernel)) and `ops` (functions `NAME`, whose result is the tuple of gradients,
/// and `NAME_into`), and the list `GRADIENTS` of the [`OpDef`](crate::kernel::OpDef)s.
///
/// In scope where it is called: the op types of the table, and [`include_kernels!`](crate::include_kernels)' `KERNELS`.
#[macro_export]
macro_rules! host_gradients {
    ($($rows:tt)*) => {
        $crate::__definitions! { (GRADIENTS OpDef __several_def (gradients same plain)) $($rows)* }
        $crate::__several! { (GradientsKernel kernel __gradient_ops) $($rows)* }
    };
}

/// As [`host_gradients!`](crate::host_gradients), of ops whose first operand is a condition.
#[macro_export]
macro_rules! host_select_gradients {
    ($($rows:tt)*) => {
        $crate::__definitions! { (GRADIENTS OpDef __several_def (gradients bool plain)) $($rows)* }
        $crate::__several! { (GradientsKernel kernel __gradient_ops) $($rows)* }
    };
}

/// As [`host_gradients!`](crate::host_gradients), of gated ops: with
/// [`GatedGradientsKernel`](crate::kernel::GatedGradientsKernel), and functions of `grad` and `x` with one result.
#[macro_export]
macro_rules! host_gated_gradients {
    ($($rows:tt)*) => {
        $crate::__definitions! { (GRADIENTS OpDef __several_def (gradients same plain)) $($rows)* }
        $crate::__functions! {
            (GatedGradientsKernel gated_gradients __gated_gradient_ops "The ops as functions of `grad` of shape \
             `(.., N)` and `x` of shape `(.., 2N)`, the gate in front.")
            $($rows)*
        }
    };
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
            /// As [`Kernel::run`]($crate::kernel::Kernel::run).
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
            /// As [`Kernel::run_into`]($crate::kernel::Kernel::run_into).
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
