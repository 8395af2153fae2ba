//! The shapes of rows and of their results.

use pointwise_core::OpInfo;

use crate::error::Result;
use crate::kernel::formula::groups;
use crate::shape::Shape;
use crate::tensor::TensorView;

/// The shape of the rows, without the last dimension.
pub(in crate::kernel::formula) fn outer(shape: &Shape) -> Result<Shape> {
    Shape::new(&shape[..shape.rank().saturating_sub(1)])
}

/// The elements of a row.
pub(super) fn length(shape: &Shape) -> usize {
    shape.last().copied().unwrap_or(1)
}

/// True if elements of a row lie one after another in a view, or are one.
pub(super) fn is_dense(view: &TensorView<'_>) -> bool {
    let last = view.strides().last().copied().unwrap_or(0);
    matches!(last, 0 | 1) || length(view.shape()) == 1
}

/// True if gradients of weights are sums over rows: each weight is one row, one element or a number.
pub(in crate::kernel::formula) fn is_summed(info: &OpInfo, shape: &Shape, operands: &[Option<TensorView<'_>>]) -> bool {
    let is_one = |view: &TensorView<'_>| view.numel() == 1 || is_row(view, shape);
    let mut weights = operands.iter().enumerate().filter(|(k, _)| info.is_weight(*k));
    info.weight_results != 0 && weights.all(|(_, view)| view.as_ref().is_none_or(is_one))
}

/// True if a weight is one row of the shape that the operands broadcast to.
fn is_row(view: &TensorView<'_>, shape: &Shape) -> bool {
    length(view.shape()) == length(shape) && view.numel() == length(shape)
}

/// The shape of result `k` of an op whose checked operands broadcast to `shape`.
pub(in crate::kernel::formula) fn result_shape(
    info: &OpInfo,
    k: usize,
    shape: &Shape,
    operands: &[Option<TensorView<'_>>],
) -> Result<Shape> {
    let of_rows = shape_of_rows(info, k, shape, operands)?;
    if info.group == 0 || info.is_row_result(k) { Ok(of_rows) } else { groups::joined(&of_rows) }
}

/// The shape of result `k` as the op's rows have it. A gradient that is summed over rows has the shape of its weight, where that is
/// one row.
pub(in crate::kernel::formula) fn shape_of_rows(
    info: &OpInfo,
    k: usize,
    shape: &Shape,
    operands: &[Option<TensorView<'_>>],
) -> Result<Shape> {
    if info.is_row_result(k) {
        return outer(shape);
    }
    match info.weight_of(k) {
        Some(weight) if is_summed(info, shape, operands) => match operands.get(weight) {
            Some(Some(view)) if is_row(view, shape) => Ok(*view.shape()),
            _ => Shape::new(&shape[shape.rank().saturating_sub(1)..]),
        },
        _ => Ok(*shape),
    }
}
