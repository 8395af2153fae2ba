//! Sizes and strides of a call's results, by the domains of its op's tensors.

use std::borrow::Cow;

use pointwise::info::Domain;

use crate::layout;
use crate::operand::Known;
use crate::registry::{OpSpec, ResultSpec};

/// Sizes and strides of new results in the usual call: operands of one shape, one element after another.
pub(crate) fn like_operands<'a>(op: &OpSpec, known: &[Known<'a>]) -> Option<(&'a [i64], &'a [i64])> {
    let mut tensors = known.iter().filter_map(|known| match known {
        Known::Tensor(raw) => Some(*raw),
        Known::Number(_) => None,
    });
    let first =
        tensors.next().filter(|first| op.is_of_elements() && layout::is_contiguous(first.sizes, first.strides))?;
    tensors.all(|raw| raw.sizes == first.sizes && raw.strides == first.strides).then_some((first.sizes, first.strides))
}

/// The shape that operands broadcast to. One that each row has once counts with a last dimension of 1, an element of a group
/// as all of the group, and halves as one of them. Channels do not count.
///
/// # Errors
/// Shapes that do not go together; a last dimension that is odd, or no multiple of the group.
pub(crate) fn shape_of_call(op: &OpSpec, known: &[Known<'_>]) -> Result<Vec<i64>, String> {
    let mut shapes = Vec::with_capacity(known.len());
    for (known, operand) in known.iter().zip(&op.operands) {
        let Known::Tensor(raw) = known else { continue };
        let mut sizes = Cow::Borrowed(raw.sizes);
        match (operand.domain, raw.sizes.last()) {
            (Domain::Channel, _) => continue,
            (Domain::Row, _) if op.group == 0 => sizes.to_mut().push(1),
            (Domain::Row, Some(groups)) if *groups != 1 => {
                sizes = Cow::Owned(with_last(raw.sizes, groups.saturating_mul(op.group)));
            }
            (Domain::Halves, Some(last)) if last % 2 == 0 => sizes = Cow::Owned(with_last(raw.sizes, last / 2)),
            (Domain::Halves, _) => {
                let (name, own) = (operand.name, raw.sizes);
                return Err(format!("{}: the last dimension of {name} must be even, {name} is {own:?}", op.name));
            }
            _ => {}
        }
        shapes.push(sizes);
    }
    let sizes = layout::broadcast(shapes.iter().map(|sizes| &**sizes))?;
    if op.group != 0 && sizes.last().is_none_or(|last| last % op.group != 0) {
        let group = op.group;
        return Err(format!("{}: the last dimension must be a multiple of {group}, the sizes are {sizes:?}", op.name));
    }
    Ok(sizes)
}

/// Sizes with another last one.
fn with_last(sizes: &[i64], last: i64) -> Vec<i64> {
    let (mut sizes, end) = (sizes.to_vec(), sizes.len() - 1);
    sizes[end] = last;
    sizes
}

/// Sizes and strides of what each row has once, in a call of `sizes`.
fn once_a_row(op: &OpSpec, sizes: &[i64]) -> (Vec<i64>, Vec<i64>) {
    let (mut own, strides) = layout::once_a_row(sizes);
    match sizes.last() {
        Some(last) if op.group != 0 => {
            own.push(last / op.group);
            let strides = layout::contiguous(&own);
            (own, strides)
        }
        _ => (own, strides),
    }
}

/// Sizes and strides of new results, but of those with their own.
///
/// # Errors
/// Shapes that do not go together.
pub(crate) fn layout_of_results(op: &OpSpec, known: &[Known<'_>]) -> Result<(Vec<i64>, Vec<i64>), String> {
    let sizes = shape_of_call(op, known)?;
    if !op.is_of_elements() || op.has_place() {
        let strides = layout::contiguous(&sizes);
        return Ok((sizes, strides));
    }
    let mut tensors: Vec<(&[i64], &[i64])> = Vec::with_capacity(known.len());
    for (known, operand) in known.iter().zip(&op.operands) {
        if let (Known::Tensor(raw), Domain::Elements) = (known, operand.domain) {
            tensors.push((raw.sizes, raw.strides));
        }
    }
    let strides = layout::of_result(&sizes, &tensors)?;
    Ok((sizes, strides))
}

/// Returns sizes and strides of each result that does not have `sizes`, to which the operands broadcast: what each row has
/// once, gradients of weights that are summed over rows, and halves, of the operand's sizes. An op on elements has none.
pub(crate) fn own_layouts(op: &OpSpec, known: &[Known<'_>], sizes: &[i64]) -> Vec<Option<(Vec<i64>, Vec<i64>)>> {
    if op.is_of_elements() {
        return Vec::new();
    }
    let len = &sizes[sizes.len().saturating_sub(1)..];
    let is_row = |own: &[i64]| {
        own.last().is_none_or(|last| len == [*last]) && own.iter().product::<i64>() == len.iter().product::<i64>()
    };
    let mut weights = op.results.iter().filter_map(|spec| spec.weight);
    let is_summed = weights.all(|weight| match &known[weight] {
        Known::Tensor(raw) => raw.sizes.iter().product::<i64>() == 1 || is_row(raw.sizes),
        Known::Number(_) => true,
    });
    let halves = known.iter().zip(&op.operands).find_map(|(known, operand)| match (known, operand.domain) {
        (Known::Tensor(raw), Domain::Halves) => Some(raw.sizes),
        _ => None,
    });
    let of = |spec: &ResultSpec| {
        let own = match spec.domain {
            Domain::Row => return Some(once_a_row(op, sizes)),
            Domain::Halves => halves?,
            Domain::Elements | Domain::Channel => match &known[spec.weight.filter(|_| is_summed)?] {
                Known::Tensor(raw) if is_row(raw.sizes) => raw.sizes,
                _ => len,
            },
        };
        Some((own.to_vec(), layout::contiguous(own)))
    };
    op.results.iter().map(of).collect()
}
