//! Sizes and strides of a call's results, by the form of its op.

use crate::layout;
use crate::operand::Known;
use crate::registry::{Form, OpSpec, ResultSpec};

/// Sizes and strides of new results in the usual call: operands of one shape, one element after another.
pub(crate) fn like_operands<'a>(op: &OpSpec, known: &[Known<'a>]) -> Option<(&'a [i64], &'a [i64])> {
    let mut tensors = known.iter().filter_map(|known| match known {
        Known::Tensor(raw) => Some(*raw),
        Known::Number(_) => None,
    });
    let first = tensors
        .next()
        .filter(|first| op.form == Form::Elementwise && layout::is_contiguous(first.sizes, first.strides))?;
    tensors.all(|raw| raw.sizes == first.sizes && raw.strides == first.strides).then_some((first.sizes, first.strides))
}

/// The shape that operands broadcast to. One that each row has once counts with a last dimension of 1; an element of a group as all of
/// the group.
///
/// # Errors
/// Shapes that do not go together; a last dimension that is no multiple of the group.
pub(crate) fn shape_of_rows(op: &OpSpec, known: &[Known<'_>]) -> Result<Vec<i64>, String> {
    let mut shapes = Vec::with_capacity(known.len());
    for (known, operand) in known.iter().zip(&op.operands) {
        if let Known::Tensor(raw) = known {
            let mut sizes = raw.sizes.to_vec();
            match sizes.last_mut() {
                _ if operand.is_row && op.group == 0 => sizes.push(1),
                Some(groups) if operand.is_row && *groups != 1 => *groups = groups.saturating_mul(op.group),
                _ => {}
            }
            shapes.push(sizes);
        }
    }
    let sizes = layout::broadcast(shapes.iter().map(Vec::as_slice))?;
    if op.group != 0 && sizes.last().is_none_or(|last| last % op.group != 0) {
        let group = op.group;
        return Err(format!("{}: the last dimension must be a multiple of {group}, the sizes are {sizes:?}", op.name));
    }
    Ok(sizes)
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

/// Sizes and strides of new results, but of those that each row has once.
///
/// # Errors
/// Shapes that do not go together.
pub(crate) fn layout_of_results(op: &OpSpec, known: &[Known<'_>]) -> Result<(Vec<i64>, Vec<i64>), String> {
    let mut tensors: Vec<(&[i64], &[i64])> = Vec::with_capacity(known.len());
    for (known, operand) in known.iter().zip(&op.operands) {
        // An operand with an element for each channel does not count.
        if let (Known::Tensor(raw), false) = (known, operand.is_channel) {
            tensors.push((raw.sizes, raw.strides));
        }
    }
    Ok(match op.form {
        Form::Elementwise | Form::Channel => {
            let sizes = layout::broadcast(tensors.iter().map(|(sizes, _)| *sizes))?;
            let strides =
                if op.has_place() { layout::contiguous(&sizes) } else { layout::of_result(&sizes, &tensors)? };
            (sizes, strides)
        }
        Form::Halves => {
            let mut sizes = tensors.first().map(|(sizes, _)| sizes.to_vec()).unwrap_or_default();
            match sizes.last_mut() {
                Some(last) if *last % 2 == 0 => *last /= 2,
                _ => return Err(format!("{}: the last dimension of x must be even, x is {sizes:?}", op.name)),
            }
            let strides = layout::contiguous(&sizes);
            (sizes, strides)
        }
        Form::HalvesGradient => {
            let sizes = tensors.last().map(|(sizes, _)| sizes.to_vec()).unwrap_or_default();
            let strides = layout::contiguous(&sizes);
            (sizes, strides)
        }
        Form::Rows => {
            let sizes = shape_of_rows(op, known)?;
            let strides = layout::contiguous(&sizes);
            (sizes, strides)
        }
        Form::Generator => return Err(format!("{} writes to a tensor that is given", op.name)),
    })
}

/// Returns sizes and strides of each result that does not have `sizes`, of an op on rows: those that each row has once, and gradients
/// of weights that are summed over rows. None for other ops.
pub(crate) fn own_layouts(op: &OpSpec, known: &[Known<'_>], sizes: &[i64]) -> Vec<Option<(Vec<i64>, Vec<i64>)>> {
    if op.form != Form::Rows {
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
    let of = |spec: &ResultSpec| {
        if spec.is_row {
            return Some(once_a_row(op, sizes));
        }
        let own = match &known[spec.weight.filter(|_| is_summed)?] {
            Known::Tensor(raw) if is_row(raw.sizes) => raw.sizes,
            _ => len,
        };
        Some((own.to_vec(), layout::contiguous(own)))
    };
    op.results.iter().map(of).collect()
}
