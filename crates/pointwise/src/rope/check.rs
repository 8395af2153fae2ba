//! The checks of a rotation's tensors, before anything is launched.

use pointwise_core::DType;
use pointwise_core::rope::WIDE_IDS;

use super::options::TYPES;
use super::plan::Settings;
use super::{RopeError, RopeLayout};
use crate::error::{ErrorKind, Result};
use crate::tensor::{Overlap, TensorView, interleave, overlap};
use crate::{Device, Strategy, kernel};

/// The sizes of a tensor, whatever its layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shape4 {
    pub(super) batch: usize,
    pub(super) seq: usize,
    pub(super) heads: usize,
    pub(super) head_dim: usize,
}

impl Shape4 {
    /// Batch entries times tokens of each.
    pub(super) fn tokens(&self) -> Result<u32> {
        let tokens = self.batch.checked_mul(self.seq).filter(|tokens| *tokens < 1 << 31);
        Ok(tokens.map(|tokens| tokens as u32).ok_or_else(|| ErrorKind::Unsupported {
            what: format!("{} batch entries of {} tokens", self.batch, self.seq),
            advice: "a call takes fewer than 2^31 tokens: rotate parts of them".to_owned(),
        })?)
    }
}

/// Refuses element types that RoPE does not take.
pub(super) fn dtype(view: &TensorView<'_>) -> Result<()> {
    if TYPES.contains(&view.dtype()) {
        return Ok(());
    }
    Err(ErrorKind::DType { op: "rope".to_owned(), got: view.dtype(), allowed: TYPES.to_vec() }.into())
}

pub(super) fn device(what: &str, expected: &Device, got: &Device) -> Result<()> {
    if expected == got {
        return Ok(());
    }
    Err(ErrorKind::DeviceMismatch { what: what.to_owned(), expected: *expected, got: *got }.into())
}

/// Checks the launch settings and the scales, also on the CPU.
pub(super) fn launch(settings: &Settings, scales: [f32; 2]) -> Result<()> {
    settings.threads.map_or(Ok(()), kernel::check::threads)?;
    if settings.heads_per_thread == Some(0) {
        let why = "must be 1 or more".to_owned();
        return Err(ErrorKind::Parameter { name: "heads_per_thread", value: "0".to_owned(), why }.into());
    }
    if settings.strategy == Strategy::Table {
        let why = "rope has no table: auto, direct, explicit_parallel or register_copy".to_owned();
        return Err(ErrorKind::Parameter { name: "strategy", value: settings.strategy.to_string(), why }.into());
    }
    if let Some(scale) = scales.into_iter().find(|scale| !scale.is_finite()) {
        return Err(RopeError::invalid("output_scale", scale, "give a finite number").into());
    }
    Ok(())
}

/// Returns the sizes of a tensor by its layout.
pub(super) fn shape(name: &str, view: &TensorView<'_>, layout: RopeLayout) -> Result<Shape4> {
    if view.shape().rank() != layout.rank() {
        let detail = format!("its shape is {}; choose the layout it has", view.shape());
        return Err(RopeError::contradiction(name, layout.describe(), detail).into());
    }
    let size = |dim: Option<usize>| dim.map_or(1, |dim| view.shape()[dim]);
    let [batch, seq, heads] = layout.dims().map(size);
    let head_dim = view.shape()[layout.rank() - 1];
    if view.numel() > 0 && view.strides()[layout.rank() - 1] != 1 && head_dim > 1 {
        return Err(ErrorKind::NotContiguous {
            what: "rope, in the last dimension,",
            shape: *view.shape(),
            strides: view.strides().to_vec(),
        }
        .into());
    }
    if heads >= 1 << 24 || head_dim >= 1 << 24 {
        return Err(ErrorKind::Unsupported {
            what: format!("{heads} heads of {head_dim} lanes"),
            advice: "at most 2^24 each".to_owned(),
        }
        .into());
    }
    Ok(Shape4 { batch, seq, heads, head_dim })
}

/// Checks k against q. Returns k's heads.
pub(super) fn second(q: &TensorView<'_>, k: &TensorView<'_>, of_q: &Shape4, layout: RopeLayout) -> Result<usize> {
    if k.dtype() != q.dtype() {
        return Err(ErrorKind::DType { op: "k beside q".to_owned(), got: k.dtype(), allowed: vec![q.dtype()] }.into());
    }
    device("k", q.device(), k.device())?;
    let of_k = shape("k", k, layout)?;
    if (Shape4 { heads: of_q.heads, ..of_k }) != *of_q {
        let what = format!("k, which may differ from q in the heads alone ({})", layout.describe());
        return Err(ErrorKind::ShapeMismatch { what, expected: *q.shape(), got: *k.shape() }.into());
    }
    Ok(of_k.heads)
}

/// Checks outputs against inputs: alike, and sharing no memory with anything.
pub(super) fn outputs(
    q: &TensorView<'_>,
    k: Option<&TensorView<'_>>,
    q_out: &TensorView<'_>,
    k_out: Option<&TensorView<'_>>,
) -> Result<()> {
    for (input, output, what) in [(Some(q), Some(q_out), "the output of q"), (k, k_out, "the output of k")] {
        let (Some(input), Some(output)) = (input, output) else { continue };
        if output.dtype() != input.dtype() {
            let (op, allowed) = (what.to_owned(), vec![input.dtype()]);
            return Err(ErrorKind::DType { op, got: output.dtype(), allowed }.into());
        }
        device(what, input.device(), output.device())?;
        if output.shape() != input.shape() {
            let (expected, got) = (*input.shape(), *output.shape());
            return Err(ErrorKind::ShapeMismatch { what: what.to_owned(), expected, got }.into());
        }
        for operand in [Some(q), k].into_iter().flatten() {
            apart(output, operand, "an input and an output (in place, call run_inplace)")?;
        }
    }
    k_out.map_or(Ok(()), |k_out| apart(q_out, k_out, "the outputs"))
}

/// Refuses a table or positions that an output may share memory with: one thread would write what another has yet to read.
pub(super) fn unwritten(name: &str, view: &TensorView<'_>, out: &TensorView<'_>) -> Result<()> {
    match overlap(view, out) {
        Overlap::None => Ok(()),
        _ => Err(ErrorKind::Overlap { what: format!("{name} and an output") }.into()),
    }
}

/// Refuses two tensors that may share memory. Views of one packed buffer (`[tokens, q heads + k heads, lanes]`) pass.
pub(super) fn apart(a: &TensorView<'_>, b: &TensorView<'_>, what: &str) -> Result<()> {
    if overlap(a, b) == Overlap::None || interleave(a, b) {
        return Ok(());
    }
    Err(ErrorKind::Overlap { what: what.to_owned() }.into())
}

/// A table of angles, cosines or sines.
pub(super) struct Table {
    /// The strides of batch and row.
    pub(super) strides: [i64; 2],
    /// Rows; `i64::MAX` for a table with a row for each token: there no row can be missing.
    pub(super) rows: i64,
    /// True if there is a row for each token, not for each position.
    pub(super) per_token: bool,
    name: &'static str,
    width: usize,
}

/// Checks a table.
pub(super) fn table(name: &'static str, view: &TensorView<'_>, types: &[DType], of: &Shape4) -> Result<Table> {
    if !types.contains(&view.dtype()) {
        return Err(ErrorKind::DType { op: name.to_owned(), got: view.dtype(), allowed: types.to_vec() }.into());
    }
    let (shape, strides) = (view.shape(), view.strides());
    let table = |strides, rows, per_token, width| Table { strides, rows, per_token, name, width };
    // The rank is checked before the last dimension is read: a table may have none.
    let table = match **shape {
        [rows, width] | [rows, 1, 1, width] => table([0, strides[0]], rows as i64, false, width),
        [batch, seq, width] if seq == of.seq && (batch == 1 || batch == of.batch) => {
            let over_batch = if batch == 1 { 0 } else { strides[0] };
            table([over_batch, strides[1]], i64::MAX, true, width)
        }
        _ => {
            let expected = format!("[rows, width], [rows, 1, 1, width] or [{}, {}, width]", of.batch, of.seq);
            return Err(RopeError::invalid(name, shape, &format!("its shape must be {expected}")).into());
        }
    };
    if view.numel() > 0 && table.width > 1 && strides.last() != Some(&1) {
        let what = "a table, in its last dimension,";
        return Err(ErrorKind::NotContiguous { what, shape: *shape, strides: strides.to_vec() }.into());
    }
    Ok(table)
}

impl Table {
    /// Returns the rotary dimension: the given one, else the whole head. For a table of another width it must be given:
    /// the width may be all rotated lanes (HF's tables) or half of them.
    pub(super) fn rotary_dim(&self, given: Option<usize>, of: &Shape4) -> Result<usize> {
        let (width, head_dim) = (self.width, of.head_dim);
        if given.is_none() && width > head_dim {
            let detail =
                format!("its rows have {width} entries, heads {head_dim} lanes: a head's, or fewer, are needed");
            return Err(RopeError::contradiction(self.name, "head_dim", detail).into());
        }
        let whole = [Some(width), width.checked_mul(2)].contains(&Some(head_dim)).then_some(head_dim);
        let rotary_dim = given.or(whole).ok_or_else(|| {
            let hint = format!(
                "rows of `{}` have {width} entries, neither head_dim ({head_dim}) nor half of it: say how many lanes \
                 rotate",
                self.name
            );
            RopeError::MissingKey { key: "rotary_dim", hint }
        })?;
        if rotary_dim == width || Some(rotary_dim) == width.checked_mul(2) {
            return Ok(rotary_dim);
        }
        let detail = format!("its rows have {width} entries; rotary_dim / 2 or rotary_dim are needed");
        Err(RopeError::contradiction(self.name, &format!("rotary_dim {rotary_dim}"), detail).into())
    }
}

/// Checks the type and shape of positions.
pub(super) fn positions(name: &'static str, view: &TensorView<'_>, shapes: &[&[usize]]) -> Result<()> {
    if !matches!(view.dtype(), DType::I32 | DType::I64) {
        let allowed = vec![DType::I32, DType::I64];
        return Err(ErrorKind::DType { op: name.to_owned(), got: view.dtype(), allowed }.into());
    }
    if shapes.iter().any(|shape| **shape == **view.shape()) {
        return Ok(());
    }
    let shapes: Vec<_> = shapes.iter().map(|shape| format!("{shape:?}")).collect();
    Err(RopeError::invalid(name, view.shape(), &format!("its shape must be {}", shapes.join(" or "))).into())
}

/// The flag for 64-bit positions.
pub(super) fn wide(view: &TensorView<'_>) -> u32 {
    if view.dtype() == DType::I64 { WIDE_IDS } else { 0 }
}

/// Checks cumulative lengths. Returns the number of sequences.
pub(super) fn starts(view: &TensorView<'_>) -> Result<u32> {
    let len = view.numel();
    positions("cu_seqlens", view, &[&[len]])?;
    if !(2..=1 << 31).contains(&len) || !view.is_contiguous() {
        let expected = "give where each sequence begins and where the last ends, one after another";
        return Err(RopeError::invalid("cu_seqlens", view.shape(), expected).into());
    }
    Ok((len - 1) as u32)
}

/// The error for positions that a table does not have.
pub(super) fn beyond(first: i64, last: i64, rows: i64) -> ErrorKind {
    ErrorKind::Parameter {
        name: "positions",
        value: format!("{first} to {last}"),
        why: match rows {
            0 => "the table has no rows: make it longer".to_owned(),
            _ => format!("the table has the rows 0 to {}: make it longer, or leave such tokens as they are", rows - 1),
        },
    }
}

fn on_the_host(view: &TensorView<'_>) -> Result<Option<Vec<i64>>> {
    if !view.device().is_cpu() {
        return Ok(None);
    }
    Ok(Some(match view.dtype() {
        DType::I64 => view.to_vec::<i64>()?,
        _ => view.to_vec::<i32>()?.into_iter().map(i64::from).collect(),
    }))
}

/// Checks positions that the host can read: each begins a run of `len`.
pub(super) fn host_positions(view: &TensorView<'_>, rows: i64, len: usize) -> Result<()> {
    if rows == i64::MAX {
        return Ok(());
    }
    for first in on_the_host(view)?.into_iter().flatten() {
        let last = first.saturating_add(len as i64 - 1);
        if len > 0 && (first < 0 || last >= rows) {
            return Err(beyond(first, last, rows).into());
        }
    }
    Ok(())
}

/// Checks sequences that the host can read: rising, and within the table.
pub(super) fn host_sequences(starts: &TensorView<'_>, offsets: Option<&TensorView<'_>>, rows: i64) -> Result<()> {
    let Some(starts) = on_the_host(starts)? else { return Ok(()) };
    let offsets = offsets.map(on_the_host).transpose()?.flatten().unwrap_or_else(|| vec![0; starts.len()]);
    for (sequence, offset) in starts.windows(2).zip(offsets) {
        let len = sequence[1].saturating_sub(sequence[0]);
        if len < 0 {
            let value = format!("{} then {}", sequence[0], sequence[1]);
            return Err(RopeError::invalid("cu_seqlens", value, "it must not fall").into());
        }
        let last = offset.saturating_add(len - 1);
        if rows != i64::MAX && len > 0 && (offset < 0 || last >= rows) {
            return Err(beyond(offset, last, rows).into());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// q and k are heads of 8 lanes in rows of 32 elements; the last elements of a row belong to neither.
    #[test]
    fn heads_of_one_buffer_lie_apart_where_they_share_no_lane() {
        let buffer = vec![0.0_f32; 6 * 32];
        let heads = |at: usize, heads: usize, strides: [i64; 3]| {
            let first = buffer[at..].as_ptr();
            // SAFETY: 4 rows of the buffer's 6, and nothing is read.
            unsafe { TensorView::from_raw_parts(&Device::cpu(), first, DType::F32, [4, heads, 8], &strides) }.unwrap()
        };
        let rows = [32, 8, 1];
        let q = heads(0, 2, rows);
        let are_apart = |k: TensorView<'_>| [apart(&q, &k, "").is_ok(), apart(&k, &q, "").is_ok()];
        for (at, k_heads) in [(16, 1), (16, 2), (24, 1)] {
            assert_eq!(are_apart(heads(at, k_heads, rows)), [true; 2], "{k_heads} from {at}");
        }
        for (at, k_heads) in [(0, 1), (8, 1), (15, 1), (17, 2), (24, 2), (16, 3)] {
            assert_eq!(are_apart(heads(at, k_heads, rows)), [false; 2], "{k_heads} from {at}");
        }
        // Rows of another length; lanes that lie backwards and reach into q's.
        assert_eq!(are_apart(heads(16, 1, [40, 8, 1])), [false; 2]);
        assert_eq!(are_apart(heads(20, 1, [32, 8, -1])), [false; 2]);
    }
}
