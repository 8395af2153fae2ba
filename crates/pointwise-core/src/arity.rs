//! Ops of one to three operands as formulas, so that templates and loops are written once for all of them.

use duplicate::duplicate_item;

use crate::formula::{Formula, OpData, ParamWords};
use crate::info::{Kind, OpInfo};
use crate::num::{Logic, Value};
use crate::op::{BinaryOp, TableOp, TernaryOp, UnaryOp};
use crate::philox::RandomWord;

/// The result of an op: a value of its compute type, or a bool.
pub trait Answer<T>: Copy {
    /// True for a bool.
    const IS_BOOL: bool;
    /// Returns the result in its place among a formula's: value or bool. The other is zero or false.
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

/// Turns a row's data into a formula's: sets the bools among operands and results.
const fn data(row: &OpInfo) -> OpInfo {
    OpInfo { bool_operands: row.kind.bool_operands(), bool_results: row.result.bits(), ..*row }
}

/// Returns the result of an op as a formula's results.
#[inline(always)]
fn result<T, Y: Answer<T>>(y: Y) -> ([T; 1], [bool; 1]) {
    let (of_type, of_bool) = y.split();
    ([of_type], [of_bool])
}

/// `x -> y`.
#[derive(Clone, Copy, Debug)]
pub struct Unary<O>(O);

/// `(a, b) -> y`.
#[derive(Clone, Copy, Debug)]
pub struct Binary<O>(O);

/// `(a, b, c) -> y`.
#[derive(Clone, Copy, Debug)]
pub struct Ternary<O>(O);

/// `(condition, a, b) -> y`.
#[derive(Clone, Copy, Debug)]
pub struct Select<O>(O);

#[duplicate_item(
    Arity      kinds;
    [Unary]    [Kind::Unary];
    [Binary]   [Kind::Binary, Kind::Channel, Kind::Gated, Kind::Backward];
    [Ternary]  [Kind::Ternary];
    [Select]   [Kind::Select];
)]
impl<O: TableOp> OpData for Arity<O> {
    const INFO: OpInfo = data(&O::INFO);
    const KINDS: &'static [Kind] = &[kinds];
    #[inline(always)]
    fn from_words(words: &ParamWords) -> Self {
        let [a, b, c, d, ..] = *words;
        Arity(O::from_words([a, b, c, d]))
    }
}

#[duplicate_item(
    Arity      Op                     operands  values       truths             of_values;
    [Unary]    [UnaryOp<T>]           [1]       [[x]]        [_]                [x];
    [Binary]   [BinaryOp<T>]          [2]       [[a, b]]     [_]                [a, b];
    [Ternary]  [TernaryOp<T>]         [3]       [[a, b, c]]  [_]                [a, b, c];
    [Select]   [TernaryOp<T, Logic>]  [3]       [[_, a, b]]  [[condition, ..]]  [Logic(condition), a, b];
)]
impl<T: Value, O: TableOp + Op> Formula<T, operands, 1> for Arity<O>
where
    <O as Op>::Output: Answer<T>,
{
    const BOOL_RESULTS: Option<u16> = Some(<O::Output as Answer<T>>::IS_BOOL as u16);
    #[inline(always)]
    fn apply(self, values: [T; operands], truths: [bool; operands], _: RandomWord<'_>) -> ([T; 1], [bool; 1]) {
        result(self.0.apply(of_values))
    }
}
