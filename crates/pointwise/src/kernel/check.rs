//! The checks that calls of all ops have in common, and their errors.

use pointwise_core::{DType, OpInfo};

use crate::Device;
use crate::error::{Error, ErrorKind, Result};
use crate::shape::Shape;
use crate::tensor::TensorView;

/// An op must take the element type.
pub(crate) fn dtype(info: &OpInfo, dtype: DType) -> Result<()> {
    if info.supports(dtype) {
        return Ok(());
    }
    Err(wrong_dtype(info, dtype))
}

/// Elements of a type that the op does not take.
#[cold]
pub(super) fn wrong_dtype(info: &OpInfo, got: DType) -> Error {
    ErrorKind::DType { op: info.name.to_owned(), got, allowed: info.types.to_vec() }.into()
}

/// A tensor that a result is to be written to, `what`: `expected` is the result's type for operands of type `of`.
pub(super) fn output(
    what: impl Fn() -> String,
    y: &TensorView<'_>,
    (of, expected): (DType, DType),
    shape: &Shape,
    device: &Device,
) -> Result<()> {
    if y.dtype() != expected {
        let op = format!("{} of {of}", what());
        return Err(ErrorKind::DType { op, got: y.dtype(), allowed: vec![expected] }.into());
    }
    if y.shape() != shape {
        return Err(ErrorKind::ShapeMismatch { what: what(), expected: *shape, got: *y.shape() }.into());
    }
    if y.device() != device {
        return Err(ErrorKind::DeviceMismatch { what: what(), expected: *device, got: *y.device() }.into());
    }
    Ok(())
}

/// Threads of a block that CUDA has, in whole warps.
pub(crate) fn threads(threads: u32) -> Result<()> {
    if (32..=1024).contains(&threads) && threads.is_multiple_of(32) {
        return Ok(());
    }
    Err(ErrorKind::Parameter {
        name: "threads",
        value: threads.to_string(),
        why: "must be a multiple of 32 from 32 to 1024".to_owned(),
    }
    .into())
}

/// Another number of operands or results than the op has.
#[cold]
pub(crate) fn wrong_count(info: &OpInfo, what: &str, names: &[&str], got: usize) -> Error {
    ErrorKind::Unsupported {
        what: format!("{} with {got} {what}", info.name),
        advice: format!("it has {}: {}", names.len(), names.join(", ")),
    }
    .into()
}

/// An op has neither a kernel nor a loop for a type that it takes.
#[cold]
pub(crate) fn no_kernel(info: &OpInfo, dtype: DType) -> Error {
    ErrorKind::NoKernel {
        symbol: format!("{} of {dtype}", info.name),
        why: "its table lists the type, but no code was made for it; please report this".to_owned(),
    }
    .into()
}
