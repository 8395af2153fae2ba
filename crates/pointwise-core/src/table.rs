//! The macros by which ops are declared, in the family and in a user's crate alike.
//!
//! A table is declared once and read by visitors: `unary_ops! { my_ops; rows }` defines the op types, their formulas
//! and their [`OpInfo`](crate::OpInfo)s, and a macro `my_ops!` that hands the rows to a visitor.
//! `pointwise_device::export_unary` is the visitor that makes kernel entries of them, `pointwise::host_unary` the one
//! that makes host functions.

/// Declares unary ops, one row each.
///
/// ```
/// pointwise_core::unary_ops! { my_ops;
///     /// `max(x, 0)^2`.
///     squared_relu: SquaredRelu (x: Num) -> T, [floats ints], Ulp(1.0) => { let r = x.maximum(T::ZERO); r * r };
///     /// `x + sin^2(a x) / a` (Ziyin et al. 2020).
///     snake: Snake { a = 1.0 } (x: Real) -> T, [f32 bf16], Ulp(4.0) => { let s = (a * x).sin(); x + s * s / a };
/// }
/// # fn main() {}
/// ```
///
/// A row is: documentation; the op's name; the name of its Rust type; its parameters with their defaults; the operand
/// and what the formula asks of the compute type `T` (`Real`, `Num`, `Bits` or `Value`); the result, `T` or `bool`; the
/// element types, singly or as the sets of [`for_types`](crate::for_types), with the word `int_to_float` where integers
/// and bool are converted to f32 first, and, for speed alone, those of [`Properties`](crate::Properties); the error
/// bound ([`Accuracy`](crate::Accuracy)); the formula, over the operand, the parameters and `T`.
///
/// A table takes one module: it also defines `OPS`, the list of its [`OpInfo`](crate::OpInfo)s.
#[macro_export]
macro_rules! unary_ops {
    ($table:ident; $($rows:tt)*) => {
        $crate::__table! { ($) $table; $($rows)* }
        $crate::__define_ops! { Unary; $($rows)* }
    };
}

/// Declares binary ops, one row each; rows as in [`unary_ops`](crate::unary_ops) with two operands, `(a, b: Num)`.
#[macro_export]
macro_rules! binary_ops {
    ($table:ident; $($rows:tt)*) => {
        $crate::__table! { ($) $table; $($rows)* }
        $crate::__define_ops! { Binary; $($rows)* }
    };
}

/// Declares binary ops whose second operand has one element for all or one a channel (dimension 1 of the first), as
/// `prelu`'s weight; rows as in [`binary_ops`](crate::binary_ops).
#[macro_export]
macro_rules! channel_ops {
    ($table:ident; $($rows:tt)*) => {
        $crate::__table! { ($) $table; $($rows)* }
        $crate::__define_ops! { Channel; $($rows)* }
    };
}

/// Declares the gradients of unary ops, one row each; rows as in [`unary_ops`](crate::unary_ops) with the operands
/// `(grad, x: Real)`.
#[macro_export]
macro_rules! backward_ops {
    ($table:ident; $($rows:tt)*) => {
        $crate::__table! { ($) $table; $($rows)* }
        $crate::__define_ops! { Backward; $($rows)* }
    };
}

/// Declares gated ops, one row each: binary formulas whose operands are the halves of one tensor of shape `(.., 2N)`.
///
/// ```
/// pointwise_core::gated_ops! { my_gated_ops;
///     /// `relu(gate) * value` (Shazeer 2020).
///     relu_and_mul: ReluAndMul (gate, value: Real) -> T, [floats], Exact => gate.maximum(T::ZERO) * value;
/// }
/// # fn main() {}
/// ```
#[macro_export]
macro_rules! gated_ops {
    ($table:ident; $($rows:tt)*) => {
        $crate::__table! { ($) $table; $($rows)* }
        $crate::__define_ops! { Gated; $($rows)* }
    };
}

/// Declares ternary ops, one row each; rows as in [`unary_ops`](crate::unary_ops) with three operands,
/// `(a, b, c: Real)`.
#[macro_export]
macro_rules! ternary_ops {
    ($table:ident; $($rows:tt)*) => {
        $crate::__table! { ($) $table; $($rows)* }
        $crate::__define_ops! { Ternary; $($rows)* }
    };
}

/// Declares ops that move elements of any type by a condition, one row each, with the operands
/// `(condition, a, b: Value)`. The first is bool; the others are bits, of which a formula may only select, by the
/// first: it is instantiated by element width, and evaluated for some widths once for each truth of the first.
#[macro_export]
macro_rules! select_ops {
    ($table:ident; $($rows:tt)*) => {
        $crate::__table! { ($) $table; $($rows)* }
        $crate::__define_ops! { Select; $($rows)* }
    };
}

/// The macro that hands a table's rows to a visitor.
#[doc(hidden)]
#[macro_export]
macro_rules! __table {
    (($d:tt) $table:ident; $($rows:tt)*) => {
        /// Hands the rows of this table to a visitor macro: `table!(path::to::visitor)`.
        #[macro_export]
        macro_rules! $table {
            ($d($d visitor:ident)::+) => {
                $d($d visitor)::+! { $($rows)* }
            };
        }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __define_ops {
    ($kind:ident; $(
        $(#[doc = $doc:literal])*
        $name:ident: $op:ident $({ $($p:ident = $default:expr),* })? ($($x:ident),*: $bound:ident) -> $out:ident,
        [$($set:ident)*], $accuracy:expr => $formula:expr;
    )*) => {
        $(
            $crate::__define_op! {
                [$kind $(#[doc = $doc])* $name $op ($($x)*) $bound $out [$($set)*] ($accuracy)]
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
macro_rules! __info {
    ($op:ident) => {
        <$op as $crate::op::TableOp>::INFO
    };
    ($op:ident { $($p:ident),* }) => {
        <$op<f32> as $crate::op::TableOp>::INFO
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __define_op {
    ([$($row:tt)*] () $formula:expr) => {
        $crate::__define_op! { @type [$($row)*] $formula }
    };
    ([$kind:ident $(#[doc = $doc:literal])* $name:ident $($row:tt)*]
        ($a:ident = $va:expr, $b:ident = $vb:expr, $c:ident = $vc:expr, $d:ident = $vd:expr, $($more:tt)+)
        $formula:expr) => {
        compile_error!(concat!("`", stringify!($name), "` has more than four parameters, the most an op can have"));
    };
    ([$($row:tt)*] ($($p:ident = $default:expr),+) $formula:expr) => {
        $crate::__define_op! { @generic [$($row)*] { $($p = $default),* } $formula }
    };
    (@type [$kind:ident $(#[doc = $doc:literal])* $name:ident $op:ident ($($x:ident)*) $bound:ident $out:ident
        [$($set:ident)*] ($accuracy:expr)] $formula:expr) => {
        $(#[doc = $doc])*
        #[derive(Clone, Copy, Debug)]
        pub struct $op;

        $crate::__impl_op!($kind $op [$op] ($($x)*) $bound $out {} $formula);

        impl $crate::op::TableOp for $op {
            const INFO: $crate::OpInfo = $crate::__op_info!(
                $kind $name ($($x)*) [$($set)*] $out ($accuracy) [$($doc)*] {} $formula);
            #[inline(always)]
            fn from_words(_: $crate::op::Words) -> Self {
                $op
            }
        }
    };
    (@generic [$kind:ident $(#[doc = $doc:literal])* $name:ident $op:ident ($($x:ident)*) $bound:ident $out:ident
        [$($set:ident)*] ($accuracy:expr)] { $($p:ident = $default:expr),* } $formula:expr) => {
        $(#[doc = $doc])*
        #[derive(Clone, Copy, Debug)]
        pub struct $op<T> {
            $(
                #[doc = concat!("The parameter `", stringify!($p), "`; default ", stringify!($default), ".")]
                pub $p: T,
            )*
        }

        $crate::__impl_op!($kind $op [$op<T>] ($($x)*) $bound $out { $($p),* } $formula);

        impl<T: $crate::op::Word> $crate::op::TableOp for $op<T> {
            const INFO: $crate::OpInfo = $crate::__op_info!(
                $kind $name ($($x)*) [$($set)*] $out ($accuracy) [$($doc)*] { $($p = $default),* } $formula);
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
macro_rules! __impl_op {
    (Unary $op:ident [$type:ty] ($x:ident) $bound:ident $out:ident { $($p:ident),* } $formula:expr) => {
        impl<T: $crate::$bound> $crate::UnaryOp<T> for $type {
            type Output = $out;
            #[inline(always)]
            fn apply(self, $x: T) -> $out {
                $(let $p = self.$p;)*
                $formula
            }
        }
    };
    (Binary $op:ident [$type:ty] ($a:ident $b:ident) $bound:ident $out:ident { $($p:ident),* } $formula:expr) => {
        impl<T: $crate::$bound> $crate::BinaryOp<T> for $type {
            type Output = $out;
            #[inline(always)]
            #[allow(unused_variables)] // a gradient may not depend on the operand
            fn apply(self, $a: T, $b: T) -> $out {
                $(let $p = self.$p;)*
                $formula
            }
        }
    };
    (Backward $($rest:tt)*) => {
        $crate::__impl_op!(Binary $($rest)*);
    };
    (Channel $($rest:tt)*) => {
        $crate::__impl_op!(Binary $($rest)*);
    };
    (Gated $($rest:tt)*) => {
        $crate::__impl_op!(Binary $($rest)*);
    };
    (Ternary $op:ident [$type:ty] ($a:ident $b:ident $c:ident) $bound:ident $out:ident { $($p:ident),* } $formula:expr) => {
        impl<T: $crate::$bound> $crate::TernaryOp<T> for $type {
            type Output = $out;
            #[inline(always)]
            fn apply(self, $a: T, $b: T, $c: T) -> $out {
                $(let $p = self.$p;)*
                $formula
            }
        }
    };
    (Select $op:ident [$type:ty] ($a:ident $b:ident $c:ident) $bound:ident $out:ident { $($p:ident),* } $formula:expr) => {
        impl<T: $crate::$bound> $crate::TernaryOp<T, $crate::Logic> for $type {
            type Output = $out;
            #[inline(always)]
            fn apply(self, $a: $crate::Logic, $b: T, $c: T) -> $out {
                $(let $p = self.$p;)*
                $formula
            }
        }
    };
    ($kind:ident $op:ident $($rest:tt)*) => {
        compile_error!(concat!(
            "`", stringify!($op), "` has another number of operands than the ops of its table: one in unary_ops!; \
             two in binary_ops!, channel_ops!, gated_ops! and backward_ops!; three in ternary_ops! and select_ops!"
        ));
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __op_info {
    ($kind:ident $name:ident ($($x:ident)*) [$($set:ident)*] $out:ident ($accuracy:expr) [$($doc:literal)*]
        { $($p:ident = $default:expr),* } $formula:expr) => {{
        #[allow(unused_imports)]
        use $crate::Accuracy::*;
        #[allow(unused_mut)] // without words there is nothing to set
        let mut info = $crate::OpInfo {
            name: stringify!($name),
            kind: $crate::Kind::$kind,
            operands: &[$(stringify!($x)),*],
            bool_operands: $crate::Kind::$kind.bool_operands(),
            bool_results: $crate::__result_type!($out).bits(),
            is_random: false,
            results: &["y"],
            params: &[$($crate::ParamInfo::number(stringify!($p), $default as f64)),*],
            types: $crate::info::checked_types($crate::__dtypes!([$($set)*] [])),
            int_to_float: false,
            result: $crate::__result_type!($out),
            accuracy: $accuracy,
            doc: concat!($($doc, "\n"),*),
            formula: stringify!($formula),
            properties: $crate::Properties::NONE,
        };
        $($crate::__set_word!(info $set);)*
        info
    }};
}

#[doc(hidden)]
#[macro_export]
macro_rules! __result_type {
    (T) => {
        $crate::ResultType::Same
    };
    (bool) => {
        $crate::ResultType::Bool
    };
    ($out:ident) => {
        compile_error!(concat!(
            "a result is `T`, the type of the operands, or `bool`, not `",
            stringify!($out),
            "`: the element types are a column of their own"
        ))
    };
}

/// Sets what a word of a table's column of element types says; nothing for a type. The one list of these words: another
/// is an error here, and passed over by the macros that look for types.
#[doc(hidden)]
#[macro_export]
macro_rules! __set_word {
    ($info:ident int_to_float) => {
        $info.int_to_float = true
    };
    ($info:ident angle) => {
        $info.properties.angle = true
    };
    ($info:ident quotient) => {
        $info.properties.function = Some($crate::BinaryFunction::Quotient)
    };
    ($info:ident truncated_quotient) => {
        $info.properties.function = Some($crate::BinaryFunction::TruncatedQuotient)
    };
    ($info:ident floored_quotient) => {
        $info.properties.function = Some($crate::BinaryFunction::FlooredQuotient)
    };
    ($info:ident modulo) => {
        $info.properties.function = Some($crate::BinaryFunction::Modulo)
    };
    ($info:ident power) => {
        $info.properties.function = Some($crate::BinaryFunction::Power)
    };
    ($info:ident few_registers) => {
        $info.properties.few_registers = true
    };
    ($info:ident truths) => {
        $info.properties.truths = true
    };
    ($info:ident clears_sign) => {
        $info.properties.sign = Some($crate::SignChange::Clear)
    };
    ($info:ident flips_sign) => {
        $info.properties.sign = Some($crate::SignChange::Flip)
    };
    ($info:ident constant) => {
        $info.properties.constant = true
    };
    ($info:ident factor_alpha) => {
        $info.properties.factor_alpha = true
    };
    ($info:ident refuses_bool) => {
        $info.properties.refuses_bool = true
    };
    ($info:ident copies_ints) => {
        $info.properties.copies_ints = true
    };
    ($info:ident whole_parameter) => {
        $info.properties.whole_parameter = true
    };
    ($info:ident floats) => {};
    ($info:ident ints) => {};
    ($info:ident f32) => {};
    ($info:ident f16) => {};
    ($info:ident bf16) => {};
    ($info:ident f8e4m3) => {};
    ($info:ident f8e5m2) => {};
    ($info:ident i8) => {};
    ($info:ident i16) => {};
    ($info:ident i32) => {};
    ($info:ident i64) => {};
    ($info:ident u8) => {};
    ($info:ident bool) => {};
    ($info:ident $word:ident) => {
        compile_error!(concat!(
            "`",
            stringify!($word),
            "` is no element type (f32, f16, bf16, f8e4m3, f8e5m2, i8, i16, i32, i64, u8, bool), \
             no set of them (floats, ints) and no word of `Properties`"
        ))
    };
}

/// The element types of a table's column, as an array of [`DType`](crate::DType).
#[doc(hidden)]
#[macro_export]
macro_rules! __dtypes {
    ([floats $($rest:tt)*] [$($t:ident)*]) => {
        $crate::__dtypes!([$($rest)*] [$($t)* F32 F16 BF16 F8E4M3 F8E5M2])
    };
    ([ints $($rest:tt)*] [$($t:ident)*]) => {
        $crate::__dtypes!([$($rest)*] [$($t)* I8 I16 I32 I64 U8])
    };
    ([f32 $($rest:tt)*] [$($t:ident)*]) => { $crate::__dtypes!([$($rest)*] [$($t)* F32]) };
    ([f16 $($rest:tt)*] [$($t:ident)*]) => { $crate::__dtypes!([$($rest)*] [$($t)* F16]) };
    ([bf16 $($rest:tt)*] [$($t:ident)*]) => { $crate::__dtypes!([$($rest)*] [$($t)* BF16]) };
    ([f8e4m3 $($rest:tt)*] [$($t:ident)*]) => { $crate::__dtypes!([$($rest)*] [$($t)* F8E4M3]) };
    ([f8e5m2 $($rest:tt)*] [$($t:ident)*]) => { $crate::__dtypes!([$($rest)*] [$($t)* F8E5M2]) };
    ([i8 $($rest:tt)*] [$($t:ident)*]) => { $crate::__dtypes!([$($rest)*] [$($t)* I8]) };
    ([i16 $($rest:tt)*] [$($t:ident)*]) => { $crate::__dtypes!([$($rest)*] [$($t)* I16]) };
    ([i32 $($rest:tt)*] [$($t:ident)*]) => { $crate::__dtypes!([$($rest)*] [$($t)* I32]) };
    ([i64 $($rest:tt)*] [$($t:ident)*]) => { $crate::__dtypes!([$($rest)*] [$($t)* I64]) };
    ([u8 $($rest:tt)*] [$($t:ident)*]) => { $crate::__dtypes!([$($rest)*] [$($t)* U8]) };
    ([bool $($rest:tt)*] [$($t:ident)*]) => { $crate::__dtypes!([$($rest)*] [$($t)* Bool]) };
    ([$word:ident $($rest:tt)*] $found:tt) => { $crate::__dtypes!([$($rest)*] $found) };
    ([] [$($t:ident)*]) => {
        &[$($crate::DType::$t),*]
    };
}
