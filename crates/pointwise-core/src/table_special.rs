//! The tables of generators, and the kernels of random ops, listed once for the device and the host.

/// Calls a macro, its path in parentheses, once for each kernel that a random op has in an element type:
/// `visitor! { kind mask strategy, args }`, where `kind` is `random_mask` and `mask` is `true` for those that also
/// write the mask.
#[macro_export]
macro_rules! random_strategies {
    (($($visitor:tt)*) $args:tt) => {
        $($visitor)*! { random false explicit_parallel, $args }
        $($visitor)*! { random false register_copy, $args }
        $($visitor)*! { random_mask true explicit_parallel, $args }
        $($visitor)*! { random_mask true register_copy, $args }
    };
}

/// Declares generators, one row each: tensors made of nothing but their indices, evaluated in f32 and rounded once.
///
/// ```
/// pointwise_core::generator_ops! { my_generators;
///     /// 0 on and below the diagonal, `fill` above.
///     causal_mask: CausalMask { fill = f32::NEG_INFINITY } (plane, row, column) [floats], Exact =>
///         if column > row { fill } else { 0.0 };
/// }
/// # fn main() {}
/// ```
///
/// The operands are the indices, each a `u32`; the shape of a call is (planes, rows, columns), or (rows, columns) for
/// one plane. There are at most two parameters, each an `f32`.
///
/// A table takes one module: it also defines `OPS`, the list of its [`OpInfo`](crate::OpInfo)s.
#[macro_export]
macro_rules! generator_ops {
    ($table:ident; $($rows:tt)*) => {
        $crate::__table! { ($) $table; $($rows)* }
        $crate::__define_generators! { $($rows)* }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __define_generators {
    ($(
        $(#[doc = $doc:literal])*
        $name:ident: $op:ident $({ $($p:ident = $default:expr),* })? ($plane:ident, $row:ident, $column:ident)
        [$($set:ident)*], $accuracy:expr => $formula:expr;
    )*) => {
        $(
            $(#[doc = $doc])*
            #[derive(Clone, Copy, Debug)]
            pub struct $op {
                $($(
                    #[doc = concat!("A parameter; default ", stringify!($default), ".")]
                    pub $p: f32,
                )*)?
            }

            impl $crate::GeneratorOp for $op {
                type Column = [u32; 2];
                #[inline(always)]
                fn column(self, plane: u32, column: u32) -> [u32; 2] {
                    [plane, column]
                }
                #[inline(always)]
                #[allow(unused_variables)] // a formula need not use every index
                fn element(self, [$plane, $column]: [u32; 2], $row: u32) -> f32 {
                    $($(let $p = self.$p;)*)?
                    $formula
                }
            }

            impl $crate::TableOp for $op {
                const INFO: $crate::OpInfo = {
                    #[allow(unused_imports)]
                    use $crate::Accuracy::*;
                    $crate::OpInfo {
                        name: stringify!($name),
                        kind: $crate::Kind::Generator,
                        params: &[$($($crate::ParamInfo::number(stringify!($p), $default as f64)),*)?],
                        types: $crate::info::checked_types($crate::__dtypes!([$($set)*] [])),
                        accuracy: $accuracy,
                        doc: concat!($($doc, "\n"),*),
                        formula: stringify!($formula),
                        ..$crate::OpInfo::FORMULA
                    }
                };
                #[inline(always)]
                #[allow(unused_mut, unused_variables)] // of an op without parameters
                fn from_words(words: $crate::Words) -> Self {
                    const { assert!(Self::INFO.params.len() <= 2, "a generator has at most two parameters") };
                    let mut words = words.into_iter();
                    $op { $($($p: $crate::op::next_parameter(&mut words)),*)? }
                }
            }
        )*

        /// The ops of this table, in its order.
        pub const OPS: &[$crate::OpInfo] = &[$(<$op as $crate::TableOp>::INFO),*];
    };
}
