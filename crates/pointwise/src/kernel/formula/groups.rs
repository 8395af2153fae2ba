//! Groups of a row: views in which each group is a row of its own, so that kernels and loops need not know of them.
//!
//! A call of groups of 128 sees a tensor of [.., N] as one of [.., N / 128, 128]. What each group has once, of [.., N / 128], is seen
//! as one of [.., N / 128, 1].

use pointwise_core::OpInfo;

use crate::error::{ErrorKind, Result};
use crate::shape::Shape;
use crate::tensor::{MAX_RANK, TensorView};

/// Returns the shape that operand `k` broadcasts with. An element of each group counts as all of the group.
pub(super) fn counted(info: &OpInfo, k: usize, shape: &Shape) -> Result<Shape> {
    match shape.split_last() {
        Some((&last, outer)) if info.is_row_operand(k) && last != 1 => {
            with_last(outer, &[last.saturating_mul(info.group as usize)])
        }
        _ => Ok(*shape),
    }
}

/// Returns the shape in which each group is a row.
///
/// # Errors
/// Fails for a last dimension that is missing or no multiple of the group, and for as many dimensions as a tensor may have.
pub(super) fn split(info: &OpInfo, shape: &Shape) -> Result<Shape> {
    let group = info.group as usize;
    let advice = match shape.split_last() {
        _ if shape.rank() == MAX_RANK => "its groups are one dimension more: merge some with reshape".to_owned(),
        Some((last, outer)) if last.is_multiple_of(group) => return with_last(outer, &[last / group, group]),
        _ => format!("its rows are groups of {group}, so the last dimension must be a multiple of {group}"),
    };
    Err(ErrorKind::Unsupported { what: format!("{} of shape {shape}", info.name), advice }.into())
}

/// Returns the shape that [`split`] was given.
pub(super) fn joined(shape: &Shape) -> Result<Shape> {
    match &**shape {
        [outer @ .., groups, group] => with_last(outer, &[groups * group]),
        _ => Ok(*shape),
    }
}

/// Returns dimensions and others behind them as a shape.
fn with_last(outer: &[usize], last: &[usize]) -> Result<Shape> {
    let (mut dims, rank) = ([0; MAX_RANK + 1], outer.len() + last.len());
    dims[..outer.len()].copy_from_slice(outer);
    dims[outer.len()..rank].copy_from_slice(last);
    Shape::new(&dims[..rank])
}

/// Returns a tensor of a call as rows of groups have it: with an element for each of a row, or one for each row (`is_once`).
pub(super) fn view<'a>(info: &OpInfo, view: &TensorView<'a>, is_once: bool) -> Result<TensorView<'a>> {
    match view.shape().last() {
        None => Ok(*view),
        Some(_) if is_once => view.unsqueeze(view.shape().rank()),
        Some(_) => view.groups(info.group as usize),
    }
}
