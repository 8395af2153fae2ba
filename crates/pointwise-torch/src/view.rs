//! Tensors of torch as pointwise's views.

use pointwise::{DType, Device, TensorView, TensorViewMut};

use crate::abi::Element;

/// The most dimensions of pointwise's views.
pub(crate) const RANK: usize = 8;

pub(crate) fn say(error: pointwise::Error) -> String {
    error.to_string()
}

/// A view of torch's memory. (f64 has none.)
///
/// # Safety
/// The memory is a tensor's of these dimensions.
pub(crate) unsafe fn view<'a>(
    device: &Device,
    data: *mut u8,
    element: Element,
    sizes: &[i64],
    strides: &[i64],
) -> Result<TensorView<'a>, String> {
    let (dtype, shape) = parts(element, sizes)?;
    // SAFETY: the caller's promise.
    unsafe { TensorView::from_raw_parts(device, data, dtype, &shape[..sizes.len()], strides) }.map_err(say)
}

/// A view of torch's memory, to write.
///
/// # Safety
/// The memory is a tensor's of these dimensions, and nothing else reads it while the view lives.
pub(crate) unsafe fn view_mut<'a>(
    device: &Device,
    data: *mut u8,
    element: Element,
    sizes: &[i64],
    strides: &[i64],
) -> Result<TensorViewMut<'a>, String> {
    let (dtype, shape) = parts(element, sizes)?;
    // SAFETY: the caller's promise.
    unsafe { TensorViewMut::from_raw_parts(device, data, dtype, &shape[..sizes.len()], strides) }.map_err(say)
}

/// Type and shape of a view.
fn parts(element: Element, sizes: &[i64]) -> Result<(DType, [usize; RANK]), String> {
    let dtype = match element {
        Element::Of(dtype) => dtype,
        Element::F64 => return Err("float64 has no kernels here".to_owned()),
    };
    let mut shape = [0; RANK];
    for (to, from) in shape.iter_mut().zip(sizes) {
        *to = *from as usize;
    }
    Ok((dtype, shape))
}
