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
/// has the operand's type), and the list `UNARY` of the [`OpDef`](crate::kernel::OpDef)s.
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
/// # fn main() { assert!(definitions::same.has_oracle()); }
/// ```
#[macro_export]
macro_rules! host_unary {
    ($($rows:tt)*) => {
        $crate::__definitions! { (UNARY OpDef __several_def (unary same Unary)) $($rows)* }
        $crate::__functions! {
            (UnaryKernel unary_with __ops "The ops as functions. A parameter is any number, or `Number::Default`.")
            $($rows)*
        }
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
