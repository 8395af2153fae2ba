//! The operands of an op of several: tensors and numbers, and bounds, which may be missing.

use duplicate::duplicate_item;
use pointwise_core::{bf16, f16};

use crate::Number;
use crate::tensor::{Tensor, TensorView, TensorViewMut};

/// An operand: a view, or a number on either side of the op, for which no tensor is made.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Operand<'a> {
    /// Elements, broadcast.
    View(TensorView<'a>),
    /// One value for all elements. By PyTorch's rules it takes the type of the tensors, but that a float makes f32 of
    /// integers and bool, and an integer i64 of bool. In 16 and 8 bits it is rounded to an element by `remainder`,
    /// `pow`, comparisons and logical ops, and as what is divided; else it is an f32.
    Number(Number),
}

impl<'a> From<&'a Tensor> for Operand<'a> {
    fn from(tensor: &'a Tensor) -> Self {
        Operand::View(tensor.view())
    }
}

impl<'a> From<TensorView<'a>> for Operand<'a> {
    fn from(view: TensorView<'a>) -> Self {
        Operand::View(view)
    }
}

impl<'a> From<&'a TensorView<'_>> for Operand<'a> {
    fn from(view: &'a TensorView<'_>) -> Self {
        Operand::View(view.into())
    }
}

impl<'a> From<&'a TensorViewMut<'_>> for Operand<'a> {
    fn from(view: &'a TensorViewMut<'_>) -> Self {
        Operand::View(view.as_view())
    }
}

#[duplicate_item(
    T;
    [Number]; [f64]; [f32]; [f16]; [bf16]; [i64]; [i32]; [i16]; [i8]; [u32]; [u16]; [u8]; [bool];
)]
#[allow(clippy::useless_conversion)] // of a type to itself
impl From<T> for Operand<'_> {
    fn from(value: T) -> Self {
        Operand::Number(value.into())
    }
}
