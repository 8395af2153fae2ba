//! The visitor that makes the kernel entries of a table of the family.

/// Exports the entries of a table: every op in every one of its element types by every class of kernel. Expands to nothing
/// on the host.
///
/// `extern "gpu-kernel"` is passed on from here: the tokens of a macro that may be unstable, may be so anywhere.
#[doc(hidden)]
#[macro_export]
#[cfg_attr(target_arch = "nvptx64", allow_internal_unstable(abi_gpu_kernel))]
macro_rules! export {
    ($($table:tt)*) => {
        $crate::__private::entries! { ($crate) (extern "gpu-kernel") $($table)* }
    };
}
