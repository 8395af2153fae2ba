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
    let same = a.dtype().size() == b.dtype().size()
        && a.address() == b.address()
        && a.shape() == b.shape()
        // Strides along a single element are never used.
        && a.shape().iter().zip(a.strides()).zip(b.strides()).all(|((&dim, x), y)| dim == 1 || x == y);
    if same { Overlap::Exact } else { Overlap::Partial }
}
