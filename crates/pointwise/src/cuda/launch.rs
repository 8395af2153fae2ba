//! One kernel launch: no allocation, no lock, no synchronisation.

use std::ffi::c_void;
use std::ptr::null_mut;

use super::Context;
use super::module::Function;
use super::sys::call;
use crate::Stream;
use crate::error::Result;

/// Queues `function` on `stream`: `grid` blocks of `block` threads. `params` points to the arguments, which are read
/// before this returns.
///
/// # Errors
/// The driver's; those of earlier kernels too.
///
/// # Safety
/// `function` is of `context`, `stream` of the same device, `params` has one pointer for each of the kernel's
/// parameters, to a value of its type, and the kernel with these arguments touches only memory it may.
#[inline]
pub(crate) unsafe fn launch(
    context: &Context,
    function: Function,
    grid: u32,
    block: u32,
    stream: &Stream,
    params: &mut [*mut c_void],
) -> Result<()> {
    // SAFETY: the caller's promise.
    unsafe { launch_with_shared(context, function, [grid, block, 0], stream, params) }
}

/// [`launch`] of a grid of blocks of threads with so many bytes of shared memory each.
///
/// # Errors
/// As there.
///
/// # Safety
/// As there; the function was loaded for that much.
#[inline]
pub(crate) unsafe fn launch_with_shared(
    context: &Context,
    function: Function,
    [grid, block, shared]: [u32; 3],
    stream: &Stream,
    params: &mut [*mut c_void],
) -> Result<()> {
    context.make_current()?;
    // SAFETY: the caller's promise.
    unsafe {
        call!(
            context.api,
            cuLaunchKernel(function.0, grid, 1, 1, block, 1, 1, shared, stream.raw(), params.as_mut_ptr(), null_mut())
        )
    }
}
