//! One kernel launch: no allocation, no synchronisation. The caller holds the stream.

use std::ffi::c_void;
use std::ptr::null_mut;

use super::module::Function;
use super::stream::Held;
use super::sys::{self, LaunchAttribute, LaunchConfig, call};
use crate::error::Result;

/// The kernel may be launched while the one before it in the stream ends: it waits for that one by itself.
static EARLY: LaunchAttribute = LaunchAttribute::new(sys::PROGRAMMATIC_STREAM_SERIALIZATION, 1);

/// Queues `function` on a stream: `grid` blocks of `block` threads. `params` points to the arguments, which are read
/// before this returns.
///
/// # Errors
/// Errors of the driver and of earlier kernels.
///
/// # Safety
/// `function` is of the stream's context, `params` has one pointer for each of the kernel's
/// parameters, to a value of its type, and the kernel with these arguments touches only memory it may.
#[inline]
pub(crate) unsafe fn launch(
    function: Function,
    grid: u32,
    block: u32,
    held: &Held<'_>,
    params: &mut [*mut c_void],
) -> Result<()> {
    let grid = Grid { blocks: [grid, 1, 1], threads: [block, 1, 1], shared: 0 };
    // SAFETY: the caller's promise.
    unsafe { launch_grid(function, grid, held, params) }
}

/// Blocks, the threads of each, and the bytes of shared memory that each is given.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Grid {
    pub(crate) blocks: [u32; 3],
    pub(crate) threads: [u32; 3],
    pub(crate) shared: u32,
}

/// [`launch`] of a grid of any shape.
///
/// # Errors
/// The errors of [`launch`].
///
/// # Safety
/// The conditions of [`launch`] hold, and the function was loaded for that much shared memory.
#[inline]
pub(crate) unsafe fn launch_grid(
    function: Function,
    Grid { blocks: [columns, rows, layers], threads: [x, y, z], shared }: Grid,
    held: &Held<'_>,
    params: &mut [*mut c_void],
) -> Result<()> {
    let context = held.context;
    let _current = context.make_current()?;
    let params = params.as_mut_ptr();
    if let Some(launch_early) = context.launch_early.filter(|_| held.stream.is_non_blocking()) {
        let config = LaunchConfig {
            blocks: [columns, rows, layers],
            threads: [x, y, z],
            shared,
            stream: held.raw(),
            attributes: &raw const EARLY,
            count: 1,
        };
        // SAFETY: the caller's promise; `config` is the header's, and the embedded kernels wait for those before them
        // in the stream before they touch memory.
        let code = unsafe { launch_early(&config, function.0, params, null_mut()) };
        return sys::check(context.api, "cuLaunchKernelEx", code);
    }
    // SAFETY: the caller's promise.
    unsafe {
        call!(
            context.api,
            cuLaunchKernel(function.0, columns, rows, layers, x, y, z, shared, held.raw(), params, null_mut())
        )
    }
}
