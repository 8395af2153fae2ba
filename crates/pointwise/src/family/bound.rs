//! The bounds of `clamp`.

use duplicate::duplicate_item;

use crate::kernel::Operand;
use crate::tensor::{Tensor, TensorView, TensorViewMut};
use crate::{Number, bf16, f16};

/// A bound of `clamp`: a tensor, a number or none.
#[derive(Clone, Copy, Debug)]
pub struct Bound<'a>(pub(super) Option<Operand<'a>>);

/// There is but one conversion of an `Option`, so that the type of a bare `None` is known.
impl<'a> From<Option<Operand<'a>>> for Bound<'a> {
    fn from(bound: Option<Operand<'a>>) -> Self {
        Bound(bound.filter(|bound| !matches!(bound, Operand::Number(Number::Default))))
    }
}

#[duplicate_item(
    T;
    [Operand<'a>]; [&'a Tensor]; [TensorView<'a>]; [&'a TensorView<'_>]; [&'a TensorViewMut<'_>]; [Number];
    [f64]; [f32]; [f16]; [bf16]; [i64]; [i32]; [i16]; [i8]; [u32]; [u16]; [u8]; [bool];
)]
#[allow(clippy::useless_conversion)] // of a type to itself
impl<'a> From<T> for Bound<'a> {
    fn from(bound: T) -> Self {
        Some(Operand::from(bound)).into()
    }
}
