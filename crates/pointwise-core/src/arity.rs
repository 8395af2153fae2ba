//! Ops of one to three operands as formulas, so that templates and loops are written once for all of them.

use crate::formula::{Formula, OpData, ParamWords};
use crate::info::{Kind, OpInfo};
use crate::num::{Logic, Value};
use crate::op::{BinaryOp, TableOp, TernaryOp, UnaryOp};
use crate::philox::RandomWord;

/// What an op of one result gives: a value of its compute type, or a bool.
pub trait Answer<T>: Copy {
    /// Whether it is a bool.
    const IS_BOOL: bool;
    /// As the results of a formula, of which one counts.
    fn split(self) -> (T, bool);
}

impl<T: Value> Answer<T> for T {
    const IS_BOOL: bool = false;
    #[inline(always)]
    fn split(self) -> (T, bool) {
        (self, false)
    }
}

impl<T: Value> Answer<T> for bool {
    const IS_BOOL: bool = true;
    #[inline(always)]
    fn split(self) -> (T, bool) {
        (T::ZERO, self)
    }
}

/// The data of a row as those of a formula.
const fn data(row: &OpInfo) -> OpInfo {
    OpInfo { bool_operands: row.kind.bool_operands(), bool_results: row.result.bits(), ..*row }
}

/// The result of an op.
#[inline(always)]
fn result<T, Y: Answer<T>>(y: Y) -> ([T; 1], [bool; 1]) {
    let (of_type, of_bool) = y.split();
    ([of_type], [of_bool])
}

macro_rules! arity {
    ($($(#[doc = $doc:literal])* $name:ident, $operands:literal, [$($kind:ident)*], $Op:ident<T $(, $First:ty)?>,
        |$op:ident, $values:tt, $truths:tt| $value:expr;)*) => { $(
        $(#[doc = $doc])*
        #[derive(Clone, Copy, Debug)]
        pub struct $name<O>(O);

        impl<O: TableOp> OpData for $name<O> {
            const INFO: OpInfo = data(&O::INFO);
            const KINDS: &'static [Kind] = &[$(Kind::$kind),*];
            #[inline(always)]
            fn from_words(words: &ParamWords) -> Self {
                let [a, b, c, d, ..] = *words;
                $name(O::from_words([a, b, c, d]))
            }
        }

        impl<T: Value, O: TableOp + $Op<T $(, $First)?, Output: Answer<T>>> Formula<T, $operands, 1> for $name<O> {
            const BOOL_RESULTS: Option<u16> = Some(<O::Output as Answer<T>>::IS_BOOL as u16);
            #[inline(always)]
            fn apply(
                self,
                $values: [T; $operands],
                $truths: [bool; $operands],
                _: RandomWord<'_>,
            ) -> ([T; 1], [bool; 1]) {
                let $op = self.0;
                result($value)
            }
        }
    )* };
}

arity! {
    /// `x -> y`.
    Unary, 1, [Unary], UnaryOp<T>, |op, [x], _| op.apply(x);
    /// `(a, b) -> y`.
    Binary, 2, [Binary Channel Gated Backward], BinaryOp<T>, |op, [a, b], _| op.apply(a, b);
    /// `(a, b, c) -> y`.
    Ternary, 3, [Ternary], TernaryOp<T>, |op, [a, b, c], _| op.apply(a, b, c);
    /// `(condition, a, b) -> y`.
    Select, 3, [Select], TernaryOp<T, Logic>, |op, [_, a, b], [condition, ..]| op.apply(Logic(condition), a, b);
}
