//! Tables of the gradients of ops of several operands: one formula, several results.

/// Declares the gradients of ops of several operands, one row each. Behind the table's name stands their
/// [`Kind`](crate::Kind).
///
/// ```
/// pointwise_core::gradient_ops! { my_gradients; Gradients;
///     /// The gradients of `a^2 b`.
///     square_times_backward: SquareTimesBackward (grad, a, b: Real) -> (grad_a, grad_b), [f32 bf16], Ulp(2.0) =>
///         [grad * (a + a) * b, grad * (a * a)];
/// }
/// # fn main() {}
/// ```
///
/// Rows are those of [`unary_ops`](crate::unary_ops), with up to four operands, the names of up to three results, and a
/// formula that is an array of them.
#[macro_export]
macro_rules! gradient_ops {
    ($table:ident; $kind:ident; $($rows:tt)*) => {
        $crate::__table! { ($) $table; $($rows)* }
        $crate::__define_gradients! { $kind; $($rows)* }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __define_gradients {
    ($kind:ident; $(
        $(#[doc = $doc:literal])*
        $name:ident: $op:ident $({ $($p:ident = $default:expr),* })? ($($x:ident),*: $bound:ident) -> ($($y:ident),*),
        [$($set:ident)*], $accuracy:expr => $formula:expr;
    )*) => {
        $(
            $crate::__define_gradient! {
                [$kind $(#[doc = $doc])* $name $op ($($x)*) $bound ($($y)*) [$($set)*] ($accuracy)]
                ($($($p = $default),*)?)
                $formula
            }
        )*

        /// The ops of this table, in its order.
        pub const OPS: &[$crate::OpInfo] = &[$($crate::__info!($op $({ $($p),* })?)),*];
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __define_gradient {
    ([$kind:ident $(#[doc = $doc:literal])* $name:ident $op:ident ($($x:ident)*) $bound:ident ($($y:ident)*)
        [$($set:ident)*] ($accuracy:expr)] () $formula:expr) => {
        $(#[doc = $doc])*
        #[derive(Clone, Copy, Debug)]
        pub struct $op;

        $crate::__impl_gradient!($kind [$op] ($($x)*) $bound {} $formula);

        impl $crate::op::TableOp for $op {
            const INFO: $crate::OpInfo = $crate::OpInfo {
                results: &[$(stringify!($y)),*],
                ..$crate::__op_info!($kind $name ($($x)*) [$($set)*] T ($accuracy) [$($doc)*] {} $formula)
            };
            #[inline(always)]
            fn from_words(_: $crate::op::Words) -> Self {
                $op
            }
        }
    };
    ([$kind:ident $(#[doc = $doc:literal])* $name:ident $op:ident ($($x:ident)*) $bound:ident ($($y:ident)*)
        [$($set:ident)*] ($accuracy:expr)] ($($p:ident = $default:expr),+) $formula:expr) => {
        $(#[doc = $doc])*
        #[derive(Clone, Copy, Debug)]
        pub struct $op<T> {
            $(
                #[doc = concat!("The parameter `", stringify!($p), "`; default ", stringify!($default), ".")]
                pub $p: T,
            )*
        }

        $crate::__impl_gradient!($kind [$op<T>] ($($x)*) $bound { $($p),* } $formula);

        impl<T: $crate::op::Word> $crate::op::TableOp for $op<T> {
            const INFO: $crate::OpInfo = $crate::OpInfo {
                results: &[$(stringify!($y)),*],
                ..$crate::__op_info!(
                    $kind $name ($($x)*) [$($set)*] T ($accuracy) [$($doc)*] { $($p = $default),* } $formula)
            };
            #[inline(always)]
            fn from_words(words: $crate::op::Words) -> Self {
                let [$($p,)* ..] = words;
                $op { $($p: T::from_word($p)),* }
            }
        }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __impl_gradient {
    (SelectGradients [$type:ty] $($rest:tt)*) => {
        $crate::__impl_gradient!(@first [$crate::Logic] [$type] $($rest)*);
    };
    (@first [$first:ty] [$type:ty] ($a:ident $($x:ident)*) $bound:ident { $($p:ident),* } $formula:expr) => {
        impl<T: $crate::$bound> $crate::GradientOp<T, $first> for $type {
            #[inline(always)]
            #[allow(unused_variables)] // a gradient may be constant
            fn apply(self, $a: $first, others: [T; $crate::op::MAX_OPERANDS - 1]) -> [T; $crate::op::MAX_RESULTS] {
                let [$($x,)* ..] = others;
                $(let $p = self.$p;)*
                $crate::op::padded($formula)
            }
        }
    };
    ($kind:ident [$type:ty] $($rest:tt)*) => {
        $crate::__impl_gradient!(@first [T] [$type] $($rest)*);
    };
}

/// The visitor that lists the kernels of a table of gradients, as [`unary_symbols`](crate::unary_symbols).
#[macro_export]
macro_rules! gradient_symbols {
    ($(
        $(#[doc = $doc:literal])*
        $name:ident: $op:ident $({ $($p:ident = $default:expr),* })? ($($x:ident),*: $bound:ident) -> ($($y:ident),*),
        [$($set:ident)*], $accuracy:expr => $formula:expr;
    )*) => {
        /// The symbol of every kernel of the table.
        #[must_use]
        pub fn symbols() -> Vec<&'static str> {
            let mut symbols = Vec::new();
            $( $crate::for_types! { [$($set)*] ($crate::__map_symbols_of) (symbols gradients $name) } )*
            symbols
        }
    };
}
