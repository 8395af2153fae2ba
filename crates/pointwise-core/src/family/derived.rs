//! Gradients of the family's ops from their formulas, by dual numbers.
//!
//! A row of a table of gradients names the op whose gradient it is: `of_one(Exp, grad, x)`.

use crate::dual::Dual;
use crate::num::{Logic, Real};
use crate::op::{BinaryOp, TernaryOp, UnaryOp};

/// The gradient of an op of one operand.
#[inline(always)]
pub(super) fn of_one<T: Real, O>(op: O, grad: T, x: T) -> T
where
    O: UnaryOp<Dual<T, 1>, Output = Dual<T, 1>>,
{
    op.apply(Dual::variable(x, 0, grad)).gradient(0)
}

/// The gradients of an op of two operands.
#[inline(always)]
pub(super) fn of_two<T: Real, O>(op: O, grad: T, a: T, b: T) -> [T; 2]
where
    O: BinaryOp<Dual<T, 2>, Output = Dual<T, 2>>,
{
    let y = op.apply(Dual::variable(a, 0, grad), Dual::variable(b, 1, grad));
    [y.gradient(0), y.gradient(1)]
}

/// The gradients of an op of three operands.
#[inline(always)]
pub(super) fn of_three<T: Real, O>(op: O, grad: T, a: T, b: T, c: T) -> [T; 3]
where
    O: TernaryOp<Dual<T, 3>, Output = Dual<T, 3>>,
{
    let y = op.apply(Dual::variable(a, 0, grad), Dual::variable(b, 1, grad), Dual::variable(c, 2, grad));
    [y.gradient(0), y.gradient(1), y.gradient(2)]
}

/// The gradients of an op that chooses between two operands.
#[inline(always)]
pub(super) fn of_choice<T: Real, O>(op: O, condition: Logic, grad: T) -> [T; 2]
where
    O: TernaryOp<Dual<T, 2>, Logic, Output = Dual<T, 2>>,
{
    let y = op.apply(condition, Dual::variable(T::ZERO, 0, grad), Dual::variable(T::ZERO, 1, grad));
    [y.gradient(0), y.gradient(1)]
}
