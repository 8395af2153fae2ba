//! Compares results bit for bit, and checks that nothing is written beside them.

use pointwise::{DType, Result, Tensor, TensorView, TensorViewMut};
use pointwise_testkit::judge::same_bits;

use crate::case::{Case, Outcome, must};
use crate::make::Place;

/// The bytes of a view in row-major order, read from its tensor's by the view's strides alone.
fn gathered(view: &TensorView<'_>, tensor: &Tensor) -> std::result::Result<Vec<u8>, String> {
    let all = must("to_bytes", tensor.to_bytes())?;
    let size = view.dtype().size();
    Ok(places(view, tensor).into_iter().flat_map(|at| all[at * size..(at + 1) * size].to_vec()).collect())
}

/// The indices of a view's elements in its tensor, in row-major order.
fn places(view: &TensorView<'_>, tensor: &Tensor) -> Vec<usize> {
    if view.numel() == 0 {
        return Vec::new();
    }
    let first = (view.address() - tensor.view().address()) / view.dtype().size();
    let mut places = vec![first as i64];
    for (&dim, &stride) in view.shape().iter().zip(view.strides()) {
        places = places.iter().flat_map(|&at| (0..dim as i64).map(move |i| at + i * stride)).collect();
    }
    places.into_iter().map(|at| at as usize).collect()
}

/// A contiguous tensor of a view's elements, copied without the library's help.
pub(crate) fn copy(view: &TensorView<'_>, tensor: &Tensor) -> std::result::Result<Tensor, String> {
    let bytes = gathered(view, tensor)?;
    must("a copy for the case", Tensor::from_bytes(view.device(), view.dtype(), &bytes, view.shape()))
}

/// Checks that two results are the same.
pub(crate) fn same(what: &str, got: &Tensor, want: &Tensor) -> Outcome {
    if got.dtype() != want.dtype() || got.shape() != want.shape() {
        let (a, b) = ((got.dtype(), got.shape()), (want.dtype(), want.shape()));
        return Err(format!("{what}: {} {} instead of {} {}", a.0, a.1, b.0, b.1));
    }
    let (a, b) = (must("to_bytes", got.to_bytes())?, must("to_bytes", want.to_bytes())?);
    let Some(at) = same_bits(got.dtype(), &a, &b) else { return Ok(()) };
    let size = got.dtype().size();
    let (a, b) = (&a[at * size..(at + 1) * size], &b[at * size..(at + 1) * size]);
    Err(format!("{what}: element {at} of {} {} is {a:x?} instead of {b:x?}", got.dtype(), got.shape()))
}

/// Checks that every element of a bool tensor is 0 or 1.
pub(crate) fn proper(what: &str, tensor: &Tensor) -> Outcome {
    let wrong = tensor.dtype() == DType::Bool && must("to_bytes", tensor.to_bytes())?.iter().any(|&byte| byte > 1);
    if wrong { Err(format!("{what}: a bool is neither 0 nor 1")) } else { Ok(()) }
}

/// Lets `write` write to a view inside of a larger tensor: the elements of `want` must be there, and all others as they
/// were.
pub(crate) fn into(
    case: &mut Case,
    what: &str,
    want: &Tensor,
    write: impl FnOnce(TensorViewMut<'_>) -> Result<()>,
) -> Outcome {
    let place = Place::to_write(&mut case.random, want.shape());
    into_place(case, what, want, &place, write)
}

/// [`into`] a place of that tensor.
pub(crate) fn into_place(
    case: &mut Case,
    what: &str,
    want: &Tensor,
    place: &Place,
    write: impl FnOnce(TensorViewMut<'_>) -> Result<()>,
) -> Outcome {
    let mut tensor = place.tensor(case, want.dtype())?;
    let before = must("to_bytes", tensor.to_bytes())?;
    must(&format!("{what}: run_into refused what run took"), write(place.view_mut(&mut tensor)?))?;
    let view = place.view(&tensor)?;
    same(&format!("{what}: run_into"), &copy(&view, &tensor)?, want)?;
    let (after, size) = (must("to_bytes", tensor.to_bytes())?, want.dtype().size());
    let mut ours = vec![false; tensor.numel()];
    places(&view, &tensor).into_iter().for_each(|at| ours[at] = true);
    let beside = |&at: &usize| !ours[at] && before[at * size..(at + 1) * size] != after[at * size..(at + 1) * size];
    match (0..ours.len()).find(beside) {
        Some(at) => Err(format!("{what}: run_into wrote beside its result, at {at} of {place:?}")),
        None => Ok(()),
    }
}
