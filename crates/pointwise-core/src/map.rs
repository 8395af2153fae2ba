//! Ops of one to three operands as one shape, so that templates and executors are written once for all of them.

use core::marker::PhantomData;

use crate::dtype::DType;
use crate::element::{Bool, Element, Store};
use crate::info::Kind;
use crate::num::{Logic, Short, Signed, Value};
use crate::op::{BinaryOp, TableOp, TernaryOp, UnaryOp, Words};

/// A formula on elements: `(a, b, c) -> y` in compute types, of which the first [`Map::OPERANDS`] count.
pub trait Map: Copy {
    /// Element type of the first operand.
    type A: Element;
    /// Of the second.
    type B: Element;
    /// Of the third.
    type C: Element;
    /// Of the result.
    type R: Element;
    /// The kinds of ops that run as this.
    const KINDS: &'static [Kind] = &[];
    /// How many operands there are. The others are never read: their values are zeros.
    const OPERANDS: usize;
    /// Whether the result is a bool that depends on nothing but which operands are true: [`Map::map`] of zeros and ones
    /// then says everything.
    const LOGICAL: bool = false;
    /// Whether the result is the second or the third operand, bit for bit, and which of them is for the truth of the
    /// first to say: [`Map::map`] of zeros and ones then says everything.
    const SELECTS: bool = false;
    /// Whether a kernel asks which operands came with the call, as numbers. Where none ever do, as in unary and gated
    /// ops, it need not; but gated ops in f32 gain nothing by that, and gelu's formula, scheduled otherwise, loses 6 %
    /// (H200).
    const NUMBERS: bool = true;
    /// Whether the second operand mostly is one value for all of a vector: the weight of a channel.
    const CHANNEL: bool = false;
    /// Whether the result is the first operand where that is positive, elsewhere its product with the second.
    const LEAKY: bool = false;
    /// Whether kernels take [`Map::short`] for all of a vector first.
    const SHORT: bool = false;
    /// Whether [`Map::short`] gives bounds, not results.
    const BOUNDED: bool = false;
    /// Whether [`Map::short`] is that of the first operand's magnitude, and [`Map::signed`] makes it that of the operand.
    const MAGNITUDES: bool = false;
    /// The operand of a float type, if there is one, that the formula takes the sine or cosine of: what the CPU
    /// executor looks at to avoid the long reduction.
    const ANGLE: Option<usize> = None;
    /// The formula with the parameters of a call.
    fn from_words(words: Words) -> Self;
    /// The result, not yet rounded.
    fn map(
        self,
        a: <Self::A as Element>::Compute,
        b: <Self::B as Element>::Compute,
        c: <Self::C as Element>::Compute,
    ) -> <Self::R as Element>::Compute;
    /// The result of two operands by a path without a branch. Asked with [`Map::SHORT`] alone.
    #[inline(always)]
    fn short(
        self,
        a: <Self::A as Element>::Compute,
        b: <Self::B as Element>::Compute,
    ) -> Short<<Self::R as Element>::Compute> {
        Short::known(self.map(a, b, absent::<Self::C>()), true)
    }
    /// What a sign makes of [`Map::short`]. Asked with [`Map::MAGNITUDES`] alone.
    #[inline(always)]
    fn signed(
        self,
        a: <Self::A as Element>::Compute,
        b: <Self::B as Element>::Compute,
    ) -> Signed<<Self::R as Element>::Compute> {
        Signed::unknown(self.map(a, b, absent::<Self::C>()))
    }
}

const fn is_bool<E: Element>() -> bool {
    matches!(E::DTYPE, DType::Bool)
}

macro_rules! arity {
    ($(#[doc = $doc:literal])* $name:ident, $operands:literal, $first:ident, [$($kind:ident)*], [$($bound:tt)*],
        |$op:ident, $a:ident, $b:ident, $c:ident| $value:expr) => {
        $(#[doc = $doc])*
        #[derive(Clone, Copy, Debug)]
        pub struct $name<E, O>(O, PhantomData<E>);

        impl<E: Element, O: TableOp + $($bound)*> Map for $name<E, O> {
            type A = arity!(@first $first E);
            type B = E;
            type C = E;
            type R = <O::Output as Store<E>>::Storage;
            const KINDS: &'static [Kind] = &[$(Kind::$kind),*];
            const OPERANDS: usize = $operands;
            const LOGICAL: bool = is_bool::<Self::R>()
                && (is_bool::<Self::A>() && is_bool::<E>() || O::INFO.properties.truths);
            const SELECTS: bool = arity!(@selects $first);
            const NUMBERS: bool = match O::INFO.kind {
                Kind::Unary => false,
                Kind::Gated => size_of::<E>() == 4,
                _ => true,
            };
            const CHANNEL: bool = matches!(O::INFO.kind, Kind::Channel);
            const LEAKY: bool = O::INFO.properties.leaky;
            const ANGLE: Option<usize> =
                if E::DTYPE.is_float() && O::INFO.properties.angle { Some($operands - 1) } else { None };
            #[inline(always)]
            fn from_words(words: Words) -> Self {
                $name(O::from_words(words), PhantomData)
            }
            #[inline(always)]
            fn map(
                self,
                $a: <Self::A as Element>::Compute,
                $b: E::Compute,
                $c: E::Compute,
            ) -> <Self::R as Element>::Compute {
                let $op = self.0;
                $value.lane()
            }
            arity!(@short $first E O);
        }
    };
    (@first same $E:ident) => { $E };
    (@first two $E:ident) => { $E };
    (@first bool $E:ident) => { Bool };
    (@short two $E:ident $O:ident) => {
        const SHORT: bool = match $O::INFO.properties.function {
            Some(function) => function.has_short_path($E::DTYPE),
            None => false,
        };
        const BOUNDED: bool = match $O::INFO.properties.function {
            Some(function) => function.is_bounded($E::DTYPE),
            None => false,
        };
        const MAGNITUDES: bool = match $O::INFO.properties.function {
            Some(function) => function.takes_magnitudes(),
            None => false,
        };
        #[inline(always)]
        fn short(self, a: $E::Compute, b: $E::Compute) -> Short<<Self::R as Element>::Compute> {
            self.0.short(a, b).map(|y| y.lane())
        }
        #[inline(always)]
        fn signed(self, a: $E::Compute, b: $E::Compute) -> Signed<<Self::R as Element>::Compute> {
            self.0.signed(a, b).map(|y| y.lane())
        }
    };
    (@short $first:ident $E:ident $O:ident) => {};
    (@selects same) => { false };
    (@selects two) => { false };
    (@selects bool) => { true };
}

arity! {
    /// `x -> y`.
    Unary, 1, same, [Unary], [UnaryOp<E::Compute, Output: Store<E>>], |op, a, _b, _c| op.apply(a)
}
arity! {
    /// `(a, b) -> y`.
    Binary, 2, two, [Binary Channel Gated Backward], [BinaryOp<E::Compute, Output: Store<E>>], |op, a, b, _c| op.apply(a, b)
}
arity! {
    /// `(a, b, c) -> y`.
    Ternary, 3, same, [Ternary], [TernaryOp<E::Compute, Output: Store<E>>], |op, a, b, c| op.apply(a, b, c)
}
arity! {
    /// `(condition, a, b) -> y`.
    Select, 3, bool, [Select], [TernaryOp<E::Compute, Logic, Output: Store<E>>], |op, a, b, c| op.apply(a, b, c)
}

/// What an operand that is not there reads as.
#[inline(always)]
pub const fn absent<E: Element>() -> E::Compute {
    E::Compute::ZERO
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::F8E4M3;
    use crate::family::binary::Maximum;
    use crate::family::comparison::{Equal, LogicalAnd, LogicalOr};
    use crate::family::select::Where;

    // At compile time, as the templates choose by it.
    const _: () = {
        assert!(Binary::<F8E4M3, LogicalAnd>::LOGICAL && Binary::<f32, LogicalOr>::LOGICAL);
        assert!(Binary::<Bool, Equal>::LOGICAL && Binary::<Bool, Maximum>::LOGICAL);
        assert!(!Binary::<u8, Equal>::LOGICAL && !Binary::<u8, Maximum>::LOGICAL);
        assert!(Select::<i8, Where>::SELECTS && !Select::<i8, Where>::LOGICAL && !Binary::<Bool, Equal>::SELECTS);
    };
}
