//! Finds out if two views share memory.

use super::TensorView;

/// The overlap of two views in memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Overlap {
    /// They share no byte.
    None,
    /// Every index names the same element in both: writing one while reading the other, element by element, is defined.
    Exact,
    /// They share memory in another way, or may do so: the ranges of their bytes meet.
    Partial,
}

/// Compares the memory of `a` and `b`. Interleaved views (even and odd columns, say) count as [`Overlap::Partial`].
pub fn overlap(a: &TensorView<'_>, b: &TensorView<'_>) -> Overlap {
    if a.device() != b.device() {
        return Overlap::None;
    }
    let ((a_start, a_end), (b_start, b_end)) = (a.span(), b.span());
    if a_start >= b_end || b_start >= a_end || a_start == a_end || b_start == b_end {
        return Overlap::None;
    }
    let same = a.dtype().bits() == b.dtype().bits()
        && a.address() == b.address()
        && a.shape() == b.shape()
        // Strides along a single element are never used.
        && a.shape().iter().zip(a.strides()).zip(b.strides()).all(|((&dim, x), y)| dim == 1 || x == y);
    if same { Overlap::Exact } else { Overlap::Partial }
}

/// True if two views of one buffer take turns, with a common period: a row of one, then a row of the other.
pub(crate) fn interleave(a: &TensorView<'_>, b: &TensorView<'_>) -> bool {
    if a.dtype() != b.dtype() || a.shape().rank() != b.shape().rank() {
        return false;
    }
    let size = a.dtype().size() as i64;
    let apart = b.address() as i64 - a.address() as i64;
    if apart % size != 0 {
        return false;
    }
    // The elements that a row spans: dimensions whose stride is a multiple of the period do not count.
    let reach = |view: &TensorView<'_>, period: i64| {
        let dims = view.shape().iter().zip(view.strides());
        let inner = dims.filter(|&(&dim, &stride)| dim > 1 && stride % period != 0);
        inner.map(|(&dim, &stride)| (dim as i64 - 1) * stride.abs()).sum::<i64>() + 1
    };
    let forward = |view: &TensorView<'_>| view.strides().iter().all(|stride| *stride >= 0);
    let periods = a.shape().iter().zip(a.strides()).filter(|&(&dim, &stride)| dim > 1 && stride > 1);
    forward(a)
        && forward(b)
        && periods.map(|(_, stride)| *stride).any(|period| {
            let between = (apart / size).rem_euclid(period);
            reach(a, period) <= between && between + reach(b, period) <= period
        })
}
