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
/// Rows are those of [`unary_ops`](crate::unary_ops), with the names of up to 12 operands and of up to 8 results, and a
/// formula that is an array of these.
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
        pub const OPS: &[$crate::OpInfo] = &[$($crate::__gradient_info!($op $({ $($p),* })?)),*];
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __gradient_info {
    ($op:ident) => {
        <$op as $crate::OpData>::INFO
    };
    ($op:ident { $($p:ident),* }) => {
        <$op<f32> as $crate::OpData>::INFO
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

        $crate::__impl_gradient!($kind [$op] ($($x)*) $bound ($($y)*) {} $formula);

        impl $crate::OpData for $op {
            const INFO: $crate::OpInfo = $crate::OpInfo {
                results: &[$(stringify!($y)),*],
                ..$crate::__op_info!($kind $name ($($x)*) [$($set)*] T ($accuracy) [$($doc)*] {} $formula)
            };
            #[inline(always)]
            fn from_words(_: &$crate::ParamWords) -> Self {
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

        $crate::__impl_gradient!($kind [$op<T>] ($($x)*) $bound ($($y)*) { $($p),* } $formula);

        impl<T: $crate::op::Word> $crate::OpData for $op<T> {
            const INFO: $crate::OpInfo = $crate::OpInfo {
                results: &[$(stringify!($y)),*],
                ..$crate::__op_info!(
                    $kind $name ($($x)*) [$($set)*] T ($accuracy) [$($doc)*] { $($p = $default),* } $formula)
            };
            #[inline(always)]
            fn from_words(words: &$crate::ParamWords) -> Self {
                let [$($p,)* ..] = *words;
                $op { $($p: T::from_word($p)),* }
            }
        }
    };
}

/// The formula of a row. The first operand of a selection's gradients is the condition.
#[doc(hidden)]
#[macro_export]
macro_rules! __impl_gradient {
    (SelectGradients [$type:ty] ($condition:ident $($x:ident)*) $($rest:tt)*) => {
        $crate::__impl_gradient!(@ [$condition] [$type] ($condition $($x)*) $($rest)*);
    };
    (@ [$($condition:ident)?] [$type:ty] ($($x:ident)*) $bound:ident ($($y:ident)*) { $($p:ident),* }
        $formula:expr) => {
        impl<T: $crate::$bound> $crate::Formula<
            T,
            { [$(stringify!($x)),*].len() },
            { [$(stringify!($y)),*].len() },
        > for $type {
            #[inline(always)]
            #[allow(unused_variables)] // a gradient may be constant
            fn apply(
                self,
                [$($x),*]: [T; [$(stringify!($x)),*].len()],
                truths: [bool; [$(stringify!($x)),*].len()],
                _: $crate::RandomWord<'_>,
            ) -> ([T; [$(stringify!($y)),*].len()], [bool; [$(stringify!($y)),*].len()]) {
                $(let $condition = $crate::Logic(truths[0]);)?
                $(let $p = self.$p;)*
                ($formula, [false; [$(stringify!($y)),*].len()])
            }
        }
    };
    ($kind:ident $($rest:tt)*) => {
        $crate::__impl_gradient!(@ [] $($rest)*);
    };
}
